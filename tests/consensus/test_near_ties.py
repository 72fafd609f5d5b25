"""Pairs that were chosen because they are near, beside right pairs of any noise, on any surface or grid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from inlier.consensus.near_ties import near_ties, near_ties_of_motion


def blob(rng, n):
    return rng.normal(size=(n, 3))


def sphere(rng, n):
    points = rng.normal(size=(n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def terrain(rng, n):
    x, y = rng.uniform(-3, 3, (2, n))
    return np.c_[x, y, 0.4 * np.sin(2 * x) * np.cos(1.5 * y)]


def grid(rng, n):
    side = int(np.ceil(n ** (1 / 3)))
    return rng.permutation(np.stack(np.meshgrid(*[np.arange(side)] * 3), -1).reshape(-1, 3)[:n].astype(float))


SHAPES = [blob, sphere, terrain, grid]


def everyone(X, Y):
    """All pairs accepted, and nobody beside them."""
    return X, Y, np.ones(len(X), dtype=bool), X, Y


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_mutual_nearest_points_of_unrelated_clouds_are_told(shape):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, Y = shape(rng, 400), shape(rng, 500)
        there = cKDTree(Y).query(X)[1]
        rows = np.flatnonzero(cKDTree(X).query(Y)[1][there] == np.arange(len(X)))
        ties = near_ties_of_motion(*everyone(X[rows], Y[there[rows]]))
        assert ties.chance < 0.01
        assert ties.won > 5 * ties.lost


def test_they_are_told_after_another_motion_than_the_one_that_chose_them():
    """On a sphere the fit takes the shift away that brought the points together, and many lose their ties."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, Y = sphere(rng, 400) + rng.choice([-0.1, 0.1], 3), sphere(rng, 500)
        there = cKDTree(Y).query(X)[1]
        rows = np.flatnonzero(cKDTree(X).query(Y)[1][there] == np.arange(len(X)))
        fitted = X[rows] - X[rows].mean(axis=0) + Y[there[rows]].mean(axis=0)
        assert near_ties_of_motion(*everyone(fitted, Y[there[rows]])).chance < 1e-3


def test_few_that_were_not_accepted_are_asked_too():
    rng = np.random.default_rng(0)
    X, Y = blob(rng, 60), blob(rng, 80)
    there = cKDTree(Y).query(X)[1]
    rows = np.flatnonzero(cKDTree(X).query(Y)[1][there] == np.arange(len(X)))
    own, accepted = Y[there[rows]], np.arange(rows.size) < 6
    assert near_ties_of_motion(X[rows], own, accepted, X[rows], own).chance < 0.02
    own = np.where(accepted[:, None], own, rng.permutation(own))  # others that belong nowhere say nothing
    assert near_ties_of_motion(X[rows], own, accepted, X[rows], own).chance > 0.02


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("noise", [0.02, 0.2, 0.3, 1.0])
def test_right_pairs_are_not(shape, noise):
    """With noise of a share of the spacing, and with noise that makes others nearest more often than not."""
    chances = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = shape(rng, 400)
        spacing = np.median(cKDTree(X).query(X, k=2)[0][:, 1])
        Y = X + noise * spacing * rng.normal(size=X.shape)
        chances.append(near_ties_of_motion(*everyone(X, Y)).chance)
    assert np.median(chances) > 0.05
    assert sum(chance < 0.01 for chance in chances) <= 1


def test_ties_are_counted_one_by_one():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 300, 3))
    own, distances = np.linalg.norm(X - Y, axis=1), cKDTree(Y).query(X, k=2)[0]
    others = np.where(np.isclose(distances[:, 0], own), distances[:, 1], distances[:, 0])
    ties = near_ties(X, Y, Y)
    log = np.log(own / others)
    assert ties.won + ties.lost <= np.count_nonzero(np.abs(log) < 2)
    assert ties.won >= np.count_nonzero((log < 0) & (log > -0.5))
    assert ties.lost >= np.count_nonzero((log > 0) & (log < 0.5))
    assert ties.chance > 0.05


def test_many_columns_are_compared_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    assert near_ties(X, X + 0.5 * rng.normal(size=X.shape), X + 0.5 * rng.normal(size=X.shape)).chance > 0.01
    Y = rng.normal(size=(300, 20))
    there = cKDTree(Y).query(X)[1]
    assert near_ties(X, Y[there], Y).chance < 0.01
