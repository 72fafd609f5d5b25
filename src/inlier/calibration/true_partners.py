"""Re-pairings without true partners, which they meet where wrong pairs are a permutation of each other.

Then x_i with y_j, j not i, is a real pair with a chance of about one in n, and no q-value falls below about w^2 / k (w
the share of wrong pairs, k the number of real ones): with most pairs permuted nobody is accepted. Within a fold,
pairings that are each other's best are named as partners, and left out of the null. What a name is worth is told by
pairs that are clearly real: the best that they find among the others of their fold is never a partner. With n names, of
which a share r would be wrong, a share r of them stays in the null by lot, so that n (1 - r)^2 partners are taken out.
Names are taken from the score on at which these are most; none, if half of the names or more would be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.cross_fit import CrossFit, Fold, together
from inlier.calibration.models.learner import PreparedPairs
from inlier.calibration.p_values import calibrate
from inlier.rows.null_pairs import are_re_pairings

_MOST_PAIRS = 4_000  # of more, the null is so large beside what it may meet that it hardly matters
_CLEARLY_REAL = 0.1  # q-value, before true partners are left out
_FEWEST_REAL = 5
_UNREACHABLE = 0.001  # q-value that could not be reached
_MOST_WRONG_NAMES = 0.5  # share, from which nobody is named


def without_true_partners(fit: CrossFit, data: PreparedPairs, rng: np.random.RandomState) -> CrossFit:
    """Leave likely partners out of the re-pairings, where they matter."""
    real = _clearly_real(fit)
    if real is None:
        return fit
    every = [_Pairings.of(fold, data, rng) for fold in fit.folds]
    best = [one.best() for one in every]
    by_chance = np.concatenate([one.by_chance(real) for one in every])
    others = np.concatenate([score[~real[one.fold.rows]] for one, (score, _) in zip(every, best, strict=True)])
    lowest, rate = _lowest_named(others, by_chance)
    folds = []
    for one, (score, partner) in zip(every, best, strict=True):
        rows, kept = one.fold.rows, one.may_be_re_paired.copy()
        named = np.flatnonzero((score >= lowest) & ~real[rows] & ~real[rows[partner]])
        named = named[rng.uniform(size=named.size) >= rate]
        kept[named, partner[named]] = False
        folds.append(replace(one.fold, null_scores=one.scores[kept]))
    n_deals = max(fold.deal for fold in folds) + 1
    return replace(together(tuple(folds), fit.levels.size, n_deals, fit.units), ridges=fit.ridges)


def _clearly_real(fit: CrossFit) -> Mask | None:
    """Pairs that are clearly real, if they are so few beside the wrong ones that true partners in the null matter."""
    n = fit.levels.size
    if n > _MOST_PAIRS or fit.units is not None or not fit.folds:
        return None
    real: Mask = calibrate(fit.levels, fit.null_scores, fit.null_fraction).q_values <= _CLEARLY_REAL
    k = int(real.sum())
    return real if k >= _FEWEST_REAL and (1 - k / n) ** 2 / k > _UNREACHABLE else None


@dataclass(frozen=True, eq=False)
class _Pairings:
    """All x of a fold with all its y."""

    fold: Fold
    scores: FloatArray
    may_be_re_paired: Mask

    @staticmethod
    def of(fold: Fold, data: PreparedPairs, rng: np.random.RandomState) -> _Pairings:
        scores = fold.standardised(fold.judge.scores_of_all_pairings(*data.take(fold.rows)))
        return _Pairings(fold, scores, are_re_pairings(data.labels[:, fold.rows], np.arange(fold.rows.size), rng))

    def best(self) -> tuple[FloatArray, Array]:
        """The highest score of each x with a y other than its own, and which y; -inf if that fits another x better."""
        scores = np.where(self.may_be_re_paired, self.scores, -np.inf)
        to_y, to_x = scores.argmax(axis=1), scores.argmax(axis=0)
        mutual = to_x[to_y] == np.arange(to_y.size)
        return np.where(mutual, scores.max(axis=1), -np.inf), to_y

    def by_chance(self, real: Mask) -> FloatArray:
        """The same of x, and of y, that are clearly in a real pair: what is found by chance."""
        mine = real[self.fold.rows]
        turned = replace(self, scores=self.scores.T, may_be_re_paired=self.may_be_re_paired.T)
        return np.concatenate([self.best()[0][mine], turned.best()[0][mine]])


def _lowest_named(others: FloatArray, by_chance: FloatArray) -> tuple[float, float]:
    """Lowest score from which on pairings are named, and the share of the names that is wrong."""
    falling = np.sort(others[np.isfinite(others)])[::-1]
    if not falling.size or not by_chance.size:
        return np.inf, 0.0
    as_high = by_chance.size - np.searchsorted(np.sort(by_chance), falling, side="left")
    n_named = np.arange(1, falling.size + 1)
    rate = np.minimum((1 + as_high) / (1 + by_chance.size) * others.size / n_named, 1.0)
    best = int(np.argmax(n_named * (1 - rate) ** 2))
    return (float(falling[best]), float(rate[best])) if rate[best] < _MOST_WRONG_NAMES else (np.inf, 0.0)
