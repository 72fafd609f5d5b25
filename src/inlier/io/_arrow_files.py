"""parquet and feather (Arrow), column by column."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io.formats import BlockCodec, Columns, ReadBlocks, load
from inlier.io.limits import check_unpacked_size
from inlier.io.table import Content, Request, by_column, wanted_columns

_CURE = "choose fewer columns"


class ArrowColumns(BlockCodec):
    """Columns by name, written as blocks of which a whole table is one; nothing is unpickled."""

    def write(self, path: Path, content: Content) -> None:
        self._write(path, [content])

    def write_blocks(self, path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
        self._write(path, read_blocks(*columns))

    def _write(self, path: Path, blocks: Iterable[Content]) -> None:
        tables = map(as_arrow, blocks)
        first = next(tables)
        with self._writer(path, first.schema) as writer:
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)

    def _writer(self, path: Path, schema: Any) -> AbstractContextManager[Any]:
        raise NotImplementedError


class Parquet(ArrowColumns):
    """Parquet."""

    def read(self, request: Request) -> Content:
        with load("pyarrow.parquet", "parquet").ParquetFile(request.path) as file:
            names = wanted_columns(request, list(file.schema_arrow.names))
            check_unpacked_size(request.path, 8 * file.metadata.num_rows * len(names), _CURE)
            return _columns(file.read(columns=names), request.path)

    def _writer(self, path: Path, schema: Any) -> AbstractContextManager[Any]:
        return load("pyarrow.parquet", "parquet").ParquetWriter(path, schema)


class Feather(ArrowColumns):
    """Feather, which is Arrow's own file format."""

    def read(self, request: Request) -> Content:
        arrow, ipc = load("pyarrow", "feather"), load("pyarrow.ipc", "feather")
        with arrow.memory_map(str(request.path)) as source:
            reader = ipc.open_file(source)
            names = wanted_columns(request, list(reader.schema.names))
            n_rows = sum(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))
            check_unpacked_size(request.path, 8 * n_rows * len(names), _CURE)
            return _columns(reader.read_all().select(names), request.path)

    def _writer(self, path: Path, schema: Any) -> AbstractContextManager[Any]:
        ipc = load("pyarrow.ipc", "feather")
        return ipc.new_file(str(path), schema, options=ipc.IpcWriteOptions(compression="lz4"))


def _columns(table: Any, path: Path) -> dict[str, Array]:
    if table.num_rows == 0:
        raise UnusableFileError(f"{path} has columns but no rows.")
    return {name: from_arrow(table[name]) for name in table.column_names}


def as_arrow(content: Content) -> Any:
    """A table of Arrow; the columns of an array are numbered from 0."""
    columns = {name: np.ascontiguousarray(column) for name, column in by_column(content).items()}
    return load("pyarrow", "parquet").table(columns)


def from_arrow(column: Any) -> Array:
    """Numbers as numbers with NaN for missing ones, anything else as text."""
    types = load("pyarrow.types", "parquet")
    is_whole = types.is_integer(column.type) or types.is_boolean(column.type)
    if types.is_decimal(column.type) or (is_whole and column.null_count):
        column = column.cast("float64")
    if is_whole or types.is_floating(column.type):
        return np.asarray(column.to_numpy())
    return np.array(["" if value is None else str(value) for value in column.to_pylist()], dtype=np.str_)
