from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from inlier.consensus.draws import draw, draw_distinct, random_state_of


@pytest.mark.parametrize(("n", "size"), [(1, 1), (5, 9), (10, 4), (10_000, 4000), (100_000, 4000), (7001, 3500)])
def test_distinct_numbers_are_distinct_below_n_and_in_random_order(n, size):
    numbers = draw_distinct(n, size, np.random.RandomState(0))
    assert numbers.size == min(size, n) == np.unique(numbers).size
    assert 0 <= numbers.min() <= numbers.max() < n
    if size > 1000:
        assert kstest(numbers / n, "uniform").pvalue > 0.001
        assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 4 / np.sqrt(size)
        assert abs(np.corrcoef(numbers, np.arange(size))[0, 1]) < 4 / np.sqrt(size)


@pytest.mark.parametrize(("n", "size"), [(6, 3), (7, 3)])
def test_all_orders_are_equally_likely(n, size):
    rng = np.random.RandomState(1)
    drawn = np.array([draw_distinct(n, size, rng) for _ in range(6000)])
    names = drawn @ n ** np.arange(size)
    counts = np.unique(names, return_counts=True)[1]
    assert counts.size == np.prod(np.arange(n - size + 1, n + 1))
    assert chisquare(counts).pvalue > 0.001


def test_draws_are_uniform_and_follow_the_random_state():
    numbers = draw(50, 20_000, np.random.RandomState(3))
    assert chisquare(np.bincount(numbers, minlength=50)).pvalue > 0.001
    np.testing.assert_array_equal(numbers, draw(50, 20_000, np.random.RandomState(3)))
    assert (numbers != draw(50, 20_000, np.random.RandomState(4))).mean() > 0.9


def test_a_seed_gives_the_same_numbers_and_a_state_goes_on():
    first, second = random_state_of(7), random_state_of(np.int64(7))
    assert first.randint(10**6) == second.randint(10**6)
    assert random_state_of(first) is first
    assert random_state_of(None) is np.random.mtrand._rand
    for wrong in ("seven", -1, 2**40):
        with pytest.raises(ValueError, match=r"seed|Seed"):
            random_state_of(wrong)
