"""A slip, as it is told: one cause for many rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from inlier._typing import Array
from inlier.repair.slips.lanes import REVERSED, SHIFTED

EXCHANGED = "exchanged"
SORTED, SORTED_X = "sorted", "X sorted"


@dataclass(frozen=True, eq=False)
class Slip:
    """One slip of a hand, which put many rows of y beside other rows of X than those that they belong to.

    Attributes
    ----------
    kind : str
        ``shifted``: y stands too high or too low. ``exchanged``: with another block. ``reversed``: from last to first.
        ``sorted``, ``X sorted``: a block of one table, alone.
        Or what was done to a plate, in words: ``turned round by 180 degrees``, ``mirrored from left to right``, and so
        on.
    start, stop : int
        From which row of X on, and before which row; of labelled tables rows are counted, too.
    amount : int
        Of shifted and exchanged rows: how many rows further down in y the partner stands, further up below 0. Of
        sorted ones the number of the column.
    changed_by : int
        The same, since the rows before: how many lines were put in (above 0), or lost, at the start.
    p_value : float
        Chance that rows without a slip look like that anywhere.
    n_explained : int
        Rows of the stretch that fit what the slip gives them better than what stood beside them.
    unsure : tuple of int
        Between which rows it may have begun; first and last.
    """

    kind: str
    start: int
    stop: int
    amount: int
    changed_by: int
    p_value: float
    n_explained: int
    unsure: tuple[int, int]
    n_rows: int = 0  # of the table
    at: tuple[int, ...] = ()  # where lines are missing or too many: a row, or two, or one and those between which it is
    n_groups: int = 0  # that are out of step together, where rows are in sequences

    def further_down(self, by: int) -> Slip:
        """The same in rows that begin so far down."""
        unsure = self.unsure[0] + by, self.unsure[1] + by
        start, stop, at = self.start + by, self.stop + by, tuple(row + by for row in self.at)
        return replace(self, start=start, stop=stop, unsure=unsure, n_rows=self.n_rows + by, at=at)

    def and_back(self, other: Slip, kind: str) -> Slip:
        """The same as an exchange with another block, whose rows it explains, too."""
        n, p = self.n_explained + other.n_explained, min(self.p_value, other.p_value)
        return replace(self, kind=kind, changed_by=0, p_value=p, n_explained=n)

    def among(self, rows: Array) -> Slip:
        """The same where these are some of the rows that were given."""
        start, last, *unsure = (int(rows[row]) for row in (self.start, self.stop - 1, *self.unsure))
        n_rows = last + 1 if self.stop == self.n_rows else max(int(rows.max()), last + 1) + 1
        at = tuple(int(rows[row]) for row in self.at)
        return replace(self, start=start, stop=last + 1, unsure=(unsure[0], unsure[1]), n_rows=n_rows, at=at)

    def text(self, labels: Any = None) -> str:
        """It in a sentence."""
        name = str if labels is None else lambda row: str(labels[row])
        first, last = name(self.start), name(self.stop - 1)
        where = f"From row {first} to row {last}" if self.stop > self.start + 1 else f"In row {first}"
        if self.stop == self.n_rows:
            where = f"From row {first} to the end" + (" of its group" if self.n_groups else "")
        if self.start == 0 and self.stop == self.n_rows and not self.n_groups:
            where = "From the first row to the last"
        return f"{where}, {self._what(name)} (p = {_power(self.p_value)})."

    def _what(self, name: Any) -> str:
        if self.kind == REVERSED:
            return "y stands in reverse order"
        if self.kind == EXCHANGED:
            return f"y is exchanged with rows {name(self.start + self.amount)} to {name(self.stop - 1 + self.amount)}"
        if self.kind in (SORTED, SORTED_X):
            return f"{'y' if self.kind == SORTED else 'X'} was sorted on its own, by its column {self.amount}"
        if self.kind != SHIFTED:
            return f"y is {self.kind}"
        how = "high" if self.amount < 0 else "low"
        return f"y stands {_rows(abs(self.amount))} too {how}{self._why(name)}"

    def _why(self, name: Any) -> str:
        if not self.changed_by:
            return ""
        n, what = abs(self.changed_by), "missing" if self.changed_by < 0 else "too many"
        lines = "one line" if n == 1 else f"{n:,} lines"
        lines += f" of y {'is' if n == 1 else 'are'} {what}"
        if not self.at:
            return f": {lines} at the top"
        row, *others = map(name, self.at)
        if len(others) == 1:
            return f": {lines} at row {row} or {others[0]}"
        return f": {lines} at row {row}" + (f", or elsewhere from {others[0]} to {others[1]}" if others else "")


def _rows(n: int) -> str:
    return "one row" if n == 1 else f"{n:,} rows"


def _power(p: float) -> str:
    return f"{p:.0e}" if p >= 1e-300 else "0"
