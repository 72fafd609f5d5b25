"""Choose and run the compiled kernels: narrow rows, enough of them, numba at hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows.namespaces import is_host_array

if TYPE_CHECKING:
    from inlier.rows.block_work import PairMap, PairSum
    from inlier.rows.row_maps import RowMap

FEWEST_ROWS = 4096  # below this plain NumPy takes under a millisecond, and numba's import a good part of a second
WIDEST_ROW = 16  # above this matrix products are faster
_UNROLLED = (1, 2, 3, 4, 6)  # dimensions with kernels of their own; each costs a compilation, once
_DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "uint8"))
_WIDE_DTYPES = _DTYPES[:2]  # those that are computed in as they are


@cache
def _kernels() -> ModuleType | None:
    """Return the kernels' module, or None where numba is missing, switched off or has nowhere to keep its code."""
    try:
        if import_module("numba").config.DISABLE_JIT:  # NUMBA_DISABLE_JIT=1
            return None
        return import_module("inlier.rows._numba")
    except (ImportError, RuntimeError):  # the latter where no folder for compiled code can be written
        return None


def kernels_for(*tables: Array, widest: int = WIDEST_ROW) -> ModuleType | None:
    """Return the kernels' module if it can and should read these tables."""
    suits = all(
        type(table) in (np.ndarray, np.memmap)
        and table.flags.c_contiguous
        and table.dtype in _DTYPES
        and table.dtype.isnative
        and (table.ndim == 1 or table.shape[1] <= widest)
        for table in tables
    )
    return _kernels() if suits and len(tables[0]) >= FEWEST_ROWS else None


def fused_sum(work: PairSum, X: Array, Y: Array, vectors: tuple[FloatArray, ...]) -> FloatArray | None:
    """Sum over a block of pairs with the compiled version of the moment, if there is one for these rows."""
    kernel = _kernel(work, X, Y)
    if kernel is None:
        return None
    arguments = [np.ascontiguousarray(v, dtype=np.float64) for v in vectors]
    if work.moment.__name__ == "cross_moment" and not vectors:
        arguments = [np.empty(0)]  # no weights
    if work.matrix is not None:
        arguments.append(np.ascontiguousarray(work.matrix, dtype=np.float64))
    return kernel(as_line(X), as_line(Y), _preparation(work), 0, len(X), *arguments)


def fused_sums(works: Sequence[Any], X: Array, Y: Array) -> tuple[FloatArray, ...] | None:
    """Both sums that the eigenvector takes, in one reading, if these are the ones and the rows allow it."""
    names = tuple(getattr(getattr(work, "moment", None), "__name__", "") for work in works)
    if names != ("product_moment", "cross_moment") or _kernel(works[0], X, Y) is None:
        return None
    kernels = _kernels()
    assert kernels is not None
    sums: tuple[FloatArray, ...] = kernels.product_and_cross_moment(
        as_line(X), as_line(Y), _preparation(works[0]), 0, len(X)
    )
    return sums


def fused_map(work: PairMap, X: Array, Y: Array, scores: FloatArray) -> bool:
    """Score a block of pairs with the compiled version; False if there is none for these rows."""
    kernel = None if work.matrix is None else _kernel(work, X, Y)
    if kernel is None:
        return False
    matrix = np.ascontiguousarray(work.matrix, dtype=np.float64)
    kernel(as_line(X), as_line(Y), _preparation(work), 0, len(X), scores, matrix, float(work.scale))
    return True


class PreparedRows:
    """Centred rows of unit length, a block at a time into one and the same buffer: for rows of one type and width.

    Where the compiled version does not apply, the row map itself is called.
    """

    def __init__(self, row_map: RowMap, table: Any) -> None:
        self._map = row_map
        simple = row_map.unit_length and row_map.linear is None and row_map.scale == 1.0
        suits = simple and is_host_array(table) and table.dtype in _WIDE_DTYPES
        self._kernels = kernels_for(table, widest=table.shape[1]) if suits else None
        if self._kernels is not None and row_map.mean is not None:
            self._near = row_map.mean.astype(table.dtype)
            self._rest = (row_map.mean - self._near).astype(table.dtype)
            self._buffer = np.empty((0, table.shape[1]), dtype=table.dtype)

    def __call__(self, block: Any) -> Any:
        """Return the rows of one block, until the next."""
        if self._kernels is None:
            return self._map(block)
        if len(self._buffer) < len(block):
            self._buffer = np.empty_like(block)
        out = self._buffer[: len(block)]
        self._kernels.unit_rows(as_line(block), self._near, self._rest, self._map.shortest, out)
        return out


def _kernel(work: PairSum | PairMap, X: Array, Y: Array) -> Any:
    """Return the compiled version of a function of the vocabulary, if it can prepare and read these rows."""
    maps = work.map_x, work.map_y
    simple = all(row_map.linear is None and row_map.scale == 1.0 for row_map in maps)
    alike = maps[0].unit_length == maps[1].unit_length
    function = getattr(work, "moment", None) or getattr(work, "score", None)
    return getattr(kernels_for(X, Y) if simple and alike else None, getattr(function, "__name__", ""), None)


def _preparation(work: PairSum | PairMap) -> tuple[Any, ...]:
    maps = work.map_x, work.map_y
    means, shortest = map(_mean, maps), (float(row_map.shortest) for row_map in maps)
    return (*means, *map(_centre, maps), *shortest, work.map_x.unit_length)


def as_line(table: Array) -> Array:
    """Return a contiguous table as one long line of numbers, without a copy."""
    return np.asarray(table).reshape(-1)


def _mean(row_map: RowMap) -> FloatArray | tuple[float, ...]:
    """Return the mean as the kernels take it: a tuple where its length is worth compiling for."""
    centre = _centre(row_map)
    return tuple(centre.tolist()) if centre.size in _UNROLLED else centre


def _centre(row_map: RowMap) -> FloatArray:
    return np.zeros(row_map.n_columns) if row_map.mean is None else np.ascontiguousarray(row_map.mean, dtype=np.float64)
