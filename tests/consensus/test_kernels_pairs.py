from __future__ import annotations

import numpy as np
import pytest

from inlier.consensus._kernels_columns import (
    disagreements_along,
    distances_between,
    farthest_coordinates,
    row_sums,
    spread_of,
)
from inlier.consensus._kernels_pairs import UPPER_ENDS, counts_within
from inlier.consensus.pairs import ColumnPairs


@pytest.fixture(params=[(2, 2, 300), (3, 3, 1001), (5, 2, 77)])
def points(request):
    d_x, d_y, n = request.param
    rng = np.random.default_rng(n)
    return rng.normal(2.0, 1.0, size=(d_x, n)), rng.normal(-1.0, 3.0, size=(d_y, n)), rng.uniform(size=n)


@pytest.mark.parametrize("centred", [False, True])
def test_row_sums_are_those_of_the_overlap(points, centred):
    x, y, weights = points
    if centred:
        x, y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
    expected = ((x.T @ x) * (y.T @ y)) @ weights
    np.testing.assert_allclose(row_sums(*points, centred), expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(ColumnPairs(*points).row_sums(centred), expected, atol=1e-9 * np.abs(expected).max())


def test_row_sums_of_wide_pairs():
    x, y = np.random.default_rng(0).normal(size=(2, 12, 60))
    off_x, off_y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
    expected = ((off_x.T @ off_x) * (off_y.T @ off_y)).sum(axis=1)
    np.testing.assert_allclose(ColumnPairs(x, y, np.ones(60)).row_sums(True), expected)


def test_spread_and_reach(points):
    x, _, _ = points
    assert spread_of(x) == pytest.approx(np.sqrt(x.var(axis=1).sum()))
    assert farthest_coordinates(x) == pytest.approx(np.linalg.norm(np.abs(x).max(axis=1)))


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("n", [300, 70_000])
def test_rows_become_columns_about_their_means(centred, dtype, n):
    rng = np.random.default_rng(0)
    X, Y = (100 * rng.normal(size=(n, d)) + 50 for d in (3, 2))
    X, Y = X.astype(dtype), np.asfortranarray(Y.astype(dtype))
    pairs, (x_bar, y_bar) = ColumnPairs.from_rows(X, Y, np.ones(n), centred)
    for columns, mean, table in ((pairs.x, x_bar, X), (pairs.y, y_bar, Y)):
        expected = table.mean(axis=0, dtype=np.float64) if centred else np.zeros(table.shape[1])
        np.testing.assert_allclose(mean, expected, rtol=1e-12)
        np.testing.assert_array_equal(columns, table.T - mean[:, None])
        assert columns.flags.c_contiguous


def test_some_pairs_are_taken(points):
    which = np.array([5, 0, 76, 5])
    some = ColumnPairs(*points).take(which)
    for part, whole in zip((some.x, some.y, some.weights), points, strict=True):
        np.testing.assert_array_equal(part, whole[..., which])
    assert some.take(which[:0]).n_pairs == 0


def test_distances_between_columns(points):
    x, _, _ = points
    i, j = np.random.default_rng(0).integers(x.shape[1], size=(2, 50))
    np.testing.assert_allclose(distances_between(x, i, j), np.linalg.norm(x[:, i] - x[:, j], axis=0))


@pytest.mark.parametrize("rounds", [1, 4])
def test_disagreements_of_neighbours(points, rounds):
    x, y, _ = points
    n = x.shape[1]
    expected = []
    for gap in range(1, rounds + 1):
        i, j, k, m = (np.arange(n)[:, None] + gap * np.arange(4)).T % n
        in_x, in_y = np.linalg.norm(x[:, i] - x[:, j], axis=0), np.linalg.norm(y[:, k] - y[:, m], axis=0)
        expected.append(np.abs(1.7 * in_x - in_y))
    np.testing.assert_allclose(disagreements_along(x, y, 1.7, rounds), np.concatenate(expected), atol=1e-12)


def test_residuals_within_bounds_are_counted(points):
    x, y, _ = points
    linear, shift = np.random.default_rng(1).normal(size=(len(y), len(x))), np.ones(len(y))
    bounds, within = 2.5 * UPPER_ENDS, counts_within(linear, shift, x, y, 0, 0, 2.5**2, 0, x.shape[1])
    residuals = np.linalg.norm(y - linear @ x - shift[:, None], axis=0)
    # Where a residual is as large as a bound, rounding decides.
    counted = [(residuals <= bound * (1 + 1e-12)).sum() for bound in bounds]
    np.testing.assert_array_equal(within[:-1], counted[:-1])
    assert within[-1] == residuals.size
