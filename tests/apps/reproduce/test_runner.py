from __future__ import annotations

import pytest

from inlier.apps.reproduce.experiment import Sources
from inlier.apps.reproduce.runner import EXPERIMENTS, kept_cells, run_experiment


def no_times(rows):
    return [row for row in rows if row["quantity"] != "seconds per repetition"]


@pytest.mark.parametrize("name", ["brain-ratio", "brain-split-row-sum", "sky-noise", "theory-row-sum"])
def test_the_numbers_do_not_depend_on_the_number_of_processes(tiny, sources, name):
    experiment = tiny(name)
    run = experiment.prepare(sources, quick=True, seed=3)
    alone, together = (run_experiment(experiment, run, jobs=jobs) for jobs in (1, 2))
    assert no_times(alone.rows) == no_times(together.rows)


def test_the_seed_decides(tiny, sources):
    experiment = tiny("brain-ratio")
    first, again, other = (
        run_experiment(experiment, experiment.prepare(sources, quick=True, seed=seed)).rows for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_repetitions_keep_their_numbers_when_there_are_more_of_them(tiny, sources):
    experiment = tiny("brain-ratio")
    few, many = (experiment.prepare(sources, quick=True, repetitions=count) for count in (2, 3))
    cell = {"inlier_fraction": 0.6, "first": 0}
    assert experiment.run_cell(many, {**cell, "last": 3})[:10] == experiment.run_cell(few, {**cell, "last": 2})


class Counting(type(EXPERIMENTS["brain-ratio"])):
    """An experiment of five cells that notes which of them it computes."""

    name, full, quick, data, quantities = "counting", {}, {}, (), ("value",)

    def __init__(self, calls, fail_at=None):
        self.calls, self.fail_at = calls, fail_at

    def points(self, settings):
        return [{"cell": k} for k in range(5)]

    def measure(self, run, point, repetition):
        if point["cell"] == self.fail_at:
            raise KeyboardInterrupt
        self.calls.append(point["cell"])
        return [{"value": float(run.generator(point["cell"]).random())}]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    calls, seen = [], []
    interrupted = Counting(calls, fail_at=3)
    run = interrupted.prepare(Sources())
    with pytest.raises(KeyboardInterrupt):
        run_experiment(interrupted, run, keep_in=tmp_path)
    assert calls == [0, 1, 2]
    resumed = run_experiment(
        Counting(calls), run, keep_in=tmp_path, progress=lambda name, done, total: seen.append((done, total))
    )
    assert calls == [0, 1, 2, 3, 4]
    assert seen == [(3, 5), (4, 5), (5, 5)]
    assert resumed.rows == run_experiment(Counting([]), run).rows


def test_another_seed_does_not_resume(tmp_path):
    calls = []
    experiment = Counting(calls)
    for seed in (0, 1):
        run_experiment(experiment, experiment.prepare(Sources(), seed=seed), keep_in=tmp_path)
    assert calls == [0, 1, 2, 3, 4] * 2


def test_a_torn_file_is_computed_again(tmp_path):
    calls = []
    experiment = Counting(calls)
    run = experiment.prepare(Sources())
    run_experiment(experiment, run, keep_in=tmp_path)
    kept_cells(tmp_path, run, experiment.cells(run.settings))[2].write_text('[{"cell": 2, "va')
    run_experiment(experiment, run, keep_in=tmp_path)
    assert calls == [0, 1, 2, 3, 4, 2]
