from __future__ import annotations

import json
import sys
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from click.testing import CliRunner
from threadpoolctl import threadpool_info

from inlier import CalibratedMatcher, EigenvectorMatcher, Registration, RowSumMatcher
from inlier.apps import bench as speed
from inlier.apps.bench import Timing, compiled_functions, jobs, measure_speed
from inlier.cli import main
from inlier.datasets import make_gaussian_pairs
from inlier.rows import threads


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(speed, "QUICK_SIZES", ((400, 3), (300, 20)))
    monkeypatch.setattr(speed, "_PRODUCT", 64)


def test_ratios_follow_from_the_times():
    timing = Timing("row sums", 1000, 3, 0.5, reading_seconds=0.1, product_seconds=0.25, dense_seconds=50.0)
    assert timing.pairs_per_second == 2000
    assert timing.floor == "compute"
    assert timing.times_floor == 2
    assert timing.times_faster_than_dense == 100


def test_every_matcher_is_timed_at_every_size(tiny):
    seen = []
    report = measure_speed(quick=True, on_job=seen.append)
    assert [(t.method, t.n, t.d) for t in report.timings] == [
        (method, n, d) for n, d in ((400, 3), (300, 20)) for method in ("row sums", "eigenvector", "calibrated")
    ]
    assert seen == jobs(quick=True)
    assert len(seen) == 1 + len(report.timings)
    assert all(t.seconds > 0 for t in report.timings)
    assert report.spread >= 1


def test_the_command_prints_a_table_and_writes_a_picture(tiny, tmp_path):
    outcome = CliRunner().invoke(main, ["bench", "--quick", "-o", str(tmp_path / "speed.png")])
    assert outcome.exit_code == 0, outcome.output
    assert "eigenvector" in outcome.stdout
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_speaks_json(tiny):
    outcome = CliRunner().invoke(main, ["bench", "--quick", "--json"])
    content = json.loads(outcome.stdout)
    assert len(content["timings"]) == 6
    assert content["timings"][0]["floor"] in ("memory", "compute")


def test_a_picture_that_cannot_be_written_is_answered_in_a_sentence(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    outcome = CliRunner().invoke(main, ["bench", "--quick", "-o", str(tmp_path / "file" / "speed.png")])
    assert outcome.exit_code == 2
    assert "a file stands where a folder is needed" in outcome.stderr
    assert "row sums" not in outcome.stderr  # nothing was measured


def test_a_picture_is_a_png(tiny, tmp_path):
    outcome = CliRunner().invoke(main, ["bench", "--quick", "-o", str(tmp_path / "speed.pdf")])
    assert outcome.exit_code == 2
    assert "ends in .png" in outcome.stderr


def test_without_matplotlib_nothing_is_measured(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    outcome = CliRunner().invoke(main, ["bench", "--quick", "-o", str(tmp_path / "speed.png")])
    assert outcome.exit_code == 2
    assert "pip install matplotlib" in outcome.stderr
    assert "row sums" not in outcome.stderr


def test_threads_of_products_and_kernels_do_not_multiply(tiny, monkeypatch):
    seen = []

    def look(matcher, X, Y):
        seen.append({library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"})

    monkeypatch.setattr(threads, "thread_count", lambda: 1)
    monkeypatch.setattr(RowSumMatcher, "fit", look)
    measure_speed(quick=True)
    assert all(counts == {1} for counts in seen)
    assert seen


def test_a_busy_machine_shows_in_the_spread():
    pauses = iter([0, 0.02, 0.02, 0.06, 0.02, 0.02])
    stopwatch = speed._Stopwatch(lambda: None)
    assert stopwatch.median(lambda: sleep(next(pauses))) < 0.06
    assert stopwatch.spread > 1.5


def known():
    return {
        (function.py_func.__qualname__, signature)
        for function in compiled_functions()
        for signature in function.signatures
    }


@pytest.fixture(scope="module")
def warmed():
    outcome = CliRunner().invoke(main, ["bench", "--warm-up", "--json"])
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def test_warming_up_says_what_it_did(warmed):
    assert 0 <= warmed["compiled"] <= warmed["functions"]
    assert warmed["functions"] >= 10
    assert warmed["seconds"] > 0
    assert all(Path(folder).is_dir() for folder in warmed["folders"])


@pytest.mark.parametrize("d", [3, 6])
def test_after_it_nothing_is_left_to_compile(warmed, d):
    before = known()
    data = make_gaussian_pairs(9_000, d, 0.7, noise=0.02, rng=3)
    for table in (np.float64, np.float32):
        for matcher in (RowSumMatcher(), EigenvectorMatcher(), CalibratedMatcher(random_state=1)):
            matcher.fit(data.X.astype(table), data.Y.astype(table))
        Registration("orthogonal", random_state=1).fit(data.X.astype(table), data.Y.astype(table))
    assert known() == before


def test_warming_up_in_words(monkeypatch):
    done = speed.WarmUp(31.4, 60, 12, ())
    monkeypatch.setattr(speed, "warm_up", lambda step: done)
    outcome = CliRunner().invoke(main, ["bench", "--warm-up"])
    assert outcome.exit_code == 0
    assert outcome.stdout == "60 compiled functions in 31.4 s; 12 of them were new.\n"
    assert "NUMBA_CACHE_DIR" in outcome.stderr  # there was no folder to keep them in


@pytest.mark.parametrize("option", [["--quick"], ["-o", "speed.png"]])
def test_warming_up_measures_nothing(option):
    outcome = CliRunner().invoke(main, ["bench", "--warm-up", *option])
    assert outcome.exit_code == 2
    assert option[0] in outcome.stderr
