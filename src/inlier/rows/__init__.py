"""Where the rows are stored: they are read one block at a time, mapped, and summed.

Nothing here knows what a matcher is; nothing above knows how rows are stored.
"""

from inlier.rows.columns import (
    ColumnSummary,
    RowMap,
    check_coordinates,
    check_finite,
    check_magnitude,
    check_varies,
    effective_dimension,
    identity_rows,
    model_rows,
    principal_directions,
    summarise_columns,
    unit_rows,
    whitened_rows,
)
from inlier.rows.paired_rows import AtLeast, Extremes, PairedRows, Scores
from inlier.rows.stores import as_stored, as_table, store_of

__all__ = [
    "AtLeast",
    "ColumnSummary",
    "Extremes",
    "PairedRows",
    "RowMap",
    "Scores",
    "as_stored",
    "as_table",
    "check_coordinates",
    "check_finite",
    "check_magnitude",
    "check_varies",
    "effective_dimension",
    "identity_rows",
    "model_rows",
    "principal_directions",
    "store_of",
    "summarise_columns",
    "unit_rows",
    "whitened_rows",
]
