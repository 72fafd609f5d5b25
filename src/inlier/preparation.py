"""Step 1 of Algorithms 1-3: centre the columns, scale the rows to unit length; optionally whiten between."""

from __future__ import annotations

import warnings

import numpy as np

from inlier.engine import (
    PairedRows,
    RowMap,
    scatter_matrix,
    summarise_columns,
    unit_rows,
    whitened_rows,
)
from inlier.engine.blocks import Array
from inlier.validation import check_finite, check_varies


def prepare_pairs(X: Array, Y: Array, *, whiten: bool = False) -> PairedRows:
    """Return the pairs with both sets centred, (whitened,) and scaled to unit length as they are read."""
    return PairedRows(X, Y, _row_map(X, "X", whiten), _row_map(Y, "y", whiten))


def _row_map(table: Array, name: str, whiten: bool) -> RowMap:
    summary = summarise_columns(table)
    check_finite(table, summary, name)
    check_varies(summary, name)
    if not whiten:
        return unit_rows(summary)
    column_scale = np.where(summary.spread > 0, summary.spread, 1.0)
    row_map = whitened_rows(summary, scatter_matrix(table, summary, column_scale), column_scale)
    if row_map.n_columns >= summary.n_rows - 1:
        warnings.warn(
            f"whiten=True has nothing to compare: the {summary.n_rows} rows of {name} span {row_map.n_columns} "
            f"dimensions, so after whitening all of them are equally far apart. Use whiten=False, fewer columns "
            f"or more pairs.",
            UserWarning,
            stacklevel=2,
        )
    return row_map
