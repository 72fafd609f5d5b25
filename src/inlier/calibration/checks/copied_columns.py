"""Columns that stand in both tables: they make any pair look real, and say nothing of whether it is.

Two tables that were joined by age hold the same ages in every row, whoever the people are. Such a column is left out on
both sides. Tables that have no other columns are compared as they are.
"""

from __future__ import annotations

import numpy as np

from inlier._typing import Array
from inlier.rows.null_pairs import row_hashes


def copied_columns(X: Array, Y: Array) -> tuple[Array, Array]:
    """Numbers of the columns of X and of y that are equal in every row to one of the other table, and not constant."""
    hashes = [row_hashes(np.ascontiguousarray(np.nan_to_num(table, nan=np.pi).T)) for table in (X, Y)]
    varies = [np.nanmax(table, axis=0) > np.nanmin(table, axis=0) for table in (X, Y)]
    of_x, of_y = (
        np.flatnonzero(np.isin(own, other) & v) for own, other, v in zip(hashes, hashes[::-1], varies, strict=True)
    )
    leaves_some = all((v.sum() > found.size) for v, found in zip(varies, (of_x, of_y), strict=True))
    nothing = np.empty(0, dtype=np.int64)
    return (of_x, of_y) if leaves_some else (nothing, nothing)


def without_columns(table: Array, columns: Array) -> Array:
    """The table with nothing in these columns."""
    if not columns.size:
        return table
    table = table.astype(np.float64 if table.dtype.kind != "f" else table.dtype, copy=True)
    table[:, columns] = 0.0
    return table


def warning_of(names: list[str]) -> str:
    """What to say of columns that were left out, by their names in X."""
    which = f"Column {names[0]} is" if len(names) == 1 else f"Columns {', '.join(names)} are"
    return (
        f"{which} the same in X and y in every row. That makes any pair look real and says nothing of whether it is, "
        f"so it was left out on both sides."
    )
