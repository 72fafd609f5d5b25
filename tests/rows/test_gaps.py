"""Gaps in a table, filled from the table itself.

Values that cannot be meant, and columns that want a logarithm.
"""

import numpy as np
import pytest

from inlier.exceptions import ParameterError
from inlier.rows.gaps import describe, far_points, fill_gaps, gap_classes, is_skewed, odd_values, without_gaps

RNG = np.random.default_rng(5)
POINTS = np.random.default_rng(0).normal(size=(500, 3))


def redundant(rng, n=200, d=12, rank=3, noise=0.1):
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d)) + 5


def test_a_table_without_gaps_is_as_it_was():
    table = redundant(np.random.default_rng(0))
    assert fill_gaps(table).values is table
    assert fill_gaps(table).share_missing is None
    whole = np.arange(6).reshape(3, 2)
    assert fill_gaps(whole).values is whole


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
def test_redundant_columns_tell_what_is_missing(share):
    rng = np.random.default_rng(1)
    table = redundant(rng)
    gone = rng.uniform(size=table.shape) < share
    filled = fill_gaps(np.where(gone, np.nan, table))
    assert (filled.missing == gone).all()
    assert (filled.values[~gone] == table[~gone]).all()
    error = np.sqrt(np.mean((filled.values - table)[gone] ** 2))
    assert error < 0.5 * np.std(table)  # column means: 1.0


def test_unrelated_columns_are_filled_with_their_means():
    rng = np.random.default_rng(2)
    table = rng.normal(size=(400, 10)) + np.arange(10)
    gone = rng.uniform(size=table.shape) < 0.1
    filled = fill_gaps(np.where(gone, np.nan, table)).values
    error = np.sqrt(np.mean((filled - table)[gone] ** 2))
    assert error < 1.15


def test_empty_rows_and_columns_and_wide_tables():
    rng = np.random.default_rng(3)
    table = redundant(rng, n=30, d=80)
    table[4] = np.nan
    table[:, 7] = np.nan
    table[2, 3] = np.nan
    filled = fill_gaps(table)
    assert np.isfinite(filled.values).all()
    assert filled.share_missing[4] == 1
    assert (filled.values[:, 7] == 0).all()
    assert np.isfinite(fill_gaps(np.full((3, 2), np.nan)).values).all()


def test_a_table_of_gaps_alone_has_no_values():
    with pytest.raises(ParameterError, match=r"^X has no values: in all 30 rows and 2 columns they are missing"):
        without_gaps(np.full((30, 2), np.nan), "X")
    assert without_gaps(np.array([[1.0, np.nan], [2.0, np.nan]]), "X").missing.sum() == 2


def test_rows_are_told_apart_by_their_gaps_only_where_both_tables_miss_the_same():
    rng = np.random.default_rng(4)
    often = rng.uniform(size=300) < 0.3
    of_x, of_y = (np.where(often, rng.uniform(0.2, 0.8, size=300), 0.0) for _ in range(2))
    classes = gap_classes(of_x, of_y)
    assert len(set(classes[~often])) == 1
    assert not set(classes[often]) & set(classes[~often])
    assert gap_classes(of_x, rng.permutation(of_y)) is None
    assert gap_classes(of_x, None) is None
    assert gap_classes(np.full(300, 0.2), of_y) is None


def test_codes_of_missing_values_and_slips_are_odd_and_tails_are_not():
    table = RNG.normal(size=(300, 4)) * [1, 10, 0.1, 1] + 3
    assert odd_values(table) is None
    assert odd_values(np.exp(2 * RNG.normal(size=(300, 4)))) is None
    table[7, 1], table[9] = -99999, 1e9
    odd = odd_values(table)
    assert np.argwhere(odd).tolist() == [[7, 1], [9, 0], [9, 1], [9, 2], [9, 3]]
    table[:, 3] = 0  # a column of one value says nothing of what is typical
    assert not odd_values(table)[:, 3].any()
    assert fill_gaps(table, odd).share_missing[9] == 1


def test_a_code_is_odd_where_it_stands_out_and_is_repeated():
    table = 500 + 100 * RNG.normal(size=(200, 2))
    table[[3, 4], 0], table[5, 1] = -999, -999  # 15 median deviations away, and -999 once is a number like others
    odd = odd_values(table)
    assert np.argwhere(odd).tolist() == [[3, 0], [4, 0]]
    assert describe(odd, table, [f"id s{k}" for k in range(200)], ["a", "b"]).endswith("(-999) in id s3, column a.")
    wide = 5000 * RNG.normal(size=(200, 2))
    wide[[3, 4], 0] = -999
    assert odd_values(wide) is None


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_whole_numbers_and_gaps(dtype):
    table = RNG.integers(0, 50, size=(100, 3)).astype(dtype)
    table[[2, 8], 1] = -9999
    assert np.argwhere(odd_values(table)).tolist() == [[2, 1], [8, 1]]
    if dtype == np.float32:
        table[4, 1] = np.nan
        assert np.argwhere(odd_values(table)).tolist() == [[2, 1], [8, 1]]
    assert odd_values(np.full((5, 2), np.nan)) is None
    assert odd_values(np.ones((5, 2), dtype=bool)) is None


def test_what_a_tenth_of_a_column_does_is_its_nature():
    table = RNG.normal(size=(100, 1))
    table[:20] *= 1e6
    assert odd_values(table) is None


def test_counts_are_skewed_and_measurements_are_not():
    assert is_skewed(RNG.lognormal(0, 1.5, size=(300, 5)))
    assert is_skewed(RNG.poisson(RNG.lognormal(2, 1.5, size=(300, 5))).astype(float))
    for table in (RNG.normal(size=(300, 5)), RNG.uniform(size=(300, 5)), -RNG.lognormal(0, 2, size=(300, 5))):
        assert not is_skewed(table)
    assert not is_skewed(np.ones((300, 2)))
    assert not is_skewed(RNG.lognormal(0, 2, size=(5, 2)))


def with_row(points, row, value):
    points = points.copy()
    points[row] = value
    return points


@pytest.mark.parametrize("value", [1e9, -1e9, [0, 0, 1e6], 1e300])
def test_one_point_far_from_all_others(value):
    assert np.flatnonzero(far_points(with_row(POINTS, 17, value))).tolist() == [17]


def test_it_is_the_distance_in_a_thousand_typical_ones_that_counts():
    plane = np.zeros((101, 2))
    plane[:, 0] = np.tile([-1.0, 1.0], 51)[:101]  # of which the typical distance from the middle is 1
    plane[50] = 0.0
    assert far_points(with_row(plane, 3, [0, 998.0])) is None
    assert np.flatnonzero(far_points(with_row(plane, 3, [0, 1001.0]))).tolist() == [3]
    diagonal = with_row(plane, 3, [800.0, 800.0])  # 1,131 away, though near in each coordinate
    assert np.flatnonzero(far_points(diagonal)).tolist() == [3]


def test_turned_and_moved_points_are_judged_alike():
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    points = with_row(POINTS, 4, 1e7)
    np.testing.assert_array_equal(far_points(points @ turn.T + 1e4), far_points(points))


def test_a_flat_scene_with_things_on_it_is_no_exception():
    scene = POINTS * [1, 1, 1e-9]
    scene[::7, 2] += 1  # a thousand million times the typical height
    assert far_points(scene) is None


def test_where_many_are_far_it_is_their_nature():
    few, many = POINTS.copy(), POINTS.copy()
    few[:5], many[:6] = 1e6, 1e6
    assert np.count_nonzero(far_points(few)) == 5
    assert far_points(many) is None


@pytest.mark.parametrize(
    "points", [np.zeros((50, 2)), with_row(np.zeros((50, 2)), 3, 1e9), np.eye(9) * 1e9 * POINTS[:9, :1]]
)
def test_without_anything_typical_nothing_is_far(points):
    assert far_points(points) is None


def test_of_ten_points_one_may_be_far():
    assert np.flatnonzero(far_points(with_row(POINTS[:10], 9, 1e6))).tolist() == [9]
    assert far_points(with_row(POINTS[:9], 8, 1e6)) is None


def test_whole_numbers_and_many_rows():
    points = np.random.default_rng(0).integers(0, 100, (30_000, 2))
    assert far_points(points) is None
    points[12_345] = 9_999_999
    assert np.flatnonzero(far_points(points)).tolist() == [12_345]
