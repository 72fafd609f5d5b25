"""What is written is read back, for every format and every kind of content it can hold."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inlier.io import FORMATS, read_image, read_table, write_table

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(40, 5))
CLOUD = {name: RNG.normal(size=30) for name in ("x", "y", "z")} | {"intensity": np.arange(30, dtype=np.uint16)}
MIXED = {
    "id": np.array([f"s,{number} \N{GREEK SMALL LETTER ALPHA}" for number in range(12)]),
    "count": np.arange(12),
    "value": RNG.normal(size=12),
}

EXACT_TABLES = [".npy", ".npz", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", ".parquet", ".feather"]
EXACT_TABLES += [".jsonl", ".ndjson", ".jsonl.gz"]
EXACT_TABLES += [".h5", ".hdf5", ".zarr", ".nii", ".nii.gz", ".vec", ".vec.gz", ".xlsx"]
WITH_NAMES = [".jsonl", ".npz", ".csv", ".csv.gz", ".tsv", ".xlsx", ".parquet", ".feather", ".h5", ".zarr"]
CLOUDS = [".ply", ".pcd", ".las", ".laz", ".xyz"]
PICTURES = [".png", ".jpg", ".jpeg", ".tif", ".tiff"]


def test_every_format_is_tried_here():
    tried = {*EXACT_TABLES, *WITH_NAMES, *CLOUDS, *PICTURES, ".gii", ".pq", ".arrow"}
    assert {suffix for format in FORMATS if format.is_written for suffix in format.suffixes} == tried


@pytest.mark.parametrize("suffix", EXACT_TABLES)
def test_a_table_comes_back_to_the_last_bit(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    write_table(path, TABLE)
    table = read_table(path)
    np.testing.assert_array_equal(table.values, TABLE)
    assert table.source == path
    assert table.keys is None
    assert [inside.name for inside in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", WITH_NAMES)
def test_names_of_rows_and_columns_come_back(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    write_table(path, MIXED)
    table = read_table(path, key="id")
    assert table.columns == ("count", "value")
    assert table.keys.tolist() == MIXED["id"].tolist()
    np.testing.assert_array_equal(table.values, np.stack([MIXED["count"], MIXED["value"]], axis=1))
    np.testing.assert_array_equal(read_table(path, columns=["value"]).values[:, 0], MIXED["value"])


def test_the_index_of_a_data_frame_is_left_out_of_parquet(tmp_path):
    import pandas

    pandas.DataFrame({"a": [1.0, 2.0]}, index=[7, 9]).to_parquet(tmp_path / "frame.parquet")
    with pytest.warns(UserWarning, match="without a name was left out"):
        assert read_table(tmp_path / "frame.parquet").columns == ("a",)


@pytest.mark.parametrize("suffix", [".pq", ".arrow"])
def test_other_names_of_a_format(tmp_path, suffix):
    write_table(tmp_path / f"table{suffix}", MIXED)
    assert read_table(tmp_path / f"table{suffix}", columns=["count"]).values[:, 0].tolist() == list(range(12))


@pytest.mark.parametrize("suffix", CLOUDS)
def test_a_cloud_comes_back(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    write_table(path, CLOUD if suffix != ".xyz" else {name: CLOUD[name] for name in "xyz"})
    table = read_table(path)
    assert table.columns == ("x", "y", "z")  # the intensity is not a coordinate
    points = np.stack([CLOUD[name] for name in "xyz"], axis=1)
    np.testing.assert_allclose(table.values, points, rtol=0, atol=1e-8 if "la" in suffix else 0)
    if suffix != ".xyz":
        assert read_table(path, columns=["intensity"]).values[:, 0].tolist() == list(range(30))


@pytest.mark.parametrize("suffix", CLOUDS)
def test_a_plain_array_of_three_columns_is_a_cloud(tmp_path, suffix):
    points = RNG.normal(size=(9, 3)) * 1e5
    write_table(tmp_path / f"cloud{suffix}", points)
    np.testing.assert_allclose(read_table(tmp_path / f"cloud{suffix}").values, points, rtol=0, atol=1e-3)


@pytest.mark.parametrize("suffix", [".ply", ".pcd"])
def test_clouds_hold_every_kind_of_number(tmp_path, suffix):
    extra = {
        "whole": np.array([-5, 2**31 - 1]),
        "huge": np.array([0, 2**40]),
        "truth": np.array([True, False]),
        "half": np.array([0.5, 2.0], dtype=np.float16),
        "small": np.array([200, 3], dtype=np.uint8),
    }
    write_table(tmp_path / f"cloud{suffix}", {"x": [0.0, 1.0], "y": [0.0, 1.0], "z": [0.0, 1.0], **extra})
    for name, column in extra.items():
        assert read_table(tmp_path / f"cloud{suffix}", columns=[name]).values[:, 0].tolist() == column.tolist()


@pytest.mark.parametrize("data", ["ascii", "binary", "binary_compressed"])
def test_every_kind_of_pcd(tmp_path, data):
    from pypcd4 import Encoding, PointCloud

    points = RNG.normal(size=(50, 3)).astype(np.float32)
    PointCloud.from_xyz_points(points).save(tmp_path / "cloud.pcd", Encoding(data))
    np.testing.assert_allclose(read_table(tmp_path / "cloud.pcd").values, points, atol=1e-9)


def test_ply_as_text_with_faces(tmp_path):
    (tmp_path / "cloud.ply").write_text(
        "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
        "property uchar red\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
        "0 0 0 9\n1 0 0 9\n0 1 0 9\n3 0 1 2\n"
    )
    assert read_table(tmp_path / "cloud.ply").values.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_gifti_surface_and_metric(tmp_path):
    points = RNG.normal(size=(20, 3)).astype(np.float32)
    write_table(tmp_path / "brain.surf.gii", points)
    surface = read_table(tmp_path / "brain.surf.gii")
    np.testing.assert_array_equal(surface.values, points)
    assert surface.columns == ("x", "y", "z")
    write_table(tmp_path / "brain.shape.gii", {"thickness": points[:, 0], "curvature": points[:, 1]})
    metric = read_table(tmp_path / "brain.shape.gii")
    np.testing.assert_array_equal(metric.values, points[:, :2])
    assert metric.columns == ("thickness", "curvature")


def test_cifti_maps_are_columns(tmp_path):
    import nibabel

    values = RNG.normal(size=(2, 30)).astype(np.float32)
    maps = nibabel.cifti2.ScalarAxis(["thickness", "myelin"])
    vertices = nibabel.cifti2.BrainModelAxis.from_surface(np.arange(30), 40, name="cortex_left")
    nibabel.Cifti2Image(values, (maps, vertices)).to_filename(tmp_path / "maps.dscalar.nii")
    table = read_table(tmp_path / "maps.dscalar.nii")
    np.testing.assert_array_equal(table.values, values.T)
    assert table.columns == ("thickness", "myelin")


def test_nifti_volumes_are_columns(tmp_path):
    import nibabel

    volume = RNG.normal(size=(3, 4, 5, 2))
    nibabel.Nifti1Image(volume, np.eye(4)).to_filename(tmp_path / "volume.nii.gz")
    np.testing.assert_array_equal(read_table(tmp_path / "volume.nii.gz").values, volume.reshape(-1, 2))


@pytest.mark.parametrize(
    ("suffix", "shape", "dtype"),
    [
        *((suffix, shape, "uint8") for suffix in (".png", ".tif", ".tiff") for shape in ((6, 7), (6, 7, 3), (6, 7, 4))),
        (".png", (6, 7), "uint16"),
        (".png", (6, 7, 3), "uint16"),
        (".png", (6, 7, 4), "uint16"),
        (".tif", (6, 7), "uint16"),
        (".tif", (6, 7, 3), "uint16"),
    ],
)
def test_pictures_come_back(tmp_path, suffix, shape, dtype):
    pixels = RNG.integers(0, np.iinfo(dtype).max, shape, dtype=dtype)
    path = tmp_path / f"picture{suffix}"
    write_table(path, pixels)
    np.testing.assert_array_equal(read_image(path), pixels.reshape(6, 7, -1))
    table = read_table(path)
    assert table.columns == (("grey",) if len(shape) == 2 else ("red", "green", "blue"))  # not how opaque
    assert table.values.tolist() == pixels.reshape(42, -1)[:, :3].tolist()


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg"])
def test_jpeg(tmp_path, suffix):
    pixels = np.full((16, 16, 3), 77, dtype=np.uint8)
    write_table(tmp_path / f"picture{suffix}", pixels)
    assert np.abs(read_image(tmp_path / f"picture{suffix}").astype(int) - 77).max() <= 2


def test_photos_are_turned_upright(tmp_path):
    from PIL import Image

    pixels = np.zeros((8, 16, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[274] = 6  # the camera was held upright
    Image.fromarray(pixels).save(tmp_path / "photo.jpg", exif=exif)
    assert read_image(tmp_path / "photo.jpg").shape == (16, 8, 3)


def test_of_several_pages_the_first_is_read(tmp_path):
    import tifffile

    tifffile.imwrite(tmp_path / "pages.tif", np.arange(24, dtype=np.uint8).reshape(2, 3, 4), photometric="minisblack")
    with pytest.warns(UserWarning, match="has 2 pages; the first is read"):
        assert read_image(tmp_path / "pages.tif")[:, :, 0].tolist() == np.arange(12).reshape(3, 4).tolist()


def test_alpha_can_be_asked_for(tmp_path):
    pixels = RNG.integers(0, 255, (3, 3, 4), dtype=np.uint8)
    write_table(tmp_path / "picture.png", pixels)
    assert (
        read_table(tmp_path / "picture.png", columns=["alpha"]).values[:, 0].tolist()
        == pixels[:, :, 3].ravel().tolist()
    )


def test_large_npy_is_mapped_not_read(tmp_path, monkeypatch):
    write_table(tmp_path / "table.npy", TABLE)
    assert not isinstance(read_table(tmp_path / "table.npy").values, np.memmap)
    monkeypatch.setattr("inlier.io._array_files._MAPPED_FROM", 100)
    assert isinstance(read_table(tmp_path / "table.npy").values, np.memmap)


def test_one_of_several_arrays(tmp_path):
    for suffix in (".npz", ".h5", ".zarr"):
        path = tmp_path / f"several{suffix}"
        write_table(path, {"X": TABLE, "Y": TABLE[:, ::-1], "names": np.arange(40)})
        np.testing.assert_array_equal(read_table(f"{path}:Y").values, TABLE[:, ::-1])
        keyed = read_table(f"{path}:X", key="names")
        assert keyed.keys[:3].tolist() == ["0", "1", "2"]
        np.testing.assert_array_equal(keyed.values, TABLE)


def test_arrays_in_groups(tmp_path):
    import h5py
    import zarr

    with h5py.File(tmp_path / "nested.h5", "w") as file:
        file["deep/inside"] = TABLE
        file["other"] = TABLE[:2]
    np.testing.assert_array_equal(read_table(tmp_path / "nested.h5:deep/inside").values, TABLE)
    zarr.open_group(tmp_path / "nested.zarr").create_group("deep").create_array("inside", data=TABLE)
    np.testing.assert_array_equal(read_table(tmp_path / "nested.zarr").values, TABLE)


def test_a_file_whose_name_has_a_colon(tmp_path):
    write_table(tmp_path / "a.npz", {"one": TABLE, "two": TABLE})
    write_table(tmp_path / "a.npz:one.csv", TABLE[:3])
    assert len(read_table(tmp_path / "a.npz:one.csv")) == 3


def test_records_are_columns(tmp_path):
    records = np.zeros(4, dtype=[("x", "f8"), ("n", "i4")])
    records["n"] = range(4)
    np.save(tmp_path / "records.npy", records)
    assert read_table(tmp_path / "records.npy").columns == ("x", "n")
    assert read_table(tmp_path / "records.npy", columns=["n"]).values[:, 0].tolist() == [0, 1, 2, 3]


class TestDelimited:
    def read(self, tmp_path, text, name="table.csv", **options):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_table(tmp_path / name, **options)

    def test_no_header(self, tmp_path):
        table = self.read(tmp_path, "1,2\n3,4\n")
        assert table.values.tolist() == [[1, 2], [3, 4]]
        assert table.columns is None
        assert self.read(tmp_path, "7,1,2\n8,3,4\n", key="0").keys.tolist() == ["7", "8"]

    def test_quotes_blank_lines_byte_order_mark_and_windows_ends(self, tmp_path):
        text = '\ufeff"a, b",c\r\n\r\n"1","2"\r\n3,"4.5"\r\n'
        table = self.read(tmp_path, text)
        assert table.columns == ("a, b", "c")
        assert table.values.tolist() == [[1, 2], [3, 4.5]]

    def test_blank_lines_before_the_header(self, tmp_path):
        assert self.read(tmp_path, "\n\na,b\n1,2\n").values.tolist() == [[1, 2]]

    def test_semicolons_and_decimal_commas(self, tmp_path):
        with pytest.warns(UserWarning, match="the comma was read as the decimal point"):
            table = self.read(tmp_path, "id;a\n7;1,5\n8;2,5\n", key="id")
        assert table.values[:, 0].tolist() == [1.5, 2.5]

    def test_missing_values_are_nan(self, tmp_path):
        values = self.read(tmp_path, "a,b\n1,NA\n,2\n").values
        assert np.isnan(values).tolist() == [[False, True], [True, False]]

    def test_ids_keep_their_zeros(self, tmp_path):
        assert self.read(tmp_path, "id,a\n007,1\n08,2\n", key="id").keys.tolist() == ["007", "08"]

    def test_integers_may_become_fractions_late(self, tmp_path):
        text = "a\n" + "1\n" * 1_000_000 + "0.5\n"
        assert self.read(tmp_path, text).values[-1, 0] == 0.5

    def test_text_columns_that_nobody_asked_for(self, tmp_path):
        table = self.read(tmp_path, "id,colour,a,b\nu,red,1,2\n", key="id", columns=["b", "a"])
        assert table.values.tolist() == [[2, 1]]

    def test_row_numbers_of_a_data_frame_are_left_out(self, tmp_path):
        with pytest.warns(UserWarning, match="without a name was left out"):
            table = self.read(tmp_path, ",a,b\n0,1,2\n1,3,4\n")
        assert table.columns == ("a", "b")
        with pytest.warns(UserWarning, match=r"To join on it, give --key ''"):
            assert self.read(tmp_path, ",a\nx,1\ny,2\n").values.tolist() == [[1], [2]]
        assert self.read(tmp_path, ",a\nx,1\ny,2\n", key="").keys.tolist() == ["x", "y"]

    def test_columns_can_be_left_out(self, tmp_path):
        text = "id,colour,a,b\nu,red,1,2\n"
        table = self.read(tmp_path, text, key="id", columns=["^colour"])
        assert (table.columns, table.values.tolist(), table.keys.tolist()) == (("a", "b"), [[1, 2]], ["u"])
        assert self.read(tmp_path, text, columns=["^colour", "^id", "^b"]).columns == ("a",)
        assert self.read(tmp_path, "1,2,3\n", columns=["^1"]).values.tolist() == [[1, 3]]
        write_table(tmp_path / "a.npy", np.array([[1, 2, 3]]))
        assert read_table(tmp_path / "a.npy", columns=["^1"]).values.tolist() == [[1, 3]]

    def test_ids_that_are_numbers_are_pointed_out(self, tmp_path):
        with pytest.warns(UserWarning, match="column 'ID' of .* is compared like any other number.*--key ID"):
            assert self.read(tmp_path, "ID,a\n1,2\n3,4\n").columns == ("ID", "a")
        assert self.read(tmp_path, "ID,a\n1,2\n3,4\n", columns=["ID", "a"]).columns == ("ID", "a")  # asked for

    def test_gz(self, tmp_path):
        assert self.read(tmp_path, gzip.compress(b"a\n1\n"), "table.csv.gz").values.tolist() == [[1]]

    def test_blanks(self, tmp_path):
        assert self.read(tmp_path, "# x y\n1 2\n\n3   4\n", "table.txt").values.tolist() == [[1, 2], [3, 4]]
        cloud = self.read(tmp_path, "1 2 3 0.5\n4 5 6 0.5\n", "cloud.xyz")
        assert cloud.values.tolist() == [[1, 2, 3], [4, 5, 6]]


numbers = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(allow_nan=False))


@given(numbers)
def test_csv_keeps_every_number(values):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(path, {f"c{number}": column for number, column in enumerate(values.T)})
        np.testing.assert_array_equal(read_table(path).values, values)


def test_the_library_of_a_format_may_be_absent(tmp_path, monkeypatch):
    import sys

    write_table(tmp_path / "table.h5", TABLE)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"hdf5 files need h5py; install it with: pip install 'h5py'"):
        read_table(tmp_path / "table.h5")
