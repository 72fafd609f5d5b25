"""Lanes of plates: put in the wrong way round, or a row or a column too far.

A plate is a grid of wells, 8 x 12 of them as a rule. What stands in a well after a slip belongs to another well of the
same plate, so a slip of plates is a map of wells, which is the same for each plate that it happened to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from inlier._typing import Array

_LABEL = re.compile(r"\s*([A-Za-z]{1,2})\s*0*([1-9][0-9]?)\s*")


def wells_of(n: int, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Plate, and row and column of the well, of rows that come plate by plate, row by row."""
    place = np.arange(n)
    within = place % (shape[0] * shape[1])
    return place // (shape[0] * shape[1]), np.stack([within // shape[1], within % shape[1]], axis=1)


def read_wells(labels: Sequence[object]) -> tuple[Array, Array]:
    """Plate, and row and column of the well, from labels such as A01; where a well comes again, a plate begins.

    Examples
    --------
    >>> plate, well = read_wells(["A01", "B2", "H12", "A01"])
    >>> plate.tolist(), well.tolist()
    ([0, 0, 0, 1], [[0, 0], [1, 1], [7, 11], [0, 0]])
    """
    places, plate, seen, number = [], [], set[tuple[int, int]](), 0
    for label in labels:
        found = _LABEL.fullmatch(str(label))
        if found is None:
            raise ValueError(f"{label!r} is no well; wells are called A1 or A01: a letter for the row, a column.")
        row = 0
        for letter in found[1].upper():
            row = 26 * row + ord(letter) - ord("A") + 1
        place = row - 1, int(found[2]) - 1
        if place in seen:
            seen, number = set(), number + 1
        seen.add(place)
        places.append(place)
        plate.append(number)
    return np.array(plate), np.array(places)


def plate_maps(plate: Array, well: Array) -> dict[str, Array]:
    """For each slip of a plate the row that belongs to each row, -1 where its well is not on the plate."""
    n_rows, n_columns = (int(n) for n in well.max(axis=0) + 1)
    row, column = well.T
    ways = {
        "turned round by 180 degrees": (n_rows - 1 - row, n_columns - 1 - column),
        "mirrored from left to right": (row, n_columns - 1 - column),
        "mirrored from top to bottom": (n_rows - 1 - row, column),
        "filled by columns instead of rows": np.divmod(column * n_rows + row, n_columns),
        "filled by rows instead of columns": np.divmod(row * n_columns + column, n_rows)[::-1],
        "a row of wells too low": (row + 1, column),
        "a row of wells too high": (row - 1, column),
        "a column of wells too far right": (row, column + 1),
        "a column of wells too far left": (row, column - 1),
    }
    if n_rows == n_columns:
        ways["turned over its diagonal"] = ways.pop("filled by columns instead of rows")
        del ways["filled by rows instead of columns"]
    at = {(p, r, c): k for k, (p, r, c) in enumerate(zip(plate.tolist(), row.tolist(), column.tolist(), strict=True))}
    return {
        name: np.array([at.get(place, -1) for place in zip(plate.tolist(), r.tolist(), c.tolist(), strict=True)])
        for name, (r, c) in ways.items()
    }
