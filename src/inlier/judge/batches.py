"""Batches as engines hand them to a function, told by what they can do: columns out of them, and columns beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.exceptions import ParameterError
from inlier.rows import as_table
from inlier.rows.frames import holds_vectors
from inlier.rows.vectors import is_vector, stacked


def column_names(table: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame of numbers, if they are texts."""
    names = getattr(table, "columns", None)
    if names is None or getattr(table, "ndim", 2) != 2 or not hasattr(table, "dtypes") or holds_vectors(table):
        return None
    names = tuple(names)
    return names if all(isinstance(name, str) for name in names) else None


def table_of(batch: Any, columns: Any, name: str) -> Array:
    """One side of the pairs: a column of vectors, or columns of numbers."""
    names = [columns] if isinstance(columns, str) else list(columns)
    known = _names(batch)
    if known is None:
        raise ParameterError(
            "batch", f"is a {type(batch).__name__}; give an Arrow batch, a frame or a dict of columns."
        )
    unknown = [column for column in names if column not in known]
    if unknown:
        raise ParameterError(name, f"names column {unknown[0]!r}, and the batch has {', '.join(map(str, known))}.")
    parts = [_column(batch[column], name) for column in names]
    return parts[0] if len(parts) == 1 else np.column_stack(parts)


def with_columns(batch: Any, columns: dict[str, Array]) -> Any:
    """The batch with more columns, which take the place of those of the same name."""
    if hasattr(batch, "with_columns"):  # polars
        series = type(batch)(columns)
        return batch.with_columns(series.get_columns())
    if hasattr(batch, "assign"):  # pandas
        return batch.assign(**columns)
    if isinstance(batch, Mapping):
        return {**batch, **columns}
    return _beside_arrow(batch, columns)


def _names(batch: Any) -> list[Any] | None:
    if hasattr(batch, "column_names"):
        return list(batch.column_names)
    if hasattr(batch, "columns"):
        return list(batch.columns)
    return list(batch) if isinstance(batch, Mapping) else None


def _column(column: Any, name: str) -> Array:
    if isinstance(column, list) and column and is_vector(column[0]):
        return stacked(column)
    return np.asarray(as_table(column, name, one_column=True))


def _beside_arrow(batch: Any, columns: dict[str, Array]) -> Any:
    from inlier.io.formats import load

    arrow = load("pyarrow", "arrow")
    kept = {name: batch[name] for name in batch.column_names if name not in columns}
    arrays = [*kept.values(), *map(arrow.array, columns.values())]
    return type(batch).from_arrays(arrays, names=[*kept, *columns])
