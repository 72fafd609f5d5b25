"""``inlier match --new --map --same-columns``: what was learned is written."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from inlier.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two vocabularies of 200 words; 120 entries, of which 30 are wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    Y = X @ np.linalg.qr(rng.normal(size=(8, 8)))[0] + 0.2 * rng.normal(size=X.shape)
    place = tmp_path_factory.mktemp("words")
    for name, table in (("x", X), ("y", Y)):
        rows = [["word", *(f"c{k}" for k in range(8))]]
        rows += [[f"{name}{i}", *map(repr, row.tolist())] for i, row in enumerate(table)]
        with (place / f"{name}.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)
    partner = np.arange(120)
    partner[:30] = np.roll(partner[:30], 1)
    lines = ["source,target", *(f"x{i},y{j}" for i, j in enumerate(partner))]
    (place / "pairs.csv").write_text("\n".join(lines) + "\n")
    return place


def run(folder, *options, loud=False):
    files = [str(folder / "x.csv"), str(folder / "y.csv"), "--key", "word"]
    return CliRunner().invoke(main, ["match", *files, *map(str, options), *([] if loud else ["-q"])])


def read(path):
    with path.open() as stream:
        return list(csv.DictReader(stream))


def test_the_clean_dictionary_is_written_and_can_be_read_again(folder, tmp_path):
    pairs, clean = tmp_path / "pairs.csv", tmp_path / "clean.csv"
    pairs.write_text((folder / "pairs.csv").read_text() + "x60,y60\n")
    result = run(folder, "--pairs", pairs, "--clean", clean, "-o", tmp_path / "out.csv", loud=True)
    assert result.exit_code == 0, result.output
    assert "1 line that repeats an earlier one" in result.output
    judged, kept = read(tmp_path / "out.csv"), read(clean)
    assert list(judged[0])[:3] == ["row", "source", "target"]
    assert [row["row"] for row in judged] == [str(k) for k in range(120)]
    assert [(row["source"], row["target"]) for row in kept] == [
        (row["source"], row["target"]) for row in judged if row["inlier"] == "true"
    ]
    wrong = [row for row in kept if row["source"][1:] != row["target"][1:]]
    assert len(kept) > 80
    assert len(wrong) <= 2
    again = run(folder, "--pairs", clean, "--clean", tmp_path / "again.csv")
    assert again.exit_code == 0, again.output
    assert "is read by this command" in run(folder, "--pairs", clean, "--clean", clean).output


def test_how_many_new_pairs_there_are_is_said(folder, tmp_path):
    result = run(folder, "--pairs", folder / "pairs.csv", "--new", tmp_path / "new.csv", loud=True)
    said = " ".join(result.output.split())
    n = len(read(tmp_path / "new.csv"))
    sure = sum(float(row["q_value"]) <= 0.1 for row in read(tmp_path / "new.csv"))
    assert f"New partners for the {n} rows that are in no real pair" in said
    assert f"{sure} with at most 10 % wrong among them." in said


def test_new_pairs_and_the_map_are_written(folder):
    new, learned = folder / "new.csv", folder / "map.txt"
    result = run(folder, "--pairs", folder / "pairs.csv", "--new", new, "--map", learned, "-o", folder / "out.csv")
    assert result.exit_code == 0, result.output
    found, judged = read(new), read(folder / "out.csv")
    real = {row["source"] for row in judged if row["inlier"] == "true"}
    assert {row["source"] for row in found} == {f"x{i}" for i in range(200)} - real  # without an entry, or a wrong one
    assert real >= {f"x{i}" for i in range(40, 120)} & real
    assert not real & {f"x{i}" for i in range(30)}
    is_right = [row["source"][1:] == row["target"][1:] for row in found]
    assert np.mean(is_right) > 0.9
    q = [float(row["q_value"]) for row in found]
    assert q == sorted(q)
    matrix = np.loadtxt(learned)
    assert matrix.shape == (9, 9)
    assert matrix[-1].tolist() == [0] * 8 + [1]
    assert run(folder, "--pairs", folder / "pairs.csv", "--new", new, "--map", learned).exit_code == 0  # once more


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--new", "new.csv"], "say with --pairs who is paired"),
        (["--map", "map.csv"], "a map is written as .txt or .npy"),
        (["--same-columns", "--method", "row-sum"], "--same-columns belongs to --method calibrated"),
        (["--map", "map.txt", "--splits", "2"], "--map belongs to --method calibrated"),
    ],
)
def test_what_does_not_go_together_is_refused(folder, options, said):
    result = run(folder, *options)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_same_columns_need_the_same_names(folder, tmp_path):
    text = (folder / "y.csv").read_text()
    (tmp_path / "y.csv").write_text(text.replace("c", "d").replace("y", "x"))
    (tmp_path / "x.csv").write_text((folder / "x.csv").read_text())
    result = run(tmp_path, "--same-columns")
    assert result.exit_code == 2
    assert "has the name of one of" in " ".join(result.output.split())
    (tmp_path / "y.csv").write_text(text.replace("y", "x"))
    assert run(tmp_path, "--same-columns").exit_code == 0
