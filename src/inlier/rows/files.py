"""Rows in files: read in order, a stretch at a time, so that memory stays flat however long the file is.

A stretch is cut where rows in memory are cut, and its parts are merged in the same order: the answer is the same to
the last bit as that of the same rows in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.progress import track
from inlier.rows.stores import (
    MEMORY,
    MapWork,
    TotalWork,
    blas_for,
    filled_in_threads,
    merged_parts,
    parts_in_threads,
    range_length,
)
from inlier.rows.threads import one_ahead, thread_count

_STRETCH_BYTES = 16 * 1024**2  # of all tables together, as float64
_LARGEST_STRETCH = 16 * _STRETCH_BYTES  # for wide rows, so that every thread has some
_LARGEST_CHUNK = 4  # stretches that a chunk of the file may be long for stretches to end with chunks


class StoredRows:
    """A table that is read by slices of rows: a zarr array, an HDF5 dataset, a memory map, or `NpyFile`.

    Parameters
    ----------
    source : object with ``shape``, ``dtype`` and slices of rows
        What is read. Nothing else is asked of it.
    keep_vectors : bool, default=True
        Whether vectors of one number per row (scores, masks) are kept in memory, or computed again whenever read.
    on_read : callable, optional
        Called with the number of bytes of each stretch that was read.
    columns : list of int, optional
        Columns to keep of those that are read; a list of numbers has one.
    """

    def __init__(
        self,
        source: Any,
        *,
        keep_vectors: bool = True,
        on_read: Callable[[int], None] | None = None,
        columns: list[int] | None = None,
    ) -> None:
        self._source, self.keep_vectors, self._on_read, self._columns = source, keep_vectors, on_read, columns
        shape = tuple(int(size) for size in source.shape)
        self.shape = shape if columns is None else (shape[0], len(columns))
        self.dtype = np.dtype(source.dtype)
        self.ndim = len(self.shape)
        self.row_bytes = int(np.prod(shape[1:], dtype=np.int64)) * self.dtype.itemsize  # of what is read

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        block = self.read(rows)
        self.was_read(len(block))
        return block

    def read(self, rows: Any, buffer: Array | None = None) -> Array:
        """Return some rows, without a word to ``on_read``; in the buffer if they can be read into it."""
        into = getattr(self._source, "read_into", None)
        if buffer is not None and into is not None and self._columns is None:
            return np.asarray(into(rows, buffer))
        block = np.asarray(self._source[rows])
        return block if self._columns is None else block.reshape(len(block), -1)[:, self._columns]

    def reporting_to(self, on_read: Callable[[int], None] | None) -> StoredRows:
        """The same rows, keeping no vectors and telling ``on_read``."""
        return StoredRows(self._source, keep_vectors=False, on_read=on_read, columns=self._columns)

    def was_read(self, n_rows: int) -> None:
        """Tell ``on_read``."""
        if self._on_read is not None:
            self._on_read(n_rows * self.row_bytes)

    @property
    def n_bytes(self) -> int:
        """How many bytes a reading of the whole table takes."""
        return len(self) * self.row_bytes

    @property
    def chunk_rows(self) -> int:
        """Rows that the file keeps together; 1 where it does not say."""
        chunks = getattr(self._source, "chunks", None)
        return int(chunks[0]) if chunks else 1


class NpyFile:
    """A table in an ``.npy`` file: its pages are not mapped into memory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        with self._path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            self.shape, self._by_columns, self.dtype = read(stream)
            self._start = stream.tell()
        if self.dtype.hasobject:
            raise ValueError(
                f"{self._path} holds Python objects (a pickle), which are never loaded because loading can run code. "
                f"Save numbers instead: numpy.save(file, array.astype(float))."
            )
        if min(self.shape, default=0) < 0:  # which numpy takes for "as many as there are"
            raise ValueError(f"{self._path} announces the shape {self.shape}. Save it again.")
        self._row_numbers = prod(self.shape[1:])
        if self._path.stat().st_size < self._start + prod(self.shape) * self.dtype.itemsize:
            present = (self._path.stat().st_size - self._start) // max(self._row_numbers * self.dtype.itemsize, 1)
            missing = "column after column" if self._by_columns else f"row {present} is missing"
            raise ValueError(f"{self._path} is cut short: {missing}. Copy or save it again.")

    def __getitem__(self, rows: slice) -> Array:
        start, stop, _ = rows.indices(self.shape[0])
        return self.read_into(rows, np.empty((max(stop - start, 0), *self.shape[1:]), dtype=self.dtype))

    def read_into(self, rows: slice, out: Array) -> Array:
        """Read some rows into an array that is there already: fresh memory costs as much as the reading."""
        start = rows.indices(self.shape[0])[0]
        with self._path.open("rb") as stream:
            if not self._by_columns or self._row_numbers <= 1:
                self._fill(stream, start * self._row_numbers, out.reshape(-1))
                return out
            table = np.empty((self._row_numbers, len(out)), dtype=self.dtype)
            for number, column in enumerate(table):
                self._fill(stream, number * self.shape[0] + start, column)
        out[...] = table.T.reshape(out.shape, order="F")
        return out

    def _fill(self, stream: Any, first: int, out: Array) -> None:
        stream.seek(self._start + first * self.dtype.itemsize)
        if stream.readinto(out.view(np.uint8).data) < out.nbytes:
            raise ValueError(f"{self._path} was cut short while it was read.")


class ComputedRows:
    """n numbers that are computed from rows in files whenever some of them are read; ``np.asarray`` has them all."""

    ndim = 1
    keep_vectors = False

    def __init__(self, work: MapWork, tables: tuple[Any, ...]) -> None:
        self.work, self.tables = work, tables
        self.shape = (int(tables[0].shape[0]),)
        self.dtype = np.dtype(work.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        return MEMORY.map(self.work, *(np.asarray(table[rows]) for table in self.tables))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        values = np.empty(self.shape, dtype=self.dtype)
        for rows, (block,) in blocks_of(self):
            values[rows] = block
        return values if dtype is None else values.astype(dtype)


class FileStore:
    """Rows in files: stretches in order, each handled as rows in memory are."""

    in_memory = False
    at_hand = False

    def __init__(self, tables: tuple[Any, ...]) -> None:
        self._keeps_vectors = all(getattr(table, "keep_vectors", True) for table in tables)
        # where vectors are not kept, another look would read all again
        self.most_fetched = MEMORY.most_fetched if self._keeps_vectors else 10_000_000

    def align(self, *tables: Any) -> tuple[Any, ...]:
        """Return the tables as they are."""
        return tables

    def total(self, work: TotalWork, *tables: Any) -> Any:
        """Return ``work`` of all rows."""
        stretches = (blocks for _, blocks in _cut_anew(blocks_of(*tables), range_length(tables)))
        with blas_for(tables):
            return merged_parts(work, (part for blocks in stretches for part in parts_in_threads(work, blocks)))

    def map(self, work: MapWork, *tables: Any) -> Any:
        """Return one entry per row, in memory or computed when read."""
        lazy = ComputedRows(work, tables)
        return np.asarray(lazy) if self._keeps_vectors else lazy

    def map_and_total(self, work: MapWork, of_entries: TotalWork, *tables: Any) -> tuple[Any, Any]:
        """Return the map and a total over its entries, in one reading."""
        lazy = ComputedRows(work, tables)
        kept = np.empty(lazy.shape, lazy.dtype) if self._keeps_vectors else None

        def parts() -> Iterator[Any]:
            for rows, blocks in blocks_of(*tables):
                entries = np.empty(len(blocks[0]), lazy.dtype) if kept is None else kept[rows]
                yield from filled_in_threads(work, of_entries, entries, blocks)

        with blas_for(tables):
            total = merged_parts(of_entries, parts())
        return (lazy if kept is None else kept), total

    def take(self, table: Any, rows: slice | Array) -> Array:
        """Return some rows; scattered ones are picked out of the stretches in which they lie."""
        if isinstance(rows, slice):
            return np.asarray(table[rows])
        wanted = np.asarray(rows)
        order = np.argsort(wanted, kind="stable")
        rising = wanted[order]
        taken = np.empty((wanted.size, *table.shape[1:]), dtype=table.dtype)
        for stretch, (block,) in blocks_of(table):
            first, last = np.searchsorted(rising, [stretch.start, stretch.stop])
            taken[order[first:last]] = block[rising[first:last] - stretch.start]
        return taken

    near = take

    def from_host(self, values: Array, like: Any) -> Any:
        """Return the values as they are."""
        return values


def blocks_of(*tables: Any) -> Iterator[tuple[slice, list[Array]]]:
    """Read what these tables are made of once and in step; yield the rows of each stretch, and the tables' part in it.

    What is computed from the same rows is computed once: a mask, its scores and their p-values cost one reading.
    """
    sources = list({id(source): source for table in tables for source in _sources_of(table)}.values())
    with blas_for(sources):
        for rows, stored in _cut_anew(_read(sources), range_length(sources)):
            known = {id(source): block for source, block in zip(sources, stored, strict=True)}
            yield rows, [_part_of(table, known) for table in tables]


def _part_of(table: Any, known: dict[int, Array]) -> Array:
    if id(table) not in known:
        known[id(table)] = MEMORY.map(table.work, *(_part_of(below, known) for below in table.tables))
    return known[id(table)]


def _sources_of(table: Any) -> list[Any]:
    """The tables that are read when this one is."""
    is_computed = isinstance(table, ComputedRows)
    return [source for below in table.tables for source in _sources_of(below)] if is_computed else [table]


def stretches(sources: list[Any]) -> Iterator[slice]:
    """Slices that cover all rows in order; each ends with a chunk of the file where it is kept in chunks."""
    width = sum(int(np.prod(source.shape[1:], dtype=np.int64)) for source in sources)
    unit, unit_bytes = range_length(sources), 8 * max(width, 1) * range_length(sources)
    n_units = max(1, _STRETCH_BYTES // unit_bytes)
    if unit_bytes * thread_count() <= _LARGEST_STRETCH:
        n_units = -(-n_units // thread_count()) * thread_count()  # as much for each thread
    step = unit * n_units
    chunk = max(getattr(source, "chunk_rows", 1) for source in sources)
    if 1 < chunk <= _LARGEST_CHUNK * step:
        step = chunk * max(1, step // chunk)
    n_rows = int(sources[0].shape[0])
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _read(sources: list[Any]) -> Iterator[tuple[slice, list[Array]]]:
    """Read the stretches, each while the one before it is at work."""
    ahead = list(stretches(sources))
    longest = max((rows.stop - rows.start for rows in ahead), default=0)
    stored = [source for source in sources if isinstance(source, StoredRows)]
    # Two sets of buffers in turn: one is read into while the other is at work.
    buffers = [{id(source): np.empty((longest, *source.shape[1:]), source.dtype) for source in stored} for _ in "ab"]

    def rows_of(source: Any, rows: slice, buffer: Array | None) -> Array:
        part = source[rows] if buffer is None else source.read(rows, buffer[: rows.stop - rows.start])
        return np.ascontiguousarray(part)

    def blocks(number: int) -> list[Array]:
        return [rows_of(source, ahead[number], buffers[number % 2].get(id(source))) for source in sources]

    read_ahead = zip(ahead, one_ahead(blocks, len(ahead)), strict=True)
    for rows, read in track("stretches of the files", read_ahead, len(ahead)):
        for source in stored:
            source.was_read(rows.stop - rows.start)
        yield rows, read


def _cut_anew(pieces: Iterator[tuple[slice, list[Array]]], unit: int) -> Iterator[tuple[slice, list[Array]]]:
    """Cut stretches so that each but the last is a multiple of ``unit`` long; what is left over goes to the next."""
    start, rest = 0, None
    for rows, blocks in pieces:
        if rest is not None:
            blocks = [np.concatenate(both) for both in zip(rest, blocks, strict=True)]
        whole = (rows.stop - start) // unit * unit
        if whole:
            yield slice(start, start + whole), [block[:whole] for block in blocks]
        start += whole
        rest = [block[whole:].copy() for block in blocks] if start < rows.stop else None
    if rest is not None:
        yield slice(start, start + len(rest[0])), rest
