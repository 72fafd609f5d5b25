from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from inlier.calibration.inner_products import MOST_ROWS, Witnesses, _Circle, _testimony, find_witnesses
from inlier.calibration.significance import Standing
from inlier.calibration.views import View
from inlier.rows.namespaces import to_host
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


def some_witnesses(k=4, d=5, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, k, d))
    view = View(rng.standard_normal((d, d)), None)
    return Witnesses(view, x, y, rng.uniform(0.2, 1, k), 0.8, 3.0, Standing(np.ones(1), 0.0, 1.0, 0.0))


def log_student(g, h, correlation):
    """Log density of two variables of Student's t with two degrees of freedom, up to what does not depend on them."""
    together = np.array([[1, correlation], [correlation, 1]])
    quadratic = np.array([g, h]) @ np.linalg.inv(together) @ np.array([g, h])
    return -0.5 * np.log(np.linalg.det(together)) - (2 + 2) / 2 * np.log(1 + quadratic / 2)


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(0.05, 0.9999))
def test_testimony_is_a_log_likelihood_ratio(g, h, correlation):
    expected = log_student(g, h, correlation) - log_student(g, h, 0.0)
    np.testing.assert_allclose(_testimony(np.array([g]), np.array([h]), correlation), [expected], atol=1e-7)


def test_a_score_is_the_weighted_sum_of_testimonies():
    witnesses, rng = some_witnesses(), np.random.default_rng(1)
    x, y = rng.standard_normal((2, 3, 5))
    for i, score in enumerate(witnesses.scores(x, y)):
        seen = x[i] @ witnesses.view.of_x
        total = 0.0
        for k, weight in enumerate(witnesses.weights):
            g = seen @ witnesses.x[k] / np.linalg.norm(seen)
            h = y[i] @ witnesses.y[k] / np.linalg.norm(y[i])
            total += weight * _testimony(np.array([g]), np.array([h]), 0.8)[0]
        assert score == pytest.approx(total)


def test_all_pairings_at_once_are_the_pairings_one_by_one():
    witnesses, rng = some_witnesses(), np.random.default_rng(1)
    x, y = rng.standard_normal((6, 5)), rng.standard_normal((4, 5))
    expected = [[witnesses.scores(x[[i]], y[[j]])[0] for j in range(4)] for i in range(6)]
    np.testing.assert_allclose(witnesses.scores_of_all_pairings(x, y), expected)


def test_rows_on_a_device_are_scored_there():
    witnesses, rng = some_witnesses(), np.random.default_rng(1)
    x, y = rng.standard_normal((2, 6, 5))
    put = lambda values: array_api_strict.asarray(values, device=STRICT_DEVICE)  # noqa: E731
    there = witnesses.scores(put(x), put(y))
    assert there.device == STRICT_DEVICE
    np.testing.assert_allclose(to_host(there), witnesses.scores(x, y))
    there = witnesses.scores_of_all_pairings(put(x), put(y))
    np.testing.assert_allclose(to_host(there), witnesses.scores_of_all_pairings(x, y))


def test_a_row_of_zeros_is_no_error():
    witnesses = some_witnesses()
    assert np.isfinite(witnesses.scores(np.zeros((1, 5)), np.zeros((1, 5)))).all()


@pytest.mark.parametrize("seed", range(3))
def test_few_real_pairs_in_many_dimensions_are_found(seed):
    x, y, real = rotated_pairs(500, 300, 25, noise=0.1, seed=seed)
    found = find_witnesses(x, y, [View()], np.random.RandomState(0), own_points(500))
    assert found.support == pytest.approx(25, abs=2)
    assert found.correlation > 0.9
    assert found.standing.p_values[real].max() < found.standing.p_values[~real].min()


def test_the_view_in_which_pairs_agree_wins():
    scale = np.append(np.ones(10), np.full(90, 0.02))
    x, y, _ = rotated_pairs(600, 100, 60, noise=0.3, scale=scale)
    strong = View(np.linalg.svd(x)[2][:10].T, np.linalg.svd(y)[2][:10].T)
    white = View(*(np.linalg.svd(rows)[2].T / np.linalg.svd(rows)[1] for rows in (x, y)))
    rng = np.random.RandomState(0)
    best = find_witnesses(x, y, [white, strong], rng, own_points(600))
    assert best.view is strong
    blurred = find_witnesses(x, y, [white], rng, own_points(600))
    assert blurred is None or blurred.standing.surprise < best.standing.surprise / 2


def test_nobody_vouches_for_himself():
    """Among wrong pairs, witnesses score no higher than others: their own agreement with themselves does not count."""
    x, y, _ = rotated_pairs(400, 30, 0)
    circle = _Circle.of(View(), x, y, own_points(400), np.random.RandomState(0))
    weights = np.zeros(400)
    weights[:40] = 1.0
    p = circle._standing(weights).p_values
    assert 0.4 < p[:40].mean() < 0.6
    assert 0.4 < p[40:].mean() < 0.6


def test_among_wrong_pairs_there_are_hardly_any_witnesses():
    for seed in range(5):
        x, y, _ = rotated_pairs(300, 50, 0, seed=seed)
        found = find_witnesses(x, y, [View()], np.random.RandomState(seed), own_points(300))
        assert found is None or found.standing.surprise < 40


def test_of_many_pairs_the_first_are_compared():
    x, y, real = rotated_pairs(MOST_ROWS + 500, 60, 150)
    found = find_witnesses(x, y, [View()], np.random.RandomState(0), own_points(MOST_ROWS + 500))
    assert found.standing.p_values.size == MOST_ROWS
    assert found.support == pytest.approx(np.count_nonzero(real[:MOST_ROWS]), abs=3)
