"""``inlier match --repair`` where one slip moved many rows."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from inlier.cli import main
from inlier.io import write_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*words):
    outcome = CliRunner().invoke(main, ["match", *map(str, words)])
    return outcome.exit_code, " ".join(outcome.output.split())


def tables(n, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 6))
    return tuple(hidden @ rng.normal(size=(6, d)) + 0.4 * rng.normal(size=(n, d)) for d in (10, 8))


def write(name, table, **more):
    columns = {f"{Path(name).stem}{k}": column for k, column in enumerate(table.T)}
    write_table(name, {**{key: np.asarray(values) for key, values in more.items()}, **columns})


def rows(name):
    return list(csv.DictReader(Path(name).read_text().splitlines()))


def test_a_line_is_missing_in_the_second_file():
    X, Y = tables(300)
    kept = np.delete(np.arange(300), 120)
    write("x.csv", X)
    write("y.csv", Y[kept])
    code, said = run("x.csv", "y.csv", "--repair", "fixed.csv", "--report", "page.html")
    assert code == 0
    assert "one row too high: one line of y is missing at row 120" in said
    fixed = rows("fixed.csv")
    assert fixed[120]["y0"] == ""
    assert float(fixed[200]["y0"]) == pytest.approx(Y[200, 0])
    assert "One slip explains it" in Path("page.html").read_text()


@pytest.mark.parametrize("plate", ["8x12", "well"])
def test_a_plate_was_turned(plate):
    X, Y = tables(288)
    order = np.arange(288)
    order[96:192] = order[96:192][::-1]
    wells = [f"{'ABCDEFGH'[k % 96 // 12]}{k % 12 + 1}" for k in range(288)]
    write("x.csv", X, well=wells)
    write("y.csv", Y[order], well=wells)
    _, said = run("x.csv", "y.csv", "--plate", plate, "--repair", "fixed.csv")
    assert "From row 96 to row 191, y is turned round by 180 degrees" in said
    assert float(rows("fixed.csv")[100]["y0"]) == pytest.approx(Y[100, 0])


def test_a_plate_belongs_to_a_repair():
    X, Y = tables(96)
    write("x.csv", X)
    write("y.csv", Y)
    code, said = run("x.csv", "y.csv", "--plate", "8x12")
    assert code == 2
    assert "--plate" in said


def test_chapters_of_which_lines_are_lost():
    rng = np.random.default_rng(0)
    chapter = np.repeat([f"c{k}" for k in range(25)], rng.integers(15, 30, 25))
    X, Y = tables(chapter.size)
    kept = np.flatnonzero(rng.random(chapter.size) > 0.05)
    write("x.csv", X, chapter=chapter)
    write("y.csv", Y[kept], chapter=chapter[kept])
    _, said = run("x.csv", "y.csv", "--group", "chapter", "--repair", "fixed.csv")
    assert "groups rows are out of step" in said
    values = np.array([float(row["y0"] or "nan") for row in rows("fixed.csv")])
    assert np.isclose(values[kept], Y[kept, 0]).mean() > 0.97


def test_ids_have_slipped_against_the_values():
    """In the second file, which is in another order, values stand one row too high from row 100 on."""
    X, Y = tables(300)
    ids = np.array([f"s{k:03d}" for k in range(300)])
    order = np.random.default_rng(3).permutation(300)
    write("x.csv", X, id=ids)
    write("y.csv", np.delete(Y[order], 100, axis=0), id=ids[order][:-1])
    _, said = run("x.csv", "y.csv", "--key", "id", "--unmatched", "--repair", "fixed.csv")
    assert "In the order in which y stood: From row" in said
    fixed = {row["id"]: row for row in rows("fixed.csv")}
    right = [fixed[ids[row]]["y0"] == str(Y[row, 0]) for row in np.delete(order, 100)]
    assert np.mean(right) > 0.97
