"""Cross-fitting where there are too many pairs to judge one by one, or they are elsewhere.

The maps are learned from a sample of the pairs, brought here or left on their device; the null is that sample's
re-pairings. Every pair is scored where it lives, by the map of a fold that it does not belong to, and only a histogram
of the scores comes back: p- and q-values are read off it. A pair's fold follows from its numbers alone, so nothing per
pair has to be kept, and equal pairs share a fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.cross_fit import RE_PAIRINGS, CrossFit, Fold
from inlier.calibration.models.learner import (
    WIDE,
    PairScorer,
    PreparedPairs,
    choose_learner,
    in_float64,
    re_paired_scores,
)
from inlier.calibration.p_values import NullFraction, estimate_null_fraction, p_values
from inlier.progress import track
from inlier.rows import Extremes, PairedRows
from inlier.rows.backend import from_host, namespace, to_host
from inlier.rows.null_pairs import point_numbers
from inlier.rows.threads import single_threaded_blas

_SAMPLE = 200_000  # pairs
_SAMPLE_BYTES = 2**30  # of sampled rows, as float64
_BINS = 2**14  # of pairs between neighbouring bins there are about this part, and likewise of re-pairings
_TAIL = 2**12  # the highest re-pairings and scores have bins of their own
_FINE = 1e4  # how many times the fold changes while a coordinate grows by its own spread


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledFit(CrossFit):
    """Scores of many pairs, where they live; the levels are lower ends of bins, with the number of pairs in each."""

    in_place: Any  # the scores

    def highest(self, home: PairedRows) -> float:
        """The highest score of any pair."""
        return home.store.total(Extremes(), self.in_place)[1]

    def scores(self, home: PairedRows) -> Any:
        """Return the score of each pair, where the pairs live."""
        return self.in_place

    def per_pair(self, values: Array, home: PairedRows) -> Any:
        """Return what belongs to the bin of each pair's score, where the pairs live."""
        return home.store.map(_ReadOff(self.levels, values, values.dtype.name), self.in_place)


def sampled_fit(pairs: PairedRows, n_folds: int, rng: np.random.RandomState) -> SampledFit:
    """Score all pairs by maps learned from a sample, and count the scores in bins."""
    size = min(_SAMPLE, _SAMPLE_BYTES // (8 * (pairs.X.shape[1] + pairs.Y.shape[1])))
    sample = pairs.near(np.unique(rng.randint(pairs.n_pairs, size=size, dtype=np.int64)))
    with single_threaded_blas(unless=max(sample.dimensions) > WIDE):
        model, null_scores = _learn(sample, n_folds, rng)
        of_sample = to_host(sample.map(model))
    scores = pairs.map(model)
    edges = _edges(of_sample, null_scores)
    counts = pairs.store.total(_CountPerBin(edges), scores)
    share = _null_fraction(model, sample, of_sample, null_scores)
    nothing = np.empty(0)
    folds = tuple(Fold(0, nothing, judge, 0.0, 1.0, nothing, nothing) for judge in model.maps if judge is not None)
    return SampledFit(edges[counts > 0], null_scores, share, counts[counts > 0], folds, in_place=scores)


def _learn(sample: PairedRows, n_folds: int, rng: np.random.RandomState) -> tuple[FoldMaps, FloatArray]:
    """Learn a map for each fold from the pairs of the others; also score re-pairings."""
    points = np.stack([point_numbers(table) for table in (sample.X, sample.Y)])
    d_x, d_y = sample.dimensions
    model = FoldMaps((None,) * n_folds, rng.uniform(1, 2, d_x), rng.uniform(1, 2, d_y))
    fold_of = to_host(sample.map(model.fold_of)).astype(np.int64)
    data = PreparedPairs(sample, points)
    learner = choose_learner(data, rng, kinds=("map", "regression"))
    maps: list[PairScorer | None] = []
    null: list[FloatArray] = [np.empty(0)]
    for fold in track("folds", range(n_folds)):
        learned = learner.learn(np.flatnonzero(fold_of != fold))
        maps.append(learned)
        if learned is not None:
            own = rng.permutation(np.flatnonzero(fold_of == fold))
            x, y = data.take(own)
            null.append(re_paired_scores(learned, x, y, points[:, own], RE_PAIRINGS // sample.n_pairs, rng))
    null_scores = np.sort(np.concatenate(null))
    if not null_scores.size:  # nothing was learned, or nothing could be re-paired: no pair stands out
        return model, np.zeros(1)
    return replace(model, maps=tuple(maps), lowest=float(null_scores[0])), null_scores


def _null_fraction(
    model: FoldMaps, sample: PairedRows, scores: FloatArray, null_scores: FloatArray
) -> NullFraction | None:
    """Share of wrong pairs and its error, from the sample, where a fold found nothing and says nothing about it."""
    is_scored = np.array([learned is not None for learned in model.maps])
    if is_scored.all() or not is_scored.any():
        return None
    scored = is_scored[to_host(sample.map(model.fold_of)).astype(np.int64)]
    return estimate_null_fraction(p_values(scores[scored], null_scores))


def _edges(scores: FloatArray, null_scores: FloatArray) -> FloatArray:
    """Lower ends of the bins: finely spaced where scores and re-pairings lie, each of the highest by itself."""
    edges: list[FloatArray] = [np.array([min(scores.min(), null_scores[0])])]
    for values in (np.sort(scores), null_scores):
        for some in (values[np.unique(np.linspace(0, values.size - 1, _BINS).astype(int))], values[-_TAIL:]):
            edges.append((some[1:] + some[:-1]) / 2)  # between values: rounding moves none across
    return np.unique(np.concatenate(edges))


@dataclass(frozen=True, eq=False)
class FoldMaps:
    """The maps of all folds: each pair is scored by that of its fold, which was learned without it."""

    maps: tuple[PairScorer | None, ...]
    mix_x: FloatArray
    mix_y: FloatArray
    lowest: float = 0.0  # score of the pairs of a fold whose map found nothing

    def __call__(self, x: Any, y: Any) -> Any:
        """Return the scores of a block of prepared pairs."""
        xp, (x, y) = namespace(x), in_float64(x, y)
        fold = self.fold_of(x, y)
        order = xp.argsort(fold, stable=True)
        ends = np.searchsorted(to_host(xp.take(fold, order)), np.arange(len(self.maps) + 1))
        scores = []
        for k, learned in enumerate(self.maps):
            rows = order[int(ends[k]) : int(ends[k + 1])]
            if learned is None:
                scores.append(xp.full_like(xp.astype(rows, xp.float64), self.lowest))
            else:
                scores.append(learned.scores(xp.take(x, rows, axis=0), xp.take(y, rows, axis=0)))
        return xp.take(xp.concat(scores), xp.argsort(order))

    def fold_of(self, x: Any, y: Any) -> Any:
        """Number of each pair's fold: a fraction of a sum of its coordinates that is as good as random."""
        xp, (x, y) = namespace(x), in_float64(x, y)
        phase = (x @ from_host(self.mix_x, x) + y @ from_host(self.mix_y, y)) * _FINE
        return xp.astype(xp.floor((phase - xp.floor(phase)) * len(self.maps)), xp.int64) % len(self.maps)


@dataclass(frozen=True, eq=False)
class _CountPerBin:
    """How many scores lie from each edge up to the next; those below the first count with it."""

    edges: FloatArray

    def __call__(self, scores: Any) -> Array:
        xp = namespace(scores)
        ends = xp.searchsorted(xp.sort(scores), from_host(self.edges[1:], scores))
        return np.diff(to_host(ends), prepend=0, append=int(scores.shape[0]))

    def merge(self, parts: Sequence[Array]) -> Array:
        return sum(parts[1:], start=parts[0])


@dataclass(frozen=True, eq=False)
class _ReadOff:
    """The value that belongs to each score's bin."""

    edges: FloatArray
    values: Array
    dtype: str

    def __call__(self, scores: Any) -> Any:
        return namespace(scores).take(from_host(self.values, scores), _bin_of(scores, self.edges))


def _bin_of(scores: Any, edges: FloatArray) -> Any:
    xp = namespace(scores)
    above = xp.searchsorted(from_host(edges, scores), scores, side="right")
    return xp.maximum(above - 1, xp.zeros_like(above))
