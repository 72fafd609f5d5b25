"""Columns that stand in both tables, up to units, rounding and ties; and columns that only agree."""

import numpy as np
import pytest

from inlier.calibration.checks.copied_columns import copied_columns, without_columns

N = 300


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def found(rng, of_x, of_y):
    """Numbers of the copied columns among noise, of which the first is asked about."""
    X, Y = (np.column_stack([column, rng.normal(size=(N, 3))]) for column in (of_x, of_y))
    of_x, of_y = copied_columns(X, Y)
    return of_x.tolist(), of_y.tolist()


def reference(r, s):
    """Whether no two rows are in opposite order, or no two in the same one."""
    orders = np.sign(r[:, None] - r) * np.sign(s[:, None] - s)
    return orders.min() >= 0 or orders.max() <= 0


def test_other_units_rounding_and_direction(rng):
    age = rng.normal(50, 15, N)
    for other in (age, 12 * age + 3, -age, np.round(age), np.exp(age / 10)):
        assert found(rng, age, other) == ([0], [0])
    assert found(rng, np.round(age), np.round(2.2046 * age)) == ([0], [0])


def test_tables_that_were_each_sorted(rng):
    order, (age, other) = rng.permutation(N), np.round(rng.normal(50, 15, (2, N)))
    assert found(rng, np.sort(age)[order], np.sort(other)[order]) == ([0], [0])
    assert found(rng, np.sort(age)[order], np.sort(other)[::-1][order]) == ([0], [0])


def test_columns_that_agree_nearly_are_none(rng):
    age = np.round(rng.normal(50, 15, N))
    assert found(rng, age, age + rng.integers(-1, 2, N)) == ([], [])
    assert found(rng, age, np.where(np.arange(N) == 7, 0, age)) == ([], [])
    assert found(rng, np.ones(N), np.ones(N)) == ([], [])


def test_of_two_values_one_has_to_follow_from_the_other(rng):
    woman = (rng.random(N) < 0.5).astype(float)
    assert found(rng, woman, 1 - woman) == ([0], [0])
    assert found(rng, woman, woman * (rng.random(N) < 0.3)) == ([], [])
    assert found(rng, woman, woman * rng.integers(0, 4, N)) == ([], [])


def test_tables_of_nothing_else_stay_as_they_are(rng):
    age = rng.normal(size=(N, 1))
    assert [of.size for of in copied_columns(age, age)] == [0, 0]


def test_gaps_count_as_lowest_values(rng):
    age = rng.normal(size=N)
    age[::7] = np.nan
    assert found(rng, age, age) == ([0], [0])
    assert found(rng, age, np.where(np.arange(N) == 0, 0.0, age)) == ([], [])


@pytest.mark.parametrize("levels", [3, 5, 40])
def test_as_by_comparing_every_two_rows(rng, levels):
    for k in range(20):
        r, s = rng.integers(0, levels, (2, 60)).astype(float)
        if k % 2:
            order = rng.permutation(60)
            r, s = np.sort(r)[order], np.sort(s)[order]
        told = [of.tolist() for of in copied_columns(*(np.column_stack([c, rng.normal(size=60)]) for c in (r, s)))]
        assert (told == [[0], [0]]) == reference(r, s)


def test_left_out_columns_are_empty_and_the_table_is_not_changed(rng):
    table = rng.normal(size=(5, 3))
    assert without_columns(table, np.empty(0, dtype=int)) is table
    without = without_columns(table, np.array([1]))
    assert (without[:, 1] == 0).all()
    assert (without[:, [0, 2]] == table[:, [0, 2]]).all()
    assert table[:, 1].any()


def test_among_thousands_of_columns_too(rng):
    X, Y = rng.normal(size=(2, 40, 1_200))
    Y[:, 700], Y[:, 900] = 3 * X[:, 8] + 1, -X[:, 11]
    of_x, of_y = copied_columns(X, Y)
    assert of_x.tolist() == [8, 11]
    assert of_y.tolist() == [700, 900]
