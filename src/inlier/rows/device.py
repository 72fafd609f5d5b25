"""Rows on a device (torch, CuPy) or in any other library of the array API: whole arrays at once, there.

Only totals come to the host, and only small matrices go to the device.
"""

from __future__ import annotations

from typing import Any

from inlier._typing import Array
from inlier.rows.namespaces import from_host, take_rows, to_host
from inlier.rows.places import MapWork, TotalWork


class DevicePlace:
    """Arrays of the array API, on the device they are on."""

    name = "device"
    keeps_vectors = True

    def align(self, *tables: Any) -> tuple[Any, ...]:
        """Return the tables as they are."""
        return tables

    def total(self, work: TotalWork, *tables: Any) -> Any:
        """Return ``work`` of all rows; the work itself cuts them into pieces where it needs room."""
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

    def from_host(self, values: Array, like: Any) -> Any:
        """Return the values on the device of ``like``."""
        return from_host(values, like)


DEVICE = DevicePlace()
