"""The backend for tables in this computer's memory: compiled loops over narrow rows, over wide ones and over scores.

Rows of a few numbers are too narrow for matrix products to pay. A tile of them is transposed into coordinate-major
order in first-level cache, so that every inner loop runs along the rows and vectorises. Coordinates are taken three at
a time, and every number is read once for nine products: dimensions are filled up to a multiple of three with zeros. All
arithmetic on pairs is float64. A kernel releases the interpreter, so that ranges of rows can run in threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import config

from inlier._typing import Array, FloatArray
from inlier.rows.backend import WIDEST_ROW, Maps, Plain, Rows
from inlier.rows.compiled import compiled
from inlier.rows.threads import pieces

_WIDEST_SUMMARY = 4096  # columns whose running sums, minima and maxima stay in cache
_ROWS_BESIDE = 8  # narrow rows that are summarised as one wide row
_AT_A_TIME = 3  # coordinates that the kernel takes together
_NOTHING, _NO_MATRIX = np.empty(0), np.empty((0, 0))
_WORTH_A_PRODUCT = 250  # entries of a sum above which a matrix product beats plain loops
_TILE = 256  # rows; a tile of both sides at d = 3 takes 12 KiB


class Numba(Plain):
    """Tables of the host in C order, of float32, float64 or uint8: narrow rows go through one compiled kernel."""

    def takes(self, *blocks: Any) -> bool:
        """Whether the blocks are of a form that the kernels read, and compilation is switched on."""
        suits = all(
            type(block) in (np.ndarray, np.memmap)
            and block.dtype.char in "fdB"
            and block.dtype.isnative
            and block.flags.c_contiguous
            for block in blocks
        )
        return suits and not config.DISABLE_JIT  # NUMBA_DISABLE_JIT=1

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
        found: tuple[FloatArray, FloatArray, FloatArray] = _columns(
            _as_line(block), d, _ROWS_BESIDE if d <= WIDEST_ROW else 1
        )
        return found

    def histogram(self, values: Array, low: float, high: float, n_buckets: int) -> tuple[Array, FloatArray, int]:
        """Number and sum of the values in each bucket, and how many are exactly 0."""
        per_bucket = n_buckets / (high - low)
        if not np.isfinite(per_bucket) or values.dtype != np.float64:
            return super().histogram(values, low, high, n_buckets)
        counts, sums, zeros = _histogram(values, low, per_bucket, n_buckets)
        return counts.sum(axis=0), sums.sum(axis=0), zeros

    def window(self, values: Array, low: float, high: float) -> tuple[int, float, FloatArray, int, float]:
        """Number and sum below, the values inside, number and sum above."""
        if values.dtype != np.float64:
            return super().window(values, low, high)
        inside = np.empty(len(values) + 1)
        n_below, sum_below, n_inside, sum_above = _window(values, low, high, inside)
        return n_below, sum_below, inside[:n_inside].copy(), len(values) - n_below - n_inside, sum_above


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
    _read_pairs(*lines, preparation, _filled_up(matrix), weights, scores, float(scale), own_share, total, products)
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
        _unit_rows(np.asarray(block), self._map.mean, self._map.shortest, out)
        return out


# ---- compiled loops


@compiled
def _read_pairs(X, Y, preparation, matrix, weights, scores, scale, own_share, total, products):
    """Read prepared pairs once; whichever of these arrays are not empty are filled, or added to.

    - ``scores[i]``: scale (x_i^T U y_i - own_share |x_i|^2 |y_i|^2) with U the ``matrix``;
    - ``total``: the sum of w_i x_i y_i^T, with w_i the ``weights`` times, if there is a matrix, x_i^T U y_i;
    - ``products``: the sum of all x_a x_c y_b y_e with a <= c and b <= e.

    X and Y are tables as long lines of numbers. ``preparation`` holds their dimensions, their means, the least squared
    length of a row with a direction on each side, and whether rows get unit length. Means, matrix and sums are filled
    up to multiples of three.
    """
    d_x, d_y, mean_x, mean_y, least_x, least_y, unit_length = preparation
    x, y = np.zeros((mean_x.size, _TILE)), np.zeros((mean_y.size, _TILE))
    squares_x, squares_y = np.zeros((products.shape[0], _TILE)), np.zeros((products.shape[1], _TILE))
    length_x, length_y, factor, score = np.empty(_TILE), np.empty(_TILE), np.empty(_TILE), np.empty(_TILE)
    n = X.size // d_x
    for first in range(0, n, _TILE):
        count = min(_TILE, n - first)
        for side in range(2):
            line, d, mean, tile, length = (Y, d_y, mean_y, y, length_y) if side else (X, d_x, mean_x, x, length_x)
            rows = line[first * d : (first + count) * d]
            for a in range(d):
                along = tile[a]
                for t in range(count):
                    along[t] = rows[t * d + a]
            length[:] = 0.0
            for a in range(0, mean.size, 3):
                one, two, three = tile[a], tile[a + 1], tile[a + 2]
                p, q, r = mean[a], mean[a + 1], mean[a + 2]
                for t in range(_TILE):
                    u, v, w = one[t] - p, two[t] - q, three[t] - r
                    one[t], two[t], three[t] = u, v, w
                    length[t] += u * u + v * v + w * w
        for t in range(_TILE):  # 1 / (|x| |y|), or 0 where either has no direction
            inverse = 1.0 / np.sqrt(length_x[t] * length_y[t]) if unit_length else 1.0
            factor[t] = inverse if length_x[t] > least_x and length_y[t] > least_y else 0.0
        factor[count:] = 0.0  # what is left of the tile before
        if matrix.size:
            score[:] = 0.0
            for a in range(0, mean_x.size, 3):
                x0, x1, x2 = x[a], x[a + 1], x[a + 2]
                for b in range(0, mean_y.size, 3):
                    y0, y1, y2 = y[b], y[b + 1], y[b + 2]
                    u00, u01, u02 = matrix[a, b], matrix[a, b + 1], matrix[a, b + 2]
                    u10, u11, u12 = matrix[a + 1, b], matrix[a + 1, b + 1], matrix[a + 1, b + 2]
                    u20, u21, u22 = matrix[a + 2, b], matrix[a + 2, b + 1], matrix[a + 2, b + 2]
                    for t in range(_TILE):
                        p, q, r = y0[t], y1[t], y2[t]
                        u = u00 * p + u01 * q + u02 * r
                        v = u10 * p + u11 * q + u12 * r
                        w = u20 * p + u21 * q + u22 * r
                        score[t] += x0[t] * u + x1[t] * v + x2[t] * w
        if scores.size:
            out = scores[first : first + count]
            for t in range(count):
                own = own_share * (length_x[t] * length_y[t] * factor[t] * factor[t])
                out[t] = scale * (score[t] * factor[t] - own)
        if products.size:
            for side in range(2):
                d, tile, squares = (d_y, y, squares_y) if side else (d_x, x, squares_x)
                row = 0
                for a in range(d):
                    for c in range(a, d):
                        one, two, square = tile[a], tile[c], squares[row]
                        for t in range(_TILE):
                            square[t] = one[t] * two[t]
                        row += 1
        for kind in range(2):
            left, right, added = (squares_x, squares_y, products) if kind else (x, y, total)
            if not added.size:
                continue
            for t in range(count):
                weight = factor[t] * (score[t] * factor[t] if matrix.size else 1.0)
                score[t] = factor[t] * factor[t] if kind else weight * (weights[first + t] if weights.size else 1.0)
            score[count:] = 0.0
            if added.size > _WORTH_A_PRODUCT:
                left *= score
                added += np.dot(left, right.T)
                continue
            for a in range(0, added.shape[0], 3):
                x0, x1, x2 = left[a], left[a + 1], left[a + 2]
                for b in range(0, added.shape[1], 3):
                    y0, y1, y2 = right[b], right[b + 1], right[b + 2]
                    s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = 0.0
                    for t in range(_TILE):
                        u, v, w = score[t] * x0[t], score[t] * x1[t], score[t] * x2[t]
                        p, q, r = y0[t], y1[t], y2[t]
                        s00, s01, s02 = s00 + u * p, s01 + u * q, s02 + u * r
                        s10, s11, s12 = s10 + v * p, s11 + v * q, s12 + v * r
                        s20, s21, s22 = s20 + w * p, s21 + w * q, s22 + w * r
                    added[a, b] += s00
                    added[a, b + 1] += s01
                    added[a, b + 2] += s02
                    added[a + 1, b] += s10
                    added[a + 1, b + 1] += s11
                    added[a + 1, b + 2] += s12
                    added[a + 2, b] += s20
                    added[a + 2, b + 1] += s21
                    added[a + 2, b + 2] += s22


@compiled
def _unit_rows(X, mean, shortest, out):
    """Centred rows of unit length, for rows that are wide enough for matrix products; zero without direction."""
    for i in range(out.shape[0]):
        row, squared = X[i], 0.0
        for k in range(row.size):
            centred = row[k] - mean[k]  # in float64: a mean rounded to float32 would move every row
            out[i, k] = centred
            squared += centred * centred
        length = np.sqrt(squared)
        inverse = 1.0 / length if length > shortest else 0.0
        for k in range(row.size):
            out[i, k] *= inverse


@compiled
def _columns(line, d, rows_beside):
    """Sum, minimum and maximum of each of ``d`` columns of a table that is one long line.

    Some rows of a narrow table are taken as one, so that the inner loop is long and vectorises.
    """
    width = rows_beside * d
    sums, low, high = np.zeros(width), np.full(width, np.inf), np.full(width, -np.inf)
    whole = line.size // (4 * width) * (4 * width)
    for first in range(0, whole, 4 * width):
        # Four at a time: running values are read and written once for all four.
        one, two = line[first : first + width], line[first + width : first + 2 * width]
        three, four = line[first + 2 * width : first + 3 * width], line[first + 3 * width : first + 4 * width]
        for k in range(width):
            sums[k] += (np.float64(one[k]) + two[k]) + (np.float64(three[k]) + four[k])
        for k in range(width):
            low[k] = min(low[k], min(min(one[k], two[k]), min(three[k], four[k])))
        for k in range(width):
            high[k] = max(high[k], max(max(one[k], two[k]), max(three[k], four[k])))
    for k in range(whole, line.size):
        column, value = (k - whole) % d, np.float64(line[k])
        sums[column], low[column], high[column] = (
            sums[column] + value,
            min(low[column], value),
            max(high[column], value),
        )
    for k in range(d, width):
        column = k % d
        sums[column] += sums[k]
        low[column], high[column] = min(low[column], low[k]), max(high[column], high[k])
    return sums[:d], low[:d], high[:d]


@compiled
def _histogram(values, low, per_bucket, n_buckets):
    """Number and sum of the values in each of equal buckets from ``low`` on, and how many are exactly 0.

    Values beyond the ends count with the first and the last bucket. Four tables in turn: neighbours that fall into
    one bucket need not wait for each other.
    """
    counts, sums = np.zeros((4, n_buckets), np.int64), np.zeros((4, n_buckets))
    zeros, last = 0, n_buckets - 1.0
    for i in range(values.size):
        value = values[i]
        where = (value - low) * per_bucket
        where = where if where > 0.0 else 0.0  # written so that NaN, too, has a bucket
        bucket = np.uint32(where if where < last else last)
        counts[i & 3, bucket] += 1
        sums[i & 3, bucket] += value
        zeros += value == 0.0
    return counts, sums, zeros


@compiled
def _window(values, low, high, inside):
    """Number and sum of the values below ``low``, how many are inside, and the sum of those from ``high`` on."""
    n_below, n_inside, sum_below, sum_above = 0, 0, 0.0, 0.0
    for i in range(values.size):
        value = values[i]
        n_below += value < low
        sum_below += value if value < low else 0.0
        sum_above += value if value >= high else 0.0
    for i in range(values.size):  # written wherever it may belong, and kept if it does: no branch to guess
        value = values[i]
        inside[n_inside] = value
        n_inside += (value >= low) & (value < high)
    return n_below, sum_below, n_inside, sum_above
