"""What a run of the tests says at its end."""

from __future__ import annotations

from types import SimpleNamespace

from tests.conftest import line_on_skipped, lines_on_seeds


def report(nodeid, failed=False, **noted):
    return SimpleNamespace(nodeid=nodeid, failed=failed, when="call", user_properties=list(noted.items()))


def test_failures_are_counted_by_test_and_seed():
    rates = {"seed0-x": 0.1, "seed1-x": 0.3}
    stats = {
        "passed": [report(f"tests/a.py::test_rate[{case}]", rate=rate) for case, rate in rates.items()],
        "failed": [report("tests/a.py::test_rate[seed2-x]", failed=True, rate=0.8), report("a.py::test_b[seed0]")],
    }
    assert list(lines_on_seeds(stats)) == [
        "a.py::test_rate[x]: failed with 1 of 3 seeds (2); rate 0.1 to 0.8, median 0.3",
        "a.py::test_b: failed with 0 of 1 seeds",
    ]


def test_what_was_skipped_is_one_line_with_the_cure():
    line = line_on_skipped(
        ["Skipped: there is no Chromium to drive", "no Chromium on this machine", "torch is not here", "x"]
    )
    assert line.startswith("Skipped: 2 on pages in a browser (apt-get install chromium")
    assert "1 on torch tensors (pip install torch" in line
    assert line.endswith("; 1 on x")
