"""Score every pair by what was learned without it, and re-pairings in the same way.

The pairs are dealt into folds. What is learned on the others (see `inlier.calibration.strategy`) scores the fold's
pairs and its re-pairings: x_i with y_j, j != i. A wrong pair's x and y are independent, so it scores as a
re-pairing does, whatever the data look like and whatever was learned. Where mistakes are made between neighbours, that
is not so: hence each pair is also compared with its rivals (see `inlier.calibration.competition`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from inlier._checks import warn
from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.competition import (
    MOST_PAIRS,
    FoldScores,
    Rivals,
    RivalShare,
    clearly_real,
    nearest_rivals,
    share_by_rivals,
    without_true_partners,
)
from inlier.calibration.dependence import NONE_STANDS_OUT, some_stand_out
from inlier.calibration.inner_products import AnchorPairs
from inlier.calibration.linear_map import LinearMap
from inlier.calibration.p_values import (
    Calibration,
    NullFraction,
    calibrate,
    estimate_null_fraction,
    has_heavy_tail,
    p_values,
)
from inlier.calibration.retrieval import SelfLearner
from inlier.calibration.ridge_map import RidgeMap
from inlier.calibration.strategy import Learner, PairScorer, prepared_rows, re_paired_scores
from inlier.exceptions import DependenceWarning
from inlier.progress import track
from inlier.rows import PairedRows
from inlier.rows.backend import take_rows, to_host
from inlier.rows.null_pairs import are_re_pairings
from inlier.rows.threads import single_threaded_blas

RE_PAIRINGS = 1_000_000  # about, in all
_MANY_PAIRS, _OF_THEM_PER_DIMENSION = 50_000, 1_000  # of more pairs: re-pairings of each, times dimensions
WIDE = 500  # dimensions from which threads inside a matrix product save more than they cost
_STEADY_PAIRS = 1_000  # with fewer, the folds are dealt several times, so that the luck of one deal matters less
_FEWEST_DEALS, MOST_DEALS = 10, 20  # of few pairs; more would count the same re-pairings again and again
MOST_PARTED = 1_000  # pairs among which partners that were parted are learned from: it takes their square, many times
_CLEAR, _MOST_OF_THEM = 0.01, 0.8  # q-value; share of the real pairs that have it where nothing is left to be learned
_MOSTLY_WRONG = 0.5  # share of real pairs below which that is tried
_INTERVAL_RATE = 0.05  # of false discoveries among the pairs whose scores say whether noise has heavy tails
_MANY_STRATA = 4  # for each fold: then strata are not split, so that all of each can be re-paired
_MORE_FOLDS = 2  # times as many where pairs are few beside their dimensions, and each is needed to learn from


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Scores of all pairs by models that have not seen them, and of re-pairings."""

    levels: FloatArray  # the scores that pairs have; here one for each pair, of which nothing is kept elsewhere
    null_scores: FloatArray  # scores of re-pairings, in rising order
    # share of wrong pairs and its error, where it is not to be read off the p-values of these scores
    null_fraction: NullFraction | None = None
    counts: Array | None = None  # how many pairs have each score, where they are counted
    by_rivals: RivalShare | None = None  # what rivals say, where pairs could be compared with them
    rows_depend: bool = False  # whether rows seem to depend on each other
    judges: tuple[PairScorer, ...] = ()  # what was learned, each without a part of the pairs: for pairs that come later
    # where strata are small: how well each y_i fits x_i, and each row what fits it best instead, in rising order
    nearest: tuple[FloatArray, FloatArray] | None = None
    standardised: bool = False  # whether scores are in units of what re-pairings did where each was learned

    def judged(self, alpha: float, *, has_strata: bool) -> tuple[Calibration, tuple[float, float], bool]:
        """What the scores are worth beside strangers and beside rivals; an interval of the share of real pairs.

        Also whether wrong partners seem to resemble the right ones, by rivals.

        If there are more wrong pairs beside rivals, they are counted there; there is a warning, for that has a reason.
        """
        (judged, levels, null_scores), rivals = self._calibrated(alpha), self.by_rivals
        low, high = judged.interval(self.counts, None if rivals is None else rivals.share)
        accepted = judged.accepted(_INTERVAL_RATE)
        if has_heavy_tail(levels[accepted], None if self.counts is None else self.counts[accepted]):
            high = 1.0  # of pairs with so much noise, some are like wrong ones: a bound from below
        stand_out = some_stand_out(judged.p_values, self.counts)
        if not stand_out:
            warn(NONE_STANDS_OUT, DependenceWarning)
        none_inside_strata = has_strata and not judged.accepted(alpha).any()
        if self.rows_depend or not stand_out or none_inside_strata:
            low = 0.0  # what is better than strangers need not be real: a bound from above
        if rivals is None:
            return judged, (low, high), False
        beside_strangers, accepted = (judged.inlier_fraction, judged.inlier_fraction_error), judged.accepted(alpha)
        contradict = rivals.contradicts(*beside_strangers) and accepted.any()
        n_wrong = expected_wrong(judged, accepted)
        resemble = contradict or rivals.suspects(*beside_strangers, accepted, n_wrong, alpha)
        if resemble:
            warn(rivals.warning(judged.inlier_fraction, accepted, n_wrong, has_strata=has_strata), DependenceWarning)
            low = 0.0
        if not contradict:
            return judged.doubting(rivals.chance_wrong, rivals.q_values()), (low, high), bool(resemble)
        share, error = rivals.share
        judged = calibrate(levels, null_scores, (1 - share, error), self.counts)
        high = max(judged.interval()[1], high)  # not all swaps can be told, likewise
        return judged.doubting(rivals.chance_wrong), (low, high), True

    def _calibrated(self, alpha: float) -> tuple[Calibration, FloatArray, FloatArray]:
        """What the scores are worth beside re-pairings; also those that count, and those of re-pairings.

        In a small stratum re-pairings meet true partners so often that they may let nothing pass. Then each row's best
        fit among the others of its stratum, but for what seems to be its partner, is the null: wrong partners may
        then be any of the stratum, even always the one that resembles the right one most.
        """
        judged = calibrate(self.levels, self.null_scores, self.null_fraction, self.counts)
        if self.nearest is not None and not judged.accepted(alpha).any():
            beside_nearest = calibrate(*self.nearest)
            if beside_nearest.accepted(alpha).any():
                return beside_nearest, *self.nearest
        return judged, self.levels, self.null_scores

    def judge(self, x: Any, y: Any) -> FloatArray:
        """Score other prepared pairs: the median of what all judges say; 0 where nothing was learned."""
        if not self.judges:
            return np.zeros(int(x.shape[0]))
        scores = [to_host(judge.scores(x, y)) for judge in self.judges]
        if self.standardised:
            nulls = [judge.significance for judge in self.judges]
            scores = [(s - null.centre) / null.spread for s, null in zip(scores, nulls, strict=True)]
        return np.median(scores, axis=0)

    def highest(self, home: PairedRows) -> float:
        """The highest score of any pair."""
        return float(self.levels.max())

    def scores(self, home: PairedRows) -> Any:
        """Return the score of each pair, where the pairs live."""
        return self.per_pair(self.levels, home)

    def per_pair(self, values: Array, home: PairedRows) -> Any:
        """Return what belongs to the score of each pair, given for all levels, where the pairs live."""
        return home.store.from_host(values, home.X)


def expected_wrong(judged: Calibration, accepted: Mask) -> float:
    """How many wrong pairs are expected among the accepted, which have the highest scores."""
    p = float(judged.p_values[accepted].max(initial=0.0))
    return (1 - judged.inlier_fraction) * p * judged.p_values.size


class Teacher(Protocol):
    """What learns from some of the pairs."""

    @property
    def by_pairs_alone(self) -> bool:
        """Whether it knows nothing but the pairs: no other rows or columns, no weights."""

    def learn(self, training: Array) -> PairScorer | None:
        """Learn from these pairs; None if nothing is found."""


def cross_fit(
    pairs: PairedRows,
    labels: Array,
    n_folds: int,
    rng: np.random.RandomState,
    prepared: tuple[Any, Any] | None = None,
    helped: Callable[[Learner], Teacher] | None = None,
    most_deals: int = MOST_DEALS,
) -> CrossFit:
    """Score all pairs, which are prepared for `learn_map` (all rows, where that has been done), and re-pairings.

    ``labels`` say what pairs have in common (see `inlier.rows.null_pairs`): a point is never re-paired with itself,
    equal pairs and pairs of one group share a fold, re-pairings stay inside strata. There are fewer folds where there
    are not two pairs, or groups, for each. ``helped`` makes of the learner one that knows more: rows without a
    partner, columns that correspond.
    """
    n = pairs.n_pairs
    n_deals = min(how_many_deals(n), most_deals)
    per_pair = re_pairings_of_a_pair(n * n_deals, min(pairs.dimensions))
    with single_threaded_blas(unless=max(pairs.dimensions) > WIDE):
        prepared = prepared_rows(pairs, np.arange(n)) if prepared is None else prepared
        learner = Learner(pairs, labels, rng, prepared=prepared)
        teacher: Teacher = learner if helped is None else helped(learner)
        n_folds = how_many_folds(n_folds, learner)
        rivals = Rivals.of(*prepared, labels, rng)

        def scored(deal: int, own: Array) -> _Fold | None:
            """Learn from the other pairs, and score these and their re-pairings."""
            learned = teacher.learn(np.setdiff1d(np.arange(n), own))
            if learned is None:
                return None
            own = rng.permutation(own)
            x, y = learner.prepared_rows(own)
            null = re_paired_scores(learned, x, y, labels[:, own], per_pair, rng)
            scores = to_host(learned.scores(x, y))
            ratio = rivals.log_ratio(learned, x, y, own, scores) if isinstance(learned, LinearMap) else None
            return _Fold(deal, own, learned, scores, null, ratio)

        deals = [deal_folds(labels, n_folds, rng) for _ in range(n_deals)]
        stretches = [(d, np.flatnonzero(of == fold)) for d, of in enumerate(deals) for fold in np.unique(of)]
        folds = [scored(*stretch) for stretch in track("folds", stretches)]
        if learner.ridge_is_better and helped is None:  # which the first folds may not have known
            again = [fold is None or not isinstance(fold.by, RidgeMap) for fold in folds]
            folds = [scored(*s) if a else f for s, a, f in zip(stretches, again, folds, strict=True)]
        parts = _on_one_scale([fold for fold in folds if fold is not None])
        if sum(part.null_scores.size for part in parts) == 0:  # nothing was learned, or could be re-paired
            return CrossFit(np.zeros(n), np.zeros(1))
        fit = _together(parts, n_deals, labels)
        if teacher.by_pairs_alone:
            real = clearly_real(fit.levels, fit.null_scores, fit.null_fraction)
            if real is not None:
                fit = _together(_without_partners(parts, real, pairs, labels, rng), n_deals, labels)
        if strata_are_whole(labels, n_folds) and n <= MOST_PAIRS and all(isinstance(p.by, LinearMap) for p in parts):
            fit = replace(fit, nearest=_beside_nearest(parts, n_deals, pairs, labels, rng))
    may_be_permuted = helped is None and _are_all_different(labels)
    if may_be_permuted and n <= MOST_PARTED and max(pairs.dimensions) <= WIDE and _few_are_clear(fit):
        helped = _by_neighbours(pairs, prepared, rng)
        other = cross_fit(pairs, labels, n_folds, rng, prepared, helped, most_deals=1)
        return other if _n_clear(other) > _n_clear(fit) else fit
    return fit


def _are_all_different(labels: Array) -> bool:
    """Whether no row is listed twice on a side, and none belongs with others: equal rows are each other's nearest."""
    return bool((labels[:2].max(axis=1) + 1 == labels.shape[1]).all()) and _units(labels) is None


def _n_clear(fit: CrossFit) -> int:
    return int((calibrate(fit.levels, fit.null_scores, fit.null_fraction).q_values <= _CLEAR).sum())


def _few_are_clear(fit: CrossFit) -> bool:
    """Whether most pairs seem wrong, and many of the real ones are not clear.

    If the wrong ones are a permutation of each other, it then pays to learn from who might belong together, too.
    """
    share = calibrate(fit.levels, fit.null_scores, fit.null_fraction).inlier_fraction
    return share < _MOSTLY_WRONG and _n_clear(fit) < _MOST_OF_THEM * share * fit.levels.size


def _by_neighbours(
    pairs: PairedRows, prepared: tuple[Any, Any], rng: np.random.RandomState
) -> Callable[[Learner], Teacher]:
    """What learns from rows that are each other's nearest, whoever they were paired with: partners who were parted."""
    x, y = (to_host(take_rows(side, slice(0, 0))) for side in prepared)
    return lambda learner: SelfLearner(learner, pairs, x, y, rng)


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


def how_many_folds(n_folds: int, learner: Learner) -> int:
    """How many folds there are if so many were asked for."""
    return n_folds * _MORE_FOLDS if learner.pairs_are_few else n_folds


@dataclass(frozen=True, eq=False)
class _Fold:
    """The pairs of a fold, with their scores and those of their re-pairings, by one that has not seen them."""

    deal: int
    rows: Array
    by: PairScorer
    scores: FloatArray
    null_scores: FloatArray
    log_ratio: FloatArray | None  # how much better others fit, by a map
    centre: float = 0.0  # and unit of the scores
    spread: float = 1.0

    def standardised(self) -> _Fold:
        """In units of what re-pairings did where this was learned."""
        null = self.by.significance
        scores, null_scores = ((s - null.centre) / null.spread for s in (self.scores, self.null_scores))
        return replace(self, scores=scores, null_scores=null_scores, centre=null.centre, spread=null.spread)


def _are_mixed(folds: list[_Fold]) -> bool:
    """Whether scores are on several scales: maps have one, cosines another, anchors one each."""
    kinds = {type(fold.by) for fold in folds}
    return len(kinds) > 1 or AnchorPairs in kinds


def _on_one_scale(folds: list[_Fold]) -> list[_Fold]:
    return [fold.standardised() for fold in folds] if _are_mixed(folds) else folds


def _beside_nearest(
    folds: list[_Fold], n_deals: int, pairs: PairedRows, labels: Array, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray] | None:
    """Log likelihood of each y_i given x_i, the median over deals; and of each row with what fits it best instead."""
    of_deals = np.full((n_deals, labels.shape[1]), np.nan)
    all_pairings = []
    for fold, found in zip(folds, _all_pairings(folds, pairs, labels, rng), strict=True):
        y = to_host(prepared_rows(pairs, fold.rows)[1])
        # a score is log N(y; predicted, variance) - log N(y; 0, 1): what strangers are like does not matter here
        likelihoods = replace(found, scores=found.scores - np.einsum("ij,ij->i", y, y) / 2)
        of_deals[fold.deal, fold.rows] = np.diag(likelihoods.scores)
        all_pairings.append(likelihoods)
    null = nearest_rivals(all_pairings)
    return (np.median(np.nan_to_num(of_deals, nan=null[0]), axis=0), null) if null.size else None


def _all_pairings(folds: list[_Fold], pairs: PairedRows, labels: Array, rng: np.random.RandomState) -> list[FoldScores]:
    """All x of each fold with all its y."""
    found = []
    for fold in folds:
        scores = to_host(fold.by.scores_of_all_pairings(*prepared_rows(pairs, fold.rows)))
        scores = (scores - fold.centre) / fold.spread
        may = are_re_pairings(labels[:, fold.rows], np.arange(fold.rows.size), rng)
        found.append(FoldScores(fold.rows, scores, may))
    return found


def _without_partners(
    folds: list[_Fold], real: Mask, pairs: PairedRows, labels: Array, rng: np.random.RandomState
) -> list[_Fold]:
    """The same, with true partners left out of the re-pairings."""
    all_pairings = _all_pairings(folds, pairs, labels, rng)
    kept = without_true_partners(all_pairings, real, rng)
    return [
        replace(fold, null_scores=all_of.scores[mask])
        for fold, all_of, mask in zip(folds, all_pairings, kept, strict=True)
    ]


def _together(folds: list[_Fold], n_deals: int, labels: Array) -> CrossFit:
    """The median score over the deals; a fold that found nothing says nothing for its pairs: below every re-pairing."""
    n, mixed = labels.shape[1], _are_mixed(folds)
    judges = tuple(fold.by for fold in folds if fold.deal == folds[0].deal)
    of_deals, log_ratio = np.full((2, n_deals, n), np.nan)
    for fold in folds:
        of_deals[fold.deal, fold.rows] = fold.scores
        log_ratio[fold.deal, fold.rows] = np.nan if fold.log_ratio is None else fold.log_ratio
    null_scores = np.sort(np.concatenate([fold.null_scores for fold in folds]))
    filled = np.nan_to_num(of_deals, nan=min(null_scores[0], np.nanmin(of_deals)))
    scores = np.median(filled, axis=0) if n_deals > 1 else filled[0]
    share = _null_fraction(of_deals, null_scores, labels)
    by_rivals = share_by_rivals(log_ratio)
    return CrossFit(scores, null_scores, share, by_rivals=by_rivals, judges=judges, standardised=mixed)


def _null_fraction(of_deals: FloatArray, null_scores: FloatArray, labels: Array) -> NullFraction | None:
    """Share of wrong pairs and its error, where it is not to be read off the p-values that are reported.

    It takes uniform p-values: of single deals, because medians vary less than the re-pairings' scores, and of pairs
    that could be scored. The others are no different, because pairs are dealt into folds at random. Pairs of one group
    stand or fall together, so that there are as many witnesses as groups.
    """
    scored, has_groups = np.isfinite(of_deals), len(labels) > 2
    if len(of_deals) == 1 and scored.all() and not has_groups:
        return None
    sizes = np.bincount(labels[2]) if has_groups else np.ones(1)
    # the deals share their pairs: no more information than one; sum m^2 / sum m is the size of a typical pair's group
    alike = len(of_deals) * float(np.sum(sizes**2) / np.sum(sizes))
    return estimate_null_fraction(p_values(of_deals[scored], null_scores), alike=alike)


def deal_folds(labels: Array, n_folds: int, rng: np.random.RandomState) -> Array:
    """Deal the pairs into folds of similar size; equal pairs and pairs of one group go together.

    Otherwise they would know each other's answer. Strata are spread over the folds, two at a time, which can be
    re-paired with each other.
    """
    n = labels.shape[1]
    unit = _units(labels)
    if unit is None:
        n_folds = min(n_folds, n // 2)
        if strata_are_whole(labels, n_folds):
            fold_of_stratum = rng.permutation(np.arange(int(labels[3].max()) + 1) % n_folds)
            return fold_of_stratum[labels[3]]
        if len(labels) == 2:
            return rng.permutation(np.arange(n) % n_folds)
        order = rng.permutation(n)
        order = order[np.argsort(labels[3][order], kind="stable")]
        fold_of = np.empty(n, dtype=int)
        fold_of[order] = np.arange(n) // 2 % n_folds
        return fold_of
    size = np.bincount(unit)
    n_folds = min(n_folds, max(size.size // 2, 2))
    order = rng.permutation(size.size)
    if len(labels) > 2:  # every stratum is spread over the folds
        stratum = np.zeros(size.size, dtype=int)
        stratum[unit] = labels[3]
        order = order[np.argsort(stratum[order], kind="stable")]
        order = np.concatenate([order[start::n_folds] for start in range(n_folds)])
    middle = np.cumsum(size[order]) - size[order] / 2  # units in a row, cut into stretches of equal length
    fold_of_unit = np.empty(size.size, dtype=int)
    fold_of_unit[order] = middle * n_folds // n
    return fold_of_unit[unit]


def strata_are_whole(labels: Array, n_folds: int) -> bool:
    """Whether there are so many strata that none has to be split between folds."""
    return len(labels) > 2 and _units(labels) is None and int(labels[3].max()) + 1 >= _MANY_STRATA * n_folds


def _units(labels: Array) -> Array | None:
    """Number of what each pair cannot be parted from: equal pairs, and its group; None where every pair is alone."""
    n, points = labels.shape[1], labels[:2]
    no_equal_pairs = bool((points.max(axis=1) + 1 == n).any())  # one side has no repeats, so no pair has
    if len(labels) > 2 and labels[2].max() + 1 < n:
        if no_equal_pairs:
            return labels[2]
        equal = np.unique(points, axis=1, return_inverse=True)[1].reshape(-1)
        together = coo_matrix((np.ones(n), (labels[2], labels[2].max() + 1 + equal)), shape=(2 * n, 2 * n))
        return np.unique(connected_components(together, directed=False)[1][labels[2]], return_inverse=True)[1]
    return None if no_equal_pairs else np.unique(points, axis=1, return_inverse=True)[1].reshape(-1)
