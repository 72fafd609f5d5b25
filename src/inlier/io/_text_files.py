"""csv, tsv (plain or gz) and blank-separated numbers (txt, xyz)."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inlier._checks import warn
from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io._arrow_files import ArrowColumns, as_arrow, from_arrow
from inlier.io._lines import NAME as LINES
from inlier.io._lines import are_lines_of_text, lines_of_text
from inlier.io.formats import XYZ, Codec, load
from inlier.io.ids import safe_for_spreadsheets
from inlier.io.limits import check_unpacked_size, text_lines
from inlier.io.table import Content, Request, as_array, by_column, not_a_number, wanted_columns

if TYPE_CHECKING:
    from inlier.io.add_columns import BlocksInTurn

_HEAD_BYTES = 1024**2
_TAIL_BYTES, _ENOUGH_LINES = 4096, 5  # at the end of a file, and lines there that tell how long the last one should be
_NUMBER_WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_ROWS_LOOKED_AT = 20
_NAMED = 4  # cells that are shown
LINES_AT_A_TIME = 1024  # between two looks at the memory that is taken
_BYTES_A_CELL = 64  # of a short text in a list
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

    family = "text"

    def read(self, request: Request) -> Content:
        """Read the wanted columns; by name, unless they have none and none was asked for."""
        dialect = _dialect(request.path)
        return _content(dialect, request, wanted_columns(request, list(dialect.names)))

    def names(self, path: Path) -> list[str]:
        dialect = _dialect(path)
        return list(dialect.names) if dialect.n_skipped else []

    def _write(self, path: Path, blocks: Iterable[Content]) -> None:
        with create_text(path) as stream:
            write_delimited(stream, blocks, _delimiter_of(path))

    def write_rows_with(self, other: Any, source: Path, path: Path, further: BlocksInTurn) -> None:
        """Copy the cells of each line as they are."""
        dialect = _dialect(source)
        kept = [place for place, name in enumerate(dialect.names) if name not in further.names]
        header = [[dialect.names[place] for place in kept] + further.names]
        with create_text(path) as stream:
            for rows in _batched(_lines_of(dialect, source)):
                columns = [np.asarray(column).tolist() for column in further.take(len(rows)).values()]
                added = ([_as_cell(value, "") for value in row] for row in zip(*columns, strict=True))
                cells = ([row[place] for place in kept] + more for row, more in zip(rows, added, strict=True))
                text = io.StringIO()
                csv.writer(text, delimiter=_delimiter_of(path), lineterminator="\n").writerows(chain(header, cells))
                stream.write(text.getvalue().encode())
                header = []


class BlankSeparated(Codec):
    """Numbers separated by blanks; lines that start with # are comments. In xyz the first three are x, y, z.

    A txt file whose first line is not numbers is read as a table with names, its fields between tabs, semicolons,
    commas or blanks, as R's write.table makes them; one of lines of text as a column of texts.
    """

    def names(self, path: Path) -> list[str]:
        if are_lines_of_text(path):
            return [LINES]
        return list(_dialect(path).names) if _has_names(path) else []

    def read(self, request: Request) -> Content:
        if are_lines_of_text(request.path):
            wanted_columns(request, [LINES])
            lines = lines_of_text(request.path)
            if request.key != LINES:
                raise not_a_number(LINES, str(next(filter(None, lines))), request)
            return {LINES: lines}
        if _has_names(request.path):
            dialect = _dialect(request.path)
            wanted = [*(request.columns or dialect.names), *([] if request.key is None else [request.key])]
            known = [name for name in dict.fromkeys(wanted) if name in dialect.names]
            return _content(dialect, request, known, may_be_text=True)
        with text_lines(request.path) as stream, warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # numpy warns where the file holds no number
            try:
                values = np.loadtxt(stream, ndmin=2, encoding="utf-8")
            except UserWarning:
                raise UnusableFileError(f"{request.path} holds no numbers.") from None
            except UnusableFileError:
                raise
            except ValueError as error:
                raise UnusableFileError(
                    f"{request.path} could not be read as numbers separated by blanks: {_first_sentence(error)}. "
                    f"If it has a header or commas, name it .csv."
                ) from error
        _warn_of_a_cut(request.path)
        if values.shape[1] == 1:
            _check_no_gaps(request.path)
        if request.path.suffix.lower() != ".xyz" or values.shape[1] < 3:
            return values
        names = [*XYZ, *(str(number) for number in range(3, values.shape[1]))]
        return dict(zip(names, values.T, strict=True))

    def write(self, path: Path, content: Content) -> None:
        """Write numbers as exactly as they are held."""
        values = as_array(content)
        with create_text(path) as stream:
            np.savetxt(stream, values, fmt="%.17g" if values.dtype.kind == "f" else "%d")


def _has_names(path: Path) -> bool:
    """Whether a txt file starts with names, or with something else that is not numbers between blanks."""
    if path.suffix.lower() == ".xyz":
        return False
    with text_lines(path) as stream:
        lines = stream.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace").splitlines()
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "0")
    return "\0" not in first and not all(is_number(cell, ".") for cell in first.split())


def _content(dialect: _Dialect, request: Request, wanted: list[str], may_be_text: bool = False) -> Content:
    """The wanted columns of a text file, by pyarrow where it is installed, else by Python's own reader."""
    path = request.path
    if may_be_text or not _is_installed("pyarrow"):
        columns = _read_by_python(dialect, request, wanted, may_be_text=may_be_text)
    else:
        columns = _read_by_arrow(dialect, request, wanted)
    for note in dialect.notes:
        warn(f"{path}: {note}")
    _warn_of_a_cut(path)
    if len(dialect.names) == 1:
        columns = _without_last_blanks(columns, path)
    if not columns or len(next(iter(columns.values()))) == 0:
        raise UnusableFileError(f"{path} has a header but no rows.")
    if dialect.n_skipped or request.key is not None or request.columns is not None:
        return columns
    return as_array(columns)


def _warn_of_a_cut(path: Path) -> None:
    """Say where a file ends within a line, in a field shorter than the last ones of all lines before it."""
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(-min(size, _TAIL_BYTES), os.SEEK_END)
        tail = stream.read()
    lines = [] if path.suffix.lower() == ".gz" or tail.endswith((b"\n", b"\r")) else tail.splitlines()
    ends = [re.split(rb"[,;\s]", line.rstrip())[-1] for line in lines[size > _TAIL_BYTES :]]
    if len(ends) > _ENOUGH_LINES and len(ends[-1]) < min(map(len, ends[:-1])):
        warn(
            f"{path} ends within a line, with {ends[-1].decode(errors='replace')}, which is shorter than the ends of "
            f"the lines before. If it was cut short, copy or save it again."
        )


def _is_installed(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True


def _read_by_arrow(dialect: _Dialect, request: Request, wanted: list[str]) -> dict[str, Array]:
    arrow = load("pyarrow", "csv")
    try:
        table = _arrow_table(dialect, request, wanted, use_threads=True)
    except arrow.ArrowInvalid:
        try:  # which of several columns is refused is up to the threads: without them it is always the same one
            table = _arrow_table(dialect, request, wanted, use_threads=False)
        except arrow.ArrowInvalid as error:
            raise _in_words(error, request, dialect) from error
    return {
        name: from_arrow(table[name], request.path) if name == request.key else table[name].to_numpy()
        for name in wanted
    }


def _arrow_table(dialect: _Dialect, request: Request, wanted: list[str], *, use_threads: bool) -> Any:
    arrow, arrow_csv = load("pyarrow", "csv"), load("pyarrow.csv", "csv")
    types = {name: arrow.string() if name == request.key else arrow.float64() for name in wanted}
    with _arrow_stream(arrow, request.path, 8 * len(wanted)) as stream:
        return arrow_csv.read_csv(
            stream,
            arrow_csv.ReadOptions(column_names=dialect.names, skip_rows=dialect.n_skipped, use_threads=use_threads),
            arrow_csv.ParseOptions(
                delimiter=dialect.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(dialect.names) > 1,  # in one column an empty line is an empty field
            ),
            arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=wanted,
                null_values=_MISSING,
                quoted_strings_can_be_null=True,
                decimal_point=dialect.decimal_point,
            ),
        )


def _arrow_stream(arrow: Any, path: Path, bytes_a_row: int) -> Any:
    """The text as arrow's own stream: its threads read ahead, and where they met Python they could end the process."""
    if path.suffix.lower() != ".gz":
        return arrow.OSFile(os.fsencode(path))
    with text_lines(path, bytes_a_row) as stream:
        return arrow.BufferReader(b"".join(iter(lambda: stream.read(_HEAD_BYTES), b"")))


def _read_by_python(dialect: _Dialect, request: Request, wanted: list[str], *, may_be_text: bool) -> dict[str, Array]:
    """The same without pyarrow, slower; columns that are no numbers come as text where the caller looks at them."""
    places = [dialect.names.index(name) for name in wanted]
    cells: list[list[str]] = [[] for _ in places]
    for number, row in enumerate(_lines_of(dialect, request.path)):
        for column, place in zip(cells, places, strict=True):
            column.append(row[place])
        if number % LINES_AT_A_TIME == 0:
            check_unpacked_size(request.path, _BYTES_A_CELL * number * len(places), "choose fewer columns")
    return {
        name: _as_text(column, request.path)
        if name == request.key
        else _as_numbers(column, name, request, dialect.decimal_point, may_be_text=may_be_text)
        for name, column in zip(wanted, cells, strict=True)
    }


def _lines_of(dialect: _Dialect, path: Path) -> Iterator[list[str]]:
    """The cells of each line below the header, as text."""
    with text_lines(path) as binary, io.TextIOWrapper(binary, "utf-8-sig", newline="") as stream:
        rows = csv.reader(stream, delimiter=dialect.delimiter, skipinitialspace=dialect.delimiter == " ")
        try:
            for row in rows:
                if rows.line_num <= dialect.n_skipped or (len(dialect.names) > 1 and _is_blank(row)):
                    continue
                row = row or [""]
                if dialect.delimiter == " " and row[-1] == "" and len(row) == len(dialect.names) + 1:
                    row.pop()  # blanks at the end of a line
                if len(row) != len(dialect.names):
                    raise _ragged(path, dialect.delimiter.join(row), len(row), len(dialect.names))
                yield row
        except (csv.Error, UnicodeDecodeError) as error:
            raise UnusableFileError(f"{path} could not be read as delimited text: {_first_sentence(error)}.") from error


def _batched(rows: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    while batch := list(islice(rows, LINES_AT_A_TIME)):
        yield batch


def _delimiter_of(path: Path) -> str:
    return "\t" if ".tsv" in path.name.lower() else ","


def _is_blank(row: list[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip())


def _as_text(cells: list[str], path: Path) -> Array:
    texts = ["" if cell in _MISSING else cell for cell in cells]
    check_unpacked_size(path, 4 * len(texts) * max(map(len, texts), default=0), "choose fewer columns")
    return np.array(texts, dtype=np.str_)


def _as_numbers(cells: list[str], name: str, request: Request, point: str, *, may_be_text: bool) -> Array:
    texts = [cell.strip().replace(point, ".") if point != "." else cell.strip() for cell in cells]
    try:
        return np.array([np.nan if text in _MISSING else float(text.replace("_", "?")) for text in texts])
    except ValueError:
        if may_be_text:
            return _as_text(cells, request.path)
        shown = next(cell for cell in cells if not is_number(cell, point))
        raise not_a_number(name, shown, request) from None


def _check_no_gaps(path: Path) -> None:
    """Refuse blank lines between the numbers of one column: a missing value must not move the rows below it."""
    blank, has_begun = None, False
    with text_lines(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip() and blank is not None:
                raise UnusableFileError(
                    f"{path} has a blank line between its numbers, line {blank}. If a value is missing there, write "
                    f"nan; else drop the line."
                )
            has_begun |= bool(line.strip())
            blank = number if has_begun and not line.strip() and blank is None else blank


def create_text(path: Path) -> Any:
    """Begin a text file, gzipped if its name says so; without the time, so that equal tables make equal files."""
    return gzip.GzipFile(path, "wb", mtime=0) if path.suffix.lower() == ".gz" else path.open("wb")


def _dialect(path: Path) -> _Dialect:
    """Look at the first lines: which delimiter, which decimal point, and is there a header?"""
    with text_lines(path) as stream:
        raw = stream.read(_HEAD_BYTES)
    if len(raw) == _HEAD_BYTES and not re.search(rb"[\r\n]", raw.lstrip()):
        raise UnusableFileError(f"{path} has a first line of more than a MiB. Write it with fewer columns, or as npy.")
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
    is_blank_separated = ".txt" in path.name.lower() and delimiter not in first
    delimiter = " " if is_blank_separated else delimiter
    looked_at = [line.rstrip() if is_blank_separated else line for line in lines[place : place + _ROWS_LOOKED_AT]]
    rows = list(csv.reader(looked_at, delimiter=delimiter, skipinitialspace=is_blank_separated))
    cells = [cell.strip() for row in rows[:2] for cell in row]
    point = "," if delimiter == ";" and any(map(_NUMBER_WITH_COMMA.fullmatch, cells)) else "."
    has_header = not all(is_number(cell, point) for cell in rows[0])
    names = tuple(cell.strip() for cell in rows[0]) if has_header else tuple(map(str, range(len(rows[0]))))
    body_widths = {len(row) for row in rows[1:] if not _is_blank(row)}
    if has_header and body_widths == {len(names) + 1}:  # R names the rows and not their column
        names = ("", *names)
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


def _without_last_blanks(columns: dict[str, Array], path: Path) -> dict[str, Array]:
    """Leave out the blank lines at the end of a file of one column: there they are more likely than missing values."""
    ((name, column),) = columns.items()
    valid = np.flatnonzero(column != "" if column.dtype.kind == "U" else ~np.isnan(column))
    n_rows = int(valid[-1]) + 1 if valid.size else 0
    if len(column) > n_rows > 0:
        warn(f"{path}: {len(column) - n_rows} blank line(s) at its end were left out.")
    return {name: column[:n_rows]}


def is_number(cell: str, decimal_point: str) -> bool:
    """Whether a field is a number, or stands for a missing one."""
    cell = cell.strip()
    if cell in _MISSING:
        return True
    try:
        float(cell.replace("_", "?").replace(decimal_point, "."))  # Python alone takes 1_000 for a number
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
        return _ragged(request.path, ragged[3], int(ragged[2]), int(ragged[1]))
    return UnusableFileError(f"{request.path} could not be read as delimited text: {_first_sentence(error)}.")


def _ragged(path: Path, row: str, n_fields: int, n_expected: int) -> UnusableFileError:
    return UnusableFileError(
        f"{path} is ragged: the row {row[:40]!r} has {n_fields} fields where the first has {n_expected}. Fill or drop "
        f"it; a field that holds the delimiter must be in quotes."
    )


def _first_sentence(error: Exception) -> str:
    return str(error).split("\n")[0].split(";")[0].rstrip(". ")


def write_delimited(stream: Any, blocks: Iterable[Content], delimiter: str) -> None:
    """Write blocks of a table to an open stream, with one header if their columns have names."""
    blocks = map(_without_formulas, blocks)
    if not _is_installed("pyarrow"):
        _write_by_python(stream, blocks, delimiter)
        return
    arrow_csv = load("pyarrow.csv", "csv")
    for number, block in enumerate(blocks):
        has_header = number == 0 and not isinstance(block, np.ndarray)
        options = arrow_csv.WriteOptions(include_header=has_header, delimiter=delimiter, quoting_style="needed")
        arrow_csv.write_csv(as_arrow(block), stream, options)


def _without_formulas(block: Content) -> Content:
    if isinstance(block, np.ndarray):
        return block
    columns = {name: np.asarray(column) for name, column in block.items()}
    return {
        name: safe_for_spreadsheets(column) if column.dtype.kind == "U" else column for name, column in columns.items()
    }


def _write_by_python(stream: Any, blocks: Iterable[Content], delimiter: str) -> None:
    """The same without pyarrow: numbers as short as they are exact, truth as true and false, gaps as nothing."""
    for number, block in enumerate(blocks):
        text = io.StringIO()
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        if number == 0 and not isinstance(block, np.ndarray):
            writer.writerow(block)
        columns = [np.asarray(column).tolist() for column in by_column(block).values()]
        gap = "nan" if len(columns) == 1 else ""
        writer.writerows([_as_cell(value, gap) for value in row] for row in zip(*columns, strict=True))
        stream.write(text.getvalue().encode())


def _as_cell(value: Any, gap: str) -> Any:
    if isinstance(value, float) and value != value:
        return gap
    return str(value).lower() if isinstance(value, bool) else value
