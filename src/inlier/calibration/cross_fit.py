"""Score every pair by what was learned without it, and re-pairings in the same way.

The pairs are dealt into folds. What is learned on the others (see `inlier.calibration.strategy`) scores the fold's
pairs and its re-pairings: x_i with y_j, j != i. A wrong pair's x and y are independent, so it scores as a
re-pairing does, whatever the data look like and whatever was learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.inner_products import AnchorPairs
from inlier.calibration.p_values import estimate_null_fraction, p_values
from inlier.calibration.strategy import Learner, PairScorer, prepared_rows, re_paired_scores
from inlier.rows import PairedRows
from inlier.rows.backend import to_host
from inlier.rows.threads import single_threaded_blas

RE_PAIRINGS = 1_000_000  # about, in all
WIDE = 500  # dimensions from which threads inside a matrix product save more than they cost
_STEADY_PAIRS = 1_000  # with fewer, the folds are dealt several times, so that the luck of one deal matters less
_MOST_DEALS = 10


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Scores of all pairs by models that have not seen them, and of re-pairings."""

    levels: FloatArray  # the scores that pairs have; here one for each pair, of which nothing is kept elsewhere
    null_scores: FloatArray  # scores of re-pairings, in rising order
    # share of wrong pairs and its error, where it is not to be read off the p-values of these scores
    null_fraction: tuple[float, float] | None = None
    counts: Array | None = None  # how many pairs have each score, where they are counted

    def highest(self, home: PairedRows) -> float:
        """The highest score of any pair."""
        return float(self.levels.max())

    def scores(self, home: PairedRows) -> Any:
        """Return the score of each pair, where the pairs live."""
        return self.per_pair(self.levels, home)

    def per_pair(self, values: Array, home: PairedRows) -> Any:
        """Return what belongs to the score of each pair, given for all levels, where the pairs live."""
        return home.store.from_host(values, home.X)


def cross_fit(pairs: PairedRows, points: Array, n_folds: int, rng: np.random.RandomState) -> CrossFit:
    """Score all pairs, which are prepared for `learn_map`, and re-pairings.

    ``points`` are numbers that are equal for equal points, of X and of Y: a point is never re-paired with itself, and
    equal pairs share a fold. There are fewer folds where there are not two pairs for each.
    """
    n = pairs.n_pairs
    n_deals = int(np.clip(_STEADY_PAIRS // n, 1, _MOST_DEALS))
    learner, parts = Learner(pairs, points, rng), []
    with single_threaded_blas(unless=max(pairs.dimensions) > WIDE):
        for deal in range(n_deals):
            fold_of = _deal(points, min(n_folds, n // 2), rng)
            for fold in np.unique(fold_of):
                learned = learner.learn(np.flatnonzero(fold_of != fold))
                if learned is not None:
                    own = rng.permutation(np.flatnonzero(fold_of == fold))
                    x, y = prepared_rows(pairs, own)
                    null = re_paired_scores(learned, x, y, points[:, own], RE_PAIRINGS // (n * n_deals), rng)
                    parts.append(_Fold(deal, own, learned, to_host(learned.scores(x, y)), null))
    if sum(part.null_scores.size for part in parts) == 0:  # nothing was learned, or could be re-paired
        return CrossFit(np.zeros(n), np.zeros(1))
    return _together(parts, n_deals, n)


@dataclass(frozen=True, eq=False)
class _Fold:
    """The pairs of a fold, with their scores and those of their re-pairings, by one that has not seen them."""

    deal: int
    rows: Array
    by: PairScorer
    scores: FloatArray
    null_scores: FloatArray

    def standardised(self) -> _Fold:
        """In units of what re-pairings did where this was learned."""
        null = self.by.significance
        scores, null_scores = ((s - null.centre) / null.spread for s in (self.scores, self.null_scores))
        return _Fold(self.deal, self.rows, self.by, scores, null_scores)


def _together(folds: list[_Fold], n_deals: int, n: int) -> CrossFit:
    """The median score over the deals; a fold that found nothing says nothing for its pairs: below every re-pairing."""
    if any(isinstance(fold.by, AnchorPairs) for fold in folds):  # the maps' scores are on one scale, theirs are not
        folds = [fold.standardised() for fold in folds]
    of_deals = np.full((n_deals, n), np.nan)
    for fold in folds:
        of_deals[fold.deal, fold.rows] = fold.scores
    null_scores = np.sort(np.concatenate([fold.null_scores for fold in folds]))
    filled = np.nan_to_num(of_deals, nan=min(null_scores[0], np.nanmin(of_deals)))
    scores = np.median(filled, axis=0) if n_deals > 1 else filled[0]
    return CrossFit(scores, null_scores, _null_fraction(of_deals, null_scores))


def _null_fraction(of_deals: FloatArray, null_scores: FloatArray) -> tuple[float, float] | None:
    """Share of wrong pairs and its error, where it is not to be read off the p-values that are reported.

    It takes uniform p-values: of single deals, because medians vary less than the re-pairings' scores, and of pairs
    that could be scored. The others are no different, because pairs are dealt into folds at random.
    """
    scored = np.isfinite(of_deals)
    if len(of_deals) == 1 and scored.all():
        return None
    estimate, error = estimate_null_fraction(p_values(of_deals[scored], null_scores))
    return estimate, error * len(of_deals) ** 0.5  # the deals share their pairs: no more information than one


def _deal(points: Array, n_folds: int, rng: np.random.RandomState) -> Array:
    """Deal the pairs into folds of similar size; equal pairs go together, or they would know each other's answer."""
    n = points.shape[1]
    if (points.max(axis=1) + 1 == n).any():  # one side has no repeats, so no pair has
        return rng.permutation(np.arange(n) % n_folds)
    group = np.unique(points, axis=1, return_inverse=True)[1].reshape(-1)
    size = np.bincount(group)
    order = rng.permutation(size.size)
    middle = np.cumsum(size[order]) - size[order] / 2  # groups in a row, cut into stretches of equal length
    fold_of_group = np.empty(size.size, dtype=int)
    fold_of_group[order] = middle * n_folds // n
    return fold_of_group[group]
