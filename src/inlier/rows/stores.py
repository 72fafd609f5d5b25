"""Where rows are stored, and how a function of a block of rows is applied to all of them.

Everything this package computes is one of two things: a *total* over rows, small enough to travel, or a *map* from
each row to one number. A store says how: which blocks, in which order, on which machine. What is done to a block is
said once, by the backends, and the algorithms above know neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from itertools import islice
from typing import Any, Protocol

import numpy as np
from array_api_compat import is_dask_array

from inlier._checks import as_numbers
from inlier._typing import Array
from inlier.exceptions import ParameterError
from inlier.rows.backend import (
    WIDEST_ROW,
    dtype_name,
    from_host,
    is_beyond_memory,
    is_device_array,
    is_host_array,
    take_rows,
    to_host,
)
from inlier.rows.frames import as_plain
from inlier.rows.threads import results_in_threads, row_ranges, rows_per_narrow_range, single_threaded_blas

_WIDE_RANGE_BYTES = 16 * 1024**2  # wide rows: short ranges, so that all threads have some
_FEWEST_WIDE_ROWS = 4096
_PARTS_AT_ONCE = 8


class TotalWork(Protocol):
    """What a block adds to a total. It must be picklable: some stores send it to other processes."""

    def __call__(self, *blocks: Any) -> Any:
        """Return the part of one block, as small NumPy arrays."""

    def merge(self, parts: Sequence[Any]) -> Any:
        """Return the part of several blocks, given theirs in the order of the rows. It must be associative."""


class MapWork(Protocol):
    """What each row of a block is mapped to; picklable too."""

    @property
    def dtype(self) -> str:
        """Name of the type of the entries."""

    def __call__(self, *blocks: Any) -> Any:
        """Return one entry per row of the block, an array of the block's own kind."""


class RowStore(Protocol):
    """Where rows are. Tables and vectors handed to one call have a row for each row."""

    in_memory: bool  # of this computer: reading rows many times, two blocks of them at once, costs nothing to speak of
    at_hand: bool  # in memory or on a device: there are no more rows than fit
    most_fetched: int  # numbers of a vector that are rather brought here than looked at again where they are

    def align(self, *tables: Any) -> tuple[Any, ...]:
        """Return the tables in the form in which they are read together."""

    def total(self, work: TotalWork, *tables: Any) -> Any:
        """Return ``work`` of all rows."""

    def map(self, work: MapWork, *tables: Any) -> Any:
        """Return one entry per row, in kind: where, and as what, the tables are."""

    def map_and_total(self, work: MapWork, of_entries: TotalWork, *tables: Any) -> tuple[Any, Any]:
        """Return the map and a total over its entries, reading the tables once."""

    def take(self, table: Any, rows: slice | Array) -> Array:
        """Return some rows as a NumPy array."""

    def near(self, table: Any, rows: slice | Array) -> Any:
        """Return some rows where they can be read at will: on their device, or else in this computer's memory."""

    def from_host(self, values: Array, like: Any) -> Any:
        """Return n numbers that were computed here as a vector of this store, beside ``like``."""


class MemoryStore:
    """NumPy arrays, memory maps among them: ranges of fixed size, in threads, merged in order."""

    in_memory = True
    at_hand = True
    most_fetched = 100_000

    def align(self, *tables: Any) -> tuple[Any, ...]:
        """Return the tables as they are."""
        return tables

    def total(self, work: TotalWork, *tables: Any) -> Any:
        """Return ``work`` of all rows."""
        if len(tables[0]) <= range_length(tables):
            return work.merge([work(*_cut(tables, slice(None)))])
        with blas_for(tables):
            return merged_parts(work, parts_in_threads(work, tables))

    def map(self, work: MapWork, *tables: Any) -> Any:
        """Return one entry per row."""
        entries = np.empty(len(tables[0]), dtype=work.dtype)

        def fill(rows: slice) -> None:
            entries[rows] = work(*_cut(tables, rows))

        with blas_for(tables):
            for _ in _by_range(tables, fill):
                pass
        return entries

    def map_and_total(self, work: MapWork, of_entries: TotalWork, *tables: Any) -> tuple[Any, Any]:
        """Return the map, and the total over its entries while they are still in cache."""
        entries = np.empty(len(tables[0]), dtype=work.dtype)
        with blas_for(tables):
            return entries, merged_parts(of_entries, filled_in_threads(work, of_entries, entries, tables))

    def take(self, table: Any, rows: slice | Array) -> Array:
        """Return some rows."""
        return np.asarray(table[rows])

    near = take

    def from_host(self, values: Array, like: Any) -> Any:
        """Return the values as they are."""
        return values


class DeviceStore:
    """Arrays of the array API on the device they are on (torch, CuPy): whole arrays at once, there.

    Only totals come to the host, and only small matrices go to the device.
    """

    in_memory = False
    at_hand = True
    most_fetched = 100_000

    def align(self, *tables: Any) -> tuple[Any, ...]:
        """Return the tables as they are."""
        return tables

    def total(self, work: TotalWork, *tables: Any) -> Any:
        """Return ``work`` of all rows; the backend cuts them into pieces where it needs room."""
        return work(*tables)

    def map(self, work: MapWork, *tables: Any) -> Any:
        """Return one entry per row, on the device."""
        return work(*tables)

    def map_and_total(self, work: MapWork, of_entries: TotalWork, *tables: Any) -> tuple[Any, Any]:
        """Return the map and a total over its entries."""
        entries = work(*tables)
        return entries, of_entries(entries)

    def take(self, table: Any, rows: slice | Array) -> Array:
        """Return some rows as a NumPy array."""
        return to_host(take_rows(table, rows))

    def near(self, table: Any, rows: slice | Array) -> Any:
        """Return some rows where they are, unless NumPy can read that memory."""
        return take_rows(table, rows) if is_beyond_memory(table) else self.take(table, rows)

    def from_host(self, values: Array, like: Any) -> Any:
        """Return the values on the device of ``like``."""
        return from_host(values, like)


MEMORY, DEVICE = MemoryStore(), DeviceStore()


def store_of(*tables: Any) -> RowStore:
    """Return the store that reads these tables together."""
    if all(map(is_host_array, tables)):
        return MEMORY
    if any(map(is_dask_array, tables)):
        from inlier.rows.dask_arrays import DASK

        _refuse_mixture(tables, lambda table: is_dask_array(table) or is_host_array(table))
        return DASK
    if any(map(is_device_array, tables)):
        _refuse_mixture(tables, is_device_array)
        return DEVICE
    from inlier.rows.files import FileStore

    return FileStore(tables)


def _refuse_mixture(tables: Sequence[Any], belongs: Callable[[Any], bool]) -> None:
    if not all(map(belongs, tables)):
        kinds = " and ".join(f"{type(table).__module__}.{type(table).__name__}" for table in tables)
        raise ValueError(f"X and y are stored in different ways: {kinds}. Bring one of them to where the other is.")


def as_stored(data: Any) -> Any:
    """Return ``data`` as a table that stays where it is, or None if NumPy is to read it."""
    if is_host_array(data):
        return None
    if is_dask_array(data) or is_device_array(data):
        return data.detach() if hasattr(data, "detach") else data  # a tensor's history is not for us
    from inlier.rows.files import ComputedRows, StoredRows

    if isinstance(data, (StoredRows, ComputedRows)):
        return data
    kept_in_chunks = all(hasattr(data, name) for name in ("shape", "dtype", "ndim", "chunks", "__getitem__"))
    return StoredRows(data) if kept_in_chunks else None


def as_table(data: Any, name: str, *, one_column: bool = False, in_place: bool = False) -> Any:
    """Return ``data`` as a two-dimensional array of real numbers, without a copy where it is one already.

    With ``one_column`` a one-dimensional array counts as a table of one column. With ``in_place``, arrays that are not
    NumPy's (Dask, torch, CuPy, zarr, HDF5) stay what and where they are; otherwise they are brought here. Columns of
    frames, of Arrow tables and of data sets may hold vectors, see `inlier.rows.frames`.
    """
    data = as_plain(data, name)
    table = as_stored(data)
    if table is None:
        table = as_numbers(data, name)
    elif not in_place:
        table = as_numbers(store_of(table).take(table, slice(0, table.shape[0])), name)
    elif isinstance(getattr(table, "_meta", None), np.ma.MaskedArray):  # Dask's; what is masked is not known yet
        raise ParameterError(name, "is a Dask array of masked values. Fill them first, with dask.array.ma.filled.")
    elif any(np.isnan(size) for size in table.shape):
        raise ParameterError(name, "does not know how long its chunks are. Call its compute_chunk_sizes() first.")
    elif not re.match(r"bool|u?int|b?float", dtype_name(table)):
        raise ParameterError(name, f"holds {dtype_name(table)} values; convert them to real numbers first.")
    if table.ndim == 1 and one_column:
        table = table[:, None]
    if table.ndim != 2:
        raise ParameterError(
            name,
            f"must be a table of shape (pairs, dimensions), but has {table.ndim} dimension(s), "
            f"shape {table.shape}. Reshape your data: {name}.reshape(-1, 1) for pairs of one number each, "
            f"or {name}.reshape(len({name}), -1) to flatten each entry.",
        )
    return table


def total_in_turn(work: TotalWork, *tables: Any) -> Any:
    """Return ``work`` of all rows, a range at a time in this very thread."""
    return merged_parts(work, (work(*_cut(tables, rows)) for rows in _ranges(tables)))


def map_in_turn(work: MapWork, *tables: Any) -> Any:
    """Return one entry per row, a range at a time in this very thread."""
    entries = np.empty(len(tables[0]), dtype=work.dtype)
    for rows in _ranges(tables):
        entries[rows] = work(*_cut(tables, rows))
    return entries


def merged_parts(work: TotalWork, parts: Iterator[Any]) -> Any:
    """Merge as the parts come, in order and a few at a time: never more than that are held."""
    few = iter(lambda: list(islice(parts, _PARTS_AT_ONCE)), [])
    return reduce(lambda total, more: work.merge([total, *more]), few, work.merge([next(parts)]))


def parts_in_threads(work: TotalWork, tables: Sequence[Any]) -> Iterator[Any]:
    """Return ``work`` of each range of rows, in order."""
    return _by_range(tables, lambda rows: work(*_cut(tables, rows)))


def filled_in_threads(work: MapWork, of_entries: TotalWork, entries: Array, tables: Sequence[Any]) -> Iterator[Any]:
    """Fill the entries and return a total over those of each range, while they are still in cache."""

    def fill(rows: slice) -> Any:
        entries[rows] = work(*_cut(tables, rows))
        return of_entries(entries[rows])

    return _by_range(tables, fill)


def range_length(tables: Sequence[Any]) -> int:
    """How many rows of these tables are one range."""
    return _rows_per_range(tables) or rows_per_narrow_range()


def blas_for(tables: Sequence[Any]) -> AbstractContextManager[None]:
    """Ranges in threads need no threads inside their matrix products; a single range may have them."""
    rows = _rows_per_range(tables)
    return nullcontext() if rows is None or len(tables[0]) <= rows else single_threaded_blas()


def _rows_per_range(tables: Sequence[Any]) -> int | None:
    """Fixed for given widths, so that sums do not depend on how many threads there are."""
    width = sum(table.shape[1] if table.ndim > 1 else 1 for table in tables)
    return None if width <= 2 * WIDEST_ROW else max(_FEWEST_WIDE_ROWS, _WIDE_RANGE_BYTES // (8 * width))


def _cut(tables: Sequence[Any], rows: slice) -> list[Array]:
    return [np.asarray(table[rows]) for table in tables]


def _by_range(tables: Sequence[Any], work: Callable[[slice], Any]) -> Iterator[Any]:
    return results_in_threads(len(tables[0]), work, _rows_per_range(tables))


def _ranges(tables: Sequence[Any]) -> Iterator[slice]:
    return iter(row_ranges(len(tables[0]), _rows_per_range(tables)))
