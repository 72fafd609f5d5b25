"""Cross-fitting where there are too many pairs to judge one by one, or they are elsewhere.

The maps are learned from a sample of the pairs, brought here or left on their device; the null is that sample's
re-pairings. Every pair is scored where it lives, by the map of a fold that it does not belong to, and only a histogram
of the scores comes back: p- and q-values are read off it. A pair's fold follows from its numbers alone, so nothing per
pair has to be kept, and equal pairs share a fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.cross_fit import Trainer, blas_for, re_paired_scores
from inlier.calibration.p_values import Calibration, calibrate, estimate_null_fraction, p_values
from inlier.calibration.strategy import PairScorer, prepared_rows
from inlier.rows import PairedRows
from inlier.rows.namespaces import from_host, is_host_array, namespace, to_host
from inlier.rows.null_pairs import RePairing, point_numbers

_SAMPLE = 200_000
_SAMPLE_BYTES = 2**30  # of sampled rows, as float64
_RE_PAIRINGS = 1_000_000
_BINS = 2**14  # of pairs between neighbouring bins there are about this part, and likewise of re-pairings
_TAIL = 2**12  # the highest re-pairings and scores have bins of their own
_FINE = 1e4  # how many times the fold changes while a coordinate grows by its own spread


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Score of each pair by the map of its fold, which was learned without it."""

    maps: tuple[PairScorer | None, ...]
    mix_x: FloatArray
    mix_y: FloatArray
    lowest: float = 0.0  # score of the pairs of a fold whose map found nothing

    def __call__(self, x: Any, y: Any) -> Any:
        """Return the scores of a block of prepared pairs."""
        xp, (x, y) = namespace(x), _in_float64(x, y)
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
        xp, (x, y) = namespace(x), _in_float64(x, y)
        phase = (x @ from_host(self.mix_x, x) + y @ from_host(self.mix_y, y)) * _FINE
        return xp.astype(xp.floor((phase - xp.floor(phase)) * len(self.maps)), xp.int64) % len(self.maps)


def _in_float64(x: Any, y: Any) -> tuple[Any, Any]:
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False), xp.astype(y, xp.float64, copy=False)


@dataclass(frozen=True, eq=False)
class _CountPerBin:
    """How many scores lie from each edge up to the next; those below the first count with it."""

    edges: FloatArray

    def __call__(self, scores: Any) -> Array:
        if is_host_array(scores):
            return np.bincount(_bin_of(scores, self.edges), minlength=self.edges.size)
        xp, n = namespace(scores), int(scores.shape[0])  # the numbers of the bins would be as many as the scores
        ends = xp.searchsorted(xp.sort(scores), from_host(self.edges[1:], scores))
        return np.diff(to_host(ends), prepend=0, append=n)

    def merge(self, parts: Sequence[Array]) -> Array:
        return sum(parts[1:], start=parts[0])


@dataclass(frozen=True, eq=False)
class _ReadOff:
    """The value that belongs to each score's bin."""

    edges: FloatArray
    values: FloatArray
    dtype: str = "float64"

    def __call__(self, scores: Any) -> Any:
        return namespace(scores).take(from_host(self.values, scores), _bin_of(scores, self.edges))


@dataclass(frozen=True, eq=False)
class ManyPairs:
    """What is known of many pairs: the scores, where the pairs live, and what each bin of scores is worth."""

    pairs: PairedRows
    scores: Any
    edges: FloatArray
    null_scores: FloatArray
    calibration: Calibration

    def per_pair(self, values: FloatArray) -> Any:
        """Return what the calibration says, for each pair, in kind."""
        return self.pairs.store.map(_ReadOff(self.edges, values), self.scores)


def judge_many(pairs: PairedRows, n_folds: int, rng: np.random.RandomState) -> ManyPairs:
    """Score all pairs by maps learned from a sample, and calibrate the scores as a histogram."""
    sample = _sampled(pairs, rng)
    with blas_for(sample):
        score, null_scores, sample_scores = _learn(sample, n_folds, rng)
    scores = pairs.map(score)
    edges = _edges(sample_scores, null_scores)
    counts = pairs.store.total(_CountPerBin(edges), scores)
    edges, counts = edges[counts > 0], counts[counts > 0]
    share = _null_fraction(score, sample, sample_scores, null_scores)
    return ManyPairs(pairs, scores, edges, null_scores, calibrate(edges, null_scores, share, counts))


def _null_fraction(
    score: FoldScores, sample: PairedRows, sample_scores: FloatArray, null_scores: FloatArray
) -> tuple[float, float] | None:
    """Share of wrong pairs and its error, from the sample, where a fold found nothing and says nothing about it."""
    is_scored = np.array([learned is not None for learned in score.maps])
    if is_scored.all() or not is_scored.any():
        return None
    scored = is_scored[to_host(sample.map(score.fold_of)).astype(np.int64)]
    return estimate_null_fraction(p_values(sample_scores[scored], null_scores))


def _sampled(pairs: PairedRows, rng: np.random.RandomState) -> PairedRows:
    """Return some of the pairs, in this computer's memory or on their device."""
    size = min(_SAMPLE, _SAMPLE_BYTES // (8 * (pairs.X.shape[1] + pairs.Y.shape[1])))
    rows = np.unique(rng.randint(pairs.n_pairs, size=size, dtype=np.int64))
    return pairs.near(rows)


def _learn(sample: PairedRows, n_folds: int, rng: np.random.RandomState) -> tuple[FoldScores, FloatArray, FloatArray]:
    """Learn a map for each fold from the pairs of the others; also score the sample and its re-pairings."""
    points = np.stack([point_numbers(table) for table in (sample.X, sample.Y)])
    d_x, d_y = sample.dimensions
    rule = FoldScores((None,) * n_folds, rng.uniform(1, 2, d_x), rng.uniform(1, 2, d_y))
    fold_of = to_host(sample.map(rule.fold_of)).astype(np.int64)
    trainer = Trainer(sample, points, rng, only_maps=True)
    maps: list[PairScorer | None] = []
    null: list[FloatArray] = [np.empty(0)]
    for fold in range(n_folds):
        learned = trainer.learn(np.flatnonzero(fold_of != fold))
        maps.append(learned)
        mine = rng.permutation(np.flatnonzero(fold_of == fold))
        if learned is not None:
            x, y = prepared_rows(sample, mine)
            fair = RePairing(points[:, mine], rng)
            null.append(re_paired_scores(learned, x, y, fair, _RE_PAIRINGS // sample.n_pairs))
    null_scores = np.concatenate(null)
    if not null_scores.size:  # nothing was learned, or nothing could be re-paired: no pair stands out
        rule = FoldScores((None,) * n_folds, rule.mix_x, rule.mix_y)
        return rule, np.zeros(1), np.zeros(1)
    rule = FoldScores(tuple(maps), rule.mix_x, rule.mix_y, lowest=float(null_scores.min()))
    return rule, null_scores, to_host(sample.map(rule))


def _edges(scores: FloatArray, null_scores: FloatArray) -> FloatArray:
    """Lower ends of the bins: finely spaced where scores and re-pairings lie, each of the highest by itself."""
    edges: list[FloatArray] = [np.array([min(scores.min(), null_scores.min())])]
    for values in (np.sort(scores), np.sort(null_scores)):
        for some in (values[np.unique(np.linspace(0, values.size - 1, _BINS).astype(int))], values[-_TAIL:]):
            edges.append((some[1:] + some[:-1]) / 2)  # between values: rounding moves none across
    return np.unique(np.concatenate(edges))


def _bin_of(scores: Any, edges: FloatArray) -> Any:
    xp = namespace(scores)
    above = xp.searchsorted(from_host(edges, scores), scores, side="right")
    return xp.maximum(above - 1, xp.zeros_like(above))
