from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.calibration.models.linear_map import LinearMap, _Noise, _WeightedFit, learn_map
from inlier.calibration.models.pair_map import fit_pair_map
from inlier.calibration.models.significance import Significance
from inlier.datasets import make_gaussian_pairs
from inlier.estimators._base import linear_rows
from inlier.rows.backend import to_host
from tests.stores import STRICT_DEVICE

UNUSED = Significance(np.ones(1), 0.0, 1.0, 0.0)  # for maps of which it does not matter how they were learned


def slow_fit(x, y, weights, ridge):
    """Ridge regression by the normal equations, on what is left."""
    return np.linalg.solve(x.T @ (weights[:, None] * x) + ridge * np.eye(x.shape[1]), x.T @ (weights[:, None] * y))


@given(st.integers(0, 2**32 - 1), st.integers(4, 25), st.integers(1, 6), st.integers(1, 4))
def test_predictions_without_one_or_two_pairs_are_those_of_fits_without_them(seed, n, d_x, d_y):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, d_x)), rng.standard_normal((n, d_y))
    weights = rng.uniform(size=n) * (rng.uniform(size=n) < 0.7)
    weights[0] = 1.0  # some weight there must be
    fit = _WeightedFit(x, y, weights, ridge=0.5)
    np.testing.assert_allclose(fit.coefficients, slow_fit(x, y, weights, 0.5), atol=1e-9)
    own = fit.without_own_pair()
    for k in range(n):
        rest = np.delete(np.arange(n), k)
        np.testing.assert_allclose(own[k], x[k] @ slow_fit(x[rest], y[rest], weights[rest], 0.5), atol=1e-7)
    order = rng.permutation(n)
    other = np.roll(order, 1)
    variance = np.full(d_y, 0.5)
    expected, touched = np.empty((n, d_y)), (weights[order] > 0) | (weights[other] > 0)
    for k, (i, j) in enumerate(zip(order, other, strict=True)):
        rest = np.delete(np.arange(n), [i, j])
        expected[k] = x[i] @ slow_fit(x[rest], y[rest], weights[rest], 0.5)
    scores = np.concatenate(list(fit.re_paired_scores(order, other, _Noise(variance, x))))
    in_order = np.argsort(~touched, kind="stable")  # those with a weight come first
    np.testing.assert_allclose(
        scores, _Noise(variance, y).log_likelihood_ratio(y[other], expected)[in_order], atol=1e-6
    )


def test_noise_variance_is_that_of_deleted_residuals():
    rng = np.random.default_rng(0)
    x, y, weights = rng.standard_normal((30, 3)), 0.1 * rng.standard_normal((30, 2)), rng.uniform(size=30)
    fit = _WeightedFit(x, y, weights, ridge=1.0)
    plain = np.average((y - fit.without_own_pair()) ** 2, axis=0, weights=weights)
    expected = (weights.sum() * plain + 10 * plain.mean()) / (weights.sum() + 10)
    np.testing.assert_allclose(fit.residual_variance(), expected)


def test_score_is_the_log_likelihood_ratio():
    rng = np.random.default_rng(0)
    y, predicted, variance = rng.standard_normal((5, 3)), rng.standard_normal((5, 3)), np.array([0.1, 0.5, 1.0])

    def log_density(values, mean, var):
        return (-((values - mean) ** 2) / (2 * var) - np.log(2 * np.pi * var) / 2).sum(axis=1)

    expected = log_density(y, predicted, variance) - log_density(y, 0, np.ones(3))
    np.testing.assert_allclose(_Noise(variance, y).log_likelihood_ratio(y, predicted), expected)


def test_all_pairings_at_once_are_the_pairings_one_by_one():
    rng = np.random.default_rng(0)
    learned = LinearMap(rng.standard_normal((4, 3)), rng.standard_normal(3), np.array([0.2, 0.6, 0.9]), 0.0, UNUSED)
    x, y = rng.standard_normal((6, 4)), rng.standard_normal((5, 3))
    expected = [[learned.scores(x[[i]], y[[j]])[0] for j in range(5)] for i in range(6)]
    np.testing.assert_allclose(learned.scores_of_all_pairings(x, y), expected)


@pytest.mark.parametrize(("n", "d", "fraction"), [(2000, 50, 0.05), (1600, 300, 0.05), (1000, 3, 0.2), (500, 6, 0.5)])
def test_the_map_is_learned_among_many_wrong_pairs(n, d, fraction):
    data = make_gaussian_pairs(n, d, fraction, noise=0.1, rng=0)
    learned = learn_map(data.X, data.Y / np.sqrt(1.01), np.random.RandomState(0))
    assert learned is not None
    fresh = np.random.default_rng(1).standard_normal((500, d))
    truth = fresh @ data.rotation.T
    cosine = np.einsum("ij,ij->i", fresh @ learned.coefficients, truth) / (
        np.linalg.norm(fresh @ learned.coefficients, axis=1) * np.linalg.norm(truth, axis=1)
    )
    # With fewer real pairs than dimensions only their span is known: cos^2 is the share of it.
    assert cosine.mean() > 0.9 * min(1.0, np.sqrt(n * fraction / d))


def test_few_real_pairs_need_not_have_their_mean_where_all_have_theirs():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 1000, 3))
    shift = np.array([0.5, -0.3, 0.0])
    y[:150] = x[:150] @ np.diag([0.8, -0.8, 0.9]) + shift + 0.05 * rng.standard_normal((150, 3))
    learned = learn_map(x - x.mean(axis=0), y - y.mean(axis=0), np.random.RandomState(0))
    assert learned is not None
    expected = shift - y.mean(axis=0) + x.mean(axis=0) @ np.diag([0.8, -0.8, 0.9])
    np.testing.assert_allclose(learned.offset, expected, atol=0.02)
    np.testing.assert_allclose(learned.coefficients, np.diag([0.8, -0.8, 0.9]), atol=0.02)


def in_torch(table):
    return pytest.importorskip("torch", reason="torch is the user's to bring, and is not here").from_numpy(table)


def on_strict_device(table):
    return array_api_strict.asarray(table, device=STRICT_DEVICE)


@pytest.mark.parametrize("put", [in_torch, on_strict_device])
@pytest.mark.parametrize(("n", "d", "fraction", "noise"), [(600, 5, 0.4, 0.2), (300, 60, 0.5, 0.0), (50, 30, 0.9, 0.1)])
def test_the_map_is_the_same_wherever_it_is_learned(put, n, d, fraction, noise):
    data = make_gaussian_pairs(n, d, fraction, noise=noise, rng=0)
    points = np.stack([np.arange(n) // 2, np.arange(n)])  # some points of x are one
    here = learn_map(data.X, data.Y, np.random.RandomState(0), points)
    there = learn_map(put(data.X), put(data.Y), np.random.RandomState(0), points)
    assert here is not None
    assert there is not None
    assert type(there.coefficients) is type(put(data.X))
    np.testing.assert_allclose(to_host(there.coefficients), here.coefficients, atol=1e-9)
    np.testing.assert_allclose(to_host(there.offset), here.offset, atol=1e-9)
    np.testing.assert_allclose(there.variance, here.variance, rtol=1e-9)
    x, y = data.X[:20], data.Y[:15]
    np.testing.assert_allclose(to_host(there.scores(put(x[:15]), put(y))), here.scores(x[:15], y), rtol=1e-8)
    of_all = there.scores_of_all_pairings(put(x), put(y))
    np.testing.assert_allclose(to_host(of_all), here.scores_of_all_pairings(x, y), rtol=1e-8)


def test_nothing_is_learned_from_nothing():
    results = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        results.append(
            learn_map(rng.standard_normal((400, 3)), rng.standard_normal((400, 3)), np.random.RandomState(0))
        )
    assert sum(result is None for result in results) >= 5


def slow_berk_jones(p):
    """Berk and Jones, one by one."""
    n, most = len(p), 0.0
    for k, p_k in enumerate(sorted(p), start=1):
        share = k / n
        if p_k < share and p_k <= 0.5:
            rest = (1 - share) * np.log((1 - share) / (1 - p_k)) if k < n else 0.0
            most = max(most, n * (share * np.log(share / p_k) + rest))
    return most


@given(st.integers(0, 2**32 - 1))
def test_berk_jones_agrees_with_a_loop_where_no_score_is_beyond_the_tail(seed):
    rng = np.random.default_rng(seed)
    null = np.sort(rng.standard_normal(500))
    scores = np.minimum(rng.standard_normal(60) + 1, null[490])
    significance = Significance.of(scores, null)
    expected = [(1 + (null >= score).sum()) / 501 for score in scores]
    np.testing.assert_allclose(significance.p_values, expected)
    assert significance.berk_jones == pytest.approx(slow_berk_jones(expected))


def test_berk_jones_grows_with_the_distance_from_all_re_pairings():
    rng = np.random.default_rng(0)
    wrong, null = rng.standard_normal(380), rng.standard_normal(1600)
    statistics = [
        Significance.of(np.append(wrong, rng.normal(far, 0.1, 20)), null).berk_jones for far in (0, 4, 8, 16, 1e6)
    ]
    assert statistics[0] < 10
    assert (np.diff(statistics) > 20).all()
    assert np.isfinite(statistics).all()


def test_weights_are_large_where_p_values_are_denser_than_chance():
    rng = np.random.default_rng(0)
    scores = np.append(rng.standard_normal(900), rng.normal(8, 1, 100))
    weights = Significance.of(scores, rng.standard_normal(4000)).weights(2.0)
    assert weights[900:].min() > 0.8
    assert weights[:900].sum() < 15


def test_the_spread_is_that_of_the_upper_tail():
    null = np.arange(1001.0)
    significance = Significance.of(np.array([0.0]), null)
    assert (significance.centre, significance.spread) == (500, 490)


def test_without_re_pairings_nothing_stands_out():
    significance = Significance.of(np.arange(5.0), np.empty(0))
    assert (significance.p_values == 1).all()
    assert significance.berk_jones == 0


def test_scores_on_a_device_are_judged_as_here():
    rng = np.random.default_rng(0)
    scores, null = rng.standard_normal(50) + 1, rng.standard_normal(300)
    put = lambda values: array_api_strict.asarray(values, device=STRICT_DEVICE)  # noqa: E731
    here, there = Significance.of(scores, null), Significance.of(put(scores), put(null))
    np.testing.assert_array_equal(here.p_values, there.p_values)
    assert (here.centre, here.spread, here.berk_jones) == (there.centre, there.spread, there.berk_jones)


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
