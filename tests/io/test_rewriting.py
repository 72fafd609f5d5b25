from __future__ import annotations

import numpy as np
import pytest

from inlier.io import UnusableFileError, read_table, write_like, write_table

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(4, 3))
TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def moved(points):
    return points @ TURN.T + [100.0, -50.0, 3.0]


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
