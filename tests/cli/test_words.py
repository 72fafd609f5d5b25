"""Columns of words, dates and text on the command line; two files of lines; what names the rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from inlier.cli import main

N = 300
RNG = np.random.default_rng(0)
HIDDEN = RNG.normal(size=(N, 3))
Y = HIDDEN @ RNG.normal(size=(3, 3)) + 0.1 * RNG.normal(size=(N, 3))
Y[:30] = np.roll(Y[:30], 1, axis=0)
IDS = [f"h{k}" for k in range(N)]
HOMES = pd.DataFrame(
    {
        "id": IDS,
        "sold": (pd.Timestamp("2020-01-01") + pd.to_timedelta(np.round(90 * HIDDEN[:, 0]), unit="D")).strftime(
            "%Y-%m-%d"
        ),
        "city": np.array(["Lima", "Oslo", "Bonn", "Rome"])[np.digitize(HIDDEN[:, 1], [-0.7, 0, 0.7])],
        "rooms": HIDDEN[:, 2],
        "plate": np.arange(N) % 7,
    }
)
PRICES = pd.DataFrame(Y, columns=["price", "tax", "rent"]).assign(id=IDS, plate=np.arange(N) % 7)
SOUNDS = RNG.integers(0, 20, size=(N, 6))
WORDS = [
    [" ".join(words.split()[k] for k in row[: 4 + row[0] % 3]) for row in SOUNDS]
    for words in (
        "ba do ki lu me no pa ri su ta ve wo xi za qu fe gi ho ju ny",
        "ark ell ist orn urt ask emp ild ock uff and ent ing old unt amb eth irk oss ump",
    )
]
WORDS[1] = WORDS[1][1:30] + WORDS[1][:1] + WORDS[1][30:]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PRICES.to_csv("y.csv", index=False)
    for name, lines in zip(("de.txt", "en.txt"), WORDS, strict=True):
        Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(*words):
    return CliRunner().invoke(main, ["match", *map(str, words)])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "feather"])
def test_dates_and_words_are_compared_and_what_was_done_is_said(suffix):
    write = {
        "csv": lambda path: HOMES.to_csv(path, index=False),
        "jsonl": lambda p: HOMES.to_json(p, orient="records", lines=True),
    }
    write.get(suffix, lambda path: getattr(HOMES, f"to_{suffix}")(path))(f"x.{suffix}")
    outcome = run(f"x.{suffix}", "y.csv", "--key", "id", "--stratum", "plate", "--json-pairs")
    assert outcome.exit_code == 0, outcome.output
    found = json.loads(outcome.stdout)
    wrong = np.isin(found["pairs"]["key"], IDS[:30])
    accepted = np.array(found["pairs"]["inlier"])
    assert accepted[~wrong].mean() > 0.6
    assert accepted[wrong].sum() <= 4
    said = f"Columns of x.{suffix}: 'rooms': number, as it is; 'sold' (3 columns): date, days, time of week"
    assert any("'city' (4 columns): category, 0 and 1 for each word" in note for note in found["notes"])
    assert any(note.startswith(said[:40]) for note in found["notes"])
    assert "'sold' (" in outcome.stderr


def test_other_methods_compare_numbers():
    HOMES.to_csv("x.csv", index=False)
    outcome = run("x.csv", "y.csv", "--key", "id", "--method", "row-sum")
    assert "columns 'sold', 'city' of x.csv hold words, not numbers: left out." in outcome.stderr


def test_words_on_both_sides_and_numbers_called_like_strata_are_offered():
    HOMES.to_csv("x.csv", index=False)
    PRICES.assign(city=HOMES["city"]).to_csv("y2.csv", index=False)
    outcome = run("x.csv", "y2.csv", "--key", "id")
    assert "'city' is the same on both sides in 100% of the pairs, so it was not compared" in outcome.stderr
    assert "say --stratum city" in outcome.stderr
    assert "Column 'plate' is on both sides, the same in all pairs" in outcome.stderr
    assert "say --stratum plate" in outcome.stderr
    assert "Column plate is the same in X and y" in outcome.stderr  # not its number


def test_two_files_of_lines_are_a_bitext():
    outcome = run("de.txt", "en.txt", "--alpha", "0.05", "--clean", "clean.tsv")
    assert outcome.exit_code == 0, outcome.output
    assert "'text' (" in outcome.stderr
    with Path("clean.tsv").open(encoding="utf-8") as stream:
        kept = list(csv.DictReader(stream, delimiter="\t"))
    right = dict(zip(*WORDS, strict=True))
    assert len(kept) > 150
    assert all(right[line["source"]] == line["target"] for line in kept)
    shifted = {WORDS[0][k] for k in range(30)}
    assert sum(line["source"] in shifted for line in kept) <= 0.2 * len(kept)


def test_lines_of_numbers_or_fields_are_tables():
    Path("a.txt").write_text("x y site\n1 2 here\n3 4 there\n")
    Path("b.txt").write_text("1,2\n3,4\n")
    for name in ("a.txt", "b.txt"):
        assert "text" not in run(name, name).stderr


@pytest.mark.parametrize("ids", ["ids.txt", "ids.csv"])
def test_ids_may_stand_in_a_file_of_their_own(ids):
    order = RNG.permutation(N)
    np.save("x.npy", HIDDEN)
    np.save("y.npy", Y[order])
    head = ["name"] if ids.endswith("csv") else []
    Path(f"x_{ids}").write_text("\n".join([*head, *IDS]) + "\n")
    Path(f"y_{ids}").write_text("\n".join([*head, *np.array(IDS)[order].tolist()]) + "\n")
    outcome = run("x.npy", "y.npy", "--key", f"x_{ids}", "--key", f"y_{ids}", "--clean", "clean.csv")
    assert outcome.exit_code == 0, outcome.output
    with Path("clean.csv").open() as stream:
        kept = list(csv.DictReader(stream))
    assert len(kept) > 200
    assert all(line["source"] == line["target"] for line in kept)
    Path("few.csv").write_text("name\na\nb\n")
    refused = run("x.npy", "y.npy", "--key", "few.csv")
    assert refused.exit_code == 2
    assert "few.csv has 2 ids, and x.npy has 300 rows" in refused.stderr
    if head:
        assert "is read by this command" in run("x.npy", "y.npy", "--key", f"x_{ids}", "-o", f"x_{ids}").stderr


def test_without_ids_the_clean_pairs_are_rows():
    np.save("x.npy", HIDDEN)
    np.save("y.npy", Y)
    assert run("x.npy", "y.npy", "--clean", "clean.csv").exit_code == 0
    rows = pd.read_csv("clean.csv")
    assert (rows["source"] == rows["target"]).all()
    assert list(rows) == ["source", "target", "q_value"]
