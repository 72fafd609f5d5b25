"""parquet and feather (Arrow), column by column."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io.formats import BlockCodec, Columns, ReadBlocks, load
from inlier.io.limits import check_unpacked_size
from inlier.io.table import Content, Request, by_column, no_vectors, not_a_number, vectors_alone, wanted_columns
from inlier.rows.vectors import NotVectorsError, are_lists, from_arrow_lists, hold_numbers

if TYPE_CHECKING:
    from inlier.io.add_columns import BlocksInTurn

_CURE = "choose fewer columns"
_BATCH = 65536  # rows that are read at a time


class ArrowColumns(BlockCodec):
    """Columns by name, written as blocks of which a whole table is one; nothing is unpickled."""

    def write(self, path: Path, content: Content) -> None:
        self._write(path, [content])

    def write_blocks(self, path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
        self._write(path, read_blocks(*columns))

    @abstractmethod
    def _write(self, path: Path, blocks: Iterable[Content]) -> None: ...


class _ArrowFile(ArrowColumns):
    """A format of Arrow's own."""

    family = "arrow"

    @abstractmethod
    def batches(self, path: Path) -> AbstractContextManager[tuple[Any, Iterator[Any]]]:
        """The schema of a file, and its rows a batch at a time."""

    def write_rows_with(self, other: Any, source: Path, path: Path, further: BlocksInTurn) -> None:
        arrow = load("pyarrow", "parquet")
        with other.batches(source) as (schema, batches), ExitStack() as stack:
            kept, writer = [name for name in schema.names if name not in further.names], None
            for batch in batches:
                batch.validate(full=True)
                table, added = arrow.Table.from_batches([batch]).select(kept), as_arrow(further.take(len(batch)))
                for name in added.column_names:
                    table = table.append_column(name, added[name])
                writer = writer or stack.enter_context(self._writer(path, table.schema))
                writer.write_table(table)

    def _write(self, path: Path, blocks: Iterable[Content]) -> None:
        tables = map(as_arrow, blocks)
        first = next(tables)
        with self._writer(path, first.schema) as writer:
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)

    @abstractmethod
    def _writer(self, path: Path, schema: Any) -> AbstractContextManager[Any]: ...


class Parquet(_ArrowFile):
    """Parquet."""

    def names(self, path: Path) -> list[str]:
        with load("pyarrow.parquet", "parquet").ParquetFile(path) as file:
            return list(file.schema_arrow.names)

    def read(self, request: Request) -> Content:
        """Read a stretch of rows at a time; of ids that repeat, each once."""
        with load("pyarrow.parquet", "parquet").ParquetFile(request.path) as file:
            keys = [
                field.name for field in file.schema_arrow if field.name == request.key and not are_lists(field.type)
            ]
        with load("pyarrow.parquet", "parquet").ParquetFile(request.path, read_dictionary=keys) as file:
            names = _names_to_read(file.schema_arrow, request)
            _check_types(file.schema_arrow, names, request)
            check_unpacked_size(request.path, 8 * file.metadata.num_rows * len(names), _CURE)
            batches, n_bytes = [], 0
            for batch in file.iter_batches(_BATCH, columns=names):
                n_bytes += batch.nbytes
                check_unpacked_size(request.path, n_bytes, _CURE)
                batch.validate(full=True)
                batches.append(batch)
        arrow = load("pyarrow", "parquet")
        table = arrow.Table.from_batches(batches).select(names) if batches else file.schema_arrow.empty_table()
        return _columns(table, request.path)

    def open(self, request: Request) -> Mapping[str, Any]:
        """The column of vectors that is wanted, unread; none where that is not one column of fractions."""
        from inlier.io._vector_columns import VectorsInParquet

        with load("pyarrow.parquet", "parquet").ParquetFile(request.path) as file:
            names = _names_to_read(file.schema_arrow, request)
            _check_types(file.schema_arrow, names, request)
            kind = file.schema_arrow.field(names[0]).type
        is_one = len(names) == 1 and are_lists(kind) and hold_numbers(kind)
        return {names[0]: VectorsInParquet(request.path, names[0])} if is_one else {}

    @contextmanager
    def batches(self, path: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
        with load("pyarrow.parquet", "parquet").ParquetFile(path) as file:
            yield file.schema_arrow, (batch for batch in file.iter_batches(_BATCH) if len(batch))

    def _writer(self, path: Path, schema: Any) -> AbstractContextManager[Any]:
        return load("pyarrow.parquet", "parquet").ParquetWriter(path, schema)


class Feather(_ArrowFile):
    """Feather, which is Arrow's own file format."""

    def names(self, path: Path) -> list[str]:
        with load("pyarrow", "feather").memory_map(str(path)) as source:
            return list(load("pyarrow.ipc", "feather").open_file(source).schema.names)

    def read(self, request: Request) -> Content:
        arrow, ipc = load("pyarrow", "feather"), load("pyarrow.ipc", "feather")
        with arrow.memory_map(str(request.path)) as source:
            reader = ipc.open_file(source)
            names = _names_to_read(reader.schema, request)
            _check_types(reader.schema, names, request)
            check_unpacked_size(request.path, _announced_bytes(request.path), _CURE)
            table = reader.read_all().select(names)
            table.validate(full=True)  # lengths and places that a damaged file has wrong would lead anywhere in memory
            return _columns(table, request.path)

    @contextmanager
    def batches(self, path: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
        with load("pyarrow", "feather").memory_map(str(path)) as source:
            reader = load("pyarrow.ipc", "feather").open_file(source)
            check_unpacked_size(path, _announced_bytes(path), _CURE)
            batches = map(reader.get_batch, range(reader.num_record_batches))
            yield reader.schema, (batch for batch in batches if len(batch))

    def _writer(self, path: Path, schema: Any) -> AbstractContextManager[Any]:
        ipc = load("pyarrow.ipc", "feather")
        return ipc.new_file(str(path), schema, options=ipc.IpcWriteOptions(compression="lz4"))


def _names_to_read(schema: Any, request: Request) -> list[str]:
    vectors = [field.name for field in schema if are_lists(field.type) and hold_numbers(field.type)]
    return vectors_alone(wanted_columns(request, list(schema.names)), vectors, request)


def _columns(table: Any, path: Path) -> dict[str, Array]:
    if table.num_rows == 0:
        raise UnusableFileError(f"{path} has columns but no rows.")
    return {name: _values(table[name], name, path) for name in table.column_names}


def _values(column: Any, name: str, path: Path) -> Array:
    """A column as it is, or the vectors in it as a table."""
    if not are_lists(column.type):
        return from_arrow(column, path)
    try:
        return from_arrow_lists(column)
    except NotVectorsError as error:
        raise no_vectors(name, path, error) from None


def as_arrow(content: Content) -> Any:
    """A table of Arrow; the columns of an array are numbered from 0. NaN is a missing value, in csv an empty field.

    Not so in a table of one column, where an empty field would be a blank line.
    """
    arrow, columns = load("pyarrow", "parquet"), by_column(content)
    as_missing = len(columns) > 1
    return arrow.table(
        {name: _as_arrow_column(arrow, np.ascontiguousarray(column), as_missing) for name, column in columns.items()}
    )


def _as_arrow_column(arrow: Any, column: Array, as_missing: bool) -> Any:
    """A column of Arrow; a table beside others becomes one of vectors."""
    if column.ndim == 1:
        return arrow.array(column, from_pandas=as_missing)
    return arrow.FixedSizeListArray.from_arrays(arrow.array(column.reshape(-1)), column.shape[1])


def _check_types(schema: Any, names: list[str], request: Request) -> None:
    """Refuse what is neither numbers, vectors, text nor moments before any of it is read: bytes, other types."""
    types = load("pyarrow.types", "parquet")
    times = Counter(schema.names)
    for name in names:
        if times[name] > 1:
            raise UnusableFileError(f"{request.path} has more than one column named {name!r}. Give each its own name.")
        kind = schema.field(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        is_number = (
            types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
        )
        is_vectors = are_lists(kind) and hold_numbers(kind)
        if not (is_text or is_number or is_vectors or types.is_temporal(kind) or types.is_null(kind)):
            raise not_a_number(name, str(kind), request)


def _announced_bytes(path: Path) -> int:
    """What the compressed buffers of an Arrow file announce to unpack to, all together.

    Each starts with that number; where they lie is told by the flatbuffers between them, of which just that is read.
    """
    total = 0
    with path.open("rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_READ) as data:
        place = 8  # after the magic
        while place + 8 <= len(data):
            mark, length = struct.unpack_from("<Ii", data, place)
            if mark != 0xFFFFFFFF or length <= 0 or place + 8 + length > len(data):
                break
            root, body = place + 8, place + 8 + length
            total += sum(_sizes_of_buffers(data, root, body))
            place = body + _field(data, _table(data, root), 3, "<q", 0)
            if place < body:
                break
    return total


def _sizes_of_buffers(data: mmap, root: int, body: int) -> Iterator[int]:
    message = _table(data, root)
    header = _field_place(data, message, 2)
    if _field(data, message, 1, "<B", 0) not in (2, 3) or header is None:  # a dictionary, or rows
        return
    batch = _table(data, header)
    if _field(data, message, 1, "<B", 0) == 2:
        batch = _table(data, _field_place(data, batch, 1) or header)  # a dictionary holds rows
    buffers = _field_place(data, batch, 2)
    if _field_place(data, batch, 3) is None or buffers is None:
        return  # not compressed: no more than the file holds
    vector = buffers + struct.unpack_from("<I", data, buffers)[0]
    for number in range(struct.unpack_from("<I", data, vector)[0]):
        offset, length = struct.unpack_from("<qq", data, vector + 4 + 16 * number)
        if length >= 8:
            yield max(0, struct.unpack_from("<q", data, body + offset)[0])


def _table(data: mmap, place: int) -> int:
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field_place(data: mmap, table: int, number: int) -> int | None:
    """Where a field of a flatbuffer's table lies; None where it is absent."""
    entries = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", data, entries)[0]:
        return None
    offset = struct.unpack_from("<H", data, entries + 4 + 2 * number)[0]
    return table + offset if offset else None


def _field(data: mmap, table: int, number: int, kind: str, absent: int) -> int:
    place = _field_place(data, table, number)
    return absent if place is None else int(struct.unpack_from(kind, data, place)[0])


def from_arrow(column: Any, path: Path) -> Array:
    """Numbers as numbers with NaN for missing ones, anything else as text."""
    types = load("pyarrow.types", "parquet")
    if types.is_dictionary(column.type):
        return _from_dictionary(column.unify_dictionaries(), path)
    is_whole = types.is_integer(column.type) or types.is_boolean(column.type)
    if types.is_decimal(column.type) or (is_whole and column.null_count):
        column = column.cast("float64")
    if is_whole or types.is_floating(column.type):
        return np.asarray(column.to_numpy())
    texts = ["" if value is None else str(value) for value in column.to_pylist()]
    check_unpacked_size(path, 4 * len(texts) * max(map(len, texts), default=0), _CURE)  # as long as the longest
    return np.array(texts, dtype=np.str_)


def _from_dictionary(column: Any, path: Path) -> Array:
    """Values of which each is held once, and rows that name them by number."""
    values = from_arrow(load("pyarrow", "parquet").chunked_array([column.chunk(0).dictionary]), path)
    check_unpacked_size(path, len(column) * values.dtype.itemsize, _CURE)
    missing = np.array("" if values.dtype.kind == "U" else np.nan)
    values = np.concatenate([values, missing.reshape(1)])
    places = [np.asarray(chunk.indices.cast("int64").fill_null(len(values) - 1)) for chunk in column.chunks]
    return np.asarray(values[np.concatenate(places)])
