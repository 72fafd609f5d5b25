"""Tables that are opened without being read: they stay in their files."""

from __future__ import annotations

import os

import h5py
import numpy as np
import pyarrow
import pytest
import zarr

from inlier.exceptions import UnusableFileError
from inlier.io import _text_files, open_stored, read_table, write_table

TABLE = np.arange(60.0).reshape(20, 3)


@pytest.mark.parametrize("suffix", ["npy", "zarr", "h5"])
@pytest.mark.parametrize("columns", [None, ["2", "0"], ["^1"]])
def test_what_is_opened_is_what_would_be_read(tmp_path, suffix, columns):
    path = tmp_path / f"t.{suffix}"
    write_table(path, TABLE)
    found, read = open_stored(path, columns=columns), read_table(path, columns=columns)
    np.testing.assert_array_equal(found[5:9], read.values[5:9])
    assert (found.shape, found.n_bytes) == (read.values.shape, TABLE.nbytes)


def test_one_of_several_arrays(tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["a/b"], file["c"] = TABLE, np.ones(20)
    group = zarr.open_group(str(tmp_path / "t.zarr"), mode="w")
    group.create_array("a/b", data=TABLE)
    group.create_array("c", data=np.ones(20))
    for name in ("t.h5", "t.zarr"):
        assert open_stored(tmp_path / name) is None  # which one?
        assert open_stored(f"{tmp_path / name}:nothing") is None
        np.testing.assert_array_equal(open_stored(f"{tmp_path / name}:a/b")[3:5], TABLE[3:5])
        assert open_stored(f"{tmp_path / name}:c")[3:5].tolist() == [[1], [1]]


@pytest.mark.parametrize(
    "array", [np.zeros((2, 2, 2)), np.array(["a"]), np.zeros(3, dtype=[("a", int)]), np.ones(3, dtype=complex)]
)
def test_what_is_no_table_of_numbers_is_left_to_those_who_read_it_all(tmp_path, array):
    np.save(tmp_path / "t.npy", array)
    assert open_stored(tmp_path / "t.npy") is None


def test_other_formats_are_not_opened(tmp_path):
    write_table(tmp_path / "t.csv", {"a": np.ones(3)})
    assert open_stored(tmp_path / "t.csv") is None


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".parquet", ".txt"])
def test_words_that_repeat_are_left_out_with_a_warning(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    words = {"plate": ["P1", "P2", "P1", "P2"], "sex": ["f", "f", "m", "m"]}
    if suffix == ".txt":
        path.write_text("a plate sex\n1 P1 f\n2 P2 f\n3 P1 m\n4 P2 m\n")
    else:
        write_table(path, {"a": np.arange(1.0, 5), **{name: np.array(texts) for name, texts in words.items()}})
    with pytest.warns(UserWarning, match=r"columns 'plate', 'sex' of .* hold words, not numbers: left out"):
        table = read_table(path)
    assert table.columns == ("a",)
    assert table.values.tolist() == [[1], [2], [3], [4]]
    with pytest.raises(UnusableFileError, match="'plate'"):
        read_table(path, columns=["a", "plate"])  # which were asked for


def test_which_column_is_refused_does_not_depend_on_threads(tmp_path, monkeypatch):
    def of_threads(dialect, request, wanted, *, use_threads):
        if use_threads:  # as if the last column had been the fastest
            raise pyarrow.ArrowInvalid("In CSV column #2: CSV conversion error to double: invalid value 'x'")
        return read(dialect, request, wanted, use_threads=False)

    read = _text_files._arrow_table
    monkeypatch.setattr(_text_files, "_arrow_table", of_threads)
    (tmp_path / "a.csv").write_text("a,name,other\n1,u,x\n2,v,y\n")
    with pytest.raises(UnusableFileError, match="'name'"):
        read_table(tmp_path / "a.csv")


@pytest.mark.parametrize("cells", [["1.5", "low", "low", "low"], ["u", "v", "w", "u"]])
def test_numbers_among_words_and_names_of_rows_are_refused(tmp_path, cells):
    (tmp_path / "a.csv").write_text("a;b\n" + "".join(f"{k};{cell}\n" for k, cell in enumerate(cells)))
    with pytest.raises(UnusableFileError, match=r"'b' of .* does not hold numbers"):
        read_table(tmp_path / "a.csv")


def test_names_of_files_that_are_not_utf8(tmp_path):
    path = tmp_path / os.fsdecode(b"a\xff\n.csv")
    path.write_text("a,b\n1,2\n3,4\n")
    assert read_table(path).values.tolist() == [[1, 2], [3, 4]]
