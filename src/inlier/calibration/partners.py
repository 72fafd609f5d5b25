"""With whom, then? Partners of the rows that are wrong, with an error rate for the names.

Each x_i that is tried is compared with the y of the candidates: of all rows, or of those that are tried. How far log
odds speak for a pair is told by pairs that are right: lambda is the logarithm of how much more often they have such log
odds than re-pairings do. Beforehand the partner of a wrong row is one of the m candidates' y_j in proportion to c_j,
the chance that y_j is not with its own x: with the chance v_j / m, v_j = c_j / mean c. A mix-up is seldom alone: a
share rho of them are swaps. If y_i belongs to x_j, which has the chance P_ji, then x_i belongs to y_j with the chance
rho. So the evidence for x_i with y_j is

    t_ij = lambda_ij + log((1 - rho P_ji) v_j + rho m P_ji),   logit P_ji = lambda_ji + logit(c_j v_i / m).

What a name is worth is told by right pairs, too, for they have their partner: the best t that *they* find among the
same y, their own left out, is the best of m wrong partners (f0, of distribution F0); t with their own partner is what a
right name has (f1, F1). In a cycle of three x_j may fit y_i for good reasons while x_i with y_j is chance; so for each
of them one j is taken to be such. A row that is wrong with chance c, its partner among the y with chance h, has the
right name at t with a chance in proportion to c h f1 F0, a wrong one to (1 - c h) f0 + c h F1 f0. That holds for names
on the whole. Some have a rival that is nearly as good; evidence is the logarithm of a ratio of likelihoods. Another y
of evidence s for the same x is its partner with a chance in proportion to c h f1 F0 exp(s - t): then the name is wrong,
and the partner is here all the same. If another x has the evidence s for the same y, the name is wrong with a chance in
that proportion, too, which says nothing about where the partner is. The share h is that of the largest likelihood;
q-values are means of the chances of a wrong name over all names that are as sure or surer.

No y is given to two x: of the candidates, those are taken that together have most evidence
(`scipy.optimize.linear_sum_assignment`, in each connected part of the candidates).

Notation, and what it is called in the code:

    c             chance_wrong
    m             number of candidates
    v_i, v_j      v_i, v_j
    lambda        _Evidence.lambda_
    rho           _SWAPS
    P_ji          returned
    t             what an _Evidence gives: weight of a candidate, strength of a name
    F0, F1        distributions of _Worth.of_wrong_names and _Worth.of_right_names
    log f1 / f0   _Worth.log_ratio
    h             here
    exp(s - t)    in sums: for_x of another y for the same x, for_y of another x for the same y
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.any_pairs import IMPOSSIBLE, AnyPairs, entries
from inlier.calibration.p_values import calibrate, means_of_surer
from inlier.rows.null_pairs import may_be_re_paired

_ENTRIES_AT_ONCE = 4_000_000
_MOST_CANDIDATES = 5  # of a row
_LARGEST_PART = 3_000  # rows that are assigned to each other at once; of more, each keeps fewer candidates
_SWAPS = 0.8  # of mix-ups: how much x_j with y_i says about x_i with y_j
_MOST_SURE = 3_000  # right pairs that tell what chance does
_DRAWS = 4  # of what might stand beside a right pair
_DRAW = np.arange(_DRAWS)[:, None]
_GOLDEN = (5**0.5 - 1) / 2  # whose multiples are spread evenly over the unit interval
_UNLIKELY = 1e-9
_ROWS_FOR_ODDS = 500  # right pairs whose re-pairings with the candidates tell what log odds are worth
_TABLE = 4_096  # values that a ratio is kept at
_SLOPE = 1e-3  # of the logarithm of a ratio, so that what is higher counts more wherever it is level
_ROUNDS = 100  # of the iteration for h, the share of wrong rows whose partner is here
_LEAST_HERE = 0.02  # of h, and of 1 - h: neither is ever told for sure
_IMPOSSIBLE_EVIDENCE = -50.0
_STAND_OUT = 2 / 3  # of right pairs whose partner would be found, from which on one that is not found is not here
FEWEST_SURE = 20  # surely right pairs without which no name is given


@dataclass(frozen=True, eq=False)
class Names:
    """For each row that was tried, the partner that is proposed, if any."""

    partner: Array  # number of the pair whose y it is; -1 where there is no candidate
    q_values: FloatArray
    runner_up: Array  # the next best for which there is evidence, -1 where there is none
    not_here: FloatArray  # chance that the partner is none of the candidates, given that the row is wrong


@dataclass(frozen=True, eq=False)
class Owners:
    """For each row that may be a copy, the right pair that it resembles most."""

    of: Array
    q_values: FloatArray


def name_partners(
    compared: Sequence[AnyPairs],
    tried: Array,
    chance_wrong: FloatArray,
    n_sure: int,
    has: tuple[Mask, Mask] | None = None,
    candidates: Array | None = None,
) -> Names:
    """Propose partners of the rows that are tried among the y of the candidates, by default each other's.

    ``chance_wrong`` is that of each row, ``has`` says of all rows whether they have an x, and a y. Without enough pairs
    that are sure to be right nobody is named.
    """
    m, everyone = tried.size, np.ones(chance_wrong.size, dtype=bool)
    has = (everyone, everyone) if has is None else has
    candidates = tried if candidates is None else candidates
    nobody = Names(np.full(m, -1), np.ones(m), np.full(m, -1), np.full(m, 0.5))
    if min(m, candidates.size - 1) < 1 or n_sure < FEWEST_SURE:
        return nobody
    of_x, of_y = (np.where(side, chance_wrong, 0.0) for side in has)
    worth = _Worth.of(compared, candidates, of_y[candidates], has)
    if worth is None:
        return nobody
    found, evidence = [], worth.evidence
    for places, *both in _mean_log_odds(compared, tried, candidates):
        (r, c), onward, back = _worth_a_thought(compared[0], tried[places], candidates, has, evidence.level, both)
        t = evidence(onward, back, evidence.chance_wrong[c], chance_wrong[tried[places[r]]])
        found.append((places[r], c, t))
    rows, columns, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    row, column, weight, rank = _best_of_each(rows, columns, weights)
    best, second = np.full((2, m), -1)
    best[row[rank == 0]], second[row[rank == 1]] = column[rank == 0], column[rank == 1]
    chosen, strength = _assigned(row, column, weight, m)
    rivals = _rivals(rows, columns, weights, chosen, strength)
    is_wrong_name, not_here = worth.judge(strength, rivals, of_x[tried])
    runner_up = np.where(best == chosen, second, best)
    partner, other = (np.where(c >= 0, candidates[c], -1) for c in (chosen, runner_up))
    return Names(partner, means_of_surer(np.where(chosen >= 0, is_wrong_name, 1.0)), other, not_here)


def _best_of_each(row: Array, column: Array, weight: FloatArray) -> tuple[Array, Array, FloatArray, Array]:
    """Candidates for which there is evidence, the best few of each row, from the best down; and their ranks."""
    kept = np.flatnonzero(weight > 0)
    kept = kept[np.lexsort((-weight[kept], row[kept]))]
    rank = np.arange(kept.size) - np.searchsorted(row[kept], row[kept])
    few = rank < _MOST_CANDIDATES
    return row[kept][few], column[kept][few], weight[kept][few], rank[few]


def _rivals(
    row: Array, column: Array, weight: FloatArray, chosen: Array, strength: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How likely the rivals of each name x_i with y_j are, over the name itself: sums of exp(t_kl - t_ij).

    First other y for x_i, then other x for y_j; also those that were given to others, for that may be wrong.
    """
    owner = np.full(column.max(initial=-1) + 1, -1)
    owner[chosen[chosen >= 0]] = np.flatnonzero(chosen >= 0)
    others = np.flatnonzero((weight > 0) & (chosen[row] != column))
    for_x, for_y = np.zeros((2, chosen.size))
    for rivals, name in ((for_x, np.where(chosen[row] >= 0, row, -1)), (for_y, owner[column])):
        rival = others[name[others] >= 0]
        np.add.at(rivals, name[rival], np.exp(weight[rival] - strength[name[rival]]))
    return for_x, for_y


def find_owners(compared: Sequence[AnyPairs], rows: Array, is_right: Mask) -> tuple[Owners, Owners]:
    """Of which right pair the y of each row is a copy, and its x: whose x, and whose y, it fits.

    What that is worth is told by the right pairs themselves, each with the best of the others.
    """
    right = np.flatnonzero(is_right)[:: max(1, int(is_right.sum()) // _MOST_SURE)]
    m = rows.size
    if m == 0 or right.size < FEWEST_SURE:
        nobody = Owners(np.full(m, -1), np.ones(m))
        return nobody, nobody
    own_partner = _mean_own_log_odds(compared, rows)
    best, null = (_best_of_all(compared, some, right) for some in (rows, right))

    def owners(side: int) -> Owners:
        (at, odds), (_, by_chance) = best[side], null[side]
        judged = calibrate(odds, by_chance, (1.0, 0.0))
        return Owners(right[at], np.where(odds > own_partner, judged.q_values, 1.0))

    return owners(1), owners(0)


def _best_of_all(compared: Sequence[AnyPairs], rows: Array, others: Array) -> list[tuple[Array, FloatArray]]:
    """Which of the others' y fits x of each row best, and its log odds; and which of the others' x fits y."""
    at, highest = np.zeros((2, rows.size), dtype=np.int64), np.full((2, rows.size), IMPOSSIBLE)
    for places, *both in _mean_log_odds(compared, rows, others):
        allowed = compared[0].allowed(rows[places], others)
        for side, odds in enumerate(both):
            possible = np.where(allowed, odds, np.float32(IMPOSSIBLE))
            at[side, places] = possible.argmax(axis=1)
            highest[side, places] = possible.max(axis=1)
    return list(zip(at, highest, strict=True))


def _mean_log_odds(
    compared: Sequence[AnyPairs], rows: Array, others: Array
) -> Iterator[tuple[Array, FloatArray, FloatArray]]:
    """Log odds of x of rows with all others' y, and of y of rows with all others' x, some rows at a time.

    Each by the maps of its own folds, the mean over the deals; also where they may not be paired. Rows of one fold come
    together, with their places among all; those that are in no fold are left out.
    """
    first = np.full(compared[0].trusted.size, len(compared))
    for number, fold in reversed(list(enumerate(compared))):
        first[fold.rows] = number
    at_once = max(1, _ENTRIES_AT_ONCE // max(others.size, 1))
    of_first = [np.flatnonzero(first[rows] == number) for number in range(len(compared))]
    for places in (part[k : k + at_once] for part in of_first for k in range(0, part.size, at_once)):
        total: FloatArray = np.zeros(0, dtype=np.float32)
        count = np.zeros(places.size, dtype=np.float32)
        for fold in compared:
            at = np.flatnonzero(fold.is_in_fold[rows[places]])
            if at.size:
                mine = rows[places[at]]
                both = np.stack([fold.log_odds(mine, others), fold.log_odds(others, mine).T])
                if count.any():
                    total[:, at] += both
                else:  # the first deal, in which all of these rows are in one fold
                    total = both
                count[at] += 1
        total /= count[:, None]
        yield places, total[0], total[1]


def _worth_a_thought(
    fold: AnyPairs, rows: Array, others: Array, has: tuple[Mask, Mask], level: float, both: Sequence[FloatArray]
) -> tuple[tuple[Array, Array], FloatArray, FloatArray]:
    """Which rows and others have log odds above a level, one way or the other, and these."""
    at = entries((both[0] > np.float32(level)) | (both[1] > np.float32(level)))
    return at, *_where_possible(fold, rows[at[0]], others[at[1]], has, [odds[at] for odds in both])


def _where_possible(
    fold: AnyPairs, rows: Array, others: Array, has: tuple[Mask, Mask], both: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Log odds of each row with its other, impossible where there is no such x or y, or they may not be paired."""
    of_x, of_y = has
    possible = may_be_re_paired(fold.labels, rows, others)
    onward = np.where(possible & of_x[rows] & of_y[others], both[0], IMPOSSIBLE)
    return onward, np.where(possible & of_y[rows] & of_x[others], both[1], IMPOSSIBLE)


def _mean_own_log_odds(compared: Sequence[AnyPairs], rows: Array) -> FloatArray:
    """Log odds of pairs as they are, the mean over the deals."""
    total, count = np.zeros((2, compared[0].trusted.size))
    for fold in compared:
        total[fold.rows] += fold.own_log_odds(fold.rows)
        count[fold.rows] += 1
    return np.where(count > 0, total / np.maximum(count, 1), IMPOSSIBLE)[rows]


@dataclass(frozen=True, eq=False)
class _LogRatio:
    """Logarithm of how much more often right ones have a value than wrong ones: rising, kept as a table."""

    lowest: float
    step: float
    values: FloatArray

    @staticmethod
    def of(right: FloatArray, wrong: FloatArray, n_wrong: int) -> _LogRatio:
        """Estimate it: the best rising ratio, as if one more of ``n_wrong`` independent wrong ones were on top."""
        ends = [(float(side.min()), float(side.max())) for side in (right, wrong)]
        lowest, highest = max(min(ends)[0], IMPOSSIBLE), max(end[1] for end in ends)
        table = _LogRatio(lowest, max(highest - lowest, 1e-9) / (_TABLE - 1), np.empty(0))
        of_right, of_wrong = (np.bincount(table.place(side), minlength=_TABLE) / side.size for side in (right, wrong))
        of_wrong[-1] += 1 / (n_wrong + 1)
        met = np.flatnonzero(of_right + of_wrong)
        weight = (of_right + of_wrong)[met]
        rising = IsotonicRegression(y_min=1e-9, y_max=1 - 1e-9).fit(met, of_right[met] / weight, sample_weight=weight)
        return replace(table, values=logit(rising.predict(np.arange(_TABLE))))

    def place(self, value: FloatArray) -> Array:
        """Where values stand in the table."""
        return np.clip((value - self.lowest) / self.step, 0, _TABLE - 1).astype(np.int32)

    def above(self, least: float) -> float:
        """The lowest value whose ratio has a logarithm above this one; infinite where there is none."""
        enough = np.flatnonzero(self.values > least)
        return self.lowest + self.step * float(enough[0]) if enough.size else np.inf

    def __call__(self, value: FloatArray) -> FloatArray:
        return self.values[self.place(value)] + _SLOPE * np.clip(value, IMPOSSIBLE, -IMPOSSIBLE)


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Evidence t for names, from log odds."""

    lambda_: _LogRatio
    chance_wrong: FloatArray  # c, that each candidate's y is not with its own x; 0 where it has none

    @property
    def level(self) -> float:
        """Log odds that one of the two ways needs at least for t > 0: if both lambda are below l, t < l + log(2 v)."""
        return self.lambda_.above(float(np.log(self.mean / 2)) - _SLOPE * -IMPOSSIBLE)

    @property
    def mean(self) -> float:
        """The mean of c."""
        return max(float(self.chance_wrong.mean()), _UNLIKELY)

    def __call__(
        self, onward: FloatArray, back: FloatArray, of_y: FloatArray, of_x: FloatArray | None = None
    ) -> FloatArray:
        """Evidence for x_i with y_j, from the log odds of x_i with y_j and of x_j with y_i.

        ``of_y`` is the chance that pair j is wrong; ``of_x`` that of pair i, by default the mean, for those who stand
        for one that is tried.
        """
        m = self.chance_wrong.size
        v_i, v_j = 1.0 if of_x is None else of_x / self.mean, of_y / self.mean
        returned = expit(self.lambda_(back) + logit(np.clip(of_y * v_i / m, _UNLIKELY, 1 - _UNLIKELY)))
        evidence = self.lambda_(onward) + np.log((1 - _SWAPS * returned) * v_j + _SWAPS * m * returned)
        return np.where(onward > IMPOSSIBLE, evidence, _IMPOSSIBLE_EVIDENCE)


@dataclass(frozen=True, eq=False)
class _Worth:
    """What a name is worth: the evidence that right pairs find among the candidates, and with their own partner."""

    evidence: _Evidence
    log_ratio: _LogRatio  # log f1 / f0
    of_wrong_names: FloatArray  # evidence of the best of m wrong partners, 0 where there is none, in rising order
    of_right_names: FloatArray  # evidence of own partners, in rising order

    @staticmethod
    def of(
        compared: Sequence[AnyPairs], candidates: Array, chance_wrong: FloatArray, has: tuple[Mask, Mask]
    ) -> _Worth | None:
        """Learn it from the pairs that maps were learned from; None where none of them may be with a candidate."""
        rows, m = np.flatnonzero(compared[0].trusted), candidates.size
        rows = rows[:: max(1, rows.size // _MOST_SURE)]
        own, n = _mean_own_log_odds(compared, rows), rows.size
        some = rows[:: max(1, n // _ROWS_FOR_ODDS)]
        strangers = [
            onward[compared[0].allowed(some[places], candidates) & has[1][candidates]]
            for places, onward, _ in _mean_log_odds(compared, some, candidates)
        ]
        if not any(part.size for part in strangers):
            return None
        evidence = _Evidence(_LogRatio.of(own, np.concatenate(strangers), n * m), chance_wrong)
        beside = _in_proportion(chance_wrong, _DRAWS * n).reshape(_DRAWS, n)  # some wrong row or other
        best = np.zeros(n)
        beside_onward, beside_back = np.full((2, *beside.shape), IMPOSSIBLE)
        for place, *both in _mean_log_odds(compared, rows, candidates):
            (r, c), onward, back = _worth_a_thought(compared[0], rows[place], candidates, has, evidence.level, both)
            np.maximum.at(best, place[r], evidence(onward, back, chance_wrong[c]))
            at, drawn = (np.arange(place.size), beside[:, place]), candidates[beside[:, place]]
            of_drawn = _where_possible(compared[0], rows[place], drawn, has, [side[at] for side in both])
            beside_onward[:, place], beside_back[:, place] = of_drawn
        another = np.stack([np.roll(own, (draw + 1) * n // (_DRAWS + 1)) for draw in range(_DRAWS)])
        by_chance = np.maximum(best, evidence(beside_onward, another, chance_wrong[beside])).ravel()
        swapped = (np.arange(n) + _DRAW) % 2 == 0
        right = evidence(own, np.where(swapped, another, beside_back), chance_wrong[beside]).ravel()
        return _Worth(evidence, _LogRatio.of(right, by_chance, n), np.sort(by_chance), np.sort(right))

    def judge(
        self, evidence: FloatArray, rivals: tuple[FloatArray, FloatArray], chance_wrong: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Chance that each name is wrong, and that a wrong row's partner is not here; evidence is 0 without a name.

        ``rivals`` are how likely other names for its x are together, over the name itself, and others for its y.
        """
        for_x, for_y = rivals
        if_right, below_right = self._ratio_of_best(evidence), _share_below(self.of_right_names, evidence)
        if_here, here = if_right * (1 + for_x) + below_right, 0.5
        for _ in range(_ROUNDS):
            prior = chance_wrong * here
            total = prior * if_here + 1 - prior
            share = np.sum(prior * if_here / total) / max(float(chance_wrong.sum()), 1e-9)
            here = float(np.clip(share, _LEAST_HERE, 1 - _LEAST_HERE))
        is_wrong_name = 1 - prior * if_right / (total + prior * if_right * for_y)
        not_here = (1 - here) / (here * if_here + 1 - here)
        return is_wrong_name, not_here if self._would_be_seen() else np.minimum(not_here, 0.5)

    def _would_be_seen(self) -> bool:
        """Whether of enough right pairs, were they tried, the partner would stand out if it were here.

        Only then does it speak for a partner that is not here that none stands out: the name of a row whose partner is
        as likely here as not is more likely right than wrong if f1 / f0 F0 > F1 + 1.
        """
        own = self.of_right_names
        return bool(np.mean(self._ratio_of_best(own) > _share_below(own, own) + 1) > _STAND_OUT)

    def _ratio_of_best(self, evidence: FloatArray) -> FloatArray:
        """f1 / f0 F0: how much likelier the partner is to have this evidence, above all others, than the best other."""
        ratio: FloatArray = np.exp(self.log_ratio(evidence)) * np.searchsorted(self.of_wrong_names, evidence)
        return ratio / self.of_wrong_names.size


def _share_below(rising: FloatArray, values: FloatArray) -> FloatArray:
    return np.searchsorted(rising, values) / rising.size


def _in_proportion(weights: FloatArray, size: int) -> Array:
    """Numbers of weights, each as often as it weighs, in an order that has nothing to do with anything."""
    at = np.arange(size) * _GOLDEN % 1 * weights.sum()
    return np.minimum(np.searchsorted(np.cumsum(weights), at), weights.size - 1)


def _assigned(row: Array, column: Array, weight: FloatArray, m: int) -> tuple[Array, FloatArray]:
    """Column of each row, no column twice, with the largest total weight; -1 and 0 where there is none."""
    chosen, strength = np.full(m, -1), np.zeros(m)
    if not row.size:
        return chosen, strength
    row, column, weight = _in_small_parts(row, column, weight, m)
    part = _parts(row, column, m)[row]
    order = np.argsort(part, kind="stable")
    for edges in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
        (rows, r), (columns, c) = (np.unique(side[edges], return_inverse=True) for side in (row, column))
        gain = np.zeros((rows.size, columns.size))
        gain[r, c] = weight[edges]
        i, j = linear_sum_assignment(gain, maximize=True)
        taken = gain[i, j] > 0
        chosen[rows[i[taken]]], strength[rows[i[taken]]] = columns[j[taken]], gain[i, j][taken]
    return chosen, strength


def _parts(row: Array, column: Array, m: int) -> Array:
    """Number of the connected part of each row of the graph of candidates."""
    size = m + int(column.max(initial=-1)) + 1
    graph = coo_matrix((np.ones(row.size), (row, m + column)), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1])


def _in_small_parts(row: Array, column: Array, weight: FloatArray, m: int) -> tuple[Array, Array, FloatArray]:
    """Leave out the weakest candidates of each row until no connected part is too large."""
    order = np.lexsort((-weight, row))
    row, column, weight = row[order], column[order], weight[order]
    rank = np.arange(row.size) - np.searchsorted(row, row)
    for most in range(_MOST_CANDIDATES, 0, -1):
        kept = rank < most
        if np.bincount(_parts(row[kept], column[kept], m)[:m]).max() <= _LARGEST_PART:
            break
    return row[kept], column[kept], weight[kept]
