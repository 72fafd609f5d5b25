"""Reading and writing files: the suffix says how, and a module per family of formats is loaded when it is needed."""

from typing import TYPE_CHECKING

from inlier._lazy import attach

if TYPE_CHECKING:
    from inlier.exceptions import UnusableFileError
    from inlier.io.formats import FORMATS, Format, Kind, format_of
    from inlier.io.read import (
        column_names,
        eight_bits,
        open_stored,
        read_columns,
        read_image,
        read_labels,
        read_photo,
        read_points,
        read_table,
        split_source,
    )
    from inlier.io.table import Pairing, Table, pair_tables
    from inlier.io.write import (
        check_can_hold_columns,
        first_foreign,
        workspace_in,
        write_blocks,
        write_csv,
        write_file,
        write_like,
        write_table,
        written_beside,
    )

__all__ = [
    "FORMATS",
    "Format",
    "Kind",
    "Pairing",
    "Table",
    "UnusableFileError",
    "check_can_hold_columns",
    "column_names",
    "eight_bits",
    "first_foreign",
    "format_of",
    "open_stored",
    "pair_tables",
    "read_columns",
    "read_image",
    "read_labels",
    "read_photo",
    "read_points",
    "read_table",
    "split_source",
    "workspace_in",
    "write_blocks",
    "write_csv",
    "write_file",
    "write_like",
    "write_table",
    "written_beside",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "formats": "FORMATS Format Kind format_of UnusableFileError",
        "read": "column_names eight_bits open_stored read_columns read_image read_labels read_photo read_points "
        "read_table split_source",
        "table": "Pairing Table pair_tables",
        "write": "check_can_hold_columns first_foreign workspace_in write_blocks write_csv write_file write_like "
        "write_table written_beside",
    },
)
