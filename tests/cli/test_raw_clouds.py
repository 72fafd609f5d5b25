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


def test_tables_are_pairs_and_clouds_where_it_is_said(files):
    outcome = run(files, "source.npy", "short.npy")
    assert outcome.exit_code == 2
    assert "say --clouds" in outcome.stderr
    assert run(files, "source.npy", "short.npy", "--clouds").exit_code == 0
    assert run(files, "source.npy", "source.npy", "--quiet").exit_code == 0


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
