"""Two-means on a line, for the steps "apply k-means" of Algorithms 1 and 2.

A cluster is an interval, its mean comes from prefix sums, and the whole rule is one cut: values at or above it
belong to the larger centroid. Few values are sorted. Of many, only those near the cut are: a histogram of counts
and sums tells in which buckets it can lie, and the answer is the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows.namespaces import is_host_array
from inlier.rows.scores import ROUNDING, Histogram, Scores, Tail, Window

_WORTH_A_HISTOGRAM = 200_000  # values; fewer are sorted at once
_LARGEST_WINDOW = 100_000  # values that are sorted in the end; a window with more is looked at more closely first
_MOST_LOOKS = 8
_WORTH_ANOTHER_LOOK = 0.9  # a stretch that is hardly shorter than the one before will not get shorter
_MOST_STEPS = 1000


def lloyd_cut(values: FloatArray | Scores, low: float, high: float) -> float:
    """Cut found by Lloyd's iteration from the centroids ``low`` < ``high`` (Algorithm 1).

    A cluster that is empty keeps its centroid, so values that all lie nearer to ``high`` stay together.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.overlap.two_means import lloyd_cut
    >>> lloyd_cut(np.array([-0.1, 0.1, 0.9, 1.1]), -1.0, 1.0)
    0.5
    """
    start = (low + high) / 2
    if _is_few(values):
        return _lloyd_in(_all_of(values), low, high, start)[0]
    scores = values if isinstance(values, Scores) else Scores.of_values(values)
    start, least, most = _lloyd_stretch(scores, low, high, start)
    cut, stayed = _lloyd_in(scores.window(least, most), low, high, start, least, most)
    return cut if stayed else _lloyd_in(scores.window(-np.inf, np.inf), low, high, (low + high) / 2)[0]


def optimal_cut(values: FloatArray | Scores) -> float:
    """Cut of the best of all two-cluster partitions (Algorithm 2, which names no start).

    With n_1 values of mean m_1 below the cut and n_2 of mean m_2 above, the within-cluster sum of
    squares is smallest where n_1 n_2 (m_2 - m_1)^2 is largest. Equal values are never parted; where
    all are equal there is nothing to cut, and the cut is that value: all belong together.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.overlap.two_means import optimal_cut
    >>> optimal_cut(np.array([5.0, 0.0, 1.0, 6.0]))
    3.0
    """
    if _is_few(values):
        return _best_cut_in(_all_of(values))
    scores = values if isinstance(values, Scores) else Scores.of_values(values)
    histogram = scores.histogram()
    for _ in range(_MOST_LOOKS):
        low, high, n_inside = _buckets_with_best_cut(histogram)
        first, last = max(low, histogram.edges[0]), min(high, histogram.edges[-1])
        if n_inside <= _LARGEST_WINDOW or last - first > _WORTH_ANOTHER_LOOK * np.ptp(histogram.edges):
            break
        histogram = scores.histogram(first, last)
    return _best_cut_in(scores.window(low, high))


def _is_few(values: Any) -> bool:
    return is_host_array(values) and values.size < _WORTH_A_HISTOGRAM


def _all_of(values: Any) -> Window:
    return Window(Tail(0, 0.0, -np.inf), np.sort(values), Tail(0, 0.0, np.inf))


def _best_cut_in(window: Window) -> float:
    """Try every cut between neighbours in the window, the one on each side of it among them."""
    below, inside, above = window
    n, mean = _count_and_mean(window)
    left = np.concatenate([[below.nearest], inside])  # of cut k, with k of the inside values below it
    right = np.append(inside, above.nearest)
    n_low = below.number + np.arange(inside.size + 1)
    centred = below.sum - below.number * mean + np.concatenate([[0.0], np.cumsum(inside - mean)])
    allowed = (left < right) & (n_low > 0) & (n_low < n)
    if not allowed.any():  # all values are one
        return float(inside[0])
    # With total mean 0: n_1 n_2 (m_2 - m_1)^2 = n^2 total_1^2 / (n_1 n_2).
    separation = np.where(allowed, centred**2 / np.maximum(n_low * (n - n_low), 1), -1.0)
    best = int(np.argmax(separation))
    mean_low = (below.sum + inside[:best].sum()) / n_low[best]
    mean_high = (above.sum + inside[best:].sum()) / (n - n_low[best])
    # At the optimum the middle of the centroids parts the same values; rounding must not move one across.
    return float(np.clip((mean_low + mean_high) / 2, np.nextafter(left[best], np.inf), right[best]))


def _count_and_mean(window: Window) -> tuple[int, float]:
    below, inside, above = window
    n = below.number + inside.size + above.number
    return n, (below.sum + float(inside.sum()) + above.sum) / n


def _buckets_with_best_cut(histogram: Histogram) -> tuple[float, float, int]:
    """The stretch of buckets outside which no cut can be the best, and how many values it holds.

    At an edge the criterion f = T^2 / (n_1 n_2) is known, T being the centred total below. Inside a bucket from a to
    b with c values, k of them below the cut: the k smallest are at least a, and the others at most b, so
    |T| <= min(|T_0| - k a, |T_1| + (c - k) b) with a and b centred. Both are linear in k and n_1 n_2 is concave, so
    the bound on f is convex on either side of where they meet, k = (|T_0| - |T_1| - c b) / (a - b); its largest
    value is there or at an edge.
    """
    edges, counts, sums, _ = histogram
    n = int(counts.sum())
    mean = float(sums.sum()) / n
    centred = edges - mean
    n_low = np.concatenate([[0], np.cumsum(counts)]).astype(np.float64)
    total = np.abs(np.concatenate([[0.0], np.cumsum(sums - counts * mean)]))
    total[-1] = 0.0
    rounding = ROUNDING * n * float(np.ptp(edges))  # by how much a total may be off
    parted = np.maximum(n_low * (n - n_low), n - 1.0)  # a cut has at least one value on either side
    at_edge, best = (total + rounding) ** 2 / parted, float((np.maximum(total - rounding, 0.0) ** 2 / parted).max())
    low, high, count = centred[:-1], centred[1:], counts.astype(np.float64)
    meet = np.clip((total[:-1] - total[1:] - count * high) / np.minimum(low - high, -np.finfo(float).tiny), 0.0, count)
    bound_of_total = np.minimum(total[:-1] - meet * low, total[1:] + (count - meet) * high) + rounding
    bound = bound_of_total**2 / np.maximum((n_low[:-1] + meet) * (n - n_low[:-1] - meet), n - 1.0)
    bound[counts < 2] = 0.0
    candidates = np.flatnonzero(np.maximum.reduce([bound, at_edge[:-1], at_edge[1:]]) >= best)
    # One bucket more on either side: which of two buckets a value on their edge fell into is a matter of rounding.
    first, last = max(int(candidates[0]) - 1, 0), min(int(candidates[-1]) + 1, counts.size - 1)
    return (*_from_edge_to_edge(edges, first, last), int(counts[first : last + 1].sum()))


def _from_edge_to_edge(edges: FloatArray, first: int, last: int) -> tuple[float, float]:
    """The stretch of these buckets; the first and the last of all reach to infinity."""
    low = -np.inf if first == 0 else float(edges[first])
    return low, np.inf if last == edges.size - 2 else float(edges[last + 1])


def _lloyd_in(
    window: Window, low: float, high: float, cut: float, least: float = -np.inf, most: float = np.inf
) -> tuple[float, bool]:
    """Iterate from ``cut``; also tell whether every cut stayed between ``least`` and ``most``, where it can be seen."""
    below, inside, above = window
    total = below.sum + np.concatenate([[0.0], np.cumsum(inside)])
    n, seen = below.number + inside.size + above.number, set()
    while least <= cut <= most:
        k = int(np.searchsorted(inside, cut, side="left"))
        n_low = below.number + k
        if n_low in seen:  # no value changed sides (or, by rounding, one went back): converged
            return float(cut), True
        seen.add(n_low)
        if n_low > 0:
            low = total[k] / n_low
        if n_low < n:
            high = (total[-1] - total[k] + above.sum) / (n - n_low)
        cut = (low + high) / 2
    return float(cut), False


def _lloyd_stretch(scores: Scores, low: float, high: float, start: float) -> tuple[float, float, float]:
    """A cut from which Lloyd's iteration ends where it does from ``start``, and a short stretch in which it stays."""
    histogram = scores.histogram()
    start, least, most, n_inside = _lloyd_bracket(histogram, low, high, start)
    for _ in range(_MOST_LOOKS - 1):
        first, last = max(least, histogram.edges[0]), min(most, histogram.edges[-1])
        too_wide = last - first > _WORTH_ANOTHER_LOOK * np.ptp(histogram.edges)
        if (
            n_inside <= _LARGEST_WINDOW or too_wide or not scores.place.keeps_vectors
        ):  # another look would read all again
            break
        histogram = scores.histogram(first, last)
        start, above, below, n_inside = _lloyd_bracket(histogram, low, high, start, beyond_ends=True)
        least, most = max(least, above), min(most, below)
    return start, least, most


def _lloyd_bracket(
    histogram: Histogram, low: float, high: float, start: float, beyond_ends: bool = False
) -> tuple[float, float, float, int]:
    """Do the same from one histogram, and say how many values the stretch holds.

    The next cut F(c), the middle of the means on both sides of c, does not fall as c grows. So the cuts move in one
    direction, to the first fixed point on their way, and from any point between they end there too; and F at the edge
    under c and at the edge over c, which the histogram gives, enclose F(c). Where values lie beyond the ends of the
    histogram, F is not known there.
    """
    edges, counts, sums, _ = histogram
    n_low = np.concatenate([[0], np.cumsum(counts)])
    total = np.concatenate([[0.0], np.cumsum(sums)])
    n_high = n_low[-1] - n_low
    mean_low = np.where(n_low > 0, total / np.maximum(n_low, 1), low)
    mean_high = np.where(n_high > 0, (total[-1] - total) / np.maximum(n_high, 1), high)
    # Where a cluster is empty at the edge but not at the cut, its mean is still no further out than its bucket.
    occupied = np.flatnonzero(counts)
    least_low = np.where(n_low > 0, mean_low, min(low, edges[occupied[0]]))
    most_high = np.where(n_high > 0, mean_high, max(high, edges[occupied[-1] + 1]))
    least_next, most_next = (least_low + mean_high) / 2, (mean_low + most_high) / 2
    if beyond_ends:
        least_next[[0, -1]], most_next[[0, -1]] = -np.inf, np.inf
    under, over = _settle(edges, least_next, start, -1), _settle(edges, most_next, start, +1)
    if under > start:
        begin = under
    elif over < start:
        begin = over
    else:
        begin, under, over = start, min(under, start), max(over, start)
    first = int(np.clip(np.searchsorted(edges, under, side="right") - 2, 0, counts.size - 1))
    last = int(np.clip(np.searchsorted(edges, over, side="right"), 0, counts.size - 1))
    return (begin, *_from_edge_to_edge(edges, first, last), int(counts[first : last + 1].sum()))


def _settle(edges: FloatArray, following: Array, cut: float, side: int) -> float:
    """Follow the edges under (-1) or over (+1) the cut until it moves no more, one bucket wide of rounding."""
    for _ in range(_MOST_STEPS):
        place = int(np.searchsorted(edges, cut, side="right")) - (2 if side < 0 else -1)
        moved = float(following[np.clip(place, 0, edges.size - 1)])
        if moved == cut:
            return cut
        cut = moved
    return side * np.inf  # no bracket: all values will be sorted
