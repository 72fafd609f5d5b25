"""Tables that come as columns: data frames, Arrow tables, data sets of Hugging Face, told by what they can do.

None of these libraries is imported here. A column may hold vectors, which lie side by side in the table; one that
holds neither numbers nor vectors is refused by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.exceptions import ParameterError
from inlier.rows.backend import is_device_array, to_host
from inlier.rows.sparse import is_sparse
from inlier.rows.vectors import NotVectorsError, are_lists, from_arrow_lists, is_missing, is_vector, stacked


def as_plain(data: Any, name: str) -> Any:
    """Return what NumPy reads in place of columns; anything else, and frames of nothing but numbers, as they are."""
    if type(data) is np.ndarray and data.dtype.kind in "biuf":
        return data
    _check_holds_rows(data, name)
    if str(getattr(data, "dtype", "")) == "torch.bfloat16":  # which NumPy does not know
        return data.float()
    data = _arrow_of_dataset(data)
    if all(hasattr(data, part) for part in ("obs_names", "var_names", "X")):
        data = _matrix_of_cells(data, name)
    if isinstance(data, (list, tuple)):
        return np.stack([to_host(row) for row in data]) if data and is_device_array(data[0]) else data
    if _is_column(data):
        return _as_numbers(data, name, None)
    if not is_frame(data) or _has_numbers_alone(data):
        return data
    parts = [_as_numbers(column, name, label) for label, column in columns_of(data)]
    return np.column_stack(parts) if parts else data


def holds_vectors(data: Any) -> bool:
    """Whether this comes as columns of which one holds vectors: names of its columns are not those of the table."""
    data = _arrow_of_dataset(data)
    if _is_column(data):
        return _are_vectors(data)
    if not is_frame(data) or _has_numbers_alone(data):
        return False
    return any(_are_vectors(column) for _, column in columns_of(data))


def _arrow_of_dataset(data: Any) -> Any:
    """The Arrow table of a data set of Hugging Face, or the column of one; anything else as it is."""
    if hasattr(data, "source") and hasattr(data, "column_name"):
        if not _is_dataset(data.source):
            return data
        return data.source.select_columns([data.column_name]).with_format("arrow")[:][data.column_name]
    return data.with_format("arrow")[:] if _is_dataset(data) else data


def _is_lazy(data: Any) -> bool:
    """Whether this is a LazyFrame of polars, which warns when it is asked for anything."""
    return type(data).__name__ == "LazyFrame"


def _check_holds_rows(data: Any, name: str) -> None:
    """Refuse what is no table yet, or several, with the word that makes one of it."""
    if _is_lazy(data):
        raise ParameterError(name, "is a LazyFrame, which holds no rows yet. Give what its collect() returns.")
    if hasattr(data, "mod") and hasattr(data, "obs_names"):
        mods = ", ".join(map(str, data.mod))
        raise ParameterError(
            name,
            f"is a MuData of {mods}. Give one of these, as in mdata[{next(iter(data.mod), 'rna')!r}]; or see "
            f"inlier.scverse.check, which compares two of them.",
        )


def _matrix_of_cells(cells: Any, name: str) -> Any:
    """The ``X`` of an AnnData; what is backed by a file stays there."""
    if is_sparse(cells.X) or type(cells.X).__name__.endswith(("CSRDataset", "CSCDataset")):
        others = ", ".join(map(str, getattr(cells, "obsm", ()))) or "none"
        raise ParameterError(
            name,
            f"is an AnnData whose X is sparse. Give one of its .obsm instead (it has {others}), or X.toarray(); or see "
            f"inlier.scverse.check.",
        )
    return cells.X


def _is_dataset(data: Any) -> bool:
    return all(hasattr(data, name) for name in ("with_format", "features", "column_names", "__len__"))


def _is_column(data: Any) -> bool:
    """Whether this is one column of something that may be no number: of pandas, polars, Arrow, or of objects."""
    if isinstance(data, np.ndarray):
        return data.ndim == 1 and data.dtype.kind == "O" and data.size > 0
    if _is_arrow_column(data):
        return True
    is_series = hasattr(data, "dtype") and hasattr(data, "to_numpy") and hasattr(data, "name")
    return is_series and getattr(data, "ndim", 1) == 1 and not _is_number(data.dtype)


def _is_arrow_column(data: Any) -> bool:
    return all(hasattr(data, name) for name in ("type", "null_count", "is_null", "to_pylist"))


def is_frame(data: Any) -> bool:
    """Whether this has columns by name: a frame of pandas or polars, a table of Arrow."""
    is_arrow = hasattr(data, "schema") and hasattr(data, "column_names") and hasattr(data, "column")
    has_columns = hasattr(data, "columns") and hasattr(data, "dtypes") and hasattr(data, "to_numpy")
    return is_arrow or (has_columns and getattr(data, "ndim", 2) == 2)


def columns_of(frame: Any) -> Iterator[tuple[Any, Any]]:
    """The columns of a frame, by their labels."""
    if hasattr(frame, "column_names"):
        yield from zip(frame.column_names, frame.columns, strict=True)
    elif hasattr(frame, "iloc"):
        yield from ((label, frame.iloc[:, place]) for place, label in enumerate(frame.columns))
    else:
        yield from zip(frame.columns, frame.get_columns(), strict=True)


def mixed_columns(data: Any) -> list[tuple[Any, Any]] | None:
    """The columns of a frame, or a column of texts as the only one; None for anything else."""
    if (type(data) is np.ndarray and data.dtype.kind in "biuf") or _is_lazy(data):
        return None
    data = _arrow_of_dataset(data)
    if is_frame(data):
        return list(columns_of(data))
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], str):
        return [("text", np.array(data, dtype=object))]
    is_array = isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype.kind in "UTO" and data.size > 0
    if not (is_array or _is_column(data)) or not len(data):
        return None
    entries = data.to_pylist() if _is_arrow_column(data) else entries_of(data)
    first = next((entry for entry in entries if not is_missing(entry)), None)
    return [(getattr(data, "name", None) or "text", data)] if isinstance(first, str) else None


def _has_numbers_alone(frame: Any) -> bool:
    dtypes = getattr(frame, "dtypes", None)
    return dtypes is not None and all(map(_is_number, dtypes))


def _is_number(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # of polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "biufc" and not str(dtype).startswith(("list<", "large_list<", "fixed_"))


def _are_vectors(column: Any) -> bool:
    if _is_arrow_column(column):
        return are_lists(column.type)
    if _is_number(getattr(column, "dtype", None)):
        return False
    return is_vector(next((entry for entry in entries_of(column) if not is_missing(entry)), None))


def entries_of(column: Any) -> Any:
    """What a column of pandas, polars or Arrow holds, as an array or a list of vectors."""
    if _is_arrow_column(column):
        return column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
    values = column.to_numpy() if hasattr(column, "to_numpy") else column
    return values if values.ndim == 1 else list(values)


def _as_numbers(column: Any, name: str, label: Any) -> Array:
    """A column as numbers or as a table of vectors; refused by its name where it is neither."""
    try:
        if _are_vectors(column):
            return from_arrow_lists(column) if _is_arrow_column(column) else stacked(entries_of(column))
    except NotVectorsError as error:
        raise ParameterError(name, f"{error}.", before=_before(label)) from None
    try:
        return _plain_numbers(column)
    except (TypeError, ValueError):
        raise ParameterError(name, _not_numbers(column, label), before=_before(label)) from None


def _plain_numbers(column: Any) -> Array:
    """Numbers, with NaN for missing ones."""
    if _is_arrow_column(column):
        values = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
    else:
        values = entries_of(column)
    if values.dtype.kind in "mM":  # which would count as nanoseconds
        raise TypeError
    if values.dtype.kind in "OUST":
        values = np.array([np.nan if is_missing(entry) else float(entry) for entry in values])
    return np.asarray(values)


def _before(label: Any) -> str:
    return "" if label is None else f"column {label!r} of "


def _reads_as_number(entry: Any) -> bool:
    try:
        float(entry)
    except (TypeError, ValueError):
        return False
    return True


def _not_numbers(column: Any, label: Any) -> str:
    entries = column.to_pylist() if _is_arrow_column(column) else entries_of(column)
    given = [entry for entry in entries if not is_missing(entry)]
    example = str(next((entry for entry in given if not _reads_as_number(entry)), given[0] if given else "nothing"))
    shown = example if len(example) <= 40 else f"{example[:40]}..."
    cure = "Convert them to numbers first."
    if label is not None:
        cure = "Leave the column out, or make numbers of it first: categories as columns of 0 and 1, dates as days."
    return f"does not hold numbers (for example {shown!r}). {cure}"
