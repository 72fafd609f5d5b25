from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import poisson

from inlier.consensus.hold_out import HoldOutTest, log_poisson_tail
from inlier.consensus.pairs import ColumnPairs
from inlier.transforms.least_squares import Maps


@pytest.mark.parametrize(("count", "expected"), [(3, 1.0), (10, 2.5), (40, 8.0)])
def test_the_tail_is_that_of_the_poisson_law(count, expected):
    assert log_poisson_tail(count, expected) == pytest.approx(poisson.logsf(count - 1, expected), rel=1e-9)


def test_the_tail_goes_on_where_its_logarithm_would_be_infinite():
    assert -1e6 < log_poisson_tail(5000.0, 1.0) < log_poisson_tail(500.0, 1.0) < -700
    assert log_poisson_tail(0.5, 1.0) == log_poisson_tail(0.0, 1.0) == 0.0


def clumped(rng, n_right, n_spots, n=1200):
    """Mistakes that join spots to spots, and some pairs that a shift relates."""
    spot = rng.integers(n_spots, size=n)
    X, Y = (3 * rng.random((n_spots, 3))[spot] + 0.05 * rng.normal(size=(n, 3)) for _ in range(2))
    X[:n_right] = 3 * rng.random((n_right, 3))
    Y[:n_right] = X[:n_right] + 0.5 + 0.01 * rng.normal(size=(n_right, 3))
    order = rng.permutation(n)
    return ColumnPairs(np.ascontiguousarray(X[order].T), np.ascontiguousarray(Y[order].T), np.ones(n))


SHIFT = Maps(np.eye(3)[None], np.full((1, 3), 0.5))


def found_by_shifts(pairs):
    """The shift that most pairs agree on: a search that is quick, and as greedy as any."""
    steps = (pairs.y - pairs.x).T
    near = (np.linalg.norm(steps[:, None] - steps[::5], axis=2) < 0.1).sum(axis=0)
    return Maps(np.eye(3)[None], steps[::5][np.argmax(near)][None])


def test_a_map_that_is_found_again_everywhere_is_sure():
    pairs = clumped(np.random.default_rng(0), 300, 40)
    test = HoldOutTest(pairs, 0.2, None, lambda some: SHIFT, np.random.default_rng(1))
    best = test.best(SHIFT)
    assert best is not None
    held_out = test.judge(*best)
    assert held_out.log_p_value < -50
    assert held_out.n_places > 100


def test_a_map_that_is_not_found_again_is_not():
    pairs = clumped(np.random.default_rng(0), 300, 40)
    test = HoldOutTest(pairs, 0.2, None, lambda some: None, np.random.default_rng(1))
    assert test.judge(SHIFT, 0.1).log_p_value == 0.0


def test_the_p_value_of_clumps_is_honest():
    """A greedy search among spots that agree on nothing: p below .05 in no more than a few of 60 draws."""
    p_values = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        test = HoldOutTest(clumped(rng, 0, 40), 0.2, None, found_by_shifts, rng)
        best = test.best(None)
        p_values.append(0.0 if best is None else test.judge(*best).log_p_value)
    assert np.count_nonzero(np.array(p_values) < np.log(0.05)) <= 6
    assert np.count_nonzero(np.array(p_values) < np.log(0.001)) <= 1


def test_a_given_noise_bound_is_not_exceeded():
    test = HoldOutTest(
        clumped(np.random.default_rng(0), 300, 40), 0.2, 0.04, lambda some: SHIFT, np.random.default_rng(1)
    )
    best = test.best(SHIFT)
    assert best is not None
    assert best[1] <= 0.04
