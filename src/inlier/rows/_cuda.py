"""Choose and launch the CUDA kernels: rows on a CUDA device, numba able to reach it.

Room on the device comes from the library of the rows, which keeps what was freed for the next time; numba's own
allocations would wait for the device each time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows.algebra import cross_moment
from inlier.rows.blocks import compute_dtype, device_blocks
from inlier.rows.namespaces import dtype_name, from_host, is_host_array, namespace, to_host

if TYPE_CHECKING:
    from inlier.rows.block_work import PairMap, PairSum

_LOG = logging.getLogger(__name__)

WIDEST_ROW = 16
_MOST_PRODUCTS = 40  # sums that a thread can keep in registers
_BLOCKS = 1056  # eight for each of 132 multiprocessors
_STRIPS = 264  # of rows, for the columns of wide tables
_LANES = 32, 64  # threads that share a wide row, and a very wide one
_MOST_KEPT = 16  # of a row's values that a thread keeps
_COMMON_STREAM = 1  # CUDA's name for the stream on which work is done unless told otherwise
_MOST_INSIDE = 4_000_000  # values of a window that come to the host


@cache
def _kernels() -> ModuleType | None:
    """Return the kernels, or None where numba is missing, sees no device, or cannot compile for it."""
    try:
        cuda = import_module("numba.cuda")
        if not cuda.is_available():
            return None
        kernels = import_module("inlier.rows._cuda_kernels")
        tried = kernels.column_kernel(1)[_BLOCKS, kernels.THREADS]
        tried(cuda.to_device(np.ones((1, 1))), cuda.device_array((_BLOCKS, 3), dtype=np.float64))
        cuda.synchronize()
    except ImportError:
        return None
    except Exception:  # of the driver, the compiler, the linker: whatever it is, array algebra does the same, slower
        _LOG.warning("numba cannot use this CUDA device; matching goes on without compiled kernels", exc_info=True)
        return None
    return kernels


def kernels_on_cuda(*tables: Any) -> ModuleType | None:
    """Return the kernels if these arrays are on a CUDA device and of a form that they read."""
    return _kernels() if all(map(_suits, tables)) else None


def _suits(table: Any) -> bool:
    interface = getattr(table, "__cuda_array_interface__", None)
    contiguous = interface is not None and interface.get("strides") is None
    return contiguous and dtype_name(table) in ("float32", "float64", "uint8")


def cuda_sum(work: PairSum, X: Any, Y: Any, vectors: tuple[Any, ...]) -> FloatArray | None:
    """Sum over pairs, if there is a kernel for this moment."""
    d_x, d_y = int(X.shape[1]), int(Y.shape[1])
    n_x, n_y = d_x * (d_x + 1) // 2, d_y * (d_y + 1) // 2
    shapes = {"cross_moment": (d_x, d_y), "gram_step": (d_x, d_y), "product_moment": (n_x, n_y)}
    name = work.moment.__name__
    kernels = kernels_on_cuda(X, Y) if _is_simple(work) and not vectors else None
    if kernels is None or name not in shapes:
        return None
    if max(d_x, d_y) > WIDEST_ROW:
        return _wide_sum(kernels, work, X, Y) if name != "product_moment" and _is_wide_work(work, X, Y) else None
    if name == "product_moment" and n_x * n_y > _MOST_PRODUCTS:
        return None
    n_x, n_y = shapes[name]
    lines = _lines(kernels, _pair_kernels(d_x, d_y)[name], n_x * n_y, X, Y, _fixed(work, d_x, d_y))
    return lines.sum(axis=0).reshape(n_x, n_y)


def cuda_map(work: PairMap, X: Any, Y: Any) -> Any:
    """Score pairs on the device, if there is a kernel for this score."""
    name = getattr(work.score, "__name__", "")
    kernels = kernels_on_cuda(X, Y) if _is_simple(work) and name in ("bilinear", "leave_one_out") else None
    if kernels is None or work.matrix is None:
        return None
    d_x, d_y = int(X.shape[1]), int(Y.shape[1])
    scores = _empty(X, int(X.shape[0]))
    leave_out = name == "leave_one_out"
    if max(d_x, d_y) <= WIDEST_ROW:
        _pair_kernels(d_x, d_y)["scores"][_BLOCKS, kernels.THREADS](
            _view(X), _view(Y), _view(from_host(_fixed(work, d_x, d_y), X)), work.scale, leave_out, _view(scores)
        )
    elif _is_wide_work(work, X, Y):
        matrix = _matrix_for(work, X)
        for rows, x, y in _unit_pieces(kernels, work, X, Y):
            _score_rows(kernels, x @ matrix, x, y, work.scale, leave_out, scores[rows])
    else:
        return None
    return scores


def cuda_unit_rows(X: Any, mean: FloatArray, shortest: float, dtype: Any) -> Any:
    """Centred rows of unit length, on the device, in one reading; None where there is no kernel for them."""
    kernels = kernels_on_cuda(X)
    if kernels is None:
        return None
    return _unit_rows(kernels, X, from_host(mean, X), shortest, dtype)


def cuda_columns(kernels: ModuleType, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum, minimum and maximum of each column."""
    d = int(X.shape[1])
    if d > WIDEST_ROW:
        xp, lines = namespace(X), _empty(X, _STRIPS, 3 * d)
        kernels.wide_columns[(_STRIPS, -(-d // kernels.THREADS)), kernels.THREADS](_view(X), _view(lines))
        total, low, high = lines[:, :d], lines[:, d : 2 * d], lines[:, 2 * d :]
        return to_host(xp.sum(total, axis=0)), to_host(xp.min(low, axis=0)), to_host(xp.max(high, axis=0))
    lines = _lines(kernels, kernels.column_kernel(d), 3 * d, X)
    return lines[:, :d].sum(axis=0), lines[:, d : 2 * d].min(axis=0), lines[:, 2 * d :].max(axis=0)


def cuda_histogram(kernels: ModuleType, values: Any, low: float, high: float) -> tuple[Array, FloatArray, int]:
    """Counts and sums in buckets; a value's place in its bucket is rounded to one of ``FRACTION`` steps."""
    n_buckets = kernels.BUCKETS
    width = (high - low) / n_buckets
    found = namespace(values).zeros(2 * n_buckets + 3, dtype=namespace(values).float64, device=values.device)
    blocks = max(_BLOCKS, -(-int(values.shape[0]) // kernels.ROWS_PER_BLOCK))
    kernels.histogram[blocks, kernels.THREADS](_view(values), low, 1 / width, _view(found))
    counts, fractions, (zeros, beneath, beyond) = np.split(to_host(found), [n_buckets, 2 * n_buckets])
    within = (fractions + counts / 2) / kernels.FRACTION  # each was rounded down, by half a step on average
    within[[0, -1]] += beneath, beyond
    sums = counts * (low + width * np.arange(n_buckets)) + width * within
    return counts.astype(np.int64), sums, int(zeros)


def cuda_window(kernels: ModuleType, values: Any, low: float, high: float) -> tuple[Any, FloatArray, Any] | None:
    """Tails and inside of a window; None where too many are inside."""
    xp = namespace(values)
    inside, n_inside = _empty(values, _MOST_INSIDE), xp.zeros(1, dtype=xp.int64, device=values.device)
    lines = _lines(kernels, kernels.window, 6, values, low, high, after=(inside, n_inside))
    found = int(n_inside[0])
    if found > _MOST_INSIDE:
        return None
    below = (int(lines[:, 0].sum()), float(lines[:, 1].sum()), float(lines[:, 2].max()))
    above = (int(lines[:, 3].sum()), float(lines[:, 4].sum()), float(lines[:, 5].min()))
    return below, to_host(inside[:found]), above


def _pair_kernels(d_x: int, d_y: int) -> Any:
    return import_module("inlier.rows._cuda_pairs").pair_kernels(d_x, d_y)


def _lines(kernels: ModuleType, kernel: Any, width: int, X: Any, *others: Any, after: tuple[Any, ...] = ()) -> Array:
    """Launch a kernel that writes a line of numbers for each block, and fetch the lines."""
    partial = _empty(X, _BLOCKS, width)
    sent = (from_host(other, X) if is_host_array(other) else other for other in others)
    kernel[_BLOCKS, kernels.THREADS](*map(_view, (X, *sent, partial, *after)))
    return to_host(partial)


def _wide_sum(kernels: ModuleType, work: PairSum, X: Any, Y: Any) -> FloatArray:
    """Sum of x y^T, or with a matrix of (x^T U y) x y^T, over wide rows."""
    xp = namespace(X)
    matrix = None if work.matrix is None else _matrix_for(work, X)
    total: Any = 0.0
    for _, x, y in _unit_pieces(kernels, work, X, Y):
        weights = None
        if matrix is not None:
            weights = _empty(X, int(x.shape[0]))
            _score_rows(kernels, x @ matrix, x, y, 1.0, False, weights)
        total = xp.astype(cross_moment(x, y, weights), xp.float64) + total
    return to_host(total)


def _matrix_for(work: PairSum | PairMap, X: Any) -> Any:
    return from_host(np.asarray(work.matrix, dtype=compute_dtype(dtype_name(X))), X)


def _unit_pieces(kernels: ModuleType, work: PairSum | PairMap, X: Any, Y: Any) -> Iterator[tuple[slice, Any, Any]]:
    """Prepared wide rows, a piece at a time; nothing is sent between pieces, so that the device need not wait."""
    dtype = getattr(namespace(X), compute_dtype(dtype_name(X)).name)
    sides = [(T, from_host(m.mean, T), m.shortest) for T, m in ((X, work.map_x), (Y, work.map_y)) if m.mean is not None]
    for rows in device_blocks(int(X.shape[0]), int(X.shape[1] + Y.shape[1])):
        x, y = (_unit_rows(kernels, T[rows, :], mean, shortest, dtype) for T, mean, shortest in sides)
        yield rows, x, y


def _unit_rows(kernels: ModuleType, X: Any, mean: Any, shortest: float, dtype: Any) -> Any:
    out = namespace(X).empty(tuple(X.shape), dtype=dtype, device=X.device)
    launch = _row_kernels(kernels, X)["unit_rows"][_BLOCKS, kernels.THREADS]
    launch(_view(X), _view(mean), float(shortest) ** 2, _view(out))
    return out


def _score_rows(kernels: ModuleType, turned: Any, x: Any, y: Any, scale: float, leave_out: bool, out: Any) -> None:
    lanes = min(_LANES[0], int(kernels.THREADS))
    launch = kernels.row_kernels(lanes, 0)["row_scores"][_BLOCKS, kernels.THREADS]
    launch(*map(_view, (turned, x, y)), scale, leave_out, _view(out))


def _row_kernels(kernels: ModuleType, X: Any) -> Any:
    d = int(X.shape[1])
    lanes = 1 if d <= WIDEST_ROW else min(_LANES[d > _LANES[0] * _MOST_KEPT], int(kernels.THREADS))
    return kernels.row_kernels(lanes, min(d // lanes, _MOST_KEPT))


def _is_simple(work: PairSum | PairMap) -> bool:
    maps = work.map_x, work.map_y
    unchanged = all(row_map.linear is None and row_map.scale == 1.0 for row_map in maps)
    return unchanged and maps[0].unit_length == maps[1].unit_length


def _is_wide_work(work: PairSum | PairMap, X: Any, Y: Any) -> bool:
    """Whether both sides are scaled to rows of unit length, and of one type."""
    unit = all(row_map.unit_length and row_map.mean is not None for row_map in (work.map_x, work.map_y))
    return unit and compute_dtype(dtype_name(X)) == compute_dtype(dtype_name(Y))


def _fixed(work: PairSum | PairMap, d_x: int, d_y: int) -> FloatArray:
    """Means of both sides, the least squared lengths with a direction, whether rows get unit length, the matrix."""
    means = [np.zeros(d) if m.mean is None else m.mean for m, d in ((work.map_x, d_x), (work.map_y, d_y))]
    least = [work.map_x.shortest**2, work.map_y.shortest**2, float(work.map_x.unit_length)]
    matrix = np.zeros(0) if work.matrix is None else np.asarray(work.matrix, dtype=np.float64).ravel()
    return np.concatenate([*means, least, matrix])


def _empty(like: Any, *shape: int) -> Any:
    """Room for float64 numbers beside an array, not filled."""
    xp = namespace(like)
    return xp.empty(shape, dtype=xp.float64, device=like.device)


def _view(array: Any) -> Any:
    """Return a device array of another library as numba sees it, without a copy; anything else as it is."""
    if is_host_array(array) or isinstance(array, (bool, float)):
        return array
    interface = array.__cuda_array_interface__
    if interface.get("stream") not in (None, _COMMON_STREAM):  # the stream that kernels are on does not wait for it
        return _cuda().from_cuda_array_interface(interface, owner=array)
    return _view_of(interface["data"][0], tuple(interface["shape"]), interface["typestr"], interface.get("strides"))


@lru_cache(maxsize=64)
def _view_of(address: int, shape: tuple[int, ...], typestr: str, strides: tuple[int, ...] | None) -> Any:
    """Describe memory to numba, which takes as long as a small kernel; whoever launches one keeps the memory."""
    interface = {"data": (address, False), "shape": shape, "typestr": typestr, "strides": strides, "version": 2}
    return _cuda().from_cuda_array_interface(interface)


@cache
def _cuda() -> Any:
    return import_module("numba.cuda")
