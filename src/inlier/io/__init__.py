"""Reading and writing files: `read_table` and `write_table` go by the suffix, one file here per family."""

from inlier.io.atomic import write_file, written_beside
from inlier.io.block_writers import csv_blocks, write_blocks
from inlier.io.formats import (
    FORMATS,
    Format,
    Kind,
    check_can_hold_columns,
    format_of,
    read_image,
    read_table,
    write_table,
)
from inlier.io.pairing import Pairing, pair_tables
from inlier.io.rewriting import write_like
from inlier.io.stored import StoredTable, open_stored
from inlier.io.table import Table, UnusableFileError
from inlier.io.text import as_csv

__all__ = [
    "FORMATS",
    "Format",
    "Kind",
    "Pairing",
    "StoredTable",
    "Table",
    "UnusableFileError",
    "as_csv",
    "check_can_hold_columns",
    "csv_blocks",
    "format_of",
    "open_stored",
    "pair_tables",
    "read_image",
    "read_table",
    "write_blocks",
    "write_file",
    "write_like",
    "write_table",
    "written_beside",
]
