"""One side of a pair: a row, and the few numbers of it that are compared. The same numbers in any batch, bit for bit.

A matrix product adds in an order that depends on the shape, the machine and the number of threads, so the last bits of
a row's result depend on the rows beside it. Here they do not: a row and a column are brought to whole numbers, each in
a unit of its own, a power of two, and so short that all sums of their products are whole numbers below 2^53. These are
exact, in whatever order they are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray

_EXACT_BITS = 52  # of a whole number that a float64 holds, less one for the rounding of the factors


def bits_for(length: int) -> int:
    """Bits that each of two factors may have, so that so many products add up exactly."""
    return (_EXACT_BITS - int(length - 1).bit_length()) // 2


def whole_rows(rows: FloatArray, bits: int) -> tuple[FloatArray, Array]:
    """Rows as whole numbers of so many bits, and the power of two that each is in units of."""
    exponents = np.frexp(np.max(np.abs(rows), axis=1, initial=0.0))[1] - bits
    return np.rint(np.ldexp(rows, -exponents[:, None])), exponents


@dataclass(frozen=True, eq=False)
class Side:
    """features(x) = offset + (x - mean) matrix, for rows that are first scaled to unit length where that was done."""

    columns: Array  # of the table, that are compared
    n_columns: int  # of the table
    mean: FloatArray  # what a missing value counts as
    shortest: float  # rows no longer than this have no direction; negative where rows keep their length
    mean_of_unit: FloatArray
    matrix: FloatArray
    offset: FloatArray

    def features(self, rows: Array) -> FloatArray:
        """The numbers that are compared, of each row: a column for each."""
        bits = bits_for(self.columns.size)
        centred = rows[:, self.columns].astype(np.float64) - self.mean
        centred[np.isnan(centred)] = 0.0
        if self.shortest >= 0:
            centred = self._of_unit_length(centred, bits) - self.mean_of_unit
        whole, of_rows = whole_rows(centred, bits)
        columns, of_columns = self._whole_columns
        exact = columns @ whole.T
        return np.ldexp(exact, of_columns[:, None] + of_rows) + self.offset[:, None]

    @cached_property
    def _whole_columns(self) -> tuple[FloatArray, Array]:
        return whole_rows(self.matrix.T.astype(np.float64), bits_for(self.columns.size))

    def _of_unit_length(self, centred: FloatArray, bits: int) -> FloatArray:
        whole, exponents = whole_rows(centred, bits)
        length = np.sqrt(np.ldexp(np.einsum("ij,ij->i", whole, whole), 2 * exponents))
        has_direction = length > self.shortest
        unit: FloatArray = np.where(has_direction[:, None], centred / np.where(has_direction, length, 1.0)[:, None], 0)
        return unit

    def arrays(self) -> dict[str, Array]:
        """What is stored."""
        return {
            "columns": self.columns.astype(np.int32),
            "n_columns": np.array(self.n_columns),
            "mean": self.mean,
            "shortest": np.array(self.shortest),
            "mean_of_unit": self.mean_of_unit,
            "matrix": self.matrix.astype(np.float32),
            "offset": self.offset,
        }

    @staticmethod
    def of_arrays(arrays: dict[str, Any]) -> Side:
        """The same from what was stored; ValueError where it does not fit together."""
        side = Side(
            arrays["columns"].astype(np.int64),
            int(arrays["n_columns"]),
            arrays["mean"].astype(np.float64),
            float(arrays["shortest"]),
            arrays["mean_of_unit"].astype(np.float64),
            arrays["matrix"].astype(np.float32),
            arrays["offset"].astype(np.float64),
        )
        d, r = side.matrix.shape
        shapes = side.columns.shape, side.mean.shape, side.mean_of_unit.shape, side.offset.shape
        in_table = side.columns.size == 0 or (side.columns.min() >= 0 and side.columns.max() < side.n_columns)
        if shapes != ((d,), (d,), (d,), (r,)) or not in_table:
            raise ValueError("the parts of a side do not fit together")
        return side
