"""Compiled loops over rows of which some are marked."""

from __future__ import annotations

import numpy as np

from inlier.engine.compiled import compiled, compiled_without_nan


@compiled_without_nan
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
    n_others = mask.size - n_marked
    marked, others = np.empty(n_marked + 1, dtype=np.intp), np.empty(n_others + 1, dtype=np.intp)
    m = o = 0
    for i in range(mask.size):  # without a branch, which nobody could foretell
        marked[m], others[o] = i, i
        m += mask[i]
        o += not mask[i]
    of_marked, of_others = min(most_marked, n_marked), min(most_others, n_others)
    rows = np.empty(of_marked + of_others, dtype=np.intp)
    m = o = 0
    for k in range(rows.size):
        next_marked = marked[_rank(m, of_marked, n_marked)] if m < of_marked else mask.size
        next_others = others[_rank(o, of_others, n_others)] if o < of_others else mask.size
        rows[k] = min(next_marked, next_others)
        m += next_marked < next_others
        o += next_others < next_marked
    return rows


@compiled
def _rank(number, size, n):
    """The rank of entry ``number`` of ``size`` that are spread over n."""
    return int(number * ((n - 1) / max(size - 1, 1)) + 0.5)


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
