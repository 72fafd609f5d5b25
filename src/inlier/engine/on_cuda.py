"""Choose and launch the CUDA kernels: narrow rows on a CUDA device, numba able to reach it."""

from __future__ import annotations

import logging
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from inlier.engine.blocks import Array, FloatArray
from inlier.engine.namespaces import dtype_name, is_host_array, namespace

if TYPE_CHECKING:
    from inlier.engine.work import PairMap, PairSum

_LOG = logging.getLogger(__name__)

WIDEST_ROW = 16
_MOST_PRODUCTS = 40  # sums that a thread can keep in registers
_BLOCKS = 1056  # eight for each of 132 multiprocessors
_MOST_INSIDE = 4_000_000  # values of a window that come to the host


@cache
def _kernels() -> ModuleType | None:
    """Return the kernels, or None where numba is missing, sees no device, or cannot compile for it."""
    try:
        if not import_module("numba.cuda").is_available():
            return None
        kernels = import_module("inlier.engine.cuda_kernels")
        cuda_columns(kernels, np.ones((1, 1)))
    except ImportError:
        return None
    except Exception:  # of the driver, the compiler, the linker: whatever it is, array algebra does the same, slower
        _LOG.warning("numba cannot use this CUDA device; matching goes on without compiled kernels", exc_info=True)
        return None
    return kernels


def kernels_on_cuda(*tables: Any, widest: int | None = WIDEST_ROW) -> ModuleType | None:
    """Return the kernels if these arrays are on a CUDA device and narrow enough for them."""
    suits = all(
        hasattr(table, "__cuda_array_interface__")
        and dtype_name(table) in ("float32", "float64", "uint8")
        and table.__cuda_array_interface__.get("strides") is None
        and (table.ndim == 1 or widest is None or table.shape[1] <= widest)
        for table in tables
    )
    return _kernels() if suits else None


def cuda_sum(work: PairSum, X: Any, Y: Any, vectors: tuple[Any, ...]) -> FloatArray | None:
    """Sum over pairs, if there is a kernel for this moment."""
    d_x, d_y = int(X.shape[1]), int(Y.shape[1])
    n_x, n_y = d_x * (d_x + 1) // 2, d_y * (d_y + 1) // 2
    shapes = {"cross_moment": (d_x, d_y), "gram_step": (d_x, d_y), "product_moment": (n_x, n_y)}
    shape = shapes.get(work.moment.__name__)
    kernels = kernels_on_cuda(X, Y) if _is_simple(work) and not vectors else None
    if kernels is None or shape is None or (shape == (n_x, n_y) != (d_x, d_y) and n_x * n_y > _MOST_PRODUCTS):
        return None
    compiled = kernels.pair_kernels(d_x, d_y)["products" if work.moment.__name__ == "product_moment" else "moment"]
    matrix = np.zeros(1) if work.matrix is None else np.ascontiguousarray(work.matrix, dtype=np.float64).ravel()
    return (
        _lines(
            kernels, compiled, shape[0] * shape[1], X, Y, *_preparation(work, d_x, d_y), matrix, work.matrix is not None
        )
        .sum(axis=0)
        .reshape(shape)
    )


def cuda_map(work: PairMap, X: Any, Y: Any) -> Any:
    """Score pairs on the device, if there is a kernel for this score."""
    name = getattr(work.score, "__name__", "")
    kernels = kernels_on_cuda(X, Y) if _is_simple(work) and name in ("bilinear", "leave_one_out") else None
    if kernels is None or work.matrix is None:
        return None
    d_x, d_y = int(X.shape[1]), int(Y.shape[1])
    scores = _empty(X)
    matrix = np.ascontiguousarray(work.matrix, dtype=np.float64).ravel()
    kernels.pair_kernels(d_x, d_y)["scores"][_BLOCKS, kernels.THREADS](
        _view(X), _view(Y), *map(_sent, (*_preparation(work, d_x, d_y), matrix)), work.scale, name == "leave_one_out",
        _view(scores),
    )  # fmt: skip
    return scores


def cuda_unit_rows(X: Any, mean: FloatArray, shortest: float, dtype: Any) -> Any:
    """Centred rows of unit length, on the device, in one reading; None where there is no kernel for them."""
    kernels = kernels_on_cuda(X, widest=None)
    if kernels is None:
        return None
    out = namespace(X).empty(tuple(X.shape), dtype=dtype, device=X.device)
    kernels.unit_rows[_BLOCKS, kernels.THREADS](_view(X), _sent(mean), float(shortest) ** 2, _view(out))
    return out


def cuda_columns(kernels: ModuleType, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum, minimum and maximum of each column."""
    d = int(X.shape[1])
    lines = _lines(kernels, kernels.column_kernel(d), 3 * d, X)
    return lines[:, :d].sum(axis=0), lines[:, d : 2 * d].min(axis=0), lines[:, 2 * d :].max(axis=0)


def cuda_histogram(kernels: ModuleType, values: Any, low: float, high: float) -> tuple[Array, FloatArray, int]:
    """Counts and sums in buckets; a value's place in its bucket is rounded to one of ``FRACTION`` steps."""
    n_buckets = kernels.BUCKETS
    width = (high - low) / n_buckets
    counts, fractions, zeros = (_sent(np.zeros(size)) for size in (n_buckets, n_buckets, 1))
    blocks = max(_BLOCKS, -(-int(values.shape[0]) // kernels.ROWS_PER_BLOCK))
    kernels.histogram[blocks, kernels.THREADS](_view(values), low, 1 / width, counts, fractions, zeros)
    found = _fetched(counts)
    within = (_fetched(fractions) + found / 2) / kernels.FRACTION  # each was rounded down, by half a step on average
    return (
        found.astype(np.int64),
        found * (low + width * np.arange(n_buckets)) + width * within,
        int(_fetched(zeros)[0]),
    )


def cuda_window(kernels: ModuleType, values: Any, low: float, high: float) -> tuple[Any, FloatArray, Any] | None:
    """Tails and inside of a window; None where too many are inside."""
    inside, n_inside = _made((_MOST_INSIDE,)), _sent(np.zeros(1, dtype=np.int64))
    lines = _lines(kernels, kernels.window, 6, values, low, high, after=(inside, n_inside))
    found = int(_fetched(n_inside)[0])
    if found > _MOST_INSIDE:
        return None
    below = (int(lines[:, 0].sum()), float(lines[:, 1].sum()), float(lines[:, 2].max()))
    above = (int(lines[:, 3].sum()), float(lines[:, 4].sum()), float(lines[:, 5].min()))
    return below, _fetched(inside[:found]), above


def _lines(kernels: ModuleType, kernel: Any, width: int, *arguments: Any, after: tuple[Any, ...] = ()) -> FloatArray:
    """Launch a kernel that writes a line of numbers for each block, and fetch the lines."""
    partial = _made((_BLOCKS, width))
    ready = [argument if isinstance(argument, (bool, float)) else _view_or_send(argument) for argument in arguments]
    kernel[_BLOCKS, kernels.THREADS](*ready, partial, *after)
    return _fetched(partial)


def _is_simple(work: PairSum | PairMap) -> bool:
    maps = work.map_x, work.map_y
    unchanged = all(row_map.linear is None and row_map.scale == 1.0 for row_map in maps)
    return unchanged and maps[0].unit_length == maps[1].unit_length


def _preparation(work: PairSum | PairMap, d_x: int, d_y: int) -> tuple[FloatArray, FloatArray]:
    """Means of both sides in a row; the least squared lengths with a direction, and whether rows get unit length."""
    means = [np.zeros(d) if m.mean is None else m.mean for m, d in ((work.map_x, d_x), (work.map_y, d_y))]
    least = np.array([work.map_x.shortest**2, work.map_y.shortest**2, float(work.map_x.unit_length)])
    return np.concatenate(means), least


def _empty(like: Any) -> Any:
    xp = namespace(like)
    return xp.empty(int(like.shape[0]), dtype=xp.float64, device=like.device)


def _view_or_send(argument: Any) -> Any:
    return _sent(argument) if is_host_array(argument) else _view(argument)


def _view(array: Any) -> Any:
    """Return a device array of another library as numba sees it, without a copy."""
    return array if is_host_array(array) else import_module("numba.cuda").as_cuda_array(array)


def _sent(array: Array) -> Any:
    return import_module("numba.cuda").to_device(array)


def _made(shape: tuple[int, ...]) -> Any:
    """Room on the device, not filled."""
    return import_module("numba.cuda").device_array(shape, dtype=np.float64)


def _fetched(array: Any) -> Array:
    return np.asarray(array.copy_to_host())
