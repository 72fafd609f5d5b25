"""Two files as the commands are given them: which columns, which key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inlier.cli._answers import BadInput

if TYPE_CHECKING:
    from inlier.io import Pairing, Table


def read_both(x: str, y: str, keys: tuple[str, ...], columns: tuple[str, ...]) -> tuple[Table, Table]:
    """Read two tables; keys and columns may be given once for both, or once for each."""
    from inlier.io import read_table

    first, second = (
        read_table(source, key=key, columns=None if names is None else split_names(names))
        for source, key, names in zip((x, y), for_both(keys, "--key"), for_both(columns, "--columns"), strict=True)
    )
    return first, second


def for_both(values: tuple[str, ...], option: str) -> tuple[str | None, str | None]:
    """One value for both files, or one for each."""
    if len(values) > 2:
        raise BadInput(f"{option} was given {len(values)} times; give it once for both files, or twice.")
    return (values[0], values[-1]) if values else (None, None)


def split_names(names: str) -> list[str]:
    """Names between commas; one that holds a comma stands in quotes."""
    import csv

    if not names.strip():
        raise BadInput("--columns names no column. Give names with commas between them, such as --columns a,b.")
    try:
        return [name.strip() for name in next(csv.reader([names], skipinitialspace=True))]
    except csv.Error as error:  # a line break outside of quotes
        raise BadInput(f"--columns {names!r} could not be read as names with commas between them.") from error


def check_numbers(pairing: Pairing, names: tuple[str, str], tables: tuple[Table, Table]) -> None:
    """Refuse NaN and infinity by the names that the user knows: file, id or row, column."""
    import numpy as np

    sides = ((pairing.X, pairing.rows), (pairing.Y, pairing.rows if pairing.rows_y is None else pairing.rows_y))
    for (values, rows), name, table in zip(sides, names, tables, strict=True):
        if isinstance(values, np.memmap) or values.dtype.kind != "f":
            continue  # a large file is looked through once, when it is matched
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            n_bad = len({(rows[pair], column) for pair, column in bad})  # a row may be in several pairs
            pair, column = bad[0]
            where = f"row {rows[pair]}" if pairing.keys is None else f"id {pairing.keys[pair]}"
            heading = column if table.columns is None else table.columns[column]
            raise BadInput(
                f"{name} contains NaN or infinity: {n_bad} value(s), the first ({values[pair, column]}) in "
                f"{where}, column {heading}. Leave those rows out, or fill the values in."
            )
