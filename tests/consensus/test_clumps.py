from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.consensus.clumps import (
    _COMPARED,
    JointNeighbours,
    cell_side,
    cells,
    clump_length,
    error_length,
    looks_clumped,
)


def spots(rng, n_spots, n=400, radius=0.02):
    """Each pair joins the same spot here to the same spot there."""
    spot = rng.integers(n_spots, size=n)
    return tuple(rng.random((n_spots, 3))[spot] + radius * rng.normal(size=(n, 3)) for _ in range(2))


def joint_distances(X, Y):
    return np.maximum(*(np.linalg.norm(side[:, None] - side, axis=2) for side in (X, Y)))


@pytest.mark.parametrize("n_spots", [4, 10, 30])
def test_the_length_of_spots_is_about_their_size(n_spots):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, Y = spots(rng, n_spots)
        assert looks_clumped(X, Y, rng)
        assert 0.05 < clump_length(X, Y, rng) < 0.3


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_what_depends_on_the_range_alone_is_no_clump(seed):
    """Small spots, and near points matched to near ones, as by a lidar whose density tells the range."""
    rng = np.random.default_rng(seed)
    spot = rng.integers(800, size=2000)
    of_x = np.exp(rng.uniform(0, 2, size=800))
    of_y = np.exp(np.clip(np.log(of_x) + rng.normal(size=800), 0, 2))

    def at(radius):
        angle = rng.uniform(0, 2 * np.pi, size=800)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.3 * rng.normal(size=800)], axis=1)

    X, Y = (centres[spot] + 0.05 * rng.normal(size=(2000, 3)) for centres in (at(of_x), at(of_y)))
    assert 0.1 < clump_length(X, Y, rng) < 0.5


@pytest.mark.parametrize("n", [60, 400, 3000])
def test_independent_mistakes_have_no_length(n):
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 3))
        Y = rng.permutation(X @ np.diag([1.0, 2.0, 0.5]))
        found.append(looks_clumped(X, Y, rng) or clump_length(X, Y, rng) > 0)
    assert sum(found) <= 1


def test_the_length_does_not_depend_on_the_unit_or_the_place():
    X, Y = spots(np.random.default_rng(0), 10)
    lengths = [
        clump_length(scale * X + shift, scale * Y - shift, np.random.default_rng(1)) / scale
        for scale, shift in ((1.0, 0.0), (1024.0, 0.0), (1.0, 5.0))
    ]
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-9)


def test_points_that_are_all_one_have_no_length():
    one = np.zeros((80, 3))
    assert clump_length(one, one, np.random.default_rng(0)) == 0.0
    assert not looks_clumped(one, one, np.random.default_rng(0))


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 1.5))
def test_joint_neighbours_are_those_near_on_both_sides(seed, reach):
    rng = np.random.default_rng(seed)
    X, Y = rng.random((40, 3)), rng.random((40, 2))
    listed = JointNeighbours.within(X, Y, reach)
    near = np.zeros((40, 40), dtype=bool)
    near[listed.first, listed.second] = near[listed.second, listed.first] = True
    distances = joint_distances(X, Y)
    np.testing.assert_array_equal(near, (distances <= reach) & ~np.eye(40, dtype=bool))
    np.testing.assert_allclose(listed.distance, distances[listed.first, listed.second])
    np.testing.assert_allclose(listed.votes(), 1 / (1 + near.sum(axis=1)))
    chosen = rng.random(40) < 0.5
    np.testing.assert_array_equal(listed.touching(chosen), (near & chosen).any(axis=1))
    np.testing.assert_allclose(listed.among(chosen).votes()[chosen], 1 / (1 + near[chosen][:, chosen].sum(axis=1)))
    assert (listed.nearer(reach / 2).distance <= reach / 2).all()


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 1.0))
def test_separated_pairs_are_no_neighbours_and_none_can_be_added(seed, reach):
    rng = np.random.default_rng(seed)
    X, Y = rng.random((60, 2)), rng.random((60, 2))
    chosen = rng.random(60) < 0.8
    kept = JointNeighbours.within(X, Y, reach).separated(chosen, rng)
    near = joint_distances(X, Y) <= reach
    assert not kept[~chosen].any()
    assert near[kept][:, kept].sum() == kept.sum()  # each is near itself alone
    assert near[chosen][:, kept].any(axis=1).all()


def test_a_clump_has_one_vote():
    X = np.repeat(np.arange(5.0), 7)[:, None] * 10
    assert JointNeighbours.within(X, X, 1.0).votes().sum() == pytest.approx(5)


def slow_correlation_length(points, errors):
    """The sums of the module's docstring, one pair of points after the other, at each distance that is tried."""
    n = len(points)
    pairs = [(np.linalg.norm(points[i] - points[j]), errors[i] @ errors[j]) for i in range(n) for j in range(i + 1, n)]
    farthest = max(distance for distance, _ in pairs)
    tried = [farthest * 2.0 ** (-step / 4) for step in range(30, -1, -1)]
    together = np.array([sum(common for distance, common in pairs if distance <= h) for h in tried])
    chance = np.array([sum(common**2 for distance, common in pairs if distance <= h) ** 0.5 for h in tried])
    if not (together > 4 * chance).any():
        return 0.0
    for k, h in enumerate(tried):
        like_each = max(1, 1 + 2 * together[k] / np.sum(errors**2))
        luck = [like_each * max(chance[later] ** 2 - chance[k] ** 2, 0) ** 0.5 for later in range(k, 31)]
        if (together[k:] - together[k] <= 2 * np.array(luck)).all():
            return h
    raise AssertionError("beyond the largest distance nothing rises")


def alike(points, length, seed):
    """A smooth field of errors: waves of random directions, `length` their length over 2 pi."""
    rng = np.random.default_rng(seed)
    waves = rng.normal(size=(20, points.shape[1])) / length
    return np.sqrt(2 / 20) * np.cos(points @ waves.T + rng.uniform(0, 2 * np.pi, 20)) @ rng.normal(size=(20, 3))


@pytest.mark.parametrize("seed", range(6))
def test_length_is_that_of_the_slow_sums(seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(60, 3))
    points[5] = points[6]
    errors = rng.normal(size=(60, 3)) + (seed % 3) * alike(points, 0.2, seed)
    assert error_length(points, errors) == pytest.approx(slow_correlation_length(points, errors))


def test_longer_waves_have_longer_lengths_whatever_the_unit():
    points = np.random.default_rng(0).uniform(size=(600, 3))
    lengths = []
    for wave in (0.05, 0.2):
        lengths.append(np.median([error_length(points, alike(points, wave, seed)) for seed in range(9)]))
    assert 0.03 < lengths[0] < 0.15 < lengths[1] < 0.6
    errors = alike(points, 0.1, 0)
    expected = error_length(points, errors)
    for unit in (2.0**-300, 2.0**300):
        assert error_length(unit * points, errors / unit) == unit * expected


def test_independent_errors_have_none():
    found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        points, errors = rng.normal(size=(2, 100, 3))
        found += cell_side(points, errors - errors.mean(axis=0)) > 0  # as a fit leaves them
    assert found <= 2


@pytest.mark.parametrize(
    ("points", "errors"),
    [
        (np.ones((40, 3)), np.ones((40, 3))),
        (np.eye(3), np.zeros((3, 3))),
        (np.ones((1, 2)), np.ones((1, 2))),
    ],
)
def test_where_nothing_can_be_compared_there_is_none(points, errors):
    assert cell_side(points, errors) == 0


def test_of_many_points_some_are_compared():
    points = np.random.default_rng(0).uniform(size=(3 * _COMPARED, 2))
    errors = alike(points, 0.1, 0)
    assert error_length(points, errors) == error_length(points[::3], errors[::3])


@pytest.mark.parametrize("d", [2, 3])
def test_cells_hold_neighbours(d):
    points = np.random.default_rng(d).uniform(size=(300, d))
    numbers = cells(points, 0.3, np.random.default_rng(0))
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    together = numbers[:, None] == numbers[None]
    assert apart[together].max() <= 0.3 * np.sqrt(d)
    assert together[apart < 0.02].mean() > 0.8
    assert set(numbers) == set(range(numbers.max() + 1))
    assert not np.array_equal(numbers, cells(points, 0.3, np.random.default_rng(1)))
