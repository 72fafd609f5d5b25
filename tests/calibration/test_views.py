from __future__ import annotations

import numpy as np
import pytest

from inlier.calibration.views import as_given, views_of
from inlier.estimators._base import prepare_model_pairs


def prepared(n, d_x, d_y, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d_x)) / np.arange(1, d_x + 1) + 5
    Y = rng.standard_normal((n, d_y)) @ rng.standard_normal((d_y, d_y))
    pairs = prepare_model_pairs(X, Y, whiten=True)
    return X, Y, pairs, *pairs.take(slice(0, n))


def assert_same_in_other_units(seen, expected):
    np.testing.assert_allclose(seen * (np.linalg.norm(expected) / np.linalg.norm(seen)), expected, atol=1e-9)


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize("units", [1.0, 1e180])
def test_the_view_as_given_undoes_the_whitening(whiten, units):
    X, Y, _, _, _ = prepared(200, 4, 6)
    pairs = prepare_model_pairs(X * units, Y, whiten=whiten)
    x, y = pairs.take(slice(0, 200))
    seen_x, seen_y = as_given(pairs)(x, y)
    assert_same_in_other_units(seen_x, X - X.mean(axis=0))
    assert_same_in_other_units(seen_y, Y - Y.mean(axis=0))


def test_of_columns_that_depend_on_each_other_the_whole_comes_back():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    pairs = prepare_model_pairs(X, X, whiten=True)
    seen, _ = as_given(pairs)(*pairs.take(slice(0, 100)))
    assert_same_in_other_units(seen, X - X.mean(axis=0))


def test_strong_directions_are_uncorrelated_and_the_strongest():
    X, _, pairs, x, y = prepared(500, 12, 9)
    *_, strongest = views_of(pairs, x, y)
    seen_x, seen_y = strongest(x, y)
    assert seen_x.shape == seen_y.shape == (500, 8)
    for seen in (seen_x, seen_y):
        np.testing.assert_allclose(seen.T @ seen / 500, np.eye(8), atol=1e-8)
    centred = X - X.mean(axis=0)
    explained = np.linalg.lstsq(seen_x, centred, rcond=None)[0]
    rest = np.sum((centred - seen_x @ explained) ** 2)
    np.testing.assert_allclose(rest, np.sum(np.linalg.svd(centred, compute_uv=False)[8:] ** 2))


def test_narrow_rows_have_no_part_to_choose():
    assert len(views_of(*prepared(100, 5, 5)[2:])) == 2
