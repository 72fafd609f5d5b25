"""Pairs that were chosen because they are near each other are told, and others are not."""

import numpy as np
import pytest
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
