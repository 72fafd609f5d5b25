"""Rows in this computer's memory: ranges of them, in threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np

from inlier.engine.blocks import Array
from inlier.engine.fused import WIDEST_ROW
from inlier.engine.place import MapWork, TotalWork
from inlier.engine.threads import results_in_threads, row_ranges, single_threaded_blas

_WIDE_RANGE_BYTES = 16 * 1024**2  # wide rows: short ranges, so that all threads have some
_FEWEST_WIDE_ROWS = 4096
_PARTS_AT_ONCE = 8


class MemoryPlace:
    """NumPy arrays, memory maps among them: ranges of fixed size, in threads, merged in order."""

    name = "memory"
    keeps_vectors = True

    def align(self, *tables: Any) -> tuple[Any, ...]:
        """Return the tables as they are."""
        return tables

    def total(self, work: TotalWork, *tables: Any) -> Any:
        """Return ``work`` of all rows."""
        with _blas_for(tables):
            return _merged(work, _parts(tables, lambda rows: work(*_cut(tables, rows))))

    def map(self, work: MapWork, *tables: Any) -> Any:
        """Return one entry per row."""
        entries = np.empty(len(tables[0]), dtype=work.dtype)

        def fill(rows: slice) -> None:
            _write(work, entries[rows], _cut(tables, rows))

        with _blas_for(tables):
            for _ in _parts(tables, fill):
                pass
        return entries

    def map_and_total(self, work: MapWork, of_entries: TotalWork, *tables: Any) -> tuple[Any, Any]:
        """Return the map, and the total over its entries while they are still in cache."""
        entries = np.empty(len(tables[0]), dtype=work.dtype)

        def fill(rows: slice) -> Any:
            _write(work, entries[rows], _cut(tables, rows))
            return of_entries(entries[rows])

        with _blas_for(tables):
            return entries, _merged(of_entries, _parts(tables, fill))

    def take(self, table: Any, rows: slice | Array) -> Array:
        """Return some rows."""
        return np.asarray(table[rows])

    def from_host(self, values: Array, like: Any) -> Any:
        """Return the values as they are."""
        return values


MEMORY = MemoryPlace()


def total_in_turn(work: TotalWork, *tables: Any) -> Any:
    """Return ``work`` of all rows, a range at a time in this very thread."""
    return _merged(work, (work(*_cut(tables, rows)) for rows in _ranges(tables)))


def map_in_turn(work: MapWork, *tables: Any) -> Any:
    """Return one entry per row, a range at a time in this very thread."""
    entries = np.empty(len(tables[0]), dtype=work.dtype)
    for rows in _ranges(tables):
        _write(work, entries[rows], _cut(tables, rows))
    return entries


def _write(work: MapWork, entries: Array, blocks: list[Array]) -> None:
    """Fill the entries of a block; a work that can write them itself saves a copy."""
    into = getattr(work, "into", None)
    if into is None:
        entries[...] = work(*blocks)
    else:
        into(entries, *blocks)


def _merged(work: TotalWork, parts: Iterator[Any]) -> Any:
    """Merge as the parts come, in order and a few at a time: never more than that are held."""
    few = iter(lambda: list(islice(parts, _PARTS_AT_ONCE)), [])
    return reduce(lambda total, more: work.merge([total, *more]), few, work.merge([next(parts)]))


def _cut(tables: tuple[Any, ...], rows: slice) -> list[Array]:
    return [np.asarray(table[rows]) for table in tables]


def _width(tables: tuple[Any, ...]) -> int:
    return sum(table.shape[1] if table.ndim > 1 else 1 for table in tables)


def _rows_per_range(tables: tuple[Any, ...]) -> int | None:
    """Fixed for given widths, so that sums do not depend on how many threads there are."""
    if _width(tables) <= 2 * WIDEST_ROW:
        return None
    return max(_FEWEST_WIDE_ROWS, _WIDE_RANGE_BYTES // (8 * _width(tables)))


def _parts(tables: tuple[Any, ...], work: Any) -> Iterator[Any]:
    return results_in_threads(len(tables[0]), work, _rows_per_range(tables))


def _ranges(tables: tuple[Any, ...]) -> Iterator[slice]:
    return iter(row_ranges(len(tables[0]), _rows_per_range(tables)))


def _blas_for(tables: tuple[Any, ...]) -> AbstractContextManager[None]:
    """Ranges in threads need no threads inside their matrix products; a single range may have them."""
    rows = _rows_per_range(tables)
    return nullcontext() if rows is None or len(tables[0]) <= rows else single_threaded_blas()
