from __future__ import annotations

import numpy as np
import pytest

from inlier.consensus.repeats import any_repeats


def drawn(n, d=3):
    rng = np.random.default_rng(n)
    return *rng.normal(size=(2, d, n)), rng.random(n)


@pytest.mark.parametrize("n", [2, 200, 5000, 50_000])
@pytest.mark.parametrize("repeated", [np.tile, lambda part, times: np.repeat(part, times, axis=-1)])
def test_lists_that_are_listed_twice(n, repeated):
    x, y, residuals = drawn(n)
    assert not any_repeats(x, y, residuals, 1.0, n)
    assert any_repeats(repeated(x, 2), repeated(y, 2), repeated(residuals, 2), 1.0, 2 * n)


@pytest.mark.parametrize("n", [200, 5000, 50_000])
def test_one_pair_that_stands_for_a_tenth(n):
    x, y, residuals = drawn(n)
    x[:, ::10], y[:, ::10] = 0.0, -0.0
    y[:, ::20] = 0.0  # the same number
    assert any_repeats(x, y, residuals, 1.0, n)


def test_few_are_all_looked_at():
    x, y, residuals = drawn(200)
    x[:, 7], y[:, 7] = x[:, 190], y[:, 190]
    assert any_repeats(x, y, residuals, 1.0, 200)


def test_only_those_within_the_bound_count():
    x, y, residuals = drawn(300)
    far = residuals > 0.5
    x[:, far], y[:, far] = 0.0, 0.0
    assert not any_repeats(x, y, residuals, 0.5, int((~far).sum()))
    assert any_repeats(x, y, residuals, np.inf, 300)


def test_one_point_with_many_partners_is_no_repeat():
    x, y, residuals = drawn(500)
    assert not any_repeats(np.zeros_like(x), y, residuals, 1.0, 500)
    assert not any_repeats(x, np.zeros_like(y), residuals, 1.0, 500)
