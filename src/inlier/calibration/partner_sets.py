"""This one and no other? For each x the rows of y that fit it as a partner would, wherever its partner is.

Scores of different rows are not comparable: in the thick of the points anything fits, far out nothing does. The *odds*
of x_i with y_j are by how much y_j fits x_i better than all other y together, or x_i fits y_j better than all other x
together, whichever is less, in logarithms:

    r_ij = min( b s_ij - log(n + sum_k exp(b s_ik)),  b s_ij - log(n + sum_k exp(b s_kj)) ),

s_ij are scores by judges that have not seen pair i, b the unit in which they tell best who belongs to whom.

Of two tails the one of strangers gives p-values. The other is that of partners: F(r), the chance that a partner has
odds below r. It is seen in the pairs as they are given, less the part that strangers have in them. Look-alikes hide
among them and make its tail heavier, so it errs on the safe side. The *partner set* of x_i with miss m is every y_j with
r_ij >= r(m), the m-quantile: it holds the partner with chance 1 - m, wherever that is.

A pair is *certain at m* if its own odds are above r(m) and those of x_i with any other y, and of y_i with any other x,
are below. A wrong pair is so only if its partner was missed: with chance m at most, whatever the mistakes are. And its
partner is at least as likely to be ahead of what it was mistaken for as behind it: of the W wrong pairs with own odds
above r(m) half or more are beaten by another, so that W is at most twice the number of pairs that are. If k pairs are
certain, at most m W / k of them are wrong. The certain q-value of a pair is the smallest such bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.cross_fit import CrossFit, all_pairings, pair_scores
from inlier.calibration.models.learner import PreparedPairs
from inlier.calibration.verdict import Verdict
from inlier.rows.null_pairs import may_be_re_paired

SET_MISS = 0.05  # chance that a set misses the partner
_MISSES = np.array(
    [0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2]
)  # that certain pairs are sought at
_UNITS = 2.0 ** np.arange(-7, 2.5, 0.5)  # b, that are tried
_ROWS_FOR_UNIT, _RIVALS_FOR_UNIT = 300, 1_000
_NULL = 40_000  # pairs of x with another's y whose odds are those of strangers
_AT_ONCE = 10_000_000  # odds that are held at a time
_DETECTED = 0.05  # detection p-value up to which there is something to compare
MOST_COMPARED = 20_000  # pairs, each with each; of more, each is compared with a sample
_SAMPLED, _FEWEST_SAMPLED = 100_000_000, 500  # pairings with rivals, about; of each
_LOWEST = np.finfo(np.float32).min  # odds of what could be a pair
_KEPT = 25_000_000  # scores that are kept between two passes
_SHARES = np.linspace(0.5, 0.98, 25)  # of strangers, below which own pairs are counted


@dataclass(frozen=True, eq=False)
class Odds:
    """Odds of any x with any y, in the scores of a cross-fit.

    The rivals are all rows, or of many pairs a sample of them, each of which stands for ``scale`` rows.
    """

    fit: CrossFit
    x: FloatArray
    y: FloatArray
    labels: Array  # of the points of x and y
    strata: Array | None  # inside which the partners are, where that was said
    rivals: Array
    unit: float
    beside_x: FloatArray  # log(n + sum of exp(b s)) over the y beside each x
    beside_y: FloatArray
    kept: FloatArray | None = None  # all scores, where they are few

    @staticmethod
    def of(
        fit: CrossFit, data: PreparedPairs, strata: Array | None, weights: FloatArray, rng: np.random.RandomState
    ) -> Odds:
        """Add up what there is beside each x and each y; ``weights`` say how likely each pair is real."""
        n, (x, y) = data.n, data.take(np.arange(data.n))
        every = np.arange(n)
        rivals = every if n <= MOST_COMPARED else np.sort(rng.permutation(n)[: max(_SAMPLED // n, _FEWEST_SAMPLED)])
        kept = all_pairings(fit, x, y, every, every) if n * n <= _KEPT else None
        found = Odds(fit, x, y, data.labels[:2], strata, rivals, 1.0, np.zeros(n), np.zeros(n), kept)
        return replace(found, unit=found._best_unit(weights, rng))._added_up()

    @property
    def n(self) -> int:
        """How many pairs."""
        return int(self.labels.shape[1])

    @property
    def scale(self) -> float:
        """How many rows each rival stands for."""
        return self.n / self.rivals.size

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Rows of x, some at a time, and rows of y that they are compared with: x of rivals with all y, others with
        those of rivals. Rows of a fold come together, because one judge scores them.
        """
        every = np.arange(self.n)
        judged = [fold.rows for fold in self.fit.judges_of_a_deal]
        judged.append(np.setdiff1d(every, np.concatenate(judged)))
        for rows in judged:
            is_rival = np.isin(rows, self.rivals)
            for some, columns in ((rows[is_rival], every), (rows[~is_rival], self.rivals)):
                at_once = max(1, _AT_ONCE // columns.size)
                yield from ((some[start : start + at_once], columns) for start in range(0, some.size, at_once))

    def scores(self, rows: Array, columns: Array) -> FloatArray:
        """Scores of x_i with y_j, in the unit b; -inf where they could not have been paired."""
        if self.kept is None:
            scores = all_pairings(self.fit, self.x, self.y, rows, columns)
        else:
            scores = self.kept[rows] if columns.size == self.n else self.kept[np.ix_(rows, columns)]
        scores = np.multiply(scores, np.float32(self.unit), out=None if self.kept is not None else scores)
        if self.strata is not None:
            scores[self.strata[rows][:, None] != self.strata[columns]] = -np.inf
        return scores

    def block(self, rows: Array, columns: Array) -> FloatArray:
        """Odds of x_i with y_j."""
        odds, beside = self.scores(rows, columns), np.stack([self.beside_x, self.beside_y]).astype(np.float32)
        odds -= np.maximum(beside[0, rows][:, None], beside[1, columns])
        return odds

    def pairs(self, i: Array, j: Array) -> FloatArray:
        """Odds of each x_i with its y_j."""
        return self._pair_scores(i, j) - np.maximum(self.beside_x[i], self.beside_y[j])

    def of_rivals(self, block: FloatArray, rows: Array, columns: Array, side: int) -> FloatArray:
        """The block, without odds of x_i with what is no other than y_i (side 1), or x_j (side 0)."""
        points = self.labels[side]
        if self._differ[side]:
            own = np.full(self.n, -1)
            own[columns] = np.arange(columns.size)
            is_there = own[rows] >= 0
            block[is_there, own[rows[is_there]]] = -np.inf
            return block
        return np.where(points[rows][:, None] == points[columns], np.float32(-np.inf), block)

    @cached_property
    def _differ(self) -> tuple[bool, bool]:
        """Whether no two x, and no two y, are equal."""
        x, y = (np.unique(side).size == self.n for side in self.labels)
        return x, y

    def _pair_scores(self, i: Array, j: Array) -> FloatArray:
        if self.kept is None:
            return self.unit * pair_scores(self.fit, self.x, self.y, i, j)
        return self.unit * self.kept[i, j].astype(np.float64)

    def _best_unit(self, weights: FloatArray, rng: np.random.RandomState) -> float:
        """The unit by which held-out pairs are likeliest to be found among others."""
        n = weights.size
        likely = np.flatnonzero(weights > 0.5)
        likely = likely if likely.size else np.arange(n)
        rows = rng.permutation(likely)[:_ROWS_FOR_UNIT]
        others = np.union1d(rows, rng.permutation(n)[:_RIVALS_FOR_UNIT])
        scores = self.scores(rows, others).astype(np.float64)
        own = scores[np.arange(rows.size), np.searchsorted(others, rows)]
        w, best, highest = weights[rows], 1.0, -np.inf
        scale = max(float(np.median(np.abs(own))), 1e-12)
        for unit in _UNITS * 8 / scale:
            found = unit * own - logsumexp(unit * scores, axis=1)
            likelihood = float(w @ np.logaddexp(np.log(0.5) + found, np.log(0.5 / others.size)))
            if likelihood > highest:
                best, highest = unit, likelihood
        return best

    def _added_up(self) -> Odds:
        n, every = self.n, np.arange(self.n)
        is_rival = np.zeros(n, dtype=bool)
        is_rival[self.rivals] = True
        beside_x, beside_y = np.full((2, n), -np.inf)
        for rows, columns in self.blocks():
            scores = self.scores(rows, columns)
            scores[rows[:, None] == columns] = -np.inf
            beside_x[rows] = _log_sums(scores if columns.size < n else scores[:, is_rival], 1)
            if columns.size == n:
                beside_y = np.logaddexp(beside_y, _log_sums(scores, 0))
        own, size = self._pair_scores(every, every), np.full(n, n)
        if self.strata is not None:
            size = np.bincount(self.strata)[self.strata]
        floor = np.logaddexp(np.log(size), own)
        beside_x, beside_y = (np.logaddexp(of + np.log(self.scale), floor) for of in (beside_x, beside_y))
        return replace(self, beside_x=beside_x, beside_y=beside_y)


def _log_sums(scores: FloatArray, axis: int) -> FloatArray:
    top = np.maximum(scores.max(axis=axis, keepdims=True), np.float32(-1e30))
    with np.errstate(divide="ignore"):
        return np.log(np.exp(scores - top).sum(axis=axis, dtype=np.float64)) + np.squeeze(top, axis).astype(np.float64)


def lowest_odds(own: FloatArray, null: FloatArray, n_wrong: float, misses: FloatArray) -> FloatArray:
    """r(m): odds below which a share m of the partners lies; -inf where there are too few to say."""
    rising, n_real = np.sort(own), max(own.size - n_wrong, 1.0)
    of_strangers = np.searchsorted(np.sort(null), rising, "left") / max(null.size, 1)
    below = np.maximum.accumulate(np.arange(own.size) - n_wrong * of_strangers)  # partners below each
    last = np.searchsorted(below, misses * (n_real + 1) - 1, "right") - 1
    return np.where(last >= 0, rising[np.maximum(last, 0)], -np.inf)


def number_of_strangers(own: FloatArray, null: FloatArray) -> float:
    """Strangers among the pairs as they are given, rather too few than too many.

    Of n_0 of them a share F is below any odds that a share F of all strangers is below, and at most what is seen there.
    """
    shares = np.asarray(_SHARES)
    seen = np.searchsorted(np.sort(own), np.quantile(null, shares), "left")
    estimate = seen / shares
    error = np.sqrt(np.maximum(estimate, 1.0) * (1 - shares) / shares)
    best = int(np.argmin(estimate + error))
    return float(max(estimate[best] - error[best], 0.0))


@dataclass(frozen=True, eq=False)
class PartnerSets:
    """For each row of X, the rows of y that fit it as a partner would.

    Attributes
    ----------
    n : int
        How many rows there are.
    miss : float
        Chance that a set does not hold the partner.

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=0.8, noise=0.1, rng=0)
    >>> sets = CalibratedMatcher(random_state=0).fit(data.X, data.Y).partner_sets(data.X, data.Y)
    >>> sets.of(0), sets.sizes[:3], bool(sets.contains(0, 0))
    """

    n: int
    bits: Array | None = None  # packed, a row for each x; None: all rows are in each set
    strata: Array | None = None  # where a set may be all of a row's stratum
    miss: float = SET_MISS

    def contains(self, rows: Any, partners: Any) -> Any:
        """Whether the sets of these rows of X hold these rows of y."""
        rows, partners = np.broadcast_arrays(rows, partners)
        if self.bits is None:
            return np.ones(rows.shape, bool) if self.strata is None else self.strata[rows] == self.strata[partners]
        return (self.bits[rows, partners >> 3] >> (7 - (partners & 7)).astype(np.uint8)) & 1 == 1

    def of(self, row: int) -> Array:
        """Rows of y in the set of a row of X, in rising order."""
        return np.flatnonzero(self.contains(row, np.arange(self.n)))

    @property
    def sizes(self) -> Array:
        """How many rows of y each set holds."""
        if self.bits is not None:
            return np.bitwise_count(self.bits).sum(axis=1, dtype=np.int64)
        return np.full(self.n, self.n) if self.strata is None else np.bincount(self.strata)[self.strata]

    def among(self, kept: Mask) -> PartnerSets:
        """The same where these are some of the rows that were given; of the others nothing is known, so all fit."""
        every = np.ones((kept.size, kept.size), dtype=bool)
        some = np.flatnonzero(kept)
        every[np.ix_(some, some)] = self.contains(np.arange(self.n)[:, None], np.arange(self.n))
        return PartnerSets(kept.size, np.packbits(every, axis=1), None, self.miss)


@dataclass(frozen=True, eq=False)
class Partners:
    """What the odds of all x with all y say of the pairs as they are."""

    sets: PartnerSets | None  # of many pairs there is no room for them
    own: FloatArray  # odds of each pair
    rival: FloatArray  # highest odds of x_i with another y, or of y_i with another x
    n_rivals: Array
    lowest: FloatArray  # r(m), for all misses that are tried
    scale: float = 1.0  # how many rows each rival stands for

    @staticmethod
    def of(odds: Odds, labels: Array, q_values: FloatArray, n_strangers: float, rng: np.random.RandomState) -> Partners:
        """Look at all x with all y, once; strangers are rows that are likely with a wrong partner, with each other."""
        n, every = odds.n, np.arange(odds.n)
        i, j = rng.choice(n, size=(2, _NULL), p=q_values / q_values.sum())
        apart = may_be_re_paired(labels, i, j)
        if odds.strata is not None:
            apart &= odds.strata[i] == odds.strata[j]
        own, null = odds.pairs(every, every), odds.pairs(i[apart], j[apart])
        n_wrong = min(number_of_strangers(own, null), n_strangers) if null.size else 0.0
        lowest = lowest_odds(own, null, n_wrong, np.append(_MISSES, SET_MISS))
        of_sets, n_bytes = max(lowest[-1], _LOWEST), -(-n // 8) if odds.rivals.size == n else 0
        rival, counts = np.full(n, -np.inf), np.zeros((2, n), dtype=np.int64)
        bits = np.zeros((n, n_bytes), dtype=np.uint8)
        for rows, columns in odds.blocks():
            block = odds.block(rows, columns)
            if n_bytes:
                bits[rows] = np.packbits(block >= of_sets, axis=1)
            if columns.size == n:
                of_y = odds.of_rivals(block, rows, columns, side=0)
                np.maximum(rival, of_y.max(axis=0), out=rival)
                counts[1] += np.count_nonzero(of_y >= of_sets, axis=0)
            of_x = odds.of_rivals(block, rows, columns, side=1)
            of_x = of_x if columns.size == odds.rivals.size else of_x[:, odds.rivals]
            rival[rows] = np.maximum(rival[rows], of_x.max(axis=1))
            counts[0, rows] = np.count_nonzero(of_x >= of_sets, axis=1)
        sets = PartnerSets(n, bits) if n_bytes else None
        n_rivals = np.rint(odds.scale * counts.max(axis=0)).astype(np.int64)
        return Partners(sets, own, rival, n_rivals, lowest[:-1], odds.scale)

    def certain_q_values(self) -> FloatArray:
        """Smallest bound on the share of wrong pairs among the certain, at which a pair is one of them.

        Pairs that are certain at one miss or another are certain together: by the largest of these misses, and the most
        wrong ones that there may be at any.
        """
        certain = [(self.own >= lowest) & (self.rival < lowest) for lowest in self.lowest]
        counts = [self._beaten_and_rivalled(lowest) for lowest in self.lowest]
        bounds = [
            self._most_wrong(m, *of) / max(int(c.sum()), 1) for m, of, c in zip(_MISSES, counts, certain, strict=True)
        ]
        together, of_together, miss, most = np.zeros(self.own.size, dtype=bool), [], 0.0, (0, 0)
        for k in np.argsort(bounds, kind="stable"):
            together, miss = together | certain[k], max(miss, _MISSES[k])
            most = max(most[0], counts[k][0]), max(most[1], counts[k][1])
            of_together.append((together, self._most_wrong(miss, *most) / max(int(together.sum()), 1)))
        q, lowest_bound = np.ones(self.own.size), 1.0
        for rows, bound in reversed(of_together):
            lowest_bound = min(lowest_bound, bound)
            q[rows] = np.minimum(q[rows], lowest_bound)
        return q

    def _beaten_and_rivalled(self, lowest: float) -> tuple[int, int]:
        """Pairs with high enough odds of which another is better, or as good as a partner would be."""
        high = self.own >= lowest
        return int((high & (self.rival > self.own)).sum()), int((high & (self.rival >= lowest)).sum())

    def _most_wrong(self, miss: float, beaten: int, rivalled: int) -> float:
        """Wrong pairs, or such as have a rival that was not sampled, among those that are certain at a miss.

        A partner is at least as likely ahead of what it was mistaken for as behind it.
        """
        n_wrong, unseen = 2.0 * self.scale * (beaten + 1), 1 - 1 / self.scale
        return max((unseen + miss / self.scale) * n_wrong, unseen * self.scale * (rivalled + 1))


def look_for_others(
    verdict: Verdict, fit: CrossFit, data: PreparedPairs, strata: Array | None, rng: np.random.RandomState
) -> Verdict:
    """Add the second promise to a verdict; nothing is certain where nothing was detected.

    Partners are looked for everywhere, or inside the strata that the user gave: gaps and groups, which decide with whom
    pairs are re-paired, hide nobody.
    """
    if verdict.detection_p_value > _DETECTED:
        return verdict
    odds = Odds.of(fit, data, strata, np.clip(1 - verdict.q_values, 0.0, 1.0), rng)
    n_strangers = (1 - verdict.inlier_fraction) * data.n
    partners = Partners.of(odds, data.labels, verdict.q_values, n_strangers, rng)
    return verdict.with_partners(partners.certain_q_values(), partners.n_rivals, partners.sets)
