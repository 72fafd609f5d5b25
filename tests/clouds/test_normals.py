"""Neighbours and normals, beside loops that say the same."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from inlier.clouds.normals import Neighbours, dense_normals, normals_of


def sphere(n, seed=0):
    points = np.random.default_rng(seed).normal(size=(n, 3))
    return points / np.linalg.norm(points, axis=1)[:, None]


def test_neighbours_are_those_within_the_radius():
    points = np.random.default_rng(0).random((200, 3))
    near = Neighbours.within(points, 0.3)
    expected = (cdist(points, points) <= 0.3) & ~np.eye(200, dtype=bool)
    np.testing.assert_array_equal(near.count(), expected.sum(axis=1))
    values = np.random.default_rng(1).random((200, 4))
    np.testing.assert_allclose(near.sums(values), expected @ values)
    assert near.nearer(0.1).first.size == np.count_nonzero(np.triu(cdist(points, points) <= 0.1, 1))


def test_normals_are_the_least_directions_of_the_neighbours():
    points = np.random.default_rng(2).random((300, 3))
    found = normals_of(points, Neighbours.within(points, 0.25))
    for row in (0, 50, 299):
        patch = points[np.linalg.norm(points - points[row], axis=1) <= 0.25]
        expected = np.linalg.eigh(np.cov(patch.T, bias=True))[1][:, 0]
        assert abs(found[row] @ expected) > 1 - 1e-9


def test_on_a_sphere_normals_point_to_its_centre():
    points = sphere(5_000)
    for normals in (normals_of(points, Neighbours.within(points, 0.15)), dense_normals(points, cKDTree(points))):
        assert np.median(np.abs(np.einsum("ij,ij->i", points, normals))) > 0.995
