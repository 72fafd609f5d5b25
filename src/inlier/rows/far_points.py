"""Points that lie absurdly far from all the others: codes for missing numbers, slips of a decimal point."""

from __future__ import annotations

import numpy as np

from inlier._typing import Array, Mask

_ABSURD = 1000.0  # times as far from the middle as is typical: no scene goes there
_MOST = 0.01  # share of the points; where more are so far away, it is their nature
_FEWEST = 10  # points from which there is something typical
_ROWS_FOR_MEDIANS = 1_000  # about, that medians are taken of
_ROWS_AT_A_GLANCE = 64


def far_points(points: Array) -> Mask | None:
    """Which points lie over a thousand times as far from the median point as is typical; None if none or many do.

    Unlike a look at each column, this does not depend on how the points are turned, and a flat scene is no exception.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.rows.far_points import far_points
    >>> points = np.random.default_rng(0).normal(size=(100, 3))
    >>> far_points(points) is None
    True
    >>> points[7, 1] = 1e9
    >>> np.flatnonzero(far_points(points)).tolist()
    [7]
    """
    if len(points) < _FEWEST or _is_compact(points):
        return None
    some = np.asarray(points[:: max(1, len(points) // _ROWS_FOR_MEDIANS)], dtype=np.float64)
    middle = np.median(some, axis=0)
    with np.errstate(over="ignore"):
        farthest = _ABSURD * float(np.median(np.linalg.norm(some - middle, axis=1)))
        # No point is farther away than a corner of the box around all of them.
        reach = np.maximum(points.max(axis=0) - middle, middle - points.min(axis=0))
        if farthest == 0 or np.linalg.norm(reach) <= farthest:
            return None
        far: Mask = np.linalg.norm(points - middle, axis=1) > farthest
    return far if 0 < np.count_nonzero(far) <= max(1.0, _MOST * len(points)) else None


def _is_compact(points: Array) -> bool:
    """Whether the range of all numbers, beside the distances of some points, leaves no doubt that none is far away.

    Half of the points lie within a typical distance r of the median point, and so within 2 r of any one of them: the
    lower quartile of the distances from one point is 2 r at most, unless it is far away itself. Of three, hardly all.
    """
    some = np.asarray(points[:: max(1, len(points) // _ROWS_AT_A_GLANCE)][:_ROWS_AT_A_GLANCE], dtype=np.float64)
    k = len(some)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = some[[0, k // 3, 2 * k // 3], None] - some
        squared = np.partition((steps * steps).sum(axis=2), k // 4, axis=1)[:, k // 4].min()
        line = points.reshape(-1) if points.flags.c_contiguous else points
        length = np.float64(line.max()) - np.float64(line.min())
        return bool(points.shape[1] * length**2 <= (_ABSURD / 2) ** 2 * squared)
