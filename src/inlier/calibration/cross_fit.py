"""Score every pair by what was learned without it, and re-pairings in the same way.

The pairs are dealt into folds. What is learned on the others (see `inlier.calibration.strategy`) scores the fold's
pairs and its re-pairings: x_i with y_j, j != i. A wrong pair's x and y are independent, so it scores as a
re-pairing does, whatever the data look like and whatever was learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.linear_map import RobustMap
from inlier.calibration.p_values import calibrate
from inlier.calibration.strategy import Learner, PairScorer, prepared_rows
from inlier.rows import PairedRows
from inlier.rows.namespaces import from_host, take_rows, to_host
from inlier.rows.null_pairs import RePairing
from inlier.rows.threads import single_threaded_blas

_TRAINING_PAIRS = 5_000  # a map learned on more is hardly better; more are used only if these do not suffice
_TRAINING_PAIRS_PER_DIMENSION = 200
_GROWTH = 4  # of the training pairs, when what they found is not confirmed
_MOST_GROWTH = 16
_CONFIRMED = 0.01  # detection p-value on pairs that were not learned from
_MOST_RE_PAIRINGS = 1_000_000
_WORTH_A_MATRIX = 100  # re-pairings of one pair above which they are computed as a matrix product
_NARROW = 500  # dimensions up to which threads inside a matrix product cost more than they save
_PAIRS_AT_ONCE = 50_000
_STEADY_PAIRS = 1_000  # with fewer, the folds are dealt several times, so that the luck of one deal matters less
_MOST_DEALS = 10


def cross_fit(
    pairs: PairedRows, points: Array, n_folds: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    """Return the scores of all pairs, one row per deal of the folds, and the scores of re-pairings.

    Where nothing was learned that could score a pair, its score is NaN.

    Parameters
    ----------
    pairs : PairedRows
        Prepared for `learn_map`: centred, unit mean square.
    points : ndarray of int, shape (2, n)
        Numbers that are equal for equal points, of X and of Y. A point is never re-paired with itself, and
        equal pairs share a fold.
    n_folds : int
        Number of folds; fewer where there are not two pairs for each.
    rng : RandomState
        Deals the folds, the training pairs and the re-pairings.
    """
    with blas_for(pairs):
        return _cross_fit(pairs, points, n_folds, rng)


def blas_for(pairs: PairedRows) -> AbstractContextManager[None]:
    """Keep matrix products to one thread, unless the rows are wide."""
    return single_threaded_blas() if max(pairs.dimensions) <= _NARROW else nullcontext()


def _cross_fit(
    pairs: PairedRows, points: Array, n_folds: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    n = pairs.n_pairs
    n_deals = int(np.clip(_STEADY_PAIRS // n, 1, _MOST_DEALS))
    parts: list[_Scored] = []
    trainer = Trainer(pairs, points, rng)
    for deal in range(n_deals):
        fold_of = _deal(points, min(n_folds, n // 2), rng)
        for fold in np.unique(fold_of):
            learned = trainer.learn(np.flatnonzero(fold_of != fold))
            if learned is None:
                continue
            for mine in _handfuls(rng.permutation(np.flatnonzero(fold_of == fold))):
                x, y = prepared_rows(pairs, mine)
                fair = RePairing(points[:, mine], rng)
                null = re_paired_scores(learned, x, y, fair, _MOST_RE_PAIRINGS // (n * n_deals))
                parts.append(_Scored(deal, mine, learned, to_host(learned.scores(x, y)), null))
    if sum(part.null_scores.size for part in parts) == 0:  # nothing was learned, or could be re-paired
        return np.full((1, n), np.nan), np.zeros(1)
    return _together(parts, np.full((n_deals, n), np.nan))


@dataclass(frozen=True, eq=False)
class _Scored:
    """Some pairs of one deal, with their scores and those of their re-pairings, by one that has not seen them."""

    deal: int
    rows: Array
    by: PairScorer
    scores: FloatArray
    null_scores: FloatArray

    def standardised(self) -> _Scored:
        """In units of what re-pairings did where this was learned."""
        standing = self.by.standing
        scores, null = ((values - standing.centre) / standing.spread for values in (self.scores, self.null_scores))
        return replace(self, scores=scores, null_scores=null)


def _together(parts: list[_Scored], scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fill in the scores of every deal; the maps' are on one scale, those of witnesses are brought to one."""
    if not all(isinstance(part.by, RobustMap) for part in parts):
        parts = [part.standardised() for part in parts]
    for part in parts:
        scores[part.deal, part.rows] = part.scores
    return scores, np.concatenate([part.null_scores for part in parts])


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


class Trainer:
    """Learns; from a part of the pairs if there are very many, from more if the rest does not confirm it."""

    def __init__(self, pairs: PairedRows, points: Array, rng: np.random.RandomState, only_maps: bool = False) -> None:
        self._pairs, self._points, self._rng = pairs, points, rng
        self._learner = Learner(pairs, points, rng, only_maps)
        self._size = max(_TRAINING_PAIRS, _TRAINING_PAIRS_PER_DIMENSION * max(pairs.dimensions))
        self._largest = _MOST_GROWTH * self._size

    def learn(self, training: Array) -> PairScorer | None:
        """Learn from some of the training pairs; None if nothing is found."""
        shuffled = self._rng.permutation(training)
        size, thorough = self._size, True
        while size < shuffled.size:
            learned = self._learner.learn(shuffled[:size], thorough=thorough)
            if learned is not None and self._is_confirmed(learned, shuffled[size : 2 * size]):
                self._size = size  # what one fold needed, the next will
                return learned
            if size >= self._largest:
                self._largest = self._size  # nothing to be found here: the other folds need not look as hard
                return learned
            size, thorough = size * _GROWTH, False
        return self._learner.learn(shuffled, thorough=thorough)

    def _is_confirmed(self, learned: PairScorer, rows: Array) -> bool:
        """Whether pairs that the map has not seen score higher than their re-pairings."""
        x, y = prepared_rows(self._pairs, rows)
        null = re_paired_scores(learned, x, y, RePairing(self._points[:, rows], self._rng), per_pair=4)
        return null.size > 0 and calibrate(to_host(learned.scores(x, y)), null).detection_p_value <= _CONFIRMED


def _handfuls(rows: Array) -> Iterator[Array]:
    yield from np.array_split(rows, max(1, -(-rows.size // _PAIRS_AT_ONCE)))


def re_paired_scores(learned: PairScorer, x: Any, y: Any, re_pairing: RePairing, per_pair: int) -> FloatArray:
    """Scores of x_i with y_j that are wrong for sure, about ``per_pair`` for each i."""
    if per_pair >= _WORTH_A_MATRIX or x.shape[0] <= _WORTH_A_MATRIX:
        some = slice(0, min(max(per_pair, _WORTH_A_MATRIX), x.shape[0]))  # they come shuffled: as good as any
        return to_host(learned.scores_of_all_pairings(x, y[some, :])[from_host(re_pairing.with_each_of(some), x)])
    scores, everyone = [], np.arange(x.shape[0])
    for shift in range(1, max(per_pair, 1) + 1):
        first, second = re_pairing.among(everyone, np.roll(everyone, shift))
        scores.append(to_host(learned.scores(take_rows(x, first), take_rows(y, second))))
    return np.concatenate(scores)
