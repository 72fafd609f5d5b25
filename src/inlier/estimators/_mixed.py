"""Frames of mixed columns in a fit: what each was made into, and the same again for rows that come later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inlier._checks import warn
from inlier.estimators._base import row_labels
from inlier.exceptions import DependenceWarning, ParameterError
from inlier.rows.frames import columns_of, is_frame
from inlier.rows.mixed import ColumnUse, MixedColumns, equal_columns, has_words

_IN_BOTH = 0.9  # share of the rows in which a column of words is equal on both sides, from which it is not compared


@dataclass(frozen=True, eq=False)
class Mixed:
    """What was learned of the columns of both tables; None for a table of numbers, which is taken as it is."""

    of_x: MixedColumns | None = None
    of_y: MixedColumns | None = None

    @staticmethod
    def of(X: Any, y: Any) -> Mixed:
        """Learn from two tables; a column of words that stands in both is not compared, which is said."""
        if not has_words(X) and not has_words(y):
            return Mixed()
        same: dict[str, tuple[str, float]] = {}
        if is_frame(X) and is_frame(y):
            same = equal_columns(columns_of(X), columns_of(y), _IN_BOTH)
        for label, (_, share) in same.items():
            warn(in_both(label, share), DependenceWarning)
        without_y = [label for label, _ in same.values()]
        sides = (
            MixedColumns.of(columns_of(table), name, without) if has_words(table) else None
            for table, name, without in ((X, "X", list(same)), (y, "y", without_y))
        )
        return Mixed(*sides)

    def x(self, X: Any, name: str = "X") -> Any:
        """Rows of X as numbers."""
        return _encoded(X, self.of_x, name)

    def y(self, y: Any, name: str = "y") -> Any:
        """Rows of y as numbers."""
        return _encoded(y, self.of_y, name)

    @property
    def uses(self) -> tuple[ColumnUse, ...]:
        """What was done to each column."""
        return tuple(use for side in (self.of_x, self.of_y) if side is not None for use in side.uses)


def in_both(label: str, share: float) -> str:
    """What to say of a column of words that is the same on both sides."""
    return (
        f"Column {label!r} is the same on both sides in {share:.0%} of the pairs, so it was not compared. If wrong "
        f"partners come from rows with the same {label!r}, give it as strata."
    )


def _encoded(table: Any, mixed: MixedColumns | None, name: str) -> Any:
    if mixed is None:
        return table
    if not is_frame(table):
        raise ParameterError(name, "was a frame of mixed columns in the fit. Give a frame with the same columns.")
    if not mixed.names:
        uses = "; ".join(f"{use.column!r} {use.how}" for use in mixed.uses)
        raise ParameterError(name, f"has no column that can be compared: {uses}.")
    try:
        values = mixed(columns_of(table), len(table))
    except KeyError as error:
        raise ParameterError(name, f"has no column {error.args[0]!r}, which it had in the fit.") from None
    labels, columns = row_labels(table), list(mixed.names)
    if labels is not None:
        return type(table)(values, index=labels, columns=columns)
    return type(table)(values, schema=columns) if hasattr(table, "get_columns") else values
