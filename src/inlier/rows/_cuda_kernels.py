"""The vocabulary on a CUDA device, compiled by numba: one reading of the rows each.

A thread takes every so many-th row and keeps its sums in registers; the threads of a block add theirs up in shared
memory, and each block writes one line, so that sums do not depend on who came first. All arithmetic is float64. The
arrays may be torch's or CuPy's: numba reads both where they are. For pairs of narrow rows the dimensions are part of
the compiled code.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import cuda, float64, uint32

THREADS = 256  # a power of two: halves are added to halves
BUCKETS = 1024
STEPS = 2**15  # within a bucket: sums are kept as 32-bit whole numbers, fast in shared memory and the same in any order
ROWS_PER_BLOCK = 100_000  # at most: more could overflow the steps
_MOST_KEPT = 24  # numbers common to all rows that a thread copies to registers


@cuda.jit(device=True)
def add_up(value, scratch):
    """Sum of every thread's value, for the first thread of the block."""
    me = cuda.threadIdx.x
    cuda.syncthreads()
    scratch[me] = value
    width = THREADS // 2
    while width > 0:
        cuda.syncthreads()
        if me < width:
            scratch[me] += scratch[me + width]
        width //= 2
    cuda.syncthreads()
    return scratch[0]


@cuda.jit(device=True)
def greatest(value, scratch):
    """Largest of every thread's values."""
    me = cuda.threadIdx.x
    cuda.syncthreads()
    scratch[me] = value
    width = THREADS // 2
    while width > 0:
        cuda.syncthreads()
        if me < width and scratch[me + width] > scratch[me]:
            scratch[me] = scratch[me + width]
        width //= 2
    cuda.syncthreads()
    return scratch[0]


@cache
def column_kernel(d):
    """Sum, minimum and maximum of each of d columns, a line per block."""

    @cuda.jit
    def columns(X, partial):
        total, low, high = (
            cuda.local.array(d, float64),
            cuda.local.array(d, float64),
            cuda.local.array(d, float64),
        )
        scratch = cuda.shared.array(THREADS, float64)
        for a in range(d):
            total[a], low[a], high[a] = 0.0, np.inf, -np.inf
        for row in range(cuda.grid(1), X.shape[0], cuda.gridsize(1)):
            for a in range(d):
                value = float64(X[row, a])
                total[a] += value
                if value < low[a]:
                    low[a] = value
                if value > high[a]:
                    high[a] = value
        for a in range(d):
            added, lowest, highest = add_up(total[a], scratch), 0.0, 0.0
            lowest = -greatest(-low[a], scratch)
            highest = greatest(high[a], scratch)
            if cuda.threadIdx.x == 0:
                partial[cuda.blockIdx.x, a] = added
                partial[cuda.blockIdx.x, d + a] = lowest
                partial[cuda.blockIdx.x, 2 * d + a] = highest

    return columns


@cuda.jit
def wide_columns(X, partial):
    """Sum, minimum and maximum of each of many columns: a thread to a column, a line for each strip of rows."""
    n, d = X.shape
    a = cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    step = cuda.gridDim.x
    if a < d:
        total, low, high = 0.0, np.inf, -np.inf
        row = cuda.blockIdx.x
        while row + 3 * step < n:  # four values at a time, so that four are on their way
            x_0, x_1 = float64(X[row, a]), float64(X[row + step, a])
            x_2, x_3 = float64(X[row + 2 * step, a]), float64(X[row + 3 * step, a])
            total += (x_0 + x_1) + (x_2 + x_3)
            low = min(low, min(min(x_0, x_1), min(x_2, x_3)))
            high = max(high, max(max(x_0, x_1), max(x_2, x_3)))
            row += 4 * step
        while row < n:
            value = float64(X[row, a])
            total += value
            low = min(low, value)
            high = max(high, value)
            row += step
        partial[cuda.blockIdx.x, a] = total
        partial[cuda.blockIdx.x, d + a] = low
        partial[cuda.blockIdx.x, 2 * d + a] = high


@cache
def _lane_sum(lanes):
    """Device function that adds up a number over the threads of a row."""

    @cuda.jit(device=True)
    def add_up_lanes(value, scratch):
        """Sum over the threads of a row, for each of them."""
        if lanes == 1:
            return value
        me = cuda.threadIdx.x
        lane = me % lanes
        scratch[me] = value
        width = lanes // 2
        while width > 0:
            cuda.syncthreads()
            if lane < width:
                scratch[me] += scratch[me + width]
            width //= 2
        cuda.syncthreads()
        found = scratch[me - lane]
        cuda.syncthreads()
        return found

    return add_up_lanes


@cache
def unit_rows_kernel(lanes, n_kept):
    """Kernel for which ``lanes`` neighbouring threads share a row: one for narrow rows, more for wide ones.

    Of each row a thread keeps ``n_kept`` values, no more than it has, in registers.
    """
    add_up_lanes = _lane_sum(lanes)

    @cuda.jit
    def unit_rows(X, centre, least, out):
        """Write (x - mean) / |x - mean|, 0 without direction."""
        scratch, kept = cuda.shared.array(THREADS, float64), cuda.local.array(n_kept, float64)
        lane, n, d = cuda.threadIdx.x % lanes, X.shape[0], X.shape[1]
        rows_at_once = cuda.gridsize(1) // lanes
        first = cuda.blockIdx.x * (cuda.blockDim.x // lanes)  # of the block: its threads must meet in every step
        for start in range(first, n, rows_at_once):
            row = start + cuda.threadIdx.x // lanes
            squared = 0.0
            if row < n:
                for k in range(n_kept):
                    kept[k] = float64(X[row, lane + k * lanes])
                for k in range(n_kept):
                    kept[k] -= centre[lane + k * lanes]
                    squared += kept[k] * kept[k]
                for a in range(lane + n_kept * lanes, d, lanes):
                    centred = float64(X[row, a]) - centre[a]
                    squared += centred * centred
            squared = add_up_lanes(squared, scratch)
            factor = 0.0
            if squared > least:
                factor = 1.0 / math.sqrt(squared)
            if row < n:
                for k in range(n_kept):
                    out[row, lane + k * lanes] = kept[k] * factor
                for a in range(lane + n_kept * lanes, d, lanes):
                    out[row, a] = (float64(X[row, a]) - centre[a]) * factor

    return unit_rows


@cache
def row_scores_kernel(lanes):
    """Kernel that scores prepared wide rows."""
    add_up_lanes = _lane_sum(lanes)

    @cuda.jit
    def row_scores(turned, x, y, scale, leave_out, out):
        """Write scale t^T y, or scale (t^T y - |x|^2 |y|^2) with ``leave_out``; t = U^T x was computed before."""
        scratch = cuda.shared.array(THREADS, float64)
        lane, n, d_x, d_y = cuda.threadIdx.x % lanes, x.shape[0], x.shape[1], y.shape[1]
        rows_at_once = cuda.gridsize(1) // lanes
        first = cuda.blockIdx.x * (cuda.blockDim.x // lanes)
        for start in range(first, n, rows_at_once):
            row = start + cuda.threadIdx.x // lanes
            score, squared_x, squared_y = 0.0, 0.0, 0.0
            if row < n:
                for b in range(lane, d_y, lanes):
                    value = float64(y[row, b])
                    score += float64(turned[row, b]) * value
                    squared_y += value * value
                if leave_out:
                    for a in range(lane, d_x, lanes):
                        value = float64(x[row, a])
                        squared_x += value * value
            score = add_up_lanes(score, scratch)
            if leave_out:
                squared_x = add_up_lanes(squared_x, scratch)
                squared_y = add_up_lanes(squared_y, scratch)
                score -= squared_x * squared_y
            if row < n and lane == 0:
                out[row] = scale * score

    return row_scores


@cuda.jit
def histogram(values, low, per_bucket, found):
    """Add each value to the count of its bucket, and where in the bucket it lies, in steps, to the bucket's sum.

    ``found`` holds the counts, then the sums, then the number of zeros, then by how much the values beyond the ends
    exceed them, in buckets: in the first and last bucket they count as if at the end.
    """
    count = cuda.shared.array(BUCKETS, uint32)  # a line each: the simulator tells shared arrays apart by their line
    steps = cuda.shared.array(BUCKETS, uint32)
    scratch = cuda.shared.array(THREADS, float64)
    for k in range(cuda.threadIdx.x, BUCKETS, cuda.blockDim.x):
        count[k] = 0
        steps[k] = 0
    cuda.syncthreads()
    n_zeros, beneath, beyond = 0, 0.0, 0.0
    for i in range(cuda.grid(1), values.shape[0], cuda.gridsize(1)):
        value = values[i]
        where = (value - low) * per_bucket
        if where < 0.0:
            beneath += where
        where = where if where > 0.0 else 0.0  # written so that NaN, too, has a bucket
        if where > BUCKETS - 1e-6:
            beyond += where - (BUCKETS - 1e-6)
            where = BUCKETS - 1e-6
        bucket = uint32(where)
        cuda.atomic.add(count, bucket, uint32(1))
        cuda.atomic.add(steps, bucket, uint32((where - bucket) * STEPS))
        if value == 0.0:
            n_zeros += 1
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, BUCKETS, cuda.blockDim.x):
        if count[k] > 0:
            cuda.atomic.add(found, k, float64(count[k]))  # whole numbers: exact in any order
            cuda.atomic.add(found, BUCKETS + k, float64(steps[k]))
    if n_zeros > 0:
        cuda.atomic.add(found, 2 * BUCKETS, float64(n_zeros))
    beneath = add_up(beneath, scratch)
    beyond = add_up(beyond, scratch)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(found, 2 * BUCKETS + 1, beneath)
        cuda.atomic.add(found, 2 * BUCKETS + 2, beyond)


@cuda.jit
def window(values, low, high, partial, inside, n_inside):
    """Number and sum of what lies below and of what lies above, a line per block; the rest goes to ``inside``."""
    scratch = cuda.shared.array(THREADS, float64)
    n_below, sum_below, n_above, sum_above = 0.0, 0.0, 0.0, 0.0
    for i in range(cuda.grid(1), values.shape[0], cuda.gridsize(1)):
        value = values[i]
        if value < low:
            n_below += 1.0
            sum_below += value
        elif value >= high:
            n_above += 1.0
            sum_above += value
        else:
            rank = cuda.atomic.add(n_inside, 0, 1)
            if rank < inside.shape[0]:
                inside[rank] = value
    for k in range(4):
        found = add_up(n_below if k == 0 else sum_below if k == 1 else n_above if k == 2 else sum_above, scratch)
        if cuda.threadIdx.x == 0:
            partial[cuda.blockIdx.x, k] = found


class _Layout(NamedTuple):
    """Where the numbers common to all rows stand in the line ``fixed`` that a kernel is given.

    Both means, the least squared lengths of a row with a direction (from ``least`` on), whether rows get unit length,
    and the matrix U (from ``matrix`` on). A thread copies ``n_kept`` of them to registers, or reads them in place if
    they are too many.
    """

    least: int
    matrix: int
    n_kept: int

    @classmethod
    def of(cls, d_x, d_y):
        matrix = d_x + d_y + 3
        size = matrix + d_x * d_y
        return cls(d_x + d_y, matrix, size if size <= _MOST_KEPT else 1)


@cache
def pair_kernels(d_x, d_y):
    """Kernels for pairs of these dimensions, which are part of the compiled code."""
    return {
        "cross_moment": _moment_kernel(d_x, d_y, stepping=False),
        "gram_step": _moment_kernel(d_x, d_y, stepping=True),
        "product_moment": _products_kernel(d_x, d_y),
        "scores": _scores_kernel(d_x, d_y),
    }


@cache
def _access(n_kept):
    """Device functions that copy the line ``fixed`` to registers, and that read an entry of it."""

    @cuda.jit(device=True)
    def keep(fixed, kept):
        for k in range(n_kept):
            kept[k] = fixed[k] if k < fixed.shape[0] else 0.0

    @cuda.jit(device=True)
    def from_registers(fixed, kept, k):
        return kept[k]

    @cuda.jit(device=True)
    def in_place(fixed, kept, k):
        return fixed[k]

    return keep, from_registers if n_kept > 1 else in_place


@cache
def _loader(d_x, d_y):
    """Device function that reads and centres a pair."""
    least, _, n_kept = _Layout.of(d_x, d_y)
    _, at = _access(n_kept)

    @cuda.jit(device=True)
    def load(X, Y, row, fixed, kept, x, y, own):
        """Centred rows into x and y, |x|^2 |y|^2 f^2 into own; f = 1 / (|x| |y|), 0 without direction, 1 if as is."""
        squared_x = 0.0
        for a in range(d_x):
            x[a] = float64(X[row, a]) - at(fixed, kept, a)
            squared_x += x[a] * x[a]
        squared_y = 0.0
        for b in range(d_y):
            y[b] = float64(Y[row, b]) - at(fixed, kept, d_x + b)
            squared_y += y[b] * y[b]
        factor = 1.0
        if at(fixed, kept, least + 2) > 0.0:
            factor = 0.0
            if squared_x > at(fixed, kept, least) and squared_y > at(fixed, kept, least + 1):
                factor = 1.0 / math.sqrt(squared_x * squared_y)
        own[0] = squared_x * squared_y * factor * factor
        return factor

    return load


@cache
def _product_with_matrix(d_x, d_y):
    """Device function for x^T U y."""
    _, matrix, n_kept = _Layout.of(d_x, d_y)
    _, at = _access(n_kept)

    @cuda.jit(device=True)
    def product_with_matrix(fixed, kept, x, y):
        score = 0.0
        for a in range(d_x):
            along = 0.0
            for b in range(d_y):
                along += at(fixed, kept, matrix + a * d_y + b) * y[b]
            score += x[a] * along
        return score

    return product_with_matrix


def _moment_kernel(d_x, d_y, stepping):
    n_kept = _Layout.of(d_x, d_y).n_kept
    n_threads, n_moment = THREADS, d_x * d_y  # sizes of arrays must be constants
    (keep, _), load, product_with_matrix = _access(n_kept), _loader(d_x, d_y), _product_with_matrix(d_x, d_y)

    @cuda.jit
    def moment(X, Y, fixed, partial):
        """Sum of f x y^T, or with ``stepping`` of (f x^T U y) f x y^T, a line per block."""
        x, y, own = cuda.local.array(d_x, float64), cuda.local.array(d_y, float64), cuda.local.array(1, float64)
        total, kept = cuda.local.array(n_moment, float64), cuda.local.array(n_kept, float64)
        scratch = cuda.shared.array(n_threads, float64)
        keep(fixed, kept)
        for k in range(n_moment):
            total[k] = 0.0
        for row in range(cuda.grid(1), X.shape[0], cuda.gridsize(1)):
            weight = load(X, Y, row, fixed, kept, x, y, own)
            if stepping:
                weight *= product_with_matrix(fixed, kept, x, y) * weight
            for a in range(d_x):
                for b in range(d_y):
                    total[a * d_y + b] += (weight * x[a]) * y[b]
        for k in range(n_moment):
            found = add_up(total[k], scratch)
            if cuda.threadIdx.x == 0:
                partial[cuda.blockIdx.x, k] = found

    return moment


def _products_kernel(d_x, d_y):
    n_kept = _Layout.of(d_x, d_y).n_kept
    n_threads, n_products = THREADS, d_x * (d_x + 1) // 2 * (d_y * (d_y + 1) // 2)
    (keep, _), load = _access(n_kept), _loader(d_x, d_y)

    @cuda.jit
    def products(X, Y, fixed, partial):
        """Sum of all x_a x_c y_b y_e with a <= c and b <= e, times f^2, a line per block."""
        x, y, own = cuda.local.array(d_x, float64), cuda.local.array(d_y, float64), cuda.local.array(1, float64)
        total, kept = cuda.local.array(n_products, float64), cuda.local.array(n_kept, float64)
        scratch = cuda.shared.array(n_threads, float64)
        keep(fixed, kept)
        for k in range(n_products):
            total[k] = 0.0
        for row in range(cuda.grid(1), X.shape[0], cuda.gridsize(1)):
            factor = load(X, Y, row, fixed, kept, x, y, own)
            k = 0
            for a in range(d_x):
                for c in range(a, d_x):
                    product = x[a] * x[c] * factor * factor
                    for b in range(d_y):
                        for e in range(b, d_y):
                            total[k] += product * (y[b] * y[e])
                            k += 1
        for k in range(n_products):
            found = add_up(total[k], scratch)
            if cuda.threadIdx.x == 0:
                partial[cuda.blockIdx.x, k] = found

    return products


def _scores_kernel(d_x, d_y):
    n_kept = _Layout.of(d_x, d_y).n_kept
    (keep, _), load, product_with_matrix = _access(n_kept), _loader(d_x, d_y), _product_with_matrix(d_x, d_y)

    @cuda.jit
    def scores(X, Y, fixed, scale, leave_out, out):
        """Write scale (f x^T U y), or scale (f x^T U y - f^2 |x|^2 |y|^2) with ``leave_out``."""
        x, y, own = cuda.local.array(d_x, float64), cuda.local.array(d_y, float64), cuda.local.array(1, float64)
        kept = cuda.local.array(n_kept, float64)
        keep(fixed, kept)
        for row in range(cuda.grid(1), X.shape[0], cuda.gridsize(1)):
            factor = load(X, Y, row, fixed, kept, x, y, own)
            score = factor * product_with_matrix(fixed, kept, x, y)
            if leave_out:
                score -= own[0]
            out[row] = scale * score

    return scores
