from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inlier.cluster import lloyd_cut, optimal_cut

from . import reference

lines = arrays(np.float64, st.integers(2, 30), elements=st.floats(-100, 100, width=16))


def within(values, upper):
    return sum(((part - part.mean()) ** 2).sum() for part in (values[upper], values[~upper]) if part.size)


@given(lines)
def test_lloyd_is_the_plain_iteration(values):
    np.testing.assert_array_equal(values >= lloyd_cut(values, -1.0, 1.0), reference.lloyd(values, -1.0, 1.0))


@given(lines)
def test_optimal_cut_is_the_best_of_all_cuts(values):
    upper = values >= optimal_cut(values)
    if np.ptp(values) == 0:
        assert upper.all()
    else:
        assert 0 < upper.sum() < values.size
        assert within(values, upper) <= reference.best_two_means(values) * (1 + 1e-9) + 1e-9


@given(lines, st.floats(0.1, 10), st.floats(-5, 5))
def test_optimal_cut_moves_with_the_values(values, scale, shift):
    moved = values * scale + shift
    best = reference.best_two_means(moved)
    assert within(moved, moved >= optimal_cut(moved)) == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert within(moved, values >= optimal_cut(values)) == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_equal_values_are_never_parted():
    values = np.array([0.0] * 5 + [1.0] * 3)
    assert (values >= optimal_cut(values)).tolist() == [False] * 5 + [True] * 3


def test_values_one_rounding_apart_are_parted_where_the_optimum_says():
    values = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert (values >= optimal_cut(values)).tolist() == [False, True]


def test_lloyd_leaves_an_empty_cluster_empty():
    values = np.array([0.9, 1.0, 1.1])
    assert (values >= lloyd_cut(values, -1.0, 1.0)).all()
    assert not (-values >= lloyd_cut(-values, -1.0, 1.0)).any()
