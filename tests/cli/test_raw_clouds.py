"""``inlier register`` on two raw clouds: nothing is paired by accident, and what went wrong is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from inlier.cli import main
from inlier.datasets import make_scans
from inlier.io import read_table, write_table


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clouds")
    scans = make_scans(rng=0)
    for name, points in (("source", scans.source), ("target", scans.target)):
        write_table(folder / f"{name}.ply", points)
    write_table(folder / "small.ply", scans.source[:50])
    write_table(folder / "plane.ply", np.random.default_rng(0).random((3_000, 3)) * [1, 1, 0])
    write_table(folder / "source.npy", scans.source)
    write_table(folder / "metres.ply", 1e-3 * scans.source)
    write_table(folder / "short.npy", scans.target[:-100])
    shuffled = np.random.default_rng(0).permutation(scans.target)
    write_table(folder / "shuffled.csv", dict(zip("xyz", shuffled[: len(scans.source)].T, strict=True)))
    write_table(folder / "moved.npy", scans.source + 1)
    return folder


def run(folder: Path, *words: str):
    return CliRunner().invoke(main, ["register", *(str(folder / word) if "." in word else word for word in words)])


def test_two_files_are_enough(files):
    outcome = run(
        files, "source.ply", "target.ply", "-t", "motion.json", "--moved", "moved.ply", "--report", "page.html"
    )
    assert outcome.exit_code == 0, outcome.stderr
    assert "One motion carries the source onto the target" in outcome.stdout
    assert "turns by 120.6 degrees" in outcome.stdout
    motion, truth = json.loads((files / "motion.json").read_text()), make_scans(rng=0)
    np.testing.assert_allclose(motion["rotation"], truth.rotation, atol=0.01)
    moved = read_table(files / "moved.ply").values
    expected = truth.source @ truth.rotation.T + truth.translation
    assert np.linalg.norm(moved - expected, axis=1).max() < 1
    page = (files / "page.html").read_text()
    assert "How far the source is from the target" in page
    assert "The evidence, beside that for other motions" in page


def test_everything_can_be_had_as_json(files):
    outcome = run(files, "source.ply", "target.ply", "--json", "--quiet")
    answer = json.loads(outcome.stdout)
    assert answer["success"]
    assert answer["detection_p_value"] < 1e-4
    assert answer["transformation"]["standard_errors"]["degrees"]
    assert outcome.stderr == ""


def test_clouds_in_different_units_are_told_apart_and_brought_together(files):
    outcome = run(files, "metres.ply", "target.ply")
    assert outcome.exit_code == 1
    assert "A scale of 1000 would fit" in outcome.stderr
    assert "--model similarity" in outcome.stderr
    outcome = run(files, "metres.ply", "target.ply", "--model", "similarity", "-t", "motion.json")
    assert outcome.exit_code == 0, outcome.stderr
    assert "in the scale" in outcome.stdout
    motion = json.loads((files / "motion.json").read_text())
    assert motion["model"] == "similarity"
    assert motion["scale"] == pytest.approx(1000, rel=0.005)
    assert 0 < motion["standard_errors"]["scale"] < 5


def test_tables_of_three_columns_are_clouds_unless_something_speaks_of_pairs(files):
    outcome = run(files, "source.npy", "short.npy")
    assert outcome.exit_code == 0, outcome.stderr
    assert "One motion carries the source" in outcome.stdout
    assert "Note" not in outcome.stderr
    outcome = run(files, "source.npy", "shuffled.csv", "--json", "--quiet")  # as many rows, in another order
    answer = json.loads(outcome.stdout)
    assert answer["success"]
    assert "say --paired" in answer["notes"][0]
    assert "pairs" in run(files, "source.npy", "moved.npy", "--noise-bound", "1").stdout
    assert run(files, "source.npy", "source.npy", "--quiet").exit_code == 0  # one file: row by row


def test_rows_of_point_clouds_are_pairs_only_where_it_is_said(files):
    outcome = run(files, "source.ply", "source.ply", "--paired")
    assert "of 8,000 pairs agree" in outcome.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("small.ply", "target.ply"), 2, "small.ply has 50 points"),
        (("plane.ply", "plane.ply"), 1, "do not determine the motion"),
        (("plane.ply", "target.ply"), 1, "Are they in one unit?"),
        (("source.ply", "target.ply", "--model", "affine"), 2, "--model affine is about pairs"),
        (("source.ply", "target.ply", "-o", "pairs.csv"), 2, "--output is about pairs"),
        (("source.npy", "short.npy", "--clouds", "--columns", "0,1"), 2, "raw clouds have three coordinates"),
        (("source.ply", "target.ply", "--paired", "--key", "id"), 2, "Leave out --paired"),
    ],
)
def test_bad_luck_is_said_in_a_sentence(files, words, code, message):
    outcome = run(files, *words)
    assert outcome.exit_code == code
    assert message in outcome.stderr
    assert "Traceback" not in outcome.stderr


@pytest.fixture(scope="module")
def motions(files):
    """The right motion, in three kinds of files, and wrong ones."""
    truth, right = make_scans(rng=0), np.eye(4)
    right[:3, :3], right[:3, 3] = truth.rotation, truth.translation
    write_table(files / "right.txt", right)
    np.save(files / "right_copy.npy", right)
    (files / "right.json").write_text(json.dumps({"matrix": right.tolist()}))
    write_table(files / "none.txt", np.eye(4))
    write_table(files / "scaled.txt", right * [2, 2, 2, 1])
    write_table(files / "mirrored.txt", right * [-1, 1, 1, 1])
    write_table(files / "bent.txt", right + np.diag([0.2, 0, 0, 0]))
    write_table(files / "small.txt", right[:3, :3])
    (files / "words.json").write_text('{"matrix": "none"}')
    (files / "broken.json").write_text("{")
    return files


def judged(folder: Path, *words: str):
    return CliRunner().invoke(main, ["judge", *(str(folder / word) if "." in word else word for word in words)])


@pytest.mark.parametrize("name", ["right.txt", "right_copy.npy", "right.json"])
def test_a_right_motion_of_another_tool_is_called_right(motions, name):
    outcome = judged(motions, "source.ply", "target.ply", name)
    assert outcome.exit_code == 0, outcome.stderr
    assert "The motion is right" in outcome.stdout
    assert "The surfaces put the source 0.0" in outcome.stdout


def test_a_wrong_motion_is_refused_and_the_better_one_is_in_the_json(motions):
    outcome = judged(motions, "source.ply", "target.ply", "none.txt", "--json", "--report", "judged.html")
    assert outcome.exit_code == 1
    answer = json.loads(outcome.stdout)
    assert not answer["success"]
    assert answer["answer"] == "The motion is not sure to be right."
    assert answer["transformation"] is None
    np.testing.assert_allclose(answer["judged"]["matrix"], np.eye(4))
    np.testing.assert_allclose(answer["runner_up"]["rotation"], make_scans(rng=0).rotation, atol=0.02)
    assert "The motion is not sure to be right" in outcome.stderr
    assert "The motion is not sure to be right" in (motions / "judged.html").read_text()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scaled.txt", "scaled.txt scales by 2, which a rigid motion does not"),
        ("mirrored.txt", "mirrors, which no motion of a scan does"),
        ("bent.txt", "must turn and move, but stretches by"),
        ("small.txt", "must be a 4 x 4 matrix"),
        ("words.json", "words.json holds no 4 x 4 matrix"),
        ("broken.json", "broken.json is no JSON"),
        ("absent.txt", "absent.txt"),
    ],
)
def test_what_is_no_motion_is_said_before_the_search(motions, name, message):
    outcome = judged(motions, "source.ply", "target.ply", name)
    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_a_refusal_leaves_the_best_guess_and_a_page(files):
    outcome = run(files, "plane.ply", "plane.ply", "--json", "--report", "refused.html", "-t", "never.txt")
    assert outcome.exit_code == 1
    answer = json.loads(outcome.stdout)
    assert not answer["success"]
    assert np.shape(answer["best_guess"]["matrix"]) == (4, 4)
    assert "do not determine" in (files / "refused.html").read_text()
    assert not (files / "never.txt").exists()


def test_the_json_has_what_a_pose_graph_takes(files):
    answer = json.loads(run(files, "source.ply", "target.ply", "--json", "--quiet").stdout)["transformation"]
    for place in (answer, answer["at_centre"]):
        assert set(place["information"]) == {"gtsam", "g2o", "open3d"}
        assert all(np.linalg.eigvalsh(matrix).min() > 0 for matrix in place["information"].values())
    centre, moved = np.array(answer["at_centre"]["centre"]), np.array(answer["at_centre"]["moved_to"])
    matrix = np.array(answer["matrix"])
    np.testing.assert_allclose(matrix[:3, :3] @ centre + matrix[:3, 3], moved)


def test_columns_named_x_y_and_z_are_the_points(files):
    extra = np.random.default_rng(0).random(len(make_scans(rng=0).source))
    points = dict(zip(("X", "Y", "Z"), make_scans(rng=0).source.T, strict=True))
    write_table(files / "intense.csv", {"intensity": extra, **points})
    outcome = run(files, "intense.csv", "target.ply", "--clouds", "-t", "by_name.json")
    assert outcome.exit_code == 0, outcome.stderr
    assert "intense.csv are its columns x, y and z, without intensity." in outcome.stderr
    motion = json.loads((files / "by_name.json").read_text())
    np.testing.assert_allclose(motion["rotation"], make_scans(rng=0).rotation, atol=0.01)


def test_matches_in_columns_of_one_file(files):
    scans = make_scans(rng=0)
    source, target = scans.source[:300], scans.source[:300] @ scans.rotation.T + scans.translation
    columns = np.hstack([source, np.vstack([target[:200], np.roll(target[200:], 1, axis=0)])])
    write_table(files / "matches.csv", dict(zip(("a", "b", "c", "d", "e", "f"), columns.T, strict=True)))
    alone = run(files, "matches.csv")
    assert alone.exit_code == 2
    assert "name it twice: --columns x1,y1,z1 --columns x2,y2,z2 --paired" in " ".join(alone.stderr.split())
    both = run(files, "matches.csv", "matches.csv", "--columns", "a,b,c", "--columns", "d,e,f", "--paired")
    assert both.exit_code == 0, both.stderr
    assert "200 of 300 pairs agree" in both.stdout
