"""Real putative matches, each problem turned at random: who finds the rotation, and with which noise bound."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from registration_bench.guard import Outcome, Worker
from registration_bench.methods import METHODS
from registration_bench.problems import DEGREES, DEGREES_2D, RealCell

FOLDERS = {3: "reg3d", 2: "match2d"}
LIMITS = {3: DEGREES, 2: DEGREES_2D}
Results = dict[tuple[int, str, float], dict[str, list[Outcome]]]  # (dimension, method, bound factor) -> problem -> fits


def run(data: Path, methods: list[str], factors: list[float], draws: int, limit: float, thinned_to: float = 1.0) -> str:
    """Fit every problem with every method and return the tables as text."""
    problems = {d: sorted((data / folder).glob("*.npz")) for d, folder in FOLDERS.items()}
    if not any(problems.values()):
        raise SystemExit(f"Real putative matches are not there: {data.name}/reg3d and match2d beside the project.")
    results: Results = defaultdict(lambda: defaultdict(list))
    for name in methods:
        method, worker = METHODS[name], Worker(name, limit)
        for d in method.dimensions:
            for factor in factors if method.needs_bound else factors[:1]:
                for path in problems[d]:
                    fits = [worker.fit(RealCell(path, draw, factor, thinned_to)) for draw in range(draws)]
                    results[d, name, factor][path.stem] += fits
        worker.close()
        print(f"{name} is done", flush=True)
    head = [] if thinned_to == 1 else [f"Real pairs thinned out to {thinned_to:.1%} of each problem.", ""]
    return "\n".join([*head, *(line for d in FOLDERS for line in tables(results, d, problems[d], draws))]) + "\n"


def tables(results: Results, d: int, paths: list[Path], draws: int) -> list[str]:
    """Who solves how many, then the median error in degrees by problem."""
    lines = [
        f"{len(paths)} real problems in {d}-D, {draws} random turns each; solved: within {LIMITS[d]:g} degrees",
        f"{'method':24s}{'bound given':>14s}{'solved':>10s}{'wrong':>7s}{'of':>5s}{'median s':>10s}{'slowest s':>11s}",
    ]
    ours = {key: value for key, value in results.items() if key[0] == d}
    for (_, name, factor), by_problem in ours.items():
        fits = [fit for fits in by_problem.values() for fit in fits]
        status = {fit.status for fit in fits}
        if all(word.startswith("unavailable") for word in status):
            lines.append(f"{name:24s}  {status.pop()}")
            continue
        solved, seconds = sum(fit.degrees < LIMITS[d] for fit in fits), [fit.seconds for fit in fits]
        times = f"{np.nanmedian(seconds):10.3f}{np.nanmax(seconds):11.3f}" if np.isfinite(seconds).any() else ""
        wrong = sum(fit.degrees >= LIMITS[d] for fit in fits)  # the others have no answer
        lines.append(f"{name:24s}{in_words(name, factor):>14s}{solved:>10d}{wrong:>7d}{len(fits):>5d}{times}")
    lines += ["", "median error in degrees, bound as in the files" + " (-: no answer)"]
    for path in paths:
        lines.append(f"{path.stem} ({shares(path)})")
        shown = [
            f"{name} {in_degrees(by_problem[path.stem])}"
            for (_, name, factor), by_problem in ours.items()
            if factor == 1
        ]
        lines += ["    " + ", ".join(shown[i : i + 5]) for i in range(0, len(shown), 5)]
    return [*lines, ""]


def in_words(name: str, factor: float) -> str:
    """What a method was told about the noise."""
    return "none" if not METHODS[name].needs_bound else "tau" if factor == 1 else f"{factor:g} tau"


def in_degrees(fits: list[Outcome]) -> str:
    """Median error, or a dash."""
    values = [fit.degrees for fit in fits if np.isfinite(fit.degrees)]
    return f"{np.median(values):.2f}" if values else "-"


def shares(path: Path) -> str:
    """Size and share of real pairs of a problem."""
    with np.load(path) as arrays:
        return f"{len(arrays['X']):,} pairs, {arrays['inlier'].mean():.1%} real"
