"""Rows in files: read in order, a stretch at a time, so that memory stays flat however long the file is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from inlier.engine.blocks import Array
from inlier.engine.in_memory import MEMORY
from inlier.engine.place import MapWork, TotalWork

_STRETCH_BYTES = 16 * 1024**2  # of all tables together, as float64


class StoredRows:
    """A table that is read by slices of rows: a zarr array, an HDF5 dataset, a memory map, or `NpyFile`.

    Parameters
    ----------
    source : object with ``shape``, ``dtype`` and slices of rows
        What is read. Nothing else is asked of it.
    keep_vectors : bool, default=True
        Whether n numbers per row (scores, masks) are kept in memory, or computed again each time they are read.
    on_read : callable, optional
        Called with the number of bytes of each stretch that was read.
    """

    def __init__(self, source: Any, *, keep_vectors: bool = True, on_read: Callable[[int], None] | None = None) -> None:
        self._source, self.keep_vectors, self._on_read = source, keep_vectors, on_read
        self.shape: tuple[int, ...] = tuple(int(size) for size in source.shape)
        self.dtype = np.dtype(source.dtype)
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        block = np.asarray(self._source[rows])
        if self._on_read is not None:
            self._on_read(block.nbytes)
        return block


class ComputedRows:
    """n numbers that are computed from rows in files whenever some of them are read; ``np.asarray`` has them all."""

    ndim = 1
    keep_vectors = False

    def __init__(self, work: MapWork, tables: tuple[Any, ...]) -> None:
        self._work, self.tables = work, tables
        self.shape = (int(tables[0].shape[0]),)
        self.dtype = np.dtype(work.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        entries: Array = MEMORY.map(self._work, *(table[rows] for table in self.tables))
        return entries

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        values = np.empty(self.shape, dtype=self.dtype)
        for rows in stretches(self.tables):
            values[rows] = self[rows]
        return values if dtype is None else values.astype(dtype)


class NpyFile:
    """A table in an ``.npy`` file, read by plain reads: its pages are not mapped into memory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        with self._path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            self.shape, by_columns, self.dtype = read(stream)
            self._start = stream.tell()
        if by_columns or self.dtype.hasobject:
            order = "column after column" if by_columns else "as Python objects"
            raise ValueError(
                f"{self._path} holds its numbers {order}, so that rows cannot be read one after the other. "
                f"Save it again with np.save(path, np.ascontiguousarray(table)), as numbers."
            )

    def __getitem__(self, rows: slice) -> Array:
        start, stop, _ = rows.indices(self.shape[0])
        width = int(np.prod(self.shape[1:], dtype=np.int64))
        offset = self._start + start * width * self.dtype.itemsize
        values = np.fromfile(self._path, self.dtype, max(stop - start, 0) * width, offset=offset)
        if values.size != max(stop - start, 0) * width:
            raise ValueError(f"{self._path} is cut short: row {start + values.size // max(width, 1)} is missing.")
        return values.reshape(-1, *self.shape[1:])


class FilePlace:
    """Rows in files: stretches in order, each handled as rows in memory are."""

    def __init__(self, keeps_vectors: bool) -> None:
        self.keeps_vectors = keeps_vectors

    name = "files"

    def align(self, *tables: Any) -> tuple[Any, ...]:
        """Return the tables as they are."""
        return tables

    def total(self, work: TotalWork, *tables: Any) -> Any:
        """Return ``work`` of all rows."""
        parts = (MEMORY.total(work, *_read(tables, rows)) for rows in stretches(tables))
        return reduce(lambda total, part: work.merge([total, part]), parts)

    def map(self, work: MapWork, *tables: Any) -> Any:
        """Return one entry per row, in memory or computed when read."""
        lazy = ComputedRows(work, tables)
        return np.asarray(lazy) if self.keeps_vectors else lazy

    def map_and_total(self, work: MapWork, of_entries: TotalWork, *tables: Any) -> tuple[Any, Any]:
        """Return the map and a total over its entries, in one reading."""
        lazy = ComputedRows(work, tables)
        entries = np.empty(lazy.shape, lazy.dtype) if self.keeps_vectors else None
        parts: list[Any] = []
        for rows in stretches(tables):
            values, part = MEMORY.map_and_total(work, of_entries, *_read(tables, rows))
            parts = [of_entries.merge([*parts, part])]
            if entries is not None:
                entries[rows] = values
        return (lazy if entries is None else entries), parts[0]

    def take(self, table: Any, rows: slice | Array) -> Array:
        """Return some rows; scattered ones are picked out of the stretches in which they lie."""
        if isinstance(rows, slice):
            return np.asarray(table[rows])
        wanted = np.asarray(rows)
        order = np.argsort(wanted, kind="stable")
        rising = wanted[order]
        taken = np.empty((wanted.size, *table.shape[1:]), dtype=table.dtype)
        for stretch in stretches((table,)):
            first, last = np.searchsorted(rising, [stretch.start, stretch.stop])
            if first < last:
                taken[order[first:last]] = np.asarray(table[stretch])[rising[first:last] - stretch.start]
        return taken

    def from_host(self, values: Array, like: Any) -> Any:
        """Return the values as they are."""
        return values


def place_of_files(tables: tuple[Any, ...]) -> FilePlace:
    """Return the place for tables of which at least one is in a file."""
    return FilePlace(all(getattr(table, "keep_vectors", True) for table in tables))


def stretches(tables: tuple[Any, ...]) -> Iterator[slice]:
    """Slices that cover all rows in order; each ends with a chunk of the file where it is kept in chunks."""
    n_rows = int(tables[0].shape[0])
    tables = tuple(source for table in tables for source in sources_of(table))  # what is read in the end
    width = sum(int(np.prod(table.shape[1:], dtype=np.int64)) for table in tables)
    step = max(1, _STRETCH_BYTES // (8 * max(width, 1)))
    chunk = max(_chunk_rows(table) for table in tables)
    if 1 < chunk <= 4 * step:
        step = chunk * max(1, step // chunk)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def sources_of(table: Any) -> tuple[Any, ...]:
    """The tables that are read when this one is."""
    if not isinstance(table, ComputedRows):
        return (table,)
    return tuple(source for below in table.tables for source in sources_of(below))


def _chunk_rows(table: Any) -> int:
    chunks = getattr(getattr(table, "_source", None), "chunks", None)
    return int(chunks[0]) if chunks else 1


def _read(tables: tuple[Any, ...], rows: slice) -> list[Array]:
    return [np.ascontiguousarray(table[rows]) for table in tables]
