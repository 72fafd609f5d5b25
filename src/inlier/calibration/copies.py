"""Rows that are nearly equal to a right pair's: copies of it."""

from __future__ import annotations

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.rows import PairedRows

_NEARLY = 0.5  # of the distance that only a hundredth of right rows have to their nearest: then rows are nearly equal
_RARE = 0.01
_MOST_RIGHT = 2_000  # right rows whose nearest neighbours are looked for
_ROWS_AT_ONCE = 500


def nearly_equal(pairs: PairedRows, rows: Array, is_right: Mask) -> Array:
    """Return for each row the right pair whose y is nearly equal to its own, -1 where there is none."""
    none, right = np.full(rows.size, -1), np.flatnonzero(is_right)
    some = right[:: max(1, right.size // _MOST_RIGHT)]
    if some.size < 2 or not rows.size:
        return none
    y = np.asarray(pairs.take(np.arange(pairs.n_pairs))[1], dtype=np.float64)
    typical = np.quantile(_nearest(y[some], y[some], skip_own=True)[0], _RARE)
    distance, nearest = _nearest(y[rows], y[right])
    return np.where(distance < _NEARLY * typical, right[nearest], none)


def _nearest(rows: FloatArray, others: FloatArray, *, skip_own: bool = False) -> tuple[FloatArray, Array]:
    """Distance to the nearest of the others, and which it is."""
    distance, nearest = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
    squares = np.einsum("ij,ij->i", others, others)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[start : start + _ROWS_AT_ONCE]
        apart = np.einsum("ij,ij->i", block, block)[:, None] - 2 * block @ others.T + squares
        if skip_own:
            apart[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        nearest[start : start + len(block)] = apart.argmin(axis=1)
        distance[start : start + len(block)] = np.sqrt(np.maximum(apart.min(axis=1), 0.0))
    return distance, nearest
