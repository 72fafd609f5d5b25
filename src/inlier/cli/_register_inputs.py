"""What ``inlier register`` reads: two sets of points, which of them are pairs, and how much each pair counts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inlier.cli._answers import BadInput
from inlier.cli._inputs import check_numbers, read_both
from inlier.io import Pairing, Table, UnusableFileError, format_of, pair_tables, read_table
from inlier.io.formats import request_of

if TYPE_CHECKING:
    from inlier._typing import Array, FloatArray

_ENDS = ("source", "target")


@dataclass(frozen=True, eq=False)
class Problem:
    """Both sets, the pairs between them, a weight for each pair, and all files that these were read from."""

    source: Table
    target: Table
    pairing: Pairing
    ends: tuple[Array, Array] | None
    weights: FloatArray | None
    files: tuple[Path, ...]

    @property
    def clouds(self) -> tuple[Array, Array] | None:
        """All points of both sets, where the pairs do not hold each of them once."""
        is_all = self.ends is None and len(self.pairing) == len(self.source) == len(self.target)
        return None if is_all else (self.source.values, self.target.values)


def read_problem(
    source: str, target: str, pairs: str | None, keys: tuple[str, ...], columns: tuple[str, ...], weights: str | None
) -> Problem:
    """Read everything, and pair the points: by PAIRS, by id, or row by row."""
    if pairs is not None and keys:
        raise BadInput("--pairs and --key both say which points belong together. Give one of them.")
    first, second = read_both(source, target, keys, columns)
    if pairs is None:
        pairing, ends = pair_tables(first, second), None
        check_numbers(pairing, (source, target), (first, second))
    else:
        ends = _read_ends(pairs, first, second)
        pairing = Pairing(first.values[ends[0]], second.values[ends[1]], np.arange(len(ends[0])))
        in_files = replace(pairing, rows=ends[0], rows_y=ends[1])
        check_numbers(in_files, (source, target), (first, second))
    n_rows = len(first) if pairs is None else len(pairing)
    given = None if weights is None else _read_weights(weights, pairs or source, n_rows)[pairing.rows]
    named = [request_of(name).path for name in (pairs, weights) if name is not None]  # without the array inside
    return Problem(first, second, pairing, ends, given, (first.source, second.source, *named))


def _read_ends(pairs: str, source: Table, target: Table) -> tuple[Array, Array]:
    """Rows of source and target that each line of PAIRS joins, counted from 0."""
    table = _read_two_columns(pairs, source.source, target.source)
    for place, end in enumerate((source, target)):
        column = table.values[:, place]
        whole = np.isfinite(column) & (column == np.floor(column))
        if not whole.all():
            row = int(np.argmin(whole))
            raise BadInput(
                f"{table.source} must hold row numbers, counted from 0, but its row {row} has {column[row]:g} for the "
                f"{_ENDS[place]}."
            )
        outside = (column < 0) | (column >= len(end))
        if outside.any():
            row = int(np.argmax(outside))
            from_one = " Are they counted from 1? Here they count from 0." if column.max() == len(end) else ""
            raise BadInput(
                f"{table.source} names {_ENDS[place]} row {int(column[row])} in its row {row}, but {end.source} has "
                f"{len(end):,} rows, 0 to {len(end) - 1}.{from_one}"
            )
        if len(column) > 1 and (column == column[0]).all():
            raise BadInput(
                f"{table.source} names row {int(column[0])} of {end.source} in each of its {len(column):,} rows, so "
                f"that no pair can be told from another. Check that the right columns were read."
            )
    ends = table.values.astype(np.intp)
    return ends[:, 0], ends[:, 1]


def _read_two_columns(pairs: str, source: Path, target: Path) -> Table:
    """Columns named source and target, or the only two there are."""
    try:
        return read_table(pairs, columns=_ENDS)
    except UnusableFileError:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # these numbers are ids, and meant to be read
            table = read_table(pairs)
    if table.values.shape[1] != 2:
        raise BadInput(
            f"{table.source} must have two columns, a row of {source} and a row of {target}; it has "
            f"{table.values.shape[1]}. If there are more, name those two source and target."
        )
    return table


def _read_weights(weights: str, rows_of: str, n_rows: int) -> FloatArray:
    """One number a row: from a file of their own, or from a column beside the rows."""
    table = read_table(weights) if _is_file(weights) else read_table(rows_of, columns=[weights])
    if table.values.shape != (n_rows, 1):
        raise BadInput(
            f"{table.source} must hold one weight for each of the {n_rows:,} rows of {rows_of}, but it has "
            f"{len(table):,} rows and {table.values.shape[1]} columns."
        )
    return np.asarray(table.values[:, 0], dtype=np.float64)


def _is_file(weights: str) -> bool:
    """Whether this names a file; otherwise it is a column."""
    try:
        format_of(Path(weights))
    except UnusableFileError:
        return Path(weights).exists()
    return True
