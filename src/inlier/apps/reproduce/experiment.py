"""What an experiment is: cells to compute, a tidy table made of their records, a picture, and claims to judge.

A tidy table is a list of rows, each a dict: made of records, looked up, and laid out to be read. The data of the
experiments are what ships with the packages, or what the user brings.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from inlier._typing import FloatArray, Photo
from inlier.apps.reproduce.settings import changed
from inlier.datasets import Scenes, load_brain, load_scenes, load_sky, make_scenes

Record = dict[str, Any]  # what one repetition found
Row = dict[str, Any]  # a line of the table: what was measured, and its
STATISTICS = ("mean", "sd", "stderr", "repetitions", "paper")
Settings = Mapping[str, Any]
Cell = Mapping[str, Any]  # one piece of work: the parameters of its point, and which repetitions
PathName = str | PathLike[str]

DEFAULT_BRAIN = "conte69 left hemisphere (shipped)"
DEFAULT_SKY = "china.jpg (scikit-learn)"
DEFAULT_SCENES = "china.jpg (scikit-learn) with two drawn objects"


@dataclass(frozen=True, eq=False)
class Source:
    """Data with a name, and a fingerprint of its values that tells whether two runs used the same."""

    name: str
    data: Any
    fingerprint: str


class Sources(dict[str, Source]):
    """Data by name: "brain" (features), "sky" (a photo with much of it), "scenes" (three photos of one scene)."""

    def only(self, names: Sequence[str]) -> Sources:
        """Keep the named ones."""
        return Sources({name: self[name] for name in names})

    @property
    def features(self) -> FloatArray:
        """The brain's table, of shape (m, 6)."""
        return self["brain"].data

    @property
    def photo(self) -> Photo:
        """The photo with much sky, of shape (height, width, 3)."""
        return self["sky"].data

    @property
    def three_scenes(self) -> Scenes:
        """The photos of the case study."""
        return self["scenes"].data

    def describe(self) -> dict[str, dict[str, str]]:
        """Return name and fingerprint of each, for the record; names carry no folders."""
        return {name: {"name": source.name, "fingerprint": source.fingerprint} for name, source in self.items()}

    def __missing__(self, name: str) -> Source:
        raise ValueError(f"This experiment was not given its data: {name}.")


def load_sources(
    needed: Sequence[str] = ("brain", "sky", "scenes"),
    *,
    brain: PathName | None = None,
    photos: Sequence[PathName] = (),
) -> Sources:
    """Load what the experiments need, by default what needs no download.

    ``brain`` is a Workbench folder or ``.npz`` for `load_brain`; ``photos`` are one, with much sky, or the three of the
    case study.

    Examples
    --------
    >>> from inlier.apps.reproduce.experiment import load_sources
    >>> load_sources(["brain"]).features.shape
    (29268, 6)
    """
    if len(photos) not in (0, 1, 3):
        raise ValueError(
            f"{len(photos)} photos were given; give one for the sky experiments, or three of one scene for the "
            f"case study."
        )
    sky = photos[0] if len(photos) == 1 else None
    three = photos if len(photos) == 3 else None
    _check_all_are_used(needed, {"brain": brain, "sky": sky, "scenes": three})
    sources = Sources()
    if "brain" in needed:
        sources["brain"] = _source(DEFAULT_BRAIN, brain, load_brain(brain).features)
    if "sky" in needed:
        sources["sky"] = _source(DEFAULT_SKY, sky, load_sky(sky))
    if "scenes" in needed:
        scenes = make_scenes() if three is None else load_scenes(three)
        name = DEFAULT_SCENES if three is None else ", ".join(Path(path).name for path in three)
        sources["scenes"] = Source(name, scenes, fingerprint(*scenes.photos))
    return sources


def _check_all_are_used(needed: Sequence[str], given: dict[str, Any]) -> None:
    """Refuse data that no chosen experiment reads: its numbers would silently be those of other data."""
    options = {"brain": "--brain", "sky": "one --photo", "scenes": "three --photo"}
    idle = [options[name] for name, value in given.items() if value is not None and name not in needed]
    if idle:
        wanted = ", ".join(options[name] for name in needed if name in options) or "no data"
        raise ValueError(f"{' and '.join(idle)} was given, but the chosen experiments read {wanted}. Leave it out.")


def _source(default_name: str, path: PathName | None, data: NDArray[Any]) -> Source:
    return Source(default_name if path is None else Path(path).resolve().name, data, fingerprint(data))


def fingerprint(*arrays: NDArray[Any]) -> str:
    """Return a short hash of the arrays' shapes and values."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


# ---- what an experiment is


def summarise(records: Sequence[Record], quantities: Sequence[str]) -> list[Row]:
    """Mean, standard deviation and standard error of each quantity over the records that agree in all else."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        point = tuple((name, value) for name, value in record.items() if name not in quantities)
        groups.setdefault(point, []).append(record)
    rows = []
    for point, group in groups.items():
        for quantity in quantities:
            values = [float(record[quantity]) for record in group if quantity in record]
            if values:
                sd = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
                rows.append(row(dict(point), quantity, float(np.mean(values)), sd, len(values)))
    return rows


def row(
    point: Mapping[str, Any],
    quantity: str,
    mean: float,
    sd: float = 0.0,
    repetitions: int = 1,
    *,
    stderr: float | None = None,
    paper: float | None = None,
) -> Row:
    """Return one line of a table."""
    return {
        **point,
        "quantity": quantity,
        "mean": float(mean),
        "sd": float(sd),
        "stderr": float(sd / repetitions**0.5 if stderr is None else stderr),
        "repetitions": repetitions,
        "paper": paper,
    }


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Return the rows whose columns have the wanted values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def column(rows: Iterable[Row], name: str, **wanted: Any) -> list[Any]:
    """Return one column of the rows whose other columns have the wanted values, in the table's order."""
    return [row[name] for row in select(rows, **wanted)]


def only(rows: Iterable[Row], **wanted: Any) -> Row:
    """Return the one row whose columns have the wanted values."""
    (found,) = select(rows, **wanted)
    return found


def pivot(rows: Iterable[Row], index: Sequence[str], column: str, **wanted: Any) -> list[Row]:
    """Return one line per value of the ``index`` columns, with the means side by side, named by ``column``.

    Examples
    --------
    >>> from inlier.apps.reproduce.experiment import pivot, row
    >>> rows = [row({"r": 0.8, "method": name}, "error", mean) for name, mean in (("a", 0.1), ("b", 0.2))]
    >>> pivot(rows, ["r"], "method", quantity="error")
    [{'r': 0.8, 'a': 0.1, 'b': 0.2}]
    """
    lines: dict[tuple[Any, ...], Row] = {}
    for found in select(rows, **wanted):
        point = tuple(found[name] for name in index)
        line = lines.setdefault(point, dict(zip(index, point, strict=True)))
        line[found[column]] = found["mean"]
    return list(lines.values())


def point_of(row: Row) -> dict[str, Any]:
    """What was measured, without the statistics."""
    return {name: value for name, value in row.items() if name not in STATISTICS}


def gaps(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the largest distance of two curves."""
    apart = [abs(a - b) for a, b in zip(first, second, strict=True)]
    return sum(apart) / len(apart), max(apart)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, whether it holds by the numbers of this run, and those numbers in words."""

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


class Experiment(ABC):
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
    quantities : tuple of str
        What is measured: the numbers in its records.
    per_cell : int
        Repetitions that are computed together.
    notes : str
        How it was done where the paper leaves a choice.
    data : tuple of str
        The sources that decide its numbers: "brain", "sky", "scenes".
    takes : tuple of str
        Settings that it has no value for, and may be given.
    whole_machine : bool
        A cell uses all cores and much memory, so that cells run one after another.

    Examples
    --------
    >>> from inlier.apps.reproduce.runner import EXPERIMENTS
    >>> EXPERIMENTS["brain-ratio"].settings(quick=True)["n"]
    2000
    """

    name: str
    reference: str
    title: str
    full: ClassVar[Settings]
    quick: ClassVar[Settings]
    quantities: tuple[str, ...] = ()
    per_cell: int = 1
    notes: str = ""
    data: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    whole_machine: bool = False

    @abstractmethod
    def points(self, settings: Settings) -> list[dict[str, Any]]:
        """Return the points at which it is measured, those that take longest first."""

    @abstractmethod
    def measure(self, run: Run, point: Mapping[str, Any], repetition: int) -> list[Record]:
        """Return what one repetition at a point finds."""

    def cells(self, settings: Settings) -> list[Cell]:
        """Cut the work into cells: some repetitions at a point."""
        return cells_of(self.points(settings), settings.get("repetitions", 1), self.per_cell)

    def run_cell(self, run: Run, cell: Cell) -> list[Record]:
        """Compute the records of one cell."""
        point = {name: value for name, value in cell.items() if name not in ("first", "last")}
        repetitions = range(cell["first"], cell["last"])
        return [{**point, **found} for repetition in repetitions for found in self.measure(run, point, repetition)]

    def table(self, run: Run, records: list[Record]) -> list[Row]:
        """Turn all records, in the order of the cells, into the tidy table: mean and spread of each quantity."""
        return summarise(records, self.quantities)

    @abstractmethod
    def plot(self, run: Run, rows: list[Row]) -> Any:
        """Draw the table as a matplotlib figure."""

    @abstractmethod
    def headline(self, rows: list[Row]) -> list[Row]:
        """Return a small table to read, a line a point: what a paper would print."""

    @abstractmethod
    def claims(self, rows: list[Row]) -> list[Claim]:
        """Judge the paper's claims by the table."""

    def settings(
        self,
        *,
        quick: bool = False,
        repetitions: int | None = None,
        changes: Mapping[str, tuple[float, ...]] | None = None,
    ) -> dict[str, Any]:
        """Return the settings of a full or quick run, with another number of repetitions, or other values, if asked."""
        settings = {**self.full, **(self.quick if quick else {})}
        if repetitions is not None and "repetitions" in settings:
            settings["repetitions"] = repetitions
            if "dense_repetitions" in settings:
                settings["dense_repetitions"] = min(repetitions, settings["dense_repetitions"])
        return changed(settings, self.takes, changes or {})

    def prepare(self, sources: Sources, *, seed: int = 0, **how: Any) -> Run:
        """Return the run of this experiment on the given data; only the data it needs travels with it.

        ``how`` are ``quick``, ``repetitions`` and ``changes`` of `settings`.
        """
        return Run(self.name, self.settings(**how), sources.only(self.data), seed)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found: the table of its records, and how the claims fare by it."""

    experiment: Experiment
    run: Run
    rows: list[Row]
    seconds: float

    @property
    def claims(self) -> list[Claim]:
        """The paper's claims, judged."""
        return self.experiment.claims(self.rows)

    @property
    def smaller(self) -> list[str]:
        """Where its settings are not those of a full run: "n 3000 instead of 12000"."""
        full = self.experiment.full
        return [
            f"{name.replace('_', ' ')} {_brief(value)} instead of {_brief(full[name])}"
            for name, value in self.run.settings.items()
            if name in full and value != full[name]
        ]


def _brief(value: Any) -> str:
    """A setting in few letters; of a long list how many there are."""
    if isinstance(value, dict):
        value = [size for sizes in value.values() for size in sizes]
    if isinstance(value, (list, tuple)) and len(value) > 3:
        return f"{len(value)} values up to {max(value):g}"
    return ", ".join(f"{one:g}" for one in value) if isinstance(value, (list, tuple)) else str(value)


def cells_of(points: Iterable[Mapping[str, Any]], repetitions: int, per_cell: int) -> list[Cell]:
    """Cut the repetitions of every point into cells of at most ``per_cell``.

    Examples
    --------
    >>> from inlier.apps.reproduce.experiment import cells_of
    >>> cells_of([{"r": 0.8}], repetitions=5, per_cell=3)
    [{'r': 0.8, 'first': 0, 'last': 3}, {'r': 0.8, 'first': 3, 'last': 5}]
    """
    return [
        {**point, "first": first, "last": min(first + per_cell, repetitions)}
        for point in points
        for first in range(0, repetitions, per_cell)
    ]
