"""Score every pair by a map learned without it, and re-pairings in the same way.

The pairs are dealt into folds. For each fold the map is learned on the others, then scores the fold's pairs and
its re-pairings: x_i with y_j, j != i. A wrong pair's x and y are independent, so it scores as a re-pairing does,
whatever the data look like and however the map was learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from inlier.calibration import calibrate
from inlier.engine import PairedRows
from inlier.engine.blocks import Array, FloatArray
from inlier.engine.namespaces import from_host, namespace, take_rows, to_host
from inlier.engine.threads import single_threaded_blas
from inlier.robust_map import RobustMap, learn_map

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
    scores = np.full((n_deals, n), np.nan)
    null: list[FloatArray] = [np.empty(0)]
    trainer = Trainer(pairs, points, rng)
    for deal in scores:
        fold_of = _deal(points, min(n_folds, n // 2), rng)
        for fold in np.unique(fold_of):
            learned = trainer.learn(np.flatnonzero(fold_of != fold))
            if learned is None:
                continue
            for mine in _handfuls(rng.permutation(np.flatnonzero(fold_of == fold))):
                x, y = prepared_rows(pairs, mine)
                deal[mine] = to_host(learned.scores(x, y))
                null.append(re_paired_scores(learned, x, y, points[:, mine], _MOST_RE_PAIRINGS // (n * n_deals)))
    null_scores = np.concatenate(null)
    if null_scores.size == 0:  # nothing was learned, or nothing could be re-paired: no pair stands out
        return np.zeros((1, n)), np.zeros(1)
    # A fold that found nothing says nothing for its pairs: they rank below every re-pairing.
    return np.nan_to_num(scores, nan=min(null_scores.min(), np.nanmin(scores))), null_scores


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
    """Learns maps; from a part of the pairs if there are very many, from more if the rest does not confirm it."""

    def __init__(self, pairs: PairedRows, points: Array, rng: np.random.RandomState) -> None:
        self._pairs, self._points, self._rng = pairs, points, rng
        self._size = max(_TRAINING_PAIRS, _TRAINING_PAIRS_PER_DIMENSION * max(pairs.dimensions))
        self._largest = _MOST_GROWTH * self._size

    def learn(self, training: Array) -> RobustMap | None:
        """Learn from some of the training pairs; None if nothing is found."""
        shuffled = self._rng.permutation(training)
        size = self._size
        while size < shuffled.size:
            learned = self._learn(shuffled[:size])
            if learned is not None and self._is_confirmed(learned, shuffled[size : 2 * size]):
                self._size = size  # what one fold needed, the next will
                return learned
            if size >= self._largest:
                self._largest = self._size  # nothing to be found here: the other folds need not look as hard
                return learned
            size *= _GROWTH
        return self._learn(shuffled)

    def _learn(self, rows: Array) -> RobustMap | None:
        return learn_map(*prepared_rows(self._pairs, rows), self._rng, self._points[:, rows])

    def _is_confirmed(self, learned: RobustMap, rows: Array) -> bool:
        """Whether pairs that the map has not seen score higher than their re-pairings."""
        x, y = prepared_rows(self._pairs, rows)
        null = re_paired_scores(learned, x, y, self._points[:, rows], per_pair=4)
        return null.size > 0 and calibrate(to_host(learned.scores(x, y)), null).detection_p_value <= _CONFIRMED


def prepared_rows(pairs: PairedRows, rows: Array) -> tuple[Any, Any]:
    """Rows x and y of some pairs as the map is learned from them: in float64, in memory or on their device."""
    some = pairs.near(rows)
    x, y = some.map_x(some.X), some.map_y(some.Y)
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False), xp.astype(y, xp.float64, copy=False)


def _handfuls(rows: Array) -> Iterator[Array]:
    yield from np.array_split(rows, max(1, -(-rows.size // _PAIRS_AT_ONCE)))


def re_paired_scores(learned: RobustMap, x: Any, y: Any, points: Array, per_pair: int) -> FloatArray:
    """Scores of x_i with y_j where neither point is one of pair i's own, about ``per_pair`` for each i."""
    if per_pair >= _WORTH_A_MATRIX or x.shape[0] <= _WORTH_A_MATRIX:
        some = slice(0, min(max(per_pair, _WORTH_A_MATRIX), x.shape[0]))  # they come shuffled: as good as any
        different = (points[0][:, None] != points[0][some]) & (points[1][:, None] != points[1][some])
        return to_host(learned.scores_of_all_pairings(x, y[some, :])[from_host(different, x)])
    scores = []
    for shift in range(1, max(per_pair, 1) + 1):
        first = np.flatnonzero((points != np.roll(points, shift, axis=1)).all(axis=0))
        second = (first - shift) % points.shape[1]
        scores.append(to_host(learned.scores(take_rows(x, first), take_rows(y, second))))
    return np.concatenate(scores)
