from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.io import Table, UnusableFileError, pair_tables


def table(keys, name="x.csv"):
    values = np.arange(len(keys), dtype=float).reshape(-1, 1)
    return Table(values, None, np.array(keys, dtype=np.str_), Path(name))


def test_by_position():
    X = Table(np.zeros((3, 2)), None, None, Path("x.npy"))
    pairing = pair_tables(X, Table(np.ones((3, 1)), None, None, Path("y.npy")))
    assert pairing.keys is None
    assert pairing.rows.tolist() == [0, 1, 2]
    with pytest.raises(UnusableFileError, match=r"x.npy has 3 rows and y.npy has 2.*--key"):
        pair_tables(X, Table(np.ones((2, 1)), None, None, Path("y.npy")))


def test_every_kind_of_loss_is_noted():
    X = table(["a", "b", "b b", "c", "b b", "", "only x"])
    Y = table(["c", "only y", "a", "b b", "d", "d", "b", "e"], "y.csv")
    pairing = pair_tables(X, Y)
    assert pairing.keys.tolist() == ["a", "b", "c"]
    assert pairing.rows.tolist() == [0, 1, 3]
    assert pairing.Y[:, 0].tolist() == [2, 6, 0]
    assert pairing.notes == [
        "1 row of x.csv without an id left out.",
        "1 id occurs more than once in x.csv, so that nobody knows which row is meant; the 2 rows were left out: b b.",
        "1 id occurs more than once in y.csv, so that nobody knows which row is meant; the 2 rows were left out: d.",
        "1 id of x.csv is not in y.csv: only x.",
        "3 ids of y.csv are not in x.csv: only y, d, e.",
    ]


def test_nothing_shared():
    with pytest.raises(
        UnusableFileError,
        match=r"share no id that occurs once in each: the first has a, b, c, \.\.\., the second 1, 2\. Check",
    ):
        pair_tables(table(list("abcd")), table(["1", "2"], "y.csv"))


@given(st.lists(st.sampled_from("abcdef"), min_size=1), st.lists(st.sampled_from("abcdef"), min_size=1))
def test_joined_as_a_dictionary_would(left, right):
    once = [key for key in left if left.count(key) == 1 and right.count(key) == 1]
    if not once:
        with pytest.raises(UnusableFileError, match="share no id"):
            pair_tables(table(left), table(right, "y.csv"))
        return
    pairing = pair_tables(table(left), table(right, "y.csv"))
    assert pairing.keys.tolist() == once
    assert pairing.X[:, 0].tolist() == [left.index(key) for key in once]
    assert pairing.Y[:, 0].tolist() == [right.index(key) for key in once]


def test_two_tables_with_a_pair_per_column_are_asked_about():
    X, Y = (Table(np.zeros((d, 200)), None, None, Path(f"{d}.csv")) for d in (5, 6))
    with pytest.raises(UnusableFileError, match=r"5 rows and 6.csv has 6, but both have 200 columns.*--transpose"):
        pair_tables(X, Y)
