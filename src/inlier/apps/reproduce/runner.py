"""Run an experiment's cells, in processes, and gather what they found."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from inlier.apps.reproduce.model import Cell, Experiment, Outcome, Record, Run
from inlier.apps.reproduce.store import CellStore

Progress = Callable[[str, int, int], None]  # name of the experiment, cells done, cells in all


def run_experiment(
    experiment: Experiment,
    run: Run,
    *,
    jobs: int = 1,
    keep_in: Path | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Compute what an experiment finds.

    Parameters
    ----------
    experiment : Experiment
        Which.
    run : Run
        Its settings, data and seed, from ``experiment.prepare``.
    jobs : int, default=1
        Processes; the numbers do not depend on it.
    keep_in : Path, optional
        Folder in which finished cells are kept, and looked for first.
    progress : callable, optional
        Called with the experiment's name, the cells done and the cells in all.

    Returns
    -------
    Outcome

    Examples
    --------
    >>> from inlier.apps.reproduce import EXPERIMENTS, load_sources, run_experiment
    >>> experiment = EXPERIMENTS["sky-images"]
    >>> outcome = run_experiment(experiment, experiment.prepare(load_sources(["sky"]), quick=True))
    >>> [round(row["mean"], 2) for row in outcome.rows]
    [0.25, 0.18]
    """
    start = perf_counter()
    cells = experiment.cells(run.settings)
    store = None if keep_in is None else CellStore(keep_in, run, cells)
    found: dict[int, list[Record]] = {}
    report = progress or (lambda *_: None)
    for number in range(len(cells)):
        kept = None if store is None else store.read(number)
        if kept is not None:
            found[number] = kept
    report(run.name, len(found), len(cells))
    missing = [number for number in range(len(cells)) if number not in found]
    with closing(_compute(experiment, run, cells, missing, jobs)) as computed:
        for number, records in computed:
            found[number] = records
            if store is not None:
                store.write(number, records)
            report(run.name, len(found), len(cells))
    records = [record for number in range(len(cells)) for record in found[number]]
    return Outcome.of(experiment, run, records, perf_counter() - start)


def _compute(
    experiment: Experiment, run: Run, cells: Sequence[Cell], missing: Sequence[int], jobs: int
) -> Generator[tuple[int, list[Record]]]:
    """Yield the missing cells' numbers and records as they are finished."""
    if experiment.whole_machine or jobs == 1 or len(missing) < 2:
        work = _run_whole if experiment.whole_machine else _run_on_one_core
        yield from (work(experiment, run, number, cells[number]) for number in missing)
        return
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    found = parallel(delayed(_run_on_one_core)(experiment, run, number, cells[number]) for number in missing)
    try:
        yield from found
    finally:
        with warnings.catch_warnings():  # an interrupted run cancels its cells; joblib need not say so
            warnings.simplefilter("ignore", UserWarning)
            found.close()


def _run_whole(experiment: Experiment, run: Run, number: int, cell: Cell) -> tuple[int, list[Record]]:
    return number, experiment.run_cell(run, cell)


def _run_on_one_core(experiment: Experiment, run: Run, number: int, cell: Cell) -> tuple[int, list[Record]]:
    """Run a cell with one thread: sums come out alike to the last bit, and times are those of one core."""
    with threadpool_limits(1):
        return _run_whole(experiment, run, number, cell)
