from __future__ import annotations

import numpy as np
import pytest

from inlier.calibration.pair_map import fit_pair_map
from inlier.estimators._base import linear_rows


def fitted(X, Y, weights=None):
    rows_x, rows_y = linear_rows(X, whiten=True), linear_rows(Y, whiten=True)
    weights = np.ones(len(X)) if weights is None else weights
    return fit_pair_map(rows_x, rows_y, rows_x(X), rows_y(Y), weights, np.random.RandomState(0))


def make(kind, n=400, d=10, noise=0.3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * np.linspace(0.5, 2, d)
    if kind == "orthogonal":
        matrix = 3 * np.linalg.qr(rng.normal(size=(d, d)))[0]
    elif kind == "low-rank":
        matrix = np.outer(rng.normal(size=d), rng.normal(size=d))
    else:
        matrix = rng.normal(size=(d, d)) * 10.0 ** np.linspace(-1, 1, d)
    signal = X @ matrix
    return X, signal + 5 + noise * signal.std() * rng.normal(size=(n, d)), matrix


@pytest.mark.parametrize("kind", ["orthogonal", "low-rank"])
def test_held_out_pairs_prefer_what_is_true(kind):
    X, Y, matrix = make(kind)
    found = fitted(X, Y)
    assert found.kind == kind
    assert found.rank == np.linalg.matrix_rank(matrix)
    np.testing.assert_allclose(found.matrix, matrix, atol=0.2 * np.abs(matrix).max())
    np.testing.assert_allclose(found.offset, 5, atol=1)


def test_a_linear_map_is_found_exactly_without_noise():
    X, Y, matrix = make("linear", noise=0)
    found = fitted(X, Y)
    assert found.kind in ("linear", "low-rank")
    assert found.error < 1e-4
    np.testing.assert_allclose(found(X), Y, rtol=1e-2, atol=0.02 * np.abs(matrix).max())
    np.testing.assert_allclose(found.offset + X @ found.matrix, found(X))


def test_pairs_count_by_their_weights():
    X, Y, matrix = make("orthogonal")
    Y[:200] = np.random.default_rng(1).normal(size=(200, 10))
    found = fitted(X, Y, (np.arange(400) >= 200).astype(float))
    np.testing.assert_allclose(found.matrix, matrix, atol=0.2 * np.abs(matrix).max())


def test_nothing_is_predicted_by_the_mean():
    X, Y, _ = make("linear")
    found = fitted(X, Y, np.zeros(400))
    assert (found.kind, found.rank) == ("none", 0)
    np.testing.assert_allclose(found(X[:3]), np.tile(Y.mean(axis=0), (3, 1)))


def test_a_gap_counts_as_the_mean_of_its_column():
    X, Y, _ = make("orthogonal")
    found = fitted(X, Y)
    row = X[:1].copy()
    row[0, 2] = np.nan
    filled = X[:1].copy()
    filled[0, 2] = X[:, 2].mean()
    np.testing.assert_allclose(found(row), found(filled))


def test_more_columns_than_rows():
    rng = np.random.default_rng(2)
    hidden = rng.normal(size=(60, 3))
    X, Y = (hidden @ rng.normal(size=(3, 300)) + 0.1 * rng.normal(size=(60, 300)) for _ in range(2))
    found = fitted(X, Y)
    assert found.error < 0.1
    np.testing.assert_allclose(found.offset + X @ found.matrix, found(X))
