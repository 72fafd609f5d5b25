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
_ALIKE = 1e-3  # of the sum of the eigenvalues: by which the least two differ, for a closed form to tell them apart
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


def thin_both(source: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Thin two clouds to the finest points that are looked at; those that have fewer stay as they are."""
    if max(len(source), len(target)) <= 2 * _FINEST:
        return source, target
    side = side_for((source, target), _FINEST)
    return thin(source, side), thin(target, side)


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
        # NumPy sorts short integers by counting them, in linear time.
        order = np.argsort(pairs[:, 0].astype(np.min_scalar_type(len(points))), kind="stable")
        first, second = pairs[:, 0][order], pairs[:, 1][order]
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
    """The eigenvector of the least eigenvalue of covariances that are given by their upper halves.

    In closed form. With q the mean of the eigenvalues, p^2 that of (eigenvalue - q)^2 / 2 and r the determinant of
    (C - q) / p, the least eigenvalue is q + 2 p cos(acos(r / 2) / 3 + 2 pi / 3). The rows of C less that one lie in the
    plane of the others, and the longest product of two of them is normal to it.
    """
    trace = upper[:, 0] + upper[:, 3] + upper[:, 5]
    a, b, c, d, e, f = upper.T / np.where(trace > 0, trace, 1.0)
    x, y, z = a - 1 / 3, d - 1 / 3, f - 1 / 3
    p = np.sqrt(np.maximum((x**2 + y**2 + z**2) / 6 + (b**2 + c**2 + e**2) / 3, _TINY))
    r = (x * (y * z - e**2) - b * (b * z - c * e) + c * (b * e - c * y)) / p**3
    least = 2 * p * np.cos(np.arccos(np.clip(r / 2, -1, 1)) / 3 + 2 * np.pi / 3)
    rows = np.array([[x - least, b, c], [b, y - least, e], [c, e, z - least]])
    products = np.stack([np.cross(rows[k], rows[(k + 1) % 3], axis=0) for k in range(3)])
    squares = np.einsum("kip,kip->kp", products, products)
    longest, every = squares.argmax(axis=0), np.arange(len(upper))
    length = np.sqrt(squares[longest, every])
    normals = products[longest, :, every] / np.maximum(length, _TINY)[:, None]
    # Along a line the least two are too much alike for this.
    alike = np.flatnonzero(length < _ALIKE)
    covariance = upper[alike][:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
    normals[alike] = np.linalg.eigh(covariance)[1][:, :, 0]
    return normals


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
