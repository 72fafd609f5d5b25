"""What may a file make us do? Hold numbers, and nothing else: no code, no other files, no flood, no standstill."""

from __future__ import annotations

import ast
import base64
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

import inlier
from inlier.io import UnusableFileError, open_stored, read_photo, read_table, write_like, write_table

TABLE = np.random.default_rng(0).normal(size=(10, 3))
LIMIT = 64  # MiB that a file may unpack to in these tests
READ = """
import resource, sys, warnings
from inlier.io import UnusableFileError, read_table
warnings.simplefilter("ignore")
for module in sys.argv[2].split(","):
    __import__(module)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_table(sys.argv[1], key=sys.argv[3] or None)
    print("read")
except UnusableFileError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def refusal(path, **options):
    with pytest.raises(UnusableFileError) as caught:
        read_table(path, **options)
    return str(caught.value)


def read_in_child(path, modules, key=""):
    """What a process of its own says that reads a file, and how many MiB it took for that."""
    environment = {**os.environ, "INLIER_MAX_UNPACKED": str(LIMIT / 1024), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", READ, str(path), f"numpy,{modules}", key]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=True)
    said, taken = done.stdout.strip().rsplit("\n", 1)
    return said, int(taken)


class Canary:
    """An object that leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


class TestCode:
    """R1: a zarr folder whose codecs unpickle, compile or call anything."""

    @pytest.mark.parametrize("dtype", ["<f8", "|O"])
    @pytest.mark.parametrize(
        "packing",
        [
            {"filters": [{"id": "pickle"}], "compressor": None},
            {"filters": None, "compressor": {"id": "pickle"}},
            {"filters": [{"id": "vlen-utf8"}, {"id": "pickle"}], "compressor": None},
            {"filters": [{"id": "vlen-utf8"}], "compressor": {"id": "pickle"}},
            {"filters": [{"id": "json2"}, {"id": "msgpack2"}], "compressor": None},
            {"filters": [{"id": "somebody_elses"}], "compressor": None},
        ],
    )
    def test_second_version(self, tmp_path, dtype, packing):
        store, canary = tmp_path / "d.zarr", tmp_path / "canary"
        store.mkdir()
        metadata = {
            "zarr_format": 2,
            "shape": [10, 3],
            "chunks": [10, 3],
            "dtype": dtype,
            "fill_value": 0,
            "order": "C",
        }
        (store / ".zarray").write_text(json.dumps({**metadata, **packing}))
        (store / "0.0").write_bytes(pickle.dumps(Canary(canary)))
        assert "which is not on the list" in refusal(store)
        assert open_stored(store) is None
        assert not canary.exists()

    def test_third_version_groups_and_consolidated_metadata(self, tmp_path):
        store = tmp_path / "d.zarr"
        for place, metadata in (
            ("deep/zarr.json", {"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle"}]}),
            ("zarr.json", {"consolidated_metadata": {"metadata": {"deep": {"codecs": [{"name": "pickle"}]}}}}),
            (
                "zarr.json",
                {"codecs": [{"name": "sharding_indexed", "configuration": {"codecs": [{"name": "pickle"}]}}]},
            ),
            (".zmetadata", {"metadata": {"a/.zarray": {"filters": [{"id": "pickle"}], "compressor": None}}}),
        ):
            write_table(store, {"a": TABLE})
            (store / place).parent.mkdir(exist_ok=True)
            (store / place).write_text(json.dumps(metadata))
            assert "'pickle'" in refusal(store)
            import shutil

            shutil.rmtree(store)

    def test_nothing_here_unpickles_or_evaluates(self):
        """No line of the package loads what could run code, and every array file is opened without pickles."""
        for path in sorted(Path(inlier.__file__).parent.rglob("*.py")):
            for call in [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]:
                name = ast.unparse(call.func)
                assert name not in ("eval", "exec", "compile", "os.system", "yaml.load", "marshal.loads"), path
                assert not re.fullmatch(r"(pickle|joblib|dill|torch|shelve|cloudpickle)\.(loads?|open)", name), path
                assert "read_pickle" not in name, path
                if name == "np.load":
                    allowed = [word.value for word in call.keywords if word.arg == "allow_pickle"]
                    assert [ast.unparse(value) for value in allowed] == ["False"], path

    def test_what_is_the_users_own_is_not_looked_at(self, tmp_path):
        write_table(tmp_path / "d.zarr", TABLE)
        metadata = json.loads((tmp_path / "d.zarr" / "zarr.json").read_text())
        metadata["attributes"] = {"filters": ["red", "green"]}
        (tmp_path / "d.zarr" / "zarr.json").write_text(json.dumps(metadata))
        assert len(read_table(tmp_path / "d.zarr")) == 10

    def test_photos_that_start_programs(self, tmp_path):
        """Pillow has Ghostscript draw PostScript."""
        (tmp_path / "photo.png").write_bytes(
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 64 64\n%%EndComments\nshowpage\n"
        )
        with pytest.raises(UnusableFileError, match="no image of a known kind"):
            read_photo(tmp_path / "photo.png")

    def test_parquet_extension_types_and_lists(self, tmp_path):
        import pyarrow
        import pyarrow.parquet

        field = pyarrow.field("a", pyarrow.float64(), metadata={"ARROW:extension:name": "somebody.elses"})
        table = pyarrow.table([pyarrow.array([1.0])], schema=pyarrow.schema([field]))
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # older versions say that they do not unpickle it
            assert read_table(tmp_path / "a.parquet").values.tolist() == [[1.0]]  # as the numbers that it holds
        pyarrow.parquet.write_table(pyarrow.table({"a": [[["x"]]]}), tmp_path / "b.parquet")
        assert "column 'a' of" in refusal(tmp_path / "b.parquet")


class TestOtherFiles:
    """R8: no reader follows what a file says about other files."""

    def test_gifti(self, tmp_path):
        (tmp_path / "secret").write_bytes(bytes(120))
        write_table(tmp_path / "a.gii", TABLE)
        text = (tmp_path / "a.gii").read_text()
        external = text.replace('Encoding="GZipBase64Binary"', 'Encoding="ExternalFileBinary"')
        external = external.replace('ExternalFileName=""', 'ExternalFileName="secret"')
        assert external != text
        (tmp_path / "a.gii").write_text(external)
        assert "keeps its data in other files, which are not followed" in refusal(tmp_path / "a.gii")

    def test_gifti_entities(self, tmp_path):
        write_table(tmp_path / "a.gii", TABLE)
        head, rest = (tmp_path / "a.gii").read_text().split("<GIFTI", 1)
        head = head.split("<!DOCTYPE")[0] + '<!DOCTYPE GIFTI [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n'
        (tmp_path / "a.gii").write_text(f"{head}<GIFTI{rest}")
        assert "declares entities" in refusal(tmp_path / "a.gii")

    def test_zarr_links(self, tmp_path):
        write_table(tmp_path / "a.zarr", TABLE)
        (tmp_path / "secret").write_bytes(bytes(240))
        chunk = next(path for path in (tmp_path / "a.zarr" / "c").rglob("*") if path.is_file())
        chunk.unlink()
        chunk.symlink_to(tmp_path / "secret")
        assert "has a link in it" in refusal(tmp_path / "a.zarr")

    def test_hdf5_filters(self, tmp_path):
        import h5py

        with h5py.File(tmp_path / "a.h5", "w") as file:
            settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            settings.set_chunk((10, 3))
            settings.set_filter(32013, h5py.h5z.FLAG_OPTIONAL, ())
            space, kind = h5py.h5s.create_simple((10, 3)), h5py.h5t.IEEE_F64LE
            h5py.h5d.create(file.id, b"a", kind, space, settings)
        assert "packed with filter 32013" in refusal(tmp_path / "a.h5")


class TestMemory:
    """R5: the limit holds for what a file unpacks to, however it is hidden; each in a process of its own."""

    def check(self, path, modules, key="", said="over the limit of 64.0 MiB", most=LIMIT + 64):
        answer, taken = read_in_child(path, modules, key)
        assert said in answer
        assert taken < most

    def test_parquet_dictionary(self, tmp_path):
        import pyarrow
        import pyarrow.parquet

        ids = pyarrow.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), ["x" * 30_000])
        table = pyarrow.table({"id": ids, "a": np.arange(100_000.0)})
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
        self.check(tmp_path / "a.parquet", "pyarrow.parquet", "id")

    def test_feather(self, tmp_path):
        import pyarrow
        import pyarrow.feather

        table = pyarrow.table({"a": np.zeros(25_000_000)})
        pyarrow.feather.write_feather(table, tmp_path / "a.feather", compression="zstd")
        assert (tmp_path / "a.feather").stat().st_size < 2**20
        self.check(tmp_path / "a.feather", "pyarrow.feather")

    @pytest.mark.parametrize(
        ("name", "start", "piece", "said"),
        [
            ("wide.vec.gz", b"a ", b"00 ", "over the limit"),  # lists of short texts take twenty times their length
            ("long.vec.gz", b"", b"a 1\n", "over the limit"),
            ("wide.txt.gz", b"", b"00 ", "over the limit"),
            ("named.txt.gz", b"a b\n1 2\n", b"00 ", "over the limit"),
            ("wide.csv.gz", b"", b"00,", "a first line of more than a MiB"),  # which took 2 GiB, and for ever
            ("long.csv.gz", b"", b"1,2\n", "over the limit"),
        ],
    )
    def test_texts(self, tmp_path, name, start, piece, said):
        import gzip

        (tmp_path / name).write_bytes(gzip.compress(start + piece * (24 * 2**20 // len(piece)), 1))
        self.check(tmp_path / name, "pyarrow.csv", said=said, most=LIMIT + 128)

    @pytest.mark.parametrize(
        ("start", "piece", "end", "said"),
        [
            (b'<row a="', b"x", b'"/>', "a tag of more than a MiB"),  # an hour: parsers begin it again and again
            (b"<!--", b"x", b"-->", "a tag of more than a MiB"),
            (b"", b"<a>", b"", "over the limit"),
        ],
    )
    def test_xlsx(self, tmp_path, start, piece, end, said):
        import zipfile

        write_table(tmp_path / "a.xlsx", TABLE)
        part, length = "xl/worksheets/sheet1.xml", 24 * 2**20
        with zipfile.ZipFile(tmp_path / "a.xlsx") as old:
            parts = {name: old.read(name) for name in old.namelist()}
        parts[part] = b"<worksheet><sheetData>" + start + piece * (length // len(piece)) + end
        with zipfile.ZipFile(tmp_path / "b.xlsx", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
            for name, content in parts.items():
                new.writestr(name, content)
        self.check(tmp_path / "b.xlsx", "xml.parsers.expat", said=said, most=LIMIT + 128)

    def test_hdf5_chunks(self, tmp_path):
        import h5py

        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset("a", (40, 3), "f8", chunks=(20_000_000, 3), maxshape=(None, 3), compression="gzip")
        self.check(tmp_path / "a.h5", "h5py")

    def test_hdf5_chunk_that_unpacks_to_more_than_itself(self, tmp_path):
        import h5py

        with h5py.File(tmp_path / "a.h5", "w") as file:
            dataset = file.create_dataset("a", (20, 3), "f8", chunks=(20, 3), compression="gzip")
            dataset.id.write_direct_chunk((0, 0), zlib.compress(bytes(200 * 2**20), 9))
        self.check(tmp_path / "a.h5", "h5py", said="has a chunk that cannot be whole")

    def test_hdf5_texts(self, tmp_path):
        import h5py

        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["a"] = np.arange(60_000.0)
            file.create_dataset("id", (60_000,), h5py.string_dtype(), fillvalue="x" * 20_000)
        self.check(tmp_path / "a.h5", "h5py", "id")

    @pytest.mark.parametrize("window", [14, 15])
    def test_gifti(self, tmp_path, window):
        write_table(tmp_path / "a.gii", TABLE)
        packer = zlib.compressobj(9, zlib.DEFLATED, window)
        packed = base64.b64encode(packer.compress(bytes(200 * 2**20)) + packer.flush()).decode()
        head, rest = (tmp_path / "a.gii").read_text().split("<Data>")
        (tmp_path / "a.gii").write_text(f"{head}<Data>{packed}</Data>{rest.split('</Data>')[1]}")
        self.check(tmp_path / "a.gii", "nibabel", said="over the limit")

    def test_ply(self, tmp_path):
        (tmp_path / "a.ply").write_text(
            "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n"
            "element face 400000000\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n"
        )
        assert "its header is wrong" in refusal(tmp_path / "a.ply")
        rows = "0\n" * 1_000_000
        (tmp_path / "a.ply").write_text(
            "ply\nformat ascii 1.0\nelement face 1000000\nproperty list uchar int vertex_indices\nend_header\n" + rows
        )
        self.check(tmp_path / "a.ply", "plyfile")

    def test_las(self, tmp_path):
        write_table(tmp_path / "a.las", TABLE)
        content = bytearray((tmp_path / "a.las").read_bytes())
        for place, kind, number in ((107, "<I", 10**9), (247, "<Q", 10**12), (96, "<I", 4_000_000_000)):
            wrong = bytearray(content)
            struct.pack_into(kind, wrong, place, number)
            (tmp_path / "a.las").write_bytes(wrong)
            assert "its header is wrong" in refusal(tmp_path / "a.las")
        self.check(tmp_path / "a.las", "laspy", said="its header is wrong")

    def test_zarr_chunks(self, tmp_path, monkeypatch):
        import zarr
        from zarr.codecs import GzipCodec, ZstdCodec

        monkeypatch.setenv("INLIER_MAX_UNPACKED", str(LIMIT / 1024))
        zarr.create_array(tmp_path / "a.zarr", shape=(10, 3), chunks=(10**8, 3), dtype="f8")
        assert "over the limit" in refusal(tmp_path / "a.zarr")
        for codec, packed in ((GzipCodec(), None), (ZstdCodec(), None)):
            store = tmp_path / f"{type(codec).__name__}.zarr"
            array = zarr.create_array(store, shape=(10, 3), chunks=(10, 3), dtype="f8", compressors=[codec])
            array[:] = TABLE
            chunk = next(path for path in (store / "c").rglob("*") if path.is_file())
            if isinstance(codec, GzipCodec):
                import gzip

                packed = gzip.compress(bytes(200 * 2**20))
            else:
                import numcodecs

                packed = numcodecs.Zstd().encode(bytes(200 * 2**20))
            chunk.write_bytes(packed)
            self.check(store, "zarr")

    def test_tiff_strips(self, tmp_path):
        import tifffile

        packed = zlib.compress(bytes(200 * 2**20), 9)
        tifffile.imwrite(tmp_path / "a.tif", np.zeros((16, 16), np.uint8), compression="zlib")
        with tifffile.TiffFile(tmp_path / "a.tif") as file:
            tags = file.pages[0].tags
            places = {name: tags[name].valueoffset for name in ("StripOffsets", "StripByteCounts")}
            kinds = {name: tags[name].dtype for name in places}
        content = bytearray((tmp_path / "a.tif").read_bytes())
        where = len(content)
        content += packed
        for name, value in (("StripOffsets", where), ("StripByteCounts", len(packed))):
            struct.pack_into("<I" if int(kinds[name]) == 4 else "<H", content, places[name], value)
        (tmp_path / "a.tif").write_bytes(content)
        self.check(tmp_path / "a.tif", "tifffile")


def test_tiff_with_strips_that_are_not_there(tmp_path):
    """They would be read as zeros, any number of them."""
    import tifffile

    pixels = np.random.default_rng(0).integers(0, 256, (40, 30), np.uint8)
    for options in ({"rowsperstrip": 8}, {"tile": (16, 16)}, {"rowsperstrip": 8, "compression": "zlib"}):
        tifffile.imwrite(tmp_path / "a.tif", pixels, **options)
        assert len(read_table(tmp_path / "a.tif")) == pixels.size
        with tifffile.TiffFile(tmp_path / "a.tif") as file:
            place, last = file.pages[0].tags["ImageLength"].valueoffset, file.pages[0].dataoffsets[-1]
        sound = (tmp_path / "a.tif").read_bytes()
        for content in (sound[: last + 1], sound[:place] + struct.pack("<I", 10_000) + sound[place + 4 :]):
            (tmp_path / "a.tif").write_bytes(content)
            with pytest.raises(UnusableFileError, match=r"a\.tif was cut short, or its header is wrong"):
                read_table(tmp_path / "a.tif")


class TestTime:
    """R6: tiny files with absurd counts are refused at once."""

    @pytest.fixture(autouse=True)
    def clock(self):
        start = time.perf_counter()
        yield
        assert time.perf_counter() - start < 5

    def test_pipes(self, tmp_path):
        """Nobody may ever write to them."""
        os.mkfifo(tmp_path / "a.csv")
        assert "is a device or a pipe, not a file" in refusal(tmp_path / "a.csv")

    def test_pcd(self, tmp_path):
        head = "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 2147483648 1\nWIDTH 1\nHEIGHT 1\n"
        head += "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 1\nDATA "
        for kind in ("ascii", "binary", "binary_compressed"):
            (tmp_path / "a.pcd").write_text(f"{head}{kind}\n0 0 0\n")
            assert "a.pcd" in refusal(tmp_path / "a.pcd")

    def test_las(self, tmp_path):
        write_table(tmp_path / "a.las", TABLE)
        content = bytearray((tmp_path / "a.las").read_bytes())
        struct.pack_into("<I", content, 243, 500_000_000)
        (tmp_path / "a.las").write_bytes(content)
        assert "its header is wrong" in refusal(tmp_path / "a.las")

    def test_gifti_of_very_many_dimensions(self, tmp_path):
        write_table(tmp_path / "a.gii", {"a": TABLE[:, 0]})
        content = (tmp_path / "a.gii").read_text()
        assert 'Dimensionality="1"' in content
        (tmp_path / "a.gii").write_text(content.replace('Dimensionality="1"', f'Dimensionality="{2**62}"'))
        assert f"announces arrays of {2**62} dimensions" in refusal(tmp_path / "a.gii")

    def test_csv_with_very_many_columns(self, tmp_path):
        (tmp_path / "a.csv").write_text(
            ",".join(f"c{number}" for number in range(20_000)) + "\n" + "0," * 19_999 + "0\n"
        )
        assert read_table(tmp_path / "a.csv").values.shape == (1, 20_000)

    def test_laz_is_read_as_it_was_tried(self, tmp_path, monkeypatch):
        """Other code for laz takes other memory for a damaged file: what was tried in a copy must be what reads."""
        laspy = pytest.importorskip("laspy", reason="laz needs laspy")
        asked = []

        def noting(what):
            return lambda *given, **options: asked.append(options.get("laz_backend")) or what(*given, **options)

        write_table(tmp_path / "a.laz", TABLE)
        for name in ("read", "open"):
            monkeypatch.setattr(laspy, name, noting(getattr(laspy, name)))
        read_table(tmp_path / "a.laz")
        write_like(read_table(tmp_path / "a.laz"), tmp_path / "b.laz", TABLE)
        assert set(asked) == {laspy.LazBackend.Lazrs}

    def test_laz_table_of_chunks(self, tmp_path):
        write_table(tmp_path / "a.laz", TABLE)
        content = bytearray((tmp_path / "a.laz").read_bytes())
        start = struct.unpack_from("<I", content, 96)[0]
        table = struct.unpack_from("<q", content, start)[0]
        struct.pack_into("<I", content, table + 4, 2**31)
        (tmp_path / "a.laz").write_bytes(content)
        assert "its header is wrong" in refusal(tmp_path / "a.laz")
        struct.pack_into("<q", content, start, 2**40)
        (tmp_path / "a.laz").write_bytes(content)
        assert "its table of chunks is missing" in refusal(tmp_path / "a.laz")


def test_damage_in_two_arrays_of_a_group_is_one_sentence(tmp_path, caplog):
    """zarr opens all arrays at once, and the loop that it runs in logs what failed beside the first."""
    import gc

    write_table(tmp_path / "a.zarr", {"a": np.arange(9.0), "b": np.arange(9.0), "c": np.arange(9.0)})
    for name in "ab":
        metadata = tmp_path / "a.zarr" / name / "zarr.json"
        metadata.write_text(metadata.read_text().replace("chunk_shape", "chunk_shapW"))
    with pytest.raises(UnusableFileError, match=r"a\.zarr could not be read as zarr"):
        read_table(tmp_path / "a.zarr")
    gc.collect()
    assert caplog.text == ""


class TestMisreading:
    """R7: what could have been meant otherwise is said."""

    def read(self, tmp_path, text, name="a.csv"):
        (tmp_path / name).write_text(text)
        return read_table(tmp_path / name)

    @pytest.mark.parametrize("text", ["2019,2020,2021\n1,2,3\n4,5,7\n", "2019,2020\n1.5,2.25\n4.0,5.5\n"])
    def test_a_header_of_numbers(self, tmp_path, text):
        with pytest.warns(UserWarning, match=r"the first line, 2019,2020.*If it names the columns, put a letter"):
            self.read(tmp_path, text)

    def test_whole_numbers_are_no_header(self, tmp_path):
        assert len(self.read(tmp_path, "1,5\n2,3\n7,7\n")) == 3

    def test_an_empty_line_is_a_missing_value_of_one_column(self, tmp_path):
        for text in ("a\n1\n\n3\n", "1\n\n3\n", "a\r\n1\r\n\r\n3\r\n"):
            values = self.read(tmp_path, text).values[:, 0]
            np.testing.assert_array_equal(values, [1, np.nan, 3])
        with pytest.warns(UserWarning, match=r"2 blank line\(s\) at its end were left out"):
            assert len(self.read(tmp_path, "a\n1\n2\n\n\n")) == 2
        with pytest.raises(UnusableFileError, match="blank line between its numbers, line 2"):
            self.read(tmp_path, "1\n\n3\n", "a.txt")
        assert len(self.read(tmp_path, "\n1\n3\n\n", "a.txt")) == 2

    def test_blank_lines_between_rows(self, tmp_path):
        with pytest.warns(UserWarning, match="blank lines between the rows were left out"):
            assert len(self.read(tmp_path, "a,b\n1,2\n\n3,4\n\n")) == 2

    def test_points_and_commas(self, tmp_path):
        with pytest.warns(UserWarning, match=r"12\.345 was read as 12\.345\. If 12345 is meant"):
            assert self.read(tmp_path, "a;b\n12.345;1.5\n1.000;2\n").values[0, 0] == 12.345
        with pytest.warns(UserWarning, match="the comma was read as the decimal point"):
            assert self.read(tmp_path, "a;b\n12,3;1,5\n").values[0, 0] == 12.3

    @pytest.mark.parametrize("kind", ["DATA zip\n", "DATA ASCII\n", "DATA\n", ""])
    def test_pcd_of_no_known_kind(self, tmp_path, kind):
        """Text would be taken for binary numbers."""
        head = "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 2\nHEIGHT 1\nPOINTS 2\n"
        (tmp_path / "a.pcd").write_text(head + kind + "0.25 0.5 0.75\n1.25 1.5 1.75\n")
        with pytest.raises(UnusableFileError, match="no kind of pcd"):
            read_table(tmp_path / "a.pcd")

    @pytest.mark.parametrize(("name", "between"), [("a.csv", ","), ("a.txt", " "), ("a.xyz", " ")])
    def test_a_number_cut_short_at_the_end(self, tmp_path, name, between):
        rows = "\n".join(between.join(f"{value:.6f}" for value in row) for row in TABLE)
        for whole in (rows, rows + "\n"):
            assert len(self.read(tmp_path, whole, name)) == 10
        with pytest.warns(UserWarning, match=rf"{name} ends within a line, with \S+, which is shorter than"):
            self.read(tmp_path, rows[:-4], name)
        with pytest.warns(UserWarning, match=r"with -?0?\.?\d+, which"):
            self.read(tmp_path, "\n".join([rows] * 200)[:-3], name)
