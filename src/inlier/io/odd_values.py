"""Values that cannot be meant: codes for missing numbers, and numbers far beyond all others of their column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inlier._typing import Array, Mask
from inlier.io.table import Table

_CODES = (-9999, -999, 9999, 99999, -99999, 999999, -32768, 1e20, 1e30, -1e30, 1e36, 1e38)  # of other programs
_CODE_BEYOND = 10  # median deviations from which such a number is taken for a code, if it occurs more than once
_FAR = 1000  # median deviations that no sound value of a column lies from its median
_RARE = 0.1  # share of a column's values above which they are its nature


def notes_on_values(table: Table) -> Iterator[str]:
    """Sentences that name the codes and the absurd values of a table, with the first row and column of each.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from inlier.io import Table, notes_on_values
    >>> values = np.random.default_rng(0).normal(size=(100, 2))
    >>> values[7, 1] = 1e9
    >>> list(notes_on_values(Table(values, ("a", "b"), None, Path("x.csv"))))[0][:73]
    'x.csv has 1 value far beyond the others of its column, 1e+09 in row 7, co'
    """
    values = table.values
    if isinstance(values, np.memmap) or values.dtype.kind != "f" or len(values) < 4:
        return
    codes, far = np.zeros(values.shape, dtype=bool), np.zeros(values.shape, dtype=bool)
    for number, column in enumerate(values.T):
        codes[:, number], far[:, number] = _odd(column)
    if codes.any():
        yield (
            f"{table.source} has {_counted(codes)} that look like codes for missing numbers, {_first(codes, table)}. "
            f"They are compared like any other number, and can hide real pairs: leave those rows or columns out."
        )
    if far.any():
        yield (
            f"{table.source} has {_counted(far)} far beyond the others of its column, {_first(far, table)}. One such "
            f"row can hide all real pairs: if it is a mistake, leave it out."
        )


def _odd(column: Array) -> tuple[Mask, Mask]:
    """Which values are codes, and which are absurd."""
    with np.errstate(over="ignore", invalid="ignore"):
        away = np.abs(column - np.median(column[np.isfinite(column)])) if np.isfinite(column).any() else column
    away = np.where(np.isfinite(column), away, 0)
    typical = float(np.median(away)) or float(np.median(away[away > 0])) if (away > 0).any() else 0.0
    if typical == 0 or not np.isfinite(typical):
        return np.zeros(len(column), dtype=bool), np.zeros(len(column), dtype=bool)
    suspects = [code for code in _CODES if np.count_nonzero(column == column.dtype.type(code)) > 1]
    codes = np.isin(column, np.array(suspects, dtype=column.dtype)) & (away > _CODE_BEYOND * typical)
    far = (away > _FAR * typical) & ~codes
    rare = max(1, _RARE * len(column))
    return codes, far if far.sum() <= rare else np.zeros(len(column), dtype=bool)


def _counted(odd: Mask) -> str:
    n = int(odd.sum())
    return f"{n:,} value{'' if n == 1 else 's'}"


def _first(odd: Mask, table: Table) -> str:
    row, column = np.argwhere(odd)[0]
    where = f"row {row}" if table.keys is None else f"id {table.keys[row]}"
    heading = column if table.columns is None else table.columns[column]
    first = "the first " if odd.sum() > 1 else ""
    return f"{first}{table.values[row, column]:g} in {where}, column {heading}"
