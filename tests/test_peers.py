"""The comparison with other registration methods: what it needs no other package for."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from inlier import NoConsensusError, Registration

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize("placement", ["uniform", "shifted", "re-paired"])
def test_a_problem_is_what_it_says(placement):
    from registration_bench.problems import Cell

    problem = Cell(1000, 0.8, placement, 3).make()
    residuals = np.linalg.norm(problem.Y - problem.X @ problem.rotation.T - problem.translation, axis=1)
    assert problem.real.sum() == 200
    assert residuals[problem.real].max() < problem.bound
    assert np.median(residuals[~problem.real]) > 5 * problem.bound
    assert np.ptp(problem.X, axis=0).max() == pytest.approx(1, abs=0.05)
    assert np.linalg.det(problem.rotation) == pytest.approx(1)
    again = Cell(1000, 0.8, placement, 3).make()
    np.testing.assert_array_equal(problem.Y, again.Y)


def test_a_noise_problem_that_few_re_pairings_flattered_is_answered_with_no_consensus():
    from registration_bench.problems import Cell

    problem = Cell(100_000, 1.0, "shifted", 37).make()
    with pytest.raises(NoConsensusError):
        Registration(random_state=37).fit(problem.X, problem.Y)


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("least squares", 0.0),
        ("IRLS-L1 (reference)", 0.5),
        ("GNC-TLS (reference)", 0.8),
        ("SC2-PCR (reference)", 0.95),
        ("CLIPPER (reference)", 0.95),
    ],
)
def test_a_reference_fit_solves_what_its_paper_promises(name, rate):
    from registration_bench.guard import ANSWER, measured_fit
    from registration_bench.problems import Cell
    from registration_bench.table import succeeded

    outcome = measured_fit(name, Cell(600, rate, "uniform", 0).make(), 0)
    assert outcome.status == ANSWER
    assert succeeded(outcome)
    assert outcome.precision > 0.95
    assert outcome.recall > 0.95


def test_an_answer_is_compared_with_the_truth():
    from registration_bench.guard import compare
    from registration_bench.methods import Answer
    from registration_bench.problems import Cell

    problem = Cell(200, 0.5, "uniform", 0).make()
    half_turn = np.diag([-1.0, -1.0, 1.0]) @ problem.rotation
    degrees, shift, precision, recall = compare(
        Answer(half_turn, problem.translation + np.array([0.3, 0, 0.4]), np.ones(200, dtype=bool)), problem
    )
    assert degrees == pytest.approx(180)
    assert shift == pytest.approx(0.5)
    assert precision == pytest.approx(problem.agrees.mean())
    assert recall == 1
    degrees, shift, _, recall = compare(Answer(problem.rotation, problem.translation), problem)
    assert (degrees, shift, recall) == (0, 0, 1)


def test_a_fit_that_fails_is_written_down(monkeypatch):
    from registration_bench import guard, methods
    from registration_bench.problems import Cell

    def fails(X, Y, bound, seed):
        raise ValueError("no luck\ntoday")

    monkeypatch.setitem(methods.METHODS, "fails", methods.Method("fails", fails))
    outcome = guard.measured_fit("fails", Cell(50, 0.0, "uniform", 0).make(), 0)
    assert outcome.status == "error: ValueError: no luck"
    assert math.isnan(outcome.degrees)


def test_a_method_that_ran_out_of_time_is_spared_larger_problems():
    from registration_bench.grid import Hopeless
    from registration_bench.guard import ANSWER, TIMEOUT, Outcome
    from registration_bench.problems import Cell

    slow = Cell(1000, 0.9, "uniform", 0)
    hopeless = Hopeless([(slow, "OpenCV", Outcome(TIMEOUT)), (slow, "KISS-Matcher", Outcome(ANSWER))])
    assert hopeless.is_so(Cell(1000, 0.9, "shifted", 1), "OpenCV")
    assert hopeless.is_so(Cell(10_000, 0.9, "uniform", 0), "OpenCV")
    assert not hopeless.is_so(Cell(100, 0.9, "uniform", 0), "OpenCV")
    assert not hopeless.is_so(Cell(1000, 0.5, "uniform", 0), "OpenCV")
    assert not hopeless.is_so(Cell(10_000, 0.9, "uniform", 0), "KISS-Matcher")
    assert hopeless.is_so(Cell(100_000, 0.0, "uniform", 0), "CLIPPER (reference)")


def test_runs_are_written_read_again_and_summed_up(tmp_path, capsys):
    from registration_bench import grid, table
    from registration_bench.methods import BASELINE

    runs = tmp_path / "runs.csv"
    cells = [cell for cell in grid.grid_cells([100], 2) if cell.rate in (0.0, 0.5)]
    grid.run(cells, [BASELINE], runs, limit=20, minutes=5, jobs=1)
    grid.run(cells, [BASELINE], runs, limit=20, minutes=5, jobs=1)
    rows = grid.read_rows(runs)
    assert len(rows) == len(cells) == 8
    entries = table.entries(rows)
    assert entries[100, 0.0, "uniform", BASELINE].success == 1
    assert entries[100, 0.5, "shifted", BASELINE].success == 0
    grid.forget(runs, ["OpenCV"])
    assert [(cell, outcome.row()) for cell, _, outcome in grid.read_rows(runs)] == [(c, o.row()) for c, _, o in rows]
    table.summarise(runs, tmp_path)
    assert "inlier itself has not run" in capsys.readouterr().out
    assert (tmp_path / "peers.csv").read_text().count(BASELINE) == 4
    assert (tmp_path / "peers.png").stat().st_size > 10_000
    grid.forget(runs, [BASELINE])
    assert not grid.read_rows(runs)


def test_peers_that_are_not_installed_are_named_in_a_line(monkeypatch, tmp_path):
    from registration_bench import methods, negatives

    def missing(*_):
        raise ImportError

    absent = methods.Method("Open3D RANSAC", missing)
    monkeypatch.setitem(negatives.METHODS, "Open3D RANSAC", absent)
    said = negatives.run(tmp_path, ["Open3D RANSAC"], draws=1, seeds=1)
    assert said == "Open3D RANSAC: not installed (pip install '.[peers]')\n"


def test_nothing_is_claimed_of_nearest_neighbours_and_of_independent_mistakes():
    from registration_bench import negatives

    assert negatives.on_one_nearest("inlier", 1000, 0) == negatives.Outcome("not claimed", None)
    assert negatives.on_one_made("inlier", "independent", 0) == negatives.Outcome("not claimed", None)


def test_scores_of_claims_are_lowest_median_and_highest():
    from registration_bench.negatives import Outcome, _scores

    found = [Outcome("claimed", score) for score in (0.5, 0.1, 0.3)]
    assert _scores(found) == "  score 0.10 0.30 0.50"
    assert _scores([Outcome("claimed", None)]) == ""
