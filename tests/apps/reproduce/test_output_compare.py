from __future__ import annotations

import copy
import json

import pytest

from inlier.apps.reproduce.experiment import row
from inlier.apps.reproduce.output import allowed_difference, as_record, compare, load_baselines
from inlier.apps.reproduce.runner import EXPERIMENTS, run_experiment


@pytest.fixture
def record(tiny, sources):
    experiment = tiny("brain-ratio")
    return as_record(run_experiment(experiment, experiment.prepare(sources, quick=True, repetitions=12)))


def test_a_run_agrees_with_itself_and_with_another_seed(record, tiny, sources):
    assert compare(record, [record]).summary == f"agrees with the baseline in all {len(record['rows'])} numbers"
    experiment = tiny("brain-ratio")
    other = as_record(run_experiment(experiment, experiment.prepare(sources, quick=True, repetitions=20, seed=9)))
    assert other["rows"] != record["rows"]
    assert compare(other, [record]).differences == ()


def test_a_planted_difference_is_found_and_named(record):
    planted = copy.deepcopy(record)
    planted["rows"][-1]["mean"] += 0.2
    comparison = compare(planted, [record])
    (difference,) = comparison.differences
    assert comparison.summary == f"1 of {len(record['rows'])} numbers differ from the baseline"
    assert difference.startswith("inlier_fraction 0.9, method row sum, k-means, error overall: ")
    assert "in the baseline (allowed: " in difference


def test_times_are_not_compared(record):
    slower = copy.deepcopy(record)
    for line in (*record["rows"], *slower["rows"]):
        line["quantity"] = "seconds per repetition"
    slower["rows"][0]["mean"] += 100
    assert compare(slower, [record]).n_compared == 0


def test_other_data_is_not_compared(record):
    elsewhere = copy.deepcopy(record)
    elsewhere["data"]["brain"] = {"name": "mine.npz", "fingerprint": "0"}
    comparison = compare(elsewhere, [record])
    assert comparison.summary == (
        "not compared: it ran on mine.npz, and the baseline on conte69 left hemisphere (shipped)"
    )
    assert compare(elsewhere, [record, elsewhere]).n_compared > 0  # it picks the baseline of the same data


def test_other_settings_are_not_compared_but_repetitions_are_free(record):
    other = copy.deepcopy(record)
    other["settings"]["repetitions"] = 99
    assert compare(other, [record]).n_compared > 0
    other["settings"]["inlier_fractions"] = [0.9]
    other["rows"] = [line for line in other["rows"] if line["inlier_fraction"] == 0.9]
    assert compare(other, [record]).n_compared == len(record["rows"]) / 2
    other["settings"]["n"] = 7
    assert compare(other, [record]).summary == "not compared: its settings are not the baseline's (n)"


def test_no_baseline(record):
    assert compare(record, []).summary == "not compared: there is no baseline for it"


def test_few_repetitions_allow_more():
    point = {"r": 0.5}
    few, many = row(point, "error", 0.1, 0.01, 3), row(point, "error", 0.1, 0.01, 10_000)
    assert allowed_difference(many, many) == pytest.approx(4 * 0.01 * (2 / 10_000) ** 0.5, rel=0.01)
    assert allowed_difference(few, few) > 10 * 0.01 * (2 / 3) ** 0.5
    once = row(point, "error", 0.1)
    assert allowed_difference(once, many) == pytest.approx(4 * 0.01, rel=0.01)  # one value borrows the spread
    assert allowed_difference(once, once) == 1e-4


def test_a_few_repetitions_without_an_error_do_not_claim_to_know_the_rate():
    none, rare = row({}, "error", 0.0, 0.0, 20), row({}, "error", 2e-4, 4e-3, 1000)
    assert allowed_difference(none, rare) == pytest.approx(4 * 4e-3 * (1 / 20) ** 0.5, rel=0.05)


def test_fitted_numbers_bring_their_standard_errors():
    slope = row({}, "slope", 0.5, stderr=0.03)
    assert allowed_difference(slope, slope) == pytest.approx(4 * 0.03 * 2**0.5)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_committed_baselines_are_full_runs_without_paths(name):
    baselines = load_baselines(name)
    assert baselines
    for baseline in baselines:
        assert baseline["settings"] == json.loads(json.dumps(EXPERIMENTS[name].full))
        assert "/" not in "".join(source["name"] for source in baseline["data"].values())
        assert baseline["rows"]
    assert len({json.dumps(baseline["data"]) for baseline in baselines}) == len(baselines)


def test_the_baseline_has_the_papers_brain_errors():
    for name, printed in (("brain-split-eigenvector", 0.075), ("brain-split-row-sum", 0.072)):
        (baseline,) = [b for b in load_baselines(name) if b["data"]["brain"]["name"] == "S1200_L_32k.npz"]
        errors = [line["mean"] for line in baseline["rows"] if line["quantity"] == "error overall"]
        assert len(errors) == 12
        assert all(abs(error - printed) <= 0.005 for error in errors)
