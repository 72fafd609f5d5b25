from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import special_ortho_group

from inlier import Registration
from inlier.consensus._kernels_chance import shares_within
from inlier.consensus.crowding import Crowding, places
from inlier.consensus.pairs import ColumnPairs


def clouds(n=1500, seed=0):
    """Two surfaces that look alike, as columns: real scans are no uniform clouds."""
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=(3, n)) for _ in range(2))
    return (points / np.linalg.norm(points, axis=0) * [[1.0], [0.6], [0.3]] for points in (x, y))


def share_of_re_pairings(x, y, bound):
    """Of all x_i and y_j, i != j: the slow, obvious count."""
    near = cdist(x.T, y.T) <= bound
    return (near.sum() - np.trace(near)) / (near.size - len(near))


@pytest.mark.parametrize("bound", [0.05, 0.15])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_no_map_brings_more_together_by_chance_than_the_bound_says(bound, scale):
    x, y = clouds()
    most = Crowding(ColumnPairs(x, y, np.ones(x.shape[1]))).most_by_chance(bound, scale)
    rng = np.random.default_rng(1)
    for draw in range(20):
        rotation, shift = special_ortho_group.rvs(3, random_state=rng), 0.4 * rng.normal(size=(3, 1)) * (draw % 4)
        assert share_of_re_pairings(scale * rotation @ x + shift, y, bound) <= 1.2 * most


def test_the_bound_is_reached_where_the_two_sides_lie_alike():
    x, y = clouds()
    most = Crowding(ColumnPairs(x, y, np.ones(x.shape[1]))).most_by_chance(0.1, 1.0)
    assert share_of_re_pairings(x, y, 0.1) == pytest.approx(most, rel=0.15)


def test_a_map_to_a_point_may_bring_all_together():
    x, y = clouds()
    crowding = Crowding(ColumnPairs(x, y, np.ones(x.shape[1])))
    of_y_alone = share_of_re_pairings(y, y, 0.2)
    assert crowding.most_by_chance(0.2, 0.0) == pytest.approx(np.sqrt(of_y_alone), rel=0.15)


@pytest.mark.parametrize("stretch", [0.5, 1.0, 0.0])
@pytest.mark.parametrize("bound", [0.0, 1e-9, 0.03, 0.1, 1e9])
def test_the_bound_is_read_off_between_the_distances_that_were_counted(bound, stretch):
    x, y = clouds()
    crowding = Crowding(ColumnPairs(x, y, np.ones(x.shape[1])))
    tiny = np.finfo(float).tiny
    log_bound, log_stretch = np.log(max(bound, tiny)), np.log(max(stretch, tiny))
    expected = np.interp(log_bound - log_stretch, *crowding.of_x) + np.interp(log_bound, *crowding.of_y)
    assert crowding.most_by_chance(bound, stretch) == pytest.approx(np.exp(expected / 2), rel=1e-12)


def test_sides_of_different_dimension_have_no_bound():
    x, y = np.random.default_rng(0).random((2, 300)), np.random.default_rng(1).random((3, 300))
    crowding = Crowding(ColumnPairs(x, y, np.ones(300)))
    assert [crowding.most_by_chance(bound, 0.0) for bound in (0.0, 0.1, 1e9)] == [0.0, 0.0, 0.0]


def test_shares_below_the_smallest_count_follow_the_rise_above_it():
    bounds = np.geomspace(0.01, 1.0, 60)
    counts = np.floor(10_000 * bounds**2).astype(int)  # a surface: shares grow with the square
    shares = shares_within(bounds, counts, 10_000, 3)
    np.testing.assert_allclose(shares[10:], bounds[10:] ** 2, rtol=0.15)
    assert shares[0] == pytest.approx(1e-4, rel=0.3)
    assert (shares >= 1 / 10_001).all()


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_places_are_cubes_with_points_in_them(d):
    points = np.random.default_rng(d).random((d, 300))
    lowest = points.min(axis=1)
    cubes = {tuple(np.floor((point - lowest) / 0.3)) for point in points.T}
    assert places(points, 0.3) == len(cubes)
    assert places(points[:, :0], 0.3) == 0
    assert places(points, 10.0) == 1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_many_pairs_in_one_spot_do_not_outweigh_fewer_all_over(seed):
    """80 wrong matches join one spot to another (a pattern that repeats); 60 right ones lie all over."""
    rng = np.random.default_rng(seed)
    n, n_spot, n_real = 2000, 80, 60
    x, y = rng.uniform(-1, 1, size=(2, n, 3))
    rotation, shift = special_ortho_group.rvs(3, random_state=rng), np.array([0.3, -0.2, 0.1])
    y[:n_real] = x[:n_real] @ rotation.T + shift
    spot = slice(n_real, n_real + n_spot)
    x[spot] = [0.8, 0.8, 0.8] + 0.05 * rng.uniform(-1, 1, size=(n_spot, 3))
    turned = special_ortho_group.rvs(3, random_state=rng)
    y[spot] = (x[spot] - 0.8) @ turned.T + [-0.8, 0.9, -0.7]
    y += 0.01 * rng.normal(size=y.shape)
    fits = [Registration(random_state=draw).fit(x, y) for draw in range(4)]  # about one in a hundred prefers the spot
    right = [np.allclose(found.transformation_.rotation, rotation, atol=0.02) for found in fits]
    assert sum(right) >= 3
    assert fits[np.argmax(right)].inlier_mask_[:n_real].mean() > 0.9


@pytest.mark.parametrize(("d", "side"), [(2, 0.5), (3, 0.3), (40, 1e-9), (40, 3.0), (200, 2.0)])
def test_places_are_cubes_in_any_dimension(d, side):
    points = np.random.default_rng(0).normal(size=(d, 300))
    cubes = np.floor((points - points.min(axis=1, keepdims=True)) / side)
    assert places(points, side) == len(np.unique(cubes, axis=1).T)
