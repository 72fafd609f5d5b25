from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from inlier.calibration.models.anchors import (
    MOST_ROWS,
    AnchorPairs,
    Coordinates,
    _InnerProducts,
    _log_likelihood_ratio,
    candidate_coordinates,
    find_anchors,
    original_coordinates,
)
from inlier.calibration.models.significance import Significance
from inlier.estimators._base import prepare_model_pairs
from inlier.rows.backend import to_host
from tests.stores import STRICT_DEVICE


def rotated_pairs(n, d, n_real, noise=0.05, seed=0, scale=None):
    rng = np.random.default_rng(seed)
    scale = np.ones(d) if scale is None else scale
    x, y = rng.standard_normal((2, n, d)) * scale
    y[:n_real] = x[:n_real]
    y = (y + noise * np.mean(scale**2) ** 0.5 * rng.standard_normal((n, d))) @ ortho_group.rvs(d, random_state=rng).T
    order = rng.permutation(n)
    return x[order], y[order], order < n_real


def own_points(n):
    return np.stack([np.arange(n)] * 2)


def some_anchors(k=4, d=5, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, k, d))
    coordinates = Coordinates(rng.standard_normal((d, d)), None)
    return AnchorPairs(coordinates, x, y, rng.uniform(0.2, 1, k), 0.8, 3.0, Significance(np.ones(1), 0.0, 1.0, 0.0))


def log_student(g, h, correlation):
    """Log density of two variables of Student's t with two degrees of freedom, up to what does not depend on them."""
    together = np.array([[1, correlation], [correlation, 1]])
    quadratic = np.array([g, h]) @ np.linalg.inv(together) @ np.array([g, h])
    return -0.5 * np.log(np.linalg.det(together)) - (2 + 2) / 2 * np.log(1 + quadratic / 2)


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(0.05, 0.9999))
def test_inner_products_with_an_anchor_are_worth_their_log_likelihood_ratio(g, h, correlation):
    expected = log_student(g, h, correlation) - log_student(g, h, 0.0)
    np.testing.assert_allclose(_log_likelihood_ratio(np.array([g]), np.array([h]), correlation), [expected], atol=1e-7)


def test_a_score_is_the_weighted_sum_over_the_anchors():
    anchors, rng = some_anchors(), np.random.default_rng(1)
    x, y = rng.standard_normal((2, 3, 5))
    for i, score in enumerate(anchors.scores(x, y)):
        seen = x[i] @ anchors.coordinates.of_x
        total = 0.0
        for k, weight in enumerate(anchors.weights):
            g = seen @ anchors.x[k] / np.linalg.norm(seen)
            h = y[i] @ anchors.y[k] / np.linalg.norm(y[i])
            total += weight * _log_likelihood_ratio(np.array([g]), np.array([h]), 0.8)[0]
        assert score == pytest.approx(total)


def test_all_pairings_at_once_are_the_pairings_one_by_one():
    anchors, rng = some_anchors(), np.random.default_rng(1)
    x, y = rng.standard_normal((6, 5)), rng.standard_normal((4, 5))
    expected = [[anchors.scores(x[[i]], y[[j]])[0] for j in range(4)] for i in range(6)]
    np.testing.assert_allclose(anchors.scores_of_all_pairings(x, y), expected)


def test_rows_on_a_device_are_scored_there():
    anchors, rng = some_anchors(), np.random.default_rng(1)
    x, y = rng.standard_normal((2, 6, 5))
    put = lambda values: array_api_strict.asarray(values, device=STRICT_DEVICE)  # noqa: E731
    there = anchors.scores(put(x), put(y))
    assert there.device == STRICT_DEVICE
    np.testing.assert_allclose(to_host(there), anchors.scores(x, y))
    there = anchors.scores_of_all_pairings(put(x), put(y))
    np.testing.assert_allclose(to_host(there), anchors.scores_of_all_pairings(x, y))


def test_a_row_of_zeros_is_no_error():
    anchors = some_anchors()
    assert np.isfinite(anchors.scores(np.zeros((1, 5)), np.zeros((1, 5)))).all()


@pytest.mark.parametrize("seed", range(3))
def test_few_real_pairs_in_many_dimensions_are_found(seed):
    x, y, real = rotated_pairs(500, 300, 25, noise=0.1, seed=seed)
    found = find_anchors(x, y, [Coordinates()], np.random.RandomState(0), own_points(500))
    p = found.significance.p_values
    assert found.support == pytest.approx(25, abs=7)  # by some draws a handful of wrong ones stays among the anchors
    assert found.correlation > 0.8
    assert (p[real] == p.min()).all()
    assert np.count_nonzero(p[~real] <= 0.001) <= 8


def test_the_coordinates_in_which_pairs_agree_win():
    scale = np.append(np.ones(10), np.full(90, 0.02))
    x, y, _ = rotated_pairs(600, 100, 60, noise=0.3, scale=scale)
    strong = Coordinates(np.linalg.svd(x)[2][:10].T, np.linalg.svd(y)[2][:10].T)
    white = Coordinates(*(np.linalg.svd(rows)[2].T / np.linalg.svd(rows)[1] for rows in (x, y)))
    rng = np.random.RandomState(0)
    best = find_anchors(x, y, [white, strong], rng, own_points(600))
    assert best.coordinates is strong
    blurred = find_anchors(x, y, [white], rng, own_points(600))
    assert blurred is None or blurred.significance.berk_jones < best.significance.berk_jones / 2


def test_a_pair_is_no_anchor_of_its_own():
    """Among wrong pairs, anchors score no higher than others: their own agreement with themselves does not count."""
    x, y, _ = rotated_pairs(400, 30, 0)
    products = _InnerProducts.of(Coordinates(), x, y, own_points(400), np.random.RandomState(0))
    weights = np.zeros(400)
    weights[:40] = 1.0
    p = products._significance(weights).p_values
    assert 0.4 < p[:40].mean() < 0.6
    assert 0.4 < p[40:].mean() < 0.6


def test_among_wrong_pairs_there_are_hardly_any_anchors():
    for seed in range(5):
        x, y, _ = rotated_pairs(300, 50, 0, seed=seed)
        found = find_anchors(x, y, [Coordinates()], np.random.RandomState(seed), own_points(300))
        assert found is None or found.significance.berk_jones < 40


def test_of_many_pairs_the_first_are_compared():
    x, y, real = rotated_pairs(MOST_ROWS + 500, 60, 150)
    found = find_anchors(x, y, [Coordinates()], np.random.RandomState(0), own_points(MOST_ROWS + 500))
    assert found.significance.p_values.size == MOST_ROWS
    assert found.support == pytest.approx(np.count_nonzero(real[:MOST_ROWS]), abs=3)


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
def test_original_coordinates_undo_the_whitening(whiten, units):
    X, Y, _, _, _ = prepared(200, 4, 6)
    pairs = prepare_model_pairs(X * units, Y, whiten=whiten)
    x, y = pairs.take(slice(0, 200))
    seen_x, seen_y = original_coordinates(pairs)(x, y)
    assert_same_in_other_units(seen_x, X - X.mean(axis=0))
    assert_same_in_other_units(seen_y, Y - Y.mean(axis=0))


def test_of_columns_that_depend_on_each_other_the_whole_comes_back():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    pairs = prepare_model_pairs(X, X, whiten=True)
    seen, _ = original_coordinates(pairs)(*pairs.take(slice(0, 100)))
    assert_same_in_other_units(seen, X - X.mean(axis=0))


def test_strong_directions_are_uncorrelated_and_the_strongest():
    X, _, pairs, x, y = prepared(500, 12, 9)
    *_, strongest = candidate_coordinates(pairs, x, y)
    seen_x, seen_y = strongest(x, y)
    assert seen_x.shape == seen_y.shape == (500, 8)
    for seen in (seen_x, seen_y):
        np.testing.assert_allclose(seen.T @ seen / 500, np.eye(8), atol=1e-8)
    centred = X - X.mean(axis=0)
    explained = np.linalg.lstsq(seen_x, centred, rcond=None)[0]
    rest = np.sum((centred - seen_x @ explained) ** 2)
    np.testing.assert_allclose(rest, np.sum(np.linalg.svd(centred, compute_uv=False)[8:] ** 2))


def test_narrow_rows_have_no_part_to_choose():
    assert len(candidate_coordinates(*prepared(100, 5, 5)[2:])) == 2
