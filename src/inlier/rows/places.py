"""The slot: where rows live, and how a function of a block of rows is applied to all of them.

Everything this package computes is one of two things: a *total* over rows, small enough to travel, or a *map* from
each row to one number. A place says how: which blocks, in which order, on which machine. What is done to a block is
said once, in `inlier.rows.block_work`, and the algorithms above know neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from array_api_compat import is_dask_array

from inlier._typing import Array
from inlier.rows.namespaces import is_device_array, is_host_array


class TotalWork(Protocol):
    """What a block adds to a total. It must be picklable: some places send it to other processes."""

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


class Place(Protocol):
    """Where rows live. Tables and vectors handed to one call have a row for each row."""

    name: str
    keeps_vectors: bool  # a map is computed once and kept; otherwise again whenever it is read

    def align(self, *tables: Any) -> tuple[Any, ...]:
        """Return the tables in the form in which this place reads them together."""

    def total(self, work: TotalWork, *tables: Any) -> Any:
        """Return ``work`` of all rows."""

    def map(self, work: MapWork, *tables: Any) -> Any:
        """Return one entry per row, in kind: where, and as what, the tables are."""

    def map_and_total(self, work: MapWork, of_entries: TotalWork, *tables: Any) -> tuple[Any, Any]:
        """Return the map and a total over its entries, reading the tables once."""

    def take(self, table: Any, rows: slice | Array) -> Array:
        """Return some rows as a NumPy array."""

    def from_host(self, values: Array, like: Any) -> Any:
        """Return n numbers that were computed here as a vector of this place, beside ``like``."""


def as_elsewhere(data: Any) -> Any:
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


def place_of(*tables: Any) -> Place:
    """Return the place that reads these tables together."""
    if all(is_host_array(table) for table in tables):
        from inlier.rows.memory import MEMORY

        return MEMORY
    if any(is_dask_array(table) for table in tables):
        from inlier.rows.dask_arrays import DASK

        _refuse_mixture(tables, lambda table: is_dask_array(table) or is_host_array(table))
        return DASK
    if any(is_device_array(table) for table in tables):
        from inlier.rows.device import DEVICE

        _refuse_mixture(tables, is_device_array)
        return DEVICE
    from inlier.rows.files import place_of_files

    return place_of_files(tables)


def _refuse_mixture(tables: Sequence[Any], belongs: Any) -> None:
    if not all(belongs(table) for table in tables):
        kinds = " and ".join(f"{type(table).__module__}.{type(table).__name__}" for table in tables)
        raise ValueError(f"X and y live in different places: {kinds}. Bring one of them to the other's first.")
