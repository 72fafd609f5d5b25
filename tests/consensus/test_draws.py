from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from inlier.consensus.draws import Draws


@pytest.mark.parametrize(("n", "size"), [(1, 1), (5, 9), (10, 4), (10_000, 4000), (100_000, 4000), (7001, 3500)])
def test_distinct_numbers_are_distinct_below_n_and_in_random_order(n, size):
    numbers = Draws(0).distinct(n, size)
    assert numbers.size == min(size, n) == np.unique(numbers).size
    assert 0 <= numbers.min() <= numbers.max() < n
    if size > 1000:
        assert kstest(numbers / n, "uniform").pvalue > 0.001
        assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 4 / np.sqrt(size)
        assert abs(np.corrcoef(numbers, np.arange(size))[0, 1]) < 4 / np.sqrt(size)


@pytest.mark.parametrize(("n", "size"), [(6, 3), (7, 3)])
def test_all_orders_are_equally_likely(n, size):
    draws = Draws(1)
    drawn = np.array([draws.distinct(n, size) for _ in range(6000)])
    names = drawn @ n ** np.arange(size)
    counts = np.unique(names, return_counts=True)[1]
    assert counts.size == np.prod(np.arange(n - size + 1, n + 1))
    assert chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize("state", [lambda seed: seed, np.random.RandomState], ids=["number", "state"])
def test_draws_are_uniform_and_follow_the_random_state(state):
    draws = Draws(state(3))
    first, second = draws.numbers(50, 20_000), draws.numbers(50, 20_000)
    for numbers in (first, second):
        assert chisquare(np.bincount(numbers, minlength=50)).pvalue > 0.001
    again = Draws(state(3))
    np.testing.assert_array_equal(first, again.numbers(50, 20_000))
    np.testing.assert_array_equal(second, again.numbers(50, 20_000))
    for others in (second, Draws(state(4)).numbers(50, 20_000), np.roll(second, 1), np.roll(second, -1)):
        assert (first == others).mean() < 0.03


def test_a_seed_gives_the_same_generator_and_a_state_goes_on():
    assert Draws(7).numpy.randint(10**6) == Draws(np.int64(7)).numpy.randint(10**6)
    state = np.random.RandomState(0)
    assert Draws(state).numpy is state
    assert Draws(None).numpy is np.random.mtrand._rand
    for wrong in ("seven", -1, 2**40):
        with pytest.raises(ValueError, match=r"seed|Seed"):
            Draws(wrong)
