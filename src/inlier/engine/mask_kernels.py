"""Compiled loops over rows of which some are marked."""

from __future__ import annotations

import numpy as np

from inlier.engine.compiled import compiled


@compiled
def extremes_of_marked(mask, first, second):
    """How many rows are marked, the largest entry of the first list among theirs, and the smallest of the second."""
    count, largest, smallest = 0, -np.inf, np.inf
    for i in range(mask.size):
        count += mask[i]
        largest = max(largest, first[i] if mask[i] else -np.inf)
        smallest = min(smallest, second[i] if mask[i] else np.inf)
    return count, largest, smallest


@compiled
def evenly_spread(mask, n_marked, most_marked, most_others):
    """Rows in rising order: at most so many of the marked, first to last, and at most so many of the others."""
    of_marked, of_others = min(most_marked, n_marked), min(most_others, mask.size - n_marked)
    rows, found = np.empty(of_marked + of_others, dtype=np.intp), 0
    seen_marked = seen_others = taken_marked = taken_others = 0
    next_marked, next_others = 0 if of_marked else mask.size, 0 if of_others else mask.size
    for i in range(mask.size):
        if mask[i]:
            if seen_marked == next_marked:
                rows[found] = i
                found, taken_marked = found + 1, taken_marked + 1
                next_marked = _rank(taken_marked, of_marked, n_marked)
            seen_marked += 1
        else:
            if seen_others == next_others:
                rows[found] = i
                found, taken_others = found + 1, taken_others + 1
                next_others = _rank(taken_others, of_others, mask.size - n_marked)
            seen_others += 1
    return rows


@compiled
def _rank(number, size, n):
    """The rank of entry ``number`` of ``size`` that are spread over n; n after the last."""
    if number >= size:
        return n
    return (2 * number * (n - 1) + size - 1) // (2 * (size - 1))


@compiled
def every_so_manieth(values, weights, limit, enough):
    """Rows with a weight whose values are no larger: of many every so manieth; and how many there are."""
    count = 0
    for i in range(values.size):
        count += (values[i] <= limit) & (weights[i] > 0)
    step = max(1, count // enough)
    rows, found, left = np.empty(-(-count // step), dtype=np.intp), 0, 0
    for i in range(values.size):
        if values[i] <= limit and weights[i] > 0:
            if left == 0:
                rows[found] = i
                found, left = found + 1, step
            left -= 1
    return rows, count
