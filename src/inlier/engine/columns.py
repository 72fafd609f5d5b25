"""One pass over one set of rows: what its columns look like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier.engine.blocks import Array, FloatArray, row_blocks


@dataclass(frozen=True)
class ColumnSummary:
    """Mean, minimum and maximum of every column.

    A NaN or an infinity anywhere in a column shows in its minimum or maximum, and a constant column
    has the two equal, so this one pass is also the check for both.
    """

    n_rows: int
    mean: FloatArray
    minimum: FloatArray
    maximum: FloatArray

    @property
    def is_finite(self) -> bool:
        """Whether every value of the table is a finite number."""
        return bool(np.all(np.isfinite(self.minimum)) and np.all(np.isfinite(self.maximum)))

    @property
    def constant_columns(self) -> Array:
        """Indices of the columns that hold a single value."""
        return np.flatnonzero(self.minimum == self.maximum)

    @property
    def magnitude(self) -> FloatArray:
        """Largest absolute value of each column."""
        return np.maximum(np.abs(self.minimum), np.abs(self.maximum))

    @property
    def spread(self) -> FloatArray:
        """Largest distance of each column's values from its mean."""
        return np.maximum(self.maximum - self.mean, self.mean - self.minimum)


def summarise_columns(X: Array) -> ColumnSummary:
    """Summarise the columns of ``X`` in one pass, in float64 whatever the type of ``X``."""
    n_rows, n_columns = X.shape
    total = np.zeros(n_columns)
    minimum = np.full(n_columns, np.inf)
    maximum = np.full(n_columns, -np.inf)
    for rows in row_blocks(n_rows, n_columns):
        block = np.asarray(X[rows])
        with np.errstate(invalid="ignore", over="ignore"):  # judged by the caller, from the summary
            total += np.sum(block, axis=0, dtype=np.float64)
        np.minimum(minimum, block.min(axis=0), out=minimum)
        np.maximum(maximum, block.max(axis=0), out=maximum)
    # Rounding may carry the mean of nearly constant columns outside their range; it never belongs there.
    with np.errstate(invalid="ignore"):
        mean = np.clip(total / n_rows, minimum, maximum)
    return ColumnSummary(n_rows, mean, minimum, maximum)


def scatter_matrix(X: Array, summary: ColumnSummary, column_scale: FloatArray) -> FloatArray:
    """Sum over rows of z z^T with z = (x - mean) / column_scale, in float64."""
    n_rows, n_columns = X.shape
    scatter = np.zeros((n_columns, n_columns))
    for rows in row_blocks(n_rows, n_columns):
        block = np.subtract(X[rows], summary.mean, dtype=np.float64)
        block /= column_scale
        scatter += block.T @ block
    return scatter
