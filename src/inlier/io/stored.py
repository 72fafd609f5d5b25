"""Open a table without reading it: npy, zarr and hdf5, whose rows can be read a stretch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.io.array_stores import stored_in_hdf5, stored_in_zarr
from inlier.io.formats import check_readable, format_of, request_of
from inlier.io.table import Request, column_places
from inlier.rows.files import NpyFile

_OPENERS = {"npy": lambda request: {"": NpyFile(request.path)}, "hdf5": stored_in_hdf5, "zarr": stored_in_zarr}


@dataclass(frozen=True, eq=False)
class StoredTable:
    """Numbers that stay in their file, a row per point.

    Attributes
    ----------
    values : object with ``shape``, ``dtype`` and slices of rows
        The whole table, of shape (n, d).
    columns : list of int, optional
        Those that were asked for.
    source : Path
        The file.
    """

    values: Any
    columns: list[int] | None
    source: Path

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def n_columns(self) -> int:
        """How many columns were asked for."""
        return int(self.values.shape[1]) if self.columns is None else len(self.columns)

    @property
    def n_bytes(self) -> int:
        """How many bytes a reading of the whole table takes."""
        return len(self) * int(self.values.shape[1]) * np.dtype(self.values.dtype).itemsize


class _OneColumn:
    """A list of numbers as a table of one column."""

    def __init__(self, values: Any) -> None:
        self._values, self.dtype, self.shape = values, values.dtype, (int(values.shape[0]), 1)
        self.chunks = getattr(values, "chunks", None)

    def __getitem__(self, rows: slice) -> Array:
        return np.asarray(self._values[rows]).reshape(-1, 1)


def open_stored(source: str | Path, *, columns: Sequence[str] | None = None) -> StoredTable | None:
    """Open the table that `read_table` would read; None where that is not one array of numbers, kept by rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from inlier.io import open_stored
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "x.npy", np.ones((1000, 3)))
    ...     table = open_stored(Path(folder) / "x.npy", columns=["2"])
    ...     len(table), table.n_columns, table.n_bytes
    (1000, 1, 24000)
    """
    request = request_of(source, columns=columns)
    format = format_of(request.path)
    if format.name not in _OPENERS or (request.inside is not None and format.name == "npy"):
        return None
    check_readable(request.path, format)
    try:
        values = _only(_OPENERS[format.name](request), request)
    except (ValueError, OSError, KeyError):  # `read_table` says what is wrong with it
        return None
    if values is None or np.dtype(values.dtype).kind not in "biuf" or len(values.shape) not in (1, 2):
        return None
    table = _OneColumn(values) if len(values.shape) == 1 else values
    return StoredTable(table, column_places(request, int(table.shape[1])), request.path)


def _only(arrays: dict[str, Any], request: Request) -> Any:
    """The array that was asked for, or the only one there is."""
    if request.inside is not None and "" not in arrays:
        return arrays.get(request.inside)
    there = [array for array in arrays.values() if len(array.shape) > 0]
    return there[0] if len(there) == 1 else None
