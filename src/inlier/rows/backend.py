"""The one dispatch: which code computes on a block of rows.

`Plain` (see `inlier.rows.algebra`) computes on anything. A faster backend is a subclass that overrides the block
functions it speeds up, says which blocks it takes, and stands in ``_BACKENDS``; what it cannot do, `Plain` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows._cuda import Cuda
from inlier.rows.algebra import Maps, Plain, Rows
from inlier.rows.threads import pieces

FEWEST_ROWS = 4096  # below this plain NumPy takes under a millisecond, and numba's import a good part of a second
WIDEST_ROW = 16  # above this matrix products are faster
_WIDEST_SUMMARY = 4096  # columns whose running sums, minima and maxima stay in cache
_ROWS_BESIDE = 8  # narrow rows that are summarised as one wide row
_AT_A_TIME = 3  # coordinates that the kernel takes together
_NOTHING, _NO_MATRIX = np.empty(0), np.empty((0, 0))


class Numba(Plain):
    """Tables of the host in C order, of float32, float64 or uint8: narrow rows go through one compiled kernel."""

    def takes(self, *blocks: Any) -> bool:
        """Whether the blocks are NumPy's, of a form that the kernels read, and long enough to be worth it."""
        suits = all(
            type(block) in (np.ndarray, np.memmap)
            and block.dtype.char in "fdB"
            and block.dtype.isnative
            and block.flags.c_contiguous
            for block in blocks
        )
        return suits and len(blocks[0]) >= FEWEST_ROWS and _kernels() is not None

    def prepared(self, X: Array, Y: Array, maps: Maps) -> Iterator[tuple[slice, Rows, Rows]]:
        """Yield prepared rows, both sides of each piece in the buffers of the one before."""
        sides = [_UnitRows(table, row_map) for table, row_map in zip((X, Y), maps, strict=True)]
        for rows in pieces(X, Y):
            x, y = (side(rows) for side in sides)
            yield rows, x, y

    def cross_moment(self, X: Array, Y: Array, maps: Maps, weights: Any = None) -> FloatArray:
        """Sum of w_i x_i y_i^T."""
        if not _is_for_kernel(X, Y, maps):
            return super().cross_moment(X, Y, maps, weights)
        total = _room(X.shape[1], Y.shape[1])
        weights = _NOTHING if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        _read(X, Y, maps, weights=weights, total=total)
        return total[: X.shape[1], : Y.shape[1]]

    def gram_step(self, X: Array, Y: Array, maps: Maps, matrix: FloatArray) -> FloatArray:
        """Sum of (x_i^T U y_i) x_i y_i^T."""
        if not _is_for_kernel(X, Y, maps):
            return super().gram_step(X, Y, maps, matrix)
        total = _room(X.shape[1], Y.shape[1])
        _read(X, Y, maps, matrix=matrix, total=total)
        return total[: X.shape[1], : Y.shape[1]]

    def product_moments(self, X: Array, Y: Array, maps: Maps) -> tuple[FloatArray, FloatArray]:
        """Both sums in one reading."""
        if not _is_for_kernel(X, Y, maps):
            return super().product_moments(X, Y, maps)
        d_x, d_y = X.shape[1], Y.shape[1]
        p, q = d_x * (d_x + 1) // 2, d_y * (d_y + 1) // 2
        total, products = _room(d_x, d_y), _room(p, q)
        _read(X, Y, maps, total=total, products=products)
        return products[:p, :q], total[:d_x, :d_y]

    def bilinear(self, X: Array, Y: Array, maps: Maps, matrix: FloatArray, scale: float) -> FloatArray:
        """Return ``scale`` x_i^T U y_i of each pair."""
        if not _is_for_kernel(X, Y, maps):
            return super().bilinear(X, Y, maps, matrix, scale)
        return _read(X, Y, maps, matrix=matrix, scores=np.empty(len(X)), scale=scale)

    def leave_one_out(self, X: Array, Y: Array, maps: Maps, matrix: FloatArray, scale: float) -> FloatArray:
        """Return ``scale`` (x_i^T U y_i - |x_i|^2 |y_i|^2) of each pair."""
        if not _is_for_kernel(X, Y, maps):
            return super().leave_one_out(X, Y, maps, matrix, scale)
        return _read(X, Y, maps, matrix=matrix, scores=np.empty(len(X)), scale=scale, own_share=1.0)

    def columns(self, block: Array) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sum, minimum and maximum of each column."""
        d = block.shape[1]
        if d > _WIDEST_SUMMARY:
            return super().columns(block)
        found: tuple[FloatArray, FloatArray, FloatArray] = _kernels().columns(
            _as_line(block), d, _ROWS_BESIDE if d <= WIDEST_ROW else 1
        )
        return found

    def histogram(self, values: Array, low: float, high: float, n_buckets: int) -> tuple[Array, FloatArray, int]:
        """Number and sum of the values in each bucket, and how many are exactly 0."""
        per_bucket = n_buckets / (high - low)
        if not np.isfinite(per_bucket) or values.dtype != np.float64:
            return super().histogram(values, low, high, n_buckets)
        counts, sums, zeros = _kernels().histogram(values, low, per_bucket, n_buckets)
        return counts.sum(axis=0), sums.sum(axis=0), zeros


_BACKENDS: tuple[Plain, ...] = (Numba(), Cuda(), Plain())  # the first that takes the blocks computes on them


def backend_for(*blocks: Any) -> Plain:
    """Return what computes on these blocks."""
    return next(backend for backend in _BACKENDS if backend.takes(*blocks))


@cache
def _kernels() -> Any:
    """Return the kernels' module, or None where numba is missing or switched off."""
    try:
        kernels: ModuleType = import_module("inlier.rows._numba")
        return None if import_module("numba").config.DISABLE_JIT else kernels  # NUMBA_DISABLE_JIT=1
    except ImportError:
        return None


def _is_for_kernel(X: Array, Y: Array, maps: Maps) -> bool:
    """Whether rows are narrow, and their maps those that the kernel knows."""
    return max(X.shape[1], Y.shape[1]) <= WIDEST_ROW and maps.only_centre


def _read(
    X: Array,
    Y: Array,
    maps: Maps,
    *,
    matrix: FloatArray = _NO_MATRIX,
    weights: FloatArray = _NOTHING,
    scores: FloatArray = _NOTHING,
    scale: float = 1.0,
    own_share: float = 0.0,
    total: FloatArray = _NO_MATRIX,
    products: FloatArray = _NO_MATRIX,
) -> FloatArray:
    """Run the kernel: one type for both sides, everything filled up to multiples of three."""
    common = np.float32 if X.dtype != np.float64 and Y.dtype != np.float64 else np.float64
    lines = [_as_line(table, common) for table in (X, Y)]
    centres = [_filled_up(np.zeros(m.n_columns) if m.mean is None else m.mean) for m in maps]
    unit_length = maps.x.unit_length
    least = [m.shortest**2 if unit_length else -1.0 for m in maps]
    preparation = (X.shape[1], Y.shape[1], *centres, *least, unit_length)
    _kernels().read_pairs(
        *lines, preparation, _filled_up(matrix), weights, scores, float(scale), own_share, total, products
    )
    return scores


def _as_line(table: Array, dtype: Any = None) -> Array:
    """Return a table as one long line of float32 or float64 numbers, without a copy where it is one already."""
    smallest = np.float64 if table.dtype == np.float64 else np.float32
    return np.asarray(table, dtype=dtype or smallest).reshape(-1)


def _room(*shape: int) -> FloatArray:
    return np.zeros([-(-size // _AT_A_TIME) * _AT_A_TIME for size in shape])


def _filled_up(matrix: FloatArray) -> FloatArray:
    """Zeros beyond the last row and column, up to multiples of three."""
    filled = _room(*matrix.shape)
    filled[tuple(map(slice, matrix.shape))] = matrix
    return filled


class _UnitRows:
    """Prepared rows of one table: wide ones by the kernel, into one and the same buffer."""

    def __init__(self, table: Array, row_map: Any) -> None:
        self._table, self._map, self._buffer = table, row_map, None
        if row_map.only_centres and row_map.unit_length and table.dtype != np.uint8:
            self._buffer = np.empty((0, table.shape[1]), dtype=table.dtype)

    def __call__(self, rows: slice) -> Array:
        block = self._table[rows]
        if self._buffer is None:
            return self._map(block)
        if len(self._buffer) < len(block):
            self._buffer = np.empty_like(block)
        out = self._buffer[: len(block)]
        _kernels().unit_rows(np.asarray(block), self._map.mean, self._map.shortest, out)
        return out
