"""Thinning: one point a cell, evenly over the surface, whatever the unit."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.clouds.thinning import count_cells, side_for, thin, thin_both


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
