"""Frames of mixed columns in a fit: what each was made into, and the same again for rows that come later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._checks import warn
from inlier.estimators._base import row_labels
from inlier.exceptions import DependenceWarning, ParameterError
from inlier.rows.frames import entries_of, is_frame, mixed_columns
from inlier.rows.mixed import ColumnUse, MixedColumns, equal_columns, has_words

IN_BOTH = 0.9  # share of the rows in which a column of words is equal on both sides, from which it is not compared
_MOSTLY = 0.5  # share of the rows in which a column that is called like strata is equal, from which that is asked about
_LIKE_STRATA = {"age", "arm", "batch", "block", "cage", "center", "centre", "cohort", "day", "donor", "gender", "lane"}
_LIKE_STRATA |= {"plate", "run", "season", "sex", "site", "tissue", "visit"}


@dataclass(frozen=True, eq=False)
class Mixed:
    """What was learned of the columns of both tables; None for a table of numbers, which is taken as it is."""

    of_x: MixedColumns | None = None
    of_y: MixedColumns | None = None

    @staticmethod
    def of(X: Any, y: Any) -> Mixed:
        """Learn from two tables; a column of words that stands in both is not compared, which is said."""
        of_x, of_y, same = mixed_columns(X), mixed_columns(y), dict[str, tuple[str, float]]()
        if of_x is not None and of_y is not None:
            for label, share in like_strata(of_x, of_y):
                warn(compared_label(label, share), DependenceWarning)
            same = equal_columns(of_x, of_y, IN_BOTH) if has_words(of_x) or has_words(of_y) else {}
        for label, (_, share) in same.items():
            warn(in_both(label, share), DependenceWarning)
        without = list(same), [label for label, _ in same.values()]
        sides = (
            None if columns is None or not has_words(columns) else MixedColumns.of(columns, side, equal)
            for columns, side, equal in zip((of_x, of_y), "Xy", without, strict=True)
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


def like_strata(columns_x: Iterable[tuple[Any, Any]], columns_y: Iterable[tuple[Any, Any]]) -> list[tuple[str, float]]:
    """Columns of numbers called like a batch or an age, which both tables have, with the share of rows that agree."""
    tables = [
        {str(label): np.asarray(entries_of(column)) for label, column in columns if str(label).lower() in _LIKE_STRATA}
        for columns in (columns_x, columns_y)
    ]
    found = []
    for label, x in tables[0].items():
        y = tables[1].get(label)
        if y is not None and x.shape == y.shape and x.ndim == 1 and x.dtype.kind in "iuf" and y.dtype.kind in "iuf":
            share = float(np.mean(x == y))
            found += [(label, share)] if share >= _MOSTLY else []
    return found


def compared_label(label: str, share: float, how: str = "give it as strata and leave the column out") -> str:
    """What to say of a column that is compared, if its pairs differ at all, and tells where a row comes from."""
    how_equal = "the same in all pairs, of which it says nothing"
    if share < 1:
        how_equal = f"equal in {share:.0%} of the pairs, and compared like any other number"
    return (
        f"Column {label!r} is on both sides, {how_equal}. If wrong partners come from rows with the same {label!r}, "
        f"{how}."
    )


def in_both(label: str, share: float, how: str = "give it as strata") -> str:
    """What to say of a column of words that is the same on both sides."""
    return (
        f"Column {label!r} is the same on both sides in {share:.0%} of the pairs, so it was not compared. If wrong "
        f"partners come from rows with the same {label!r}, {how}."
    )


def _encoded(table: Any, mixed: MixedColumns | None, name: str) -> Any:
    if mixed is None:
        return table
    columns = mixed_columns(table)
    if columns is None:
        raise ParameterError(name, "was a frame of mixed columns in the fit. Give a frame with the same columns.")
    if not mixed.names:
        uses = "; ".join(f"{use.column!r} {use.how}" for use in mixed.uses)
        raise ParameterError(name, f"has no column that can be compared: {uses}.")
    try:
        values = mixed(columns, len(table))
    except KeyError as error:
        raise ParameterError(name, f"has no column {error.args[0]!r}, which it had in the fit.") from None
    labels, names = row_labels(table), list(mixed.names)
    if not is_frame(table):
        return values
    if labels is not None:
        return type(table)(values, index=labels, columns=names)
    return type(table)(values, schema=names) if hasattr(table, "get_columns") else values
