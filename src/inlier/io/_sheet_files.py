"""xlsx: the first sheet of a workbook, or the one named after a colon, as columns by name.

A workbook is a zip archive of XML. It is read with Python's own readers: formulas are not computed (the value that was
saved with them counts), links to other files are not followed, entities of XML are refused.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

import numpy as np

from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io.formats import BlockCodec, Columns, ReadBlocks
from inlier.io.limits import check_unpacked_size
from inlier.io.table import Content, Request, as_array, by_column, wanted_columns

_CURE = "save the sheet as csv"
_STEP = 65536  # characters that are parsed at a time
_MOST_COLUMNS, _MOST_ROWS = 16_384, 1_048_576  # of a sheet
_BYTES_A_CELL = 64
_LONGEST_TAG = 1024**2  # bytes; a parser begins a longer one, or a comment, again with every piece of it
_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A", "#DIV/0!", "#VALUE!", "#NUM!", "#REF!")
_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="xl/workbook.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
    '<sheets><sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="worksheets/sheet1.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"/></Relationships>',
}


class Sheet(BlockCodec):
    """A sheet of a workbook, whose first row names the columns unless it holds numbers alone."""

    def names(self, path: Path) -> list[str]:
        columns, has_header = _read(Request(path))
        return list(columns) if has_header else []

    def read(self, request: Request) -> Content:
        """Read the wanted columns; those that hold something else than numbers as text."""
        columns, has_header = _read(request)
        if not has_header and request.key is None and request.columns is None and not request.left_out:
            return as_array(columns)
        return {name: columns[name] for name in wanted_columns(request, list(columns))}

    def write(self, path: Path, content: Content) -> None:
        self._write(path, [content])

    def write_blocks(self, path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
        self._write(path, read_blocks(*columns))

    def _write(self, path: Path, blocks: Iterable[Content]) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in _PARTS.items():
                archive.writestr(_member(name), f'<?xml version="1.0" encoding="UTF-8"?>{text}')
            with archive.open(_member("xl/worksheets/sheet1.xml"), "w", force_zip64=True) as stream:
                stream.write(
                    b'<?xml version="1.0" encoding="UTF-8"?><worksheet '
                    b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
                )
                n_rows = 0
                for block in blocks:
                    n_rows += _write_block(stream, block, n_rows == 0)
                    if n_rows > _MOST_ROWS:
                        raise UnusableFileError(f"{path} can hold {_MOST_ROWS:,} rows. Write csv or parquet instead.")
                stream.write(b"</sheetData></worksheet>")


def _member(name: str) -> zipfile.ZipInfo:
    """A part of an archive, without the time, so that equal tables make equal files."""
    member = zipfile.ZipInfo(name)
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def _read(request: Request) -> tuple[dict[str, Array], bool]:
    """All columns of a sheet, and whether they have names."""
    path = request.path
    with zipfile.ZipFile(path) as archive:
        check_unpacked_size(path, sum(entry.file_size for entry in archive.infolist()), _CURE)
        part = _sheet_part(archive, request.inside, path)
        rows = _rows(archive, part, _shared_texts(archive), path)
    rows = [row for row in rows if any(cell != "" for cell in row)]
    if not rows:
        raise UnusableFileError(f"{path} has an empty sheet.")
    width = max(map(len, rows))
    check_unpacked_size(path, _BYTES_A_CELL * len(rows) * width, _CURE)
    filled = [row + [""] * (width - len(row)) for row in rows]
    has_header = any(isinstance(cell, str) and cell not in _MISSING for cell in filled[0])
    names = [_plain(cell).strip() for cell in filled[0]] if has_header else list(map(str, range(width)))
    if len(filled) == has_header:
        raise UnusableFileError(f"{path} has a header but no rows.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise UnusableFileError(f"{path} has more than one column named {repeated[0]!r}. Give each its own name.")
    body = filled[has_header:]
    return {name: _column([row[place] for row in body], path) for place, name in enumerate(names)}, has_header


def _write_block(stream: IO[bytes], block: Content, is_first: bool) -> int:
    """Write the rows of a block; return how many there are."""
    columns = by_column(block)
    rows: list[Any] = [list(columns)] if is_first and not isinstance(block, np.ndarray) else []
    rows += zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    for row in rows:
        stream.write(f"<row>{''.join(map(_cell, row))}</row>".encode())
    return len(rows)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, (int, float)):
        return f"<c><v>{value!r}</v></c>" if np.isfinite(value) else "<c/>"
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "?", str(value))  # which XML cannot hold
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _column(cells: list[Any], path: Path) -> Array:
    """Numbers with NaN for missing ones, anything else as text."""
    try:
        return np.array([np.nan if cell in _MISSING else float(cell) for cell in cells])
    except ValueError:
        texts = [_plain(cell) for cell in cells]
        check_unpacked_size(path, 4 * len(texts) * max(map(len, texts)), _CURE)
        return np.array(texts, dtype=np.str_)


def _plain(cell: Any) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53 else str(cell)


def _sheet_part(archive: zipfile.ZipFile, name: str | None, path: Path) -> str:
    """The part of the archive that holds the sheet of this name, or the first."""
    sheets: dict[str, str] = {}
    targets: dict[str, str] = {}

    def of_workbook(tag: str, attributes: dict[str, str]) -> None:
        if tag == "sheet":
            sheets[attributes.get("name", "")] = attributes.get("id", "")

    def of_relations(tag: str, attributes: dict[str, str]) -> None:
        if tag == "Relationship":
            targets[attributes.get("Id", "")] = attributes.get("Target", "")

    _parse(archive, "xl/workbook.xml", path, of_workbook)
    _parse(archive, "xl/_rels/workbook.xml.rels", path, of_relations)
    if not sheets or (name is not None and name not in sheets):
        there = ", ".join(sheets) or "none"
        raise UnusableFileError(f"{path} has no sheet named {name!r}; it has {there}.")
    target = targets.get(sheets[next(iter(sheets)) if name is None else name], "")
    part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    if part not in archive.namelist():
        raise UnusableFileError(f"{path} names a sheet that is not there. It may be damaged; save it again.")
    return part


def _shared_texts(archive: zipfile.ZipFile) -> list[str]:
    """Texts that cells name by their number."""
    part, texts, pieces = "xl/sharedStrings.xml", list[str](), list[str]()
    if part not in archive.namelist():
        return texts
    inside = {"t": False}

    def start(tag: str, _: dict[str, str]) -> None:
        if tag == "si":
            pieces.clear()
        inside["t"] = tag == "t"

    def end(tag: str) -> None:
        inside["t"] = False
        if tag == "si":
            texts.append("".join(pieces))

    def data(text: str) -> None:
        if inside["t"]:
            pieces.append(text)

    _parse(archive, part, Path(str(archive.filename)), start, end, data)
    return texts


def _rows(archive: zipfile.ZipFile, part: str, texts: list[str], path: Path) -> list[list[Any]]:
    """Cells of each row, as numbers and texts; cells that are not there are empty."""
    reader = _SheetReader(texts, path)
    _parse(archive, part, path, reader.start, reader.end, reader.data)
    return reader.rows


class _SheetReader:
    """Collects cells as a parser meets them."""

    def __init__(self, texts: list[str], path: Path) -> None:
        self.rows: list[list[Any]] = []
        self._texts, self._path = texts, path
        self._place, self._kind, self._pieces, self._inside, self._n_cells = 0, "n", list[str](), False, 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "row":
            self.rows.append([])
            if len(self.rows) > _MOST_ROWS:
                raise UnusableFileError(f"{self._path} has more rows than a sheet can have. It may be damaged.")
        elif tag == "c" and self.rows:
            self._place = _place_of(attributes.get("r", ""), len(self.rows[-1]), self._path)
            self._kind, self._pieces = attributes.get("t", "n"), []
        self._inside = tag in ("v", "t")

    def data(self, text: str) -> None:
        if self._inside:
            self._pieces.append(text)

    def end(self, tag: str) -> None:
        self._inside = False
        if tag != "c" or not self.rows:
            return
        row, text = self.rows[-1], "".join(self._pieces)
        self._n_cells += max(1, self._place + 1 - len(row))
        if self._n_cells % 1024 == 0 or self._place >= len(row) + 1024:
            check_unpacked_size(self._path, _BYTES_A_CELL * self._n_cells, _CURE)
        row.extend([""] * (self._place + 1 - len(row)))
        row[self._place] = self._value(text)

    def _value(self, text: str) -> Any:
        if self._kind == "s":
            number = int(text or -1)
            if not 0 <= number < len(self._texts):
                raise UnusableFileError(
                    f"{self._path} names a text that is not there. It may be damaged; save it again."
                )
            return self._texts[number]
        return float(text) if self._kind in ("n", "b") and text else text


def _place_of(reference: str, usual: int, path: Path) -> int:
    """Column of a cell such as AB12, counted from 0; the next one where it does not say."""
    letters = re.match(r"[A-Z]{1,3}", reference)
    if letters is None:
        return usual
    place = 0
    for letter in letters[0]:
        place = 26 * place + ord(letter) - 64
    if place > _MOST_COLUMNS:
        raise UnusableFileError(f"{path} has a cell {reference[:20]!r}, beyond what a sheet can hold.")
    return place - 1


def _parse(archive: zipfile.ZipFile, part: str, path: Path, start: Any, end: Any = None, data: Any = None) -> None:
    """Pass the elements of a part of the archive to these functions, by their local names; each counts as a cell."""
    parser, n_elements, n_bytes = expat.ParserCreate(), 0, 0

    def refuse(*_: Any) -> None:
        raise UnusableFileError(f"{path} declares entities of XML, which are not read. Save it as csv.")

    parser.EntityDeclHandler = parser.StartDoctypeDeclHandler = refuse

    def begin(tag: str, attributes: dict[str, str]) -> None:
        nonlocal n_elements
        n_elements += 1
        start(_local(tag), {_local(name): value for name, value in attributes.items()} if attributes else {})

    parser.StartElementHandler = begin
    if end is not None:
        parser.EndElementHandler = lambda tag: end(_local(tag))
    if data is not None:
        parser.CharacterDataHandler = data
    if part not in archive.namelist():
        raise UnusableFileError(f"{path} is no workbook: it has no {part}. Save it as xlsx or csv.")
    with archive.open(part) as stream:
        while piece := stream.read(_STEP):
            parser.Parse(piece, False)
            n_bytes += len(piece)
            check_unpacked_size(path, _BYTES_A_CELL * n_elements, _CURE)
            if n_bytes - parser.CurrentByteIndex > _LONGEST_TAG:
                raise UnusableFileError(f"{path} has a tag of more than a MiB in {part}. Save the sheet as csv.")
        parser.Parse(b"", True)


def _local(name: str) -> str:
    return name.rpartition(":")[2]
