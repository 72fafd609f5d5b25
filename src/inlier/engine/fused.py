"""Choose and run the compiled kernels: narrow rows, enough of them, numba at hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from inlier.engine.blocks import Array, FloatArray
from inlier.engine.threads import run_in_threads

if TYPE_CHECKING:
    from inlier.engine.pairs import PairedRows
    from inlier.engine.row_maps import RowMap

FEWEST_ROWS = 4096  # below this plain NumPy takes under a millisecond, and numba's import a good part of a second
WIDEST_ROW = 16  # above this matrix products are faster
_UNROLLED = (1, 2, 3, 4, 6)  # dimensions with kernels of their own; each costs a compilation, once
_DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "uint8"))


@cache
def _kernels() -> ModuleType | None:
    """Return the kernels' module, or None where numba is missing, switched off or has nowhere to keep its code."""
    try:
        if import_module("numba").config.DISABLE_JIT:  # NUMBA_DISABLE_JIT=1
            return None
        return import_module("inlier.engine.kernels")
    except (ImportError, RuntimeError):  # the latter where no folder for compiled code can be written
        return None


def kernels_for(*tables: Array) -> ModuleType | None:
    """Return the kernels' module if it can and should read these tables."""
    suits = all(
        type(table) in (np.ndarray, np.memmap)
        and table.flags.c_contiguous
        and table.dtype in _DTYPES
        and table.dtype.isnative
        and table.shape[1] <= WIDEST_ROW
        for table in tables
    )
    return _kernels() if suits and len(tables[0]) >= FEWEST_ROWS else None


def fused_sum(
    pairs: PairedRows, moment: Callable[..., Any], row_vectors: tuple[FloatArray, ...], matrix: FloatArray | None
) -> FloatArray | None:
    """Sum ``moment`` over all pairs with its compiled version, if there is one for these pairs."""
    kernel = _kernel_with_pairs(pairs, moment)
    if kernel is None:
        return None
    arguments = [np.ascontiguousarray(v, dtype=np.float64) for v in row_vectors]
    if moment.__name__ == "cross_moment" and not row_vectors:
        arguments = [np.empty(0)]  # no weights
    if matrix is not None:
        arguments.append(np.ascontiguousarray(matrix, dtype=np.float64))
    return np.sum(run_in_threads(pairs.n_pairs, lambda rows: kernel(rows, *arguments)), axis=0)


def fused_map(pairs: PairedRows, score: Callable[..., Any], matrix: FloatArray | None, scores: FloatArray) -> bool:
    """Write ``score`` of every pair into ``scores`` with its compiled version, if there is one for these pairs."""
    kernel = _kernel_with_pairs(pairs, score)
    if kernel is None or matrix is None:
        return False
    matrix = np.ascontiguousarray(matrix, dtype=np.float64)
    run_in_threads(pairs.n_pairs, lambda rows: kernel(rows, scores, matrix))
    return True


def _kernel_with_pairs(pairs: PairedRows, function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the compiled version of a function of the vocabulary as a function of a range of rows."""
    maps = pairs.map_x, pairs.map_y
    simple = all(row_map.linear is None and row_map.scale == 1.0 for row_map in maps)
    alike = pairs.map_x.unit_length == pairs.map_y.unit_length
    kernels = kernels_for(pairs.X, pairs.Y) if simple and alike else None
    kernel = getattr(kernels, function.__name__, None)
    if kernel is None:
        return None
    preparation = (*map(_mean, maps), *(float(m.shortest) for m in maps), pairs.map_x.unit_length)
    X, Y = as_line(pairs.X), as_line(pairs.Y)
    return lambda rows, *arguments: kernel(X, Y, preparation, rows.start, rows.stop, *arguments)


def as_line(table: Array) -> Array:
    """Return a contiguous table as one long line of numbers, without a copy."""
    return np.asarray(table).reshape(-1)


def _mean(row_map: RowMap) -> FloatArray | tuple[float, ...]:
    """Return the mean as the kernels take it: a tuple where its length is worth compiling for."""
    mean = np.zeros(row_map.n_columns) if row_map.mean is None else row_map.mean
    return tuple(mean.tolist()) if mean.size in _UNROLLED else mean
