from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from inlier import speed
from inlier.cli import main
from inlier.speed import Timing, measure_speed


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
    report = measure_speed(quick=True, on_timing=seen.append)
    assert [(t.method, t.n, t.d) for t in report.timings] == [
        (method, n, d) for n, d in ((400, 3), (300, 20)) for method in ("row sums", "eigenvector", "calibrated")
    ]
    assert list(report.timings) == seen
    assert all(t.seconds > 0 for t in seen)


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
    assert "The picture was not written" in outcome.stderr
