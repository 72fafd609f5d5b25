"""Shared fixtures, many seeds for statistical tests, and one line on what was skipped and how to get it.

A test that is marked ``seeds`` and takes ``seed`` runs once, with seed 0; with ``--seeds 20`` it runs twenty times, and
the end of the run says how often it failed and what was noted. Hypothesis draws the same examples every time, unless
the run is started with ``--hypothesis-profile=random``.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from scipy.stats import binom

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60, print_blob=True)
settings.register_profile("quick", derandomize=True, deadline=None, max_examples=10, print_blob=True)
settings.register_profile("random", deadline=None, max_examples=200, print_blob=True)
settings.register_profile("many", deadline=None, max_examples=600, print_blob=True)

NEVER = 1e-6  # chance that a promise that is kept is called broken
REAL_DATA = Path(__file__).parents[2] / "shared" / "data"

WHAT_IS_SKIPPED = {  # a word of the reason: what that was, and how to have it run
    "chromium": "pages in a browser (apt-get install chromium, or any Chromium or Chrome on the PATH)",
    "playwright": "pages in a browser (pip install playwright)",
    "torch": "torch tensors (pip install torch; its CPU build is enough)",
    "beside": "real data (it is kept beside the project, in ../shared/data, and not part of it)",
}


def pytest_addoption(parser):
    parser.addoption("--seeds", type=int, default=1, metavar="N", help="run tests marked `seeds` with seeds 0 .. N-1")
    parser.addoption(
        "--promises",
        action="store_true",
        help="with --seeds: compare what the tests noted as promised, pooled over seeds, with the binomial law",
    )


def pytest_configure(config):
    settings.load_profile(config.getoption("--hypothesis-profile", None) or "repeatable")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames and metafunc.definition.get_closest_marker("seeds"):
        metafunc.parametrize("seed", range(metafunc.config.getoption("--seeds")), ids="seed{}".format)


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--seeds") > 1:
        for line in lines_on_seeds(terminalreporter.stats):
            terminalreporter.write_line(line)
    if config.getoption("--promises"):
        for line, _ in promises_kept(terminalreporter.stats):
            terminalreporter.write_line(line)
    if skipped := terminalreporter.stats.get("skipped"):
        terminalreporter.write_line(line_on_skipped(str(report.longrepr[2]) for report in skipped))


def pytest_sessionfinish(session, exitstatus):
    """A promise that was not kept fails the run, also where each seed alone passed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    is_worker = hasattr(session.config, "workerinput")
    if session.config.getoption("--promises") and not is_worker and reporter is not None and exitstatus == 0:
        outcomes = list(promises_kept(reporter.stats))
        if not outcomes or not all(kept for _, kept in outcomes):
            session.exitstatus = 1


def promises_kept(stats):
    """For each promise, pooled over tests of one name and all seeds: what happened how often, and whether it may.

    A test says ``promise("wrong", happened, of, rate)``. The promise counts as broken if one that is kept would be seen
    so far off less than once in a million runs, by the binomial law; ``spread`` widens that for outcomes that come in
    clusters.
    """
    pooled = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for report in [*stats.get("passed", ()), *stats.get("failed", ())]:
        if report.when != "call":
            continue
        test = re.sub(r"seed\d+-?", "", report.nodeid).replace("-]", "]").removesuffix("[]").rpartition("/")[2]
        for what, value in report.user_properties:
            if what.startswith("promise: "):
                happened, of, rate, spread = value
                sums = pooled[f"{test}: {what.removeprefix('promise: ')}"]
                sums[0], sums[1], sums[2], sums[3] = sums[0] + happened, sums[1] + of, rate, spread
    for name, (happened, of, rate, spread) in pooled.items():
        most = binom.isf(NEVER, int(of / spread), rate) * spread if of else 0
        kept = happened <= most
        verdict = "kept" if kept else "BROKEN"
        yield f"{verdict}: {name} {happened:g} of {of:g}, promised {rate:g}, a kept promise shows up to {most:g}", kept


def lines_on_seeds(stats):
    """For each test that ran with many seeds: how often it failed, and the range of what it noted."""
    reports = defaultdict(list)
    for report in [*stats.get("passed", ()), *stats.get("failed", ())]:
        if report.when == "call" and (found := re.search(r"\bseed(\d+)-?", report.nodeid)):
            test = report.nodeid.replace(found[0], "").replace("-]", "]").removesuffix("[]")
            reports[test].append((found[1], report))
    for name, of_seeds in reports.items():
        failed = [seed for seed, report in of_seeds if report.failed]
        noted = defaultdict(list)
        for _, report in of_seeds:
            for what, value in report.user_properties:
                if not what.startswith("promise: "):
                    noted[what].append(value)
        ranges = "".join(
            f"; {what} {min(values):.3g} to {max(values):.3g}, median {np.median(values):.3g}"
            for what, values in noted.items()
        )
        which = f" ({', '.join(failed)})" if failed else ""
        yield f"{name.rpartition('/')[2]}: failed with {len(failed)} of {len(of_seeds)} seeds{which}{ranges}"


def line_on_skipped(reasons):
    """All that was skipped, in one line."""
    kinds = Counter()
    for reason in reasons:
        reason = reason.removeprefix("Skipped: ")
        kinds[next((what for word, what in WHAT_IS_SKIPPED.items() if word in reason.lower()), reason)] += 1
    return "Skipped: " + "; ".join(f"{count} on {what}" for what, count in kinds.items())


@pytest.fixture(autouse=True)
def _close_figures():
    """Pyplot keeps every figure that a test draws: none is left for the next test to find."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


@pytest.fixture
def note(record_property):
    """Write down what a test measured, for the summary over seeds: ``note(error=0.1)``."""

    def note(**values):
        for what, value in values.items():
            record_property(what.replace("_", " "), float(value))

    return note


@pytest.fixture
def promise(record_property):
    """Write down how often something happened that may happen at a rate: ``promise("wrong", 3, 100, 0.05)``."""

    def promise(what, happened, of, rate, spread=1.0):
        record_property(f"promise: {what}", (float(happened), float(of), float(rate), float(spread)))

    return promise


@pytest.fixture
def real_data():
    """Folder of real data kept beside the project, not in it."""
    if not REAL_DATA.is_dir():
        pytest.skip("the real data that is kept beside the project (not in it) is absent")
    return REAL_DATA


@pytest.fixture
def small_blocks(monkeypatch):
    """Force several blocks on small data: ``small_blocks(7)`` makes blocks of 7 rows."""
    return lambda rows: monkeypatch.setattr("inlier.rows.threads.rows_per_block", lambda width: rows)
