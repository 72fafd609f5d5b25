"""A cloud as a surface: thinned to a number of points, evenly, one for each occupied cell of a grid; and its normals.

What counts is surface, not points: a lidar sees the road beside it a thousand times as densely as a house far away, and
a cell of the grid holds one point of each. The side of the cells follows from the number of points, so units do not
matter; both clouds share it, so that a neighbourhood means the same in both.

Normals come from the covariance of neighbours; their sign is arbitrary, and nothing here depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from inlier._typing import Array, FloatArray

_POINTS_PER_CELL = 2  # at least, on average: finer cells than that are not surface but single points
_CLOSE_ENOUGH = 1.1  # ratio of the number of cells to what is wanted
_TRIES = 12  # of a side; each multiplies it by (cells / wanted)^(1/2), since surfaces have two dimensions
_MOST_COUNTED = 200_000  # points that cells are counted on
_FINEST = 50_000  # cells of each cloud, about: all that is ever looked at
_MOST_ALONG = 2**20  # cells along an axis: numbers of cells stay below 2^63
_TINY = 1e-30
_MOST_NEIGHBOURS = 12  # of each point of a dense cloud, for its normal


def cell_numbers(points: FloatArray, side: float) -> Array:
    """The number of the cell that each point lies in."""
    numbers: Array = np.zeros(len(points), dtype=np.int64)
    for column in points.T:  # one after the other: extremes of columns side by side take NumPy twenty times as long
        cells = np.floor((column - column.min()) / side).astype(np.int64)
        numbers = numbers * (cells.max() + 1) + cells
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
    >>> from inlier.clouds.surfaces import thin
    >>> thin(np.array([[0.0, 0, 0], [0.1, 0, 0], [5, 5, 5]]), 1.0)
    array([[0.05, 0.  , 0.  ],
           [5.  , 5.  , 5.  ]])
    """
    numbers = cell_numbers(points, side)
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    counts = np.diff(np.append(starts, len(points)))
    return np.stack([np.add.reduceat(column[order], starts) / counts for column in points.T], axis=1)


def side_for(clouds: tuple[FloatArray, FloatArray], n_points: int) -> float:
    """The side of cells of which the two clouds together occupy twice as many, or half as many as they have points."""
    samples = [cloud[:: max(1, len(cloud) // _MOST_COUNTED)] for cloud in clouds]
    widest = max(float(np.ptp(column)) for cloud in samples for column in cloud.T)
    n_different = sum(count_cells(cloud, widest / _MOST_ALONG) for cloud in samples)  # copies are one point
    wanted = min(2 * n_points, max(n_different // _POINTS_PER_CELL, 2))
    side = widest / np.sqrt(n_points)
    for _ in range(_TRIES):
        ratio = sum(count_cells(cloud, side) for cloud in samples) / wanted
        if 1 / _CLOSE_ENOUGH <= ratio <= _CLOSE_ENOUGH:
            break
        side = max(side * float(np.clip(np.sqrt(ratio), 0.2, 5.0)), widest / _MOST_ALONG)
    return side


@dataclass(frozen=True, eq=False)
class Grid:
    """Two clouds, thinned with cells of one side."""

    side: float
    source: FloatArray
    target: FloatArray

    @staticmethod
    def of(source: FloatArray, target: FloatArray, n_points: int) -> Grid:
        """Thin both to about so many points."""
        side = side_for((source, target), n_points)
        return Grid(side, thin(source, side), thin(target, side))


def thin_both(source: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Thin two clouds to the finest points that are looked at; those that have fewer stay as they are."""
    if max(len(source), len(target)) <= 2 * _FINEST:
        return source, target
    grid = Grid.of(source, target, _FINEST)
    return grid.source, grid.target


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Which points lie near each other: ``first[k]`` and ``second[k]``, each pair once, ``first`` in rising order."""

    n_points: int
    first: Array
    second: Array
    distance: FloatArray
    direction: Array  # unit vectors from first to second, in columns and single precision

    @staticmethod
    def within(points: FloatArray, radius: float) -> Neighbours:
        """List all that are no farther apart than ``radius``."""
        pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
        first, second = np.divmod(np.sort(pairs[:, 0] * len(points) + pairs[:, 1]), len(points))
        columns = np.ascontiguousarray(points.T)
        step = columns.take(second, axis=1) - columns.take(first, axis=1)
        distance = np.sqrt(step[0] ** 2 + step[1] ** 2 + step[2] ** 2)
        step /= np.maximum(distance, _TINY)
        return Neighbours(len(points), first, second, distance, step.astype(np.float32))

    def nearer(self, radius: float) -> Neighbours:
        """Those no farther apart than ``radius``."""
        kept = np.flatnonzero(self.distance <= radius)
        return Neighbours(
            self.n_points, self.first[kept], self.second[kept], self.distance[kept], self.direction.take(kept, axis=1)
        )

    def sums(self, values: Array, weights: Array | None = None) -> Array:
        """For each point the (weighted) sum of the rows of its neighbours."""
        ones = np.ones(self.first.size, values.dtype) if weights is None else weights.astype(values.dtype)
        rows = np.searchsorted(self.first, np.arange(self.n_points + 1)).astype(np.int32)
        half = csr_array((ones, self.second, rows), shape=(self.n_points, self.n_points))
        total: Array = half @ values + half.T @ values
        return total

    def count(self) -> FloatArray:
        """Number of neighbours of each point."""
        ends = np.bincount(self.first, minlength=self.n_points) + np.bincount(self.second, minlength=self.n_points)
        return ends.astype(np.float64)


def normals_of(points: FloatArray, neighbours: Neighbours) -> FloatArray:
    """The direction in which a point and its neighbours vary least."""
    i, j = np.triu_indices(3)
    moments = np.hstack([points, points[:, i] * points[:, j]])
    means = (neighbours.sums(moments) + moments) / (neighbours.count()[:, None] + 1)
    return _least_direction(means[:, 3:] - means[:, i] * means[:, j])


def dense_normals(points: FloatArray, tree: cKDTree, rows: Array) -> FloatArray:
    """The same of some of the points, by their nearest neighbours, for clouds that need not be even."""
    _, nearest = tree.query(points[rows], min(_MOST_NEIGHBOURS, len(points)))
    columns = np.ascontiguousarray(points.T)
    patch = columns.take(nearest.T, axis=1) - columns.take(rows, axis=1)[:, None]
    patch -= patch.mean(axis=1, keepdims=True)
    i, j = np.triu_indices(3)
    return _least_direction((patch[i] * patch[j]).sum(axis=1).T)


def _least_direction(upper: FloatArray) -> FloatArray:
    """The eigenvector of the least eigenvalue of symmetric matrices that are given by their upper halves."""
    i, j = np.triu_indices(3)
    covariance = np.empty((len(upper), 3, 3))
    covariance[:, i, j] = covariance[:, j, i] = upper
    return np.ascontiguousarray(np.linalg.eigh(covariance)[1][:, :, 0])


@dataclass(frozen=True, eq=False)
class Surface:
    """Points with normals, and a tree of them."""

    points: FloatArray
    tree: cKDTree
    _normals: FloatArray  # NaN where nobody has asked yet

    @staticmethod
    def of(points: FloatArray, normals: FloatArray) -> Surface:
        """Build the tree."""
        return Surface(points, cKDTree(points), normals)

    @staticmethod
    def dense(points: FloatArray) -> Surface:
        """Leave the normals until they are asked for: where two clouds overlap by little, that is by few points."""
        return Surface(points, cKDTree(points), np.full(points.shape, np.nan))

    def normals_at(self, rows: Array) -> FloatArray:
        """The normals of some points."""
        missing = rows[np.isnan(self._normals[rows, 0])]
        if missing.size:
            missing = np.unique(missing)
            self._normals[missing] = dense_normals(self.points, self.tree, missing)
        return self._normals[rows]
