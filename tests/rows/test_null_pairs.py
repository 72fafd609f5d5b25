from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.rows import null_pairs
from inlier.rows.null_pairs import (
    are_re_pairings,
    distinct_pairs,
    may_be_re_paired,
    n_shifts,
    pair_labels,
    point_numbers,
    re_pairings,
    row_hashes,
    share_no_point,
)


def all_re_pairings(points, shifts, rng):
    return np.concatenate([np.empty((2, 0), dtype=int), *re_pairings(points, shifts, rng)], axis=1)


def own_points(n):
    return np.stack([np.arange(n), np.arange(n)[::-1]])


@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
def test_re_pairings_share_no_point_with_the_pair(seed, n):
    rng = np.random.RandomState(seed)
    points = rng.randint(n, size=(2, n))
    i, j = all_re_pairings(points, 4, rng)
    assert (points[:, i] != points[:, j]).all()
    assert share_no_point(points, i, j).all()
    assert i.size <= 4 * n


def test_every_point_gets_as_many_other_partners_as_asked_on_each_side():
    i, j = all_re_pairings(own_points(30), 4, np.random.RandomState(0))
    assert (np.bincount(i) == 4).all()
    assert (np.bincount(j) == 4).all()
    assert np.unique(np.stack([i, j]), axis=1).shape[1] == 120  # none is drawn twice


def test_there_are_no_more_partners_than_other_pairs():
    i, j = all_re_pairings(own_points(5), 100, np.random.RandomState(0))
    assert sorted(zip(i.tolist(), j.tolist(), strict=True)) == [(a, b) for a in range(5) for b in range(5) if a != b]
    assert all_re_pairings(own_points(1), 4, np.random.RandomState(0)).shape == (2, 0)


def test_neighbours_in_the_table_are_no_likelier_partners():
    """The order is random: rows that follow each other may belong together."""
    next_to = [
        np.count_nonzero((i - j) % 100 == 1)
        for i, j in (all_re_pairings(own_points(100), 1, np.random.RandomState(seed)) for seed in range(50))
    ]
    assert np.mean(next_to) == pytest.approx(1.0, abs=0.5)


@pytest.mark.parametrize(
    ("n_pairs", "wanted", "shifts"), [(1000, 10_000, 10), (1000, 10_001, 11), (1000, 10, 1), (60, 10_000, 59)]
)
def test_number_of_shifts(n_pairs, wanted, shifts):
    assert n_shifts(n_pairs, wanted) == shifts


def test_without_repeats_nothing_is_left_out_but_the_pairs_themselves():
    expected = np.arange(20)[:, None] != np.arange(7)
    np.testing.assert_array_equal(are_re_pairings(own_points(20), np.arange(7), np.random.RandomState(0)), expected)


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.6, 0.2, 0.1, 0.1), (0.25, 0.25, 0.25, 0.25)])
@pytest.mark.parametrize("side", [0, 1])
def test_points_are_met_as_often_as_they_occur(shares, side):
    n = 4000
    rng = np.random.RandomState(0)
    points = np.stack([np.arange(n), np.arange(n)])
    points[side] = rng.choice(len(shares), n, p=shares)
    for i, j in (np.nonzero(are_re_pairings(points, np.arange(n), rng)), all_re_pairings(points, 100, rng)):
        met = points[side][(i, j)[side]]
        frequency = np.bincount(met, minlength=len(shares)) / met.size
        np.testing.assert_allclose(frequency, np.bincount(points[side]) / n, atol=0.02)
        assert (points[:, i] != points[:, j]).all()


def test_one_point_alone_cannot_be_re_paired():
    points = np.stack([np.arange(10), np.zeros(10, dtype=int)])
    assert not are_re_pairings(points, np.arange(10), np.random.RandomState(0)).any()
    assert all_re_pairings(points, 4, np.random.RandomState(0)).size == 0


def test_equal_rows_get_equal_numbers_and_hashes():
    table = np.array([[1.0, 2.0], [3.0, 0.0], [1.0, 2.0], [2.0, 1.0], [3.0, -0.0]])
    for numbers in (point_numbers(table), row_hashes(table), point_numbers(table.astype(np.float32))):
        assert numbers[0] == numbers[2]
        assert numbers[1] == numbers[4]
        assert len(set(numbers.tolist())) == 3


def test_rows_of_long_tables_are_numbered_by_all_of_their_columns():
    table = np.random.default_rng(0).integers(0, 30, size=(40_000, 2)).astype(float)
    _, expected = np.unique(table, axis=0, return_inverse=True)
    numbers = point_numbers(table)
    assert np.unique(np.stack([numbers, expected.reshape(-1)]), axis=1).shape[1] == np.unique(numbers).size == 900


def test_distinct_pairs_are_listed_once_in_their_order():
    X, Y = np.array([[5.0], [1.0], [5.0], [5.0]]), np.array([[0.0], [2.0], [0.0], [3.0]])
    rows, numbers = distinct_pairs(X, Y)
    assert rows.tolist() == [0, 1, 3]
    assert numbers.tolist() == [0, 1, 0, 2]


@given(st.integers(0, 2**32 - 1), st.integers(4, 40))
def test_re_pairings_leave_groups_and_stay_inside_strata(seed, n):
    rng = np.random.RandomState(seed)
    group, stratum = rng.randint(max(n // 3, 1), size=n), rng.randint(3, size=n)
    labels = pair_labels(rng.normal(size=(n, 2)), rng.normal(size=(n, 1)), group, stratum)
    i, j = all_re_pairings(labels, n, rng)
    assert (group[i] != group[j]).all()
    assert (stratum[i] == stratum[j]).all()
    kept = are_re_pairings(labels, np.arange(n), rng)
    assert not (kept & ~may_be_re_paired(labels, np.arange(n)[:, None], np.arange(n))).any()


def test_all_partners_inside_strata_of_equal_size_are_met():
    stratum = np.repeat([0, 1, 2], 5)
    labels = pair_labels(np.arange(15.0)[:, None], np.arange(15.0)[:, None], None, stratum)
    i, j = all_re_pairings(labels, 100, np.random.RandomState(0))
    expected = [(a, b) for a in range(15) for b in range(15) if a != b and stratum[a] == stratum[b]]
    assert sorted(zip(i.tolist(), j.tolist(), strict=True)) == expected


def test_pairs_of_large_and_small_strata_count_alike():
    stratum = np.repeat([0, 1], [100, 20])
    labels = pair_labels(np.arange(120.0)[:, None], np.arange(120.0)[:, None], None, stratum)
    counts = are_re_pairings(labels, np.arange(120), np.random.RandomState(0)).sum(axis=1)
    assert counts[:100].mean() == pytest.approx(counts[100:].mean(), rel=0.15)


def test_without_groups_and_strata_labels_are_the_points():
    table = np.array([[1.0], [2.0], [1.0]])
    labels = pair_labels(table, table)
    assert labels.shape == (2, 3)
    assert (labels[:, 0] == labels[:, 2]).all()
    assert (labels[:, 0] != labels[:, 1]).all()


def test_a_pair_and_the_same_the_other_way_round_are_different():
    a, b = np.random.default_rng(0).normal(size=(2, 3))
    rows, numbers = distinct_pairs(np.stack([a, b, a, b]), np.stack([b, a, a, b]))
    assert rows.tolist() == numbers.tolist() == [0, 1, 2, 3]


def test_pairs_inside_strata_are_kept_in_proportion_to_one_over_their_partners():
    """Partners are those of the stratum, of another group; the tenth with the fewest are kept always."""
    strata = np.repeat([0, 1, 2], [4, 10, 26])
    groups = np.arange(40)
    groups[14:20] = 14  # six of the largest stratum are one group
    labels = np.stack([np.arange(40), np.arange(40), groups, strata])
    partners = np.array([sum((strata == strata[i]) & (groups != groups[i])) for i in range(40)])
    least = np.quantile(partners, 0.1)
    of_x, of_y = null_pairs._chances_to_be_kept(labels)
    np.testing.assert_allclose(of_x, np.minimum(least / partners, 1))
    assert (of_y == 1).all()
    assert len(set(partners)) > 3


def test_pairs_are_kept_in_proportion_to_one_over_the_pairs_with_another_point():
    """Also of points of x or y that most pairs share, and where one side has no repeats."""
    points = np.stack([np.repeat([0, 1, 2], [20, 7, 3]), np.repeat([0, 1, 2, 3], [1, 4, 5, 20])])
    of_others = [np.array([np.sum(side != point) for point in side]) for side in points]
    for found, others in zip(null_pairs._chances_to_be_kept(points), of_others, strict=True):
        np.testing.assert_allclose(found, others.min() / others)
    alone = np.stack([np.arange(30), points[1]])
    of_x, of_y = null_pairs._chances_to_be_kept(alone)
    assert (of_x == 1).all()
    np.testing.assert_allclose(of_y, of_others[1].min() / of_others[1])
    np.testing.assert_array_equal(null_pairs._chances_to_be_kept(alone[::-1]), [of_y, of_x])
    assert null_pairs._chances_to_be_kept(np.stack([np.arange(30), np.repeat(np.arange(15), 2)])) is None


def test_a_pair_that_has_no_partner_counts_as_one_that_has_one():
    labels = np.stack([np.arange(24), np.arange(24), np.arange(24), np.repeat([0, 1, 2], [1, 2, 21])])
    of_x, _ = null_pairs._chances_to_be_kept(labels)
    least = np.quantile([1, 1, 1, *[20] * 21], 0.1)
    np.testing.assert_allclose(of_x, np.minimum(least / np.array([1, 1, 1, *[20] * 21]), 1))


def test_no_partner_is_met_twice_where_strata_are_of_different_size():
    strata = np.repeat([0, 1], [3, 8])
    labels = np.stack([np.arange(11), np.arange(11), np.arange(11), strata])
    for wanted in (1, 4, 7, 8, 20):
        shifts = list(re_pairings(labels, wanted, np.random.RandomState(0)))
        assert len(shifts) == min(wanted, 7)


def test_one_point_in_common_is_enough():
    labels = np.array([[0, 0, 1, 2], [0, 1, 1, 2]])
    found = share_no_point(labels, np.arange(4)[:, None], np.arange(4))
    expected = [[0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 0, 1], [1, 1, 1, 0]]
    np.testing.assert_array_equal(found, np.array(expected, dtype=bool))
    assert found.dtype == bool


def test_rows_differ_by_their_last_bit_in_any_column():
    rows = np.tile([1e-20, 5.0, 1e20], (4, 1))
    for column in range(3):
        rows[column, column] = np.nextafter(rows[column, column], np.inf)
    assert len(set(row_hashes(rows).tolist())) == 4
    assert len(set(row_hashes(rows[:, ::-1]).tolist()) | set(row_hashes(rows).tolist())) == 8
