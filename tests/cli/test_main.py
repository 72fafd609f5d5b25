from __future__ import annotations

import json
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
    assert "which pairs are real?" in page
    assert page.count("<svg") == 4
    assert "inlier demo --pairs 2000" in page  # to get the same again
    assert "://" not in page  # self-contained
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
        (["demo", "--out", "blocker"], "Error: blocker is a file, but a folder is needed to write to."),
        (["demo", "--save-pairs", "blocker"], "Error: blocker is a file, but a folder is needed to write to."),
        (
            ["demo", "--save-scans", "blocker/in"],
            "Error: blocker/in could not be written: a file stands where a folder",
        ),
        (["reproduce", "sky-images", "--out", "blocker"], "Error: blocker is a file, but a folder is needed"),
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
    assert "pip install jinja2" in outcome.stderr


def test_every_command_has_an_example(run):
    for name in main.list_commands(None):
        assert "Example:" in run(name, "--help").output


class TestReproduce:
    @pytest.fixture
    def run_light(self, run):
        """Only the two experiments that take a moment."""
        from inlier.apps.reproduce.runner import EXPERIMENTS

        everything = dict(EXPERIMENTS)
        for name in set(everything) - {"sky-images", "case-study"}:
            del EXPERIMENTS[name]
        yield run
        EXPERIMENTS.clear()  # back in the order of the paper
        EXPERIMENTS.update(everything)

    def test_list(self, run):
        outcome = run("reproduce", "--list")
        assert outcome.exit_code == 0
        for name in ("brain-ratio", "Table 2", "whole-photo"):
            assert name in outcome.stdout

    def test_named(self, run, tmp_path):
        outcome = run("reproduce", "brain-ratio", "--quick", "--repetitions", "2", "--jobs", "1", "--out", "here")
        assert outcome.exit_code == 0, outcome.output
        assert "does not hold here: A larger threshold decreases the error on G" in " ".join(outcome.stdout.split())
        assert outcome.stderr == "CSV, JSON, PNG and PDF of each: here\n"  # no bar where there is no terminal
        record = json.loads((tmp_path / "here" / "brain-ratio.json").read_text())
        assert record["settings"]["repetitions"] == 2
        assert "A quick run: repetitions 2 instead of 1000" in " ".join(outcome.stdout.split())

    def test_all_writes_a_page(self, run_light, tmp_path):
        outcome = run_light("reproduce", "--all", "--quick", "--jobs", "1", "--out", "here")
        assert outcome.exit_code == 0, outcome.output
        page = (tmp_path / "here" / "reproduction.html").read_text()
        assert page.count("data:image/png;base64,") == 2
        assert "does not hold here" in page
        assert "://" not in page  # self-contained

    def test_compare(self, run_light, monkeypatch):
        assert "agrees with the baseline" in run_light("reproduce", "--compare", "--jobs", "1").stdout
        from inlier.apps.reproduce import output

        def moved(name):
            baselines = load(name)
            for baseline in baselines:
                baseline["rows"][0]["mean"] += 1
            return baselines

        load = output.load_baselines
        monkeypatch.setattr(output, "load_baselines", moved)
        outcome = run_light("reproduce", "case-study", "--compare", "--jobs", "1")
        assert outcome.exit_code == 1
        assert "1 of 18 numbers differ" in outcome.stdout
        assert outcome.stdout.endswith("Compared: all 1 experiments.\n")

    def test_compare_says_what_it_could_not_compare(self, run, run_light, monkeypatch):
        from inlier.apps.reproduce import output

        load = output.load_baselines
        monkeypatch.setattr(output, "load_baselines", lambda name: [] if name == "sky-images" else load(name))
        outcome = run_light("reproduce", "--all", "--compare", "--jobs", "1")
        assert outcome.exit_code == 0
        assert outcome.stdout.splitlines()[-1] == (
            "Compared: 1 of 2 experiments. NOT compared, so nothing is known of: sky-images."
        )
        outcome = run_light("reproduce", "sky-images", "--compare", "--jobs", "1")
        assert outcome.exit_code == 2
        assert "found nothing to compare with" in outcome.stderr

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "Name an experiment"),
            (["figure-9"], "no experiment named 'figure-9'"),
            (["sky-images", "--photo", "nowhere.jpg"], "no photo at nowhere.jpg"),
            (["sky-images", "--photo", "blocker"], "could not be read as an image"),
            (["case-study", "--photo", "blocker", "--photo", "blocker"], "2 photos were given"),
            (["sky-images", "--photo", "tiny.png"], "do not fit into a photo of 3 x 3 pixels"),
            (["brain-ratio", "--brain", "nowhere.npz"], "no brain table at nowhere.npz"),
            (["brain-ratio", "--brain", "blocker"], "is not a folder"),
            (["brain-ratio", "--brain", "words.npz"], "could not be read as a brain table"),
            (["sky-images", "--out", "blocker/inside"], "could not be written"),
            (["case-study", "--photo", "nowhere.jpg"], "one --photo was given, but the chosen experiments read three"),
            (["sky-images", "--repetitions", "0"], "not in the range"),
            (["sky-images", "--jobs", "-1"], "not in the range"),
        ],
    )
    def test_bad_input_is_a_sentence_and_exit_code_2(self, run, tmp_path, arguments, message):
        from PIL import Image

        (tmp_path / "blocker").write_text("a file, not a folder")
        (tmp_path / "words.npz").write_text("words")
        Image.new("RGB", (3, 3)).save(tmp_path / "tiny.png")
        outcome = run("reproduce", *arguments)
        assert outcome.exit_code == 2
        assert message in " ".join(outcome.stderr.split())
        assert "Traceback" not in outcome.output

    def test_without_matplotlib_the_numbers_are_still_written(self, run, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        outcome = run("reproduce", "sky-images", "--out", "here")
        assert outcome.exit_code == 0
        assert "pip install matplotlib" in outcome.stderr
        assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["sky-images.csv", "sky-images.json"]
