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
from dataclasses import dataclass
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
MOST_COMPARED = 20_000  # pairs, each with each
_KEPT = 25_000_000  # scores that are kept between two passes
_SHARES = np.linspace(0.5, 0.98, 25)  # of strangers, below which own pairs are counted


@dataclass(frozen=True, eq=False)
class Odds:
    """Odds of any x with any y, in the scores of a cross-fit."""

    fit: CrossFit
    x: FloatArray
    y: FloatArray
    labels: Array
    unit: float
    of_x: FloatArray  # log(n + sum of exp(b s)) over the y beside each x
    of_y: FloatArray
    kept: FloatArray | None = None  # all scores, where they are few

    @staticmethod
    def of(
        fit: CrossFit, x: FloatArray, y: FloatArray, labels: Array, weights: FloatArray, rng: np.random.RandomState
    ) -> Odds:
        """Add up what there is beside each x and each y; ``weights`` say how likely each pair is real."""
        n = labels.shape[1]
        every = np.arange(n)
        kept = all_pairings(fit, x, y, every, every) if n * n <= _KEPT else None
        found = Odds(fit, x, y, labels, 1.0, np.zeros(n), np.zeros(n), kept)
        found = Odds(fit, x, y, labels, found._best_unit(weights, rng), found.of_x, found.of_y, kept)
        return found._added_up()

    def scores(self, rows: Array, columns: Array | None = None) -> FloatArray:
        """Scores of x_i with y_j, in the unit b; -inf where they could not have been paired."""
        every = np.arange(self.labels.shape[1]) if columns is None else columns
        if self.kept is not None:
            scores = self.unit * (self.kept[rows] if columns is None else self.kept[np.ix_(rows, columns)])
        else:
            scores = self.unit * all_pairings(self.fit, self.x, self.y, rows, every)
        if len(self.labels) > 2:
            stratum = self.labels[3]
            scores[stratum[rows][:, None] != stratum[every]] = -np.inf
        return scores

    def block(self, rows: Array, columns: Array | None = None) -> FloatArray:
        """Odds of x_i with y_j."""
        of_y = self.of_y if columns is None else self.of_y[columns]
        return self.scores(rows, columns) - np.maximum(self.of_x[rows][:, None], of_y).astype(np.float32)

    def pairs(self, i: Array, j: Array) -> FloatArray:
        """Odds of each x_i with its y_j."""
        if self.kept is not None:
            scores = self.kept[i, j].astype(np.float64)
        else:
            scores = pair_scores(self.fit, self.x, self.y, i, j)
        return self.unit * scores - np.maximum(self.of_x[i], self.of_y[j])

    def is_rival(self, rows: Array, side: int) -> Mask:
        """Whether y_j (side 1) is another than y_i, or x_i (side 0) another than x_j, and of another group."""
        points = self.labels[side]
        other = points[rows][:, None] != points
        if len(self.labels) > 2:
            other &= self.labels[2][rows][:, None] != self.labels[2]
        return other

    def blocks(self) -> Iterator[Array]:
        """Rows, some at a time; those of a fold together, because one judge scores them."""
        judged = [fold.rows for fold in self.fit.judges_of_a_deal]
        others = np.setdiff1d(np.arange(self.labels.shape[1]), np.concatenate(judged))
        at_once = max(1, _AT_ONCE // self.labels.shape[1])
        return (rows[start : start + at_once] for rows in (*judged, others) for start in range(0, rows.size, at_once))

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
        n = self.labels.shape[1]
        of_x, of_y = np.full(n, -np.inf), np.full(n, -np.inf)
        size = np.full(n, n) if len(self.labels) == 2 else np.bincount(self.labels[3])[self.labels[3]]
        for rows in self.blocks():
            scores = self.scores(rows)
            of_x[rows] = _log_sums(scores, 1)
            of_y = np.logaddexp(of_y, _log_sums(scores, 0))
        floor = np.log(size)
        return Odds(
            self.fit,
            self.x,
            self.y,
            self.labels,
            self.unit,
            np.logaddexp(of_x, floor),
            np.logaddexp(of_y, floor),
            self.kept,
        )


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
    """What the partner sets of a fit say of its pairs."""

    sets: PartnerSets
    own: FloatArray  # odds of each pair
    rival: FloatArray  # highest odds of x_i with another y, or of y_i with another x
    n_rivals: Array
    lowest: FloatArray  # r(m), for all misses that are tried

    @staticmethod
    def of(odds: Odds, q_values: FloatArray, n_strangers: float, rng: np.random.RandomState) -> Partners:
        """Look at all x with all y, once; strangers are rows that are likely with a wrong partner, with each other."""
        n = odds.labels.shape[1]
        every = np.arange(n)
        own, rival, counts = np.full(n, -np.inf), np.full(n, -np.inf), np.zeros((2, n), dtype=np.int64)
        i, j = rng.choice(n, size=(2, _NULL), p=q_values / q_values.sum())
        kept = may_be_re_paired(odds.labels, i, j)
        null = odds.pairs(i[kept], j[kept])
        own = odds.pairs(every, every)
        null = null[np.isfinite(null)]
        n_wrong = min(number_of_strangers(own, null), n_strangers) if null.size else 0.0
        lowest = lowest_odds(own, null, n_wrong, _MISSES)
        of_sets = float(lowest_odds(own, null, n_wrong, np.array([SET_MISS]))[0])
        bits = np.zeros((n, -(-n // 8)), dtype=np.uint8)
        for rows in odds.blocks():
            block = odds.block(rows)
            bits[rows] = np.packbits((block >= of_sets) & np.isfinite(block), axis=1)
            for side in (0, 1):
                others = np.where(odds.is_rival(rows, side), block, -np.inf)
                if side == 1:  # other y for x_i
                    np.maximum.at(rival, rows, others.max(axis=1))
                    counts[0, rows] += (others >= of_sets).sum(axis=1)
                else:  # other x for y_j
                    np.maximum(rival, others.max(axis=0), out=rival)
                    counts[1] += (others >= of_sets).sum(axis=0)
        return Partners(PartnerSets(n, bits), own, rival, counts.max(axis=0), lowest)

    def certain_q_values(self) -> FloatArray:
        """Smallest bound on the share of wrong pairs among the certain, at which a pair is one of them.

        Pairs that are certain at one miss or another are certain together: by the largest of these misses, and the most
        wrong ones that there may be at any.
        """
        certain = [(self.own >= lowest) & (self.rival < lowest) for lowest in self.lowest]
        wrong = [_wrong_at_most(self.own, self.rival, lowest) for lowest in self.lowest]
        bounds = [m * w / max(int(c.sum()), 1) for m, w, c in zip(_MISSES, wrong, certain, strict=True)]
        together, of_together = np.zeros(self.own.size, dtype=bool), []
        miss = most = 0.0
        for k in np.argsort(bounds, kind="stable"):
            together = together | certain[k]
            miss, most = max(miss, _MISSES[k]), max(most, wrong[k])
            of_together.append((together, miss * most / max(int(together.sum()), 1)))
        q, lowest_bound = np.ones(self.own.size), 1.0
        for rows, bound in reversed(of_together):
            lowest_bound = min(lowest_bound, bound)
            q[rows] = np.minimum(q[rows], lowest_bound)
        return q


def _wrong_at_most(own: FloatArray, rival: FloatArray, lowest: float) -> float:
    """Wrong pairs among those whose own odds are high enough: twice as many as are beaten.

    The partner is at least as likely to be ahead of what it was mistaken for as behind it.
    """
    return 2.0 * (int(((own >= lowest) & (rival > own)).sum()) + 1)


def look_for_others(verdict: Verdict, fit: CrossFit, data: PreparedPairs, rng: np.random.RandomState) -> Verdict:
    """Add the second promise to a verdict; nothing is certain where nothing was detected, or there are too many pairs."""
    if verdict.detection_p_value > _DETECTED or data.n > MOST_COMPARED:
        return verdict
    x, y = data.take(np.arange(data.n))
    weights = np.clip(1 - verdict.q_values, 0.0, 1.0)
    odds = Odds.of(fit, x, y, data.labels, weights, rng)
    partners = Partners.of(odds, verdict.q_values, (1 - verdict.inlier_fraction) * data.n, rng)
    return verdict.with_partners(partners.certain_q_values(), partners.n_rivals, partners.sets)
