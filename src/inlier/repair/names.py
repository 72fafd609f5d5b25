"""With whom? Names for rows that no pair was accepted of, from the odds of any x with any y.

    tried       rows that are not accepted: with a wrong partner, or badly measured, or alone
    candidates  y of tried rows; who would take the partner of an accepted pair is looked for among its copies
    m           how many candidates there are for a row: inside its stratum, where there are any

*Evidence.* Let lambda(r) be how much more often a pair has odds r than strangers do, in logarithms and rising. Who
belongs to y_j left y_i to somebody: to x_j, in an exchange. With a share e of exchanges, for x_i with y_j speaks

    t_ij = lambda(r_ij) + log( 1 - e + e m P ),    P = chance that x_j belongs to y_i = expit(lambda(r_ji) - log m).

*What is it worth?* A tried row whose partner is not here fits somebody best all the same. How well, is seen where
tried rows stand beside what belongs to others for sure: tried x with y of accepted pairs, and x of accepted pairs with
tried y, the accepted ones as if their own partner were gone. Bad samples are tried, so these are strangers of theirs,
too. With p0(t) of them at t or above, m p0(t) is a bound on the chance that one of m candidates looks as good as that;
over all tried rows these chances give q-values (Benjamini and Hochberg). The two ways of an exchange are strangers of
different rows, so the way back is drawn anew.

*The own pairs.* A name takes x_i and y_j from their own partners, so both must be displaced. With a_i and a_j for the
chances that they are (`inlier.repair.displaced`), log a_i + log a_j is added to the evidence, that of strangers too.

A name has the largest evidence for its x and for its y, and fits better than both own pairs. The two names of an
exchange have the smaller evidence of both: they are given together or not at all.

*Rivals.* Strangers say how often somebody else looks as good in general; in the row at hand, or in the column, others
may look nearly as good. The name has the part exp(t_ij) / sum_k exp(t_ik) of what speaks for anyone. What is missing to
1 is the share of wrong names by that count, and of both counts the larger one is believed.

*Chances.* With a share h of displaced rows whose partner is among the candidates, it is y_j with the chance

    a_i (h / m) a_j exp(t_ij) / (1 - h + (h / m) sum_k a_k exp(t_ik)),      a_j as parts of their mean.

and e and h are what makes the tried rows likeliest. What is left is none of these: its own, not here, or not to be
told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import false_discovery_control

from inlier._typing import Array, FloatArray, Mask
from inlier.repair.displaced import chances_displaced, places
from inlier.repair.evidence import Evidence, LogRatio, Strangers
from inlier.repair.odds import Odds, in_parts
from inlier.rows.null_pairs import may_be_re_paired

N_CANDIDATES = 3  # that are told of each row
_LOOKED_AT = 8  # candidates of each row, and rows for each candidate, whose way back is looked at
_ROUNDS = 50
_RARELY = 0.05  # share of exchanges, and of others, that there may always be
_WORTH_TELLING = 1e-3  # chance of a candidate
_LIKELY = 0.5  # chance of a candidate that is rather the partner than not
_FIRST = 0.05  # rate of wrong names in the first stage


@dataclass(frozen=True, eq=False)
class Names:
    """What is said of rows that are tried; nobody is row -1.

    Attributes
    ----------
    rows : ndarray of int
        Which rows of x were tried.
    partner, q_values : ndarray
        The best candidate of each, and the smallest rate of wrong names at which it is named; 1 where it never is.
    candidates, chances : ndarray of shape (m, 3)
        The likeliest partners, and the chance of each.
    own_rank : ndarray of int
        Place of the row's own partner among all y for its x, and of its x for its y, on average; 1 if none fits better.
    chance_here : ndarray
        Share of accepted pairs whose partner fits no better than the best of all y but its own fits this x, those of
        accepted pairs among them: a p-value of the partner's being here.
    """

    rows: Array
    partner: Array
    q_values: FloatArray
    candidates: Array
    chances: FloatArray
    own_rank: Array
    chance_here: FloatArray

    @staticmethod
    def nobody(rows: Array) -> Names:
        """The names of rows of which nothing can be said."""
        none, ones = np.full(rows.size, -1), np.ones(rows.size)
        several = np.full((rows.size, N_CANDIDATES), -1)
        return Names(rows, none, ones, several, np.zeros(several.shape), 0 * none, ones)

    def with_named(self, named: Mask) -> tuple[Array, FloatArray]:
        """Candidates and chances, in which a partner that is named has at least the chance of names at its rate."""
        candidates, chances = self.candidates.copy(), self.chances.copy()
        candidates[named, 0] = self.partner[named]
        chances[named, 0] = np.maximum(chances[named, 0], 1 - self.q_values[named])
        left = 1 - chances[named, :1]
        chances[named, 1:] *= np.minimum(left / np.maximum(chances[named, 1:].sum(axis=1, keepdims=True), 1e-9), 1.0)
        return candidates, chances

    def belongs_to_another(self, refused: Mask) -> Mask:
        """Of which rows the y is likely the partner of a refused row: it repeats nobody's."""
        found = np.zeros(refused.size, dtype=bool)
        found[self.candidates[refused[self.rows] & (self.chances[:, 0] > _LIKELY), 0]] = True
        return found


def find_names(
    odds: Odds, labels: Array, tried: Mask, has: tuple[Mask, Mask], sure: FloatArray, rng: np.random.RandomState
) -> Names:
    """Look for the partners of tried rows; ``has`` says which have an x, and a y, and ``sure`` how sure each pair is.

    ``labels`` are those of `inlier.rows.null_pairs`.
    """
    rows, candidates = np.flatnonzero(tried & has[0]), np.flatnonzero(tried & has[1])
    right = np.flatnonzero(~tried)
    if not rows.size or not candidates.size or not right.size:
        return Names.nobody(rows)
    strangers = Strangers.of(odds, labels, rows, candidates, right, rng)
    if not strangers.gone.size:
        return Names.nobody(rows)
    is_pair = has[0] & has[1]
    n_candidates = _candidates_of_each(labels, rows, candidates)
    log_ratio = LogRatio.of(odds.own[is_pair], sure[is_pair], np.concatenate([strangers.gone, strangers.there]))
    evidence = Evidence(log_ratio, float(n_candidates.mean()))
    edges = _Edges.of(odds, labels, rows, candidates, is_pair, evidence)
    evidence = replace(evidence, exchanged=edges.share_exchanged(evidence))
    pairs = rows[is_pair[rows]]
    own_places = places(odds, pairs, pairs, has)
    displaced, own_rank = np.ones(odds.n), np.zeros(odds.n, dtype=np.int64)
    displaced[pairs] = chances_displaced(odds, pairs, own_places, has, rng)
    own_rank[pairs] = np.rint(np.mean(own_places, axis=0))
    edges = edges.weighed_by(evidence, displaced)
    by_chance = evidence(strangers.gone, rng.permutation(strangers.gone))
    by_chance = np.sort(by_chance + np.log(displaced[strangers.tried] * displaced[rng.choice(rows, by_chance.size)]))
    partner, best = edges.names(odds, is_pair)
    above = by_chance.size - np.searchsorted(by_chance, best)
    p = np.where(partner >= 0, np.minimum(n_candidates * (above + 1) / by_chance.size, 1.0), 1.0)
    of_partners = np.sort(odds.own_scores[right] - odds.beside_x[right])
    return Names(
        rows,
        partner,
        edges.beside_rivals(partner, np.where(partner >= 0, _q_values(p), 1.0)),
        *edges.likeliest(evidence.m, displaced),
        own_rank[rows],
        (np.searchsorted(of_partners, _best_fit(odds, rows, has[1]), "right") + 1) / (right.size + 1),
    )


def _candidates_of_each(labels: Array, rows: Array, candidates: Array) -> Array:
    """How many candidates each row has."""
    strata = labels[3] if len(labels) > 2 else np.zeros(labels.shape[1], dtype=np.int64)
    _, strata = np.unique(strata, return_inverse=True)
    found: Array = np.maximum(np.bincount(strata[candidates], minlength=strata.max() + 1)[strata[rows]], 1)
    return found


def _q_values(p: FloatArray) -> FloatArray:
    """Benjamini and Hochberg's, in two stages: rows named in the first have no wrong name (Benjamini et al. 2006)."""
    first = false_discovery_control(p)
    q_values: FloatArray = first * (1 - (1 - _FIRST) * float(np.mean(first <= _FIRST / (1 + _FIRST))))
    return q_values


@dataclass(frozen=True, eq=False)
class _Edges:
    """Candidates that are looked at, sorted by row and from the best: x of ``row`` with y of ``column``."""

    rows: Array
    row: Array
    column: Array
    onward: FloatArray
    back: FloatArray
    evidence: FloatArray

    @staticmethod
    def of(odds: Odds, labels: Array, rows: Array, candidates: Array, is_pair: Mask, evidence: Evidence) -> _Edges:
        """The candidates that fit each x best, and the x that fit each candidate best, with what speaks for them."""
        found = np.unique(np.concatenate(list(_best_both_ways(odds, rows, candidates)), axis=1), axis=1)
        i, j = found[:, (found[0] != found[1])]
        i, j = (side[may_be_re_paired(labels, i, j)] for side in (i, j))
        onward, back = odds.pairs(i, j), np.full(i.size, -np.inf)
        both = is_pair[i] & is_pair[j]
        back[both] = odds.pairs(j[both], i[both])
        possible = onward > -np.inf
        i, j, onward, back = (of[possible] for of in (i, j, onward, back))
        return _Edges(rows, i, j, onward, back, onward).weighed_by(evidence, np.ones(odds.n))

    def weighed_by(self, evidence: Evidence, displaced: FloatArray) -> _Edges:
        """The same with this evidence, of each row the best first."""
        t = evidence(self.onward, self.back) + np.log(displaced[self.row] * displaced[self.column])
        order = np.lexsort((-t, self.row))
        of_each = (of[order] for of in (self.row, self.column, self.onward, self.back, t))
        return _Edges(self.rows, *of_each)

    def share_exchanged(self, evidence: Evidence) -> float:
        """Share of exchanges among displaced rows that makes the tried rows likeliest."""
        place, m = np.searchsorted(self.rows, self.row), evidence.m
        onward = np.exp(np.minimum(evidence.log_ratio(self.onward), 50.0)) / m
        returned, here, exchanged = evidence.returned(self.back), 0.5, 0.5
        for _ in range(_ROUNDS):
            either = 1 - exchanged + exchanged * returned
            likelihood = onward * either
            total = np.bincount(place, likelihood, minlength=self.rows.size)
            chance = here * likelihood / (1 - here + here * total)[place]
            here = float(np.clip(chance.sum() / self.rows.size, 1e-6, 1 - 1e-6))
            exchanged = float(np.sum(chance * exchanged * returned / either) / max(chance.sum(), 1e-9))
            exchanged = float(np.clip(exchanged, _RARELY, 1 - _RARELY))
        return exchanged

    def names(self, odds: Odds, is_pair: Mask) -> tuple[Array, FloatArray]:
        """The name of each row, -1 where it has none, and its evidence."""
        n, every = odds.n, np.arange(self.row.size)
        first = np.append(True, self.row[1:] != self.row[:-1])[: self.row.size]
        of_column = np.full(n, -np.inf)
        np.maximum.at(of_column, self.column, self.evidence)
        own = np.where(is_pair, odds.own, -np.inf)
        is_name = first & (self.evidence >= of_column[self.column])
        is_name &= self.onward > np.maximum(own[self.row], own[self.column])
        partner, best = np.full(n, -1), np.full(n, -np.inf)
        some = every[is_name]
        partner[self.row[some]], best[self.row[some]] = self.column[some], self.evidence[some]
        exchanged = np.flatnonzero((partner >= 0) & (partner[partner] == np.arange(n)))
        best[exchanged] = np.minimum(best[exchanged], best[partner[exchanged]])
        return partner[self.rows], best[self.rows]

    def beside_rivals(self, partner: Array, q_values: FloatArray) -> FloatArray:
        """q-values of names, at least what speaks for others beside those that have no more of it, on average."""
        weight = np.exp(np.minimum(self.evidence, 300.0))
        name = np.full(max(self.column.max(initial=-1), self.rows[-1]) + 1, -1)
        name[self.rows] = partner
        is_name = name[self.row] == self.column
        other = np.ones(name.size)
        of_name = weight / np.maximum(
            np.bincount(self.row, weight)[self.row], np.bincount(self.column, weight)[self.column]
        )
        other[self.row[is_name]] = 1 - of_name[is_name]
        exchanged = np.flatnonzero((name >= 0) & (name[name] == np.arange(name.size)))
        other[exchanged] = np.maximum(other[exchanged], other[name[exchanged]])
        some = np.flatnonzero(partner >= 0)
        some = some[np.argsort(other[self.rows[some]], kind="stable")]
        among = np.cumsum(other[self.rows[some]]) / np.arange(1, some.size + 1)
        found = np.ones(name.size)
        found[self.rows[some]] = np.maximum(q_values[some], among)
        found[exchanged] = np.maximum(found[exchanged], found[name[exchanged]])
        return found[self.rows]

    def likeliest(self, m: float, displaced: FloatArray) -> tuple[Array, FloatArray]:
        """The likeliest partners of each row, and the chance of each."""
        place, of_row = np.searchsorted(self.rows, self.row), displaced[self.row]
        likelihood = np.exp(np.minimum(self.evidence, 50.0)) / of_row / (m * displaced[self.rows].mean())
        total = np.bincount(place, likelihood, minlength=self.rows.size)
        weights, here = displaced[self.rows], 0.5
        for _ in range(_ROUNDS):  # as if one more had its partner here, and one more had not
            found = float(np.sum(weights * here * total / (1 - here + here * total)))
            here = (found + 1) / (weights.sum() + 2)
        chance = of_row * here * likelihood / (1 - here + here * total)[place]
        rank = np.arange(self.row.size) - np.searchsorted(self.row, self.row)
        told = (rank < N_CANDIDATES) & (chance >= _WORTH_TELLING)
        candidates, chances = np.full((self.rows.size, N_CANDIDATES), -1), np.zeros((self.rows.size, N_CANDIDATES))
        candidates[place[told], rank[told]], chances[place[told], rank[told]] = self.column[told], chance[told]
        return candidates, chances


def _best_both_ways(odds: Odds, rows: Array, candidates: Array) -> Iterator[Array]:
    """Some candidates of each x, and some x for each candidate, the best by their odds."""
    of_candidates: list[tuple[FloatArray, Array]] = []
    for part in in_parts(rows, candidates.size):
        block = odds.block(part, candidates)
        block[part[:, None] == candidates] = -np.inf
        best = _best(block, axis=1)
        yield np.stack([np.repeat(part, best.shape[1]), candidates[best].ravel()])
        best = _best(block, axis=0)
        of_candidates.append((np.take_along_axis(block, best, axis=0), part[best]))
    values, owners = (np.concatenate(side) for side in zip(*of_candidates, strict=True))
    owners = np.take_along_axis(owners, _best(values, axis=0), axis=0)
    yield np.stack([owners.ravel(), np.tile(candidates, len(owners))])


def _best(block: FloatArray, axis: int) -> Array:
    """Where the largest values along an axis stand."""
    k = min(_LOOKED_AT, block.shape[axis])
    return np.take(np.argpartition(-block, k - 1, axis=axis), np.arange(k), axis=axis)


def _best_fit(odds: Odds, rows: Array, has_y: Mask) -> FloatArray:
    """How well the best y but its own fits each x.

    The y of an accepted pair is no candidate, but may be the partner all the same, where a look-alike was accepted.
    """
    every, best = np.flatnonzero(has_y), np.full(rows.size, -np.inf)
    for part in in_parts(np.arange(rows.size), odds.n):
        some = rows[part]
        fit = odds.scores(some, every) - odds.beside_x[some].astype(np.float32)[:, None]
        fit[some[:, None] == every] = -np.inf
        best[part] = fit.max(axis=1)
    return best
