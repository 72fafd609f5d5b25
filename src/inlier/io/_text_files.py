"""csv, tsv (plain or gz) and blank-separated numbers (txt, xyz)."""

from __future__ import annotations

import csv
import gzip
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from inlier.exceptions import UnusableFileError
from inlier.io._arrow_files import ArrowColumns, as_arrow
from inlier.io.formats import XYZ, Codec, load
from inlier.io.limits import unpacked
from inlier.io.table import Content, Request, as_array, not_a_number, wanted_columns

_HEAD_BYTES = 1024**2
_NUMBER_WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A"]


@dataclass(frozen=True)
class _Dialect:
    delimiter: str
    decimal_point: str
    names: tuple[str, ...]
    n_skipped: int  # lines up to the header and with it; 0 where there is none


class Delimited(ArrowColumns):
    """csv or tsv, with or without a header, plain or gz; the delimiter may be a comma, semicolon or tab."""

    def read(self, request: Request) -> Content:
        """Read the wanted columns; by name, unless they have none and none was asked for."""
        path = request.path
        arrow, arrow_csv = load("pyarrow", "csv"), load("pyarrow.csv", "csv")
        dialect = _dialect(path)
        wanted = wanted_columns(request, list(dialect.names))  # what is not asked for need not be numbers
        types = {name: arrow.string() if name == request.key else arrow.float64() for name in wanted}
        with _open(path) as stream:
            try:
                table = arrow_csv.read_csv(
                    arrow.PythonFile(stream, mode="r"),
                    arrow_csv.ReadOptions(column_names=dialect.names, skip_rows=dialect.n_skipped),
                    arrow_csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
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
        if table.num_rows == 0:
            raise UnusableFileError(f"{path} has a header but no rows.")
        columns = {name: table[name].to_numpy() for name in wanted if name != request.key}
        if request.key is not None:
            columns[request.key] = np.array(table[request.key].fill_null("").to_pylist(), dtype=np.str_)
        if dialect.n_skipped or request.key is not None or request.columns is not None:
            return columns
        return as_array(columns)

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
    rows = list(csv.reader(lines[place : place + 2], delimiter=delimiter))
    cells = [cell.strip() for row in rows for cell in row]
    point = "," if delimiter == ";" and any(map(_NUMBER_WITH_COMMA.fullmatch, cells)) else "."
    has_header = not all(_is_number(cell, point) for cell in rows[0])
    names = tuple(cell.strip() for cell in rows[0]) if has_header else tuple(map(str, range(len(rows[0]))))
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise UnusableFileError(
            f"{path} has more than one column named {sorted(repeated)[0]!r}. Give each its own name."
        )
    return _Dialect(delimiter, point, names, place + 1 if has_header else 0)


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
