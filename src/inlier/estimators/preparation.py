"""Step 1 of every matcher: check the values, centre the columns, and bring rows to comparable lengths."""

from __future__ import annotations

import warnings

from inlier._checks import check_finite, check_varies
from inlier._typing import Array
from inlier.rows import (
    ColumnSummary,
    PairedRows,
    RowMap,
    effective_dimension,
    model_rows,
    summarise_columns,
    unit_rows,
    whitened_rows,
)
from inlier.rows.namespaces import is_device_array, is_host_array

_ROWS_PER_DIRECTION = 8  # whitening more directions than this allows would amplify noise


def prepare_pairs(X: Array, Y: Array, *, whiten: bool = False) -> PairedRows:
    """Step 1 of Algorithms 1-3: centre the columns, scale the rows to unit length; optionally whiten between."""
    return PairedRows(X, Y, _unit_rows(X, "X", whiten), _unit_rows(Y, "y", whiten))


def prepare_model_pairs(X: Array, Y: Array, *, whiten: bool) -> PairedRows:
    """Centre, whiten as far as the number of pairs allows, and scale to unit mean square: rows of a linear model.

    Few pairs in very many directions are first scaled to unit length, as in the paper: there the length of a row
    says little of its partner, and one long row would count for many.
    """
    (X, map_x), (Y, map_y) = _model_rows(X, "X", whiten), _model_rows(Y, "y", whiten)
    return PairedRows(X, Y, map_x, map_y)


def _unit_rows(table: Array, name: str, whiten: bool) -> RowMap:
    summary = _checked_summary(table, name)
    if not whiten:
        return unit_rows(summary)
    row_map = whitened_rows(summary, table)
    if row_map.n_columns >= summary.n_rows - 1:
        warnings.warn(
            f"whiten=True has nothing to compare: the {summary.n_rows} rows of {name} span {row_map.n_columns} "
            f"dimensions, so after whitening all of them are equally far apart. Use whiten=False, fewer columns "
            f"or more pairs.",
            UserWarning,
            stacklevel=2,
        )
    return row_map


def _model_rows(table: Array, name: str, whiten: bool) -> tuple[Array, RowMap]:
    summary = _checked_summary(table, name)
    most_directions = max(1, summary.n_rows // _ROWS_PER_DIRECTION)
    at_hand = is_host_array(table) or is_device_array(table)  # rows elsewhere are many
    few = at_hand and summary.mean.size > most_directions
    if few and effective_dimension(table, summary) > most_directions:
        table = unit_rows(summary)(table)  # a copy, of fewer than _ROWS_PER_DIRECTION rows a column
        summary = summarise_columns(table)
    return table, model_rows(summary, table, whiten=whiten, most_directions=most_directions)


def _checked_summary(table: Array, name: str) -> ColumnSummary:
    summary = summarise_columns(table)
    check_finite(table, summary, name)
    check_varies(summary, name)
    return summary
