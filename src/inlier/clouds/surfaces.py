"""A cloud as a surface: thinned evenly, one point for each occupied cell of a grid; its normals, and its looks.

What counts is surface, not points: a lidar sees the road beside it a thousand times as densely as a house far away, and
a cell of the grid holds one point of each. The side of the cells follows from the number of points, so units do not
matter; both clouds share it, so that a neighbourhood means the same in both.

Normals come from the covariance of neighbours; their sign is arbitrary, and nothing here depends on it.

*Descriptors* say what the surface about a point looks like: fast point feature histograms (FPFH, Rusu et al. 2009),
free of signs. For two neighbours with normals n_1, n_2 and the unit vector e from one to the other, in the frame u =
n_1, v = e x u / |e x u|, w = u x v, the features are

    alpha = v . n_2,   phi = u . e,   theta = atan2(w . n_2, u . n_2).

A normal's sign is arbitrary unless somebody knows where the sensor stood. So n_2 is turned to the side of n_1, and if
both are turned over, phi and theta change their sign and alpha does not. A histogram is kept in two parts: the *even*
one, which does not change as the normal is turned over, and the *odd* one, which changes its sign. Neighbours are added
up to FPFH with their relative sign, and two points are compared under the better of the two signs:

    similarity = F_even . G_even + |F_odd . G_odd|.

Histograms are taken at two radii, and the square roots of their entries are compared (as in RootSIFT; Arandjelovic and
Zisserman 2012), less their mean: what all points have in common tells none of them apart. Candidate matches are, for
each point of either cloud, the point of the other that looks most alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from inlier._typing import Array, FloatArray

_POINTS_PER_CELL = 2  # at least, on average: finer cells than that are not surface but single points
_CLOSE_ENOUGH = 1.1  # ratio of the number of cells to what is wanted
_TRIES = 12  # of a side; each multiplies it by (cells / wanted)^(1/2), since surfaces have two dimensions
_MOST_COUNTED = 200_000  # points that cells are counted on
FINEST = 50_000  # cells of each cloud, about: all that is ever looked at
_MOST_ALONG = 2**20  # cells along an axis: numbers of cells stay below 2^63
_TINY = 1e-30
_MOST_NEIGHBOURS = 12  # of each point of a dense cloud, for its normal
_BINS = 11  # of each feature, as in the paper
_HALF = _BINS // 2
_LIMITS = 1.0, 1.0, np.pi / 2  # of alpha, phi and theta
_BLOCK = 2**22  # entries of the matrix of similarities at a time


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

    @cached_property
    def surfaces(self) -> tuple[Surface, Surface]:
        """Both as surfaces, whose normals are worked out where they are asked for."""
        return Surface.dense(self.source), Surface.dense(self.target)


def thin_both(source: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Thin two clouds to the finest points that are looked at; those that have fewer stay as they are."""
    if max(len(source), len(target)) <= 2 * FINEST:
        return source, target
    grid = Grid.of(source, target, FINEST)
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


# ---- descriptors


@dataclass(frozen=True, eq=False)
class Descriptors:
    """A row per point, in two parts."""

    even: Array
    odd: Array

    def centred(self, mean: Array) -> Descriptors:
        """Without what is common, and of unit length."""
        return _of_unit_length(self.even - mean, self.odd)


def describe(normals: FloatArray, neighbours: Neighbours, radii: tuple[float, ...]) -> Descriptors:
    """Describe each point by its neighbours within each of the radii, and by theirs."""
    *features, same_side = _pair_features(normals, neighbours)
    bins = [_bins(feature, limit) for feature, limit in zip(features, _LIMITS, strict=True)]
    parts = []
    for radius in radii:
        kept = np.flatnonzero(neighbours.distance <= radius)
        if kept.size < neighbours.first.size:
            near = neighbours.nearer(radius)
            parts.append(_rooted(_fpfh(near, [one[kept] for one in bins], same_side[kept])))
        else:
            parts.append(_rooted(_fpfh(neighbours, bins, same_side)))
    return _of_unit_length(np.hstack([part.even for part in parts]), np.hstack([part.odd for part in parts]))


def common_part(a: Descriptors, b: Descriptors) -> Array:
    """The mean of the even parts of two clouds."""
    mean: Array = (a.even.mean(axis=0) + b.even.mean(axis=0)) / 2
    return mean


def match(source: Descriptors, target: Descriptors) -> Array:
    """Rows of source and target that are nearest to each other, in at least one direction; each pair once."""
    n, m = len(source.even), len(target.even)
    of_source, of_target, best = np.empty(n, np.intp), np.zeros(m, np.intp), np.full(m, -np.inf, np.float32)
    step = max(1, _BLOCK // m)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        similarity = source.even[rows] @ target.even.T
        odd = source.odd[rows] @ target.odd.T
        similarity += np.abs(odd, out=odd)
        of_source[rows] = np.argmax(similarity, axis=1)
        top = np.argmax(similarity, axis=0)
        value = similarity[top, np.arange(m)]
        better = value > best
        of_target[better], best[better] = top[better] + start, value[better]
    one_way = np.arange(n) * m + of_source
    other_way = of_target * m + np.arange(m)
    numbers = np.union1d(one_way, other_way)
    return np.column_stack([numbers // m, numbers % m])


def _pair_features(normals: FloatArray, neighbours: Neighbours) -> tuple[Array, ...]:
    """alpha, phi and theta with the sign of n_first, and whether n_second has the same sign, as 1 and -1."""
    columns, e = np.ascontiguousarray(normals.T, dtype=np.float32), neighbours.direction
    n, m = columns.take(neighbours.first, axis=1), columns.take(neighbours.second, axis=1)
    between = _dot(n, m)
    same_side = np.copysign(np.float32(1), between)
    first, second = _dot(n, e), _dot(m, e) * same_side
    volume = same_side * _dot(e, _cross(n, m))  # e . (n x m), as v . n_2 times |e x u|
    # The frame belongs to the point whose normal is nearer to the line between them, so that both see the same.
    swap = np.abs(first) < np.abs(second)
    phi, other = np.where(swap, -second, first), np.where(swap, -first, second)
    across = np.sqrt(np.maximum(1 - phi**2, np.float32(1e-12)))  # |e x u|
    cosine = np.abs(between)
    theta = np.arctan2((other - phi * cosine) / across, cosine)  # w . n_2 = (e . n_2 - (e . u) (u . n_2)) / |e x u|
    return volume / across, phi, theta, same_side


def _dot(a: Iterable[Array], b: Iterable[Array]) -> Array:
    (x, y, z), (u, v, w) = a, b
    product: Array = x * u + y * v + z * w
    return product


def _cross(a: Array, b: Array) -> tuple[Array, Array, Array]:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _bins(feature: Array, limit: float) -> Array:
    """Numbers of the bins that a feature in [-limit, limit] falls into; that of -feature is the last less that."""
    bins = ((feature / np.float32(limit) + 1) * np.float32(_BINS / 2)).astype(np.intp)
    return np.clip(bins, 0, _BINS - 1, out=bins)


def _fpfh(neighbours: Neighbours, bins: Sequence[Array], same_side: Array) -> Descriptors:
    """The histograms of a point and, by nearness, of its neighbours."""
    n, first, second = neighbours.n_points, _BINS * neighbours.first, _BINS * neighbours.second
    alpha, *signed = bins
    even, odd = [_histogram(n, first + alpha) + _histogram(n, second + alpha)], []
    for one in signed:
        counts = _histogram(n, first + one) + _histogram(n, second + np.where(same_side > 0, one, _BINS - 1 - one))
        even.append(counts + counts[:, ::-1])
        odd.append(counts - counts[:, ::-1])
    share = (1 / np.maximum(neighbours.count(), 1)).astype(np.float32)[:, None]
    single_even, single_odd = np.hstack(even) * share, np.hstack(odd) * share
    nearness = (1 / np.maximum(neighbours.distance, _TINY)).astype(np.float32)
    nearness /= nearness.max(initial=_TINY)
    total = np.maximum(neighbours.sums(np.ones((n, 1), np.float32), nearness), _TINY)
    return Descriptors(
        single_even + neighbours.sums(single_even, nearness) / total,
        single_odd + neighbours.sums(single_odd, nearness * same_side) / total,
    )


def _histogram(n_points: int, numbers: Array) -> Array:
    """Counts of the bins of each point."""
    return np.bincount(numbers, minlength=n_points * _BINS).reshape(n_points, _BINS).astype(np.float32)


def _rooted(histograms: Descriptors) -> Descriptors:
    """Square roots of the entries, split into even and odd parts again, each entry of them once."""
    even, odd = [np.sqrt(histograms.even[:, :_BINS])], []
    for k in (0, 1):
        plus = histograms.even[:, (k + 1) * _BINS : (k + 2) * _BINS]
        minus = histograms.odd[:, k * _BINS : (k + 1) * _BINS]
        root = np.sqrt(np.maximum(plus + minus, 0) / 2)
        turned_over = root[:, ::-1]
        even += [(root + turned_over)[:, :_HALF] / np.sqrt(2), root[:, _HALF : _HALF + 1]]
        odd.append((root - turned_over)[:, :_HALF] / np.sqrt(2))
    return _of_unit_length(np.hstack(even), np.hstack(odd))


def _of_unit_length(even: Array, odd: Array) -> Descriptors:
    length = np.sqrt(np.einsum("ij,ij->i", even, even) + np.einsum("ij,ij->i", odd, odd))
    length = np.maximum(length, _TINY)[:, None]
    return Descriptors((even / length).astype(np.float32), (odd / length).astype(np.float32))
