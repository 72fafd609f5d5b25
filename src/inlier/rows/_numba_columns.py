"""Compiled loops along one line of numbers: column summaries of a table, histogram and window of a vector."""

from __future__ import annotations

import numpy as np
from numba import njit

_FEW = 32  # values looked at together for something of interest
COMPILE = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    # Sums may be reordered, which is what vectorising them means; NaN and infinity keep their meaning.
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
_COMPILE_WITHOUT_NAN = {**COMPILE, "fastmath": {"reassoc", "contract", "nsz", "nnan"}}  # so that a minimum vectorises


@njit(**COMPILE)
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


@njit(**COMPILE)
def histogram(values, low, per_bucket, n_buckets):
    """Number and sum of the values in each of equal buckets from ``low`` on, and how many are exactly 0.

    Values beyond the ends count with the first and the last bucket. Four tables in turn: neighbours that fall into
    one bucket need not wait for each other.
    """
    counts, sums = np.zeros(4 * n_buckets, np.int64), np.zeros(4 * n_buckets)
    zeros, last = 0, n_buckets - 1.0
    for i in range(values.size):
        value = values[i]
        place = (value - low) * per_bucket
        place = place if place > 0.0 else 0.0  # written so that NaN, too, has a bucket
        bucket = np.uint32(place if place < last else last)
        entry = (i & 3) * n_buckets + bucket
        counts[entry] += 1
        sums[entry] += value
        zeros += value == 0.0
    for entry in range(n_buckets, 4 * n_buckets):
        counts[entry % n_buckets] += counts[entry]
        sums[entry % n_buckets] += sums[entry]
    return counts[:n_buckets], sums[:n_buckets], zeros


@njit(**_COMPILE_WITHOUT_NAN)
def window(values, low, high):
    """Number, sum and largest of what lies below ``low``; number, sum and smallest from ``high`` on; and the rest."""
    below = above = 0
    sum_below = sum_above = 0.0
    for i in range(values.size):
        value = values[i]
        below += value < low
        above += value >= high
        sum_below += value if value < low else 0.0
        sum_above += value if value >= high else 0.0
    largest_below, smallest_above = -np.inf, np.inf
    inside, k = np.empty(values.size - below - above), 0
    for first in range(0, values.size, _FEW):
        some = values[first : first + _FEW]
        # What lies between the two nearest so far is inside, or nearer; most stretches hold nothing of the kind.
        interesting = 0
        for i in range(some.size):
            interesting += (some[i] > largest_below) & (some[i] < smallest_above)
        if interesting:
            for i in range(some.size):
                value = some[i]
                if value < low:
                    largest_below = max(largest_below, value)
                elif value >= high:
                    smallest_above = min(smallest_above, value)
                else:
                    inside[k] = value
                    k += 1
    return below, sum_below, largest_below, above, sum_above, smallest_above, inside[:k]
