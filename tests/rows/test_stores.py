"""One answer wherever the rows are stored, and in kind."""

from __future__ import annotations

import numpy as np
import pytest

from inlier import EigenvectorMatcher, GramOverlap, RowSumMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.rows import PairedRows, as_table, backend, summarise_columns, threads
from inlier.rows import files as in_files
from inlier.rows.backend import to_host
from inlier.rows.columns import scatter_matrix
from tests.stores import STORES, STRICT_DEVICE, in_dask, on_strict_device

pytestmark = pytest.mark.parametrize("put", STORES)


@pytest.fixture
def put_pairs(put, tmp_path, monkeypatch):
    """Store two tables, cut so that there are several stretches."""
    monkeypatch.setattr(in_files, "_STRETCH_BYTES", 8 * 6 * 100)
    monkeypatch.setattr(threads, "_ROWS_PER_RANGE", 50)
    return lambda X, Y: (put(X, tmp_path, "X"), put(Y, tmp_path, "Y"))


MATCHERS = [
    RowSumMatcher(),
    RowSumMatcher(threshold=100.0),
    RowSumMatcher(whiten=True),
    EigenvectorMatcher(),
    EigenvectorMatcher(solver="operator"),
]


@pytest.mark.parametrize(("matcher", "d"), [*((matcher, 3) for matcher in MATCHERS), *((m, 12) for m in MATCHERS[:2])])
def test_matchers_give_one_answer_in_kind(put_pairs, matcher, d):
    data = make_gaussian_pairs(501, d, 0.6, noise=0.1, rng=0)
    here = matcher.fit(data.X, data.Y)
    scores, mask, threshold = here.scores_, here.inlier_mask_, here.threshold_
    X, Y = put_pairs(data.X, data.Y)
    there = matcher.fit(X, Y)
    np.testing.assert_allclose(to_host(there.scores_), scores, atol=1e-10 * np.abs(scores).max())
    np.testing.assert_array_equal(to_host(there.inlier_mask_), mask)
    assert there.threshold_ == pytest.approx(threshold, rel=1e-10)
    assert there.n_features_in_ == d
    assert there.result_.n_inliers == mask.sum()


def test_results_are_of_the_same_kind(put, put_pairs):
    data = make_gaussian_pairs(300, 3, 0.6, rng=0)
    X, Y = put_pairs(data.X, data.Y)
    fitted = RowSumMatcher().fit(X, Y)
    for found in (fitted.scores_, fitted.inlier_mask_):
        if put in (in_dask, on_strict_device) or put.__name__ == "in_torch":
            assert type(found) is type(X)
        if put is on_strict_device:
            assert found.device == STRICT_DEVICE
        if put is in_dask:
            assert found.chunks[0] == X.chunks[0]
    assert "bool" in str(fitted.inlier_mask_.dtype)


def test_a_row_without_direction_is_an_outlier(put_pairs):
    half = np.random.default_rng(0).standard_normal((200, 3))
    X = np.vstack([half, -half, np.zeros((1, 3))])
    with pytest.warns(UserWarning, match="1 of 401 pairs have a row equal to the mean"):
        mask = to_host(RowSumMatcher(threshold=-1e9).fit(*put_pairs(X, X)).inlier_mask_)
    assert not mask[-1]
    assert mask[:-1].all()


def test_a_value_that_is_not_finite_is_named(put_pairs):
    X = np.random.default_rng(0).standard_normal((300, 3))
    X[123, 1] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN or infinity: 1 value\(s\), the first \(nan\) in row 123, co"):
        RowSumMatcher().fit(*put_pairs(X, np.ones((300, 1)) * np.arange(300)[:, None]))


def test_different_lengths_are_refused(put_pairs):
    X = np.random.default_rng(0).standard_normal((100, 3))
    with pytest.raises(ValueError, match="X has 100 rows and y has 90"):
        RowSumMatcher().fit(*put_pairs(X, X[:90]))


def test_sums_and_maps(put_pairs):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((301, 2)), rng.standard_normal((301, 4))
    w, U = rng.standard_normal(301), rng.standard_normal((2, 4))
    pairs = PairedRows(*put_pairs(X, Y))
    np.testing.assert_allclose(pairs.cross_moment(w), X.T @ (w[:, None] * Y), atol=1e-12)
    both = pairs.product_moments()
    np.testing.assert_allclose(both[0], backend.product_moment(X, Y), atol=1e-10)
    np.testing.assert_allclose(both[1], X.T @ Y, atol=1e-12)
    np.testing.assert_allclose(to_host(pairs.bilinear(U)), np.diag(X @ U @ Y.T), atol=1e-12)


def test_rows_can_be_taken_in_any_order(put_pairs):
    X = np.random.default_rng(0).standard_normal((301, 3))
    rows = np.array([300, 5, 5, 17, 0, 222])
    pairs = PairedRows(*put_pairs(X, X))
    np.testing.assert_array_equal(pairs.take(rows)[0], X[rows])
    np.testing.assert_array_equal(pairs.take(slice(10, 20))[1], X[10:20])


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16"])
def test_column_summary_and_scatter(put, tmp_path, dtype):
    X = (np.random.default_rng(0).standard_normal((301, 4)) * 20 + 100).astype(dtype)
    wide = X.astype(np.float64)
    table = as_table(put(X, tmp_path, "X"), "X", in_place=True)
    summary = summarise_columns(table)
    np.testing.assert_allclose(summary.mean, wide.mean(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(summary.minimum, wide.min(axis=0))
    np.testing.assert_array_equal(summary.maximum, wide.max(axis=0))
    scatter = scatter_matrix(table, summary, np.full(1, 2.0))
    np.testing.assert_allclose(scatter, np.cov(wide.T) * 300 / 4, rtol=1e-10)


@pytest.mark.parametrize("d", [3, 20])
def test_float32_rounds_scores_by_no_more_than_stated(put_pairs, d):
    """Scores from float32 rows agree with float64 arithmetic on the same rows to 2e-6 of the largest score."""
    data = make_gaussian_pairs(10_000, d, 0.6, noise=0.1, rng=0)
    X, Y = (table.astype(np.float32) + np.float32(30) for table in (data.X, data.Y))
    exact = RowSumMatcher().fit(X.astype(np.float64), Y.astype(np.float64)).scores_
    there = to_host(RowSumMatcher().fit(*put_pairs(X, Y)).scores_)
    assert np.abs(there - exact).max() <= 2e-6 * np.abs(exact).max()


def test_the_overlap_is_an_operator_there_too(put_pairs):
    rng = np.random.default_rng(0)
    X, Y, v = rng.standard_normal((120, 3)), rng.standard_normal((120, 2)), rng.standard_normal(120)
    here, there = GramOverlap(X, Y), GramOverlap(*put_pairs(X, Y))
    np.testing.assert_allclose(to_host(there.matvec(v)), here.matvec(v), atol=1e-9)
    np.testing.assert_allclose(there.to_dense(), here.to_dense(), atol=1e-12)
    assert there.trace() == pytest.approx(here.trace())


def test_more_dimensions_than_pairs(put_pairs):
    data = make_gaussian_pairs(60, 90, 0.7, rng=0)
    for matcher in (RowSumMatcher(), EigenvectorMatcher()):
        scores = matcher.fit(data.X, data.Y).scores_
        there = matcher.fit(*put_pairs(data.X, data.Y)).scores_
        np.testing.assert_allclose(to_host(there), scores, atol=1e-9 * np.abs(scores).max())


def test_y_may_be_one_column(put, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = X[:, 0] * 2
    here = RowSumMatcher().fit(X, y).scores_
    column = put(y[:, None], tmp_path, "Y")
    vector = column[:, 0] if hasattr(column, "reshape") or put is on_strict_device else column  # files hold tables
    there = RowSumMatcher().fit(put(X, tmp_path, "X"), vector).scores_
    np.testing.assert_allclose(to_host(there), here, atol=1e-9 * np.abs(here).max())
