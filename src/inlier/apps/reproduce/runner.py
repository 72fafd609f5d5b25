"""Run experiments: cells in processes, kept beside the output until all is done, so that an interrupted run resumes."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, suppress
from os import cpu_count
from pathlib import Path
from time import perf_counter
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from inlier.apps.reproduce.experiment import Cell, Experiment, Outcome, Run
from inlier.apps.reproduce.output import write_numbers, write_pictures
from inlier.apps.reproduce.sources import Sources
from inlier.apps.reproduce.tidy import Record
from inlier.io import write_file
from inlier.report.rendering import versions

Progress = Callable[[str, int, int], None]  # name of the experiment, cells done, cells in all

FOLDER = ".unfinished"
_DIGITS = 16


def run_all(
    experiments: Sequence[Experiment],
    sources: Sources,
    out: Path,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
    on_missing_library: Callable[[str], None] | None = None,
    **how: Any,
) -> list[Outcome]:
    """Run experiments one after another and write what each found.

    Parameters
    ----------
    experiments : sequence of Experiment
        Which.
    sources : Sources
        Their data.
    out : Path
        Folder for the results; made if absent.
    jobs : int, optional
        Processes; one a core by default.
    progress : callable, optional
        See `run_experiment`.
    on_missing_library : callable, optional
        Told, in a sentence, when pictures cannot be drawn; by default that is an ``ImportError``.
    **how
        ``quick``, ``repetitions`` and ``seed``, see `Experiment.prepare`.

    Returns
    -------
    list of Outcome

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from inlier.apps.reproduce import find_experiments, load_sources
    >>> from inlier.apps.reproduce.runner import run_all
    >>> with TemporaryDirectory() as folder:
    ...     (outcome,) = run_all(find_experiments(["sky-images"]), load_sources(["sky"]), Path(folder))
    >>> outcome.claims[0].holds
    True
    """
    out.mkdir(parents=True, exist_ok=True)  # before hours of work, not after
    outcomes = []
    for experiment in experiments:
        run = experiment.prepare(sources, **how)
        outcome = run_experiment(experiment, run, jobs=jobs or cpu_count() or 1, keep_in=out, progress=progress)
        write_numbers(outcome, out)
        _draw(outcome, out, on_missing_library)
        outcomes.append(outcome)
    forget_finished_cells(out, [experiment.name for experiment in experiments])
    return outcomes


def _draw(outcome: Outcome, out: Path, on_missing_library: Callable[[str], None] | None) -> None:
    try:
        write_pictures(outcome, out)
    except ImportError as error:
        if on_missing_library is None:
            raise
        on_missing_library(f"{outcome.experiment.name} has no picture. {error}")


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
    return Outcome(experiment, run, experiment.table(run, records), perf_counter() - start)


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


class CellStore:
    """The records of one run's finished cells, each in a file of its own.

    The folder's name holds a hash of all that decides the numbers, so that a run with other settings,
    another seed, other data or another version finds nothing.
    """

    def __init__(self, out: Path, run: Run, cells: Sequence[Cell]) -> None:
        decides = [run.settings, run.seed, run.sources.describe(), versions(), list(cells)]
        digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:_DIGITS]
        self._folder = out / FOLDER / f"{run.name}-{digest}"

    def read(self, number: int) -> list[Record] | None:
        """Return the records of a cell, or None if it is not finished."""
        try:
            records: list[Record] = json.loads(self._path(number).read_text())
        except (OSError, ValueError):
            return None
        return records

    def write(self, number: int, records: list[Record]) -> None:
        """Keep the records of a finished cell."""
        write_file(self._path(number), json.dumps(records))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:05d}.json"


def forget_finished_cells(out: Path, names: Iterable[str]) -> None:
    """Remove what was kept of the named experiments: they are done."""
    folder = out / FOLDER
    for name in names:
        for kept in folder.glob(f"{name}-{'[0-9a-f]' * _DIGITS}"):
            shutil.rmtree(kept, ignore_errors=True)
    with suppress(OSError):  # not there, or other experiments are still unfinished
        folder.rmdir()
