"""csv, tsv (plain or gz) and blank-separated numbers (txt, xyz)."""

from __future__ import annotations

import csv
import gzip
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from inlier._checks import warn
from inlier.exceptions import UnusableFileError
from inlier.io._arrow_files import ArrowColumns, as_arrow, from_arrow
from inlier.io.formats import XYZ, Codec, load
from inlier.io.limits import unpacked
from inlier.io.table import Content, Request, as_array, not_a_number, wanted_columns

_HEAD_BYTES = 1024**2
_NUMBER_WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_ROWS_LOOKED_AT = 20
_NAMED = 4  # cells that are shown
_MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A"]


@dataclass(frozen=True)
class _Dialect:
    delimiter: str
    decimal_point: str
    names: tuple[str, ...]
    n_skipped: int  # lines up to the header and with it; 0 where there is none
    notes: tuple[str, ...] = ()  # on what could have been meant otherwise


class Delimited(ArrowColumns):
    """csv or tsv, with or without a header, plain or gz; the delimiter may be a comma, semicolon or tab."""

    def read(self, request: Request) -> Content:
        """Read the wanted columns; by name, unless they have none and none was asked for."""
        path = request.path
        arrow, arrow_csv = load("pyarrow", "csv"), load("pyarrow.csv", "csv")
        dialect = _dialect(path)
        is_narrow = len(dialect.names) == 1  # where an empty line is an empty field
        wanted = wanted_columns(request, list(dialect.names))  # what is not asked for need not be numbers
        types = {name: arrow.string() if name == request.key else arrow.float64() for name in wanted}
        with _open(path) as stream:
            try:
                table = arrow_csv.read_csv(
                    arrow.PythonFile(stream, mode="r"),
                    arrow_csv.ReadOptions(column_names=dialect.names, skip_rows=dialect.n_skipped),
                    arrow_csv.ParseOptions(
                        delimiter=dialect.delimiter, newlines_in_values=True, ignore_empty_lines=not is_narrow
                    ),
                    arrow_csv.ConvertOptions(
                        column_types=types,
                        include_columns=wanted,
                        null_values=_MISSING,
                        quoted_strings_can_be_null=True,
                        decimal_point=dialect.decimal_point,
                    ),
                )
            except arrow.ArrowInvalid as error:
                raise _in_words(error, request, dialect) from error
        for note in dialect.notes:
            warn(f"{path}: {note}")
        if is_narrow:
            table = _without_last_blanks(table, path)
        if table.num_rows == 0:
            raise UnusableFileError(f"{path} has a header but no rows.")
        columns = {name: table[name].to_numpy() for name in wanted if name != request.key}
        if request.key is not None:
            columns[request.key] = from_arrow(table[request.key], path)
        if dialect.n_skipped or request.key is not None or request.columns is not None:
            return columns
        return as_array(columns)

    def names(self, path: Path) -> list[str]:
        dialect = _dialect(path)
        return list(dialect.names) if dialect.n_skipped else []

    def _write(self, path: Path, blocks: Iterable[Content]) -> None:
        with _create(path) as stream:
            write_delimited(stream, blocks, "\t" if ".tsv" in path.name.lower() else ",")


class BlankSeparated(Codec):
    """Numbers separated by blanks; lines that start with # are comments. In xyz the first three are x, y, z."""

    def read(self, request: Request) -> Content:
        with _open(request.path) as stream, warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # numpy warns where the file holds no number
            try:
                values = np.loadtxt(stream, ndmin=2, encoding="utf-8")
            except UserWarning:
                raise UnusableFileError(f"{request.path} holds no numbers.") from None
            except ValueError as error:
                raise UnusableFileError(
                    f"{request.path} could not be read as numbers separated by blanks: {_first_sentence(error)}. "
                    f"If it has a header or commas, name it .csv."
                ) from error
        if values.shape[1] == 1:
            _check_no_gaps(request.path)
        if request.path.suffix.lower() != ".xyz" or values.shape[1] < 3:
            return values
        names = [*XYZ, *(str(number) for number in range(3, values.shape[1]))]
        return dict(zip(names, values.T, strict=True))

    def write(self, path: Path, content: Content) -> None:
        """Write numbers as exactly as they are held."""
        values = as_array(content)
        with _create(path) as stream:
            np.savetxt(stream, values, fmt="%.17g" if values.dtype.kind == "f" else "%d")


def _open(path: Path) -> BinaryIO:
    return unpacked(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _check_no_gaps(path: Path) -> None:
    """Refuse blank lines between the numbers of one column: a missing value must not move the rows below it."""
    blank, has_begun = None, False
    with _open(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip() and blank is not None:
                raise UnusableFileError(
                    f"{path} has a blank line between its numbers, line {blank}. If a value is missing there, write "
                    f"nan; else drop the line."
                )
            has_begun |= bool(line.strip())
            blank = number if has_begun and not line.strip() and blank is None else blank


def _create(path: Path) -> Any:
    return gzip.open(path, "wb") if path.suffix.lower() == ".gz" else path.open("wb")


def _dialect(path: Path) -> _Dialect:
    """Look at the first lines: which delimiter, which decimal point, and is there a header?"""
    with _open(path) as stream:
        raw = stream.read(_HEAD_BYTES)
    if b"\0" in raw:
        raise UnusableFileError(f"{path} is not a text file: it holds zero bytes. Save it as UTF-8 text.")
    lines = raw.decode("utf-8-sig", errors="replace").splitlines()
    place = next((number for number, line in enumerate(lines) if line.strip()), None)
    if place is None:
        raise UnusableFileError(f"{path} holds nothing but blank lines.")
    first = lines[place]
    if "�" in first:
        raise UnusableFileError(f"{path} is not UTF-8 text. Save it again as UTF-8.")
    delimiter = "\t" if ".tsv" in path.name.lower() else max(",;\t", key=first.count)
    rows = list(csv.reader(lines[place : place + _ROWS_LOOKED_AT], delimiter=delimiter))
    cells = [cell.strip() for row in rows[:2] for cell in row]
    point = "," if delimiter == ";" and any(map(_NUMBER_WITH_COMMA.fullmatch, cells)) else "."
    has_header = not all(_is_number(cell, point) for cell in rows[0])
    names = tuple(cell.strip() for cell in rows[0]) if has_header else tuple(map(str, range(len(rows[0]))))
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise UnusableFileError(
            f"{path} has more than one column named {sorted(repeated)[0]!r}. Give each its own name."
        )
    notes = [*_on_header(rows, has_header), *_on_points(rows[has_header:], delimiter, point)]
    body = "\n".join(lines[place + has_header :]).strip()
    if len(names) > 1 and body and not all(line.strip() for line in body.split("\n")):
        notes.append("blank lines between the rows were left out.")
    return _Dialect(delimiter, point, names, place + 1 if has_header else 0, tuple(notes))


def _on_header(rows: list[list[str]], has_header: bool) -> Iterator[str]:
    """Say so where a first line of numbers may be names: whole ones above fractions, or steps as of years."""
    first, rest = [cell.strip() for cell in rows[0]], [cell.strip() for row in rows[1:] for cell in row]
    if has_header or not any(rest) or len(first) < 2 or not all(map(_WHOLE.fullmatch, first)):
        return
    steps = {int(later) - int(one) for one, later in pairwise(first)}
    if not any(map(_WHOLE.fullmatch, rest)) or (len(first) > 2 and len(steps) == 1 and 0 not in steps):
        line = ",".join(first[:_NAMED]) + (",..." if len(first) > _NAMED else "")
        yield (
            f"the first line, {line}, was read as numbers like the others. If it names the columns, put a letter "
            f"before each, as in c{first[0]}."
        )


def _on_points(rows: list[list[str]], delimiter: str, point: str) -> Iterator[str]:
    """Say how numbers were read that other countries write otherwise, in files with semicolons."""
    if delimiter != ";":
        return
    if point == ",":
        yield "the comma was read as the decimal point: 1,5 as 1.5."
    mark = re.compile(rf"[+-]?[1-9]\d{{0,2}}(\{point}\d{{3}})+")
    for column in zip(*rows, strict=False):
        cells = [cell.strip() for cell in column if cell.strip()]
        if cells and all(map(mark.fullmatch, cells)):
            other = cells[0].replace(point, "")
            yield f"{cells[0]} was read as {cells[0].replace(point, '.')}. If {other} is meant, write it so."
            return


def _without_last_blanks(table: Any, path: Path) -> Any:
    """Leave out the blank lines at the end of a file of one column: there they are more likely than missing values."""
    valid = np.flatnonzero(np.asarray(table.column(0).is_valid()))
    n_rows = int(valid[-1]) + 1 if valid.size else 0
    if table.num_rows > n_rows > 0:
        warn(f"{path}: {table.num_rows - n_rows} blank line(s) at its end were left out.")
    return table.slice(0, n_rows)


def _is_number(cell: str, decimal_point: str) -> bool:
    cell = cell.strip()
    if cell in _MISSING:
        return True
    try:
        float(cell.replace(decimal_point, "."))
    except ValueError:
        return False
    return True


def _in_words(error: Exception, request: Request, dialect: _Dialect) -> UnusableFileError:
    text = str(error)
    conversion = re.search(r"CSV column #(\d+).*invalid value '(.*)'", text, re.DOTALL)
    if conversion:
        return not_a_number(dialect.names[int(conversion[1])], conversion[2], request)
    ragged = re.search(r"Expected (\d+) columns, got (\d+): (.*)", text)
    if ragged:
        return UnusableFileError(
            f"{request.path} is ragged: the row {ragged[3][:40]!r} has {ragged[2]} fields where the first has "
            f"{ragged[1]}. Fill or drop it; a field that holds the delimiter must be in quotes."
        )
    return UnusableFileError(f"{request.path} could not be read as delimited text: {_first_sentence(error)}.")


def _first_sentence(error: Exception) -> str:
    return str(error).split("\n")[0].split(";")[0].rstrip(". ")


def write_delimited(stream: Any, blocks: Iterable[Content], delimiter: str) -> None:
    """Write blocks of a table to an open stream, with one header if their columns have names."""
    arrow_csv = load("pyarrow.csv", "csv")
    for number, block in enumerate(blocks):
        has_header = number == 0 and not isinstance(block, np.ndarray)
        options = arrow_csv.WriteOptions(include_header=has_header, delimiter=delimiter, quoting_style="needed")
        arrow_csv.write_csv(as_arrow(block), stream, options)
