"""A column of vectors in a parquet file that need not fit into memory: read in order, a stretch at a time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np

from inlier._typing import Array
from inlier.io.formats import load
from inlier.io.table import no_vectors
from inlier.rows.vectors import NotVectorsError, from_arrow_lists

_BATCH_BYTES = 4 * 1024**2
_BUFFER = 1024**2  # bytes of the file that are held at a time; without it, a whole column of a row group would be
_MOST_ROOM = 1 / 4  # of what is free in the folder for temporary files: there are two tables


class VectorsInParquet:
    """Vectors of floating point numbers, by slices of rows; whoever reads on from where it stopped starts nothing anew.

    The first row that is there says how long they are; another length is refused where it is met.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name, self._lock = path, name, Lock()
        with self._file() as file:
            groups = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
            value_type = file.schema_arrow.field(name).type.value_type
        self._starts = np.cumsum([0, *groups])
        dtype = np.dtype(value_type.to_pandas_dtype())
        self.dtype = dtype if dtype.kind == "f" else np.dtype(np.float64)  # gaps are NaN
        self._next, self._left = -1, np.empty((0, 0))  # nothing was read
        self._rest: Iterator[Array] = iter(())
        self._width = next(self._batches(0, 1)).shape[1]
        self.shape = (int(self._starts[-1]), self._width)
        self._unpacked: _Unpacked | None = None

    def __getitem__(self, rows: slice) -> Array:
        start, stop, _ = rows.indices(self.shape[0])
        out = np.empty((max(stop - start, 0), self._width), dtype=self.dtype)
        return self.read_into(slice(start, stop), out)

    def read_into(self, rows: slice, out: Array) -> Array:
        """Read some rows into an array that is there already."""
        start, stop, _ = rows.indices(self.shape[0])
        with self._lock:
            if self._unpacked is None:
                self._unpacked = _Unpacked(self.shape[0] * self._width * self.dtype.itemsize)
            if not self._unpacked.read_into(start, out):
                self._unpack(start, stop, out)
                self._unpacked.add(start, out)
        return out

    def _unpack(self, start: int, stop: int, out: Array) -> None:
        if start != self._next:
            self._rest, self._left = self._from(start), np.empty((0, self._width))
        filled = 0
        while filled < stop - start:
            batch = self._left if len(self._left) else next(self._rest)
            part = batch[: stop - start - filled]
            out[filled : filled + len(part)] = part
            filled, self._left = filled + len(part), batch[len(part) :]
        self._next = stop

    def _from(self, row: int) -> Iterator[Array]:
        """The vectors from a row on; what stands before it in its row group is passed over."""
        group = int(np.searchsorted(self._starts, row, side="right")) - 1
        start = int(self._starts[group])
        for batch in self._batches(group, max(1, _BATCH_BYTES // (self.dtype.itemsize * self._width))):
            stop = start + len(batch)
            if stop > row:
                yield batch[max(row - start, 0) :]
            start = stop

    def _batches(self, group: int, n_rows: int) -> Iterator[Array]:
        start = int(self._starts[group])
        with self._file() as file:
            groups = range(group, file.metadata.num_row_groups)
            for batch in file.iter_batches(n_rows, row_groups=groups, columns=[self._name]):
                batch.validate(full=True)
                yield self._vectors(batch.column(0), start)
                start += len(batch)

    def _vectors(self, column: Any, start: int) -> Array:
        try:
            return from_arrow_lists(column, start, getattr(self, "_width", None))
        except NotVectorsError as error:
            raise no_vectors(self._name, self._path, error) from None

    def _file(self) -> Any:
        return load("pyarrow.parquet", "parquet").ParquetFile(self._path, buffer_size=_BUFFER, pre_buffer=False)


class _Unpacked:
    """Rows that were read before, in a file that has no name: unpacking takes several times as long as reading.

    Only rows that are read in order are kept, and none where there is little room for all of them.
    """

    def __init__(self, n_bytes: int) -> None:
        has_room = n_bytes <= shutil.disk_usage(tempfile.gettempdir()).free * _MOST_ROOM
        self._n_rows, self._file = 0, None
        if has_room:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
            finalize(self, self._file.close)

    def read_into(self, start: int, out: Array) -> bool:
        """Read some rows; False where they are not all here."""
        if self._file is None or start + len(out) > self._n_rows:
            return False
        self._file.seek(start * out[:1].nbytes)
        return self._file.readinto(out.reshape(-1).view(np.uint8).data) == out.nbytes

    def add(self, start: int, rows: Array) -> None:
        """Keep some rows."""
        if self._file is None or start != self._n_rows:
            return
        try:
            self._file.seek(start * rows[:1].nbytes)
            is_kept = self._file.write(rows.reshape(-1).view(np.uint8).data) == rows.nbytes
        except OSError:
            is_kept = False
        if is_kept:
            self._n_rows += len(rows)
        else:  # no room after all: they are unpacked each time
            self._file = None
