from __future__ import annotations

import json
import sys
from time import sleep

import pytest
from click.testing import CliRunner
from threadpoolctl import threadpool_info

from inlier.apps import bench as speed
from inlier.apps.bench import Timing, jobs, measure_speed
from inlier.cli import main


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
    assert "pip install 'inlier[report]'" in outcome.stderr
    assert "row sums" not in outcome.stderr


def test_threads_of_products_and_kernels_do_not_multiply(tiny, monkeypatch):
    seen = []

    def look(matcher, X, Y):
        seen.append({library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"})

    monkeypatch.setattr(speed, "thread_count", lambda: 1)
    monkeypatch.setattr(speed.RowSumMatcher, "fit", look)
    measure_speed(quick=True)
    assert all(counts == {1} for counts in seen)
    assert seen


def test_a_busy_machine_shows_in_the_spread():
    pauses = iter([0, 0.02, 0.02, 0.06, 0.02, 0.02])
    stopwatch = speed._Stopwatch(lambda: None)
    assert stopwatch.median(lambda: sleep(next(pauses))) < 0.06
    assert stopwatch.spread > 1.5
