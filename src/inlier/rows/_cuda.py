"""The backend for rows on a CUDA device: chooses and launches the kernels that numba compiles for it.

Room on the device comes from the library of the rows, which keeps what was freed for the next time; numba's own
allocations would wait for the device each time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows.backend import (
    Maps,
    Plain,
    Rows,
    compute_dtype,
    cross_moment,
    dtype_name,
    from_host,
    is_host_array,
    namespace,
    to_host,
)
from inlier.rows.threads import pieces

_LOG = logging.getLogger(__name__)

_WIDEST_ROW = 16  # that a thread takes whole
_MOST_PRODUCTS = 40  # sums that a thread can keep in registers
_BLOCKS = 1056  # eight for each of 132 multiprocessors
_STRIPS = 264  # of rows, for the columns of wide tables
_LANES = 32, 64  # threads that share a wide row, and a very wide one
_MOST_KEPT = 16  # of a row's values that a thread keeps
_MOST_INSIDE = 4_000_000  # values of a window that come to the host
_COMMON_STREAM = 1  # CUDA's name for the stream on which work is done unless told otherwise


class Cuda(Plain):
    """Arrays on a CUDA device, torch's or CuPy's, where numba can compile for it."""

    def takes(self, *blocks: Any) -> bool:
        """Whether the blocks are on a CUDA device and of a form that the kernels read."""
        return all(map(_suits, blocks)) and _kernels() is not None

    def prepared(self, X: Any, Y: Any, maps: Maps) -> Iterator[tuple[slice, Rows, Rows]]:
        """Yield prepared rows; means are sent once and nothing between pieces, so that the device need not wait."""
        tables = zip((X, Y), maps, strict=True)
        sides = [(T, m, None if m.mean is None or not _is_unit(m) else from_host(m.mean, T)) for T, m in tables]
        for rows in pieces(X, Y):
            x, y = (m(T[rows, :]) if mean is None else _unit_rows(T[rows, :], mean, m.shortest) for T, m, mean in sides)
            yield rows, x, y

    def cross_moment(self, X: Any, Y: Any, maps: Maps, weights: Any = None) -> FloatArray:
        """Sum of w_i x_i y_i^T; narrow rows without weights by a kernel."""
        if weights is not None or not _is_narrow(X, Y, maps):
            return super().cross_moment(X, Y, maps, weights)
        return _pair_sums("cross_moment", X, Y, maps, (X.shape[1], Y.shape[1]))

    def gram_step(self, X: Any, Y: Any, maps: Maps, matrix: FloatArray) -> FloatArray:
        """Sum of (x_i^T U y_i) x_i y_i^T."""
        if _is_narrow(X, Y, maps):
            return _pair_sums("gram_step", X, Y, maps, (X.shape[1], Y.shape[1]), matrix)
        if not _is_wide(X, Y, maps):
            return super().gram_step(X, Y, maps, matrix)
        sent = _matrix_for(matrix, X)
        return self._summed(
            X, Y, maps, lambda rows, x, y: cross_moment(x, y, _scored(x, y, sent, 1.0, False, _empty(X, x.shape[0])))
        )

    def product_moments(self, X: Any, Y: Any, maps: Maps) -> tuple[FloatArray, FloatArray]:
        """Sums of the distinct products x_a x_c y_b y_e, and of x_a y_b."""
        shape = tuple(d * (d + 1) // 2 for d in (X.shape[1], Y.shape[1]))
        if not _is_narrow(X, Y, maps) or shape[0] * shape[1] > _MOST_PRODUCTS:
            return super().product_moments(X, Y, maps)
        return _pair_sums("product_moment", X, Y, maps, shape), self.cross_moment(X, Y, maps)

    def bilinear(self, X: Any, Y: Any, maps: Maps, matrix: FloatArray, scale: float) -> Any:
        """Return ``scale`` x_i^T U y_i of each pair."""
        scores = self._scores(X, Y, maps, matrix, scale, leave_out=False)
        return super().bilinear(X, Y, maps, matrix, scale) if scores is None else scores

    def leave_one_out(self, X: Any, Y: Any, maps: Maps, matrix: FloatArray, scale: float) -> Any:
        """Return ``scale`` (x_i^T U y_i - |x_i|^2 |y_i|^2) of each pair."""
        scores = self._scores(X, Y, maps, matrix, scale, leave_out=True)
        return super().leave_one_out(X, Y, maps, matrix, scale) if scores is None else scores

    def _scores(self, X: Any, Y: Any, maps: Maps, matrix: FloatArray, scale: float, leave_out: bool) -> Any:
        scores = _empty(X, int(X.shape[0]))
        if _is_narrow(X, Y, maps):
            kernel = _kernels().pair_kernels(int(X.shape[1]), int(Y.shape[1]))["scores"]
            _launch(kernel, X, Y, _fixed(maps, matrix), float(scale), leave_out, scores)
        elif _is_wide(X, Y, maps):
            sent = _matrix_for(matrix, X)
            for rows, x, y in self.prepared(X, Y, maps):
                _scored(x, y, sent, float(scale), leave_out, scores[rows])
        else:
            return None
        return scores

    def columns(self, block: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sum, minimum and maximum of each column."""
        d, xp = int(block.shape[1]), namespace(block)
        if d > _WIDEST_ROW:
            lines = _empty(block, _STRIPS, 3 * d)
            _launch(_kernels().wide_columns, block, lines, grid=(_STRIPS, -(-d // _kernels().THREADS)))
        else:
            lines, xp = _empty(block, _BLOCKS, 3 * d), np
            _launch(_kernels().column_kernel(d), block, lines)
            lines = to_host(lines)  # few, and fetched in one go
        total, low, high = lines[:, :d], lines[:, d : 2 * d], lines[:, 2 * d :]
        return to_host(xp.sum(total, axis=0)), to_host(xp.min(low, axis=0)), to_host(xp.max(high, axis=0))

    def histogram(self, values: Any, low: float, high: float, n_buckets: int) -> tuple[Array, FloatArray, int]:
        """Counts and sums in buckets; where a value lies in its bucket is rounded to one of ``STEPS`` steps."""
        kernels, width = _kernels(), (high - low) / n_buckets
        if n_buckets != kernels.BUCKETS or not np.isfinite(1 / width):
            return super().histogram(values, low, high, n_buckets)
        found = namespace(values).zeros(2 * n_buckets + 3, dtype=namespace(values).float64, device=values.device)
        grid = max(_BLOCKS, -(-int(values.shape[0]) // kernels.ROWS_PER_BLOCK))
        _launch(kernels.histogram, values, float(low), 1 / width, found, grid=grid)
        counts, steps, (zeros, beneath, beyond) = np.split(to_host(found), [n_buckets, 2 * n_buckets])
        within = (steps + counts / 2) / kernels.STEPS  # each was rounded down, by half a step on average
        within[[0, -1]] += beneath, beyond
        sums = counts * (low + width * np.arange(n_buckets)) + width * within
        return counts.astype(np.int64), sums, int(zeros)

    def window(self, values: Any, low: float, high: float) -> tuple[int, float, FloatArray, int, float]:
        """Number and sum below, the values inside, number and sum above."""
        xp = namespace(values)
        inside, n_inside = _empty(values, _MOST_INSIDE), xp.zeros(1, dtype=xp.int64, device=values.device)
        lines = _empty(values, _BLOCKS, 4)
        _launch(_kernels().window, values, float(low), float(high), lines, inside, n_inside)
        found = int(n_inside[0])
        if found > _MOST_INSIDE:
            return super().window(values, low, high)
        n_below, sum_below, n_above, sum_above = to_host(lines).sum(axis=0).tolist()
        return int(n_below), sum_below, to_host(inside[:found]), int(n_above), sum_above


@cache
def _kernels() -> Any:
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


def _suits(block: Any) -> bool:
    interface = getattr(block, "__cuda_array_interface__", None)
    contiguous = interface is not None and interface.get("strides") is None
    return contiguous and dtype_name(block) in ("float32", "float64", "uint8")


def _is_narrow(X: Any, Y: Any, maps: Maps) -> bool:
    return max(X.shape[1], Y.shape[1]) <= _WIDEST_ROW and maps.only_centre


def _is_wide(X: Any, Y: Any, maps: Maps) -> bool:
    """Whether both sides are scaled to rows of unit length, and of one type."""
    return all(map(_is_unit, maps)) and compute_dtype(dtype_name(X)) == compute_dtype(dtype_name(Y))


def _is_unit(row_map: Any) -> bool:
    return bool(row_map.only_centres and row_map.unit_length)


def _pair_sums(name: str, X: Any, Y: Any, maps: Maps, shape: tuple[int, ...], matrix: Any = None) -> FloatArray:
    """Launch a kernel that writes a line of numbers for each block, and add up the lines."""
    lines = _empty(X, _BLOCKS, shape[0] * shape[1])
    _launch(_kernels().pair_kernels(int(X.shape[1]), int(Y.shape[1]))[name], X, Y, _fixed(maps, matrix), lines)
    return to_host(lines).sum(axis=0).reshape(shape)


def _unit_rows(X: Any, mean: Any, shortest: float) -> Any:
    d, xp = int(X.shape[1]), namespace(X)
    out = xp.empty(tuple(X.shape), dtype=getattr(xp, compute_dtype(dtype_name(X)).name), device=X.device)
    lanes = 1 if d <= _WIDEST_ROW else min(_LANES[d > _LANES[0] * _MOST_KEPT], int(_kernels().THREADS))
    kernel = _kernels().unit_rows_kernel(lanes, min(d // lanes, _MOST_KEPT))
    _launch(kernel, X, mean, float(shortest) ** 2, out)
    return out


def _scored(x: Any, y: Any, matrix: Any, scale: float, leave_out: bool, out: Any) -> Any:
    """Scores of prepared wide rows, written to ``out``."""
    kernel = _kernels().row_scores_kernel(min(_LANES[0], int(_kernels().THREADS)))
    _launch(kernel, x @ matrix, x, y, scale, leave_out, out)
    return out


def _matrix_for(matrix: FloatArray, X: Any) -> Any:
    return from_host(np.asarray(matrix, dtype=compute_dtype(dtype_name(X))), X)


def _fixed(maps: Maps, matrix: FloatArray | None) -> FloatArray:
    """Means of both sides, the least squared lengths with a direction, whether rows get unit length, the matrix."""
    means = [np.zeros(m.n_columns) if m.mean is None else m.mean for m in maps]
    least = [maps.x.shortest**2, maps.y.shortest**2, float(maps.x.unit_length)]
    return np.concatenate([*means, least, [] if matrix is None else np.asarray(matrix, dtype=np.float64).ravel()])


def _launch(kernel: Any, first: Any, *others: Any, grid: Any = None) -> None:
    """Launch a kernel on arrays that are there, numbers, and NumPy arrays, which are sent."""
    sent = (from_host(other, first) if is_host_array(other) else other for other in others)
    kernel[_BLOCKS if grid is None else grid, _kernels().THREADS](*map(_view, (first, *sent)))


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
