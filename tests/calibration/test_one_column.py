"""Where all agreement of two tables is that of one column of each, that is told; where there is more, it is not."""

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration.checks.one_column import one_column
from inlier.exceptions import DependenceWarning


def everyone(X):
    return np.ones(len(X), dtype=bool)


def asked_twice(rng, n=300):
    age = rng.normal(50, 15, n)
    return (np.column_stack([rng.normal(size=(n, 4)), age + rng.normal(size=n), rng.normal(size=n)]) for _ in "xy")


@pytest.mark.parametrize("seed", range(5))
def test_a_column_that_was_measured_twice_is_named(seed):
    X, Y = asked_twice(np.random.default_rng([1, seed]))
    assert one_column(X, np.exp(Y / 50)[:, ::-1], everyone(X)) == (4, 1)


def test_the_fit_says_so():
    X, Y = asked_twice(np.random.default_rng(6))
    with pytest.warns(DependenceWarning, match="rests on column 4 of X and column 4 of y"):
        CalibratedMatcher(alpha=0.05, random_state=0).fit(X, Y)


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_where_other_columns_agree_too_nothing_is_said(weight):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    Y = np.column_stack([X[:, 0], weight * X[:, 1:] + rng.normal(size=(300, 3))]) + 0.05 * rng.normal(size=(300, 4))
    assert one_column(X, Y, everyone(X)) is None


def test_one_column_of_two_that_say_the_same_is_not_alone():
    rng = np.random.default_rng(3)
    size = rng.normal(size=300)
    X, Y = (size[:, None] + 0.3 * rng.normal(size=(300, 3)) for _ in range(2))
    assert one_column(X, Y, everyone(X)) is None


@pytest.mark.parametrize(("n", "d_x"), [(300, 1), (50, 6)])
def test_tables_of_one_column_and_few_rows_are_not_asked(n, d_x):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, d_x))
    Y = np.column_stack([X[:, 0], rng.normal(size=(n, 3))])
    assert one_column(X, Y, everyone(X)) is None


def test_constant_columns_count_for_nothing():
    rng = np.random.default_rng(5)
    X, Y = asked_twice(rng)
    X[:, 0] = 7.0
    assert one_column(X, Y, everyone(X)) == (4, 4)
    assert one_column(X[:, [0, 4]], Y, everyone(X)) is None
