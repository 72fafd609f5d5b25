from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from inlier.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, list(arguments))


def test_demo_prints_a_table_and_a_sentence_and_writes_a_page(run, tmp_path):
    outcome = run("demo", "--pairs", "2000")
    assert outcome.exit_code == 0, outcome.output
    assert "Row sum" in outcome.stdout
    assert "Eigenvector" in outcome.stdout
    assert "400 of them with the wrong partner" in " ".join(outcome.stdout.split())
    page = (tmp_path / "inlier-demo" / "report.html").read_text()
    assert "Which pairs are real?" in page
    assert "data:image/png;base64," in page
    assert "http" not in page  # self-contained
    assert (tmp_path / "inlier-demo" / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_demo_as_json(run):
    outcome = run("demo", "--pairs", "12000", "--json", "--out", "elsewhere")
    content = json.loads(outcome.stdout)
    assert content["n_pairs"] == 12_000
    assert content["n_wrong"] == 2400
    *of_the_paper, calibrated = content["methods"]
    for method in of_the_paper:
        assert method["error_overall"] == pytest.approx(0.076, abs=0.01)
    assert calibrated["error_overall"] < 0.001
    assert all(method["seconds"] > 0 for method in content["methods"])


def test_the_seed_decides(run):
    def errors(seed):
        methods = json.loads(run("demo", "--pairs", "1000", "--json", "--seed", seed).stdout)["methods"]
        return [method["error_overall"] for method in methods]

    assert errors("1") == errors("1")
    assert errors("1") != errors("2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--pairs", "3"], "not in the range"),
        (["demo", "--inlier-fraction", "1.5"], "not in the range"),
        (["demo", "--pairs", "10", "--inlier-fraction", "0.9"], "leaves one outlier"),
        (["demo", "--out", "blocker/inside"], "could not be written"),
        (["demo", "--seed", "x"], "not a valid integer"),
        (["fly"], "No such command"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(run, tmp_path, arguments, message):
    (tmp_path / "blocker").write_text("a file, not a folder")
    outcome = run(*arguments)
    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert "Traceback" not in outcome.output


def test_without_the_report_extra_the_table_is_still_printed(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    outcome = run("demo", "--pairs", "500")
    assert outcome.exit_code == 0
    assert "Row sum" in outcome.stdout
    assert "pip install 'inlier[report]'" in outcome.stderr


def test_help_has_an_example_and_loads_nothing_heavy():
    code = (
        "import sys; from click.testing import CliRunner; from inlier.cli import main;"
        "print(CliRunner().invoke(main, ['--help']).output);"
        "heavy = {'numpy', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules); sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "inlier demo" in done.stdout


def test_every_command_has_an_example(run):
    for name in main.commands:
        assert "Example:" in run(name, "--help").output
