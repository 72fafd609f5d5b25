"""parquet and feather (Arrow), column by column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.io.extras import load
from inlier.io.limits import check_unpacked_size
from inlier.io.table import Content, Request, UnusableFileError, wanted_columns

_CURE = "choose fewer columns"


def read_parquet(request: Request) -> Content:
    """Read the wanted columns of a parquet file."""
    with load("pyarrow.parquet", "parquet").ParquetFile(request.path) as file:
        names = wanted_columns(request, list(file.schema_arrow.names))
        check_unpacked_size(request.path, 8 * file.metadata.num_rows * len(names), _CURE)
        return _columns(file.read(columns=names), request.path)


def read_feather(request: Request) -> Content:
    """Read the wanted columns of a feather file."""
    arrow, ipc = load("pyarrow", "feather"), load("pyarrow.ipc", "feather")
    with arrow.memory_map(str(request.path)) as source:
        reader = ipc.open_file(source)
        names = wanted_columns(request, list(reader.schema.names))
        check_unpacked_size(request.path, _declared_bytes(reader, len(names)), _CURE)
        return _columns(reader.read_all().select(names), request.path)


def write_parquet(path: Path, content: Content) -> None:
    """Write columns as parquet."""
    load("pyarrow.parquet", "parquet").write_table(_arrow_table(content), path)


def write_feather(path: Path, content: Content) -> None:
    """Write columns as feather."""
    load("pyarrow.feather", "feather").write_feather(_arrow_table(content), str(path))


def _declared_bytes(reader: Any, n_columns: int) -> int:
    rows = sum(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))
    return 8 * rows * n_columns


def _columns(table: Any, path: Path) -> dict[str, Array]:
    if table.num_rows == 0:
        raise UnusableFileError(f"{path} has columns but no rows.")
    return {name: _as_array(table[name]) for name in table.column_names}


def _as_array(column: Any) -> Array:
    """Numbers as numbers with NaN for missing ones, anything else as text; nothing is unpickled."""
    types = load("pyarrow.types", "parquet")
    if types.is_decimal(column.type):
        column = column.cast("float64")
    if types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type):
        return (
            np.asarray(column.to_numpy()) if column.null_count == 0 else np.asarray(column.cast("float64").to_numpy())
        )
    return np.array(["" if value is None else str(value) for value in column.to_pylist()], dtype=np.str_)


def _arrow_table(content: Content) -> Any:
    columns = (
        {str(number): column for number, column in enumerate(content.T)}
        if isinstance(content, np.ndarray)
        else dict(content)
    )
    return load("pyarrow", "parquet").table({name: np.ascontiguousarray(column) for name, column in columns.items()})
