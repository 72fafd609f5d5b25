"""Which array of a file is meant; the same rule for npz, hdf5 and zarr."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.io import UnusableFileError, read_table, write_table

TABLE = np.arange(12.0).reshape(4, 3)
STORES = pytest.mark.parametrize("suffix", ["npz", "h5", "zarr"])


@STORES
def test_the_only_array_there_is(tmp_path, suffix):
    write_table(tmp_path / f"a.{suffix}", {"X": TABLE, "n": np.array(4)})  # a single number is no table
    np.testing.assert_array_equal(read_table(tmp_path / f"a.{suffix}").values, TABLE)


@STORES
def test_the_array_beside_its_key(tmp_path, suffix):
    names = np.array(["a", "\N{GREEK SMALL LETTER BETA}", "c", "d"])
    write_table(tmp_path / f"a.{suffix}", {"X": TABLE, "who": names})
    table = read_table(tmp_path / f"a.{suffix}", key="who")
    assert table.keys.tolist() == names.tolist()
    np.testing.assert_array_equal(table.values, TABLE)


@STORES
def test_lists_of_one_length_are_columns(tmp_path, suffix):
    write_table(tmp_path / f"a.{suffix}", {"u": TABLE[:, 0], "v": TABLE[:, 1], "who": np.arange(4)})
    table = read_table(tmp_path / f"a.{suffix}", key="who")
    assert table.columns == ("u", "v")
    np.testing.assert_array_equal(table.values, TABLE[:, :2])


@STORES
@pytest.mark.parametrize(
    ("arrays", "inside", "key", "sentence"),
    [
        ({"X": TABLE, "Y": TABLE}, "", None, r"holds 2 arrays: X \(4, 3\), Y \(4, 3\)\. Choose one, .*:X$"),
        ({"u": TABLE[:, 0], "v": TABLE[:2, 0]}, "", None, r"holds 2 arrays: u \(4,\), v \(2,\)"),
        ({"X": TABLE}, ":Z", None, r"has no array named 'Z'; it has X\.$"),
        ({"X": TABLE}, ":X", "who", r"has no array named 'who' beside X\.$"),
        ({"X": TABLE, "who": np.arange(3)}, ":X", "who", r"the key who has shape \(3,\) and X has \(4, 3\)"),
        ({"n": np.array(4)}, "", None, r"holds no array to read\.$"),
        ({"X": np.array(["a", "b"]), "who": np.arange(2)}, ":X", "who", "holds text, but numbers are needed"),
    ],
)
def test_what_is_not_clear_is_refused(tmp_path, suffix, arrays, inside, key, sentence):
    write_table(tmp_path / f"a.{suffix}", arrays)
    with pytest.raises(UnusableFileError, match=sentence):
        read_table(f"{tmp_path / f'a.{suffix}'}{inside}", key=key)


def test_columns_may_have_any_name(tmp_path):
    """numpy.savez takes names as keywords, among which it has its own."""
    write_table(tmp_path / "a.npz", {"file": TABLE[:, 0], "allow_pickle": TABLE[:, 1]})
    assert read_table(tmp_path / "a.npz").columns == ("file", "allow_pickle")
