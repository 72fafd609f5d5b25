from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import eigsh

from inlier import GramOverlap
from inlier.datasets import make_gaussian_pairs
from inlier.estimators._base import prepare_pairs
from inlier.overlap.gram import (
    MomentSide,
    choose_eigen_solver,
    choose_row_sum_solver,
    eigenpair_by_moments,
    eigenpair_by_operator,
    eigenpair_of_dense,
)
from inlier.rows import PairedRows
from tests import reference
from tests.strategies import paired_tables

SOLVERS = ("moments", "operator", "dense")
ROW_SUM_SOLVERS = ("auto", *SOLVERS)


def assert_close(value, expected, H, tolerance):
    """Relative to the largest row sum of |H|: what rounding of the terms can amount to."""
    scale = np.abs(H).sum(axis=1).max()
    np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance * scale)


@given(paired_tables(), st.integers(1, 50))
def test_every_product_agrees_with_the_reference(tables, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inlier.rows.threads.rows_per_block", lambda width: block)
        overlap, H = GramOverlap(*tables), reference.overlap(*tables)
        V = np.random.default_rng(0).standard_normal((len(H), 3))
        assert overlap.shape == H.shape
        assert_close(overlap.to_dense(), H, H, 1e-10)
        for solver in ROW_SUM_SOLVERS:
            assert_close(overlap.row_sums(solver), H.sum(axis=1), H, 1e-10)
            assert_close(overlap.leave_one_out_row_sums(solver), H.sum(axis=1) - np.diag(H), H, 1e-10)
        assert_close(overlap.diagonal(), np.diag(H), H, 1e-10)
        assert overlap.trace() == pytest.approx(np.trace(H), rel=1e-10)
        assert_close(overlap.matvec(V[:, 0]), H @ V[:, 0], 4 * H, 1e-10)
        assert_close(overlap.matmat(V), H @ V, 4 * H, 1e-10)
        assert_close(overlap.as_linear_operator() @ V, H @ V, 4 * H, 1e-10)


@given(paired_tables())
def test_float32_agrees_to_five_digits(tables):
    X, Y = (table.astype(np.float32) for table in tables)
    H = reference.overlap(X, Y)
    overlap = GramOverlap(X, Y)
    assert_close(overlap.row_sums(), H.sum(axis=1), H, 1e-5)
    assert_close(overlap.to_dense(), H, H, 1e-5)
    for solver in SOLVERS:
        assert overlap.leading_eigenvector(solver).value == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32])
def test_other_types_give_the_answer_of_float64(dtype):
    rng = np.random.default_rng(0)
    X, Y = (rng.integers(0, 100, size=(30, d)).astype(dtype) for d in (3, 4))
    H = reference.overlap(X, Y)
    assert_close(GramOverlap(X, Y).row_sums(), H.sum(axis=1), H, 1e-5)


@given(paired_tables(max_rows=60))
def test_leading_eigenpair_by_every_solver(tables):
    H = reference.overlap(*tables)
    values = np.linalg.eigvalsh(H)
    for solver in ("auto", *SOLVERS):
        value, v = GramOverlap(*tables).leading_eigenvector(solver)
        assert value == pytest.approx(values[-1], rel=1e-10)
        assert np.linalg.norm(v) == pytest.approx(1)
        # H v = lambda v holds whether or not the eigenvalue is simple.
        assert np.linalg.norm(H @ v - value * v) <= 1e-7 * value
        if values[-1] - values[-2] > 1e-3 * values[-1]:
            expected = reference.leading_eigenvector(H)[1]
            assert abs(v @ expected) == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize(("n", "d"), [(500, 3), (300, 12), (60, 20)])
@pytest.mark.parametrize("solver", SOLVERS)
def test_eigenvector_of_prepared_pairs_across_blocks(n, d, solver, small_blocks):
    data = make_gaussian_pairs(n, d, 0.7, rng=1)
    H = reference.overlap(reference.prepared(data.X), reference.prepared(data.Y))
    expected = reference.leading_eigenvector(H)
    small_blocks(77)
    found = GramOverlap.from_pairs(prepare_pairs(data.X, data.Y)).leading_eigenvector(solver)
    assert found.value == pytest.approx(expected[0], rel=1e-10)
    np.testing.assert_allclose(found.vector, expected[1], atol=1e-9)


def test_lanczos_finds_a_leading_vector_that_the_start_does_not_see():
    # The row sums of this H are exactly zero in the block that carries its largest eigenvalue.
    rng = np.random.default_rng(0)
    signs = np.repeat([1.0, -1.0], 100)
    X = np.zeros((400, 40))
    Y = np.zeros((400, 40))
    X[:200, 0], Y[:200, 0] = 10 * signs, 10.0
    X[200:, 1:] = rng.standard_normal((200, 39)) * 0.01
    Y[200:, 1:] = rng.standard_normal((200, 39)) * 0.01
    H = reference.overlap(X, Y)
    for solver in ("operator", "dense"):
        assert GramOverlap(X, Y).leading_eigenvector(solver).value == pytest.approx(np.linalg.eigvalsh(H)[-1])


def test_sign_follows_the_longer_tail_when_the_sum_says_nothing():
    X = np.array([[3.0], [-2.0], [-1.0]])
    v = GramOverlap(X, np.ones(3)).leading_eigenvector().vector
    assert v.sum() == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(v, X[:, 0] / np.linalg.norm(X))


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
@pytest.mark.parametrize("n", [4, 60])
def test_zero_matrix_has_a_unit_eigenvector(solver, n):
    X, Y = np.zeros((n, 10)), np.zeros((n, 10))
    X[: n // 2], Y[n // 2 :] = 1.0, 1.0
    value, v = GramOverlap(X, Y).leading_eigenvector(solver)
    assert value == pytest.approx(0, abs=1e-12)
    assert np.linalg.norm(v) == pytest.approx(1)


@pytest.mark.parametrize("n", [1000, 5000])
def test_large_float32_values_do_not_overflow(n):
    X = (np.random.default_rng(0).standard_normal((n, 3)) * 1e10).astype(np.float32)
    sums = GramOverlap(X, X).row_sums()
    np.testing.assert_allclose(sums, GramOverlap(X.astype(np.float64), X.astype(np.float64)).row_sums(), rtol=1e-5)


def test_values_whose_products_overflow_are_refused():
    X = np.random.default_rng(0).standard_normal((10, 3))
    with pytest.raises(ValueError, match=r"products of four of them overflow. Divide each set"):
        GramOverlap(X * 1e80, X * 1e80)


def test_dense_row_sums_form_a_few_rows_at_a_time():
    X = np.random.default_rng(0).standard_normal((3000, 2))
    tracemalloc.start()
    sums = GramOverlap(X, X).row_sums("dense")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * 3000**2
    np.testing.assert_allclose(sums, GramOverlap(X, X).row_sums("operator"))


@given(paired_tables(kinds=("gaussian",)), st.integers(0, 2**32 - 1))
def test_rotation_permutation_and_scale(tables, seed):
    X, Y = tables
    rng = np.random.default_rng(seed)
    S = GramOverlap(X, Y).row_sums()
    rotation, _ = np.linalg.qr(rng.standard_normal((X.shape[1], X.shape[1])))
    order = rng.permutation(len(X))
    tolerance = 1e-10 * np.abs(reference.overlap(X, Y)).sum(axis=1).max()
    np.testing.assert_allclose(GramOverlap(X @ rotation, Y).row_sums(), S, atol=tolerance)
    np.testing.assert_allclose(GramOverlap(X[order], Y[order]).row_sums(), S[order], atol=tolerance)
    np.testing.assert_allclose(GramOverlap(2 * X, -3 * Y).row_sums(), 36 * S, atol=36 * tolerance)


def test_sum_of_row_sums_is_the_squared_norm_of_the_cross_moment():
    data = make_gaussian_pairs(200, 4, 0.5, rng=0)
    assert GramOverlap(data.X, data.Y).row_sums().sum() == pytest.approx(np.linalg.norm(data.X.T @ data.Y) ** 2)


def test_linear_operator_serves_scipy():
    data = make_gaussian_pairs(300, 5, 0.6, rng=0)
    overlap = GramOverlap(data.X, data.Y)
    value = eigsh(overlap.as_linear_operator(), k=1, which="LA", return_eigenvectors=False)[0]
    assert value == pytest.approx(overlap.leading_eigenvector().value)


def test_expectations_of_the_paper_without_normalisation():
    """Section 3: the spectrum of E[H]; section 4: E[S_i]. Averages over seeded draws of Assumption 1."""
    n, d, r, draws = 60, 8, 0.5, 3000
    G = slice(0, int(r * n))
    mean_H = np.zeros((n, n))
    for seed in range(draws):
        data = make_gaussian_pairs(n, d, r, rng=seed)
        order = np.argsort(~data.inlier_mask, kind="stable")  # inliers first
        mean_H += GramOverlap(data.X[order], data.Y[order]).to_dense() / draws
    row_sums = mean_H.sum(axis=1)
    assert row_sums[G].mean() == pytest.approx(d**2 + d * (r * n + 1), rel=0.01)
    assert row_sums[G.stop :].mean() == pytest.approx(d**2, rel=0.04)
    # E[H] is d 1 1^T + (d^2 + d) I on G and d^2 I on B: eigenvalues d^2 + d(|G| + 1), then d^2 + d, then d^2.
    inlier_block, outlier_block = mean_H[G, G], mean_H[G.stop :, G.stop :]
    values = np.linalg.eigvalsh(mean_H)
    assert values[-1] == pytest.approx(d**2 + d * (r * n + 1), rel=0.02)
    off_diagonal = ~np.eye(len(inlier_block), dtype=bool)
    assert np.diag(inlier_block).mean() == pytest.approx(d**2 + 2 * d, rel=0.01)
    assert inlier_block[off_diagonal].mean() == pytest.approx(d, rel=0.02)
    assert np.diag(outlier_block).mean() == pytest.approx(d**2, rel=0.01)
    assert outlier_block[off_diagonal].mean() == pytest.approx(0, abs=0.1)
    assert mean_H[G, G.stop :].mean() == pytest.approx(0, abs=0.1)


class TestBudget:
    def test_dense_request_over_the_budget_names_the_numbers_and_the_alternative(self):
        X = np.random.default_rng(0).standard_normal((1000, 2))
        overlap = GramOverlap(X, X, memory_budget=10**6)
        for request in (overlap.to_dense, lambda: overlap.leading_eigenvector("dense")):
            with pytest.raises(MemoryError, match=r"n = 1,000.*8,000,000 bytes.*solver='operator'"):
                request()

    def test_moments_request_over_the_budget(self):
        X = np.random.default_rng(0).standard_normal((50, 40))
        with pytest.raises(MemoryError, match=r"20,480,000 bytes.*solver='operator'"):
            GramOverlap(X, X, memory_budget=10**6).leading_eigenvector("moments")

    def test_dense_row_sums_need_no_budget(self):
        X = np.random.default_rng(0).standard_normal((50, 4))
        overlap = GramOverlap(X, X, memory_budget=1)
        np.testing.assert_allclose(overlap.row_sums("dense"), overlap.row_sums("operator"))


class TestPlan:
    @pytest.mark.parametrize(
        ("n", "d_x", "d_y", "expected"),
        [
            (10_000, 6, 6, "moments"),
            (10_000_000, 3, 3, "moments"),
            (100_000, 10, 10, "moments"),
            (100_000, 30, 30, "operator"),
            (1_000_000, 300, 300, "operator"),
            (300, 100, 100, "dense"),
            (500, 1000, 1000, "dense"),
        ],
    )
    def test_the_cases_people_have(self, n, d_x, d_y, expected):
        assert choose_eigen_solver(n, d_x, d_y) == expected

    def test_one_border_between_moments_and_operator(self):
        chosen = [choose_eigen_solver(10**6, d, d) for d in range(1, 60)]
        border = chosen.index("operator")
        assert set(chosen[:border]) == {"moments"}
        assert set(chosen[border:]) == {"operator"}

    def test_one_border_between_dense_and_the_rest(self):
        chosen = [choose_eigen_solver(n, 200, 200) == "dense" for n in range(2, 16_000, 50)]
        border = chosen.index(False)
        assert all(chosen[:border])
        assert not any(chosen[border:])

    def test_dense_is_not_considered_over_the_budget(self):
        n = 300
        assert choose_eigen_solver(n, 100, 100, memory_budget=8 * n**2) == "dense"
        assert choose_eigen_solver(n, 100, 100, memory_budget=8 * n**2 - 1) == "operator"

    def test_row_sums_are_dense_only_when_the_dimension_is_over_the_number_of_pairs(self):
        assert choose_row_sum_solver(500, 2000, 2000) == "dense"
        assert choose_row_sum_solver(2000, 500, 500) == "operator"
        chosen = [choose_row_sum_solver(n, 1000, 1000) for n in range(2, 3000)]
        border = chosen.index("operator")
        assert set(chosen[border:]) == {"operator"}


class TestBadInput:
    def test_unknown_solver(self):
        with pytest.raises(ValueError, match="'auto', 'moments', 'operator', 'dense'; got 'fast'"):
            GramOverlap(np.eye(3), np.eye(3)).row_sums("fast")

    def test_vector_of_the_wrong_length(self):
        overlap = GramOverlap(np.eye(3), np.eye(3))
        with pytest.raises(ValueError, match=r"shape \(3, 3\).*shape \(4,\)"):
            overlap.matvec(np.ones(4))
        with pytest.raises(ValueError, match=r"shape \(3, 3\).*shape \(4, 2\)"):
            overlap.matmat(np.ones((4, 2)))

    def test_nan_is_found(self):
        X = np.ones((3, 2))
        X[1, 1] = np.nan
        with pytest.raises(ValueError, match=r"X contains NaN.*row 1, column 1"):
            GramOverlap(X, np.ones((3, 2)))


def test_repr():
    assert repr(GramOverlap(np.eye(3), np.ones((3, 2)))) == "GramOverlap(n=3, d_x=3, d_y=2)"


def pairs_and_overlap(n, d_x, d_y):
    """Some pairs of unit rows, half of them alike, and H_ij = <x_i, x_j> <y_i, y_j>."""
    rng = np.random.default_rng(n)
    X, Y = rng.normal(size=(n, d_x)), rng.normal(size=(n, d_y))
    Y[::2, : min(d_x, d_y)] = X[::2, : min(d_x, d_y)]
    X, Y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (X, Y))
    return PairedRows(X, Y), (X @ X.T) * (Y @ Y.T)


@pytest.mark.parametrize("route", [eigenpair_by_moments, eigenpair_by_operator])
@pytest.mark.parametrize(("n", "d_x", "d_y"), [(200, 3, 3), (500, 7, 6), (60, 9, 9), (20, 6, 5)])
def test_each_route_gives_the_leading_eigenpair_of_the_whole_matrix(route, n, d_x, d_y):
    pairs, H = pairs_and_overlap(n, d_x, d_y)
    values, vectors = np.linalg.eigh(H)
    expected = vectors[:, -1] * np.sign(vectors[:, -1].sum())
    found = route(pairs)
    found = found.eigenpair(pairs) if isinstance(found, MomentSide) else found
    dense = eigenpair_of_dense(H)
    for value, vector in (found, dense):
        assert value == pytest.approx(values[-1], rel=1e-8)
        np.testing.assert_allclose(vector, expected, atol=1e-6)
