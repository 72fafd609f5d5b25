"""What the very first fit on a machine costs: every loop is compiled then, once.

    python benchmarks/cold_start.py                                     # this installation
    python benchmarks/cold_start.py --src ../other/src --src src        # two checkouts in one run, with their ratios

Each fit runs in a fresh process with an empty folder for compiled code (NUMBA_CACHE_DIR), then again in further
processes that find the folder filled. Seconds are those of the processor, user and system together, so that they hardly
depend on what else the machine does. A specialisation is one compilation of one function for one set of types, as
numba reports it while it happens; several may come from one text. Only public names are used: any version of the
package can be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ESTIMATORS = ("RowSumMatcher", "CalibratedMatcher", "Registration")
FLOOR = "numpy, scipy.stats, sklearn.base"


@dataclass(frozen=True)
class Start:
    """What one process needed, in processor seconds; the imports of the floor are not part of ``importing``."""

    floor: float
    importing: float
    fitting: float
    specialisations: int
    texts: int


def measure_here(name: str) -> Start:
    """Fit one estimator in this process, which must not have imported anything yet."""
    began = _processor_seconds()
    import numpy as np
    import scipy.stats  # noqa: F401
    import sklearn.base  # noqa: F401

    floor = _processor_seconds()
    import inlier

    estimator = getattr(inlier, name)
    imported = _processor_seconds()
    compiled = _watch_the_compiler()
    X, y = _pairs(np, name)
    parameters = {} if name == "RowSumMatcher" else {"random_state": 0}
    ready = _processor_seconds()
    estimator(**parameters).fit(X, y)
    fitted = _processor_seconds()
    return Start(floor - began, imported - floor, fitted - ready, len(compiled), len(set(compiled)))


def _processor_seconds() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _watch_the_compiler() -> list[object]:
    """Return a list that grows with each specialisation, by the text that is compiled."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, happening):
            compiled.append(happening.data["dispatcher"].py_func.__code__)

        def on_end(self, happening):
            pass

    compiled: list[object] = []
    event.register("numba:compile", Listener())
    return compiled


def _pairs(np, name):
    """5,000 pairs of 6 numbers, half of them wrong; for a registration the 1,000 points, 95 % wrong, of its docs."""
    rng = np.random.default_rng(0)
    n, d, n_wrong, noise = (1000, 3, 950, 0.02) if name == "Registration" else (5000, 6, 2500, 0.1)
    X = rng.normal(size=(n, d))
    rotation, _ = np.linalg.qr(rng.normal(size=(d, d)))
    rotation[:, 0] *= np.sign(np.linalg.det(rotation))
    y = X @ rotation.T + noise * rng.normal(size=(n, d))
    y[:n_wrong] = rng.normal(size=(n_wrong, d))
    return X, y


def measure(source: Path | None, name: str, cache: Path, **environment: str) -> Start:
    """Fit one estimator in a new process that keeps its compiled code in a folder."""
    words = _run(source, __file__, "--measure-here", name, NUMBA_CACHE_DIR=str(cache), **environment)
    return Start(**json.loads(words.splitlines()[-1]))


def _run(source: Path | None, *arguments: str, **environment: str) -> str:
    """Run Python with the package of one checkout; return what it prints."""
    if source is not None:
        environment["PYTHONPATH"] = str(source.resolve())
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}, with {source or 'this installation'}, failed:\n{done.stderr}")
    return done.stdout


def compare(sources: list[Path | None], repeats: int) -> dict[tuple[Path | None, str], tuple[Start, Start]]:
    """Measure all estimators of all checkouts, in turns: first starts, and medians of second ones."""
    for source in sources:  # Python's own compiled files are there before: they come with an installation
        _run(source, "-c", "import compileall, inlier; compileall.compile_dir(inlier.__path__[0], quiet=2)")
    found = {}
    for name in ESTIMATORS:
        for source in sources:
            with tempfile.TemporaryDirectory() as folder:
                first = measure(source, name, Path(folder) / "cache")
                again = [measure(source, name, Path(folder) / "cache") for _ in range(repeats)]
            found[source, name] = first, _median_of(again)
    return found


def _median_of(starts: list[Start]) -> Start:
    return Start(**{field: median(getattr(start, field) for start in starts) for field in Start.__dataclass_fields__})


def show(found: dict[tuple[Path | None, str], tuple[Start, Start]], sources: list[Path | None]) -> None:
    """Print a table of all, and what the last checkout takes as a share of the first."""
    floor = median(start.floor for both in found.values() for start in both)
    print("Processor seconds: first with an empty folder for compiled code, then with the folder that the first left.")
    print(f"Importing {FLOOR} takes {floor:.2f} s; `import` is what the estimator imports beyond that.\n")
    width = max(len(str(source or "this installation")) for source in sources)
    print(f"{'':{width}}  {'':<17}  {'first process':^34}  {'second process':^34}")
    heads = f"{'import':>7} {'fit':>7} {'specialised':>12} {'texts':>5}"
    print(f"{'':{width}}  {'':<17}  {heads}  {heads}")
    for (source, name), both in found.items():
        columns = "  ".join(
            f"{start.importing:7.2f} {start.fitting:7.2f} {start.specialisations:12,.0f} {start.texts:5,.0f}"
            for start in both
        )
        print(f"{source or 'this installation'!s:{width}}  {name:<17}  {columns}")
    if len(sources) > 1:
        print(f"\n{sources[-1]} / {sources[0]}")
        for name in ESTIMATORS:
            (old, old_again), (new, new_again) = found[sources[0], name], found[sources[-1], name]
            print(
                f"  {name:<17}  first fit {new.fitting / old.fitting:.2f}"
                f"   specialisations {new.specialisations} / {old.specialisations}"
                f"   second process, import and fit "
                f"{(new_again.importing + new_again.fitting) / (old_again.importing + old_again.fitting):.2f}"
            )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, action="append", help="folder that holds the package; several to compare")
    parser.add_argument("--repeats", type=int, default=3, help="second processes, of which the median counts")
    parser.add_argument("--measure-here", choices=ESTIMATORS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure_here:
        print(json.dumps(vars(measure_here(options.measure_here))))
        return
    sources = options.src or [None]
    show(compare(sources, options.repeats), sources)


if __name__ == "__main__":
    main()
