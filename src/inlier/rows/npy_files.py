"""A table in an ``.npy`` file, read by plain reads, row by row in whichever order it is stored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array


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
            raise ValueError(f"{self._path} holds Python objects, which are never loaded. Save it again as numbers.")
        self.ndim = len(self.shape)
        self._row_numbers = int(np.prod(self.shape[1:], dtype=np.int64))
        if self._path.stat().st_size < self._start + self.shape[0] * self._row_numbers * self.dtype.itemsize:
            present = (self._path.stat().st_size - self._start) // max(self._row_numbers * self.dtype.itemsize, 1)
            missing = "column after column" if self._by_columns else f"row {present} is missing"
            raise ValueError(f"{self._path} is cut short: {missing}. Copy or save it again.")

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> Array:
        start, stop, _ = rows.indices(self.shape[0])
        return self.read_into(rows, np.empty((max(stop - start, 0), *self.shape[1:]), dtype=self.dtype))

    def read_into(self, rows: slice, out: Array) -> Array:
        """Read some rows into an array that is there already: fresh memory costs as much as the reading."""
        start = rows.indices(self.shape[0])[0]
        with self._path.open("rb", buffering=0) as stream:
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
        left = out.view(np.uint8).data
        while len(left):
            n_read = stream.readinto(left)
            if not n_read:
                raise ValueError(f"{self._path} was cut short while it was read.")
            left = left[n_read:]
