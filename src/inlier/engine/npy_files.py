"""A table in an ``.npy`` file, read by plain reads, row by row in whichever order it is stored."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from inlier.engine.blocks import Array


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
        count = max(stop - start, 0)
        if not self._by_columns or self._row_numbers <= 1:
            values = self._numbers(start * self._row_numbers, count * self._row_numbers)
            return values.reshape(-1, *self.shape[1:])
        columns = [self._numbers(column * self.shape[0] + start, count) for column in range(self._row_numbers)]
        return np.stack(columns, axis=1).reshape(-1, *self.shape[1:], order="F")

    def _numbers(self, first: int, count: int) -> Array:
        offset = self._start + first * self.dtype.itemsize
        values = np.fromfile(self._path, self.dtype, count, offset=offset)
        if values.size != count:
            raise ValueError(f"{self._path} was cut short while it was read.")
        return values
