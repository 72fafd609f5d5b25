"""Columns of which each entry is a vector: lists in frames, in Arrow and in files, as tables of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inlier._typing import Array

_OF_TEXT = "holds lists of something else than numbers"


class NotVectorsError(ValueError):
    """Entries that are no vectors of one length; the message goes on after "column 'a' "."""


def is_vector(entry: Any) -> bool:
    """Whether an entry is a list of some kind: no text, no number, nothing that is missing."""
    if isinstance(entry, np.ndarray):
        return entry.ndim > 0
    return not isinstance(entry, (str, bytes, dict)) and hasattr(entry, "__len__") and hasattr(entry, "__getitem__")


def is_missing(entry: Any) -> bool:
    """Whether an entry stands for nothing: None, NaN, and what pandas has for it."""
    if entry is None:
        return True
    unequal = not is_vector(entry) and entry != entry
    return unequal is True or type(entry).__name__ in ("NAType", "NaTType") or unequal is np.True_


def stacked(entries: Sequence[Any]) -> Array:
    """Vectors below each other; a missing one is a row of NaN.

    Examples
    --------
    >>> from inlier.rows.vectors import stacked
    >>> stacked([[1, 2], None, (3.5, 4)]).tolist()
    [[1.0, 2.0], [nan, nan], [3.5, 4.0]]
    """
    present = [row for row, entry in enumerate(entries) if not is_missing(entry)]
    odd = next((row for row in present if not is_vector(entries[row])), None)
    if odd is not None:
        raise NotVectorsError(
            f"holds a list in some rows and {str(entries[odd])[:40]!r} in row {odd}. Mend those rows, or leave them out"
        )
    _check_lengths(np.array([len(entries[row]) for row in present]), np.array(present))
    some = [_numbers(entries[row]) for row in present]
    if not some:
        raise NotVectorsError("holds no vector in any row")
    if len(some) == len(entries):
        return np.stack(some)
    dtype = np.result_type(np.float16, *{vector.dtype for vector in some})
    table = np.full((len(entries), some[0].size), np.nan, dtype=dtype)
    table[present] = some
    return table


def _numbers(entry: Any) -> Array:
    try:
        vector = np.asarray(entry)
        if vector.dtype.kind == "O":  # numbers with gaps, as None
            vector = vector.astype(np.float64)
    except (TypeError, ValueError):
        raise NotVectorsError(_OF_TEXT) from None
    if vector.dtype.kind not in "biuf" or vector.ndim != 1:
        raise NotVectorsError(_OF_TEXT if vector.ndim == 1 else "holds lists of lists; flatten them first")
    return vector


def _check_lengths(lengths: Array, rows: Array) -> None:
    """Refuse vectors of different lengths, by the first row that has another one than the first, and empty ones."""
    other = np.flatnonzero(lengths != lengths[:1])
    if other.size:
        raise NotVectorsError(
            f"holds vectors of different lengths, {lengths[0]} in row {rows[0]} and {lengths[other[0]]} in row "
            f"{rows[other[0]]}. Bring them to one length, or leave those rows out"
        )
    if lengths.size and lengths[0] == 0:
        raise NotVectorsError("holds empty lists")


# ---- Arrow, without importing it


def are_lists(kind: Any) -> bool:
    """Whether a type of Arrow is that of lists, or of tensors of one dimension kept as lists."""
    kind = getattr(kind, "storage_type", kind)
    return str(kind).startswith(("list<", "large_list<", "fixed_size_list<")) and not str(kind).startswith("list_view")


def hold_numbers(kind: Any) -> bool:
    """Whether lists of this type are lists of numbers."""
    return str(getattr(kind, "storage_type", kind).value_type) in _NUMBERS


_NUMBERS = {
    "bool",
    "halffloat",
    "float",
    "double",
    *(f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)),
}


def from_arrow_lists(column: Any, start: int = 0, width: int | None = None) -> Array:
    """Lists of one length in a column of Arrow, as the rows of a table; a missing list is a row of NaN.

    ``start`` is the number of the first row and ``width`` the length, where the column is part of a longer one.
    """
    if not hold_numbers(column.type):
        nested = are_lists(getattr(column.type, "storage_type", column.type).value_type)
        raise NotVectorsError("holds lists of lists; flatten them first" if nested else _OF_TEXT)
    chunks = getattr(column, "chunks", [column])
    parts: list[Array] = []
    for chunk in chunks:
        parts.append(_lists_of(getattr(chunk, "storage", chunk), start, width))
        width = parts[-1].shape[1] or width
        start += len(chunk)
    if not width:
        raise NotVectorsError("holds no vector in any row")
    parts = [part if part.shape[1] else np.full((len(part), width), np.nan, part.dtype) for part in parts if len(part)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _lists_of(chunk: Any, start: int, width: int | None) -> Array:
    """The same of one chunk, whose first row is row ``start``; without columns where all of it is missing."""
    missing = np.asarray(chunk.is_null()) if chunk.null_count else None
    if str(chunk.type).startswith("fixed_size_list<"):
        first = np.arange(len(chunk) + 1) * chunk.type.list_size + chunk.offset * chunk.type.list_size
    else:
        first = np.asarray(chunk.offsets)
    rows = np.arange(len(chunk)) if missing is None else np.flatnonzero(~missing)
    lengths = np.diff(first)[rows]
    if width is None:
        _check_lengths(lengths, rows + start)
    else:
        _check_lengths(np.append(width, lengths), np.append(0, rows + start))
    length = int(lengths[0]) if rows.size else width or 0
    if missing is None and len(chunk):
        return _flat(chunk.values.slice(int(first[0]), len(chunk) * length)).reshape(len(chunk), length)
    flat = _flat(chunk.values)
    dtype = np.result_type(np.float16, flat.dtype)
    table = np.full((len(chunk), length), np.nan, dtype=dtype)
    if rows.size:
        table[rows] = flat[first[rows, None] + np.arange(length)]
    return table


def _flat(values: Any) -> Array:
    return np.asarray(values.to_numpy(zero_copy_only=False))
