"""Values that cannot be meant, and columns that want a logarithm."""

import numpy as np
import pytest

from inlier.rows.gaps import fill_gaps
from inlier.rows.odd_values import describe, is_skewed, odd_values

RNG = np.random.default_rng(5)


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
