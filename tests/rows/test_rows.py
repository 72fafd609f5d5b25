from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.estimators._base import prepare_pairs
from inlier.rows import PairedRows, summarise_columns, unit_rows
from inlier.rows.backend import compute_dtype
from inlier.rows.columns import effective_dimension, principal_directions, scatter_matrix
from inlier.rows.row_maps import model_rows
from inlier.rows.threads import row_blocks, rows_per_block
from tests import reference
from tests.strategies import paired_tables


@given(n=st.integers(0, 200_000), width=st.integers(1, 5000))
def test_blocks_cover_every_row_once(n, width):
    blocks = list(row_blocks(n, width))
    assert sum(block.stop - block.start for block in blocks) == n
    assert all(before.stop == after.start for before, after in pairwise(blocks))
    assert all(block.stop - block.start <= rows_per_block(width) for block in blocks)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("u1", "f4"), ("i2", "f4"), ("f2", "f4"), ("f4", "f4"), ("?", "f4"), ("i4", "f8"), ("i8", "f8"), ("f8", "f8")],
)
def test_precision_holds_every_value(dtype, expected):
    assert compute_dtype(np.dtype(dtype)) == np.dtype(expected)


@given(paired_tables())
def test_column_summary_is_that_of_numpy(tables):
    for X in tables:
        summary = summarise_columns(X)
        np.testing.assert_allclose(summary.mean, X.mean(axis=0), rtol=1e-12, atol=1e-12 * np.abs(X).max())
        np.testing.assert_array_equal(summary.minimum, X.min(axis=0))
        np.testing.assert_array_equal(summary.maximum, X.max(axis=0))


def test_float32_columns_are_summed_in_float64():
    X = np.full((3_000_000, 1), 0.1, dtype=np.float32)
    assert summarise_columns(X).mean[0] == pytest.approx(np.float64(np.float32(0.1)), rel=1e-12)


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


def test_scatter_is_summed_over_blocks(small_blocks):
    X = np.random.default_rng(0).standard_normal((50, 4)) + 3
    small_blocks(7)
    scatter = scatter_matrix(X, summarise_columns(X), np.full(4, 2.0))
    np.testing.assert_allclose(scatter, np.cov(X.T) * 49 / 4, rtol=1e-12)


@pytest.mark.parametrize("shape", [(80, 6), (6, 80)])
def test_principal_directions_are_those_of_the_svd(shape):
    X = np.random.default_rng(0).standard_normal(shape) * np.linspace(1, 3, shape[1]) + 5
    variances, directions = principal_directions(X, summarise_columns(X), np.ones(1))
    _, singular_values, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    rank = min(shape[0] - 1, shape[1])
    np.testing.assert_allclose(variances[::-1], singular_values[:rank] ** 2 / shape[0])
    np.testing.assert_allclose(np.abs(np.diag(Vt[:rank] @ directions[:, ::-1])), 1, rtol=1e-9)


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


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_sum_and_map_do_not_depend_on_the_blocks(small_blocks, rows):
    rng = np.random.default_rng(0)
    X, Y, w = rng.standard_normal((50, 2)), rng.standard_normal((50, 3)), rng.standard_normal(50)
    U = rng.standard_normal((2, 3))
    small_blocks(rows)
    pairs = PairedRows(X, Y)
    np.testing.assert_allclose(pairs.cross_moment(w), X.T @ (w[:, None] * Y))
    np.testing.assert_allclose(pairs.bilinear(U), np.diag(X @ U @ Y.T))


def prepare_pairs_quietly(X, Y):
    return PairedRows(X, Y, unit_rows(summarise_columns(X)), unit_rows(summarise_columns(Y)))


@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
def test_effective_dimension_counts_equal_directions(shape):
    X = np.random.default_rng(0).standard_normal(shape) / np.arange(1, shape[1] + 1)
    variances = np.linalg.eigvalsh(np.cov(X.T))
    expected = variances.sum() ** 2 / (variances**2).sum()
    assert effective_dimension(X, summarise_columns(X)) == pytest.approx(expected)
    assert effective_dimension(np.eye(5), summarise_columns(np.eye(5))) == pytest.approx(4)  # centred
