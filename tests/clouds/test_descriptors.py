"""Descriptors: the same however a cloud is turned, and whichever way its normals point."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from inlier.clouds.descriptors import common_part, describe, match
from inlier.clouds.surfaces import Neighbours, normals_of

RADII = (0.12, 0.24)


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
    from inlier.clouds.descriptors import _pair_features

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
