"""Two-means on a line, for the steps "apply k-means" of Algorithms 1 and 2.

On sorted values a cluster is an interval, its mean comes from prefix sums, and the whole rule is one
cut: values at or above it belong to the larger centroid.
"""

from __future__ import annotations

import numpy as np

from inlier.engine.blocks import FloatArray


def lloyd_cut(values: FloatArray, low: float, high: float) -> float:
    """Cut found by Lloyd's iteration from the centroids ``low`` < ``high`` (Algorithm 1).

    A cluster that is empty keeps its centroid, so values that all lie nearer to ``high`` stay together.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.cluster import lloyd_cut
    >>> lloyd_cut(np.array([-0.1, 0.1, 0.9, 1.1]), -1.0, 1.0)
    0.5
    """
    ordered = np.sort(values)
    total = np.concatenate([[0.0], np.cumsum(ordered)])
    n, cut, n_low = ordered.size, 0.0, -1
    while True:
        cut = (low + high) / 2
        previous, n_low = n_low, int(np.searchsorted(ordered, cut, side="left"))
        if n_low == previous:  # no value changed sides: converged
            return float(cut)
        if n_low > 0:
            low = total[n_low] / n_low
        if n_low < n:
            high = (total[n] - total[n_low]) / (n - n_low)


def optimal_cut(values: FloatArray) -> float:
    """Cut of the best of all two-cluster partitions (Algorithm 2, which names no start).

    With n_1 values of mean m_1 below the cut and n_2 of mean m_2 above, the within-cluster sum of
    squares is smallest where n_1 n_2 (m_2 - m_1)^2 is largest. Equal values are never parted; where
    all are equal there is nothing to cut, and the cut is that value: all belong together.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.cluster import optimal_cut
    >>> optimal_cut(np.array([5.0, 0.0, 1.0, 6.0]))
    3.0
    """
    ordered = np.sort(values)
    n = ordered.size
    if ordered[0] == ordered[-1]:
        return float(ordered[0])
    centred_total = np.cumsum(ordered - ordered.mean())[:-1]  # of the lower cluster; minus that of the upper
    n_low = np.arange(1, n)
    # With total mean 0: n_1 n_2 (m_2 - m_1)^2 = n^2 total_1^2 / (n_1 n_2).
    separation = centred_total**2 / (n_low * (n - n_low))
    separation[ordered[1:] == ordered[:-1]] = -1.0
    best = int(np.argmax(separation))
    middle = (ordered[: best + 1].mean() + ordered[best + 1 :].mean()) / 2
    # At the optimum the middle of the centroids parts the same values; rounding must not move one across.
    return float(np.clip(middle, np.nextafter(ordered[best], np.inf), ordered[best + 1]))
