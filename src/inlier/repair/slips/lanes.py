"""Lanes: the maps of rows, with few parameters each, that one slip of a hand makes.

A lane says for each row of x which row of y belongs to it: i + d where rows were lost or put in, c - i where they were
turned round, anything for the wells of a plate. A table is a road of such lanes, and whoever reads it drives on the one
in the middle, i beside i, until a slip puts him on another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from inlier._typing import Array, FloatArray

HOME = 0  # the lane of rows that are in their place
SHIFTED, REVERSED = "shifted", "reversed"


class Lane(NamedTuple):
    """One of them: what kind of slip leads there, and by how much rows are shifted, or what i + j is."""

    kind: str
    amount: int


@dataclass(frozen=True, eq=False)
class Lanes:
    """All lanes of a table of ``n_x`` rows beside one of ``n_y``: home, shifts, reversals, and maps that were named."""

    n_x: int
    n_y: int
    most: int  # rows that a shift can amount to
    reversals: bool = False
    maps: dict[str, Array] = field(default_factory=dict)  # a row of y for each of x, -1 where there is none
    plates: Array | None = None  # number of the plate of each row of x; a map is of whole plates then

    def __len__(self) -> int:
        return 1 + self._n_shifts + self._n_reversals + len(self.maps)

    @property
    def _n_shifts(self) -> int:
        return 2 * self.most + 1

    @property
    def _n_reversals(self) -> int:
        return self.n_x + self.n_y - 1 if self.reversals else 0

    def __getitem__(self, number: int) -> Lane:
        if number == HOME:
            return Lane("", 0)
        number -= 1
        if number < len(self.maps):  # before reversals: a plate that was turned is reversed, too, and this says more
            return Lane(list(self.maps)[number], 0)
        number -= len(self.maps)
        return Lane(SHIFTED, number - self.most) if number < self._n_shifts else Lane(REVERSED, number - self._n_shifts)

    def columns(self, lane: Lane, rows: Array) -> Array:
        """Row of y beside each row of x in a lane; -1 beyond the end of the table."""
        if lane.kind in self.maps:
            return self.maps[lane.kind][rows]
        columns = lane.amount - rows if lane.kind == REVERSED else rows + lane.amount
        return np.where((columns >= 0) & (columns < self.n_y), columns, -1)

    def by_row(self, rows: Iterator[tuple[int, int, FloatArray]]) -> Iterator[FloatArray]:
        """Evidence of all lanes, row by row of x: from the row, its first column, and the evidence of columns on.

        What is beyond the end of the table says nothing, and neither does the lane at home, nor a shift by 0.
        """
        first_shift = 1 + len(self.maps)
        shifts, reversals = slice(first_shift, first_shift + self._n_shifts), slice(first_shift + self._n_shifts, None)
        for row, first, values in rows:
            found = np.zeros(len(self))
            low, high = max(first, row - self.most), min(first + values.size, row + self.most + 1)
            high = max(low, high)
            found[shifts][low - row + self.most : high - row + self.most] = values[low - first : high - first]
            if self.reversals:
                found[reversals][row + first : row + first + values.size] = values
            for number, columns in enumerate(self.maps.values(), start=1):
                at = columns[row] - first
                found[number] = values[at] if columns[row] >= 0 and 0 <= at < values.size else 0.0
            found[first_shift + self.most] = 0.0
            yield found
