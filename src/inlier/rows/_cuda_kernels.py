"""The vocabulary on a CUDA device, compiled by numba: one reading of the rows each.

A thread takes every so many-th row and keeps its sums in registers; the threads of a block add theirs up in shared
memory, and each block writes one line, so that sums do not depend on who came first. All arithmetic is float64. The
arrays may be torch's or CuPy's: numba reads both where they are. What is done to pairs of narrow rows is in
`inlier.rows._cuda_pairs`.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numba import cuda, float64, uint32

THREADS = 256  # a power of two: halves are added to halves
BUCKETS = 1024
FRACTION = (
    32768  # steps within a bucket in which sums are kept, so that integers do: 32-bit ones are fast in shared memory
)
ROWS_PER_BLOCK = 100_000  # at most: more could overflow those sums


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
def row_kernels(lanes, n_kept):
    """Kernels for which ``lanes`` neighbouring threads share a row: one for narrow rows, more for wide ones.

    Of each row a thread keeps ``n_kept`` values, no more than it has, in registers.
    """
    return {"unit_rows": _unit_rows_kernel(lanes, n_kept), "row_scores": _row_scores_kernel(lanes)}


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


def _unit_rows_kernel(lanes, n_kept):
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


def _row_scores_kernel(lanes):
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
    fraction = cuda.shared.array(BUCKETS, uint32)
    scratch = cuda.shared.array(THREADS, float64)
    for k in range(cuda.threadIdx.x, BUCKETS, cuda.blockDim.x):
        count[k] = 0
        fraction[k] = 0
    cuda.syncthreads()
    n_zeros, beneath, beyond = 0, 0.0, 0.0
    for i in range(cuda.grid(1), values.shape[0], cuda.gridsize(1)):
        value = values[i]
        place = (value - low) * per_bucket
        if place < 0.0:
            beneath += place
        place = place if place > 0.0 else 0.0  # written so that NaN, too, has a bucket
        if place > BUCKETS - 1e-6:
            beyond += place - (BUCKETS - 1e-6)
            place = BUCKETS - 1e-6
        bucket = uint32(place)
        cuda.atomic.add(count, bucket, uint32(1))
        cuda.atomic.add(fraction, bucket, uint32((place - bucket) * FRACTION))
        if value == 0.0:
            n_zeros += 1
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, BUCKETS, cuda.blockDim.x):
        if count[k] > 0:
            cuda.atomic.add(found, k, float64(count[k]))  # whole numbers: exact in any order
            cuda.atomic.add(found, BUCKETS + k, float64(fraction[k]))
    if n_zeros > 0:
        cuda.atomic.add(found, 2 * BUCKETS, float64(n_zeros))
    beneath = add_up(beneath, scratch)
    beyond = add_up(beyond, scratch)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(found, 2 * BUCKETS + 1, beneath)
        cuda.atomic.add(found, 2 * BUCKETS + 2, beyond)


@cuda.jit
def window(values, low, high, partial, inside, n_inside):
    """Number, sum and largest below, number, sum and smallest above, a line per block; the rest into ``inside``."""
    scratch = cuda.shared.array(THREADS, float64)
    n_below, sum_below, largest, n_above, sum_above, smallest = 0.0, 0.0, -np.inf, 0.0, 0.0, np.inf
    for i in range(cuda.grid(1), values.shape[0], cuda.gridsize(1)):
        value = values[i]
        if value < low:
            n_below += 1.0
            sum_below += value
            largest = value if value > largest else largest
        elif value >= high:
            n_above += 1.0
            sum_above += value
            smallest = value if value < smallest else smallest
        else:
            place = cuda.atomic.add(n_inside, 0, 1)
            if place < inside.shape[0]:
                inside[place] = value
    line = partial[cuda.blockIdx.x]
    for k in range(6):
        if k == 0:
            found = add_up(n_below, scratch)
        elif k == 1:
            found = add_up(sum_below, scratch)
        elif k == 2:
            found = greatest(largest, scratch)
        elif k == 3:
            found = add_up(n_above, scratch)
        elif k == 4:
            found = add_up(sum_above, scratch)
        else:
            found = -greatest(-smallest, scratch)
        if cuda.threadIdx.x == 0:
            line[k] = found
