"""jsonl: an object in each line, whose entries are numbers, text, or lists of numbers (plain or gz)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io._text_files import LINES_AT_A_TIME, create_text
from inlier.io.formats import BlockCodec, Columns, ReadBlocks
from inlier.io.limits import check_unpacked_size, text_lines
from inlier.io.table import Content, Request, by_column, no_vectors, not_a_number, vectors_alone, wanted_columns
from inlier.rows.vectors import NotVectorsError, stacked

if TYPE_CHECKING:
    from inlier.io.add_columns import BlocksInTurn

_LINES_FOR_NAMES = 1000  # names that no line up to there has are not known before the file is read
_BYTES_AN_ENTRY, _BYTES_A_LETTER = 64, 4
_CURE = "choose fewer columns"


class JsonLines(BlockCodec):
    """Columns by name; what a line does not have, or has as null, is missing."""

    family = "jsonl"

    def names(self, path: Path) -> list[str]:
        objects = (record for _, record in islice(_objects(path), _LINES_FOR_NAMES))
        return list(dict.fromkeys(chain.from_iterable(objects)))

    def read(self, request: Request) -> Content:
        """Read the wanted entries of every line."""
        columns, n_rows = _entries(request)
        wanted = wanted_columns(request, list(columns))
        vectors = [name for name in wanted if any(isinstance(entry, np.ndarray) for entry in columns[name].values())]
        wanted = vectors_alone(wanted, vectors, request)
        return {name: _as_column(columns[name], n_rows, name, request) for name in wanted}

    def write(self, path: Path, content: Content) -> None:
        self._write(path, [by_column(content)])

    def write_blocks(self, path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
        self._write(path, read_blocks(*columns))

    def write_rows_with(self, other: Any, source: Path, path: Path, further: BlocksInTurn) -> None:
        """Copy the objects, with further entries."""
        with create_text(path) as stream:
            for _, record in _objects(source):
                _write_lines(stream, [record | _records(further.take(1))[0]])

    def _write(self, path: Path, blocks: Iterable[Content]) -> None:
        with create_text(path) as stream:
            for block in blocks:
                _write_lines(stream, _records(by_column(block)))


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects in a file, with how many bytes were read."""
    n_bytes = 0
    with text_lines(path) as stream:
        for number, line in enumerate(stream, start=1):
            n_bytes += len(line)
            if not line.strip():
                continue
            try:
                record = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except (ValueError, RecursionError) as error:
                raise UnusableFileError(
                    f"line {number} of {path} could not be read as JSON: {str(error)[:80].rstrip('.')}. Each line must "
                    f'be an object, such as {{"id": "a", "x": 1.5}}; mend it, or copy the file again.'
                ) from error
            if not isinstance(record, dict):
                raise UnusableFileError(
                    f'line {number} of {path} is no JSON object, such as {{"id": "a", "x": 1.5}}. Write one per line.'
                )
            yield n_bytes, record


def _entries(request: Request) -> tuple[dict[str, dict[int, Any]], int]:
    """What there is in each column, by its row, and the number of rows; columns that are not wanted have no entries."""
    columns: dict[str, dict[int, Any]] = {}
    chosen = None if request.columns is None else {*request.columns, request.key}
    n_rows = n_kept = 0
    for _, record in _objects(request.path):
        for name, entry in record.items():
            column = columns.setdefault(name, {})
            if entry is None or name in request.left_out or (chosen is not None and name not in chosen):
                continue
            column[n_rows] = kept = _kept(entry)
            n_kept += _BYTES_AN_ENTRY + (kept.nbytes if isinstance(kept, np.ndarray) else len(str(kept)))
        n_rows += 1
        if n_rows % LINES_AT_A_TIME == 0:
            check_unpacked_size(request.path, n_kept, _CURE)
    if n_rows == 0:
        raise UnusableFileError(f"{request.path} holds no line that is not blank.")
    return columns, n_rows


def _kept(entry: Any) -> Any:
    """An entry as it is held: a list of numbers as an array, anything else that is no number or text as JSON."""
    if isinstance(entry, list) and entry:
        numbers = [np.nan if number is None else number for number in entry]
        if all(isinstance(number, (int, float)) for number in numbers):
            return np.array(numbers, dtype=np.float64)
    return entry if isinstance(entry, (bool, int, float, str)) else json.dumps(entry, ensure_ascii=False)


def _as_column(entries: dict[int, Any], n_rows: int, name: str, request: Request) -> Array:
    values = [entries.get(row) for row in range(n_rows)]
    if any(isinstance(entry, np.ndarray) for entry in entries.values()):
        check_unpacked_size(request.path, 8 * n_rows * max(map(np.size, entries.values())), _CURE)
        try:
            return stacked(values)
        except NotVectorsError as error:
            raise no_vectors(name, request.path, error) from None
    if name != request.key and all(isinstance(entry, (bool, int, float)) for entry in entries.values()):
        return np.array([np.nan if value is None else float(value) for value in values])
    texts = ["" if value is None else str(value) for value in values]
    check_unpacked_size(request.path, _BYTES_A_LETTER * n_rows * max(map(len, texts)), _CURE)
    if name == request.key:
        return np.array(texts, dtype=np.str_)
    raise not_a_number(name, next(entry for entry in entries.values() if isinstance(entry, str)), request)


def _records(columns: dict[str, Array]) -> list[dict[str, Any]]:
    lists = {name: np.asarray(column).tolist() for name, column in columns.items()}
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _write_lines(stream: Any, records: Iterable[dict[str, Any]]) -> None:
    for record in records:
        finite = {name: _without_nan(entry) for name, entry in record.items()}
        stream.write(json.dumps(finite, ensure_ascii=False).encode(errors="backslashreplace") + b"\n")


def _without_nan(entry: Any) -> Any:
    """JSON has no NaN: what is missing is null."""
    if isinstance(entry, list):
        return [_without_nan(number) for number in entry]
    return None if isinstance(entry, float) and entry != entry else entry
