"""What an experiment is: cells to compute, a table made of them, a picture, and the claims it can judge."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from inlier.apps.reproduce.sources import Sources

Settings = Mapping[str, Any]
Cell = Mapping[str, Any]  # one piece of work: the parameters of its point, and which repetitions
Record = dict[str, Any]  # what one repetition found
Row = dict[str, Any]  # a line of the tidy table


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and whether it holds in this run.

    Attributes
    ----------
    text : str
        What the paper says.
    holds : bool
        Computed from the numbers of this run.
    evidence : str
        Those numbers, in words.
    """

    text: str
    holds: bool
    evidence: str


@dataclass(frozen=True, eq=False)
class Run:
    """An experiment's settings, data and seed: everything its numbers depend on."""

    name: str
    settings: Settings
    sources: Sources
    seed: int = 0

    def generator(self, *key: int) -> np.random.Generator:
        """Return the random numbers of one repetition: they depend on its key alone, not on who computes it."""
        stream = int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4], "big")
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(stream, *key)))


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper, or a new one.

    Attributes
    ----------
    name : str
        What the command line calls it.
    reference : str
        Where the paper has it; "new" where it has not.
    title : str
        What is shown, in a line.
    full, quick : mapping
        The settings of a full run, and what a quick run changes.
    cells : callable
        From settings to the pieces of work.
    run_cell : callable
        From a run and a cell to records.
    table : callable
        From a run and all records, in the order of the cells, to rows.
    plot : callable
        From a run and the rows to a matplotlib figure.
    claims : callable
        From the rows to the paper's claims and whether they hold.
    headline : callable
        From the rows to a small table to read, a line a point: what a paper would print.
    notes : str
        How it was done where the paper leaves a choice.
    data : tuple of str
        The sources that decide its numbers: "brain", "sky", "scenes".
    whole_machine : bool
        A cell uses all cores and much memory, so that cells run one after another.

    Examples
    --------
    >>> from inlier.apps.reproduce import EXPERIMENTS
    >>> EXPERIMENTS["brain-ratio"].settings(quick=True)["n"]
    2000
    """

    name: str
    reference: str
    title: str
    full: Settings
    quick: Settings
    cells: Callable[[Settings], Sequence[Cell]]
    run_cell: Callable[[Run, Cell], list[Record]]
    table: Callable[[Run, list[Record]], list[Row]]
    plot: Callable[[Run, list[Row]], Any]
    claims: Callable[[list[Row]], list[Claim]]
    headline: Callable[[list[Row]], list[Row]]
    notes: str = ""
    data: tuple[str, ...] = ()
    whole_machine: bool = False

    def settings(self, *, quick: bool = False, repetitions: int | None = None) -> dict[str, Any]:
        """Return the settings of a full or quick run, with another number of repetitions if asked."""
        settings = {**self.full, **(self.quick if quick else {})}
        if repetitions is not None and "repetitions" in settings:
            settings["repetitions"] = repetitions
            if "dense_repetitions" in settings:
                settings["dense_repetitions"] = min(repetitions, settings["dense_repetitions"])
        return settings

    def prepare(self, sources: Sources, *, seed: int = 0, quick: bool = False, repetitions: int | None = None) -> Run:
        """Return the run of this experiment on the given data; only the data it needs travels with it."""
        return Run(self.name, self.settings(quick=quick, repetitions=repetitions), sources.only(self.data), seed)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found."""

    experiment: Experiment
    run: Run
    rows: list[Row]
    seconds: float
    claims: list[Claim] = field(default_factory=list)

    @classmethod
    def of(cls, experiment: Experiment, run: Run, records: list[Record], seconds: float) -> Outcome:
        """Make the table of the records and judge the claims."""
        rows = experiment.table(run, records)
        return replace(cls(experiment, run, rows, seconds), claims=experiment.claims(rows))

    def headline(self) -> list[Row]:
        """Return the small table to read."""
        return self.experiment.headline(self.rows)

    def figure(self) -> Any:
        """Draw the experiment's picture."""
        return self.experiment.plot(self.run, self.rows)
