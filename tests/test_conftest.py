"""What a run of the tests says at its end."""

from __future__ import annotations

from types import SimpleNamespace

from tests.conftest import line_on_skipped, lines_on_seeds, promises_kept


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


def test_promises_are_pooled_over_seeds_and_held_to_the_binomial_law():
    def of_seed(seed, wrong):
        return report(f"tests/seeds/a.py::test_rate[seed{seed}-x]", **{"promise: wrong": (wrong, 100.0, 0.05, 1.0)})

    ((line, kept),) = promises_kept({"passed": [of_seed(seed, 5.0) for seed in range(100)]})
    assert kept
    assert line.startswith("kept: a.py::test_rate[x]: wrong 500 of 10000, promised 0.05")
    # Seven of a hundred are nothing in one seed, and a broken promise in a hundred.
    assert all(kept for _, kept in promises_kept({"passed": [of_seed(0, 7.0)]}))
    ((line, kept),) = promises_kept({"passed": [of_seed(seed, 7.0) for seed in range(100)]})
    assert not kept
    assert line.startswith("BROKEN")


def test_what_was_skipped_is_one_line_with_the_cure():
    line = line_on_skipped(
        ["Skipped: there is no Chromium to drive", "no Chromium on this machine", "torch is not here", "x"]
    )
    assert line.startswith("Skipped: 2 on pages in a browser (apt-get install chromium")
    assert "1 on torch tensors (pip install torch" in line
    assert line.endswith("; 1 on x")
