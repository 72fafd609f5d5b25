"""Two-means on a line, for the steps "apply k-means" of Algorithms 1 and 2.

A cluster is an interval, its mean comes from prefix sums, and the whole rule is one cut: values at or above it
belong to the larger centroid. Only values near the cut are sorted: a histogram of counts and sums tells in which
buckets it can lie, and the answer is that of sorting them all.
"""

from __future__ import annotations

import numpy as np

from inlier._typing import FloatArray
from inlier.rows.backend import HISTOGRAM_ROUNDING
from inlier.rows.paired_rows import Histogram, Scores, Window

_MOST_LOOKS = 8
_WORTH_ANOTHER_LOOK = 0.9  # a stretch that is hardly shorter than the one before will not get shorter


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
    scores = values if isinstance(values, Scores) else Scores.of_values(values)
    begin, least, most = (low + high) / 2, -np.inf, np.inf
    histogram = scores.histogram()
    for look in range(_MOST_LOOKS):
        begin, under, over = _lloyd_stretch(histogram, low, high, begin, is_whole=look == 0)
        least, most = max(least, under), min(most, over)
        if not _is_worth_another_look(scores, histogram, least, most):
            break
        histogram = scores.histogram(*_within(histogram, least, most))
    return _lloyd_in(scores.window(least, most), low, high, begin)


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
    scores = values if isinstance(values, Scores) else Scores.of_values(values)
    histogram = scores.histogram()
    for _ in range(_MOST_LOOKS):
        least, most = _stretch_with_best_cut(histogram)
        if not _is_worth_another_look(scores, histogram, least, most):
            break
        histogram = scores.histogram(*_within(histogram, least, most))
    return _best_cut_in(scores.window(least, most))


def _is_worth_another_look(scores: Scores, histogram: Histogram, least: float, most: float) -> bool:
    """Whether the values from ``least`` to ``most`` are too many to fetch, and buckets there would be much finer."""
    first, last = _within(histogram, least, most)
    is_inside = (histogram.edges[1:] > first) & (histogram.edges[:-1] < last)
    is_shorter = last - first <= _WORTH_ANOTHER_LOOK * np.ptp(histogram.edges)
    return bool(histogram.counts[is_inside].sum() > scores.store.most_fetched and is_shorter)


def _within(histogram: Histogram, least: float, most: float) -> tuple[float, float]:
    return max(least, float(histogram.edges[0])), min(most, float(histogram.edges[-1]))


def _best_cut_in(window: Window) -> float:
    """Try every cut between neighbours in the window."""
    n_below, sum_below, inside, n_above, sum_above = window
    n = n_below + inside.size + n_above
    mean = (sum_below + float(inside.sum()) + sum_above) / n
    n_low = n_below + np.arange(1, inside.size)  # of the cut between inside[k] and inside[k + 1]
    centred = sum_below - n_below * mean + np.cumsum(inside - mean)[:-1]
    allowed = inside[:-1] < inside[1:]
    if not allowed.any():  # all values are one
        return float(inside[0])
    # With total mean 0: n_1 n_2 (m_2 - m_1)^2 = n^2 total_1^2 / (n_1 n_2).
    separation = np.where(allowed, centred**2 / (n_low * (n - n_low)), -1.0)
    best = int(np.argmax(separation))
    mean_low = (sum_below + inside[: best + 1].sum()) / n_low[best]
    mean_high = (sum_above + inside[best + 1 :].sum()) / (n - n_low[best])
    # At the optimum the middle of the centroids parts the same values; rounding must not move one across.
    return float(np.clip((mean_low + mean_high) / 2, np.nextafter(inside[best], np.inf), inside[best + 1]))


def _stretch_with_best_cut(histogram: Histogram) -> tuple[float, float]:
    """Return the stretch of buckets outside which no cut can be the best.

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
    rounding = HISTOGRAM_ROUNDING * n * float(np.ptp(edges))  # by how much a total may be off
    parted = np.maximum(n_low * (n - n_low), n - 1.0)  # a cut has at least one value on either side
    at_edge, best = (total + rounding) ** 2 / parted, float((np.maximum(total - rounding, 0.0) ** 2 / parted).max())
    low, high, count = centred[:-1], centred[1:], counts.astype(np.float64)
    meet = np.clip((total[:-1] - total[1:] - count * high) / np.minimum(low - high, -np.finfo(float).tiny), 0.0, count)
    bound_of_total = np.minimum(total[:-1] - meet * low, total[1:] + (count - meet) * high) + rounding
    bound = bound_of_total**2 / np.maximum((n_low[:-1] + meet) * (n - n_low[:-1] - meet), n - 1.0)
    bound[counts < 2] = 0.0
    candidates = np.flatnonzero(np.maximum.reduce([bound, at_edge[:-1], at_edge[1:]]) >= best)
    # One bucket more on either side: which of two buckets a value on their edge fell into is a matter of rounding.
    return _from_edge_to_edge(edges, int(candidates[0]) - 1, int(candidates[-1]) + 1)


def _from_edge_to_edge(edges: FloatArray, first: int, last: int) -> tuple[float, float]:
    """The stretch of these buckets; the first and the last of all reach to infinity."""
    low = -np.inf if first <= 0 else float(edges[first])
    return low, np.inf if last >= edges.size - 2 else float(edges[last + 1])


def _lloyd_in(window: Window, low: float, high: float, cut: float) -> float:
    """Iterate from ``cut``, which never leaves the window, until no value changes sides."""
    n_below, sum_below, inside, n_above, sum_above = window
    total = sum_below + np.concatenate([[0.0], np.cumsum(inside)])
    n, seen = n_below + inside.size + n_above, set()
    while True:
        k = int(np.searchsorted(inside, cut, side="left"))
        n_low = n_below + k
        if n_low in seen:  # no value changed sides (or, by rounding, one went back)
            return float(cut)
        seen.add(n_low)
        if n_low > 0:
            low = total[k] / n_low
        if n_low < n:
            high = (total[-1] - total[k] + sum_above) / (n - n_low)
        cut = (low + high) / 2


def _lloyd_stretch(
    histogram: Histogram, low: float, high: float, start: float, is_whole: bool
) -> tuple[float, float, float]:
    """Return a cut from which Lloyd's iteration ends where it does from ``start``, and a stretch that it then stays in.

    The next cut F(c), the middle of the means on both sides of c, does not fall as c grows. So the cuts move in one
    direction, to the first fixed point on their way, and from any point between they end there too; and F at the edge
    under c and at the edge over c, which the histogram gives, enclose F(c). Followed from ``start`` they end on either
    side of where the cuts end: whoever begins at the nearer of the two stays between them.
    """
    edges, counts, sums, _ = histogram
    n_low, total = np.concatenate([[0], np.cumsum(counts)]), np.concatenate([[0.0], np.cumsum(sums)])
    n_high, occupied = n_low[-1] - n_low, np.flatnonzero(counts)
    mean_low = np.where(n_low > 0, total / np.maximum(n_low, 1), low)
    mean_high = np.where(n_high > 0, (total[-1] - total) / np.maximum(n_high, 1), high)
    # Where a cluster is empty at the edge but not at the cut, its mean is still no further out than its bucket.
    least_low = np.where(n_low > 0, mean_low, min(low, edges[occupied[0]]))
    most_high = np.where(n_high > 0, mean_high, max(high, edges[occupied[-1] + 1]))
    slack = HISTOGRAM_ROUNDING * np.ptp(edges)
    least_next, most_next = (least_low + mean_high) / 2 - slack, (mean_low + most_high) / 2 + slack
    if not is_whole:  # the values beyond the ends count as if they were there
        least_next[[0, -1]], most_next[[0, -1]] = -np.inf, np.inf
    under, over = _settled(edges, least_next, start, -1), _settled(edges, most_next, start, +2)
    begin = float(np.clip(start, under, over))
    first = int(np.searchsorted(edges, under, side="right")) - 2
    last = int(np.searchsorted(edges, over, side="right"))
    return (begin, *_from_edge_to_edge(edges, first, last))


def _settled(edges: FloatArray, following: FloatArray, cut: float, offset: int) -> float:
    """Follow F at an edge that lies a bucket beyond the cut (rounding moves values between two), until it stays."""
    for _ in range(edges.size):
        edge = int(np.searchsorted(edges, cut, side="right")) - 1 + offset
        moved = float(following[np.clip(edge, 0, edges.size - 1)])
        if moved == cut:
            return cut
        cut = moved
    return np.inf if offset > 0 else -np.inf
