"""``inlier match`` with groups, strata and gaps."""

import numpy as np
import pytest
from click.testing import CliRunner

from inlier.cli import main
from inlier.datasets import make_gaussian_pairs
from inlier.io import read_labels, write_table

N = 200
DATA = make_gaussian_pairs(N, 6, 0.7, noise=0.05, rng=0)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plates = np.array([f"P{number % 4}" for number in range(N)])
    write_table("x.csv", {"plate": plates, **{f"a{k}": column for k, column in enumerate(DATA.X.T)}})
    write_table("y.csv", {"subject": np.arange(N) // 2, **{f"b{k}": column for k, column in enumerate(DATA.Y.T)}})
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, ["match", *arguments, "--quiet"])


def test_labels_are_read_from_either_file_and_are_not_compared():
    answer = run("x.csv", "y.csv", "--stratum", "plate", "--group", "subject")
    assert answer.exit_code == 0, answer.output
    assert read_labels("y.csv", "subject")[:3].tolist() == ["0", "0", "1"]


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (("--stratum", "tissue"), "'tissue'"),
        (("--stratum", "plate", "--method", "row-sum"), "--stratum belongs to --method calibrated"),
        (("--stratum", "plate", "--splits", "2"), "without --splits"),
        (("--group", "plate", "--stratum", "a0"), "different for every pair"),
    ],
)
def test_labels_that_cannot_be_used_are_answered_in_a_sentence(options, facts):
    answer = run("x.csv", "y.csv", *options)
    assert answer.exit_code == 2
    assert facts in answer.output


def test_an_empty_label_is_refused_by_its_row(folder):
    lines = (folder / "x.csv").read_text().splitlines()
    lines[3] = "," + lines[3].split(",", 1)[1]
    (folder / "x.csv").write_text("\n".join(lines))
    answer = run("x.csv", "y.csv", "--stratum", "plate")
    assert answer.exit_code == 2
    assert "row 2" in answer.output


def test_gaps_are_matched_by_the_calibrated_method_alone(folder):
    lines = (folder / "x.csv").read_text().splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ","
    (folder / "x.csv").write_text("\n".join(lines))
    assert run("x.csv", "y.csv", "--stratum", "plate").exit_code == 0
    answer = run("x.csv", "y.csv", "--columns", "^plate", "--columns", "^subject", "--method", "row-sum")
    assert answer.exit_code == 2
    assert "row 2, column a5" in answer.output


def test_codes_of_missing_values_are_gaps(folder):
    lines = (folder / "x.csv").read_text().splitlines()
    for number in (3, 9):
        lines[number] = lines[number].rsplit(",", 1)[0] + ",-99"
    (folder / "x.csv").write_text("\n".join(lines))
    answer = run("x.csv", "y.csv", "--stratum", "plate", "--missing", "-99,NA")
    assert answer.exit_code == 0, answer.output
    answer = run("x.csv", "y.csv", "--stratum", "plate", "--missing", "gone")
    assert answer.exit_code == 2
    assert "--missing gone" in answer.output
