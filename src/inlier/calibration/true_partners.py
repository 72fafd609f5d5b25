"""Rid the re-pairings of true partners, which they meet where wrong pairs are a permutation of each other.

Then x_i with y_j, j not i, is a real pair with a chance of about one in n, and no q-value falls below about w^2 / k
(w the share of wrong pairs, k the number of real ones). Such pairs are named, and left out. What a name is worth is
told by pairs that are clearly real: the best that they find among the others of their fold is never a partner. Names
are taken from a score on at which at most a tenth of them would be wrong, and so many of them, by lot, stay in the
null.

In a small stratum one in a few re-pairings is a partner, and a wrong row may always be the one next to the right one.
There each row's best fit among the others, unless it seems to be its partner, is a null that holds for any wrong
partner of the stratum (`nearest_rivals`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.p_values import NullFraction, calibrate

MOST_PAIRS = 4_000  # of more, the null is so large beside what it may meet that it hardly matters
_CLEARLY_REAL = 0.1  # q-value, before true partners are left out
_FEWEST_REAL = 5
_WORTH_IT = 0.001  # q-value that could not be reached
_WRONG_NAMES = 0.1


@dataclass(frozen=True, eq=False)
class FoldScores:
    """All x of a fold with all its y."""

    rows: Array
    scores: FloatArray
    may_be_re_paired: Mask

    def best(self) -> tuple[FloatArray, Array]:
        """The highest score of each x with a y other than its own, and which y; -inf if that fits another x better."""
        scores = np.where(self.may_be_re_paired, self.scores, -np.inf)
        to_y, to_x = scores.argmax(axis=1), scores.argmax(axis=0)
        mutual = to_x[to_y] == np.arange(to_y.size)
        return np.where(mutual, scores.max(axis=1), -np.inf), to_y

    def by_chance(self, real: Mask) -> FloatArray:
        """The same of x, and of y, that are clearly in a real pair: what is found by chance."""
        mine = real[self.rows]
        turned = FoldScores(self.rows, self.scores.T, self.may_be_re_paired.T)
        return np.concatenate([self.best()[0][mine], turned.best()[0][mine]])


def nearest_rivals(folds: list[FoldScores]) -> FloatArray:
    """Score of each x, and of each y, with what fits it best of the others, in rising order.

    Two that are each other's best, better than with their own, seem to be partners, and do not count.
    """
    found = [np.empty(0)]
    for fold in folds:
        own = np.diag(fold.scores)
        others = np.where(fold.may_be_re_paired, fold.scores, -np.inf)
        for_x, for_y = others.max(axis=1), others.max(axis=0)
        partners = (others > own[:, None]) & (others > own) & (others == for_x[:, None]) & (others == for_y)
        found += [for_x[~partners.any(axis=1)], for_y[~partners.any(axis=0)]]
    rising = np.sort(np.concatenate(found))
    return rising[np.isfinite(rising)]


def clearly_real(scores: FloatArray, null_scores: FloatArray, null_fraction: NullFraction | None) -> Mask | None:
    """Pairs that are clearly real, if they are so few beside the wrong ones that true partners in the null matter."""
    if scores.size > MOST_PAIRS:
        return None
    real = calibrate(scores, null_scores, null_fraction).q_values <= _CLEARLY_REAL
    k = int(real.sum())
    floor = (1 - k / scores.size) ** 2 / max(k, 1)
    return real if k >= _FEWEST_REAL and floor > _WORTH_IT else None


def without_true_partners(folds: list[FoldScores], real: Mask, rng: np.random.RandomState) -> list[Mask]:
    """Which x_i with y_j of each fold are re-pairings, without those that are likely to be true partners."""
    found = [fold.best() for fold in folds]
    by_chance = np.concatenate([fold.by_chance(real) for fold in folds])
    others = np.concatenate([best[~real[fold.rows]] for fold, (best, _) in zip(folds, found, strict=True)])
    threshold, rate = _lowest_named(others, by_chance)
    kept = []
    for fold, (best, partner) in zip(folds, found, strict=True):
        mask = fold.may_be_re_paired.copy()
        named = np.flatnonzero((best >= threshold) & ~real[fold.rows] & ~real[fold.rows[partner]])
        named = named[rng.uniform(size=named.size) >= rate]
        mask[named, partner[named]] = False
        kept.append(mask)
    return kept


def _lowest_named(others: FloatArray, by_chance: FloatArray) -> tuple[float, float]:
    """Lowest score from which on few names are wrong, and the share that is."""
    falling = np.sort(others[np.isfinite(others)])[::-1]
    if not falling.size or not by_chance.size:
        return np.inf, 0.0
    as_high = by_chance.size - np.searchsorted(np.sort(by_chance), falling, side="left")
    rate = (1 + as_high) / (1 + by_chance.size) * others.size / np.arange(1, falling.size + 1)
    good = np.flatnonzero(rate <= _WRONG_NAMES)
    return (float(falling[good[-1]]), float(rate[good[-1]])) if good.size else (np.inf, 0.0)
