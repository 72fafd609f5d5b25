"""Pairs that were chosen because they are near each other are told, and others are not."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from inlier.calibration.checks.chosen_by_nearness import chosen_by_nearness


def said(X, Y):
    return chosen_by_nearness(X, Y, np.ones(len(X), dtype=bool), np.random.RandomState(0))


def mutual_neighbours(X, Y, far):
    there = far.argmin(axis=1)
    rows = np.flatnonzero(far.argmin(axis=0)[there] == np.arange(len(X)))
    return X[rows], Y[there[rows]]


def as_they_are(table):
    return table


def in_spreads(table):
    return table / table.std(axis=0)


@pytest.mark.parametrize(
    ("seen", "metric", "of"),
    [
        (as_they_are, "euclidean", as_they_are),
        (as_they_are, "cityblock", as_they_are),
        (in_spreads, "euclidean", lambda table: table * 10.0 ** np.array([-2, 0, 1, 3, 4])),
        (np.log, "euclidean", np.exp),
        (as_they_are, "cosine", as_they_are),
    ],
)
def test_nearest_neighbours_are_told_however_near_was_meant(seen, metric, of):
    X, Y = (of(table) for table in np.random.default_rng(0).normal(size=(2, 600, 5)))
    assert said(*mutual_neighbours(X, Y, cdist(seen(X), seen(Y), metric))) is not None


def test_nearest_neighbours_after_a_rotation_are_told():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(2, 600, 4))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert said(*mutual_neighbours(X, Y, cdist(X @ turn, Y))) is not None


def one_by_one(X, Y):
    """Each is given the nearest that is left."""
    left, there = np.ones(len(Y), dtype=bool), []
    for far in cdist(X, Y):
        there.append(np.where(left, far, np.inf).argmin())
        left[there[-1]] = False
    return np.array(there)


def as_near_as_can_be_in_all(X, Y):
    return linear_sum_assignment(cdist(X, Y))[1]


@pytest.mark.parametrize("deal", [one_by_one, as_near_as_can_be_in_all])
@pytest.mark.parametrize("seed", range(3))
def test_pairs_that_were_dealt_out_are_told_though_others_are_nearer(deal, seed):
    X, Y = np.random.default_rng([2, seed]).normal(size=(2, 400, 4))
    assert said(X, Y[deal(X, Y)]) is not None


def test_pairs_that_were_chosen_by_one_number_are_told():
    """A propensity, of columns that differ on both sides."""
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(800, 5)), rng.normal(size=(800, 7))
    one, other = (table @ rng.normal(size=table.shape[1]) for table in (X, Y))
    far = cdist(one[:, None] / one.std(), other[:, None] / other.std())
    assert said(*mutual_neighbours(X, Y, far)) is not None


def test_pairs_that_were_chosen_by_leading_components_are_told():
    rng = np.random.default_rng(4)
    factors = rng.normal(size=(3, 10))
    X, Y = (rng.normal(size=(800, 3)) @ factors + 0.3 * rng.normal(size=(800, 10)) for _ in range(2))
    leading = np.linalg.svd(np.vstack([X, Y]), full_matrices=False)[2][:3].T
    assert said(*mutual_neighbours(X, Y, cdist(X @ leading, Y @ leading))) is not None


def test_right_pairs_are_hardly_ever_said_to_be_chosen():
    """Of any spread and noise: in clumps, with tails, noisier in some rows or places; in other units, bent, shifted."""
    told = 0
    for seed in range(36):
        rng = np.random.default_rng([5, seed])
        n, d = int(rng.choice([100, 300])), int(rng.choice([2, 4, 8]))
        centres = 3 * rng.normal(size=(8, d))[rng.integers(0, 8, n)]
        X = [rng.normal(size=(n, d)), rng.standard_t(2, (n, d)), centres + rng.normal(size=(n, d))][seed % 3]
        scale = rng.choice([0.1, 0.3, 1.0]) * [1.0, rng.lognormal(0, 1, (n, 1)), np.abs(X[:, :1])][seed // 3 % 3]
        Y = X + scale * rng.normal(size=(n, d))
        told += said(X, [Y, 2 * Y, Y + 0.3 * X**2, Y + 1.5][seed // 9 % 4]) is not None
    assert told <= 3  # at a rate of 2 in 100, four or more have a chance of 0.5 %


@pytest.mark.parametrize(("n", "d"), [(60, 300), (150, 150), (400, 40), (300, 5)])
def test_two_noisy_views_of_the_same_rows_are_not(n, d):
    """More columns than rows: a rotation brings pairs together; and a whitened table has all rows equally far apart."""
    rng = np.random.default_rng(n)
    common, *own = rng.normal(size=(3, n, d))
    X, Y = (0.6 * common + 0.8 * side for side in own)
    for scaled in (X, X * rng.uniform(0.1, 10, d) - 100):
        assert said(scaled, Y) is None


def test_rows_on_a_grid_are_not():
    rng = np.random.default_rng(0)
    X = np.stack(np.unravel_index(np.arange(400), (20, 20)), axis=1).astype(float)
    assert said(X, X + 0.3 * rng.normal(size=X.shape)) is None


def test_few_different_rows_are_no_sign_of_a_choice():
    X = np.random.default_rng(0).normal(size=(300, 3))
    assert said(X, (X > 0).astype(float)) is None


def test_columns_of_one_value_say_nothing():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 4))
    Y = X + 0.5 * rng.normal(size=X.shape)
    for table, column, value in ((X, 0, 7.1), (Y, 0, 0.0), (Y, 2, 1e9)):
        table[:, column] = value
        assert said(X, Y) is None
    assert said(np.full((300, 2), 3.3), Y) is None


def test_a_column_of_a_single_value_makes_no_tables_alike():
    X = np.random.default_rng(0).normal(size=(60, 4))
    with_sites = np.column_stack([X, np.tile([-1.0, 1.0], 30)])  # which are the same for own and other partners
    for seed in range(10):
        Y = X[:, ::-1] + 0.01 * np.random.default_rng(seed).normal(size=X.shape)
        assert said(with_sites, np.column_stack([Y, np.zeros(60)])) is None
