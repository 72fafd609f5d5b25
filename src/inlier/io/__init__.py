"""Reading and writing files: `read_table` and `write_table` go by the suffix, one file here per family."""

from inlier.io.atomic import write_file, written_beside
from inlier.io.registry import FORMATS, Format, format_of, read_image, read_table, write_table
from inlier.io.table import Table, UnusableFileError

__all__ = [
    "FORMATS",
    "Format",
    "Table",
    "UnusableFileError",
    "format_of",
    "read_image",
    "read_table",
    "write_file",
    "write_table",
    "written_beside",
]
