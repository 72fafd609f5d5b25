"""KITTI's bin, pts, obj and stl: points as scanners and modellers write them."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from inlier.io import UnusableFileError, read_table, write_table

POINTS = np.round(np.random.default_rng(0).normal(size=(30, 3)), 4).astype(np.float32)
INTENSITY = np.linspace(0, 1, 30, dtype=np.float32)
TRIANGLES = np.stack([POINTS[:10], POINTS[10:20], POINTS[20:]], axis=1)


def binary_stl(path):
    triangle = np.zeros(10, dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    triangle["corners"] = TRIANGLES
    path.write_bytes(b"solid, but binary".ljust(80) + struct.pack("<I", 10) + triangle.tobytes())


def text_stl(path):
    facets = ["\n".join(f"   vertex {x} {y} {z}" for x, y, z in corners) for corners in TRIANGLES]
    body = "\n".join(f"facet normal 0 0 0\n outer loop\n{corners}\n endloop\nendfacet" for corners in facets)
    path.write_text(f"solid a\n{body}\nendsolid a\n")


def lines(rows, before=""):
    return "\n".join(before + " ".join(map(str, row)) for row in rows) + "\n"


def test_kitti(tmp_path):
    np.column_stack([POINTS, INTENSITY]).tofile(tmp_path / "a.bin")
    np.testing.assert_array_equal(read_table(tmp_path / "a.bin").values, POINTS)
    np.testing.assert_array_equal(read_table(tmp_path / "a.bin", columns=["intensity"]).values[:, 0], INTENSITY)


@pytest.mark.parametrize("before", ["30\n", ""])
def test_pts(tmp_path, before):
    (tmp_path / "a.pts").write_text(before + lines(np.column_stack([POINTS, INTENSITY])))
    np.testing.assert_allclose(read_table(tmp_path / "a.pts").values, POINTS)
    np.testing.assert_allclose(read_table(tmp_path / "a.pts", columns=["intensity"]).values[:, 0], INTENSITY)


def test_obj(tmp_path):
    body = f"# by hand\no a\n{lines(POINTS, 'v ')}{lines(POINTS, 'vn ')}{lines([(1, 2, 3)], 'f ')}"
    (tmp_path / "a.obj").write_text(body)
    np.testing.assert_allclose(read_table(tmp_path / "a.obj").values, POINTS)


@pytest.mark.parametrize("write", [binary_stl, text_stl])
def test_the_corners_of_stl_are_there_once(tmp_path, write):
    write(tmp_path / "a.stl")
    values = read_table(tmp_path / "a.stl").values
    assert values.shape == (30, 3)
    np.testing.assert_allclose(values, TRIANGLES.reshape(-1, 3), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.bin", b"x" * 50, "no multiple of 16"),
        ("a.bin", np.full(8, 1e20, "<f4").tobytes(), "no points of a laser"),
        ("a.bin", np.full(8, np.nan, "<f4").tobytes(), "no points of a laser"),
        ("a.pts", b"3\n1 2 3\n", "announces 3 points and holds 1"),
        ("a.pts", b"1 2 3\n1 2\n", "line 2 of .* has 2 numbers"),
        ("a.pts", b"1 2 x\n", "line 1 of .* something else than numbers"),
        ("a.obj", b"f 1 2 3\n", "holds no vertex"),
        ("a.obj", b"v 1 2\n", "without x, y and z"),
        ("a.stl", b"solid a\nendsolid a\n", "holds no triangle"),
        ("a.stl", b"\0" * 80 + struct.pack("<I", 7) + b"\0" * 50, "announces 7 triangles"),
        ("a.stl", b"\0" * 30, "announces 0 triangles"),
        ("a.stl", b"solid a\nvertex 1 2\n", "without x, y and z"),
        ("a.ptx", b"x", "Export the points as ply"),
        ("a.e57", b"x", "is not e57|e57 files need|no e57|not an? e57"),
    ],
)
def test_what_is_none_is_a_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnusableFileError, match=said):
        read_table(tmp_path / name)


def test_they_are_not_written(tmp_path):
    with pytest.raises(UnusableFileError, match="is read, not written"):
        write_table(tmp_path / "a.stl", POINTS)
    assert list(tmp_path.iterdir()) == []


def test_e57_by_its_library(tmp_path):
    pye57 = pytest.importorskip("pye57", reason="pye57 is not installed")
    path = tmp_path / "a.e57"
    file = pye57.E57(str(path), mode="w")
    for shift in (0.0, 5.0):
        x, y, z = POINTS.T + shift
        file.write_scan_raw({"cartesianX": x, "cartesianY": y, "cartesianZ": z, "intensity": x})
    file.close()
    np.testing.assert_allclose(read_table(path).values, np.vstack([POINTS, POINTS + 5]), atol=1e-6)
    path.write_bytes(path.read_bytes()[:2_000])
    with pytest.raises(UnusableFileError, match="could not be read as e57"):
        read_table(path)
