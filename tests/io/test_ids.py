"""Ids that R changed are known again, with a note; a spreadsheet makes no formula of an id."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from inlier.cli import main
from inlier.datasets import make_gaussian_pairs
from inlier.io import Table, pair_tables, read_table, write_table
from inlier.io.ids import as_r_writes, plain_ids, safe_for_spreadsheets, spelled_alike

DATA = make_gaussian_pairs(200, 5, 0.8, noise=0.1, rng=0)
IDS = [f"TCGA-{k:03d}" for k in range(150)] + [f"{k}b" for k in range(50)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, ["match", *map(str, words)])


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("a-b", "a.b"),
        ("7b", "X7b"),
        ("a b(c)", "a.b.c."),
        ("_x", "X_x"),
        (".5", "X.5"),
        (".x", ".x"),
        ("plain_1", "plain_1"),
    ],
)
def test_names_are_made_as_r_makes_them(key, name):
    assert as_r_writes(key) == name
    assert as_r_writes(name) == name


def table(keys, name):
    return Table(np.arange(len(keys), dtype=float)[:, None], None, np.array(keys), name)


def test_only_what_r_wrote_is_taken_for_the_same():
    pairing = pair_tables(
        table(["a-b", "7", "same", "c-d", "e-f"], "x.csv"), table(["X7", "same", "a.b", "c+d"], "y.csv")
    )
    assert pairing.keys.tolist() == ["a-b", "7", "same"]
    assert "2 ids are written in two ways, as R or a spreadsheet changes names, in x.csv and y.csv" in pairing.notes[0]
    assert "7 and X7" in pairing.notes[0]


@pytest.mark.parametrize(("x", "y"), [(["a-b", "a b"], ["a.b"]), (["a-b", "a.b"], ["a+b"]), (["a.b"], ["a-b", "a+b"])])
def test_ids_that_become_one_name_are_left_alone(x, y):
    keys, note = spelled_alike(np.array(x), np.array(y), "x", "y")
    assert note is None
    assert keys.tolist() == y


@pytest.mark.parametrize(
    ("x", "y"),
    [("S7", "s7"), ("S 7", "S7"), ("007", "7"), ("tcga-a0fj", "TCGA.A0FJ"), ("7B", "x7b"), ("a\xa0b", "a  b")],
)
def test_case_blanks_and_zeros_make_no_other_id(x, y):
    pairing = pair_tables(table([x, "same"], "x.csv"), table([y, "same"], "y.csv"))
    assert pairing.keys.tolist() == [x, "same"]
    assert "1 id is written in two ways" in pairing.notes[0]
    assert f"{x} and {y}" in pairing.notes[0]


@pytest.mark.parametrize(
    ("x", "y"), [(["S7", "s7"], ["S 7"]), (["7"], ["07", "007"]), (["s07"], ["s7"]), (["7"], ["7x"])]
)
def test_ids_that_could_be_two_are_left_alone(x, y):
    keys, note = spelled_alike(np.array(x), np.array(y), "x", "y")
    assert note is None
    assert keys.tolist() == y


def test_a_header_that_r_wrote_is_known_to_name_the_samples():
    values = {as_r_writes(key): column for key, column in zip(IDS, DATA.X, strict=True)}
    pd.DataFrame(values, index=[f"g{k}" for k in range(5)]).to_csv("x.csv", index_label="gene")
    pd.DataFrame(DATA.Y, index=IDS, columns=[f"p{k}" for k in range(5)]).to_csv("y.csv", index_label="sample")
    outcome = run("x.csv", "y.csv", "--json")
    assert outcome.exit_code == 0, outcome.output
    assert "200 ids are written in two ways" in outcome.stderr
    assert '"n_pairs": 200' in outcome.stdout


# ---- spreadsheets


def test_no_id_is_a_formula_and_all_are_read_as_they_were():
    ids = np.array(["=1+1", "+x", "-cmd", "@SUM(A1)", "-", "-7", "a=b", "'quoted", "", "\tx"])
    write_table("a.csv", {"id": ids, "a": -np.arange(10.0)})
    cells = [line.split(",")[0].strip('"') for line in Path("a.csv").read_text().splitlines()[1:]]
    assert not [cell for cell in cells if cell[:1] in "=+@\t" and len(cell) > 1]
    assert read_table("a.csv", key="id").keys.tolist() == [key.strip() for key in ids]


@given(st.lists(st.text(alphabet="=+-@'a1. ", max_size=5), min_size=1))
def test_what_is_made_safe_is_the_same_when_it_is_read(texts):
    texts = np.array([text for text in texts if not text.startswith("'")] or ["a"])
    assert plain_ids(safe_for_spreadsheets(texts)).tolist() == texts.tolist()


# ---- labels from a third file


@pytest.mark.parametrize("key", [["--key", "id"], []])
def test_groups_and_strata_come_from_a_third_file(key):
    order = np.random.default_rng(0).permutation(200) if key else np.arange(200)
    plates = np.array(["p", "q"])[np.arange(200) % 2]
    for name, values in (("x", DATA.X), ("y", DATA.Y)):
        write_table(f"{name}.csv", {"id": np.array(IDS), **{f"{name}{k}": column for k, column in enumerate(values.T)}})
    named = {"id": np.array(list(map(as_r_writes, IDS)))[order], "plate": plates[order]}
    write_table("meta.csv", named)
    if key:
        write_table("xp.csv", {"id": np.array(IDS), "plate": plates, **dict(zip("abcde", DATA.X.T, strict=True))})
        assert run("xp.csv", "y.csv", *key, "--stratum", "plate", "-o", "inside.csv").exit_code == 0
    else:
        write_table("short.csv", {"plate": plates[:150]})
        refused = run("x.csv", "y.csv", "--columns", "^id", "--stratum", "plate", "--meta", "short.csv")
        assert refused.exit_code == 2
        assert "short.csv has 150 rows" in refused.stderr
    without_ids = [] if key else ["--columns", "^id"]
    outcome = run("x.csv", "y.csv", *key, *without_ids, "--stratum", "plate", "--meta", "meta.csv", "-o", "third.csv")
    assert outcome.exit_code == 0, outcome.output
    if key:
        third, inside = pd.read_csv("third.csv"), pd.read_csv("inside.csv")
        np.testing.assert_array_equal(third["q_value"], inside["q_value"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--meta", "meta.csv"], "Name its columns with --group or --stratum"),
        (["--meta", "meta.csv", "--group", "no"], "meta.csv has no column named 'no'"),
        (["--meta", "meta.csv", "--group", "plate"], "meta.csv has no row for 1 of the 200 pairs, such as TCGA-000"),
        (["--meta", "absent.csv", "--group", "plate"], "there is no file absent.csv"),
        (["--meta", "meta.csv", "--group", "plate", "-o", "meta.csv"], "meta.csv is read by this command"),
    ],
)
def test_a_third_file_that_does_not_fit_is_refused(words, said):
    for name, values in (("x", DATA.X), ("y", DATA.Y)):
        write_table(f"{name}.csv", {"id": np.array(IDS), **{f"{name}{k}": column for k, column in enumerate(values.T)}})
    write_table("meta.csv", {"id": np.array(IDS[1:]), "plate": np.array(["p", "q"])[np.arange(199) % 2]})
    outcome = run("x.csv", "y.csv", "--key", "id", *words)
    assert outcome.exit_code == 2
    assert said in outcome.stderr
