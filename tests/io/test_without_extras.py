"""csv, tsv, txt, ply and pcd are read and written without the extra, and alike."""

import gzip
import sys

import numpy as np
import plyfile
import pypcd4
import pytest

from inlier.exceptions import UnusableFileError
from inlier.io import column_names, read_labels, read_table, write_blocks, write_table

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(20, 3))
TEXTS = {
    "header": "id,a,b\nx,1,2.5\ny,,-3e4\n",
    "no header": "1,2\n3,4\n",
    "semicolons": "id;a;b\nx;1,5;2\ny;NA;4,25\n",
    "quotes": 'id,a,b\n"x, y",1,"2"\n"a ""b""",3,4\n',
    "blank lines": "id,a,b\nx,1,2\n\ny,3,4\n\n",
    "line breaks": "id,a,b\r\nx,1,2\r\ny,3,4\r\n",
    "byte order mark": "\ufeffid,a,b\nx,1,2\n",
    "one column": "a\n1\n\n3\n\n",
    "R": "a\tb\nr1\t1\t2\nr2\t3\t4\n",
    "tabs": "id\ta\tb\nx\t1\t2\n",
}
BAD = {
    "ragged": "a,b\n1,2\n3\n",
    "not a number": "a,b\n1,2\n3,x\n",
    "underscores": "a,b\n1,2\n3,1_000\n",
    "no rows": "a,b\n",
}


@pytest.fixture
def no_extras(monkeypatch):
    for library in ("pyarrow", "plyfile", "pypcd4"):
        monkeypatch.setitem(sys.modules, library, None)


def both(path, monkeypatch, **how):
    """What pyarrow makes of a file, and what is made of it without."""
    with_it = read_table(path, **how)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "pyarrow", None)
        return with_it, read_table(path, **how)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_text_is_read_alike(name, packed, tmp_path, monkeypatch):
    path = tmp_path / ("table.csv.gz" if packed else "table.csv")
    data = TEXTS[name].encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    key = "id" if "id" in column_names(path) else None
    first, second = both(path, monkeypatch, key=key)
    np.testing.assert_array_equal(first.values, second.values)
    assert first.columns == second.columns
    assert (first.keys is None) == (second.keys is None)
    if first.keys is not None:
        assert first.keys.tolist() == second.keys.tolist()


@pytest.mark.parametrize("name", BAD)
def test_text_is_refused_alike(name, tmp_path, monkeypatch):
    (tmp_path / "bad.csv").write_text(BAD[name])
    said = []
    for _ in range(2):
        with pytest.raises(UnusableFileError) as error:
            read_table(tmp_path / "bad.csv")
        said.append(str(error.value))
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert said[0] == said[1]


def test_written_without_it_is_read_with_it(tmp_path, monkeypatch):
    columns = {
        "id": np.array(["a,b", 'c"d', "e\nf"]),
        "x": np.array([0.1, np.pi, 1e-300]),
        "in": np.array([True, False, True]),
    }
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "pyarrow", None)
        write_table(tmp_path / "a.csv", columns)

        def blocks(*names):
            for rows in (slice(0, 2), slice(2, 3)):
                yield {name: columns[name][rows] for name in names}

        write_blocks(tmp_path / "b.tsv.gz", {name: column.dtype for name, column in columns.items()}, 3, blocks)
    for path in (tmp_path / "a.csv", tmp_path / "b.tsv.gz"):
        table = read_table(path, key="id", columns=["x"])
        assert table.keys.tolist() == columns["id"].tolist()
        assert table.values[:, 0].tolist() == columns["x"].tolist()
        assert read_labels(path, "in").tolist() == ["true", "false", "true"]


def test_what_r_writes(tmp_path):
    """write.table(d, "r.txt") and write.table(d, "r.tsv", sep = "\\t"): the column of row names has no name."""
    (tmp_path / "r.txt").write_text('"height" "weight"\n"ada" 1.7 61\n"bob b" 1.8 NA\n')
    (tmp_path / "r.tsv").write_text('"height"\t"weight"\n"ada"\t1.7\t61\n"bob b"\t1.8\tNA\n')
    for path in (tmp_path / "r.txt", tmp_path / "r.tsv"):
        with pytest.warns(UserWarning, match="row names of a data frame"):
            table = read_table(path)
        assert table.columns == ("height", "weight")
        np.testing.assert_array_equal(table.values, [[1.7, 61], [1.8, np.nan]])
        assert read_table(path, key="").keys.tolist() == ["ada", "bob b"]


def test_a_header_of_a_txt_file(tmp_path):
    (tmp_path / "a.txt").write_text("x y site\n1 2 here\n3 4 there\n")
    assert read_table(tmp_path / "a.txt", columns=["x", "y"]).values.tolist() == [[1, 2], [3, 4]]
    assert read_table(tmp_path / "a.txt", columns=["^site"]).values.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(UnusableFileError, match=r"column 'site' of .* does not hold numbers"):
        read_table(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("1,2\n3,4\n")
    assert read_table(tmp_path / "b.txt").values.tolist() == [[1, 2], [3, 4]]


VERTICES = np.rec.fromarrays([*TABLE.T, np.arange(20, dtype=np.uint8)], names="x,y,z,red")


@pytest.mark.parametrize("how", [{"text": True}, {"byte_order": ">"}, {"byte_order": "<"}], ids=str)
def test_ply_without_plyfile(how, tmp_path, no_extras, monkeypatch):
    monkeypatch.setitem(sys.modules, "plyfile", plyfile)
    faces = np.empty(2, dtype=[("vertex_indices", "O")])
    faces["vertex_indices"] = [np.arange(3, dtype=np.int32)] * 2
    cameras = np.rec.fromarrays([np.arange(2, dtype=np.int16)], names="number")
    elements = [plyfile.PlyElement.describe(*e) for e in ((cameras, "camera"), (VERTICES, "vertex"), (faces, "face"))]
    plyfile.PlyData(elements, comments=["made here"], **how).write(str(tmp_path / "a.ply"))
    plyfile.PlyData(elements[::-1], **how).write(str(tmp_path / "faces-first.ply"))
    assert read_table(tmp_path / "faces-first.ply").values.shape == (20, 3)
    monkeypatch.setitem(sys.modules, "plyfile", None)
    table = read_table(tmp_path / "a.ply", columns=["x", "y", "z", "red"])
    np.testing.assert_array_equal(table.values, np.column_stack([TABLE, np.arange(20)]))
    with pytest.raises(ImportError, match="pip install 'plyfile'"):
        read_table(tmp_path / "faces-first.ply")


def test_ply_and_pcd_are_written_without_extras(tmp_path, no_extras, monkeypatch):
    for suffix in ("ply", "pcd"):
        write_table(tmp_path / f"a.{suffix}", {name: VERTICES[name] for name in VERTICES.dtype.names})
        np.testing.assert_array_equal(read_table(tmp_path / f"a.{suffix}").values, TABLE)
    monkeypatch.setitem(sys.modules, "plyfile", plyfile)
    monkeypatch.setitem(sys.modules, "pypcd4", pypcd4)
    np.testing.assert_array_equal(plyfile.PlyData.read(tmp_path / "a.ply")["vertex"]["red"], np.arange(20))
    np.testing.assert_array_equal(pypcd4.PointCloud.from_path(tmp_path / "a.pcd").numpy(("x", "y", "z")), TABLE)


@pytest.mark.parametrize("encoding", list(pypcd4.Encoding))
def test_pcd_without_pypcd4(encoding, tmp_path, monkeypatch):
    points = np.tile(np.arange(3.0), (200, 1))  # that can be packed
    types = [np.float64] * 3 + [np.uint16]
    cloud = pypcd4.PointCloud.from_points([*points.T, np.arange(200)], ["x", "y", "z", "ring"], types)
    cloud.save(tmp_path / "a.pcd", encoding)
    expected = read_table(tmp_path / "a.pcd", columns=["x", "ring"]).values
    monkeypatch.setitem(sys.modules, "pypcd4", None)
    if "compressed" in encoding.value:
        with pytest.raises(ImportError, match="compressed pcd files need pypcd4"):
            read_table(tmp_path / "a.pcd")
    else:
        np.testing.assert_allclose(read_table(tmp_path / "a.pcd", columns=["x", "ring"]).values, expected)
        np.testing.assert_allclose(expected, np.column_stack([points[:, 0], np.arange(200)]), rtol=1e-6)


def test_clouds_that_are_cut_short(tmp_path, no_extras):
    (tmp_path / "a.ply").write_text("ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nend_header\n1\n2\n x\n")
    with pytest.raises(UnusableFileError):
        read_table(tmp_path / "a.ply")
    (tmp_path / "b.ply").write_text("ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nend_header\n1\n2 3\n")
    with pytest.raises(UnusableFileError, match="cut short: it announces 2 points and holds 1"):
        read_table(tmp_path / "b.ply")
