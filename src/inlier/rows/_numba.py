"""Compiled versions of the vocabulary for narrow rows: centre, scale, and accumulate or score in one reading.

Rows of a few numbers are too narrow for matrix products to pay. Here a tile of rows is transposed into
coordinate-major order in first-level cache, so that every inner loop runs along the rows and vectorises; all
arithmetic is float64. A kernel covers a range of rows and releases the interpreter, so that ranges can run in
threads.

A table comes as one long line of numbers, its dimension as the length of its mean. Where the mean is a tuple
that length is part of the type, and the loops over coordinates are unrolled for it when they are compiled;
where it is an array one compiled kernel serves every dimension.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from inlier.rows._numba_columns import COMPILE
from inlier.rows._numba_columns import column_summary as column_summary  # one module for whoever calls kernels
from inlier.rows._numba_columns import histogram as histogram
from inlier.rows._numba_columns import window as window

_TILE = 256  # rows; a tile of both sides at d = 3 takes 12 KiB
_WORTH_A_PRODUCT = 100  # entries of a moment above which a matrix product beats plain loops
_COMPILE_IN_ORDER = {**COMPILE, "fastmath": {"nsz"}}  # for differences whose order matters


@njit(**COMPILE)
def _line_of(tile, a, count):
    """Coordinate ``a`` of a tile: a slice, so that every index into it is plainly not negative and loops vectorise."""
    return tile[a * _TILE : a * _TILE + count]


@njit(**COMPILE)
def _load_tile(line, start, count, mean, centre, tile, squared_length):
    """Centred rows, transposed, into ``tile``; their squared lengths beside them.

    First the numbers are put in place, then the mean is taken off, three coordinates at a time: so both loops
    vectorise, and running values are read and written once for all three.
    """
    d = len(mean)
    rows = line[start * d : (start + count) * d]
    for t in range(count):
        for a in range(d):
            tile[a * _TILE + t] = rows[t * d + a]
    squared_length[:count] = 0.0
    for a in range(0, d - 2, 3):
        one, two, three = _line_of(tile, a, count), _line_of(tile, a + 1, count), _line_of(tile, a + 2, count)
        mean_one, mean_two, mean_three = centre[a], centre[a + 1], centre[a + 2]
        for t in range(count):
            u, v, w = one[t] - mean_one, two[t] - mean_two, three[t] - mean_three
            one[t], two[t], three[t] = u, v, w
            squared_length[t] += u * u + v * v + w * w
    for a in range(d - d % 3, d):
        one, mean_one = _line_of(tile, a, count), centre[a]
        for t in range(count):
            u = one[t] - mean_one
            one[t] = u
            squared_length[t] += u * u


@njit(**COMPILE)
def _load_pair(X, Y, preparation, start, count, x, y, squared_x, squared_y, factor):
    """Load both sides of a tile; ``factor`` is 1 / (|x| |y|), or 0 where either has no direction.

    Rows that are not to be scaled to unit length have factor 1.
    """
    mean_x, mean_y, centre_x, centre_y, shortest_x, shortest_y, unit_length = preparation
    _load_tile(X, start, count, mean_x, centre_x, x, squared_x)
    _load_tile(Y, start, count, mean_y, centre_y, y, squared_y)
    if not unit_length:
        factor[:count] = 1.0
        return
    least_x, least_y = shortest_x * shortest_x, shortest_y * shortest_y
    for t in range(count):
        inverse = 1.0 / np.sqrt(squared_x[t] * squared_y[t])
        factor[t] = inverse if squared_x[t] > least_x and squared_y[t] > least_y else 0.0


@njit(**COMPILE)
def _three_lines(tile, a, count):
    return _line_of(tile, a, count), _line_of(tile, a + 1, count), _line_of(tile, a + 2, count)


@njit(**COMPILE)
def _score_nine(x, y, a, b, matrix, count, score):
    """score[t] += x_t^T U y_t over coordinates a..a+2 and b..b+2: every number is read once for all nine products."""
    x0, x1, x2 = _three_lines(x, a, count)
    y0, y1, y2 = _three_lines(y, b, count)
    u00, u01, u02 = matrix[a, b], matrix[a, b + 1], matrix[a, b + 2]
    u10, u11, u12 = matrix[a + 1, b], matrix[a + 1, b + 1], matrix[a + 1, b + 2]
    u20, u21, u22 = matrix[a + 2, b], matrix[a + 2, b + 1], matrix[a + 2, b + 2]
    running = score[:count]
    for t in range(count):
        p, q, r = y0[t], y1[t], y2[t]
        first, second, third = u00 * p + u01 * q + u02 * r, u10 * p + u11 * q + u12 * r, u20 * p + u21 * q + u22 * r
        running[t] += x0[t] * first + x1[t] * second + x2[t] * third


@njit(**COMPILE)
def _tile_bilinear(x, y, d_x, d_y, matrix, count, work, score):
    """score[t] = x_t^T U y_t for one tile."""
    score[:count] = 0.0
    for a in range(0, d_x - 2, 3):
        for b in range(0, d_y - 2, 3):
            _score_nine(x, y, a, b, matrix, count, score)
        one, two, three = _three_lines(x, a, count)
        for b in range(d_y - d_y % 3, d_y):
            along, u, v, w = _line_of(y, b, count), matrix[a, b], matrix[a + 1, b], matrix[a + 2, b]
            for t in range(count):
                score[t] += along[t] * (u * one[t] + v * two[t] + w * three[t])
    for a in range(d_x - d_x % 3, d_x):
        along = _line_of(x, a, count)
        work[:count] = 0.0
        for b in range(d_y):
            one, u = _line_of(y, b, count), matrix[a, b]
            for t in range(count):
                work[t] += u * one[t]
        for t in range(count):
            score[t] += along[t] * work[t]


@njit(**COMPILE)
def _add_nine(x, y, a, b, weight, count, total):
    """total += sum of w_t x_t y_t^T over coordinates a..a+2 and b..b+2, nine running sums at a time."""
    x0, x1, x2 = _three_lines(x, a, count)
    y0, y1, y2 = _three_lines(y, b, count)
    s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = 0.0
    factor = weight[:count]
    for t in range(count):
        u, v, w = factor[t] * x0[t], factor[t] * x1[t], factor[t] * x2[t]
        p, q, r = y0[t], y1[t], y2[t]
        s00, s01, s02 = s00 + u * p, s01 + u * q, s02 + u * r
        s10, s11, s12 = s10 + v * p, s11 + v * q, s12 + v * r
        s20, s21, s22 = s20 + w * p, s21 + w * q, s22 + w * r
    _add_row(total[a], b, s00, s01, s02)
    _add_row(total[a + 1], b, s10, s11, s12)
    _add_row(total[a + 2], b, s20, s21, s22)


@njit(**COMPILE)
def _add_row(row, b, one, two, three):
    row[b] += one
    row[b + 1] += two
    row[b + 2] += three


@njit(**COMPILE)
def _add_tile_moment(x, y, d_x, d_y, weight, count, work, total):
    """total += sum of w_t x_t y_t^T over one tile."""
    for a in range(0, d_x - 2, 3):
        for b in range(0, d_y - 2, 3):
            _add_nine(x, y, a, b, weight, count, total)
        one, two, three = _three_lines(x, a, count)
        for b in range(d_y - d_y % 3, d_y):
            along, u, v, w = _line_of(y, b, count), 0.0, 0.0, 0.0
            for t in range(count):
                value = weight[t] * along[t]
                u, v, w = u + one[t] * value, v + two[t] * value, w + three[t] * value
            total[a, b] += u
            total[a + 1, b] += v
            total[a + 2, b] += w
    for a in range(d_x - d_x % 3, d_x):
        along = _line_of(x, a, count)
        for t in range(count):
            work[t] = weight[t] * along[t]
        for b in range(d_y):
            one, u = _line_of(y, b, count), 0.0
            for t in range(count):
                u += one[t] * work[t]
            total[a, b] += u


@njit(**COMPILE)
def _workspace(preparation):
    """Dimensions; tiles of both sides, their squared lengths, the scale factor, and two rows of scratch."""
    d_x, d_y = len(preparation[0]), len(preparation[1])
    rows = np.empty((5, _TILE))
    return d_x, d_y, np.empty(d_x * _TILE), np.empty(d_y * _TILE), rows[0], rows[1], rows[2], rows[3], rows[4]


@njit(**COMPILE)
def cross_moment(X, Y, preparation, start, stop, weights):
    """Sum of w_i x_i y_i^T over rows start..stop; no weights (an empty array) means all ones."""
    d_x, d_y, x, y, squared_x, squared_y, factor, work, _ = _workspace(preparation)
    total = np.zeros((d_x, d_y))
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _load_pair(X, Y, preparation, first, count, x, y, squared_x, squared_y, factor)
        if weights.size:
            for t in range(count):
                factor[t] *= weights[first + t]
        _add_tile_moment(x, y, d_x, d_y, factor, count, work, total)
    return total


@njit(**COMPILE)
def gram_step(X, Y, preparation, start, stop, matrix):
    """Sum of (x_i^T U y_i) x_i y_i^T over rows start..stop."""
    d_x, d_y, x, y, squared_x, squared_y, factor, work, weight = _workspace(preparation)
    total = np.zeros((d_x, d_y))
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _load_pair(X, Y, preparation, first, count, x, y, squared_x, squared_y, factor)
        _tile_bilinear(x, y, d_x, d_y, matrix, count, work, weight)
        for t in range(count):
            weight[t] *= factor[t] * factor[t]
        _add_tile_moment(x, y, d_x, d_y, weight, count, work, total)
    return total


@njit(**COMPILE)
def _tile_products(tile, d, count, products):
    """All products of two coordinates, in the order of ``np.triu_indices``."""
    row = 0
    for a in range(d):
        for c in range(a, d):
            one, two, product = _line_of(tile, a, count), _line_of(tile, c, count), _line_of(products, row, count)
            for t in range(count):
                product[t] = one[t] * two[t]
            row += 1


@njit(**COMPILE)
def _scale_lines(lines, n_lines, factor, count):
    for row in range(n_lines):
        line = _line_of(lines, row, count)
        for t in range(count):
            line[t] *= factor[t]


@njit(**COMPILE)
def product_and_cross_moment(X, Y, preparation, start, stop):
    """Sums over rows start..stop of the distinct products x_a x_c y_b y_e, and of x_a y_b."""
    d_x, d_y, x, y, squared_x, squared_y, factor, work, ones = _workspace(preparation)
    ones[:] = 1.0
    p, q = d_x * (d_x + 1) // 2, d_y * (d_y + 1) // 2
    products_x, products_y = np.zeros(p * _TILE), np.zeros(q * _TILE)
    products, total = np.zeros((p, q)), np.zeros((d_x, d_y))
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _load_pair(X, Y, preparation, first, count, x, y, squared_x, squared_y, factor)
        _add_tile_moment(x, y, d_x, d_y, factor, count, work, total)
        for t in range(count):
            factor[t] *= factor[t]
        _tile_products(x, d_x, count, products_x)
        _tile_products(y, d_y, count, products_y)
        if p * q <= _WORTH_A_PRODUCT:
            _add_tile_moment(products_x, products_y, p, q, factor, count, work, products)
        else:
            _scale_lines(products_x, p, factor, count)
            # The last tile is not full: what is left of the one before it must not count.
            squares_x, squares_y = products_x.reshape(p, _TILE), products_y.reshape(q, _TILE)
            squares_x[:, count:] = 0.0
            products += np.dot(squares_x, squares_y.T)
    return products, total


@njit(**COMPILE)
def product_moment(X, Y, preparation, start, stop):
    """Sum over rows start..stop of the distinct products x_a x_c y_b y_e."""
    return product_and_cross_moment(X, Y, preparation, start, stop)[0]


@njit(**COMPILE)
def bilinear(X, Y, preparation, start, stop, scores, matrix, scale):
    """scores[i - start] = scale x_i^T U y_i for rows start..stop."""
    d_x, d_y, x, y, squared_x, squared_y, factor, work, score = _workspace(preparation)
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _load_pair(X, Y, preparation, first, count, x, y, squared_x, squared_y, factor)
        _tile_bilinear(x, y, d_x, d_y, matrix, count, work, score)
        out = scores[first - start : first - start + count]
        for t in range(count):
            out[t] = scale * (score[t] * factor[t])


@njit(**COMPILE)
def leave_one_out(X, Y, preparation, start, stop, scores, matrix, scale):
    """scores[i - start] = scale (x_i^T U y_i - |x_i|^2 |y_i|^2) for rows start..stop."""
    d_x, d_y, x, y, squared_x, squared_y, factor, work, score = _workspace(preparation)
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _load_pair(X, Y, preparation, first, count, x, y, squared_x, squared_y, factor)
        _tile_bilinear(x, y, d_x, d_y, matrix, count, work, score)
        out = scores[first - start : first - start + count]
        for t in range(count):
            own = squared_x[t] * squared_y[t] * factor[t] * factor[t]  # 1 for unit rows, 0 without direction
            out[t] = scale * (score[t] * factor[t] - own)


@njit(**_COMPILE_IN_ORDER)
def _centre_row(row, mean, rest, out):
    """x - mean in two steps: the first is exact where x is near the mean, the second takes off what was rounded."""
    for k in range(out.size):
        out[k] = (row[k] - mean[k]) - rest[k]


@njit(**COMPILE)
def _squared_length(row):
    total = row[0] * row[0]
    for k in range(1, row.size):
        total += row[k] * row[k]
    return total


@njit(**COMPILE)
def unit_rows(line, mean, rest, shortest, out):
    """Centred rows of unit length, for rows that are wide enough for matrix products; zero without direction."""
    n_rows, d = out.shape
    for i in range(n_rows):
        row = out[i]
        _centre_row(line[i * d : (i + 1) * d], mean, rest, row)
        length = np.sqrt(_squared_length(row))
        inverse = row.dtype.type(1.0 / length if length > shortest else 0.0)
        for k in range(d):
            row[k] *= inverse
