"""Compiled loops over pairs under a given map: residuals, support, histograms of residuals.

Points are columns, so that the innermost loops run along memory and vectorise; a tile of them stays in cache. The loops
run over slices from 0: else the compiler must allow for negative indices, keeps a slow version beside the fast one, and
which of them runs, with another rounding, depends on where the arrays happen to lie.
"""

from __future__ import annotations

import numpy as np

from inlier.rows.compiled import compiled

_TILE = 256

# Squared residuals are counted by the first bits of their floating-point form: exponent and two bits of the fraction.
# So there are four bins to an octave, and no logarithm is taken.
FRACTION_BITS = 50
LOWEST_BIN = (1023 - 70) << 2  # 2^-70
N_BINS = 80 << 2  # up to 2^10
UPPER_ENDS = np.sqrt(  # of the bins, as residuals
    (np.arange(LOWEST_BIN + 1, LOWEST_BIN + N_BINS + 1, dtype=np.int64) << FRACTION_BITS).view(np.float64)
)


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
def _three_slices(points, start, count):
    stop = start + count
    return points[0, start:stop], points[1, start:stop], points[2, start:stop]


@compiled
def _squared_distances(moved, first, y, start, count, squared):
    """|y_(start + t) - moved_(first + t)|^2 into squared[first + t]; in space in one go."""
    squared = squared[first : first + count]
    if len(y) == 3:
        m0, m1, m2 = _three_slices(moved, first, count)
        y0, y1, y2 = _three_slices(y, start, count)
        for t in range(count):
            u, v, w = y0[t] - m0[t], y1[t] - m1[t], y2[t] - m2[t]
            squared[t] = u * u + v * v + w * w
        return
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
        x0, x1, x2 = _three_slices(x, start, count)
        y0, y1, y2 = _three_slices(y, start, count)
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
        tile_w = w[:count]
        near += _weigh_tile(squared, weights[first : first + count], reach, sharpness, tile_w)
        if d_x == 3 and d_y == 3 and not scattered:
            total += _add_in_space(tile_w, x, y, first, sum_x, sum_y, cross)
        else:
            total += _add_tile(tile_w, x, y, first, scattered, moved[0], sum_x, sum_y, cross, scatter)
    return near, total, sum_x, sum_y, cross, scatter


@compiled
def _weigh_tile(squared, trust, reach, sharpness, w):
    """w = trust / (1 + sharpness e)^2 within reach, else 0; how many are."""
    near = 0
    for t in range(w.size):
        near += squared[t] <= reach
    for t in range(w.size):
        falloff = 1.0 + sharpness * squared[t]
        w[t] = (trust[t] if squared[t] <= reach else 0.0) / (falloff * falloff)
    return near


@compiled
def _add_tile(w, x, y, start, scattered, weighted, sum_x, sum_y, cross, scatter):
    """Add a tile's sums; return that of its weights."""
    # Rows are cut one by one: of x[:, start:stop] the compiler would not know that they lie without gaps.
    total, stop = 0.0, start + w.size
    for t in range(w.size):
        total += w[t]
    for b in range(len(x)):
        sum_x[b] += _weighted_sum(w, x[b, start:stop], weighted)  # leaves w x_b in weighted
        for a in range(len(y)):
            cross[a, b] += _dot(weighted, y[a, start:stop])
        for c in range(b + 1 if scattered else 0):
            scatter[b, c] += _dot(weighted, x[c, start:stop])
            scatter[c, b] = scatter[b, c]
    for a in range(len(y)):
        sum_y[a] += _dot(w, y[a, start:stop])
    return total


@compiled
def _add_in_space(w, x, y, start, sum_x, sum_y, cross):
    """Do the same in three dimensions without the scatter: sixteen running sums in one loop, three times as fast."""
    x0, x1, x2 = _three_slices(x, start, w.size)
    y0, y1, y2 = _three_slices(y, start, w.size)
    total = a0 = a1 = a2 = b0 = b1 = b2 = 0.0
    c00 = c01 = c02 = c10 = c11 = c12 = c20 = c21 = c22 = 0.0
    for t in range(w.size):
        u0, u1, u2 = w[t] * x0[t], w[t] * x1[t], w[t] * x2[t]
        v0, v1, v2 = y0[t], y1[t], y2[t]
        total, a0, a1, a2 = total + w[t], a0 + u0, a1 + u1, a2 + u2
        b0, b1, b2 = b0 + w[t] * v0, b1 + w[t] * v1, b2 + w[t] * v2
        c00, c01, c02 = c00 + v0 * u0, c01 + v0 * u1, c02 + v0 * u2
        c10, c11, c12 = c10 + v1 * u0, c11 + v1 * u1, c12 + v1 * u2
        c20, c21, c22 = c20 + v2 * u0, c21 + v2 * u1, c22 + v2 * u2
    _add_three(sum_x, a0, a1, a2)
    _add_three(sum_y, b0, b1, b2)
    _add_three(cross[0], c00, c01, c02)
    _add_three(cross[1], c10, c11, c12)
    _add_three(cross[2], c20, c21, c22)
    return total


@compiled
def _add_three(sums, first, second, third):
    sums[0] += first
    sums[1] += second
    sums[2] += third


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
def counts_within(linear, shift, x, y, first_step, last_step, unit, start, stop):
    """How many squared residuals, in units, of x_i and y_(i + step) lie below the upper end of each bin.

    Of rows start to stop and all these steps. Step 0 are the pairs themselves. Others re-pair them, round and round,
    unless they share a point; so the pairs have to come in random order.
    """
    n = x.shape[1]
    counts = np.zeros(N_BINS, dtype=np.int64)
    moved, squared = np.empty((len(y), _TILE)), np.empty(_TILE)
    bins = squared.view(np.int64)
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _move(linear, shift, x, first, count, moved)
        for step in range(first_step, last_step + 1):
            ahead = min(max(n - step - first, 0), count)  # partners before the end; the others are at the beginning
            parts = ((0, first + step, ahead), (ahead, first + ahead + step - n, count - ahead))
            for offset, partner, length in parts:
                _squared_distances(moved, offset, y, partner, length, squared)
            _to_bins(squared, unit, count)
            for offset, partner, length in parts:
                if step > 0:
                    _mark_same_points(x, y, first + offset, partner, length, bins[offset:])
            for t in range(count):
                if bins[t] >= 0:
                    counts[bins[t]] += 1
    for k in range(1, N_BINS):
        counts[k] += counts[k - 1]
    return counts


@compiled
def _to_bins(squared, unit, count):
    """Replace each squared residual by the number of its bin, in the same memory."""
    bins = squared.view(np.int64)
    for t in range(count):
        squared[t] /= unit
    for t in range(count):
        bins[t] = min(max((bins[t] >> FRACTION_BITS) - LOWEST_BIN, 0), N_BINS - 1)


@compiled
def _may_be_same(x, y, i, j, count):
    """Whether some columns i + t and j + t of x or of y may be equal: first coordinates that all differ rule it out."""
    alike = 0
    for points in (x, y):
        here, there = points[0, i : i + count], points[0, j : j + count]
        for t in range(count):
            alike += here[t] == there[t]
    return alike > 0


@compiled
def _mark_same_points(x, y, i, j, count, bins):
    """Bin -1 where columns i + t and j + t of x or of y are equal."""
    for t in range(count if _may_be_same(x, y, i, j, count) else 0):
        if _same_point(x, i + t, j + t) or _same_point(y, i + t, j + t):
            bins[t] = -1


@compiled
def re_paired_residuals(linear, shift, x, y, rounds):
    """|y_(i + step) - linear x_i - shift| for steps from 1 on, except where the two pairs share a point."""
    n = x.shape[1]
    moved, squared = np.empty((len(y), _TILE)), np.empty(_TILE)
    residuals, found = np.empty(rounds * n), 0
    for first in range(0, n, _TILE):
        count = min(_TILE, n - first)
        _move(linear, shift, x, first, count, moved)
        for step in range(1, rounds + 1):
            ahead = min(max(n - step - first, 0), count)  # partners before the end; the others are at the beginning
            for offset, partner, length in ((0, first + step, ahead), (ahead, first + ahead + step - n, count - ahead)):
                _squared_distances(moved, offset, y, partner, length, squared)
                here, line = squared[offset : offset + length], residuals[found : found + length]
                for t in range(length):
                    line[t] = np.sqrt(here[t])
                with_care = _may_be_same(x, y, first + offset, partner, length)
                found += length if not with_care else _without_same(x, y, first + offset, partner, line)
    return residuals[:found]


@compiled
def _without_same(x, y, i, j, line):
    """Move the entries up whose columns i + t and j + t are different points; how many they are."""
    kept = 0
    for t in range(line.size):
        line[kept] = line[t]
        kept += not (_same_point(x, i + t, j + t) or _same_point(y, i + t, j + t))
    return kept
