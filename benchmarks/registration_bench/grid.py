"""Every method on every drawn problem, one after the other, written down as it comes; run again to go on."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from time import perf_counter

from registration_bench.guard import DIED, MEASURES, MEMORY, TIMEOUT, UNAVAILABLE, Outcome, Worker
from registration_bench.methods import METHODS
from registration_bench.problems import PLACEMENTS, Cell

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
RATES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
FEWEST_REAL = 4  # three pairs fit some motion whatever they are
HEADER = ("n", "rate", "placement", "draw", "method", *MEASURES)
Row = tuple[Cell, str, Outcome]


def grid_cells(sizes: Iterable[int], draws: int) -> Iterator[Cell]:
    """One draw of every cell before the next, small problems first; without outliers there is one placement."""
    for draw, n, rate, placement in product(range(draws), sizes, RATES, PLACEMENTS):
        cell = Cell(n, rate, placement, draw)
        if cell.n_real >= FEWEST_REAL and (rate > 0 or placement == PLACEMENTS[0]):
            yield cell


def noise_cells(sizes: Iterable[int], draws: int) -> Iterator[Cell]:
    """Problems without any real pair, the placements in turn."""
    for n, draw in product(sizes, range(draws)):
        yield Cell(n, 1.0, PLACEMENTS[draw % len(PLACEMENTS)], draw)


def run(cells: list[Cell], methods: list[str], runs: Path, limit: float, minutes: float, jobs: int) -> None:
    """Fit what the file of runs does not hold yet, until the time is up."""
    rows = read_rows(runs)
    done = {(cell, method) for cell, method, _ in rows}
    hopeless = Hopeless(rows)
    workers = {method: Worker(method, limit) for method in methods}
    deadline = perf_counter() + 60 * minutes
    fresh = not runs.exists()
    runs.parent.mkdir(exist_ok=True)
    print(f"{len(done)} fits are there; {len(cells) * len(methods)} asked for")
    try:
        with runs.open("a", newline="") as stream, ThreadPoolExecutor(jobs) as pool:
            writer = csv.writer(stream)
            if fresh:
                writer.writerow(HEADER)
            for cell in cells:
                if perf_counter() > deadline:
                    print("the time is up; run again to go on")
                    return
                todo = [name for name in methods if (cell, name) not in done and not hopeless.is_so(cell, name)]
                outcomes = pool.map(lambda name, cell=cell: workers[name].fit(cell), todo)
                for name, outcome in zip(todo, outcomes, strict=True):
                    if outcome.status.startswith(UNAVAILABLE):
                        _leave_out(methods, name, outcome.status)
                        continue
                    writer.writerow([cell.n, cell.rate, cell.placement, cell.draw, name, *outcome.row()])
                    hopeless.learn(cell, name, outcome)
                stream.flush()
    finally:
        for worker in workers.values():
            worker.close()


def _leave_out(methods: list[str], name: str, why: str) -> None:
    print(f"{name} is left out; {why}")
    methods.remove(name)


class Hopeless:
    """Fits not worth starting: too many pairs for the method, or a smaller problem was already too much for it."""

    def __init__(self, rows: list[Row]) -> None:
        self._smallest: dict[tuple[str, float], int] = {}
        for cell, method, outcome in rows:
            self.learn(cell, method, outcome)

    def learn(self, cell: Cell, method: str, outcome: Outcome) -> None:
        """Remember the smallest size at which a method ran out of time or memory, for each rate."""
        if outcome.status in (TIMEOUT, MEMORY, DIED):
            key = method, cell.rate
            self._smallest[key] = min(cell.n, self._smallest.get(key, cell.n))

    def is_so(self, cell: Cell, method: str) -> bool:
        """Whether to leave a fit out."""
        largest = METHODS[method].largest
        too_many = largest is not None and cell.n > largest
        return too_many or cell.n >= self._smallest.get((method, cell.rate), cell.n + 1)


def forget(runs: Path, methods: list[str]) -> None:
    """Drop the fits of methods whose code has changed."""
    if not runs.exists():
        return
    with runs.open(newline="") as stream:
        kept = [row for row in csv.DictReader(stream) if row["method"] not in methods]
    with runs.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, HEADER)
        writer.writeheader()
        writer.writerows(kept)


def read_rows(runs: Path) -> list[Row]:
    """Fits in the file of runs, of methods that are still known."""
    if not runs.exists():
        return []
    with runs.open(newline="") as stream:
        return [
            (
                Cell(int(r["n"]), float(r["rate"]), r["placement"], int(r["draw"])),
                r["method"],
                Outcome(r["status"], *(float(r[name]) for name in MEASURES[1:])),
            )
            for r in csv.DictReader(stream)
            if r["method"] in METHODS
        ]
