"""Rows in a Dask array, on a cluster or larger than memory: only totals travel.

A pass is one task per chunk of rows and a tree of merges, so what moves between machines is the part of a chunk: for a
moment d_x d_y numbers. Rows stay where they are. Tasks depend on the chunks alone, so Dask can run any of them again
on another machine when one is lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.rows.stores import MapWork, TotalWork, map_in_turn, total_in_turn

_MERGED_AT_ONCE = 8


class DaskStore:
    """Dask arrays, cut into chunks of whole rows."""

    in_memory = False
    at_hand = False
    most_fetched = 10_000_000  # another look would compute all again

    def align(self, *tables: Any) -> tuple[Any, ...]:
        """Return the tables in chunks of the same whole rows; what is not a Dask array becomes one."""
        import dask.array as da

        chunks = next(_row_chunks(table) for table in tables if isinstance(table, da.Array))
        return tuple(_in_chunks(table, chunks) for table in tables)

    def total(self, work: TotalWork, *tables: Any) -> Any:
        """Return ``work`` of all rows, computed now by the scheduler in force."""
        return _total(work, self.align(*tables)).compute()[0]

    def map(self, work: MapWork, *tables: Any) -> Any:
        """Return one entry per row, as a Dask array that is computed when asked."""
        import dask.array as da
        from dask import delayed

        tables = self.align(*tables)
        # The work is a node of its own: it holds matrices, and so travels once to each machine, not with every task.
        shared = delayed(work, traverse=False)
        return da.blockwise(
            _map_chunk,
            (0,),
            shared,
            None,
            *_with_axes(tables),
            dtype=np.dtype(work.dtype),
            concatenate=True,
            meta=np.empty(0, dtype=work.dtype),
        )

    def map_and_total(self, work: MapWork, of_entries: TotalWork, *tables: Any) -> tuple[Any, Any]:
        """Return the map, still to be computed, and a total over its entries, computed now."""
        entries = self.map(work, *tables)
        return entries, self.total(of_entries, entries)

    def take(self, table: Any, rows: slice | Array) -> Array:
        """Return some rows as a NumPy array in this process."""
        if isinstance(rows, slice):
            return np.asarray(table[rows].compute())
        order = np.argsort(rows, kind="stable")
        taken = np.empty((order.size, *table.shape[1:]), dtype=table.dtype)
        taken[order] = table[np.asarray(rows)[order]].compute()
        return taken

    near = take

    def from_host(self, values: Array, like: Any) -> Any:
        """Return the values as a Dask array in the chunks of ``like``."""
        return _in_chunks(values, _row_chunks(like))


DASK = DaskStore()


def _row_chunks(table: Any) -> tuple[int, ...]:
    chunks: tuple[int, ...] = table.chunks[0]
    return chunks


def _in_chunks(table: Any, rows: tuple[int, ...]) -> Any:
    import dask.array as da

    whole = (rows, *((size,) for size in table.shape[1:]))
    if not isinstance(table, da.Array):
        return da.from_array(table, chunks=whole)
    return table if table.chunks == whole else table.rechunk(whole)


def _total(work: TotalWork, tables: tuple[Any, ...]) -> Any:
    """Return the total as a delayed array of one entry.

    The parts are an array with an entry per chunk, so that Dask sees which steps before it go chunk by chunk, and joins
    those of one table to the same task.
    """
    import dask.array as da
    from dask import delayed

    shared = delayed(work, traverse=False)
    # What is asked of one table holds no matrix, and goes with each task. Then the chunk is the only thing that a task
    # waits for, and Dask joins it to all that comes before: keys of the user's own steps are not in the graph. Beside
    # the passes over both tables they would be there twice, with different tasks, if both are slices of one array.
    carried = work if len(tables) == 1 and tables[0].ndim == 2 else shared
    of_chunks = da.blockwise(
        _part_of_chunk, (0,), carried, None, *_with_axes(tables), dtype=object, concatenate=True,
        adjust_chunks={0: lambda rows: 1}, meta=np.empty(0, dtype=object),
    )  # fmt: skip
    parts, merged = list(of_chunks.to_delayed().ravel()), delayed(_merged, pure=False)
    while True:
        parts = [merged(shared, parts[k : k + _MERGED_AT_ONCE]) for k in range(0, len(parts), _MERGED_AT_ONCE)]
        if len(parts) == 1:
            return parts[0]


def _with_axes(tables: tuple[Any, ...]) -> list[Any]:
    """Name the axes of each table: 0 is the rows, and each table has columns of its own."""
    return [part for k, table in enumerate(tables) for part in (table, (0, k + 1)[: table.ndim])]


def _part_of_chunk(work: TotalWork, *blocks: Any) -> Array:
    """Return the part of one chunk; in this one thread, for Dask has given the others work of their own."""
    return _boxed(total_in_turn(work, *map(np.ascontiguousarray, blocks)))


def _merged(work: TotalWork, parts: list[Array]) -> Array:
    return _boxed(work.merge([part[0] for part in parts]))


def _boxed(part: Any) -> Array:
    box = np.empty(1, dtype=object)
    box[0] = part
    return box


def _map_chunk(work: MapWork, *blocks: Any) -> Array:
    entries: Array = map_in_turn(work, *map(np.ascontiguousarray, blocks))
    return entries
