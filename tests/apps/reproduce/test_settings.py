"""The paper's settings may be changed: sizes, noise, thresholds."""

from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner

from inlier.apps.reproduce.runner import EXPERIMENTS
from inlier.apps.reproduce.settings import changed
from inlier.cli import main

FEW = ["--repetitions", "2", "--jobs", "1"]


def run(*words):
    return CliRunner().invoke(main, ["reproduce", *map(str, words)])


def test_size_noise_and_threshold_are_those_that_were_asked_for(tmp_path):
    outcome = run("sky-noise", "--n", 300, "--noise", "0:50:25", "--threshold", ".4", *FEW, "--out", tmp_path)
    assert outcome.exit_code == 0, outcome.output
    record = json.loads((tmp_path / "sky-noise.json").read_text())
    assert record["settings"] == {
        "n": 300,
        "noise_variances": [0.0, 25.0, 50.0],
        "repetitions": 2,
        "thresholds": [0.4],
    }
    with (tmp_path / "sky-noise.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {float(row["noise_variance"]) for row in rows} == {0.0, 25.0, 50.0}
    error = {
        row["method"]: float(row["mean"])
        for row in rows
        if row["quantity"] == "error on G" and row["noise_variance"] == "50.0" and row["scenario"][0] == "1"
    }
    assert error["eigenvector, t = 0.3"] <= error["eigenvector, t = 0.4"] <= error["eigenvector, t = 0.5"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("brain-ratio", "--noise", "0,5"), "--noise is no setting of brain-ratio"),
        (("sky-noise", "--n", "2000,3000"), "--n takes one value in this experiment; got 2"),
        (("sky-noise", "--n", "20.5"), "--n takes whole numbers from 1 on; got 20.5"),
        (("sky-noise", "--threshold", "1.5"), "--threshold takes numbers from 0 to 1; got 1.5"),
        (("sky-noise", "--noise", "0:50:0"), "'0:50:0' is no list of numbers, such as 0,50,100 or 0:50:5"),
        (("sky-noise", "--noise", "50:0:5"), "is no list of numbers"),
        (("sky-noise", "--noise", "a"), "is no list of numbers"),
    ],
)
def test_what_does_not_fit_is_refused(words, said):
    outcome = run(*words)
    assert outcome.exit_code == 2
    assert said in " ".join(outcome.stderr.split())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_experiment_of_sizes_takes_others(name):
    settings = EXPERIMENTS[name].settings()
    other = changed(settings, (), {"n": (200.0,), "sizes": (100.0, 200.0), "fraction": (0.6,), "noise": (7.0,)})
    for key in {"n", "sample"} & set(settings):
        assert other[key] == 200
    for key in {"noise_variances", "inlier_fractions"} & set(settings):
        assert other[key] in ([7.0], [0.6])
    sizes = other.get("sizes", [100, 200])
    assert all(of == [100, 200] for of in (sizes.values() if isinstance(sizes, dict) else [sizes]))
    assert EXPERIMENTS[name].points(other)
