"""Tables that stay in their files, and tables that are written block by block."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
import zarr

from inlier.io import UnusableFileError, open_stored, read_table, write_blocks, write_table

TABLE = np.arange(60.0).reshape(20, 3)
COLUMNS = {"row": np.dtype(np.int64), "score": np.dtype(np.float64), "inlier": np.dtype(bool)}


def blocks(*names):
    for start in range(0, 20, 7):
        row = np.arange(start, min(start + 7, 20))
        block = {"row": row, "score": row / 3, "inlier": row % 2 == 0}
        yield {name: block[name] for name in names}


@pytest.mark.parametrize("suffix", ["npy", "zarr", "h5"])
@pytest.mark.parametrize("columns", [None, ["2", "0"], ["^1"]])
def test_what_is_opened_is_what_would_be_read(tmp_path, suffix, columns):
    path = tmp_path / f"t.{suffix}"
    write_table(path, TABLE)
    found, read = open_stored(path, columns=columns), read_table(path, columns=columns)
    rows = np.asarray(found.values[5:9])
    np.testing.assert_array_equal(rows if found.columns is None else rows[:, found.columns], read.values[5:9])
    assert (len(found), found.n_columns, found.source) == (20, read.values.shape[1], path)


def test_one_of_several_arrays(tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["a/b"], file["c"] = TABLE, np.ones(20)
    group = zarr.open_group(str(tmp_path / "t.zarr"), mode="w")
    group.create_array("a/b", data=TABLE)
    group.create_array("c", data=np.ones(20))
    for name in ("t.h5", "t.zarr"):
        assert open_stored(tmp_path / name) is None  # which one?
        assert open_stored(f"{tmp_path / name}:nothing") is None
        np.testing.assert_array_equal(open_stored(f"{tmp_path / name}:a/b").values[3:5], TABLE[3:5])
        assert open_stored(f"{tmp_path / name}:c").values[3:5].tolist() == [[1], [1]]


@pytest.mark.parametrize(
    "array", [np.zeros((2, 2, 2)), np.array(["a"]), np.zeros(3, dtype=[("a", int)]), np.ones(3, dtype=complex)]
)
def test_what_is_no_table_of_numbers_is_left_to_those_who_read_it_all(tmp_path, array):
    np.save(tmp_path / "t.npy", array)
    assert open_stored(tmp_path / "t.npy") is None


def test_other_formats_are_not_opened(tmp_path):
    write_table(tmp_path / "t.csv", {"a": np.ones(3)})
    assert open_stored(tmp_path / "t.csv") is None


@pytest.mark.parametrize("suffix", ["npz", "csv", "tsv", "csv.gz", "parquet", "feather", "h5", "zarr"])
def test_blocks_make_the_file_that_a_table_makes(tmp_path, suffix):
    one, other = tmp_path / f"one.{suffix}", tmp_path / f"other.{suffix}"
    write_blocks(one, COLUMNS, 20, blocks)
    write_table(other, {name: np.concatenate([block[name] for block in blocks(name)]) for name in COLUMNS})
    for columns in (["row", "score"],) if "sv" in suffix else (["row", "score", "inlier"],):
        np.testing.assert_array_equal(
            read_table(one, columns=columns).values, read_table(other, columns=columns).values
        )


def test_a_failure_half_way_leaves_the_old_file(tmp_path):
    def half(*names):
        yield from list(blocks(*names))[:1]
        raise ValueError("no more")

    (tmp_path / "t.csv").write_text("old")
    with pytest.raises(ValueError, match="no more"):
        write_blocks(tmp_path / "t.csv", COLUMNS, 20, half)
    assert (tmp_path / "t.csv").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("name", ["t.npy", "t.png", "t"])
def test_a_file_that_cannot_hold_columns_is_refused(tmp_path, name):
    with pytest.raises(UnusableFileError, match=r"cannot hold the 3 column\(s\) row, score, inlier in blocks"):
        write_blocks(tmp_path / name, COLUMNS, 20, blocks)
