"""Is it this one and no other? For each x the rows of y that fit it as a partner would, wherever its partner is.

Two tails of the odds of pairs (see `inlier.repair.odds`). That of strangers gives p-values. The other is that of
partners: F(r), the chance that a partner has odds below r. It is seen in the pairs as they are given, less the part
that strangers have in them. Look-alikes hide among them and make its tail heavier, so it errs on the safe side. The
*partner set* of x_i with miss m is every y_j with r_ij >= r(m), the m-quantile: it holds the partner with chance 1 - m,
wherever that is.

A pair is *certain at m* if its own odds are above r(m) and those of x_i with any other y, and of y_i with any other x,
are below. A wrong pair is so only if its partner was missed: with chance m at most, whatever the mistakes are. And its
partner is at least as likely to be ahead of what it was mistaken for as behind it: of the W wrong pairs with own odds
above r(m) half or more are beaten by another, so that W is at most twice the number of pairs that are. If k pairs are
certain, at most m W / k of them are wrong. The certain q-value of a pair is the smallest such bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.cross_fit import CrossFit
from inlier.calibration.models.learner import PreparedPairs
from inlier.calibration.verdict import Verdict
from inlier.repair.odds import Odds
from inlier.rows.null_pairs import may_be_re_paired

SET_MISS = 0.05  # chance that a set misses the partner
_MISSES = np.array([0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2])  # that pairs are certain at
_NULL = 40_000  # pairs of x with another's y whose odds are those of strangers
_DETECTED = 0.05  # detection p-value up to which there is something to compare
_LOWEST = np.finfo(np.float32).min  # odds of what could be a pair
_SHARES = np.linspace(0.5, 0.98, 25)  # of strangers, below which own pairs are counted


def _how_many(enough: Mask) -> tuple[Array, Array]:
    """How many are true in each column, and in each row; mostly few are."""
    row, column = np.divmod(np.flatnonzero(enough), enough.shape[1])
    return np.bincount(column, minlength=enough.shape[1]), np.bincount(row, minlength=len(enough))


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
    >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=1, noise=0.1, rng=0)
    >>> sets = CalibratedMatcher(random_state=0).fit(data.X, data.Y).partner_sets(data.X, data.Y)
    >>> sets.of(0), sets.sizes[:3], bool(sets.contains(0, 0))
    (array([0]), array([1, 1, 1]), True)
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
        n = odds.n
        i, j = rng.choice(n, size=(2, _NULL), p=q_values / q_values.sum())
        apart = may_be_re_paired(labels, i, j)
        if odds.strata is not None:
            apart &= odds.strata[i] == odds.strata[j]
        own, null = odds.own, odds.pairs(i[apart], j[apart])
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
                counts[1] += _how_many(of_y >= of_sets)[0]
            of_x = odds.of_rivals(block, rows, columns, side=1)
            of_x = of_x if columns.size == odds.rivals.size else of_x[:, odds.rivals]
            rival[rows] = np.maximum(rival[rows], of_x.max(axis=1))
            counts[0, rows] = _how_many(of_x >= of_sets)[1]
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
) -> tuple[Verdict, Odds | None]:
    """Add the second promise to a verdict; nothing is certain where nothing was detected. Also return the odds.

    Partners are looked for everywhere, or inside the strata that the user gave: gaps and groups, which decide with whom
    pairs are re-paired, hide nobody.
    """
    if verdict.detection_p_value > _DETECTED:
        return verdict, None
    tables = data.take(np.arange(data.n))
    odds = Odds.of(fit, tables, data.labels, strata, np.clip(1 - verdict.q_values, 0.0, 1.0), rng)
    n_strangers = (1 - verdict.inlier_fraction) * data.n
    partners = Partners.of(odds, data.labels, verdict.q_values, n_strangers, rng)
    certain = partners.certain_q_values()
    n_rivals = np.where(certain <= SET_MISS, 0, partners.n_rivals)
    return verdict.with_partners(certain, n_rivals, partners.sets), odds
