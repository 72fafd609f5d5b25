"""Score every pair by what was learned without it, and re-pairings in the same way.

The pairs are dealt into folds. What is learned on the others (see `inlier.calibration.models`) scores the fold's pairs
and its re-pairings: x_i with y_j, j != i. A wrong pair's x and y are independent, so it scores as a re-pairing does,
whatever the data look like and whatever was learned. Few pairs are dealt several times, so that the luck of one deal
matters less; a pair's score is the median over the deals.

The same judges score any x_i with any y_j (`all_pairings`): none of them has seen pair i. Pair j
they may have seen, which matters for ridges, where every pair counts: of few pairs they are fitted without either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.folds import deal_folds, mean_size, rows_together, training_without, units_of
from inlier.calibration.models.learner import WIDE, Learner, PairScorer, PreparedPairs, choose_learner, re_paired_scores
from inlier.calibration.models.ridge_map import SharedRidge
from inlier.calibration.p_values import NullFraction, estimate_null_fraction, p_values
from inlier.progress import track
from inlier.rows import PairedRows
from inlier.rows.backend import take_rows, to_host
from inlier.rows.threads import single_threaded_blas

RE_PAIRINGS = 1_000_000  # about, in all
_MANY_PAIRS, _OF_THEM_PER_DIMENSION = 50_000, 1_000  # of more pairs: re-pairings of each, times dimensions
_STEADY_PAIRS = 1_500  # with fewer, the folds are dealt several times, so that the luck of one deal matters less
_FEWEST_DEALS, MOST_DEALS = 10, 20  # of few pairs; more would count the same re-pairings again and again
_MORE_FOLDS = 2  # times as many where pairs are few beside their dimensions, and each is needed to learn from


class Teacher(Protocol):
    """What learns from some of the pairs."""

    def learn(self, training: Array) -> PairScorer | None:
        """Learn from these pairs; None if nothing is found."""


@dataclass(frozen=True, eq=False)
class Fold:
    """The pairs of a fold, with their scores and those of their re-pairings, by a judge that has not seen them."""

    deal: int
    rows: Array
    judge: PairScorer
    centre: float  # and unit of the scores
    unit: float
    scores: FloatArray
    null_scores: FloatArray

    def standardised(self, scores: Any) -> FloatArray:
        """Scores of this fold's judge in the common unit."""
        found = to_host(scores)
        return found if (self.centre, self.unit) == (0.0, 1.0) else (found - self.centre) / self.unit


class LeftOut(NamedTuple):
    """Ridges that leave out pairs i and j where x_i with y_j is scored."""

    ridge: SharedRidge
    together: list[tuple[Array, Array]]  # some i, and what is left out with them

    def scores(self) -> FloatArray:
        """Score each x with each y."""
        return self.ridge.scores_without_either(self.together)


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Scores of all pairs by judges that have not seen them, and of re-pairings."""

    levels: FloatArray  # the scores that pairs have; here one for each pair, of which nothing is kept elsewhere
    null_scores: FloatArray  # scores of re-pairings, in rising order
    null_fraction: NullFraction | None = None  # share of wrong pairs, where it is not to be read off these scores
    counts: Array | None = None  # how many pairs have each score, where they are counted
    folds: tuple[Fold, ...] = ()
    units: Array | None = None  # pairs that stand or fall together
    p_of_deals: FloatArray | None = None  # p-values of single deals, a row each, NaN where a fold found nothing
    ridges: LeftOut | None = None  # where any x with any y is scored by ridges without these two pairs

    @property
    def judges_of_a_deal(self) -> tuple[Fold, ...]:
        """The folds of one deal, which have judged every pair once."""
        return tuple(fold for fold in self.folds if fold.deal == self.folds[0].deal)

    def judge(self, x: Any, y: Any) -> FloatArray:
        """Score other prepared pairs: the median of what the judges of one deal say; 0 where nothing was learned."""
        if not self.folds:
            return np.zeros(int(x.shape[0]))
        return np.median([fold.standardised(fold.judge.scores(x, y)) for fold in self.judges_of_a_deal], axis=0)

    def highest(self, home: PairedRows) -> float:
        """The highest score of any pair."""
        return float(self.levels.max())

    def scores(self, home: PairedRows) -> Any:
        """Return the score of each pair, where the pairs live."""
        return self.per_pair(self.levels, home)

    def per_pair(self, values: Array, home: PairedRows) -> Any:
        """Return what belongs to the score of each pair, given for all levels, where the pairs live."""
        return home.store.from_host(values, home.X)


def cross_fit(
    data: PreparedPairs,
    n_folds: int,
    rng: np.random.RandomState,
    helped: Callable[[Learner], Teacher] | None = None,
    most_deals: int = MOST_DEALS,
    *,
    has_groups: bool = False,
) -> CrossFit:
    """Score all pairs and re-pairings. ``helped`` makes of the learner one that knows more than the pairs."""
    n, labels = data.n, data.labels
    n_deals = min(how_many_deals(n), most_deals)
    per_pair = re_pairings_of_a_pair(n * n_deals, min(data.dimensions))
    units = units_of(labels, has_groups=has_groups)
    with single_threaded_blas(unless=max(data.dimensions) > WIDE):
        learner = choose_learner(data, rng)
        teacher = learner if helped is None else helped(learner)

        def scored(deal: int, own: Array) -> Fold | None:
            """Learn from the other pairs, and score these and their re-pairings."""
            learned = teacher.learn(training_without(own, labels, has_groups=has_groups))
            if learned is None:
                return None
            own = rng.permutation(own)
            x, y = data.take(own)
            null = re_paired_scores(learned, x, y, labels[:, own], per_pair, rng)
            centre, unit = (
                (learned.significance.centre, learned.significance.spread) if learner.kind == "anchors" else (0.0, 1.0)
            )
            scores, null = ((to_host(some) - centre) / unit for some in (learned.scores(x, y), null))
            return Fold(deal, own, learned, centre, unit, scores, null)

        n_folds = n_folds * _MORE_FOLDS if data.are_few and n_deals > 1 else n_folds
        deals = [deal_folds(labels, units, n_folds, rng) for _ in range(n_deals)]
        stretches = [(d, np.flatnonzero(of == fold)) for d, of in enumerate(deals) for fold in np.unique(of)]
        found = [scored(*stretch) for stretch in track("folds", stretches)]
    folds = tuple(fold for fold in found if fold is not None)
    if sum(fold.null_scores.size for fold in folds) == 0:  # nothing was learned, or could be re-paired
        return CrossFit(np.zeros(n), np.zeros(1), units=units)
    fit = together(folds, n, n_deals, units)
    if learner.kind != "ridge" or helped is not None or data.shared_ridge is None:
        return fit
    return replace(fit, ridges=LeftOut(data.shared_ridge, rows_together(labels, units, has_groups=has_groups)))


def how_many_deals(n: int) -> int:
    """How often so many pairs are dealt into folds: once, unless they are few."""
    return int(np.clip(_STEADY_PAIRS // n, 1, np.clip(n // 2, _FEWEST_DEALS, MOST_DEALS)))


def re_pairings_of_a_pair(n: int, d: int) -> int:
    """How often each pair is re-paired.

    R real pairs of n are accepted at a rate alpha if their p-values are below alpha R / n, where k re-pairings of each
    pair leave k alpha R scores. Among many pairs no map is found that fewer than d follow, so that k = 1,000 / d leaves
    ten at alpha = 0.01.
    """
    most = RE_PAIRINGS // n
    return most if n <= _MANY_PAIRS else min(most, max(_OF_THEM_PER_DIMENSION // d, 1))


def together(folds: tuple[Fold, ...], n: int, n_deals: int, units: Array | None) -> CrossFit:
    """The median score over the deals; a fold that found nothing says nothing for its pairs: below every re-pairing."""
    of_deals = np.full((n_deals, n), np.nan)
    for fold in folds:
        of_deals[fold.deal, fold.rows] = fold.scores
    null_scores = np.sort(np.concatenate([fold.null_scores for fold in folds]))
    filled = np.nan_to_num(of_deals, nan=min(null_scores[0], np.nanmin(of_deals)))
    scored = np.isfinite(of_deals)
    p_of_deals = np.full(of_deals.shape, np.nan)
    p_of_deals[scored] = p_values(of_deals[scored], null_scores)
    # The share takes uniform p-values: of single deals, because medians vary less than re-pairings' scores, and of
    # pairs that could be scored. The deals share their pairs, and units stand or fall together.
    alike = n_deals * mean_size(units)
    share = estimate_null_fraction(p_of_deals[scored], alike=alike)
    return CrossFit(np.median(filled, axis=0), null_scores, share, None, folds, units, p_of_deals)


def scores_of_any(fit: CrossFit, x: Any, y: Any) -> FloatArray:
    """Scores of each x with each y, in single precision."""
    every = np.arange(len(x))
    return all_pairings(fit, x, y, every, every) if fit.ridges is None else fit.ridges.scores()


def all_pairings(fit: CrossFit, x: Any, y: Any, rows: Array, columns: Array) -> FloatArray:
    """Scores of x_i with y_j for these rows i and columns j, the mean over the deals, by judges without pair i."""
    total, count = np.zeros((rows.size, columns.size), dtype=np.float32), np.zeros((rows.size, 1), dtype=np.float32)
    place = np.full(int(fit.levels.size), -1)
    place[rows] = np.arange(rows.size)
    some_y = y if columns.size == len(y) else take_rows(y, columns)
    for fold in fit.folds:
        own = fold.rows[place[fold.rows] >= 0]
        if own.size:
            scores = fold.judge.scores_of_all_pairings(take_rows(x, own), some_y, single=True)
            scores = fold.standardised(scores).astype(np.float32, copy=False)
            if np.array_equal(own, rows) and not count.any():  # nothing to be added up yet, and nothing to be moved
                total = scores
            elif own.size == rows.size and not count.any():
                total[place[own]] = scores
            else:
                total[place[own]] += scores
            count[place[own]] += 1
    if (count > 1).any():
        total /= np.maximum(count, 1)
    return total


def pair_scores(fit: CrossFit, x: Any, y: Any, i: Array, j: Array) -> FloatArray:
    """Scores of each x_i with its y_j, the mean over the deals, by judges without pair i."""
    total, count = np.zeros(i.size), np.zeros(i.size)
    fold_of = np.full((max(fold.deal for fold in fit.folds) + 1, fit.levels.size), -1)
    for number, fold in enumerate(fit.folds):
        fold_of[fold.deal, fold.rows] = number
    for number, fold in enumerate(fit.folds):
        own = np.flatnonzero(fold_of[fold.deal, i] == number)
        if own.size:
            total[own] += fold.standardised(fold.judge.scores(take_rows(x, i[own]), take_rows(y, j[own])))
            count[own] += 1
    return total / np.maximum(count, 1)
