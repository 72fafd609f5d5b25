"""Gaps in a table, filled from the table itself."""

import numpy as np
import pytest

from inlier.exceptions import ParameterError
from inlier.rows.gaps import fill_gaps, gap_classes, without_gaps


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
