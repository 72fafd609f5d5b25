from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.calibration.linear_map import LinearMap, _Noise, _WeightedFit, learn_map
from inlier.calibration.significance import Significance
from inlier.datasets import make_gaussian_pairs
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
