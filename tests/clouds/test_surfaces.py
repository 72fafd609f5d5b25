"""Thinning: one point a cell, evenly over the surface, whatever the unit. Neighbours and normals beside plain loops.

Descriptors: the same however a cloud is turned, and whichever way its normals point.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation

from inlier.clouds.surfaces import (
    Neighbours,
    Surface,
    common_part,
    count_cells,
    dense_normals,
    describe,
    match,
    normals_of,
    side_for,
    thin,
    thin_both,
)

RADII = (0.12, 0.24)


def plain_thin(points, side):
    """A dictionary of cells, point by point."""
    cells = {}
    for point in points:
        cells.setdefault(tuple(np.floor((point - points.min(axis=0)) / side).astype(int)), []).append(point)
    return np.array([np.mean(cells[cell], axis=0) for cell in sorted(cells)])


def test_it_agrees_with_a_dictionary_of_cells():
    points = np.random.default_rng(0).normal(size=(500, 3))
    np.testing.assert_allclose(thin(points, 0.4), plain_thin(points, 0.4))
    assert count_cells(points, 0.4) == len(plain_thin(points, 0.4))


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_the_side_follows_the_unit(factor):
    rng = np.random.default_rng(1)
    clouds = rng.random((20_000, 3)) * [1, 1, 0.01], rng.random((20_000, 3)) * [1, 1, 0.01]
    side = side_for(clouds, 1_000)
    assert side_for(tuple(factor * cloud for cloud in clouds), 1_000) == pytest.approx(factor * side, rel=1e-9)
    assert 1_800 <= sum(count_cells(cloud, side) for cloud in clouds) <= 2_200


def test_density_does_not_count_but_surface_does():
    rng = np.random.default_rng(2)
    sparse, dense = rng.random((3_000, 3)) * [1, 1, 0], rng.random((300_000, 3)) * [1, 1, 0] + [1, 0, 0]
    cloud = np.vstack([sparse, dense])
    points = thin(cloud, side_for((cloud, cloud), 500))
    assert 0.4 < np.mean(points[:, 0] < 1) < 0.6


def test_copies_and_few_points_do_not_shrink_the_cells():
    points = np.random.default_rng(3).random((400, 3))
    once, thrice = side_for((points, points), 10_000), side_for((np.repeat(points, 3, axis=0),) * 2, 10_000)
    assert once == pytest.approx(thrice, rel=0.2)
    assert 0.4 * 400 < count_cells(points, once) < 0.6 * 400


def test_small_clouds_stay_as_they_are_and_large_ones_do_not():
    rng = np.random.default_rng(4)
    small, large = rng.random((1_000, 3)), rng.random((150_000, 3)) * [1, 1, 0.001]
    assert thin_both(small, small)[0] is small
    assert len(thin_both(large, large)[0]) < 80_000


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
    step = points[near.second] - points[near.first]
    np.testing.assert_allclose(near.direction.T * near.distance[:, None], step, atol=1e-6)
    assert np.all(np.diff(near.first) >= 0)
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
    for normals in (
        normals_of(points, Neighbours.within(points, 0.15)),
        dense_normals(points, cKDTree(points), np.arange(5_000)),
    ):
        assert np.median(np.abs(np.einsum("ij,ij->i", points, normals))) > 0.995


def test_normals_of_the_nearest_are_worked_out_where_they_are_asked_for():
    points = np.random.default_rng(3).random((300, 3))
    surface = Surface.dense(points)
    rows = np.array([7, 3, 7])
    found = surface.normals_at(rows)
    for row, normal in zip(rows, found, strict=True):
        patch = points[np.argsort(np.linalg.norm(points - points[row], axis=1))[:12]]
        expected = np.linalg.eigh(np.cov(patch.T, bias=True))[1][:, 0]
        assert abs(normal @ expected) > 1 - 1e-9
    everywhere = surface.normals_at(np.arange(300))
    np.testing.assert_array_equal(everywhere[rows], found)
    np.testing.assert_allclose(np.linalg.norm(everywhere, axis=1), 1)


@pytest.mark.parametrize("unit", [1e-100, 1.0, 1e90])
def test_normals_of_planes_lines_and_single_points_are_unit_vectors_across(unit):
    rng = np.random.default_rng(4)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    plane, line = np.zeros((2, 60, 3))
    plane[:, :2], line[:, 0] = rng.random((60, 2)), rng.random(60)
    for shape, along in ((plane, turn[:2]), (line, turn[:1])):
        normals = Surface.dense(unit * shape @ turn).normals_at(np.arange(60))
        np.testing.assert_allclose(normals @ along.T, 0, atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1)
    copies = Surface.dense(unit * np.ones((20, 3))).normals_at(np.arange(20))
    np.testing.assert_allclose(np.linalg.norm(copies, axis=1), 1)


def bumps(n=1500, seed=0):
    """A wavy surface."""
    x, y = np.random.default_rng(seed).random((2, n))
    return np.column_stack([x, y, 0.1 * np.sin(9 * x) * np.cos(7 * y + 3 * x)])


def described(points, signs=None):
    near = Neighbours.within(points, max(RADII))
    normals = normals_of(points, near.nearer(0.08))
    return describe(normals if signs is None else normals * signs[:, None], near, RADII)


def similarity(a, b):
    return a.even @ b.even.T + np.abs(a.odd @ b.odd.T)


def test_turning_a_cloud_or_its_normals_changes_nothing():
    points, rng = bumps(), np.random.default_rng(1)
    first = described(points)
    turned = described(points @ Rotation.random(rng=rng).as_matrix().T + [5, -3, 2])
    flipped = described(points, rng.choice([-1.0, 1.0], len(points)))
    for other in (turned, flipped):
        assert np.median(np.diag(similarity(first, other))) > 0.999
        assert np.quantile(np.diag(similarity(first, other)), 0.05) > 0.98


def test_a_histogram_agrees_with_one_that_is_made_pair_by_pair():
    """With all normals on one side, signs play no part: then alpha, phi and theta are those of the paper."""
    from inlier.clouds.surfaces import _pair_features

    points = bumps(200)
    near = Neighbours.within(points, 0.15)
    normals = normals_of(points, near)
    normals *= np.sign(normals[:, 2:])
    alpha, phi, theta, same_side = _pair_features(normals, near)
    assert (same_side > 0).mean() > 0.95
    for k in range(0, near.first.size, 97):
        if same_side[k] < 0:
            continue
        i, j = near.first[k], near.second[k]
        e = (points[j] - points[i]) / np.linalg.norm(points[j] - points[i])
        u, other = normals[i], normals[j]
        if abs(u @ e) < abs(other @ e):
            u, other, e = other, u, -e
        v = np.cross(e, u) / np.linalg.norm(np.cross(e, u))
        w = np.cross(u, v)
        expected = v @ other, u @ e, np.arctan2(w @ other, u @ other)
        assert (alpha[k], phi[k], theta[k]) == pytest.approx(expected, abs=2e-4)


def test_a_mirror_image_looks_different():
    first, mirrored = described(bumps()), described(bumps() * [-1, 1, 1])
    assert np.median(np.diag(similarity(first, mirrored))) < 0.995


def test_matches_are_nearest_in_one_direction_or_the_other():
    a, b = described(bumps(300, 1)), described(bumps(280, 2))
    common = common_part(a, b)
    a, b = a.centred(common), b.centred(common)
    table = similarity(a, b)
    expected = {(i, int(j)) for i, j in enumerate(table.argmax(axis=1))}
    expected |= {(int(i), j) for j, i in enumerate(table.argmax(axis=0))}
    assert {tuple(pair) for pair in match(a, b).tolist()} == expected
