"""Score every pair by a map learned without it, and re-pairings in the same way.

The pairs are dealt into folds. For each fold the map is learned on the others, then scores the fold's pairs and
its re-pairings: x_i with y_j, j != i. A wrong pair's x and y are independent, so it scores as a re-pairing does,
whatever the data look like and however the map was learned.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inlier.engine import PairedRows
from inlier.engine.blocks import Array, FloatArray
from inlier.robust_map import RobustMap, learn_map

_TRAINING_PAIRS = 20_000  # a map learned on more is hardly better; more are used only if these find nothing
_TRAINING_PAIRS_PER_DIMENSION = 40
_GROWTH = 4  # of the training pairs, when they found nothing
_MOST_RE_PAIRINGS = 4_000_000
_PAIRS_AT_ONCE = 50_000
_STEADY_PAIRS = 2_000  # with fewer, the folds are dealt several times and the scores averaged
_MOST_DEALS = 10


def cross_fit(
    pairs: PairedRows, points: Array, n_folds: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    """Return the scores of all pairs and the scores of re-pairings.

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
    n = pairs.n_pairs
    total, count, null = np.zeros(n), np.zeros(n), []
    for _ in range(int(np.clip(_STEADY_PAIRS // n, 1, _MOST_DEALS))):
        fold_of = _deal(points, min(n_folds, n // 2), rng)
        for fold in range(fold_of.max() + 1):
            learned = _learn(pairs, rng.permutation(np.flatnonzero(fold_of != fold)), rng)
            if learned is None:
                continue
            for mine in _handfuls(rng.permutation(np.flatnonzero(fold_of == fold))):
                x, y = (side.astype(np.float64, copy=False) for side in pairs.take(mine))
                total[mine] += learned.scores(x, y)
                count[mine] += 1
                null.append(_re_paired_scores(learned, x, y, points[:, mine], _MOST_RE_PAIRINGS // n))
    if not null:  # no fold found anything: every pair looks like every re-pairing
        return np.zeros(n), np.zeros(1)
    null_scores = np.concatenate(null)
    lowest = min(null_scores.min(), np.min(total[count > 0] / count[count > 0]))
    return np.where(count > 0, total / np.maximum(count, 1), lowest), null_scores


def _deal(points: Array, n_folds: int, rng: np.random.RandomState) -> Array:
    """Deal the pairs into folds of similar size; equal pairs go together, or they would know each other's answer."""
    _, group = np.unique(points, axis=1, return_inverse=True) if _has_repeats(points) else (None, None)
    if group is None:
        return rng.permutation(np.arange(points.shape[1]) % n_folds)
    fold_of_group = rng.permutation(np.arange(group.max() + 1) % n_folds)
    return fold_of_group[group]


def _has_repeats(points: Array) -> bool:
    return bool((points.max(axis=1) + 1 < points.shape[1]).all())


def _learn(pairs: PairedRows, shuffled: Array, rng: np.random.RandomState) -> RobustMap | None:
    """Learn from a part of the training pairs if there are very many, from more if that finds nothing."""
    size = max(_TRAINING_PAIRS, _TRAINING_PAIRS_PER_DIMENSION * max(pairs.dimensions))
    while True:
        x, y = (side.astype(np.float64, copy=False) for side in pairs.take(shuffled[:size]))
        learned = learn_map(x, y, rng)
        if learned is not None or size >= shuffled.size:
            return learned
        size *= _GROWTH


def _handfuls(rows: Array) -> Iterator[Array]:
    yield from np.array_split(rows, max(1, -(-rows.size // _PAIRS_AT_ONCE)))


def _re_paired_scores(learned: RobustMap, x: FloatArray, y: FloatArray, points: Array, per_pair: int) -> FloatArray:
    """Scores of x_i with y_j where neither point is one of pair i's own; all of them, or ``per_pair`` for each i."""
    n = len(x)
    if n - 1 <= per_pair:
        different = (points[0][:, None] != points[0]) & (points[1][:, None] != points[1])
        return learned.scores_of_all_pairings(x, y)[different]
    scores = []
    for shift in range(1, max(per_pair, 1) + 1):
        different = (points != np.roll(points, shift, axis=1)).all(axis=0)
        scores.append(learned.scores(x[different], np.roll(y, shift, axis=0)[different]))
    return np.concatenate(scores)
