from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from inlier.estimators._base import prepare_model_pairs, prepare_pairs
from inlier.exceptions import ParameterWarning
from inlier.rows import PairedRows, check_coordinates, summarise_columns, unit_rows
from inlier.rows.columns import check_magnitude, effective_dimension, model_rows, principal_directions, scatter_matrix
from tests import reference
from tests.strategies import paired_tables


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


@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
def test_effective_dimension_counts_equal_directions(shape):
    X = np.random.default_rng(0).standard_normal(shape) / np.arange(1, shape[1] + 1)
    variances = np.linalg.eigvalsh(np.cov(X.T))
    expected = variances.sum() ** 2 / (variances**2).sum()
    assert effective_dimension(X, summarise_columns(X)) == pytest.approx(expected)
    assert effective_dimension(np.eye(5), summarise_columns(np.eye(5))) == pytest.approx(4)  # centred


def table(n=40, kind=np.float64):
    return np.random.default_rng(n).standard_normal((n, 3)).astype(kind)


class TestCheckCoordinates:
    @pytest.mark.parametrize("kind", [np.float64, np.float32])
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
    def test_sound_tables_pass(self, kind, order, scale):
        X = np.asarray(scale * table(kind=kind), order=order)
        assert check_coordinates(X, "X") == pytest.approx(np.ptp(X))
        assert check_coordinates(np.arange(12).reshape(4, 3), "X") == 11

    def test_columns_that_vary_in_late_rows_only_pass(self):
        X = table(100)
        X[:99, 1] = 2.0
        check_coordinates(X, "X")

    @pytest.mark.parametrize("row", [0, 30])
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_what_is_no_number_is_found(self, row, value):
        X = table()
        X[row, 1] = value
        with pytest.raises(ValueError, match=rf"^X contains NaN or infinity: 1 value.*row {row}, column 1"):
            check_coordinates(X, "X")

    def test_equal_rows_are_refused(self):
        with pytest.raises(ValueError, match=r"^y is constant: all 40 rows"):
            check_coordinates(np.ones((40, 3)), "y")

    def test_a_column_that_says_nothing_is_warned_about(self):
        X = table()
        X[:, 2] = 5.0
        with pytest.warns(ParameterWarning, match="column"):
            check_coordinates(X, "X")

    @pytest.mark.parametrize(("scale", "limit"), [(1e-90, "zero"), (1e90, "infinity")])
    def test_numbers_whose_powers_are_none_are_refused(self, scale, limit):
        with pytest.raises(ValueError, match=f"^The largest value of X is .* told from {limit}"):
            check_coordinates(scale * table(), "X")

    def test_numbers_whose_sum_overflows_are_refused(self):
        with pytest.raises(ValueError, match="whose sum overflows"):
            check_coordinates(1e307 * table(), "X")


@pytest.mark.parametrize(("value", "limit"), [(1e-76, "zero"), (1e76, "infinity")])
def test_a_length_whose_powers_are_none_is_refused(value, limit):
    check_magnitude(1.0, "noise_bound")
    with pytest.raises(ValueError, match=f"^noise_bound is .* told from {limit}. Divide X and y, and it, by"):
        check_magnitude(value, "noise_bound")


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
    with pytest.warns(UserWarning, match=r"holds? a single value"):
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


@pytest.mark.parametrize("n_odd", [1, 3])
def test_weak_directions_in_which_a_handful_of_rows_vary_are_cut(n_odd):
    """A column is the sum of others, but for a typing error: whitened, nothing else of that row would count."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    X = np.column_stack([X, X.sum(axis=1)])
    X[:n_odd, 5] += 0.3
    summary = summarise_columns(X)
    assert model_rows(summary, X, whiten=True, most_directions=30).n_columns == 5
    noisy = X + 0.01 * rng.normal(size=X.shape)  # in which all rows vary
    assert model_rows(summarise_columns(noisy), noisy, whiten=True, most_directions=30).n_columns == 6
