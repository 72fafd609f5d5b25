"""Whole files or none; blocks of a table that is never there as a whole; copies of a file with other points."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from inlier.io import (
    UnusableFileError,
    read_table,
    write_blocks,
    write_csv,
    write_file,
    write_like,
    write_table,
    written_beside,
)

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(4, 3))
TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])

COLUMNS = {"row": np.dtype(np.int64), "score": np.dtype(np.float64), "inlier": np.dtype(bool)}


def blocks(*names):
    for start in range(0, 20, 7):
        row = np.arange(start, min(start + 7, 20))
        block = {"row": row, "score": row / 3, "inlier": row % 2 == 0}
        yield {name: block[name] for name in names}


def moved(points):
    return points @ TURN.T + [100.0, -50.0, 3.0]


def test_folders_are_made_and_content_replaced(tmp_path):
    path = tmp_path / "a" / "b.txt"
    write_file(path, "old")
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in path.parent.iterdir()] == ["b.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "b.txt"
    write_file(path, "old")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["b.txt"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError("no room")])
def test_a_full_disk_names_the_file_that_was_asked_for(tmp_path, monkeypatch, error):
    path = tmp_path / "b.txt"
    write_file(path, "old")

    def full(*_):
        raise error

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"(No space left on device|no room).*b\.txt") as caught:
        write_file(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["b.txt"]


def test_a_folder_replaces_a_folder(tmp_path):
    path = tmp_path / "store.zarr"
    for content in ("old", "new"):
        with written_beside(path) as beside:
            beside.mkdir()
            (beside / "zarr.json").write_text(content)
    assert (path / "zarr.json").read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["store.zarr"]


def test_a_folder_is_not_replaced_by_a_file(tmp_path):
    with pytest.raises(IsADirectoryError) as caught:
        write_file(tmp_path, "content")
    assert caught.value.filename == str(tmp_path)


def test_permissions_are_the_usual_ones(tmp_path):
    (tmp_path / "usual").write_text("")
    write_file(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


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


@pytest.mark.parametrize("name", ["t.npy", "t.png", "t.ply", "t.txt"])
def test_a_file_that_cannot_hold_columns_is_refused(tmp_path, name):
    with pytest.raises(UnusableFileError, match=r"cannot hold the 3 column\(s\) row, score, inlier in blocks"):
        write_blocks(tmp_path / name, COLUMNS, 20, blocks)
    assert list(tmp_path.iterdir()) == []


def test_a_single_column_as_npy(tmp_path):
    write_blocks(tmp_path / "t.npy", {"inlier": COLUMNS["inlier"]}, 20, blocks)
    found = np.load(tmp_path / "t.npy")
    assert found.dtype == bool
    assert found.tolist() == [row % 2 == 0 for row in range(20)]


@pytest.mark.parametrize("suffix", ["npy", "npz", "h5", "zarr", "csv", "parquet"])
def test_python_objects_are_not_written_in_blocks(tmp_path, suffix):
    """Their bytes would be addresses of memory."""

    def objects(*names):
        yield {"a": np.array([print], dtype=object)}

    with pytest.raises(UnusableFileError, match="not of Python objects"):
        write_blocks(tmp_path / f"t.{suffix}", {"a": np.dtype(object)}, 1, objects)
    assert list(tmp_path.iterdir()) == []


def test_csv_to_a_stream():
    stream = io.BytesIO()
    write_csv(stream, blocks("row", "inlier"))
    lines = stream.getvalue().decode().splitlines()
    assert lines[:2] == ['"row","inlier"', "0,true"]
    assert len(lines) == 21  # one header, however many blocks
    stream = io.BytesIO()
    write_csv(stream, [np.array([[1.5, 2.0]])])
    assert stream.getvalue() == b"1.5,2\n"


def test_ply_keeps_faces_and_colours_and_turns_normals(tmp_path):
    from plyfile import PlyData, PlyElement

    kinds = [("x", "f4"), ("y", "f4"), ("z", "f4"), ("nx", "f4"), ("ny", "f4"), ("nz", "f4"), ("red", "u1")]
    vertices = np.array([(*point, 1, 0, 0, 9) for point in POINTS], dtype=kinds)
    faces = np.array([([0, 1, 2],), ([1, 2, 3],)], dtype=[("vertex_indices", "i4", (3,))])
    elements = [PlyElement.describe(vertices, "vertex"), PlyElement.describe(faces, "face")]
    PlyData(elements, text=True, comments=["from somewhere"]).write(tmp_path / "a.ply")
    cloud = read_table(tmp_path / "a.ply")
    write_like(cloud, tmp_path / "b.ply", moved(cloud.values), TURN)
    written = PlyData.read(tmp_path / "b.ply")
    assert written.text
    assert written.comments == ["from somewhere"]
    assert [list(face) for face in written["face"]["vertex_indices"]] == [[0, 1, 2], [1, 2, 3]]
    assert written["vertex"]["red"].tolist() == [9] * 4
    assert written["vertex"]["ny"].tolist() == [1] * 4
    np.testing.assert_allclose(read_table(tmp_path / "b.ply").values, moved(POINTS), atol=1e-4)


def test_splats_are_not_moved_without_their_shapes(tmp_path):
    others = dict.fromkeys(("opacity", "scale_0", "rot_0"), POINTS[:, 0])
    write_table(tmp_path / "a.ply", {**dict(zip("xyz", POINTS.T, strict=True)), **others})
    with pytest.raises(UnusableFileError, match="Gaussian splats"):
        write_like(read_table(tmp_path / "a.ply"), tmp_path / "b.ply", POINTS, TURN)


@pytest.mark.parametrize("data", ["ascii", "binary", "binary_compressed"])
def test_pcd_keeps_every_field_and_its_encoding(tmp_path, data):
    from pypcd4 import Encoding, PointCloud

    fields = ("x", "y", "z", "normal_x", "normal_y", "normal_z", "intensity")
    points = np.column_stack([POINTS, np.tile([1, 0, 0], (4, 1)), np.arange(4)]).astype(np.float32)
    PointCloud.from_points(points, fields, (np.float32,) * 7).save(tmp_path / "a.pcd", Encoding(data))
    cloud = read_table(tmp_path / "a.pcd")
    write_like(cloud, tmp_path / "b.pcd", moved(cloud.values), TURN)
    assert PointCloud.from_path(tmp_path / "b.pcd").metadata.data.value == data
    others = read_table(tmp_path / "b.pcd", columns=["normal_y", "intensity"]).values
    np.testing.assert_allclose(others, [[1, 0], [1, 1], [1, 2], [1, 3]])
    np.testing.assert_allclose(read_table(tmp_path / "b.pcd").values, moved(points[:, :3]), atol=1e-4)


@pytest.mark.parametrize("suffix", [".las", ".laz"])
def test_las_keeps_its_fields_and_finds_room(tmp_path, suffix):
    columns = dict(zip("xyz", POINTS.T, strict=True)) | {"intensity": np.arange(4, dtype=np.uint16)}
    write_table(tmp_path / f"a{suffix}", columns)
    cloud = read_table(tmp_path / f"a{suffix}")
    far = moved(cloud.values) * 1e4
    write_like(cloud, tmp_path / f"b{suffix}", far)
    np.testing.assert_allclose(read_table(tmp_path / f"b{suffix}").values, far, atol=1e-3)
    assert read_table(tmp_path / f"b{suffix}", columns=["intensity"]).values[:, 0].tolist() == [0, 1, 2, 3]


def test_gifti_keeps_its_triangles(tmp_path):
    import nibabel

    triangles = np.array([[0, 1, 2], [1, 2, 3]], dtype=np.int32)
    arrays = [
        nibabel.gifti.GiftiDataArray(POINTS.astype(np.float32), "NIFTI_INTENT_POINTSET"),
        nibabel.gifti.GiftiDataArray(triangles, "NIFTI_INTENT_TRIANGLE"),
    ]
    nibabel.gifti.GiftiImage(darrays=arrays).to_filename(tmp_path / "a.surf.gii")
    surface = read_table(tmp_path / "a.surf.gii")
    write_like(surface, tmp_path / "b.surf.gii", moved(surface.values))
    np.testing.assert_allclose(read_table(tmp_path / "b.surf.gii").values, moved(POINTS), atol=1e-4)
    assert nibabel.load(tmp_path / "b.surf.gii").agg_data("triangle").tolist() == triangles.tolist()


def test_tables_keep_their_names(tmp_path):
    write_table(tmp_path / "a.csv", {"u": POINTS[:, 0], "v": POINTS[:, 1]})
    table = read_table(tmp_path / "a.csv")
    write_like(table, tmp_path / "b.csv", table.values + 1)
    assert read_table(tmp_path / "b.csv").columns == ("u", "v")
    write_like(table, tmp_path / "b.npy", POINTS)  # another dimension: names are gone
    np.testing.assert_array_equal(read_table(tmp_path / "b.npy").values, POINTS)


def test_another_format_gets_the_points_alone(tmp_path):
    write_table(tmp_path / "a.ply", POINTS)
    write_like(read_table(tmp_path / "a.ply"), tmp_path / "b.pcd", POINTS * 2)
    np.testing.assert_array_equal(read_table(tmp_path / "b.pcd").values, POINTS * 2)


def test_rows_must_agree(tmp_path):
    write_table(tmp_path / "a.ply", POINTS)
    with pytest.raises(UnusableFileError, match=r"was to get 4 rows like .*a.ply, but the values have shape \(2, 3\)"):
        write_like(read_table(tmp_path / "a.ply"), tmp_path / "b.ply", POINTS[:2])


@pytest.mark.parametrize("suffix", [".csv.gz", ".vec.gz", ".xlsx"])
def test_equal_tables_make_equal_files(tmp_path, monkeypatch, suffix):
    contents = []
    for moment in (1e9, 1.5e9):
        monkeypatch.setattr("time.time", lambda moment=moment: moment)
        write_table(tmp_path / f"a{suffix}", np.ones((3, 2)))
        contents.append((tmp_path / f"a{suffix}").read_bytes())
    assert contents[0] == contents[1]
