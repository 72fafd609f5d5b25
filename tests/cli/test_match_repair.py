from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from inlier.cli import main
from inlier.datasets import make_gaussian_pairs
from inlier.io import write_table

N = 300
IDS = np.array([f"s{number:03d}" for number in range(N)])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Two csv files with ids in different orders; two ids of the second were swapped, and one row is lost."""
    monkeypatch.chdir(tmp_path)
    data = make_gaussian_pairs(N, 8, 1.0, noise=0.1, rng=0)
    y = data.Y.copy()
    y[[3, 7]] = y[[7, 3]]
    y[50] = np.random.default_rng(1).normal(size=8) * y.std()
    order = np.random.default_rng(1).permutation(N)
    write_table("x.csv", {"id": IDS, **{f"a{number}": column for number, column in enumerate(data.X.T)}})
    write_table("y.csv", {"id": IDS[order], **{f"b{number}": column[order] for number, column in enumerate(y.T)}})
    return data.Y


def run(*words):
    return CliRunner().invoke(main, ["match", *map(str, words)])


def test_the_table_is_put_right(folder):
    outcome = run("x.csv", "y.csv", "--key", "id", "--repair", "fixed.csv", "--report", "page.html")
    assert outcome.exit_code == 0, outcome.output
    assert "2 partners are named: 2 swapped, 0 in chains or cycles." in outcome.stdout
    assert "\n  s003 <-> s007\n" in outcome.stdout
    rows = {row["key"]: row for row in csv.DictReader(Path("fixed.csv").read_text().splitlines())}
    assert rows["s003"]["partner"] == "s007"
    assert rows["s003"]["verdict"] == "swapped"
    assert float(rows["s003"]["b0"]) == pytest.approx(folder[3, 0])
    assert rows["s050"]["partner"] == ""
    assert "Note: In fixed.csv one row is without values of Y" in outcome.stderr
    page = Path("page.html").read_text()
    assert "s003 \N{LEFT RIGHT ARROW} s007" in page
    assert "Who belongs to whom" in page
    again = run("x.csv", "y.csv", "--key", "id", "--repair", "fixed.csv")
    assert again.exit_code == 0, again.output


def test_ids_that_only_one_file_has_find_each_other(folder):
    text = Path("y.csv").read_text()
    Path("y.csv").write_text(text.replace("s100", "S-100").replace("s200", "s2OO"))
    outcome = run(
        "x.csv", "y.csv", "--key", "id", "--repair", "fixed.csv", "--unmatched", "--report", "page.html", "--force"
    )
    assert outcome.exit_code == 0, outcome.output
    assert "2 of the 2 rows that were given without a partner have one now." in outcome.stdout.replace("\n", " ")
    rows = {row["key"]: row for row in csv.DictReader(Path("fixed.csv").read_text().splitlines())}
    assert len(rows) == N
    assert rows["s100"]["partner"] == "S-100"
    assert float(rows["s200"]["b0"]) == pytest.approx(folder[200, 0])
    assert rows["s003"]["partner"] == "s007"
    page = Path("page.html").read_text()
    assert "s100 \N{RIGHTWARDS ARROW} S-100" in page
    assert "s003 \N{LEFT RIGHT ARROW} s007" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--repair", "y.csv"], "y.csv is read by this command"),
        (["--repair", "fixed.csv", "--method", "row-sum"], "--repair belongs to --method calibrated"),
        (["--repair", "fixed.csv", "--splits", "2"], "--repair belongs to --method calibrated"),
        (["--repair", "fixed.png"], "fixed.png"),
        (["--unmatched"], "--unmatched belongs to --repair"),
        (["--candidates", "all"], "--candidates belongs to --repair"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(words, message):
    outcome = run("x.csv", "y.csv", "--key", "id", *words)
    assert outcome.exit_code == 2
    assert message in outcome.output
    assert "Traceback" not in outcome.output
