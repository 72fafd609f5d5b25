from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import special_ortho_group

from inlier.consensus._kernels_pairs import (
    CAUTION,
    N_BINS,
    TIE_BREAK,
    TILE,
    UPPER_ENDS,
    _rotate_to,
    best_bound,
    count_residuals,
    divergence,
    fit_rotation,
    near_moments,
    residuals_within,
    shares_within,
    squared_residuals,
)
from inlier.consensus.pairs import ColumnPairs
from inlier.transforms.least_squares import MapModel, Maps, Moments, maps_of

ROOM = np.empty((3, TILE))


@pytest.fixture(params=[(2, 2, TILE + 300), (3, 3, 2 * TILE + 1), (5, 2, 77), (1, 1, 300)])
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


@pytest.mark.parametrize("shared", [False, True])
def test_residuals_of_re_pairings_are_counted_by_bins_unless_they_share_a_point(points, shared):
    x, y = (side.copy() for side in points)
    n, unit, start, stop = x.shape[1], 2.5, 5, x.shape[1] - 9
    if shared:
        x[:, 20:30], y[:, 8:40:3], x[0, 40:60] = x[:, [20]], y[:, [8]], x[0, 40]  # the last differ in other columns
    linear, shift = np.random.default_rng(1).normal(size=(len(y), len(x))), np.ones(len(y))
    counts, bits = np.zeros(N_BINS + 1, dtype=np.int64), ROOM.view(np.uint64)
    around = [np.concatenate([side, side], axis=1) for side in (x, y)]
    count_residuals(linear, shift, *around, (0, 4), 1 / unit**2, start, stop, ROOM, bits, counts)
    expected = np.zeros(N_BINS + 1, dtype=np.int64)
    for step in range(4):
        for i in range(start, stop):
            j = (i + step) % n
            if step and ((x[:, i] == x[:, j]).all() or (y[:, i] == y[:, j]).all()):
                expected[-1] += 1
                continue
            residual = np.linalg.norm(y[:, j] - linear @ x[:, i] - shift) / unit
            expected[min(np.searchsorted(UPPER_ENDS, residual, side="right"), N_BINS - 1)] += 1
    np.testing.assert_array_equal(counts, expected)
    assert (counts[-1] > 0) == shared or len(x) == 1


@pytest.mark.parametrize("residual", [0.0, 1e-300, 1e300])
def test_residuals_beyond_the_bins_count_with_the_first_and_the_last(residual):
    counts, x, y = np.zeros(N_BINS + 1, dtype=np.int64), np.zeros((1, 1)), np.full((1, 1), residual)
    count_residuals(np.eye(1), np.zeros(1), x, y, (0, 1), 1.0, 0, 1, ROOM, ROOM.view(np.uint64), counts)
    assert counts.sum() == counts[0 if residual < 1 else N_BINS - 1] == 1


@pytest.mark.parametrize("scattered", [True, False])
@pytest.mark.parametrize(("reach", "sharpness"), [(np.inf, 0.0), (30.0, 0.2)])
def test_moments_of_near_pairs(points, reach, sharpness, scattered):
    x, y = points
    rng = np.random.default_rng(3)
    linear, shift, weights = rng.normal(size=(len(y), len(x))), np.ones(len(y)), rng.uniform(size=x.shape[1])
    start, stop = 2, x.shape[1] - 3
    sums = np.zeros((1 + len(x) + len(y), 1 + len(x)))
    near = near_moments(linear, shift, x, y, 0, weights, reach, sharpness, scattered, start, stop, ROOM, sums)
    part = slice(start, stop)
    squared = ((y - linear @ x - shift[:, None]) ** 2).sum(axis=0)[part]
    w = np.where(squared <= reach, weights[part] / (1 + sharpness * squared) ** 2, 0.0)
    z = np.vstack([np.ones(stop - start), x[:, part], y[:, part]])
    expected = (z * w) @ z[: 1 + len(x)].T
    if not scattered:  # of x x^T the diagonal only
        inner = expected[1 : 1 + len(x), 1:]
        inner[:] = np.diag(inner.diagonal())
    assert near == (squared <= reach).sum()
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-10)


def test_support_of_many_maps_is_that_of_each(points):
    x, y = points
    rng = np.random.default_rng(2)
    linear, shift = rng.normal(size=(4, len(y), len(x))), rng.normal(size=(4, len(y)))
    bounds = rng.uniform(1.0, 9.0, size=(3, 4))
    found, squared = np.full((3, 4), 10.0), np.empty((2, x.shape[1]))
    residuals_within(linear, shift, x, np.concatenate([y, y], axis=1), (2, 4), 0, bounds**2, ROOM, squared, found)
    for s in range(4):
        images = linear[s] @ x + shift[s][:, None]
        gap = np.linalg.norm([np.roll(y, -step, axis=1) - images for step in (2, 3)], axis=1)
        np.testing.assert_array_equal(found[:, s], 10 + (gap <= bounds[:, s, None, None]).sum(axis=(1, 2)))
    np.testing.assert_allclose(squared, gap**2)  # of the last map


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


def moments_of(x, y, weights):
    z = np.vstack([np.ones(x.shape[1]), x, y])
    return (z * weights) @ z[: 1 + len(x)].T


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("has_shift", [True, False])
def test_a_rotation_is_fitted_to_sums(d, has_shift):
    rng = np.random.default_rng(d)
    x, y, weights = rng.normal(1.0, 1.0, (d, 50)), rng.normal(-2.0, 1.0, (d, 50)), rng.uniform(size=50)
    model, sums = MapModel("rigid" if has_shift else "rotation", d), moments_of(x, y, weights)
    expected = maps_of(model, Moments.from_sums(model, sums))
    rotation, shift = np.eye(d), np.full(d, 7.0)
    change = fit_rotation(rotation, shift, sums, has_shift, np.empty((4, d, d)))
    np.testing.assert_allclose(rotation, expected.linear[0], atol=1e-12)
    np.testing.assert_allclose(shift, expected.shift[0], atol=1e-12)
    assert change == pytest.approx(np.abs(rotation - np.eye(d)).max())


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_divergence_is_that_of_two_coins(share, rate):
    p = min(max(rate, 1e-15), 1 - 1e-12)
    expected = rel_entr(share, p) + rel_entr(1 - share, 1 - p) if share > p else 0.0
    assert divergence(share, rate) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("dimension", [1, 3])
def test_shares_go_on_as_a_power_of_the_bound_where_hardly_any_were_counted(dimension):
    bounds, shares = np.geomspace(0.01, 1.0, 30), np.empty(30)
    counts = np.round(10_000 * bounds**2).astype(np.int64)
    shares_within(bounds, counts, 10_000, dimension, 20, 100, shares)
    k, m = np.argmax(counts >= 20), np.argmax(counts >= 100)
    expected = (counts + 1) / 10_001
    power = min(max(np.log(counts[m] / counts[k]) / np.log(bounds[m] / bounds[k]), 1.0), dimension)
    expected[:k] = np.maximum(expected[k] * (bounds[:k] / bounds[k]) ** power, 1 / 10_001)
    np.testing.assert_allclose(shares, expected)


@given(st.integers(0, 2**32 - 1))
def test_the_best_bound_is_that_with_the_highest_score(seed):
    rng = np.random.default_rng(seed)
    n, free = 200, 3
    found = np.sort(rng.integers(0, n + 1, size=12))
    own, most = np.sort(rng.uniform(1e-4, 0.5, size=(2, 12)), axis=1)
    best, score = best_bound(found, own, most, free, n, 0.3)
    scores = np.zeros(12)
    for k in range(12):
        is_new = k == 0 or (found[k] > found[k - 1] and own[k] <= 0.3)
        if found[k] > free and is_new:
            share = (found[k] - free) / (n - free)
            beside_most, beside_own = (divergence(share, CAUTION * rate) for rate in (max(own[k], most[k]), own[k]))
            scores[k] = (n - free) * (beside_most + TIE_BREAK * beside_own)
    assert best == np.argmax(scores)
    assert score == pytest.approx(scores.max())


def test_no_bound_is_best_where_chance_explains_all():
    found, own = np.array([2, 5, 50]), np.array([1e-4, 0.01, 0.1])
    assert best_bound(found, own, own, 3, 500, 1.0) == (0, 0.0)
    assert best_bound(found, own / 100, own / 100, 3, 500, 1.0)[0] == 2
    assert best_bound(found, own / 100, own / 100, 3, 500, 5e-4)[0] == 1  # the wider one is not fine enough
