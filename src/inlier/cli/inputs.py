"""Two files as the commands are given them: which columns, which key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from inlier.cli.answers import BadInput

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

    return [name.strip() for name in next(csv.reader([names], skipinitialspace=True))]


@contextmanager
def naming_files(x: str, y: str) -> Iterator[None]:
    """Let the library's sentences about its tables X and y name the files instead."""
    try:
        yield
    except ValueError as error:
        names = {"X": x, "Y": y, "y": y}
        sentence = re.sub(r"^([XYy])(?= (contains|is constant|has|holds) )", lambda found: names[found[1]], str(error))
        raise type(error)(sentence) from error


def check_numbers(pairing: Pairing, tables: tuple[Table, Table]) -> None:
    """Refuse NaN and infinity by the names that the user knows: file, id, column."""
    import numpy as np

    for values, table in zip((pairing.X, pairing.Y), tables, strict=True):
        if isinstance(values, np.memmap) or values.dtype.kind != "f":
            continue  # a large file is looked through once, when it is matched
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            row, column = bad[0]
            where = f"row {row}" if pairing.keys is None else f"id {pairing.keys[row]}"
            name = column if table.columns is None else table.columns[column]
            raise BadInput(
                f"{table.source} contains NaN or infinity: {len(bad)} value(s), the first ({values[row, column]}) in "
                f"{where}, column {name}. Leave those rows out, or fill the values in."
            )
