from __future__ import annotations

import csv
import json
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
    """Two csv files with ids in different orders.

    In the second two ids were swapped, one row was left out and those behind it moved up, and two rows are nobody's.
    """
    monkeypatch.chdir(tmp_path)
    data = make_gaussian_pairs(N, 8, 1.0, noise=0.1, rng=0)
    y = data.Y.copy()
    y[[3, 7]] = y[[7, 3]]
    y[100:108] = y[101:109]
    y[[50, 108]] = np.random.default_rng(1).normal(size=(2, 8)) * y.std()
    order = np.random.default_rng(1).permutation(N)
    write_table("x.csv", {"id": IDS, **{f"a{number}": column for number, column in enumerate(data.X.T)}})
    others = {
        "weight": np.where(np.arange(N) == 20, -9999.0, y[:, 0] + 1),
        "plate": np.char.add("P", np.arange(N).astype(str)),
    }
    columns = {f"b{number}": column for number, column in enumerate(y.T)} | others
    write_table("y.csv", {"id": IDS[order], **{name: column[order] for name, column in columns.items()}})
    return data.Y


def run(*words):
    return CliRunner().invoke(main, ["match", *map(str, words)])


def fixed():
    return {row["id"]: row for row in csv.DictReader(Path("fixed.csv").read_text().splitlines())}


def test_a_repaired_table_can_be_matched_again():
    run("x.csv", "y.csv", "--key", "id", "--repair", "fixed.csv", "--columns", "^weight")
    outcome = run("x.csv", "fixed.csv", "--key", "id", "--columns", "^weight", "-q", "-o", "again.csv")
    assert outcome.exit_code == 0, outcome.output
    again = {row["key"]: row for row in csv.DictReader(Path("again.csv").read_text().splitlines())}
    assert again["s003"]["inlier"] == again["s007"]["inlier"] == "true"


def test_the_repair_is_in_the_json():
    outcome = run("x.csv", "y.csv", "--key", "id", "--columns", "^weight", "--repair", "fixed.csv", "--json")
    said = json.loads(outcome.stdout)["repair"]
    arrow = " \N{RIGHTWARDS ARROW} "
    assert set(said["chains"]) == {"s003 \N{LEFT RIGHT ARROW} s007", arrow.join(IDS[108:99:-1])}
    assert said["left_over"] == ["s108"]
    assert {row["row"]: row["partner"] for row in said["rows"] if row["verdict"] == "swapped"} == {
        "s003": "s007",
        "s007": "s003",
    }


def test_the_table_is_put_right(folder):
    outcome = run("x.csv", "y.csv", "--key", "id", "--repair", "fixed.csv", "--report", "page.html")
    assert outcome.exit_code == 0, outcome.output
    assert "10 partners are named: 2 swapped, 8 in chains or rings." in outcome.stdout.replace("\n", " ")
    assert "\n  s003 <-> s007\n" in outcome.stdout
    rows = fixed()
    assert rows["s003"]["inlier_partner"] == "s007"
    assert rows["s003"]["inlier_verdict"] == "swapped"
    assert float(rows["s003"]["b0"]) == pytest.approx(folder[3, 0])
    assert rows["s100"]["inlier_verdict"] == "lost"
    assert rows["s100"]["inlier_partner"] == rows["s100"]["b0"] == rows["s100"]["plate"] == ""
    assert rows["s050"]["inlier_verdict"] == "not clear"  # nothing speaks for another: it stays where it is
    assert rows["s050"]["inlier_partner"] == "s050"
    assert rows["s050"]["plate"] == "P50"
    assert rows["s003"]["plate"] == "P7"  # columns that were not compared come along, as they were
    assert rows["s020"]["weight"] == "-9999"
    assert list(rows["s003"])[-2:] == ["weight", "plate"]
    assert "Note: In fixed.csv one row is without values of Y" in outcome.stderr
    assert "Note: One row of y.csv is nobody's partner in fixed.csv: s108." in outcome.stderr
    page = Path("page.html").read_text()
    assert "s003 \N{LEFT RIGHT ARROW} s007" in page
    assert "Who belongs to whom" in page
    again = run("x.csv", "y.csv", "--key", "id", "--repair", "fixed.csv")
    assert again.exit_code == 0, again.output


def test_ids_that_only_one_file_has_find_each_other(folder):
    text = Path("y.csv").read_text()
    Path("y.csv").write_text(text.replace("s150", "S-150").replace("s200", "s2OO"))
    outcome = run(
        "x.csv", "y.csv", "--key", "id", "--repair", "fixed.csv", "--unmatched", "--report", "page.html", "--force"
    )
    assert outcome.exit_code == 0, outcome.output
    assert "Of the 2 rows given without a partner, 2 have one now." in outcome.stdout.replace("\n", " ")
    rows = fixed()
    assert list(rows) == IDS.tolist()  # in the order of X, also those whose id only X has
    assert rows["s150"]["inlier_partner"] == "S-150"
    assert float(rows["s200"]["b0"]) == pytest.approx(folder[200, 0])
    assert rows["s003"]["inlier_partner"] == "s007"
    page = Path("page.html").read_text()
    assert "s150 \N{RIGHTWARDS ARROW} S-150" in page
    assert "s003 \N{LEFT RIGHT ARROW} s007" in page


def test_the_table_comes_out_as_it_went_in_where_samples_are_its_columns(folder):
    x, y = (list(csv.reader(Path(f"{name}.csv").read_text().splitlines())) for name in "xy")
    y = [[*line[:-2]] for line in y]  # without the weight and the plate
    for name, lines in (("tx", x), ("ty", y)):
        Path(f"{name}.csv").write_text("\n".join(map(",".join, zip(*lines, strict=True))))
    outcome = run("tx.csv", "ty.csv", "--transpose", "--repair", "fixed.csv")
    assert outcome.exit_code == 0, outcome.output
    heading, *lines = csv.reader(Path("fixed.csv").read_text().splitlines())
    assert heading == ["id", *IDS]
    assert [line[0] for line in lines] == [f"b{number}" for number in range(8)]
    assert float(lines[0][1 + 3]) == pytest.approx(folder[3, 0])
    assert lines[0][1 + 100] == ""  # nobody's partner
    assert "Note: In fixed.csv one column is without values of Y" in outcome.stderr
    again = run("tx.csv", "fixed.csv", "--transpose", "--repair", "fixed.csv")
    assert again.exit_code == 2


def test_the_list_for_the_laboratory():
    outcome = run("x.csv", "y.csv", "--key", "id", "--suspects", "list.csv", "--columns", "^weight")
    assert outcome.exit_code == 0, outcome.output
    rows = list(csv.DictReader(Path("list.csv").read_text().splitlines()))
    listed = {row["id"]: row for row in rows}
    assert set(listed) >= {"s003", "s007", "s050", *IDS[100:109]}
    assert "kept" not in {row["verdict"] for row in rows}
    order = [row["verdict"] for row in rows]
    assert order == sorted(order, key=["swapped", "moved", "copy", "lost", "not clear"].index)
    assert listed["s003"]["belongs_with"] == listed["s003"]["candidate_1"] == "s007"
    assert float(listed["s003"]["chance_1"]) > 0.9
    assert listed["s003"]["what_to_do"] == "exchange it with s007"
    assert listed["s101"]["what_to_do"] == "put it with s100"
    assert listed["s100"]["what_to_do"] == "look for its partner elsewhere"
    assert listed["s050"]["what_to_do"] == "check its label, measure it again"
    assert listed["s050"]["belongs_with"] == listed["s100"]["belongs_with"] == ""
    for row in rows:
        chances = [float(row[f"chance_{k}"]) for k in (1, 2, 3)]
        assert sum(chances) + float(row["none_of_these"]) == pytest.approx(1, abs=3e-4)
        assert chances == sorted(chances, reverse=True)
    again = run("x.csv", "y.csv", "--key", "id", "--suspects", "list.csv", "--columns", "^weight")
    assert again.exit_code == 0, again.output
    assert not Path("fixed.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--repair", "y.csv"], "y.csv is read by this command"),
        (["--repair", "fixed.csv", "--method", "row-sum"], "--repair belongs to --method calibrated"),
        (["--repair", "fixed.csv", "--splits", "2"], "--repair belongs to --method calibrated"),
        (["--repair", "fixed.png"], "fixed.png"),
        (["--unmatched"], "--unmatched belongs to --repair"),
        (["--suspects", "y.csv"], "y.csv is read by this command"),
        (["--suspects", "list.csv", "--method", "row-sum"], "--suspects belongs to --method calibrated"),
        (["--suspects", "list.png"], "list.png"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(words, message):
    outcome = run("x.csv", "y.csv", "--key", "id", *words)
    assert outcome.exit_code == 2
    assert message in outcome.output
    assert "Traceback" not in outcome.output
