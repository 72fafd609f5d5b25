from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import special_ortho_group

from inlier.consensus._kernels_pairs import UPPER_ENDS, _rotate_to, best_bound, squared_residuals, support_within
from inlier.consensus.pairs import ColumnPairs
from inlier.transforms.least_squares import MapModel, Maps, Moments, maps_of

ROOM = np.empty((3, 256))


@pytest.fixture(params=[(2, 2, 300), (3, 3, 1001), (5, 2, 77), (1, 1, 300)])
def points(request):
    d_x, d_y, n = request.param
    rng = np.random.default_rng(n)
    return rng.normal(2.0, 1.0, size=(d_x, n)), rng.normal(-1.0, 3.0, size=(d_y, n))


@pytest.mark.parametrize("step", [0, 1, 7])
def test_residuals_of_pairs_and_of_re_pairings(points, step):
    x, y = points
    linear, shift = np.random.default_rng(1).normal(size=(len(y), len(x))), np.ones(len(y))
    expected = np.linalg.norm(np.roll(y, -step, axis=1) - linear @ x - shift[:, None], axis=0)
    start, stop = 3, x.shape[1] - 5
    squared = np.empty(stop - start)
    squared_residuals(linear, shift, x, np.concatenate([y, y], axis=1), step, start, stop, ROOM, squared)
    np.testing.assert_allclose(np.sqrt(squared), expected[start:stop])


def test_residuals_within_bounds_are_counted(points):
    x, y = points
    maps = Maps(np.random.default_rng(1).normal(size=(1, len(y), len(x))), np.ones((1, len(y))))
    within = ColumnPairs(x, y, np.ones(x.shape[1])).count_residuals(maps, 1, unit=2.5).pairs
    residuals = np.linalg.norm(y - maps.linear[0] @ x - 1.0, axis=0)
    # Where a residual is as large as a bound, rounding decides.
    counted = [(residuals <= bound * (1 + 1e-12)).sum() for bound in 2.5 * UPPER_ENDS]
    np.testing.assert_array_equal(within[:-1], counted[:-1])
    assert within[-1] == residuals.size


def test_support_of_many_maps_is_that_of_each(points):
    x, y = points
    rng = np.random.default_rng(2)
    linear, shift = rng.normal(size=(4, len(y), len(x))), rng.normal(size=(4, len(y)))
    bounds = rng.uniform(1.0, 9.0, size=(3, 4))
    found, squared = np.full((3, 4), 10.0), np.empty(x.shape[1])
    support_within(linear, shift, x, np.concatenate([y, y], axis=1), 2, 0, bounds**2, ROOM, squared, found)
    for s in range(4):
        gap = np.linalg.norm(np.roll(y, -2, axis=1) - linear[s] @ x - shift[s][:, None], axis=0)
        np.testing.assert_array_equal(found[:, s], 10 + (gap <= bounds[:, s, None]).sum(axis=1))


def matrices(d):
    rng = np.random.default_rng(0)
    for _ in range(30):
        cross = rng.normal(size=(d, d))
        yield cross
        yield cross * 10.0 ** rng.uniform(-6, 6, size=d)  # singular values far apart
        yield np.linalg.qr(cross)[0] + 1e-9 * rng.normal(size=(d, d))  # and all alike
        yield cross[:, : d - 1] @ rng.normal(size=(d - 1, d))  # points on a plane
        yield np.outer(cross[0], cross[1])  # on a line
        yield cross * 1e120
        yield cross * 1e-120
    for axis in np.eye(d):
        yield np.outer(-2.0 * np.eye(d)[0], axis)


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("turned", [False, True])
def test_the_rotation_is_that_of_the_singular_vectors(d, turned):
    model, nowhere = MapModel("rotation", d), np.zeros((1, d))
    for seed, cross in enumerate(matrices(d)):
        expected = maps_of(model, Moments(nowhere, nowhere, cross[None], cross[None])).linear[0]
        rotation = special_ortho_group.rvs(d, random_state=seed) if turned else np.eye(d)
        _rotate_to(cross, rotation, np.empty((4, d, d)))
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(d), atol=1e-13)
        assert np.linalg.det(rotation) > 0
        # Not always the same, but as good: U D V^T maximises tr(R^T cross).
        assert np.vdot(rotation, cross) == pytest.approx(np.vdot(expected, cross), rel=1e-12)


def test_where_nothing_determines_it_the_rotation_stays():
    rotation = special_ortho_group.rvs(3, random_state=0)
    before = rotation.copy()
    assert _rotate_to(np.zeros((3, 3)), rotation, np.empty((4, 3, 3))) < 1e-15
    np.testing.assert_allclose(rotation, before, atol=1e-15)


def test_the_largest_change_of_a_coefficient_is_told():
    rotation, turned = np.eye(2), np.array([[0.6, -0.8], [0.8, 0.6]])
    assert _rotate_to(turned, rotation, np.empty((4, 2, 2))) == pytest.approx(0.8)
    np.testing.assert_allclose(rotation, turned, atol=1e-15)


def test_no_bound_is_best_where_chance_explains_all():
    found, own = np.array([2, 5, 50]), np.array([1e-4, 0.01, 0.1])
    assert best_bound(found, own, own, 3, 500, 1.0) == (0, 0.0)
    assert best_bound(found, own / 100, own / 100, 3, 500, 1.0)[0] == 2
    assert best_bound(found, own / 100, own / 100, 3, 500, 5e-4)[0] == 1  # the wider one is not fine enough
