from __future__ import annotations

import numpy as np
import pytest

from inlier.consensus.clusters import _COMPARED, cell_side, cells, correlation_length


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
    assert correlation_length(points, errors) == pytest.approx(slow_correlation_length(points, errors))


def test_longer_waves_have_longer_lengths_whatever_the_unit():
    points = np.random.default_rng(0).uniform(size=(600, 3))
    lengths = []
    for wave in (0.05, 0.2):
        lengths.append(np.median([correlation_length(points, alike(points, wave, seed)) for seed in range(9)]))
    assert 0.03 < lengths[0] < 0.15 < lengths[1] < 0.6
    errors = alike(points, 0.1, 0)
    expected = correlation_length(points, errors)
    for unit in (2.0**-300, 2.0**300):
        assert correlation_length(unit * points, errors / unit) == unit * expected


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
    assert correlation_length(points, errors) == correlation_length(points[::3], errors[::3])


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
