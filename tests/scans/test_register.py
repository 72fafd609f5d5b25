"""Many scans in, one model out."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial.transform import Rotation

import inlier
from inlier import set_progress
from inlier.cli import main
from inlier.exceptions import ParameterError
from inlier.io import read_columns, read_table, write_table
from tests.scans.rooms import scans_of_room, worst_errors


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three scans of one room with colours, two of another, a ball, an empty file and a copy, with one cache."""
    folder, rng = tmp_path_factory.mktemp("folder"), np.random.default_rng(0)
    made = [*scans_of_room(0, 8)[:3], *scans_of_room(7, 8)[:2]]
    for k, (points, _) in enumerate(made):
        grey = rng.integers(0, 255, len(points)).astype(np.uint8)
        columns = dict(zip("xyz", points.astype(np.float32).T, strict=True))
        write_table(folder / f"scan_{k}.ply", {**columns, "red": grey, "green": grey, "blue": grey})
    ball = rng.normal(size=(3_000, 3))
    write_table(folder / "z_ball.ply", 2 * ball / np.linalg.norm(ball, axis=1, keepdims=True))
    write_table(folder / "z_copy.ply", read_table(folder / "scan_1.ply").values)
    write_table(folder / "z_few.ply", ball[:7])
    return folder, [pose for _, pose in made]


def test_a_folder_of_scans_of_two_rooms_and_of_nothing(folder, tmp_path):
    path, poses = folder
    words = ["-o", "poses.json", "--merged", "room.ply", "--report", "page.html", "--cache", "answers.jsonl"]
    words = [str(tmp_path / word) if "." in word else word for word in words]
    outcome = CliRunner().invoke(main, ["register", str(path), *words, "--jobs", "1"])
    assert outcome.exit_code == 0, outcome.output
    assert "5 of 8 scans are placed, in parts of 3 and 2 scans; 3 belong to none." in outcome.stdout
    assert "holds the same points as" in outcome.stdout
    assert "has 7 points" in outcome.stdout
    model = json.loads((tmp_path / "poses.json").read_text())
    assert sorted(map(sorted, model["parts"][:2])) == [[0, 1, 2], [3, 4]]
    assert all(model["scans"][k]["matrix"] for k in range(5))
    assert all(model["scans"][k]["why_not"] for k in (5, 6, 7))
    room = read_columns(tmp_path / "room.ply", ["x", "red"])
    assert 2_000 < len(room["x"]) < 18_000
    assert room["red"].dtype == np.uint8
    page = (tmp_path / "page.html").read_text()
    assert "How do the scans fit together?" in page
    assert page.count("data-scan=") == 5
    # again, from the answers that were kept: the same, and as a graph and a trajectory
    n_answers = len((tmp_path / "answers.jsonl").read_text().splitlines())
    for name in ("poses.g2o", "way.txt"):
        again = ["register", str(path), "-o", str(tmp_path / name), *words[-2:], "--jobs", "1", "--quiet"]
        assert CliRunner().invoke(main, again).exit_code == 0
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == n_answers
    lines = (tmp_path / "poses.g2o").read_text().splitlines()
    assert sum(line.startswith("VERTEX_SE3:QUAT") for line in lines) == 5
    assert all(len(line.split()) == 3 + 7 + 21 for line in lines if line.startswith("EDGE"))
    way = np.loadtxt(tmp_path / "way.txt")
    assert way.shape == (3, 8)
    truth = poses[0].inverse @ poses[int(way[1, 0])]
    assert np.linalg.norm(way[1, 1:4] - truth.translation) < 0.05
    assert Rotation.from_matrix(truth.rotation.T @ Rotation.from_quat(way[1, 4:]).as_matrix()).magnitude() < 0.02


def test_poses_are_right_in_any_order_and_from_any_object(folder, tmp_path):
    path, poses = folder
    order = [2, 4, 0, 1]
    given = [read_table(path / f"scan_{k}.ply").values for k in order]
    with_normals = SimpleNamespace(points=given[2], normals=np.tile([0.0, 0, 1], (len(given[2]), 1)), colors=[])
    fields = np.array([tuple(row) for row in given[3]], dtype=[("x", "f4"), ("y", "f4"), ("z", "f4")])
    steps = []
    set_progress(lambda step, done, total: steps.append(step))
    try:
        model = inlier.register_scans(
            [given[0], SimpleNamespace(vertices=given[1]), with_normals, fields], cache=tmp_path / "answers.jsonl"
        )
    finally:
        set_progress(None)
    assert model.parts == [[0, 2, 3], [1]]
    degrees, shift = worst_errors(model, [poses[k] for k in order], model.parts[0])
    assert degrees < 0.5
    assert shift < 0.03
    assert model.poses[1] is None
    assert model.errors[1] is None
    assert 0 < model.errors[2][1].max() < 0.05
    assert len(model.loops) == 1
    assert {"reading scans", "features of scans", "pairs of scans", "placing parts"} <= set(steps)
    drawn = model.plot()
    assert [line.get_label() for line in drawn.get_lines()] == ["scan 0", "scan 2", "scan 3"]
    assert "nx" not in model.merged()  # which one scan of three has
    assert len(model.merged(spacing=0.5)["x"]) < len(model.merged()["x"])
    with pytest.raises(ParameterError, match="must be one of the 1 parts"):
        model.merged(part=1)
    assert "scan 1 is alone" in " ".join(model.details)
    assert json.loads(model.json())["n_searches"] == model.n_searches
    assert "3 of 4 scans are placed" in repr(model)
    assert "3 of 4 scans are placed" in repr(model.report())


def test_scans_in_another_unit_are_not_asked_and_told(folder):
    path, _ = folder
    first, second = (read_table(path / f"scan_{k}.ply").values for k in (0, 1))
    model = inlier.register_scans([first, second, 1_000 * first])
    assert model.n_searches == 1
    assert model.parts == [[0, 1], [2]]
    assert "millimetres and metres differ by that" in model.why_alone(2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["scan_0.ply", "scan_1.ply", "scan_2.ply", "-t", "motion.txt"], "--transform is about two files"),
        (["scan_0.ply", "scan_1.ply", "scan_2.ply", "--model", "similarity"], "--model is about two files"),
        (["scan_0.ply", "scan_1.ply", "scan_2.ply", "-o", "poses.csv"], "poses are written as .json"),
        (["scan_0.ply", "scan_1.ply", "scan_2.ply", "--merged", "room.npy"], "cannot hold a cloud"),
        (["scan_0.ply", "scan_1.ply", "nowhere.ply"], "nowhere.ply is not there"),
        (["nothing_*.ply"], "no file is named like that"),
        (["scan_0*.ply"], "is the only scan"),
        (["z_few.ply", "z_few.ply", "scan_0.ply", "z_ball.ply", "--merged", "scan_0.ply"], "is read by this command"),
    ],
)
def test_bad_input_is_one_sentence(folder, words, said):
    path, _ = folder
    words = [str(path / word) if ".ply" in word else word for word in words]
    outcome = CliRunner().invoke(main, ["register", *words])
    assert outcome.exit_code == 2, outcome.output
    assert said in outcome.stderr


def test_scans_that_cannot_be_used_at_all(folder):
    path, _ = folder
    points = read_table(path / "scan_0.ply").values
    with pytest.raises(ParameterError, match="must be two or more, but there is one"):
        inlier.register_scans([points])
    with pytest.raises(ParameterError, match="has 5 points"):
        inlier.register_scans([points, points[:5]])
    with pytest.raises(ParameterError, match="holds something else"):
        inlier.register_scans([points, points + 1], cache=path / "scan_0.ply")
    with pytest.raises(ParameterError, match="must be a list of scans"):
        inlier.register_scans(3)
    with pytest.raises(ParameterError, match="one for each"):
        inlier.register_scans([points, points], names=["a"])


def test_clouds_of_tensors_are_clouds():
    points = np.random.default_rng(0).random((200, 3))
    cloud = SimpleNamespace(point={"positions": SimpleNamespace(numpy=lambda: points)})
    with pytest.raises(ParameterError, match="holds the same points"):
        inlier.register_scans([cloud, cloud])


def test_splats_are_refused_with_a_sentence(folder, tmp_path):
    path, _ = folder
    rows = dict(zip("xyz", read_table(path / "scan_0.ply").values.T, strict=True))
    splats = {**rows, "opacity": rows["x"], **{f"scale_{k}": rows["x"] for k in range(3)}, "rot_0": rows["x"]}
    write_table(tmp_path / "splats.ply", splats)
    names = [str(tmp_path / "splats.ply"), *(str(path / f"scan_{k}.ply") for k in (0, 1))]
    model = inlier.register_scans(names)
    assert "holds Gaussian splats" in model.why_alone(0)
    assert model.parts[0] == [1, 2]


def test_images_of_depth_are_scans(tmp_path):
    z = (2_000 + 5 * np.arange(160) * np.ones((120, 1))).astype(np.uint16)
    z[:, :10] = 0  # where nothing was seen
    for name in ("a.png", "b.png"):
        write_table(tmp_path / name, z)
    flat = CliRunner().invoke(main, ["register", str(tmp_path), "--depth", "150,150,80,60"])
    assert flat.exit_code == 2
    assert "holds the same points as" in flat.stderr
    wrong = CliRunner().invoke(main, ["register", str(tmp_path), "--depth", "150,150"])
    assert "must be fx, fy, cx and cy" in wrong.stderr
    wrong = CliRunner().invoke(
        main, ["register", str(tmp_path / "a.png"), str(tmp_path / "b.png"), "--merged", "c.ply"]
    )
    assert "If it holds depth, say how the camera saw" in wrong.stderr
