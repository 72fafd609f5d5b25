"""Normals, by the covariance of neighbours; their sign is arbitrary, and nothing here depends on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from inlier._typing import Array, FloatArray

_MOST_NEIGHBOURS = 12  # of each point of a dense cloud, for its normal


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Which points lie near each other: ``first[k]`` and ``second[k]``, each pair once."""

    n_points: int
    first: Array
    second: Array
    distance: FloatArray

    @staticmethod
    def within(points: FloatArray, radius: float) -> Neighbours:
        """List all that are no farther apart than ``radius``."""
        pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
        first, second = (np.ascontiguousarray(end) for end in pairs.T)
        step = points[first] - points[second]
        return Neighbours(len(points), first, second, np.sqrt(np.einsum("ij,ij->i", step, step)))

    def nearer(self, radius: float) -> Neighbours:
        """Those no farther apart than ``radius``."""
        kept = np.flatnonzero(self.distance <= radius)
        return Neighbours(self.n_points, self.first[kept], self.second[kept], self.distance[kept])

    def sums(self, values: Array, weights: Array | None = None) -> Array:
        """For each point the (weighted) sum of the rows of its neighbours."""
        ones = np.ones(self.first.size, values.dtype) if weights is None else weights.astype(values.dtype)
        half = csr_array((ones, (self.first, self.second)), shape=(self.n_points, self.n_points))
        total: Array = half @ values + half.T.tocsr() @ values
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


def dense_normals(points: FloatArray, tree: cKDTree) -> FloatArray:
    """The same by the nearest neighbours, for clouds that are not thinned."""
    _, nearest = tree.query(points, min(_MOST_NEIGHBOURS, len(points)))
    patch = points[nearest] - points[:, None]
    patch -= patch.mean(axis=1, keepdims=True)
    i, j = np.triu_indices(3)
    return _least_direction(np.einsum("pki,pki->pi", patch[:, :, i], patch[:, :, j]))


def _least_direction(upper: FloatArray) -> FloatArray:
    """The eigenvector of the least eigenvalue of symmetric matrices that are given by their upper halves."""
    i, j = np.triu_indices(3)
    covariance = np.empty((len(upper), 3, 3))
    covariance[:, i, j] = covariance[:, j, i] = upper
    return np.ascontiguousarray(np.linalg.eigh(covariance)[1][:, :, 0])
