"""Tidy tables, a dict a row: made of records, looked up, and laid out to be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Record = dict[str, Any]  # what one repetition found
Row = dict[str, Any]  # a line of the table: what was measured, and its
STATISTICS = ("mean", "sd", "stderr", "repetitions", "paper")


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
    >>> from inlier.apps.reproduce.tidy import pivot, row
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
