"""Pairs that were chosen because they are near each other are told from pairs that are near because they are real."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group

from inlier.calibration.checks.chosen_by_nearness import chosen_by_nearness, shared_directions, spread
from inlier.calibration.checks.near_ties import exchanges, others


def said(X, Y, seed=0, likely=None):
    likely = np.ones(len(X), dtype=bool) if likely is None else likely
    return chosen_by_nearness(X, Y, likely, np.random.RandomState(seed))


def mutual(X, Y):
    there, back = cKDTree(Y).query(X)[1], cKDTree(X).query(Y)[1]
    rows = np.flatnonzero(back[there] == np.arange(len(X)))
    return rows, there[rows]


def one_way(X, Y):
    return np.arange(len(X)), cKDTree(Y).query(X)[1]


def assigned(X, Y):
    return linear_sum_assignment(cdist(X, Y, "sqeuclidean"))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("choose", [mutual, one_way, assigned])
@pytest.mark.parametrize("by", ["all columns", "some columns", "other units", "turned"])
def test_choosers_are_told(choose, by, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(2, 700 if choose is mutual else 400, 5))
    seen = X @ ortho_group.rvs(5, random_state=seed) if by == "turned" else X
    columns = slice(0, 3) if by == "some columns" else slice(None)
    i, j = choose(seen[:, columns], Y[:, columns])
    units = rng.lognormal(0, 1.5, size=(2, 5)) if by == "other units" else np.ones((2, 5))
    assert said(units[0] * X[i], units[1] * Y[j]) is not None


def real_pairs(kind, rng):
    X = rng.normal(size=(400, 3))
    if kind == "noisy":
        return X, X @ ortho_group.rvs(3, random_state=1) + 0.3 * rng.normal(size=X.shape)
    if kind == "nearly exact":
        return X, X @ ortho_group.rvs(3, random_state=1) + 0.001 * rng.normal(size=X.shape)
    if kind == "one column":
        return X[:, :1], 2 * X[:, :1] + 0.1 * rng.normal(size=(400, 1))
    if kind == "families":
        X = 8 * np.repeat(X[:80], 5, axis=0) + X
        return X, X + 0.5 * rng.normal(size=X.shape)
    if kind == "bent":
        return X, np.sinh(1.5 * X) + 0.15 * rng.normal(size=X.shape)
    grid = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), axis=-1).reshape(-1, 2)
    noisy = grid + 0.3 * rng.normal(size=grid.shape)
    return grid, np.round(noisy) if kind == "rounded" else noisy


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["noisy", "nearly exact", "one column", "families", "bent", "grid", "rounded"])
def test_real_pairs_are_left_in_peace(kind, seed):
    assert said(*real_pairs(kind, np.random.default_rng(seed)), seed) is None


def test_nothing_is_said_where_nothing_can_be_asked():
    X, Y = np.random.default_rng(0).normal(size=(2, 300, 4))
    assert said(X, Y[:, :2]) is None  # they share nothing, and have not the same columns
    assert said(X, X, likely=np.arange(300) < 10) is None
    assert said(np.ones((300, 2)), np.ones((300, 2))) is None


def test_exchanges_are_balanced_for_noise_and_one_sided_for_an_assignment():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 500, 3))
    i, j = assigned(X, Y)
    noisy, chosen = exchanges(X, X + 0.5 * rng.normal(size=X.shape), 500), exchanges(X[i], Y[j], 500)
    assert 0.4 < noisy.lost / (noisy.won + noisy.lost) < 0.6
    assert noisy.won + noisy.lost <= 250  # each row counts once
    assert chosen.lost == 0
    assert chosen.won > 30
    assert chosen.chance < 1e-6 < noisy.chance


def test_rows_that_are_equal_are_not_exchanged():
    X = np.random.default_rng(0).normal(size=(100, 2))
    assert exchanges(X, np.ones((100, 2)), 100) == (0, 0, 1.0)
    assert exchanges(np.ones((100, 2)), X, 100) == (0, 0, 1.0)


def test_nearest_others_are_never_nearer_to_chosen_pairs():
    X, Y = np.random.default_rng(0).normal(size=(2, 600, 3))
    i, j = mutual(X, Y)
    ties = others(X[i], Y[j], Y[j])
    assert ties.lost == 0
    assert ties.chance < 1e-3


def test_shared_directions_are_those_that_correlate_beyond_chance():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(600, 6)), rng.normal(size=(600, 4))
    Y[:, :2] = X[:, 3:5] + 0.3 * Y[:, :2]
    of_x, of_y, weights = shared_directions(X, Y)
    assert of_x.shape == (6, 2)
    assert of_y.shape == (4, 2)
    assert weights.shape == (2,)
    assert np.abs(of_x[[0, 1, 2, 5]]).max() < 0.2 < np.abs(of_x[3:5]).max()
    np.testing.assert_allclose(np.cov((X @ of_x).T, ddof=0), np.eye(2), atol=1e-9)


def test_rounded_values_are_spread_and_others_are_not():
    table = np.random.default_rng(0).normal(size=(500, 2))
    table[:, 0] = np.round(2 * table[:, 0]) / 2
    spread_out = spread(table, np.random.RandomState(0))
    np.testing.assert_array_equal(spread_out[:, 1], table[:, 1])
    assert np.unique(spread_out[:, 0]).size == 500
    assert np.abs(spread_out - table).max() <= 0.25
