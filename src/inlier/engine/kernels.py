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

_TILE = 128  # rows; a tile of both sides at d = 8 takes 16 KiB
_COMPILE = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    # Sums may be reordered, which is what vectorising them means; NaN and infinity keep their meaning.
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}


@njit(**_COMPILE)
def _load_tile(line, start, count, mean, tile, squared_length):
    """Centred rows, transposed, into ``tile``; their squared lengths beside them."""
    d = len(mean)
    for t in range(count):
        total = 0.0
        for a in range(d):
            centred = line[(start + t) * d + a] - mean[a]
            tile[a * _TILE + t] = centred
            total += centred * centred
        squared_length[t] = total


@njit(**_COMPILE)
def _load_pair(X, Y, preparation, start, count, x, y, squared_x, squared_y, factor):
    """Load both sides of a tile; ``factor`` is 1 / (|x| |y|), or 0 where either has no direction.

    Rows that are not to be scaled to unit length have factor 1.
    """
    mean_x, mean_y, shortest_x, shortest_y, unit_length = preparation
    _load_tile(X, start, count, mean_x, x, squared_x)
    _load_tile(Y, start, count, mean_y, y, squared_y)
    if not unit_length:
        factor[:count] = 1.0
        return
    least_x, least_y = shortest_x * shortest_x, shortest_y * shortest_y
    for t in range(count):
        inverse = 1.0 / np.sqrt(squared_x[t] * squared_y[t])
        factor[t] = inverse if squared_x[t] > least_x and squared_y[t] > least_y else 0.0


@njit(**_COMPILE)
def _tile_bilinear(x, y, d_x, d_y, matrix, count, work, score):
    """score[t] = x_t^T U y_t for one tile."""
    score[:count] = 0.0
    for a in range(d_x):
        work[:count] = 0.0
        for b in range(d_y):
            u = matrix[a, b]
            for t in range(count):
                work[t] += u * y[b * _TILE + t]
        for t in range(count):
            score[t] += x[a * _TILE + t] * work[t]


@njit(**_COMPILE)
def _add_tile_moment(x, y, d_x, d_y, weight, count, work, total):
    """total += sum of w_t x_t y_t^T over one tile."""
    for b in range(d_y):
        for t in range(count):
            work[t] = weight[t] * y[b * _TILE + t]
        for a in range(d_x):
            partial = 0.0
            for t in range(count):
                partial += x[a * _TILE + t] * work[t]
            total[a, b] += partial


@njit(**_COMPILE)
def _workspace(preparation):
    """Dimensions; tiles of both sides, their squared lengths, the scale factor, and two rows of scratch."""
    d_x, d_y = len(preparation[0]), len(preparation[1])
    rows = np.empty((5, _TILE))
    return d_x, d_y, np.empty(d_x * _TILE), np.empty(d_y * _TILE), rows[0], rows[1], rows[2], rows[3], rows[4]


@njit(**_COMPILE)
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


@njit(**_COMPILE)
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


@njit(**_COMPILE)
def _tile_products(tile, d, factor, count, products):
    """All products of two coordinates times the squared factor, in the order of ``np.triu_indices``."""
    row = 0
    for a in range(d):
        for c in range(a, d):
            for t in range(count):
                products[row, t] = tile[a * _TILE + t] * tile[c * _TILE + t] * (factor[t] * factor[t])
            row += 1


@njit(**_COMPILE)
def product_moment(X, Y, preparation, start, stop):
    """Sum over rows start..stop of the distinct products x_a x_c y_b y_e."""
    d_x, d_y, x, y, squared_x, squared_y, factor, _, ones = _workspace(preparation)
    ones[:] = 1.0
    p, q = d_x * (d_x + 1) // 2, d_y * (d_y + 1) // 2
    products_x, products_y = np.zeros((p, _TILE)), np.zeros((q, _TILE))
    total = np.zeros((p, q))
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _load_pair(X, Y, preparation, first, count, x, y, squared_x, squared_y, factor)
        _tile_products(x, d_x, factor, count, products_x)
        _tile_products(y, d_y, ones, count, products_y)
        products_x[:, count:] = 0.0  # the last tile is not full
        total += np.dot(products_x, products_y.T)
    return total


@njit(**_COMPILE)
def bilinear(X, Y, preparation, start, stop, scores, matrix):
    """scores[i] = x_i^T U y_i for rows start..stop."""
    d_x, d_y, x, y, squared_x, squared_y, factor, work, score = _workspace(preparation)
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _load_pair(X, Y, preparation, first, count, x, y, squared_x, squared_y, factor)
        _tile_bilinear(x, y, d_x, d_y, matrix, count, work, score)
        for t in range(count):
            scores[first + t] = score[t] * factor[t]


@njit(**_COMPILE)
def leave_one_out(X, Y, preparation, start, stop, scores, matrix):
    """scores[i] = x_i^T U y_i - |x_i|^2 |y_i|^2 for rows start..stop."""
    d_x, d_y, x, y, squared_x, squared_y, factor, work, score = _workspace(preparation)
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _load_pair(X, Y, preparation, first, count, x, y, squared_x, squared_y, factor)
        _tile_bilinear(x, y, d_x, d_y, matrix, count, work, score)
        for t in range(count):
            own = squared_x[t] * squared_y[t] * factor[t] * factor[t]  # 1 for unit rows, 0 without direction
            scores[first + t] = score[t] * factor[t] - own


@njit(**_COMPILE)
def column_summary(line, d, start, stop):
    """Sum, minimum and maximum of each column over rows start..stop.

    A stretch of eight rows is a vector of 8 d numbers whose entry k always belongs to column k mod d; four
    stretches are taken together, so that the running values are read and written once for all four.
    """
    width = 8 * d
    sums, low, high = np.zeros(width), np.full(width, np.inf), np.full(width, -np.inf)
    first, end = start * d, stop * d
    while first + 4 * width <= end:
        # Slices, so that every index below is plainly not negative: a condition for vectorising.
        one, two = line[first : first + width], line[first + width : first + 2 * width]
        three, four = line[first + 2 * width : first + 3 * width], line[first + 3 * width : first + 4 * width]
        for k in range(width):
            sums[k] += (np.float64(one[k]) + two[k]) + (np.float64(three[k]) + four[k])
        for k in range(width):
            low[k] = min(low[k], min(min(one[k], two[k]), min(three[k], four[k])))
        for k in range(width):
            high[k] = max(high[k], max(max(one[k], two[k]), max(three[k], four[k])))
        first += 4 * width
    total, minimum, maximum = np.zeros(d), np.full(d, np.inf), np.full(d, -np.inf)
    for k in range(width):
        total[k % d] += sums[k]
        minimum[k % d] = min(minimum[k % d], low[k])
        maximum[k % d] = max(maximum[k % d], high[k])
    for k in range(first, end):
        value = np.float64(line[k])
        column = k % d
        total[column] += value
        minimum[column] = min(minimum[column], value)
        maximum[column] = max(maximum[column], value)
    return total, minimum, maximum
