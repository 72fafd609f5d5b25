from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from inlier.estimators._base import prepare_model_pairs, prepare_pairs
from inlier.rows import PairedRows, summarise_columns, unit_rows
from inlier.rows.row_maps import model_rows
from tests import reference
from tests.strategies import paired_tables


@given(paired_tables())
def test_unit_rows_are_those_of_the_reference(tables):
    x, y = prepare_pairs_quietly(*tables).take(slice(None))
    np.testing.assert_allclose(x, reference.prepared(tables[0]), atol=1e-9)
    np.testing.assert_allclose(y, reference.prepared(tables[1]), atol=1e-9)


@pytest.mark.parametrize("scale", [1e-290, 1e-200, 1e200, 1e290])
def test_extreme_units_change_nothing(scale):
    X = np.random.default_rng(0).standard_normal((20, 3))
    np.testing.assert_allclose(
        unit_rows(summarise_columns(X * scale))(X * scale), unit_rows(summarise_columns(X))(X), atol=1e-12
    )


@pytest.mark.parametrize("prepare", [prepare_pairs, prepare_model_pairs])
@pytest.mark.parametrize("whiten", [False, True])
def test_a_constant_column_changes_nothing_however_large(prepare, whiten):
    """A moment in nanoseconds, 1.7e18, is rounded by more than others vary; but it is centred exactly."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 50, 3))
    with pytest.warns(UserWarning, match="hold a single value"):
        x, y = prepare(np.insert(X, 1, 1.7e18, axis=1), Y, whiten=whiten).take(slice(None))
    expected, same = prepare(X, Y, whiten=whiten).take(slice(None))
    assert x.shape[1] >= 3
    np.testing.assert_allclose(x @ x.T, expected @ expected.T, atol=1e-9)
    np.testing.assert_allclose(y, same)


def test_a_row_equal_to_the_mean_becomes_zero_even_after_rounding():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((51, 3)) + 1e6
    X[50] = X[:50].mean(axis=0)  # the mean of all 51 is this row, up to rounding
    assert np.all(unit_rows(summarise_columns(X))(X)[50] == 0)


def test_far_float32_data_is_not_moved_by_a_rounded_mean():
    rng = np.random.default_rng(0)
    X = (rng.integers(0, 64, size=(500, 3)) + 2.0**20).astype(np.float32)  # exact in float32
    np.testing.assert_allclose(unit_rows(summarise_columns(X))(X), reference.prepared(X), atol=1e-6)


def test_whitened_columns_are_orthonormal_before_the_rows_are_scaled():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 5)) * [1e-6, 1, 1e6, 1, 1]
    row_map = prepare_pairs(X, X, whiten=True).map_x
    basis = (X - X.mean(axis=0)) @ row_map.linear
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-8)


def test_whitening_cuts_directions_that_do_not_exist():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3)) @ rng.standard_normal((3, 8))  # rank 3 in 8 columns
    pairs = prepare_pairs(X, X, whiten=True)
    assert pairs.dimensions == (3, 3)
    x, _ = pairs.take(slice(None))
    np.testing.assert_allclose(x @ x.T, reference.whitened(X) @ reference.whitened(X).T, atol=1e-7)


class TestModelRows:
    def rows(self, X, **options):
        return model_rows(summarise_columns(X), X, **options)(X)

    def test_enough_rows_whiten_fully_whatever_the_units(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 5)) @ rng.standard_normal((5, 5)) * 10.0 ** np.arange(-6, 9, 3)
        Z = self.rows(X, whiten=True, most_directions=50)
        np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(5), atol=1e-8)

    def test_too_few_rows_whiten_the_strong_directions_only(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((200, 100)) / np.arange(1, 101)
        Z = self.rows(X, whiten=True, most_directions=20)
        variances = np.sort(Z.var(axis=0))[::-1]
        assert np.mean(Z**2) == pytest.approx(1)
        assert variances[0] / variances[9] < 2  # among the strongest, nearly equal ...
        assert variances[0] / variances[-1] > 20  # ... and the weak ones stay weak
        shares = X.var(axis=0)
        assert shares.max() / np.sort(shares)[-10] > 50

    def test_without_whitening_only_the_scale_changes(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 4)) * [1, 2, 3, 4] + 7
        Z = self.rows(X, whiten=False, most_directions=7)
        centred = X - X.mean(axis=0)
        gram = centred @ centred.T
        np.testing.assert_allclose(Z @ Z.T, gram * (Z**2).sum() / np.trace(gram), atol=1e-9)
        assert np.mean(Z**2) == pytest.approx(1)


def prepare_pairs_quietly(X, Y):
    return PairedRows(X, Y, unit_rows(summarise_columns(X)), unit_rows(summarise_columns(Y)))
