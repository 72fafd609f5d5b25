"""Both sides of each pair in one file: ``--x`` and ``--y``, and the results beside the same rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from inlier.cli import main
from inlier.datasets import make_gaussian_pairs

N, D = 400, 8
DATA = make_gaussian_pairs(N, D, 0.6, noise=0.05, rng=0)
IDS = [f"{row:03d}" for row in range(N)]
OF_X, OF_Y = (",".join(f"{side}{k}" for k in range(D)) for side in "ab")
ANSWER = "240 of 400 pairs are real, with at most 1 % wrong among them."


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vectors = pd.DataFrame({"id": IDS, "text": ["words"] * N, "emb_a": list(DATA.X), "emb_b": DATA.Y.tolist()})
    vectors.to_parquet("pairs.parquet")
    columns = {f"{side}{k}": table[:, k] for side, table in zip("ab", (DATA.X, DATA.Y), strict=True) for k in range(D)}
    pd.DataFrame({"id": IDS, **columns}).to_csv("pairs.csv", index=False)
    np.savez("pairs.npz", x=DATA.X, y=DATA.Y)
    return tmp_path


def run(*words, text=None):
    return CliRunner().invoke(main, ["match", *map(str, words)], input=text)


def test_two_columns_of_vectors_and_the_results_beside_them():
    outcome = run("pairs.parquet", "--x", "emb_a", "--y", "emb_b", "-o", "out.parquet")
    assert outcome.exit_code == 0, outcome.output
    assert outcome.stdout.startswith(ANSWER)
    before, after = pd.read_parquet("pairs.parquet"), pd.read_parquet("out.parquet")
    pd.testing.assert_frame_equal(after[before.columns], before)
    added = ["inlier_score", "inlier_p_value", "inlier_q_value", "inlier"]
    assert list(after.columns[len(before.columns) :][:4]) == added
    np.testing.assert_array_equal(after["inlier"], DATA.inlier_mask)
    assert run("out.parquet", "--x", "emb_a", "--y", "emb_b", "-o", "again.parquet").exit_code == 0
    pd.testing.assert_frame_equal(pd.read_parquet("again.parquet"), after)  # its own columns are written anew


@pytest.mark.parametrize(("file", "x", "y"), [("pairs.csv", OF_X, OF_Y), ("pairs.npz", "x", "y")])
def test_columns_of_numbers_and_arrays_of_one_file(file, x, y):
    outcome = run(file, "--x", x, "--y", y, "-o", "out.csv")
    assert outcome.stdout.startswith(ANSWER), outcome.output
    written = pd.read_csv("out.csv", dtype={"id": str})
    np.testing.assert_array_equal(written["inlier"], DATA.inlier_mask)
    if file.endswith("csv"):
        assert written["id"].tolist() == IDS
        lines = zip(*(Path(name).read_text().splitlines() for name in ("out.csv", "pairs.csv")), strict=True)
        assert all(line.startswith(f"{row},") for line, row in lines)  # every cell as it was


def test_two_columns_mean_what_x_and_y_mean():
    one = run("pairs.csv", "--columns", OF_X, "--columns", OF_Y, "--json")
    other = run("pairs.csv", "--x", OF_X, "--y", OF_Y, "--json")
    assert json.loads(one.stdout)["n_inliers"] == json.loads(other.stdout)["n_inliers"] == 240
    assert json.loads(other.stdout)["sources"] == ["pairs.csv"]
    two = run("pairs.csv", "pairs.parquet", "--x", OF_X, "--y", "emb_b", "--key", "id", "--json")
    assert json.loads(two.stdout)["n_inliers"] == 240


def test_standard_input_is_one_file():
    text = Path("pairs.csv").read_text()
    outcome = run("-", "--format", "csv", "--x", OF_X, "--y", OF_Y, "--json", text=text)
    assert json.loads(outcome.stdout)["n_inliers"] == 240


def test_a_file_larger_than_memory_is_copied_as_it_is_read(monkeypatch):
    monkeypatch.setenv("INLIER_STREAM_FROM", "0")
    whole = run("pairs.parquet", "--x", "emb_a", "--y", "emb_b", "--method", "row-sum", "-o", "out.parquet")
    assert whole.exit_code == 0, whole.output
    after = pd.read_parquet("out.parquet")
    assert list(after.columns) == ["id", "text", "emb_a", "emb_b", "inlier_score", "inlier"]
    monkeypatch.delenv("INLIER_STREAM_FROM")
    run("pairs.parquet", "--x", "emb_a", "--y", "emb_b", "--method", "row-sum", "-o", "small.parquet")
    pd.testing.assert_frame_equal(after, pd.read_parquet("small.parquet"))


def test_what_csv_cannot_hold_is_said():
    outcome = run("pairs.parquet", "--x", "emb_a", "--y", "emb_b", "-o", "out.csv")
    assert "Note: out.csv cannot hold emb_a, emb_b of pairs.parquet. Write parquet" in outcome.stderr
    assert list(pd.read_csv("out.csv").columns)[:2] == ["id", "text"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pairs.parquet"], "Only pairs.parquet is named. .*--x a,b --y c,d"),
        (["pairs.parquet", "--x", "emb_a"], "Only pairs.parquet is named"),
        (["pairs.parquet", "--x", "emb_a", "--y", "emb_a"], "--x and --y are the same columns of pairs.parquet"),
        (["pairs.parquet", "--x", "emb_a", "--y", "emb_c"], "has no column named 'emb_c'; it has id, text, emb_a"),
        (["pairs.parquet", "--x", "emb_a", "--y", "text"], "no column that can be compared: 'text' left out: it"),
        (["pairs.parquet", "--x", "emb_a", "--y", "emb_b", "--key", "id"], "--key takes two files"),
        (["pairs.parquet", "--x", "emb_a", "--y", "emb_b", "--repair", "f.csv"], "--repair takes two files"),
        (["pairs.parquet", "--x", "emb_a", "--y", "emb_b", "--columns", "id"], "--columns and --x or --y both say"),
        (["pairs.parquet", "--x", "emb_a", "--y", "emb_b", "-o", "pairs.parquet"], "is read by this command"),
        (["pairs.parquet", "--x", "emb_a", "--y", "emb_b", "-o", "mine.parquet"], "is no earlier output"),
        (["absent.parquet", "--x", "emb_a", "--y", "emb_b"], "there is no file absent.parquet"),
    ],
)
def test_what_cannot_be_meant_is_refused(words, said):
    pd.DataFrame({"id": IDS, "inlier": [1] * N, "inlier_score": [1.0] * N, "mine": [1] * N}).to_parquet("mine.parquet")
    outcome = run(*words)
    assert outcome.exit_code == 2
    assert re.search(said, outcome.stderr), outcome.stderr
