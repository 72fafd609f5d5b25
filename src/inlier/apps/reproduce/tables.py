"""From what each repetition found to a tidy table: one line per point and quantity, with its standard error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from inlier.apps.reproduce.model import Cell, Record, Row

STATISTICS = ("mean", "sd", "stderr", "repetitions", "paper")  # every other column says what was measured


def cells_of(points: Iterable[Mapping[str, Any]], repetitions: int, per_cell: int) -> list[Cell]:
    """Cut the repetitions of every point into cells of at most ``per_cell``.

    Examples
    --------
    >>> from inlier.apps.reproduce.tables import cells_of
    >>> cells_of([{"r": 0.8}], repetitions=5, per_cell=3)
    [{'r': 0.8, 'first': 0, 'last': 3}, {'r': 0.8, 'first': 3, 'last': 5}]
    """
    return [
        {**point, "first": first, "last": min(first + per_cell, repetitions)}
        for point in points
        for first in range(0, repetitions, per_cell)
    ]


def repetitions_of(cell: Cell) -> range:
    """Return the numbers of the repetitions that a cell computes."""
    return range(cell["first"], cell["last"])


def summarise(records: Sequence[Record], quantities: Sequence[str]) -> list[Row]:
    """Mean, standard deviation and standard error of each quantity over the records that agree in all else.

    Examples
    --------
    >>> from inlier.apps.reproduce.tables import summarise
    >>> summarise([{"r": 0.8, "error": 0.1}, {"r": 0.8, "error": 0.3}], ["error"])[0]["mean"]
    0.2
    """
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        point = tuple((name, value) for name, value in record.items() if name not in quantities)
        groups.setdefault(point, []).append(record)
    return [
        row(dict(point), quantity, *_mean_and_sd([record[quantity] for record in group]), len(group))
        for point, group in groups.items()
        for quantity in quantities
    ]


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
    if stderr is None:
        stderr = sd / repetitions**0.5
    return {
        **point,
        "quantity": quantity,
        "mean": float(mean),
        "sd": float(sd),
        "stderr": float(stderr),
        "repetitions": repetitions,
        "paper": paper,
    }


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Return the rows whose columns have the wanted values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def means(rows: Iterable[Row], **wanted: Any) -> list[float]:
    """Return the means of the rows whose columns have the wanted values, in the table's order."""
    return [row["mean"] for row in select(rows, **wanted)]


def only(rows: Iterable[Row], **wanted: Any) -> Row:
    """Return the one row whose columns have the wanted values."""
    (found,) = select(rows, **wanted)
    return found


def pivot(rows: Iterable[Row], index: Sequence[str], column: str, **wanted: Any) -> list[Row]:
    """Return one line per value of the ``index`` columns, with the means side by side, named by ``column``.

    Examples
    --------
    >>> from inlier.apps.reproduce.tables import pivot, row
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


def never_rises(curve: Sequence[Row]) -> bool:
    """Whether no step of the curve goes up by more than three standard errors."""
    return not any(
        after["mean"] - before["mean"] > 3 * math.hypot(before["stderr"], after["stderr"])
        for before, after in pairwise(curve)
    )


def gaps(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the largest distance of two curves."""
    apart = [abs(a - b) for a, b in zip(first, second, strict=True)]
    return sum(apart) / len(apart), max(apart)


def _mean_and_sd(values: Sequence[float]) -> tuple[float, float]:
    array = np.asarray(values, dtype=np.float64)
    return float(array.mean()), float(array.std(ddof=1)) if array.size > 1 else 0.0
