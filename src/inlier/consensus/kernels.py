"""Compiled loops over pairs under a given map: residuals, support, histograms of residuals.

Points are columns, so that the innermost loops run along memory and vectorise; a tile of them stays in cache.
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
        for t in range(count):
            moved[a, t] = shift[a]
        for b in range(d_x):
            factor = linear[a, b]
            for t in range(count):
                moved[a, t] += factor * x[b, start + t]


@compiled
def _squared_distances(moved, first, y, start, count, squared):
    """|y_(start + t) - moved_(first + t)|^2 into squared[first + t]."""
    for t in range(count):
        squared[first + t] = 0.0
    for a in range(len(y)):
        for t in range(count):
            step = y[a, start + t] - moved[a, first + t]
            squared[first + t] += step * step


@compiled
def squared_residuals(linear, shift, x, y, start, stop, out):
    """|y_i - linear x_i - shift|^2 for rows start to stop."""
    moved = np.empty((len(y), _TILE))
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        _move(linear, shift, x, first, count, moved)
        _squared_distances(moved, 0, y, first, count, out[first : first + count])


@compiled
def support(linear, shift, x, y, squared_bound, found):
    """How many pairs each map brings within the bound."""
    moved, squared = np.empty((len(y), _TILE)), np.empty(_TILE)
    found[:] = 0
    for first in range(0, x.shape[1], _TILE):
        count = min(_TILE, x.shape[1] - first)
        for s in range(len(linear)):
            _move(linear[s], shift[s], x, first, count, moved)
            _squared_distances(moved, 0, y, first, count, squared)
            for t in range(count):
                found[s] += squared[t] <= squared_bound


@compiled
def histograms(linear, shift, x, y, points, rounds, unit, start, stop):
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
                if step == 0 or (points[0, i] != points[0, j] and points[1, i] != points[1, j]):
                    squared[t] /= unit
                    place = (bits[t] >> FRACTION_BITS) - LOWEST_BIN
                    counts[min(step, 1), min(max(place, 0), N_BINS - 1)] += 1
    return counts


@compiled
def re_paired_squares(linear, shift, x, y, points, rounds, out):
    """|y_(i + step) - linear x_i - shift|^2 into out[step - 1, i]; -1 where the two pairs share a point."""
    n = x.shape[1]
    moved = np.empty((len(y), n))
    _move(linear, shift, x, 0, n, moved)
    for step in range(1, rounds + 1):
        _squared_distances(moved, 0, y, step, n - step, out[step - 1])
        _squared_distances(moved, n - step, y, 0, step, out[step - 1])
        for i in range(n):
            j = i + step - (n if i + step >= n else 0)
            if points[0, i] == points[0, j] or points[1, i] == points[1, j]:
                out[step - 1, i] = -1.0
