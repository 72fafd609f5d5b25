from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial import cKDTree

from inlier import CalibratedMatcher, EigenvectorMatcher, RowSumMatcher
from inlier import SplitMatcher as Split
from inlier.cli import main
from inlier.datasets import make_gaussian_pairs
from inlier.estimators.paper import eigenvector_threshold, row_sum_threshold
from inlier.io import read_table, write_table

N = 400
DATA = make_gaussian_pairs(N, 8, 0.6, noise=0.05, rng=0)
IDS = np.array([f"s{number:03d}" for number in range(N)])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Two npy files in the same order, and two csv files with ids in different orders."""
    monkeypatch.chdir(tmp_path)
    write_table("x.npy", DATA.X)
    write_table("y.npy", DATA.Y)
    order = np.random.default_rng(1).permutation(N)
    write_table("x.csv", {"id": IDS, **{f"a{number}": column for number, column in enumerate(DATA.X.T)}})
    write_table("y.csv", {"id": IDS[order], **{f"b{number}": column[order] for number, column in enumerate(DATA.Y.T)}})
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, ["match", *map(str, words)])


def test_the_answer_in_words():
    outcome = run("x.npy", "y.npy")
    assert outcome.exit_code == 0, outcome.output
    lines = outcome.stdout.splitlines()
    assert lines[0] == "240 of 400 pairs are real, with at most 1 % wrong among them."
    assert lines[1].startswith("In this table ")
    assert lines[1].endswith(" wrong, with 95 % confidence.")
    assert "certain: no other row " in lines[2]
    assert re.fullmatch(
        r"About [56]\d(\.\d+)? % of all pairs are real, found or not; at least 5\d(\.\d+)? % with 95 % confidence\.",
        lines[3],
    )
    assert lines[4] == "160 pairs are more likely wrong than real; no pair is doubtful."
    assert "The worst pairs" in outcome.stdout
    assert outcome.stderr == ""


def test_ids_are_joined_and_named():
    outcome = run("x.csv", "y.csv", "--key", "id", "-o", "out.csv")
    assert outcome.exit_code == 0, outcome.output
    table = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    told = ["score", "p_value", "q_value", "inlier", "certain_q_value", "certain", "n_rivals"]
    assert list(table[0]) == ["row", "row_y", "key", *told]
    ids_of_y = read_table("y.csv", key="id").keys
    assert [ids_of_y[int(row["row_y"])] for row in table] == IDS.tolist()
    assert [row["key"] for row in table] == IDS.tolist()
    assert [row["inlier"] == "true" for row in table] == DATA.inlier_mask.tolist()
    matcher = CalibratedMatcher(random_state=0).fit(DATA.X, DATA.Y)
    assert [row["certain"] == "true" for row in table] == matcher.certain_mask_.tolist()
    assert [int(row["n_rivals"]) for row in table] == matcher.n_rivals_.tolist()
    assert [float(row["certain_q_value"]) for row in table] == matcher.certain_q_values_.tolist()
    worst = min(table, key=lambda row: float(row["score"]))["key"]
    assert outcome.stdout.split("q-value")[1].index(worst) < 200  # the first one that is named
    assert outcome.stderr == "Pairs: out.csv\n"


def test_the_key_may_have_two_names():
    write_table("z.csv", {"sample": IDS, **{f"b{number}": column for number, column in enumerate(DATA.Y.T)}})
    outcome = run("x.csv", "z.csv", "--key", "id", "--key", "sample", "--json-pairs")
    assert json.loads(outcome.stdout)["pairs"]["inlier"] == DATA.inlier_mask.tolist()


def test_losses_of_the_join_are_said():
    write_table("short.csv", {"id": np.array([*IDS[5:], IDS[7]]), "b": np.arange(N - 4.0), "c": np.ones(N - 4)})
    outcome = run("x.csv", "short.csv", "--key", "id")
    assert "Note: 1 id occurs more than once in short.csv" in outcome.stderr
    assert "Note: 5 ids of x.csv are not in short.csv: s000, s001, s002, ...." in outcome.stderr
    assert "Note: 1 of the 2 columns of short.csv holds a single value" in outcome.stderr


def test_columns():
    outcome = run("x.csv", "y.csv", "--key", "id", "--columns", "a1, a3", "--columns", 'b0,"b2"', "--json-pairs")
    matcher = CalibratedMatcher(random_state=0).fit(DATA.X[:, [1, 3]], DATA.Y[:, [0, 2]])
    assert json.loads(outcome.stdout)["pairs"]["q_value"] == pytest.approx(matcher.q_values_)


@pytest.mark.parametrize(
    ("words", "matcher"),
    [
        ([], CalibratedMatcher(random_state=0)),
        (["--alpha", "0.2", "--seed", "3", "--no-whiten"], CalibratedMatcher(0.2, whiten=False, random_state=3)),
        (["--splits", "2"], Split(CalibratedMatcher(random_state=0), 2, random_state=0)),
        (["--method", "row-sum"], RowSumMatcher()),
        (["--method", "row-sum", "--whiten", "--threshold", "99.5"], RowSumMatcher(99.5, whiten=True)),
        (["--method", "row-sum", "--inlier-fraction", "0.6"], RowSumMatcher(row_sum_threshold(N, 8, 0.6))),
        (
            ["--method", "row-sum", "--inlier-fraction", "0.6", "--splits", "4"],
            Split(RowSumMatcher(row_sum_threshold(N // 4, 8, 0.6)), 4, random_state=0),
        ),
        (["--method", "eigenvector"], EigenvectorMatcher()),
        (["--method", "eigenvector", "--inlier-fraction", "0.6"], EigenvectorMatcher(eigenvector_threshold(0.6))),
    ],
)
def test_every_setting_reaches_the_matcher(words, matcher):
    content = json.loads(run("x.npy", "y.npy", "--json-pairs", *words).stdout)
    matcher.fit(DATA.X, DATA.Y)
    assert content["pairs"]["score"] == matcher.scores_.tolist()
    assert content["pairs"]["inlier"] == matcher.inlier_mask_.tolist()
    assert content["n_inliers"] == matcher.inlier_mask_.sum()
    assert content["threshold"] == np.asarray(matcher.threshold_).tolist()


def test_the_command_to_repeat_it():
    words = ["x file.csv", "y.csv", "--key", "id", "--method", "row-sum", "--whiten", "--columns", "a0,a1"]
    Path("x.csv").rename("x file.csv")
    content = json.loads(run(*words, "--columns", "b0,b1", "--json").stdout)
    assert content["command"] == (
        "inlier match 'x file.csv' y.csv --method row-sum --whiten --key id --columns a0,a1 --columns b0,b1 --json"
    )
    again = json.loads(run(*shlex.split(content["command"])[2:]).stdout)
    assert again == content


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet", ".feather", ".npz", ".h5", ".zarr"])
def test_output_by_suffix(suffix):
    path = f"out{suffix}"
    assert run("x.csv", "y.csv", "--key", "id", "-o", path, "--quiet").output == ""
    table = read_table(path, key="key", columns=["row", "score", "q_value"])
    matcher = CalibratedMatcher(random_state=0).fit(DATA.X, DATA.Y)
    np.testing.assert_array_equal(table.values, np.stack([np.arange(N), matcher.scores_, matcher.q_values_], axis=1))
    assert table.keys.tolist() == IDS.tolist()


def test_json_has_the_pairs_only_where_they_are_asked_for():
    content = json.loads(run("x.npy", "y.npy", "--json", "--quiet").stdout)
    everything = json.loads(run("x.npy", "y.npy", "--json-pairs", "--quiet").stdout)
    pairs = everything.pop("pairs")
    assert "pairs" not in content
    assert content.pop("command") == everything.pop("command").replace("--json-pairs", "--json")
    assert content == everything
    assert len(pairs["inlier"]) == N


def test_a_pipeline_stops_where_more_is_wrong_than_may_be():
    wrong = 1 - CalibratedMatcher(random_state=0).fit(DATA.X, DATA.Y).inlier_fraction_
    assert run("x.npy", "y.npy", "--max-wrong", wrong + 0.01).exit_code == 0
    outcome = run("x.npy", "y.npy", "--max-wrong", "0.05", "--json", "--quiet")
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith("About 4")
    assert outcome.stderr.endswith(" % of the pairs are wrong, more than --max-wrong 0.05.\n")
    assert json.loads(outcome.stdout)["n_inliers"] > 0  # the answer is printed all the same
    assert (
        "--max-wrong belongs to --method calibrated"
        in run("x.npy", "y.npy", "--max-wrong", "0.1", "--method", "row-sum").stderr
    )


def test_output_as_json_and_as_a_mask():
    run("x.npy", "y.npy", "-o", "out.json", "--quiet")
    content = json.loads(Path("out.json").read_text())
    assert content["pairs"]["inlier"] == DATA.inlier_mask.tolist()
    assert content["inlier_fraction"] == pytest.approx(0.6, abs=0.05)
    assert 0.4 < content["inlier_fraction_at_least"] <= content["inlier_fraction"]
    assert 0 <= content["wrong_at_most"] < 24
    pairs = content["pairs"]
    assert content["n_certain"] == sum(pairs["certain"])
    for accepted, certain, q, certain_q in zip(
        *(pairs[name] for name in ("inlier", "certain", "q_value", "certain_q_value")), strict=True
    ):
        assert accepted >= certain == (certain_q <= 0.01)
        assert q <= certain_q
    assert {"numpy", "inlier"} <= set(content["versions"])
    run("x.npy", "y.npy", "-o", "mask.npy", "--quiet")
    np.testing.assert_array_equal(np.load("mask.npy"), DATA.inlier_mask)


def test_output_to_stdout_leaves_the_words_to_stderr():
    outcome = run("x.npy", "y.npy", "-o", "-")
    rows = list(csv.DictReader(io.StringIO(outcome.stdout)))
    assert [row["inlier"] == "true" for row in rows] == DATA.inlier_mask.tolist()
    assert "240 of 400 pairs are real" in outcome.stderr


def test_whitening_counts_the_directions_that_there_are(folder):
    twice = np.hstack([DATA.X, DATA.X])  # 16 columns, 8 directions
    write_table("twice.npy", twice)
    words = ("--method", "row-sum", "--whiten", "--inlier-fraction", "0.6", "--json-pairs")
    found = json.loads(run("twice.npy", "y.npy", *words).stdout)
    assert found["threshold"] == row_sum_threshold(N, 8, 0.6)
    assert found["pairs"]["inlier"] == json.loads(run("x.npy", "y.npy", *words).stdout)["pairs"]["inlier"]


def test_report(folder):
    outcome = run("x.csv", "y.csv", "--key", "id", "--report", "here/report.html")
    assert outcome.stderr == "Report: here/report.html\n"
    page = (folder / "here" / "report.html").read_text()
    assert "240 of 400 pairs are real, with at most 1\u00a0% wrong among them." in page
    assert "inlier match x.csv y.csv --key id --report here/report.html" in page
    assert "s007" in page


def test_nothing_found_is_exit_code_1():
    nothing = make_gaussian_pairs(300, 5, 0.0, rng=0)
    write_table("nx.npy", nothing.X)
    write_table("ny.npy", nothing.Y)
    outcome = run("nx.npy", "ny.npy", "-o", "out.csv")
    assert outcome.exit_code == 1
    assert outcome.stdout.startswith("None of the 300 pairs can be called real at alpha = 0.01.")
    assert len(read_table("out.csv", columns=["score"])) == 300  # written all the same


def test_too_few_pairs_for_alpha():
    perfect = make_gaussian_pairs(8, 2, 1.0, rng=0)
    write_table("fx.npy", perfect.X)
    write_table("fy.npy", perfect.Y)
    outcome = run("fx.npy", "fy.npy")
    assert outcome.exit_code == 1
    assert "With 8 pairs alpha = 0.01 is out of reach" in outcome.stdout
    assert run("fx.npy", "fy.npy", "--alpha", "0.05").exit_code == 0
    ten = make_gaussian_pairs(10, 2, 1.0, rng=0)
    write_table("tx.npy", ten.X)
    write_table("ty.npy", ten.Y)
    assert "10 of 10 pairs" in run("tx.npy", "ty.npy").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x.npy"], "Only x.npy is named. Name the file with the partners of its rows as well"),
        (["x.npy", "absent.npy"], "there is no file absent.npy"),
        (["x.npy", "y.csv"], "column 'id' of y.csv does not hold numbers (for example"),
        (["x.csv", "y.csv", "--key", "name"], "x.csv has no column named 'name'; it has id, a0"),
        (["x.csv", "y.csv", "--columns", "b0"], "x.csv has no column named 'b0'"),
        (["x.csv", "y.csv", *["--key", "id"] * 3], "--key was given 3 times"),
        (["x.npy", "short.npy"], "x.npy has 400 rows and short.npy has 7"),
        (
            ["x.npy", "nan.npy", "--method", "row-sum"],
            "nan.npy contains NaN or infinity: 1 value(s), the first (nan) in row 3, column 2",
        ),
        (
            ["x.csv", "hole.csv", "--key", "id", "--method", "row-sum"],
            "hole.csv contains NaN or infinity: 1 value(s), the first (nan) in id s007",
        ),
        (["two.npy", "two.npy"], "At least 4 pairs are needed to compare, but there are 2"),
        (["two.npy", "two.npy"], "Each row is one pair: give more rows, or transpose both tables"),
        (["two.npy", "two.npy", "--splits", "2"], "give at least 4 pairs, and do not split them"),
        (["x.npy", "same.npy"], "same.npy is constant: all 400 rows are the same"),
        (["x.npy", "same.npy", "--missing", "1"], "same.npy has no values: in all 400 rows and 3 columns they are"),
        (["same.npy", "y.npy", "--method", "row-sum"], "same.npy is constant: all 400 rows are the same"),
        (
            ["data.npz:x", "data.npz:y", "--method", "row-sum"],
            "data.npz:y contains NaN or infinity: 1 value(s), the first (nan) in row 3",
        ),
        (["x.npy", "y.npy", "--threshold", "3"], "--threshold does nothing with --method calibrated"),
        (["x.npy", "y.npy", "--inlier-fraction", "0.5"], "--inlier-fraction does nothing with --method calibrated"),
        (["x.npy", "y.npy", "--method", "row-sum", "--alpha", "0.1"], "--alpha does nothing with --method row-sum"),
        (
            ["x.npy", "y.npy", "--method", "row-sum", "--threshold", "1", "--inlier-fraction", "0.5"],
            "Give one of them",
        ),
        (["x.npy", "y.npy", "--alpha", "0.7"], "not in the range"),
        (
            ["x.npy", "y.npy", "--splits", "300"],
            "--splits=300 leaves a part with fewer than 4 of the n_samples = 400 pairs; use 100 or less",
        ),
        (["x.npy", "y.npy", "--method", "magic"], "is not one of"),
        (["x.npy", "y.npy", "-o", "out.docx"], "out.docx ends in '.docx'"),
        (["x.csv", "y.csv", "--key", "id", "-o", "x.csv"], "x.csv is read by this command, and would be overwritten"),
        (["x.csv", "y.csv", "--key", "id", "-o", "sub/../x.csv"], "sub/../x.csv is read by this command"),
        (["x.csv", "y.csv", "--key", "id", "-o", "link.csv"], "link.csv is read by this command"),
        (["link.csv", "y.csv", "--key", "id", "-o", "x.csv"], "x.csv is read by this command"),
        (["x.csv", "y.csv", "--key", "id", "-o", "hard.csv"], "hard.csv is read by this command"),
        (["x.npy", "y.npy", "-o", "-", "--json"], "-o - and --json both print to standard output. Give -o a file"),
        (["x.csv", "y.csv", "--columns", ""], "Error: --columns names no column. Give names with commas between them"),
        (["x.npy", "y.npy", "--columns", " "], "Error: --columns names no column"),
        (["x.csv", "y.csv", "--columns", "a0\na1"], "--columns 'a0\\na1' could not be read as names with commas"),
        (["x.npy", "y.npy", "--alpha", "nan"], "Error: --alpha must be a finite number; got nan"),
        (["x.npy", "y.npy", "--method", "row-sum", "--threshold", "inf"], "Error: --threshold must be a finite number"),
        (
            ["x.npy", "y.npy", "--method", "row-sum", "--inlier-fraction", "nan"],
            "Error: --inlier-fraction must be a finite number",
        ),
        (["x.npy", "y.npy", "--report", "page.pdf"], "page.pdf would hold a page, which is HTML"),
        (["x.npy", "y.npy", "-o", "out.ply"], "out.ply (ply) would hold points with x, y and z"),
        (["x.npy", "y.npy", "-o", "out.png"], "Write csv, parquet or npz"),
        (["x.npy:a", "y.npy"], "x.npy (npy) holds one array of numbers; leave out :a"),
        (["x.npy", "y.npy", "-o", "x.csv/out.csv"], "a file stands where a folder is needed"),
        (["x.npy", "y.npy", "--report", "x.csv/report.html"], "a file stands where a folder is needed"),
        (["x.npy", "y.npy", "--report", "."], "could not be written"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(folder, words, message):
    write_table("short.npy", DATA.Y[:7])
    write_table("two.npy", DATA.Y[:2])
    Path("sub").mkdir()
    Path("link.csv").symlink_to("x.csv")
    os.link("x.csv", "hard.csv")
    broken = DATA.Y.copy()
    broken[3, 2] = np.nan
    write_table("nan.npy", broken)
    write_table("same.npy", np.ones((400, 3)))
    np.savez("data.npz", x=DATA.X, y=broken)
    Path("hole.csv").write_text("\n".join(["id,b0", *(f"{key},{'' if key == 's007' else 1}" for key in IDS)]))
    before = {path.name: path.is_dir() or path.read_bytes() for path in folder.iterdir()}
    outcome = run(*words)
    assert outcome.exit_code == 2, outcome.output
    assert message in " ".join(outcome.stderr.split())
    assert "Traceback" not in outcome.output
    assert outcome.stdout == ""
    # nothing half written, nothing overwritten
    assert {path.name: path.is_dir() or path.read_bytes() for path in folder.iterdir()} == before


def test_without_the_report_extra_the_work_is_not_begun(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    outcome = run("x.npy", "y.npy", "--report", "report.html")
    assert outcome.exit_code == 2
    assert "pip install jinja2" in outcome.stderr
    assert outcome.stdout == ""


def test_without_the_io_extra_the_work_is_not_begun(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    outcome = run("x.npy", "y.npy", "-o", "out.parquet")
    assert outcome.exit_code == 2
    assert "parquet files need pyarrow; install it with: pip install 'pyarrow'" in outcome.stderr
    assert outcome.stdout == ""
    assert run("x.npy", "y.npy", "-o", "out.csv").exit_code == 0  # csv does without
    assert run("x.npy", "y.npy", "-o", "-").stdout.startswith("row,score,")
    assert run("x.npy", "y.npy", "-o", "out.npz").exit_code == 0


def test_ids_that_look_like_markup_are_printed_as_they_are():
    ids = np.array([f"[bold]{number}[/bold]" for number in range(N)])
    for name, values in (("x", DATA.X), ("y", DATA.Y)):
        write_table(
            f"{name}m.csv", {"id": ids, **{f"{name}{number}": column for number, column in enumerate(values.T)}}
        )
    assert "[bold]" in run("xm.csv", "ym.csv", "--key", "id").stdout


def test_ctrl_c_leaves_no_half_file(folder):
    """Interrupt a real process while it writes."""
    code = (
        "import os, signal, sys, time\n"
        "from pathlib import Path\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # what runs in the background ignores it
        "import inlier.io._text_files\n"
        "def slow(stream, blocks, delimiter):\n"
        "    stream.write(b'half'); stream.flush(); Path('writing').touch(); time.sleep(60)\n"
        "inlier.io._text_files.write_delimited = slow\n"
        "from inlier.cli import main\n"
        "main(['match', 'x.npy', 'y.npy', '-o', 'out.csv'])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (folder / "writing").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    before_the_end = list(folder.glob(".inlier-*/out.csv"))
    os.kill(process.pid, signal.SIGINT)
    _, words = process.communicate(timeout=60)
    assert before_the_end, words
    assert process.returncode == 130
    assert words == "Interrupted. No file was left half written.\n"
    assert not (folder / "out.csv").exists()
    assert not list(folder.glob(".inlier-*"))


def test_two_embeddings_of_words_joined_on_the_word(real_data):
    path = real_data / "highd" / "words_glove100_wordllama_3000x100.npz"
    content = json.loads(run(f"{path}:X", f"{path}:Y", "--key", "words", "--json-pairs").stdout)
    assert content["n_pairs"] == 3000
    assert content["inlier_fraction"] > 0.95  # every pair is real
    assert {"the", "which"} <= set(content["pairs"]["key"])


def test_the_certain_are_counted_and_the_others_could_be_one_of_so_many_rows():
    """Half of the rows have a twin, from whom the noise does not tell them apart."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 10))
    x[1:200:2] = x[:200:2] + 1e-4 * rng.normal(size=(100, 10))
    y = x[:, ::-1] + 0.05 * rng.normal(size=x.shape)
    np.save("x.npy", x)
    np.save("y.npy", y)
    outcome = run("x.npy", "y.npy", "--json-pairs")
    content = json.loads(outcome.stdout)
    assert content["n_inliers"] > 390
    certain, n_rivals = (np.array(content["pairs"][name]) for name in ("certain", "n_rivals"))
    assert not certain[:200].any()  # it could be the twin
    assert np.median(n_rivals[:200]) == 1
    assert certain[200:].mean() in (0, pytest.approx(1, abs=0.1))
    said = next(line for line in outcome.stderr.splitlines() if "certain" in line)
    if certain.any():
        assert said.startswith(
            f"{certain.sum()} are certain: no other row would fit; most of the others could as well be"
        )
    assert " rows." in said


def test_pairs_that_were_chosen_because_they_are_near_are_refused():
    """Rows of two unrelated sets that are each other's nearest."""
    x, y = np.random.default_rng(0).random((2, 1500, 3))
    of_x, of_y = cKDTree(y).query(x)[1], cKDTree(x).query(y)[1]
    rows = np.flatnonzero(of_y[of_x] == np.arange(1500))
    np.save("x.npy", x[rows])
    np.save("y.npy", y[of_x[rows]])
    outcome = run("x.npy", "y.npy")
    assert outcome.exit_code == 1
    assert "Note: The pairs seem to have been chosen because they are near each other" in outcome.stderr
    assert f"{rows.size} pairs were refused: chosen because they are near." in outcome.stdout


def test_where_parts_do_not_see_each_other_nobody_is_called_certain():
    outcome = run("x.npy", "y.npy", "--splits", "2", "-o", "out.csv")
    assert "Whether another row would fit as well was not looked at: a part does not see" in outcome.stdout
    assert not {"certain", "n_rivals"} & set(Path("out.csv").read_text().splitlines()[0].replace('"', "").split(","))
