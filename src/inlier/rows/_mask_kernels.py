"""Compiled loops over rows of which some are marked."""

from __future__ import annotations

import numpy as np

from inlier.rows.compiled import compiled

_LEAST, _MOST = np.int64(-(2**63)), np.int64(2**63 - 1)


@compiled
def extremes_of_marked(mask, first, second):
    """How many rows are marked, the largest entry of the first list among theirs, and the smallest of the second.

    By whole numbers that rise as the entries do: the largest of those vectorises.
    """
    one, two = first.view(np.int64), second.view(np.int64)
    count, largest, smallest = 0, _LEAST, _MOST
    for i in range(mask.size):
        chosen = -np.int64(mask[i])  # all bits, or none
        count -= chosen
        largest = max(largest, (_as_whole(one[i]) & chosen) | (_LEAST & ~chosen))
        smallest = min(smallest, (_as_whole(two[i]) & chosen) | (_MOST & ~chosen))
    # The way back is the same.
    ends = np.array([_as_whole(largest), _as_whole(smallest)]).view(np.float64)
    return count, ends[0] if count else -np.inf, ends[1] if count else np.inf


@compiled
def _as_whole(bits):
    """The bits of a float64 as a whole number that rises with it: of negative ones, all but the sign are turned."""
    return bits ^ ((bits >> np.int64(63)) & _MOST)


@compiled
def evenly_spread(mask, n_marked, most_marked, most_others):
    """Rows in rising order: at most so many of the marked, first to last, and at most so many of the others."""
    n_others = mask.size - n_marked
    of_marked, of_others = min(most_marked, n_marked), min(most_others, n_others)
    rows, found = np.empty(of_marked + of_others, dtype=np.intp), 0
    taken = np.zeros(2, dtype=np.intp)  # of the others, of the marked
    marked, next_marked, next_others = 0, 0 if of_marked else n_marked, 0 if of_others else n_others
    for i in range(mask.size):
        seen, following = (marked, next_marked) if mask[i] else (i - marked, next_others)
        if seen == following:  # seldom, so no time is lost by a wrong guess
            rows[found] = i
            found += 1
            taken[np.intp(mask[i])] += 1
            next_others = _rank(taken[0], of_others, n_others)
            next_marked = _rank(taken[1], of_marked, n_marked)
        marked += mask[i]
    return rows


@compiled
def _rank(number, size, n):
    """The rank of entry ``number`` of ``size`` that are spread over n; beyond the last, one that there is not."""
    return int(number * ((n - 1) / max(size - 1, 1)) + 0.5) if number < size else n


@compiled
def every_so_manieth(values, weights, limit, enough):
    """Rows with a weight whose values are no larger: of many every so manieth; and how many there are."""
    count = 0
    for i in range(values.size):
        count += (values[i] <= limit) & (weights[i] > 0)
    step = max(1, count // enough)
    rows, found, seen = np.empty(-(-count // step), dtype=np.intp), 0, 0
    for i in range(values.size):
        is_near = (values[i] <= limit) & (weights[i] > 0)
        if is_near & (seen == found * step):
            rows[found] = i
            found += 1
        seen += is_near
    return rows, count
