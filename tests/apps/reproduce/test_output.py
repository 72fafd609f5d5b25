from __future__ import annotations

import csv
import json

from inlier.apps.reproduce.experiment import row
from inlier.apps.reproduce.output import as_csv, as_record, reproduction_page
from inlier.apps.reproduce.runner import run_all, run_experiment


def test_each_experiment_leaves_four_files_and_nothing_unfinished(tiny, sources, tmp_path):
    outcomes = run_all([tiny("brain-ratio"), tiny("sky-images")], sources, tmp_path, quick=True, jobs=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{name}.{suffix}" for name in ("brain-ratio", "sky-images") for suffix in ("csv", "json", "pdf", "png")
    ]
    with (tmp_path / "brain-ratio.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == len(outcomes[0].rows)
    assert float(lines[0]["mean"]) == outcomes[0].rows[0]["mean"]
    record = json.loads((tmp_path / "brain-ratio.json").read_text())
    assert record["rows"] == outcomes[0].rows
    assert record["settings"]["n"] == 400
    assert {"python", "inlier", "numpy"} <= set(record["versions"])
    assert record["data"]["brain"]["name"] == "conte69 left hemisphere (shipped)"


def test_what_another_experiment_has_finished_is_kept(tiny, sources, tmp_path):
    kept = tmp_path / ".unfinished" / "brain-ratio-0123456789abcdef"
    kept.mkdir(parents=True)
    run_all([tiny("sky-images")], sources, tmp_path, quick=True, jobs=1)
    assert kept.is_dir()
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_the_record_has_no_path_of_this_machine(tiny, tmp_path):
    import numpy as np

    from inlier.apps.reproduce.experiment import load_sources

    rng = np.random.default_rng(0)
    path = tmp_path / "mine.npz"
    np.savez(
        path, xyz=rng.normal(size=(900, 3)), **{k: rng.normal(size=900) for k in ("thickness", "curvature", "myelin")}
    )
    experiment = tiny("brain-ratio")
    outcome = run_experiment(experiment, experiment.prepare(load_sources(["brain"], brain=path), quick=True))
    text = json.dumps(as_record(outcome))
    assert "mine.npz" in text
    assert str(tmp_path) not in text


def test_columns_that_a_row_lacks_are_empty():
    rows = [row({"n": 5}, "norm", 1.0), row({}, "slope", 2.0, paper=1.5)]
    assert as_csv(rows).splitlines() == [
        "n,quantity,mean,sd,stderr,repetitions,paper",
        "5,norm,1.0,0.0,0.0,1,",
        ",slope,2.0,0.0,0.0,1,1.5",
    ]


def test_a_quick_run_says_so_and_has_no_time_of_the_paper_beside_fewer_pairs(tiny, sources):
    experiment = tiny("brain-split-row-sum")
    quick = run_experiment(experiment, experiment.prepare(sources, quick=True))
    page = reproduction_page([quick])
    assert "This was a quick run." in page
    assert "A quick run: n 600 instead of 12000; repetitions 2 instead of 1000" in page
    seconds = [line for line in quick.rows if line["quantity"] == "seconds per repetition"]
    assert all(line["paper"] is None for line in seconds)
    assert "seconds, paper" not in experiment.headline(quick.rows)[0]
    assert any(line["paper"] for line in quick.rows)  # errors do not depend on n, and stay


def test_a_run_of_the_papers_size_has_its_times_beside_ours_and_is_not_called_quick(tiny, sources):
    experiment = tiny("brain-split-row-sum")
    experiment.full = experiment.settings(quick=True)  # as if the paper had had so few pairs
    full = run_experiment(experiment, experiment.prepare(sources, quick=True))
    assert "quick run" not in reproduction_page([full])
    assert experiment.headline(full.rows)[0]["seconds, paper"] == 2.701
