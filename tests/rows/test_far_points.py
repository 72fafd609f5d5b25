from __future__ import annotations

import numpy as np
import pytest

from inlier.rows.far_points import far_points

POINTS = np.random.default_rng(0).normal(size=(500, 3))


def with_row(points, row, value):
    points = points.copy()
    points[row] = value
    return points


@pytest.mark.parametrize("value", [1e9, -1e9, [0, 0, 1e6], 1e300])
def test_one_point_far_from_all_others(value):
    assert np.flatnonzero(far_points(with_row(POINTS, 17, value))).tolist() == [17]


def test_it_is_the_distance_in_a_thousand_typical_ones_that_counts():
    plane = np.zeros((101, 2))
    plane[:, 0] = np.tile([-1.0, 1.0], 51)[:101]  # of which the typical distance from the middle is 1
    plane[50] = 0.0
    assert far_points(with_row(plane, 3, [0, 998.0])) is None
    assert np.flatnonzero(far_points(with_row(plane, 3, [0, 1001.0]))).tolist() == [3]
    diagonal = with_row(plane, 3, [800.0, 800.0])  # 1,131 away, though near in each coordinate
    assert np.flatnonzero(far_points(diagonal)).tolist() == [3]


def test_turned_and_moved_points_are_judged_alike():
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    points = with_row(POINTS, 4, 1e7)
    np.testing.assert_array_equal(far_points(points @ turn.T + 1e4), far_points(points))


def test_a_flat_scene_with_things_on_it_is_no_exception():
    scene = POINTS * [1, 1, 1e-9]
    scene[::7, 2] += 1  # a thousand million times the typical height
    assert far_points(scene) is None


def test_where_many_are_far_it_is_their_nature():
    few, many = POINTS.copy(), POINTS.copy()
    few[:5], many[:6] = 1e6, 1e6
    assert np.count_nonzero(far_points(few)) == 5
    assert far_points(many) is None


@pytest.mark.parametrize(
    "points", [np.zeros((50, 2)), with_row(np.zeros((50, 2)), 3, 1e9), np.eye(9) * 1e9 * POINTS[:9, :1]]
)
def test_without_anything_typical_nothing_is_far(points):
    assert far_points(points) is None


def test_of_ten_points_one_may_be_far():
    assert np.flatnonzero(far_points(with_row(POINTS[:10], 9, 1e6))).tolist() == [9]
    assert far_points(with_row(POINTS[:9], 8, 1e6)) is None


def test_whole_numbers_and_many_rows():
    points = np.random.default_rng(0).integers(0, 100, (30_000, 2))
    assert far_points(points) is None
    points[12_345] = 9_999_999
    assert np.flatnonzero(far_points(points)).tolist() == [12_345]
