"""Compiled loops over pairs under a given map: residuals, support, histograms of residuals, weighted moments.

Points are columns, so that the innermost loops run along memory and vectorise; a tile of them stays in cache. All
arrays are C-contiguous, numbers are float64 and room to write in is given: then each loop is compiled once, and nothing
beside it. Slices start at 0 in the innermost loops: else the compiler must allow for negative indices.

x_i is compared with y_(i + step): step 0 are the pairs themselves. y goes on after its end with its first columns, so
that a step leads to another pair for every i; see `ColumnPairs.y_around`.
"""

from __future__ import annotations

import numpy as np

from inlier.rows.compiled import compiled

TILE = 256

# Squared residuals are counted by the first bits of their floating-point form: exponent and two bits of the fraction.
# So there are four bins to an octave, and no logarithm is taken.
_FRACTION_BITS = 50
_LOWEST_BIN = (1023 - 70) << 2  # 2^-70
N_BINS = 80 << 2  # up to 2^10
UPPER_ENDS = np.sqrt(  # of the bins, as residuals
    (np.arange(_LOWEST_BIN + 1, _LOWEST_BIN + N_BINS + 1, dtype=np.int64) << _FRACTION_BITS).view(np.float64)
)


@compiled
def squared_residuals(linear, shift, x, y, step, start, stop, room, out):
    """|y_(i + step) - linear x_i - shift|^2 for i from start to stop, into out[: stop - start]."""
    d_y, d_x = linear.shape
    for first in range(start, stop, TILE):
        count = stop - first if stop - first < TILE else TILE
        last, partner, tile = first + count, first + step, out[first - start : first - start + count]
        if d_y == 3 and d_x == 3:  # in one go: three times as fast
            a, b, c = linear[0], linear[1], linear[2]
            x0, x1, x2 = x[0, first:last], x[1, first:last], x[2, first:last]
            y0, y1, y2 = y[0, partner:], y[1, partner:], y[2, partner:]
            for t in range(count):
                u = y0[t] - shift[0] - a[0] * x0[t] - a[1] * x1[t] - a[2] * x2[t]
                v = y1[t] - shift[1] - b[0] * x0[t] - b[1] * x1[t] - b[2] * x2[t]
                w = y2[t] - shift[2] - c[0] * x0[t] - c[1] * x1[t] - c[2] * x2[t]
                tile[t] = u * u + v * v + w * w
            continue
        gap = room[-1]
        for a in range(d_y):
            there = y[a, partner:]
            for t in range(count):
                gap[t] = there[t] - shift[a]
            for b in range(d_x):
                here, factor = x[b, first:last], linear[a, b]
                for t in range(count):
                    gap[t] -= factor * here[t]
            for t in range(count):
                tile[t] = gap[t] * gap[t] + (tile[t] if a > 0 else 0.0)


@compiled
def near_moments(linear, shift, x, y, step, weights, reach, sharpness, start, stop, room, sums):
    """Add up z z^T over the pairs whose squared residual e is at most ``reach``, z = (1, x, y), into ``sums``.

    Each is weighted by w = weight / (1 + sharpness e)^2: all alike where the sharpness is 0. Return how many they are.
    Only the products of x and y with 1 and x are needed: those of y with y are left out.
    """
    d_y, d_x = linear.shape
    near = 0
    for first in range(start, stop, TILE):
        count = stop - first if stop - first < TILE else TILE
        w, product = room[0, :count], room[1, :count]
        squared_residuals(linear, shift, x, y, step, first, first + count, room, w)
        trust = weights[first : first + count]
        for t in range(count):
            near += w[t] <= reach
        for t in range(count):
            falloff = 1.0 + sharpness * w[t]
            w[t] = (trust[t] if w[t] <= reach else 0.0) / (falloff * falloff)
        total = 0.0
        for t in range(count):
            total += w[t]
        sums[0, 0] += total
        for a in range(d_y):
            sums[d_x + 1 + a, 0] += _dot(w, y[a, first : first + count])
        for b in range(d_x):
            here = x[b, first : first + count]
            total = 0.0
            for t in range(count):
                product[t] = w[t] * here[t]
                total += product[t]
            sums[b + 1, 0] += total
            for c in range(b + 1):
                sums[b + 1, c + 1] += _dot(product, x[c, first : first + count])
            for a in range(d_y):
                sums[d_x + 1 + a, b + 1] += _dot(product, y[a, first : first + count])
    return near


@compiled
def _dot(tile, values):
    total = 0.0
    for t in range(tile.size):
        total += tile[t] * values[t]
    return total


@compiled
def count_residuals(linear, shift, x, y, points, shared, steps, per_unit, start, stop, room, room_bits, counts):
    """Count the squared residuals of x_i and y_(i + step), in units, by bins: i from start to stop, for all steps.

    Where some points are ``shared`` by several pairs, a re-pairing of two pairs that have the same point (by the
    numbers of points, (2, n) and around) is not counted: it may be a real pair.
    """
    squared, bits = room[0], room_bits[0]
    for first in range(start, stop, TILE):
        count = stop - first if stop - first < TILE else TILE
        for step in range(steps[0], steps[1]):
            squared_residuals(linear, shift, x, y, step, first, first + count, room, squared)
            for t in range(count):
                squared[t] *= per_unit
            for t in range(count):
                place = (bits[t] >> _FRACTION_BITS) - _LOWEST_BIN
                place = 0 if place < 0 else N_BINS - 1 if place >= N_BINS else place
                if shared and step > 0:
                    i, j = first + t, first + t + step
                    if points[0, i] == points[0, j] or points[1, i] == points[1, j]:
                        continue
                counts[place] += 1


@compiled
def support_within(linear, shift, x, y, step, start, squared_bounds, room, squared, found):
    """Count, for each map s, the residuals of x_i and y_(i + step) up to the bounds [k, s], and add to found[k, s]."""
    for s in range(len(linear)):
        squared_residuals(linear[s], shift[s], x, y, step, start, start + squared.size, room, squared)
        for k in range(len(squared_bounds)):
            limit, count = squared_bounds[k, s], 0
            for t in range(squared.size):
                count += squared[t] <= limit
            found[k, s] += count
