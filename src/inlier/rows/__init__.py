"""Where the rows live: they are read one block at a time, mapped, and summed.

Nothing here knows what a matcher is; nothing above knows how rows are stored.
"""

from inlier.rows.columns import ColumnSummary, effective_dimension, principal_directions, summarise_columns
from inlier.rows.paired_rows import PairedRows
from inlier.rows.places import as_elsewhere, place_of
from inlier.rows.row_maps import RowMap, identity_rows, model_rows, unit_rows, whitened_rows

__all__ = [
    "ColumnSummary",
    "PairedRows",
    "RowMap",
    "as_elsewhere",
    "effective_dimension",
    "identity_rows",
    "model_rows",
    "place_of",
    "principal_directions",
    "summarise_columns",
    "unit_rows",
    "whitened_rows",
]
