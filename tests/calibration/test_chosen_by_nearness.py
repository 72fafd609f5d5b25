"""Pairs that were chosen because they are near each other are told; where that cannot be asked nothing is said."""

import numpy as np
from scipy.spatial import cKDTree

from inlier.calibration.checks.chosen_by_nearness import chosen_by_nearness


def said(X, Y):
    return chosen_by_nearness(X, Y, np.ones(len(X), dtype=bool), np.random.RandomState(0))


def test_nearest_neighbours_are_told():
    X, Y = np.random.default_rng(0).normal(size=(2, 300, 5))
    assert said(X, Y[cKDTree(Y).query(X)[1]]) is not None


def test_few_different_rows_are_no_sign_of_a_choice():
    X = np.random.default_rng(0).normal(size=(300, 3))
    assert said(X, (X > 0).astype(float)) is None
