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

from inlier.apps.reproduce.experiment import Cell, Experiment, Outcome, Record, Run, Sources
from inlier.apps.reproduce.mispaired_brain import BrainRatio, BrainSplit
from inlier.apps.reproduce.output import write_numbers, write_pictures
from inlier.apps.reproduce.swapped_sky import SkyImages, SkyNoise
from inlier.apps.reproduce.theory import TheoryEigenvector, TheoryRowSum
from inlier.apps.reproduce.whole_photos import CaseStudy, WholePhoto
from inlier.io import write_file
from inlier.report.match_summary import versions

Progress = Callable[[str, int, int], None]  # name of the experiment, cells done, cells in all

FOLDER = ".unfinished"
_DIGITS = 16

# in the order of the paper
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        BrainRatio(),
        BrainSplit("eigenvector", "Table 1"),
        BrainSplit("row sum", "Table 2"),
        SkyImages(),
        SkyNoise(),
        CaseStudy(),
        TheoryRowSum(),
        TheoryEigenvector(),
        WholePhoto(),
    )
}


def find_experiments(names: list[str]) -> list[Experiment]:
    """Return the named experiments, each once, in the order of the paper.

    Examples
    --------
    >>> from inlier.apps.reproduce.runner import find_experiments
    >>> [experiment.reference for experiment in find_experiments(["sky-noise", "brain-ratio"])]
    ['Figure 1', 'Figure 3']
    """
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(f"There is no experiment named {unknown[0]!r}; there are: {', '.join(EXPERIMENTS)}.")
    return [experiment for name, experiment in EXPERIMENTS.items() if name in names]


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
    """Run experiments one after another and write what each found into the folder ``out``.

    ``jobs`` are processes, one a core by default; ``how`` are ``quick``, ``repetitions``, ``changes`` and ``seed``
    of `Experiment.prepare`. ``on_missing_library`` is told, in a sentence, when pictures cannot be drawn; by default
    that is an ``ImportError``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from inlier.apps.reproduce.experiment import load_sources
    >>> from inlier.apps.reproduce.runner import find_experiments
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
        try:
            write_pictures(outcome, out)
        except ImportError as error:
            if on_missing_library is None:
                raise
            on_missing_library(f"{experiment.name} has no picture. {error}")
        outcomes.append(outcome)
    _forget_finished_cells(out, experiments)
    return outcomes


def run_experiment(
    experiment: Experiment, run: Run, *, jobs: int = 1, keep_in: Path | None = None, progress: Progress | None = None
) -> Outcome:
    """Compute what an experiment finds, in some processes; the numbers do not depend on how many.

    Finished cells are kept in the folder ``keep_in``, and looked for there first. ``progress`` is called with the
    experiment's name, the cells done and the cells in all.

    Examples
    --------
    >>> from inlier.apps.reproduce.experiment import load_sources
    >>> from inlier.apps.reproduce.runner import EXPERIMENTS, run_experiment
    >>> experiment = EXPERIMENTS["sky-images"]
    >>> outcome = run_experiment(experiment, experiment.prepare(load_sources(["sky"]), quick=True))
    >>> [round(row["mean"], 2) for row in outcome.rows]
    [0.25, 0.18]
    """
    start = perf_counter()
    cells = experiment.cells(run.settings)
    paths = None if keep_in is None else kept_cells(keep_in, run, cells)
    report = progress or (lambda *_: None)
    found = {} if paths is None else {k: kept for k, path in enumerate(paths) if (kept := _read(path)) is not None}
    report(run.name, len(found), len(cells))
    missing = [number for number in range(len(cells)) if number not in found]
    with closing(_compute(experiment, run, cells, missing, jobs)) as computed:
        for number, records in computed:
            found[number] = records
            if paths is not None:
                write_file(paths[number], json.dumps(records))
            report(run.name, len(found), len(cells))
    records = [record for number in range(len(cells)) for record in found[number]]
    return Outcome(experiment, run, experiment.table(run, records), perf_counter() - start)


def _compute(
    experiment: Experiment, run: Run, cells: Sequence[Cell], missing: Sequence[int], jobs: int
) -> Generator[tuple[int, list[Record]]]:
    """Yield the missing cells' numbers and records as they are finished."""
    if experiment.whole_machine or jobs == 1 or len(missing) < 2:
        yield from (_run_cell(experiment, run, number, cells[number]) for number in missing)
        return
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    found = parallel(delayed(_run_cell)(experiment, run, number, cells[number]) for number in missing)
    try:
        yield from found
    finally:
        with warnings.catch_warnings():  # an interrupted run cancels its cells; joblib need not say so
            warnings.simplefilter("ignore", UserWarning)
            found.close()


def _run_cell(experiment: Experiment, run: Run, number: int, cell: Cell) -> tuple[int, list[Record]]:
    """Run a cell with one thread: sums come out alike to the last bit, and times are those of one core."""
    with threadpool_limits(None if experiment.whole_machine else 1):
        return number, experiment.run_cell(run, cell)


def kept_cells(out: Path, run: Run, cells: Sequence[Cell]) -> list[Path]:
    """Return the files that hold the records of finished cells.

    Their folder's name holds a hash of all that decides the numbers, so that a run with other settings, another seed,
    other data or another version finds nothing.
    """
    decides = [run.settings, run.seed, run.sources.describe(), versions(), list(cells)]
    digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:_DIGITS]
    return [out / FOLDER / f"{run.name}-{digest}" / f"{number:05d}.json" for number in range(len(cells))]


def _read(path: Path) -> list[Record] | None:
    try:
        records: list[Record] = json.loads(path.read_text())
    except (OSError, ValueError):  # not finished, or torn
        return None
    return records


def _forget_finished_cells(out: Path, experiments: Iterable[Experiment]) -> None:
    folder = out / FOLDER
    for experiment in experiments:
        for kept in folder.glob(f"{experiment.name}-{'[0-9a-f]' * _DIGITS}"):
            shutil.rmtree(kept, ignore_errors=True)
    with suppress(OSError):  # not there, or other experiments are still unfinished
        folder.rmdir()
