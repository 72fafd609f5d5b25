"""Rows in this computer's memory: ranges of them, in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.rows.fused import WIDEST_ROW
from inlier.rows.places import MapWork, TotalWork
from inlier.rows.threads import results_in_threads, row_ranges, rows_per_narrow_range, single_threaded_blas

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
        if len(tables[0]) <= range_length(tables):
            return work.merge([work(*_cut(tables, slice(None)))])
        with blas_for(tables):
            return merged_parts(work, parts_in_threads(work, tables))

    def map(self, work: MapWork, *tables: Any) -> Any:
        """Return one entry per row."""
        entries = np.empty(len(tables[0]), dtype=work.dtype)

        def fill(rows: slice) -> None:
            write_entries(work, entries[rows], *_cut(tables, rows))

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

    def from_host(self, values: Array, like: Any) -> Any:
        """Return the values as they are."""
        return values


MEMORY = MemoryPlace()


def total_in_turn(work: TotalWork, *tables: Any) -> Any:
    """Return ``work`` of all rows, a range at a time in this very thread."""
    return merged_parts(work, (work(*_cut(tables, rows)) for rows in _ranges(tables)))


def map_in_turn(work: MapWork, *tables: Any) -> Any:
    """Return one entry per row, a range at a time in this very thread."""
    entries = np.empty(len(tables[0]), dtype=work.dtype)
    for rows in _ranges(tables):
        write_entries(work, entries[rows], *_cut(tables, rows))
    return entries


def write_entries(work: MapWork, entries: Array, *blocks: Array) -> Array:
    """Fill the entries of a block, and return them; a work that can write them itself saves a copy."""
    into = getattr(work, "into", None)
    if into is None:
        entries[...] = work(*blocks)
    else:
        into(entries, *blocks)
    return entries


def merged_parts(work: TotalWork, parts: Iterator[Any]) -> Any:
    """Merge as the parts come, in order and a few at a time: never more than that are held."""
    few = iter(lambda: list(islice(parts, _PARTS_AT_ONCE)), [])
    return reduce(lambda total, more: work.merge([total, *more]), few, work.merge([next(parts)]))


def _cut(tables: Sequence[Any], rows: slice) -> list[Array]:
    return [np.asarray(table[rows]) for table in tables]


def _width(tables: Sequence[Any]) -> int:
    return sum(table.shape[1] if table.ndim > 1 else 1 for table in tables)


def range_length(tables: Sequence[Any]) -> int:
    """How many rows of these tables are one range."""
    return _rows_per_range(tables) or rows_per_narrow_range()


def _rows_per_range(tables: Sequence[Any]) -> int | None:
    """Fixed for given widths, so that sums do not depend on how many threads there are."""
    if _width(tables) <= 2 * WIDEST_ROW:
        return None
    return max(_FEWEST_WIDE_ROWS, _WIDE_RANGE_BYTES // (8 * _width(tables)))


def parts_in_threads(work: TotalWork, tables: Sequence[Any]) -> Iterator[Any]:
    """Return ``work`` of each range of rows, in order."""
    return _by_range(tables, lambda rows: work(*_cut(tables, rows)))


def filled_in_threads(work: MapWork, of_entries: TotalWork, entries: Array, tables: Sequence[Any]) -> Iterator[Any]:
    """Fill the entries and return a total over those of each range, while they are still in cache."""
    return _by_range(tables, lambda rows: of_entries(write_entries(work, entries[rows], *_cut(tables, rows))))


def _by_range(tables: Sequence[Any], work: Callable[[slice], Any]) -> Iterator[Any]:
    return results_in_threads(len(tables[0]), work, _rows_per_range(tables))


def _ranges(tables: Sequence[Any]) -> Iterator[slice]:
    return iter(row_ranges(len(tables[0]), _rows_per_range(tables)))


def blas_for(tables: Sequence[Any]) -> AbstractContextManager[None]:
    """Ranges in threads need no threads inside their matrix products; a single range may have them."""
    rows = _rows_per_range(tables)
    return nullcontext() if rows is None or len(tables[0]) <= rows else single_threaded_blas()
