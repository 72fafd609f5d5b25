from __future__ import annotations

import json
import math
from itertools import groupby

import numpy as np
import pytest

from inlier import plotting
from inlier.apps.reproduce.experiment import load_sources, only, select
from inlier.apps.reproduce.runner import EXPERIMENTS, find_experiments, run_experiment


@pytest.fixture
def outcome_of(tiny, sources):
    def run(name):
        experiment = tiny(name)
        return run_experiment(experiment, experiment.prepare(sources, quick=True))

    return run


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_quick_run_gives_a_table_a_picture_and_verdicts(outcome_of, name):
    outcome = outcome_of(name)
    assert all(math.isfinite(row["mean"]) and row["stderr"] >= 0 for row in outcome.rows)
    labels = [json.dumps({k: v for k, v in row.items() if k not in ("mean", "sd", "stderr")}) for row in outcome.rows]
    assert len(set(labels)) == len(labels)
    assert outcome.experiment.headline(outcome.rows)
    assert outcome.claims
    assert all(isinstance(claim.holds, bool) and claim.evidence.endswith(".") for claim in outcome.claims)
    assert plotting.as_png(outcome.experiment.plot(outcome.run, outcome.rows), dpi=30).startswith(b"\x89PNG")


def test_the_registry():
    assert list(EXPERIMENTS) == [
        "brain-ratio",
        "brain-split-eigenvector",
        "brain-split-row-sum",
        "sky-images",
        "sky-noise",
        "case-study",
        "theory-row-sum",
        "theory-eigenvector",
        "whole-photo",
    ]
    assert [e.name for e in find_experiments(["sky-noise", "brain-ratio", "sky-noise"])] == ["brain-ratio", "sky-noise"]
    with pytest.raises(ValueError, match="no experiment named 'figure-9'; there are: brain-ratio"):
        find_experiments(["figure-9"])


def test_full_settings_are_the_papers():
    ratio, split, noise = (EXPERIMENTS[name].full for name in ("brain-ratio", "brain-split-row-sum", "sky-noise"))
    assert (ratio["n"], ratio["repetitions"], len(ratio["inlier_fractions"])) == (2000, 1000, 8)
    assert (split["n"], split["inlier_fraction"], split["splits"]) == (12_000, 0.8, [1, 2, 3, 4, 6, 12])
    assert (noise["n"], noise["repetitions"], len(noise["noise_variances"])) == (5000, 1000, 21)


def test_repetitions_can_be_set_where_there_are_any():
    settings = EXPERIMENTS["brain-split-row-sum"].settings(repetitions=3)
    assert (settings["repetitions"], settings["dense_repetitions"]) == (3, 3)
    assert EXPERIMENTS["case-study"].settings(repetitions=3) == {}


@pytest.mark.parametrize("name", ["brain-split-eigenvector", "brain-split-row-sum"])
def test_both_solvers_misjudge_the_same_pairs(tiny, sources, name):
    experiment = tiny(name)
    run = experiment.prepare(sources, quick=True)
    for splits in (1, 3):
        dense, ours = (
            experiment.run_cell(run, {"solver": solver, "splits": splits, "first": 0, "last": 1})[0]["error overall"]
            for solver in ("dense", "linear")
        )
        assert dense == ours


def test_the_brain_errors_are_near_the_papers(sources):
    experiment = EXPERIMENTS["brain-split-row-sum"]
    run = experiment.prepare(sources)
    records = experiment.run_cell(run, {"solver": "linear", "splits": 1, "first": 0, "last": 5})
    assert np.mean([record["error overall"] for record in records]) == pytest.approx(0.072, abs=0.005)


def test_the_brain_errors_on_the_papers_data(real_data):
    sources = load_sources(["brain"], brain=real_data / "brain" / "S1200_L_32k.npz")
    for name, printed in (("brain-split-eigenvector", 0.075), ("brain-split-row-sum", 0.072)):
        experiment = EXPERIMENTS[name]
        run = experiment.prepare(sources)
        for splits in (1, 12):
            records = experiment.run_cell(run, {"solver": "linear", "splits": splits, "first": 0, "last": 10})
            assert np.mean([record["error overall"] for record in records]) == pytest.approx(printed, abs=0.005)


def test_the_transition_is_where_half_of_the_trials_succeed(tiny, sources):
    experiment = tiny("theory-row-sum")
    run = experiment.prepare(sources, quick=True)
    point = {"regime": "d = n / 2", "d": 50}
    chances = {100: {10: 0.0, 20: 0.25, 40: 0.75, 80: 1.0}, 200: {20: 0.0, 40: 0.25, 80: 0.75, 160: 1.0}}
    records = [
        {**point, "n": n, "inliers": inliers, "probability of exact recovery": k < 8 * chance}
        for n, line in chances.items()
        for inliers, chance in line.items()
        for k in range(8)
    ]
    run.settings["sizes"] = {"d = n / 2": [100, 200]}
    rows = experiment.table(run, records)
    half = select(rows, quantity="inliers at which half of the trials succeed")
    np.testing.assert_allclose([row["mean"] for row in half], [20 * 2**0.5, 40 * 2**0.5])
    slope = only(rows, quantity="slope of the transition")
    assert slope["mean"] == pytest.approx(1.0)
    assert slope["stderr"] > 0


def test_a_regime_without_a_transition_has_no_slope(tiny, sources):
    experiment = tiny("theory-row-sum")
    run = experiment.prepare(sources, quick=True)
    run.settings["sizes"] = {"d = n / 2": [100, 200]}
    records = [
        {"regime": "d = n / 2", "n": n, "d": 5, "inliers": g, "probability of exact recovery": False}
        for n in (100, 200)
        for g in (10, 20)
    ]
    rows = experiment.table(run, records)
    assert {row["quantity"] for row in rows} == {"probability of exact recovery"}
    assert experiment.headline(rows) == []
    assert not any(claim.holds for claim in experiment.claims(rows))
    experiment.plot(run, rows)


def test_more_inliers_are_recovered_more_often(outcome_of):
    rows = select(outcome_of("theory-row-sum").rows, quantity="probability of exact recovery")
    for _, line in groupby(rows, key=lambda row: (row["regime"], row["n"])):
        line = list(line)
        assert line[-1]["mean"] >= line[0]["mean"]


def test_case_study_of_other_photos_has_no_truth(tmp_path, tiny):
    from PIL import Image

    rng = np.random.default_rng(0)
    paths = []
    for k in range(3):
        paths.append(tmp_path / f"{k}.png")
        Image.fromarray(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(paths[-1])
    experiment = tiny("case-study")
    outcome = run_experiment(experiment, experiment.prepare(load_sources(["scenes"], photos=paths)))
    assert {row["quantity"] for row in outcome.rows} == {"share of pixels called different"}
    assert outcome.claims == []
    assert outcome.run.sources.describe()["scenes"]["name"] == "0.png, 1.png, 2.png"
