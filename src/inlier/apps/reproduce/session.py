"""A series of experiments, written to a folder as each is done; taken up again where it was interrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import cpu_count
from pathlib import Path

from inlier.apps.reproduce.model import Experiment, Outcome
from inlier.apps.reproduce.output import write_numbers, write_pictures
from inlier.apps.reproduce.runner import Progress, run_experiment
from inlier.apps.reproduce.sources import Sources
from inlier.apps.reproduce.store import forget_finished_cells


@dataclass(frozen=True)
class Options:
    """How to run: fully or quickly, how often, with what seed, in how many processes (None: one a core)."""

    quick: bool = False
    repetitions: int | None = None
    seed: int = 0
    jobs: int | None = None


def run_all(
    experiments: Sequence[Experiment],
    sources: Sources,
    out: Path,
    options: Options | None = None,
    *,
    progress: Progress | None = None,
    on_missing_library: Callable[[str], None] | None = None,
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
    options : Options, optional
        How.
    progress : callable, optional
        See `run_experiment`.
    on_missing_library : callable, optional
        Told, in a sentence, when pictures cannot be drawn; by default that is an ``ImportError``.

    Returns
    -------
    list of Outcome

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from inlier.apps.reproduce import find_experiments, load_sources
    >>> from inlier.apps.reproduce.session import run_all
    >>> with TemporaryDirectory() as folder:
    ...     (outcome,) = run_all(find_experiments(["sky-images"]), load_sources(["sky"]), Path(folder))
    >>> outcome.claims[0].holds
    True
    """
    options = options or Options()
    jobs = options.jobs or cpu_count() or 1
    out.mkdir(parents=True, exist_ok=True)  # before hours of work, not after
    outcomes = []
    for experiment in experiments:
        run = experiment.prepare(sources, seed=options.seed, quick=options.quick, repetitions=options.repetitions)
        outcome = run_experiment(experiment, run, jobs=jobs, keep_in=out, progress=progress)
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
