"""What the finished fits show: a table for machines, one for readers, and one figure."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from registration_bench.grid import RATES, SIZES, Row, read_rows
from registration_bench.guard import ANSWER, DIED, MEMORY, SHORT, TIMEOUT, Outcome
from registration_bench.methods import BASELINE, METHODS, OURS
from registration_bench.problems import BOUND, DEGREES, NOISE, PLACEMENTS, SHIFT

Key = tuple[int, float, str, str]  # n, rate, placement, method


@dataclass(frozen=True)
class Entry:
    """Averages over the draws of one cell."""

    runs: int
    answered: float
    success: float
    seconds: float
    wall_seconds: float
    first_seconds: float
    precision: float
    recall: float
    megabytes: float
    note: str


def succeeded(outcome: Outcome, degrees: float = DEGREES, shift: float | None = SHIFT) -> bool:
    """Whether an answer is within the limits; a NaN is not."""
    return outcome.degrees < degrees and (shift is None or outcome.shift < shift)


def entries(rows: list[Row]) -> dict[Key, Entry]:
    """Average the fits of each cell and method."""
    groups = defaultdict(list)
    for cell, method, outcome in rows:
        groups[cell.n, cell.rate, cell.placement, method].append(outcome)
    return {key: entry(groups[key]) for key in sorted(groups, key=_in_order)}


def _in_order(key: Key) -> tuple:
    n, rate, placement, method = key
    return n, rate, PLACEMENTS.index(placement), list(METHODS).index(method)


def entry(outcomes: list[Outcome]) -> Entry:
    """Average the draws of one cell; the time is a median, the memory the largest."""
    notes = sorted({o.status for o in outcomes if o.status in (TIMEOUT, MEMORY, DIED) or o.status.startswith("error")})
    names = ("seconds", "wall_seconds", "first_seconds", "precision", "recall", "megabytes")
    column = {name: np.array([getattr(outcome, name) for outcome in outcomes]) for name in names}
    return Entry(
        runs=len(outcomes),
        answered=float(np.mean([o.status == ANSWER for o in outcomes])),
        success=float(np.mean([succeeded(o) for o in outcomes])),
        seconds=_where_known(np.median, column["seconds"]),
        wall_seconds=_where_known(np.median, column["wall_seconds"]),
        first_seconds=_where_known(np.median, column["first_seconds"]),
        precision=_where_known(np.mean, column["precision"]),
        recall=float(np.nan_to_num(column["recall"]).mean()),
        megabytes=_where_known(np.max, column["megabytes"]),
        note="; ".join(notes),
    )


def _where_known(statistic, values) -> float:
    known = values[np.isfinite(values)]
    return float(statistic(known)) if known.size else np.nan


def summarise(runs: Path, results: Path) -> None:
    """Write peers.csv, peers.txt and peers.png."""
    rows = read_rows(runs)
    if not rows:
        raise SystemExit(f"There are no fits in {runs.name} yet; run the grid first.")
    grid = entries([row for row in rows if row[0].rate < 1])
    noise = entries([row for row in rows if row[0].rate == 1])
    write_csv({**grid, **noise}, results / "peers.csv")
    text = "\n".join([*headline(), *size_tables(grid), *claims(grid), *false_alarms(noise)]) + "\n"
    (results / "peers.txt").write_text(text)
    print(text)
    if grid:
        from registration_bench.figure import draw

        (results / "peers.png").write_bytes(draw(grid))


def write_csv(table: dict[Key, Entry], path: Path) -> None:
    """One line for each cell and method; the time also as a multiple of one least-squares fit."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        fields = list(Entry.__annotations__)
        writer.writerow(["n", "rate", "placement", "method", *fields, "times_least_squares"])
        for key, value in table.items():
            base = table.get((*key[:3], BASELINE))
            ratio = value.seconds / base.seconds if base else np.nan
            cells = [getattr(value, name) for name in fields]
            writer.writerow([*key, *(f"{c:.4g}" if isinstance(c, float) else c for c in cells), f"{ratio:.4g}"])


def headline() -> list[str]:
    """What was run."""
    return [
        f"Success: rotation within {DEGREES:g} degrees and translation within {SHIFT:g}; a surface in a unit cube, "
        f"noise {NOISE:g}.",
        f"Noise bound given to those who need one: {BOUND:g}. Needing none: "
        + ", ".join(name for name, method in METHODS.items() if not method.needs_bound)
        + ".",
        "Each cell: success / median seconds (the lesser of clock and processor time; a fit that takes less than "
        f"{SHORT:g} is repeated, and the first one, with memory just given back, does not count).",
        "'>': out of time, 'mem': out of memory, 'err': error or crash, '-': too large for it, or a smaller size was "
        "too much.",
        "(reference): a short re-implementation for this comparison, not the authors' program.",
    ]


def size_tables(grid: dict[Key, Entry]) -> list[str]:
    """Success and time by method and rate, a block for each size and placement."""
    lines = []
    for n in (n for n in SIZES if any(key[0] == n for key in grid)):
        for placement in PLACEMENTS:
            draws = max((value.runs for key, value in grid.items() if key[0] == n and key[2] == placement), default=0)
            lines += ["", f"n = {n:,}, outliers {placement} ({draws} draws)"]
            lines += [f"{'':24s}" + "".join(f"{rate:>15.1%}" for rate in RATES)]
            for method in METHODS:
                cells = [grid.get((n, rate, placement if rate else PLACEMENTS[0], method)) for rate in RATES]
                if any(cells):
                    lines.append(f"{method:24s}" + "".join(f"{in_short(value):>15s}" for value in cells))
    return lines


def in_short(value: Entry | None) -> str:
    """Success and seconds in a few letters."""
    if value is None:
        return "-"
    if value.answered == 0 and value.note:
        return ">" if TIMEOUT in value.note else "mem" if MEMORY in value.note else "err"
    return f"{value.success:.2f} / {value.seconds:.2g}"


def claims(grid: dict[Key, Entry]) -> list[str]:
    """Where ours is beaten: a peer that succeeds more often, or as often and faster."""
    cells = sorted({key[:3] for key in grid if key[3] == OURS})
    if not cells:
        return ["", "inlier itself has not run: Registration is not there, or was not asked for."]
    better, faster, first = [], [], []
    for cell in cells:
        ours, place = grid[*cell, OURS], f"  n = {cell[0]:,}, {cell[1]:.1%} {cell[2]}: "
        peers = {key[3]: value for key, value in grid.items() if key[:3] == cell and not key[3].startswith(OURS)}
        names = [f"{name} {value.success:.2f}" for name, value in peers.items() if value.success > ours.success]
        better += [f"{place}{ours.success:.2f} against {', '.join(names)}"] if names else []
        equal = {k: v for k, v in peers.items() if v.success >= ours.success > 0 and k != BASELINE}
        for lines, measure in ((faster, "seconds"), (first, "first_seconds")):
            ratios = {name: getattr(ours, measure) / getattr(value, measure) for name, value in equal.items()}
            names = [f"{name} {ratio:.1f}" for name, ratio in ratios.items() if ratio > 1]
            lines += [f"{place}time ours / peer: {', '.join(names)}"] if names and cell[0] >= 10_000 else []
    return [
        "",
        "Cells where a peer succeeds more often than inlier without a bound:",
        *(better or ["  none"]),
        "Cells with n >= 10,000 where a peer is as successful and faster:",
        *(faster or ["  none"]),
        "The same in first fits, with memory just given back:",
        *(first or ["  none"]),
    ]


def false_alarms(noise: dict[Key, Entry]) -> list[str]:
    """How often a motion was reported where there is none."""
    if not noise:
        return []
    lines = ["", "Problems without any real pair: how often a motion is reported"]
    for n, method in sorted({(key[0], key[3]) for key in noise}, key=lambda k: (list(METHODS).index(k[1]), k[0])):
        values = [value for key, value in noise.items() if key[0] == n and key[3] == method]
        alarms, runs = sum(round(v.answered * v.runs) for v in values), sum(v.runs for v in values)
        seconds = np.median([v.seconds for v in values])
        lines.append(f"{method:24s} n = {n:>9,}: {alarms} of {runs}   (median seconds {seconds:.2g})")
    return lines
