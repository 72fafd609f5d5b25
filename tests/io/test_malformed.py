"""Every broken or unexpected file is answered in a sentence that names it and says what to do."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import shutil
import struct
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pye57
import pytest

from inlier.io import FORMATS, UnusableFileError, read_image, read_table, write_table

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(200, 3))
SINGLE_CELLS = Path(__file__).parent / "single_cells"
SUFFIXES = [format.suffixes[0] for format in FORMATS if not format.is_folder]
READ_ONLY = [suffix for format in FORMATS if not format.is_written for suffix in format.suffixes]
ANY_BEGINNING = (".csv", ".tsv", ".txt", ".xyz", ".jsonl", ".vec", ".obj", ".bin")  # of such a file is such a file
ROBBED = pickle.dumps(print)


def refusal(source, **options):
    """The sentence with which a file is refused; no other exception, no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnusableFileError) as caught:
            read_table(source, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def content_for(suffix):
    if suffix in (".png", ".jpg", ".tif"):
        return RNG.integers(0, 255, (40, 40, 3), dtype=np.uint8)
    return POINTS


def write_whole(path):
    """A sound file, also of formats that are read and not written."""
    if path.suffix not in READ_ONLY:
        write_table(path, content_for(path.suffix))
    elif path.suffix in (".h5ad", ".h5mu"):
        shutil.copy(SINGLE_CELLS / {".h5ad": "proteins.h5ad", ".h5mu": "both.h5mu"}[path.suffix], path)
    elif path.suffix == ".bin":
        np.column_stack([POINTS, POINTS[:, 0]]).astype("<f4").tofile(path)
    elif path.suffix == ".stl":
        triangles = np.zeros(200, dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
        triangles["corners"] = POINTS[:, None] + POINTS[None, :3]
        path.write_bytes(bytes(80) + struct.pack("<I", 200) + triangles.tobytes())
    elif path.suffix == ".e57":
        file = pye57.E57(str(path), mode="w")
        file.write_scan_raw(dict(zip(("cartesianX", "cartesianY", "cartesianZ"), POINTS.T, strict=True)))
        file.close()
    else:
        begin, head = {".pts": ("", "200\n"), ".obj": ("v ", "")}[path.suffix]
        path.write_text(head + "".join(f"{begin}{x} {y} {z}\n" for x, y, z in POINTS))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing(tmp_path, suffix):
    assert "there is no file" in refusal(tmp_path / f"absent{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_empty(tmp_path, suffix):
    (tmp_path / f"empty{suffix}").write_bytes(b"")
    assert "is empty (0 bytes)" in refusal(tmp_path / f"empty{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_folder_where_a_file_is_meant(tmp_path, suffix):
    (tmp_path / f"folder{suffix}").mkdir()
    assert "is a folder, not a file" in refusal(tmp_path / f"folder{suffix}")


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".zarr"])
def test_symlink_loop(tmp_path, suffix):
    path, other = tmp_path / f"loop{suffix}", tmp_path / "other"
    path.symlink_to(other)
    other.symlink_to(path)
    assert "symbolic links go round in a circle" in refusal(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_wrong_magic(tmp_path, suffix):
    path = tmp_path / f"other{suffix}"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) if suffix != ".png" else b"GIF89a" + bytes(range(256)))
    sentence = refusal(path)
    assert str(path) in sentence
    if next(format for format in FORMATS if suffix in format.suffixes).starts and suffix != ".png":
        assert "It looks like png: rename it to end in .png" in sentence


@pytest.mark.parametrize("share", [0.3, 0.6, 0.97])
@pytest.mark.parametrize("suffix", [suffix for suffix in SUFFIXES if suffix not in ANY_BEGINNING])
def test_cut_short(tmp_path, suffix, share):
    path = tmp_path / f"whole{suffix}"
    write_whole(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    assert str(path) in refusal(path)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_noise_after_the_first_bytes_never_escapes_as_another_error(tmp_path, suffix, seed):
    path = tmp_path / f"noisy{suffix}"
    write_whole(path)
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    for place in rng.integers(16, len(content), 12):
        content[place] = rng.integers(256)
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read_table(path)
        except UnusableFileError as error:
            assert str(path) in str(error)  # noqa: PT017 - some noise leaves a file that can still be read


def test_zarr(tmp_path):
    (tmp_path / "file.zarr").write_text("words")
    assert "is a file, not a folder" in refusal(tmp_path / "file.zarr")
    (tmp_path / "empty.zarr").mkdir()
    assert "could not be read as zarr" in refusal(tmp_path / "empty.zarr")
    write_table(tmp_path / "broken.zarr", POINTS)
    (tmp_path / "broken.zarr" / "zarr.json").write_text("{")
    assert "could not be read as zarr" in refusal(tmp_path / "broken.zarr")


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("data", "has no suffix"),
        ("data.docx", "'.docx', which is not a format that is known here"),
        ("data.pkl", "Pickles are never loaded"),
        ("data.gz", "Name it after what is inside"),
        ("data.xls", "Save the sheet as csv or xlsx"),
    ],
)
def test_unknown_suffix(tmp_path, name, cure):
    (tmp_path / name).write_bytes(b"words")
    sentence = refusal(tmp_path / name)
    assert cure in sentence
    assert "Known are: .arrow .bin .csv .csv.gz" in sentence


def test_not_allowed(tmp_path, monkeypatch):
    path = tmp_path / "secret.csv"
    path.write_text("a\n1\n")
    path.chmod(0)
    if os.access(path, os.R_OK):  # the superuser may read everything

        def denied(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("inlier.io.read._head", denied)
    assert "could not be opened: permission denied" in refusal(path)


class TestPickles:
    """A file must not be able to run code."""

    def test_npy(self, tmp_path):
        np.save(tmp_path / "objects.npy", np.array([{"a": 1}, print], dtype=object), allow_pickle=True)
        assert "holds Python objects (a pickle), which are never loaded" in refusal(tmp_path / "objects.npy")

    def test_a_bare_pickle_named_npy(self, tmp_path):
        (tmp_path / "bare.npy").write_bytes(ROBBED)
        assert "does not start like one" in refusal(tmp_path / "bare.npy")

    def test_npz(self, tmp_path):
        np.savez(tmp_path / "objects.npz", a=np.array([print], dtype=object))
        assert "holds Python objects (a pickle)" in refusal(tmp_path / "objects.npz")

    def test_a_bare_pickle_inside_npz(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "bare.npz", "w") as archive:
            archive.writestr("a.npy", ROBBED)
        assert "bare.npz holds no array to read" in refusal(tmp_path / "bare.npz")

    def test_hdf5(self, tmp_path):
        import h5py

        with h5py.File(tmp_path / "objects.h5", "w") as file:
            file.create_dataset("a", data=[b"one", b"two"], dtype=h5py.special_dtype(vlen=bytes))
        assert "a in " in (sentence := refusal(tmp_path / "objects.h5"))
        assert "holds objects, which are not read" in sentence

    def test_parquet_bytes(self, tmp_path):
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"a": [ROBBED]}), tmp_path / "bytes.parquet")
        assert "column 'a'" in refusal(tmp_path / "bytes.parquet")

    def test_nothing_is_written(self, tmp_path):
        with pytest.raises(ValueError, match="Object arrays cannot be saved"):
            write_table(tmp_path / "objects.npy", np.array([print], dtype=object))
        assert list(tmp_path.iterdir()) == []


class TestBombs:
    """Small files that unpack to much are stopped before the memory is taken; the limit is 1 MiB here."""

    @pytest.fixture(autouse=True)
    def low_limit(self, monkeypatch):
        monkeypatch.setenv("INLIER_MAX_UNPACKED", str(1 / 1024))

    zeros = np.zeros((200_000, 3))

    @pytest.mark.parametrize(
        "suffix", [".npz", ".csv.gz", ".txt.gz", ".parquet", ".nii.gz", ".gii", ".h5", ".tif", ".zarr"]
    )
    def test_bomb(self, tmp_path, suffix):
        content = np.zeros((1000, 1100), dtype=np.uint8) if suffix == ".tif" else self.zeros
        path = tmp_path / f"bomb{suffix}"
        write_table(path, content)
        sentence = refusal(path)
        assert "over the limit of 1.0 MiB" in sentence
        assert "If you trust it" in sentence
        assert "INLIER_MAX_UNPACKED" in sentence

    def test_the_limit_can_be_raised(self, tmp_path, monkeypatch):
        write_table(tmp_path / "large.npz", self.zeros)
        monkeypatch.setenv("INLIER_MAX_UNPACKED", "1")
        assert len(read_table(tmp_path / "large.npz")) == 200_000
        monkeypatch.setenv("INLIER_MAX_UNPACKED", "much")
        assert "must be a number of GiB" in refusal(tmp_path / "large.npz")

    def test_the_usual_limit_depends_on_the_machine(self, monkeypatch):
        from inlier.io.limits import most_unpacked_bytes

        monkeypatch.delenv("INLIER_MAX_UNPACKED")
        assert most_unpacked_bytes() > 2**28

    def test_uncompressed_files_are_not_limited(self, tmp_path):
        write_table(tmp_path / "plain.npy", self.zeros)
        write_table(tmp_path / "plain.csv", self.zeros)
        assert len(read_table(tmp_path / "plain.npy")) == len(read_table(tmp_path / "plain.csv")) == 200_000

    def test_npz_that_lies_about_its_size(self, tmp_path):
        """The array's own header announces more than the archive does."""
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
        with zipfile.ZipFile(tmp_path / "lie.npz", "w") as archive:
            archive.writestr("a.npy", header.getvalue())
        assert "lie.npz does not fit into memory" in refusal(tmp_path / "lie.npz")

    def test_npy_that_lies_about_its_size(self, tmp_path):
        with (tmp_path / "lie.npy").open("wb") as stream:
            np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
        assert "lie.npy is cut short" in refusal(tmp_path / "lie.npy")

    @pytest.mark.parametrize("side", [1_000, 60_000])
    def test_png(self, tmp_path, side):
        def chunk(name, data):
            return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

        head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
        (tmp_path / "bomb.png").write_bytes(picture)
        assert "If you trust it" in refusal(tmp_path / "bomb.png")

    def test_pcd(self, tmp_path):
        head = "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 1000000\nHEIGHT 1\n"
        head += "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 1000000\nDATA binary_compressed\n"
        (tmp_path / "bomb.pcd").write_bytes(head.encode() + struct.pack("<II", 100, 12_000_000) + bytes(100))
        assert "unpacks to 11.4 MiB, over the limit of 1.0 MiB" in refusal(tmp_path / "bomb.pcd")

    def test_ply_that_announces_more_than_memory(self, tmp_path):
        (tmp_path / "lie.ply").write_text(
            "ply\nformat ascii 1.0\nelement vertex 999999999999999\nproperty double x\nend_header\n1\n"
        )
        assert "lie.ply was cut short, or its header is wrong" in refusal(tmp_path / "lie.ply")


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_columns_of_one_name(tmp_path, name):
    import pyarrow
    import pyarrow.feather
    import pyarrow.parquet

    table = pyarrow.Table.from_arrays([pyarrow.array([1.0, 2.0])] * 3, names=["a", "b", "a"])
    write = pyarrow.parquet.write_table if name.endswith("parquet") else pyarrow.feather.write_feather
    write(table, tmp_path / name)
    with pytest.raises(UnusableFileError, match="more than one column named 'a'"):
        read_table(tmp_path / name)
    assert len(read_table(tmp_path / name, columns=["b"])) == 2


class TestText:
    def refuse(self, tmp_path, text, name="table.csv", **options):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return refusal(tmp_path / name, **options)

    def test_ragged(self, tmp_path):
        sentence = self.refuse(tmp_path, "a,b\n1,2\n3\n")
        assert "is ragged: the row '3' has 1 fields where the first has 2. Fill or drop it" in sentence

    def test_text_in_a_column(self, tmp_path):
        sentence = self.refuse(tmp_path, "id,a\nada,1\nbob,2\n")
        assert "column 'id' of" in sentence
        assert "does not hold numbers (for example 'ada')" in sentence
        assert "--key id" in sentence

    def test_text_beside_the_key(self, tmp_path):
        sentence = self.refuse(tmp_path, "id,a\nada,1\nbob,x\n", key="id")
        assert "column 'a' of" in sentence
        assert "Leave it out with --columns ^a" in sentence

    def test_a_column_that_is_not_there(self, tmp_path):
        assert "has no column named 'c'; it has a, b" in self.refuse(tmp_path, "a,b\n1,2\n", columns=["c"])
        assert "has no column named 'c'; it has a, b" in self.refuse(tmp_path, "a,b\n1,2\n", key="c")

    def test_named_and_left_out_at_once(self, tmp_path):
        assert "either named or left out with ^" in self.refuse(tmp_path, "a,b\n1,2\n", columns=["a", "^b"])
        assert "has no column named 'c'" in self.refuse(tmp_path, "a,b\n1,2\n", columns=["^c"])
        write_table(tmp_path / "table.npz", {"a": np.zeros(3), "b": np.zeros(3)})
        assert "has no column named 'c'" in refusal(tmp_path / "table.npz", columns=["^c"])

    def test_nothing_but_the_key(self, tmp_path):
        assert "no column of numbers beside the key" in self.refuse(tmp_path, "id\n1\n2\n", key="id")

    def test_header_only(self, tmp_path):
        assert "has a header but no rows" in self.refuse(tmp_path, "a,b\n")

    def test_blank(self, tmp_path):
        assert "nothing but blank lines" in self.refuse(tmp_path, "\n\n  \n")

    def test_two_columns_of_one_name(self, tmp_path):
        assert "more than one column named 'a'" in self.refuse(tmp_path, "a,a\n1,2\n")

    def test_binary(self, tmp_path):
        assert "is not a text file" in self.refuse(tmp_path, b"a,b\n\0\0\0")

    def test_latin_1(self, tmp_path):
        assert "is not UTF-8 text" in self.refuse(tmp_path, "größe,b\n1,2\n".encode("latin-1"))

    def test_blank_separated(self, tmp_path):
        assert "If it has a header or commas, name it .csv" in self.refuse(tmp_path, "1 2\na b\n", "table.txt")
        assert "changed from 2 to 1 at row 2" in self.refuse(tmp_path, "1 2\n3\n", "table.txt")
        assert "holds no numbers" in self.refuse(tmp_path, "# words\n", "table.txt")

    def test_gz_inside(self, tmp_path):
        assert "could not be read as gzipped csv" in self.refuse(tmp_path, b"\x1f\x8b" + bytes(40), "table.csv.gz")
        whole = gzip.compress(b"a,b\n" + b"1,2\n" * 10_000)
        assert "ended before the end-of-stream" in self.refuse(tmp_path, whole[:-20], "table.csv.gz")


class TestContainers:
    @pytest.mark.parametrize("suffix", [".npz", ".h5", ".zarr"])
    def test_several_arrays(self, tmp_path, suffix):
        path = tmp_path / f"several{suffix}"
        write_table(path, {"X": POINTS, "Y": POINTS})
        sentence = refusal(path)
        assert "holds 2 arrays: X (200, 3), Y (200, 3)" in sentence
        assert f"Choose one, for example {path}:X" in sentence
        assert "has no array named 'Z'; it has X, Y" in refusal(f"{path}:Z")

    def test_shapes(self, tmp_path):
        write_table(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
        assert "shape (2, 2, 2)" in refusal(tmp_path / "cube.npy")
        write_table(tmp_path / "number.npy", np.array(3.0))
        assert "shape ()" in refusal(tmp_path / "number.npy")
        np.savez(tmp_path / "nothing.npz")
        assert "holds no array" in refusal(tmp_path / "nothing.npz")

    def test_kinds(self, tmp_path):
        for values, kind in (
            (np.array(["a"]), "text"),
            (np.array([1j]), "complex"),
            (np.array(["2020"], "M8"), "datetime"),
        ):
            write_table(tmp_path / "values.npy", values)
            assert kind in refusal(tmp_path / "values.npy")

    def test_columns_without_names(self, tmp_path):
        write_table(tmp_path / "values.npy", POINTS)
        assert "counted 0 to 2" in refusal(tmp_path / "values.npy", columns=["3"])
        assert "holds one array without names" in refusal(tmp_path / "values.npy", key="id")
        assert read_table(tmp_path / "values.npy", columns=["2"]).values[:, 0].tolist() == POINTS[:, 2].tolist()

    def test_a_key_of_another_length(self, tmp_path):
        write_table(tmp_path / "values.npz", {"X": POINTS, "id": np.arange(3)})
        assert "there must be one name per row" in refusal(f"{tmp_path / 'values.npz'}:X", key="id")

    def test_hdf5_that_points_to_other_files(self, tmp_path):
        import h5py

        (tmp_path / "secret").write_bytes(bytes(80))
        with h5py.File(tmp_path / "outside.h5", "w") as file:
            file.create_dataset("a", (10,), dtype="f8", external=[(str(tmp_path / "secret"), 0, 80)])
        assert "keeps its data in other files" in refusal(tmp_path / "outside.h5")


def test_points_without_vertices(tmp_path):
    (tmp_path / "faces.ply").write_text(
        "ply\nformat ascii 1.0\nelement face 1\nproperty list uchar int v\nend_header\n1 0\n"
    )
    assert "has no vertices; it has face" in refusal(tmp_path / "faces.ply")


def test_what_cannot_be_written(tmp_path):
    for name, content, message in (
        ("a.npy", {"x": POINTS[:, 0], "y": POINTS[:, 1]}, "can hold one array only"),
        ("a.ply", POINTS[:, :2], "points of three coordinates"),
        ("a.pcd", {"x": POINTS[:, 0]}, "needs columns x, y and z"),
        ("a.png", np.zeros((3, 3, 3), dtype=np.float32), "write tiff instead"),
        ("a.jpg", np.zeros((3, 3, 3), dtype=np.uint16), "write tiff instead"),
        ("a.png", {"x": POINTS[:, 0]}, "is a picture"),
        ("a.docx", POINTS, "Known are"),
    ):
        with pytest.raises(UnusableFileError, match=message) as caught:
            write_table(tmp_path / name, content)
        assert str(tmp_path / name) in str(caught.value)
        assert list(tmp_path.iterdir()) == []


def test_an_image_is_asked_for(tmp_path):
    write_table(tmp_path / "values.npy", POINTS)
    with pytest.raises(UnusableFileError, match="is not a picture but npy"):
        read_image(tmp_path / "values.npy")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    with pytest.raises(UnusableFileError, match="could not be read as png"):
        read_image(tmp_path / "broken.png")


def test_a_folder_is_called_a_folder(tmp_path):
    with pytest.raises(UnusableFileError, match="is a folder"):
        read_table(tmp_path)
