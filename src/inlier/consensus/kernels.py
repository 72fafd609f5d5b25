"""Compiled loops over pairs under a given map: residuals, support, histograms of residuals.

Points are columns, so that the innermost loops run along memory and vectorise; a tile of them stays in cache. The loops
run over slices from 0: else the compiler must allow for negative indices, keeps a slow version beside the fast one, and
which of them runs, with another rounding, depends on where the arrays happen to lie.
"""

from __future__ import annotations

import numpy as np

from inlier.engine.compiled import compiled

_TILE = 256

# Squared residuals are counted by the first bits of their floating-point form: exponent and two bits of the fraction.
# So there are four bins to an octave, and no logarithm is taken.
FRACTION_BITS = 50
LOWEST_BIN = (1023 - 70) << 2  # 2^-70
N_BINS = 80 << 2  # up to 2^10


@compiled
def _move(linear, shift, x, start, count, moved):
    """linear x + shift of a tile."""
    d_y, d_x = linear.shape
    for a in range(d_y):
        row = moved[a]
        for t in range(count):
            row[t] = shift[a]
        for b in range(d_x):
            factor, values = linear[a, b], x[b, start : start + count]
            for t in range(count):
                row[t] += factor * values[t]


@compiled
def _squared_distances(moved, first, y, start, count, squared):
    """|y_(start + t) - moved_(first + t)|^2 into squared[first + t]."""
    squared = squared[first : first + count]
    for t in range(count):
        squared[t] = 0.0
    for a in range(len(y)):
        here, there = moved[a, first : first + count], y[a, start : start + count]
        for t in range(count):
            step = there[t] - here[t]
            squared[t] += step * step


@compiled
def _tile_of_squares(linear, shift, x, y, start, count, moved, squared):
    """|y - linear x - shift|^2 of a tile; in the plane and in space without writing down linear x."""
    d_y, d_x = linear.shape
    stop = start + count
    if d_y == 3 and d_x == 3:
        a, b, c = linear[0], linear[1], linear[2]
        x0, x1, x2 = x[0, start:stop], x[1, start:stop], x[2, start:stop]
        y0, y1, y2 = y[0, start:stop], y[1, start:stop], y[2, start:stop]
        for t in range(count):
            u = y0[t] - shift[0] - a[0] * x0[t] - a[1] * x1[t] - a[2] * x2[t]
            v = y1[t] - shift[1] - b[0] * x0[t] - b[1] * x1[t] - b[2] * x2[t]
            w = y2[t] - shift[2] - c[0] * x0[t] - c[1] * x1[t] - c[2] * x2[t]
            squared[t] = u * u + v * v + w * w
    elif d_y == 2 and d_x == 2:
        a, b = linear[0], linear[1]
        x0, x1, y0, y1 = x[0, start:stop], x[1, start:stop], y[0, start:stop], y[1, start:stop]
        for t in range(count):
            u = y0[t] - shift[0] - a[0] * x0[t] - a[1] * x1[t]
            v = y1[t] - shift[1] - b[0] * x0[t] - b[1] * x1[t]
            squared[t] = u * u + v * v
    else:
        _move(linear, shift, x, start, count, moved)
        _squared_distances(moved, 0, y, start, count, squared)


@compiled
def squared_residuals(linear, shift, x, y, start, stop, out):
    """|y_i - linear x_i - shift|^2 for rows start to stop."""
    moved = np.empty((len(y), _TILE))
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _tile_of_squares(linear, shift, x, y, first, count, moved, out[first : first + count])


@compiled
def near_moments(linear, shift, x, y, weights, reach, sharpness, scattered, start, stop):
    """Sums over the pairs whose squared residual e is at most ``reach``: of 1, w, w x, w y, w y x^T and w x x^T.

    Each is weighted by w = weight / (1 + sharpness e)^2: all alike where the sharpness is 0. The last sum is left out
    (zeros) unless ``scattered``.
    """
    d_y, d_x = linear.shape
    moved, squared, w = np.empty((d_y, _TILE)), np.empty(_TILE), np.empty(_TILE)
    near, total = 0, 0.0
    sum_x, sum_y = np.zeros(d_x), np.zeros(d_y)
    cross, scatter = np.zeros((d_y, d_x)), np.zeros((d_x, d_x))
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _tile_of_squares(linear, shift, x, y, first, count, moved, squared)
        trust = weights[first : first + count]
        for t in range(count):
            inside = squared[t] <= reach
            falloff = 1.0 + sharpness * squared[t]
            w[t] = trust[t] / (falloff * falloff) if inside else 0.0
            near += inside
            total += w[t]
        for b in range(d_x):
            sum_x[b] += _weighted_sum(w, x[b, first : first + count], moved[0])  # leaves w x_b in moved[0]
            for a in range(d_y):
                cross[a, b] += _dot(moved[0], y[a, first : first + count])
            for c in range(b + 1 if scattered else 0):
                scatter[b, c] += _dot(moved[0], x[c, first : first + count])
                scatter[c, b] = scatter[b, c]
        for a in range(d_y):
            sum_y[a] += _dot(w, y[a, first : first + count])
    return near, total, sum_x, sum_y, cross, scatter


@compiled
def _weighted_sum(w, values, weighted):
    total = 0.0
    for t in range(values.size):
        weighted[t] = w[t] * values[t]
        total += weighted[t]
    return total


@compiled
def _dot(tile, values):
    total = 0.0
    for t in range(values.size):
        total += tile[t] * values[t]
    return total


@compiled
def support(linear, shift, x, y, squared_bound, found):
    """How many pairs each map brings within the bound."""
    moved, squared = np.empty((len(y), _TILE)), np.empty(_TILE)
    found[:] = 0
    for first in range(0, x.shape[1], _TILE):
        count = min(_TILE, x.shape[1] - first)
        for s in range(len(linear)):
            _tile_of_squares(linear[s], shift[s], x, y, first, count, moved, squared)
            within = 0
            for t in range(count):
                within += squared[t] <= squared_bound
            found[s] += within


@compiled
def common_support(linear, shift, squared_bounds, x, y):
    """How many pairs the first map brings within its bound, and how many of those the second brings within its own."""
    moved, squared, inside = np.empty((len(y), _TILE)), np.empty(_TILE), np.empty(_TILE, dtype=np.bool_)
    first_alone, both = 0, 0
    for first in range(0, x.shape[1], _TILE):
        count = min(_TILE, x.shape[1] - first)
        _tile_of_squares(linear[0], shift[0], x, y, first, count, moved, squared)
        for t in range(count):
            inside[t] = squared[t] <= squared_bounds[0]
            first_alone += inside[t]
        _tile_of_squares(linear[1], shift[1], x, y, first, count, moved, squared)
        for t in range(count):
            both += inside[t] and squared[t] <= squared_bounds[1]
    return first_alone, both


@compiled
def _same_point(points, i, j):
    """Whether columns i and j are equal: real correspondences repeat points."""
    a = 0
    while a < len(points) and points[a, i] == points[a, j]:
        a += 1
    return a == len(points)


@compiled
def histograms(linear, shift, x, y, rounds, unit, start, stop):
    """Count squared residuals, in units, of pairs (row 0) and of re-pairings (row 1), for rows start to stop.

    Pair i is re-paired with i + 1, ..., i + rounds, round and round, unless they share a point. So the pairs have to
    come in random order.
    """
    n = x.shape[1]
    counts = np.zeros((2, N_BINS), dtype=np.int64)
    moved, squared = np.empty((len(y), _TILE)), np.empty(_TILE)
    bits = squared.view(np.int64)
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _move(linear, shift, x, first, count, moved)
        for step in range(rounds + 1):
            before_the_end = min(max(n - step - first, 0), count)
            _squared_distances(moved, 0, y, first + step, before_the_end, squared)
            _squared_distances(
                moved, before_the_end, y, first + before_the_end + step - n, count - before_the_end, squared
            )
            for t in range(count):
                i, j = first + t, first + t + step
                j -= n if j >= n else 0
                if step == 0 or not (_same_point(x, i, j) or _same_point(y, i, j)):
                    squared[t] /= unit
                    place = (bits[t] >> FRACTION_BITS) - LOWEST_BIN
                    counts[min(step, 1), min(max(place, 0), N_BINS - 1)] += 1
    return counts


@compiled
def re_paired_squares(linear, shift, x, y, rounds, out):
    """|y_(i + step) - linear x_i - shift|^2 into out[step - 1, i]; -1 where the two pairs share a point."""
    n = x.shape[1]
    moved = np.empty((len(y), n))
    _move(linear, shift, x, 0, n, moved)
    for step in range(1, rounds + 1):
        _squared_distances(moved, 0, y, step, n - step, out[step - 1])
        _squared_distances(moved, n - step, y, 0, step, out[step - 1])
        for i in range(n):
            j = i + step - (n if i + step >= n else 0)
            if _same_point(x, i, j) or _same_point(y, i, j):
                out[step - 1, i] = -1.0


@compiled
def distances_between(points, i, j):
    """|p_i - p_j| for lists of columns i and j."""
    distance = np.zeros(i.size)
    for a in range(len(points)):
        for t in range(i.size):
            step = points[a, i[t]] - points[a, j[t]]
            distance[t] += step * step
    return np.sqrt(distance)
