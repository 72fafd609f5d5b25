"""Rows that are nearly equal to a right pair's: copies of it."""

from __future__ import annotations

import numpy as np

from inlier._typing import Array, FloatArray, Mask

_NEARLY = 0.5  # of the distance that only a hundredth of right rows have to their nearest: then rows are nearly equal
_RARE = 0.01
_MOST_RIGHT = 2_000  # right rows whose nearest neighbours are looked for
_ROWS_AT_ONCE = 500


def nearly_equal(tables: tuple[FloatArray, FloatArray], rows: Array, is_right: Mask) -> Array:
    """Return of all rows the right pair whose y, or whose x, these nearly repeat; -1 where they repeat none."""
    copy_of, right = np.full(is_right.size, -1), np.flatnonzero(is_right)
    some = right[:: max(1, right.size // _MOST_RIGHT)]
    if some.size < 2 or not rows.size:
        return copy_of
    for table in tables:
        typical = np.quantile(_nearest(table[some], table[some], skip_own=True)[0], _RARE)
        distance, nearest = _nearest(table[rows], table[right])
        repeats = distance < _NEARLY * typical
        copy_of[rows[repeats]] = right[nearest[repeats]]
    return copy_of


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
