"""Thin a cloud to a number of points, evenly over its surface: one point for each occupied cell of a grid.

What counts is surface, not points: a lidar sees the road beside it a thousand times as densely as a house far away, and
a cell of the grid holds one point of each. The side of the cells follows from the number of points, so units do not
matter; both clouds share it, so that a neighbourhood means the same in both.
"""

from __future__ import annotations

import numpy as np

from inlier._typing import Array, FloatArray

_POINTS_PER_CELL = 2  # at least, on average: finer cells than that are not surface but single points
_CLOSE_ENOUGH = 1.1  # ratio of the number of cells to what is wanted
_TRIES = 12  # of a side; each multiplies it by (cells / wanted)^(1/2), since surfaces have two dimensions
_MOST_COUNTED = 200_000  # points that cells are counted on
_FINEST = 50_000  # cells of each cloud, about: all that is ever looked at
_MOST_ALONG = 2**20  # cells along an axis: numbers of cells stay below 2^63


def cell_numbers(points: FloatArray, side: float) -> Array:
    """The number of the cell that each point lies in."""
    cells = np.floor((points - points.min(axis=0)) / side).astype(np.int64)
    extent = cells.max(axis=0) + 1
    numbers: Array = (cells[:, 0] * extent[1] + cells[:, 1]) * extent[2] + cells[:, 2]
    return numbers


def count_cells(points: FloatArray, side: float) -> int:
    """Count the occupied cells."""
    rising = np.sort(cell_numbers(points, side))
    return int(np.count_nonzero(np.diff(rising))) + 1


def thin(points: FloatArray, side: float) -> FloatArray:
    """The mean of the points in each occupied cell.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.clouds.thinning import thin
    >>> thin(np.array([[0.0, 0, 0], [0.1, 0, 0], [5, 5, 5]]), 1.0)
    array([[0.05, 0.  , 0.  ],
           [5.  , 5.  , 5.  ]])
    """
    numbers = cell_numbers(points, side)
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    sums = np.add.reduceat(points[order], starts, axis=0)
    means: FloatArray = sums / np.diff(np.append(starts, len(points)))[:, None]
    return means


def side_for(clouds: tuple[FloatArray, FloatArray], n_points: int) -> float:
    """The side of cells of which the two clouds together occupy twice as many, or half as many as they have points."""
    samples = [cloud[:: max(1, len(cloud) // _MOST_COUNTED)] for cloud in clouds]
    widest = max(float(np.ptp(cloud, axis=0).max()) for cloud in samples)
    n_different = sum(count_cells(cloud, widest / _MOST_ALONG) for cloud in samples)  # copies are one point
    wanted = min(2 * n_points, max(n_different // _POINTS_PER_CELL, 2))
    side = widest / np.sqrt(n_points)
    for _ in range(_TRIES):
        ratio = sum(count_cells(cloud, side) for cloud in samples) / wanted
        if 1 / _CLOSE_ENOUGH <= ratio <= _CLOSE_ENOUGH:
            break
        side = max(side * float(np.clip(np.sqrt(ratio), 0.2, 5.0)), widest / _MOST_ALONG)
    return side


def thin_both(source: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Thin two clouds to the finest points that are looked at; those that have fewer stay as they are."""
    if max(len(source), len(target)) <= 2 * _FINEST:
        return source, target
    side = side_for((source, target), _FINEST)
    return thin(source, side), thin(target, side)
