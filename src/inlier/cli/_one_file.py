"""One file that holds both sides of each pair: columns for X and for Y, and the results beside the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._outputs import BadInput, say

if TYPE_CHECKING:
    from inlier._typing import Array

_ROWS = ("row", "row_y", "key")  # which pair it is: told by the row itself


def side_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options on the columns of either side."""
    for option in (
        click.option("--y", "columns_y", metavar="A,B,...", help="Columns of Y, as --x."),
        click.option(
            "--x",
            "columns_x",
            metavar="A,B,...",
            help="Columns of X, where --y are those of Y. Both may be in one file, named alone: -o then has its rows, "
            "with the results beside them. A column may hold vectors.",
        ),
    ):
        command = option(command)
    return command


def sides(
    x: str, y: str | None, columns: tuple[str, ...], columns_x: str | None, columns_y: str | None
) -> tuple[str, str, tuple[str, ...]]:
    """Where X is, where Y is, and the columns of each."""
    if columns and (columns_x or columns_y):
        raise BadInput("--columns and --x or --y both say which columns are compared. Give --x and --y alone.")
    if y is None:
        return _sides_of_one(x, columns, columns_x, columns_y)
    if columns_x is None and columns_y is None:
        return x, y, columns
    return x, y, (columns_x or "*", columns_y or "*")


def _sides_of_one(
    x: str, columns: tuple[str, ...], columns_x: str | None, columns_y: str | None
) -> tuple[str, str, tuple[str, ...]]:
    from inlier.io import Kind, format_of, split_source

    columns_x, columns_y = columns if len(columns) == 2 else (columns_x, columns_y)
    if columns_x is None or columns_y is None:
        raise BadInput(
            f"Only {x} is named. Name the file with the partners of its rows as well; or, if they are in other columns "
            f"of the same rows, say which with --x and --y, such as --x a,b --y c,d."
        )
    if columns_x == columns_y:
        raise BadInput(f"--x and --y are the same columns of {x}: {columns_x}. Every row is its own partner then.")
    path, inside = split_source(x)
    if x != "-" and inside is None and format_of(path).kind is Kind.ARRAYS:
        return f"{x}:{columns_x}", f"{x}:{columns_y}", ()  # an array each
    return x, x, (columns_x, columns_y)


def check_one(options: Mapping[str, Any]) -> None:
    """Refuse, before the work is done, what takes two files."""
    given = next((option for option, value in options.items() if value), None)
    if given is not None:
        raise BadInput(f"{given} takes two files: in one file the rows say who belongs to whom. Leave it out.")


def is_ours(source: str) -> Callable[[Path], bool]:
    """Whether a file is an earlier output: results beside rows that have the columns of ``source`` and no others."""

    def looks_so(path: Path) -> bool:
        from inlier.io import column_names
        from inlier.io.table import MATCH_COLUMNS

        names = set(column_names(path))
        return {"inlier", "inlier_score"} <= names <= {*MATCH_COLUMNS, *_names_of(source)}

    return looks_so


def _names_of(source: str) -> Iterator[str]:
    from inlier.cli._tables import column_headings

    yield from column_headings(source)


def beside_rows(blocks: Iterable[Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
    """What is said of each pair, by names that will not be those of the file's own columns."""
    for block in blocks:
        yield {_named(name): column for name, column in block.items() if name not in _ROWS}


def _named(name: str) -> str:
    return name if name == "inlier" else f"inlier_{name}"


def write_beside_rows(source: str, path: Path, blocks: Iterable[Mapping[str, Array]], *, quiet: bool) -> None:
    """Write the file's rows with what is said of each; say what could not be carried over."""
    from inlier.io.add_columns import write_with_columns

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said when the file was read
        left_out = write_with_columns(source, path, beside_rows(blocks))
    if left_out and not quiet:
        say(f"Note: {path} cannot hold {', '.join(left_out)} of {source}. Write parquet to keep everything.")
