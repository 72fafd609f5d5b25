"""One pass over one set of rows: what its columns look like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from inlier.engine.blocks import Array, FloatArray, row_blocks
from inlier.engine.fused import as_line, kernels_for
from inlier.engine.threads import run_in_threads


@dataclass(frozen=True)
class ColumnSummary:
    """Mean, minimum and maximum of every column.

    A NaN anywhere in a column makes its mean NaN, an infinity shows in its minimum or maximum, and a
    constant column has the two equal, so this one pass is also the check for all three.
    """

    n_rows: int
    mean: FloatArray
    minimum: FloatArray
    maximum: FloatArray

    @property
    def is_finite(self) -> bool:
        """Whether every value of the table is a finite number."""
        return all(bool(np.isfinite(values).all()) for values in (self.mean, self.minimum, self.maximum))

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
    kernels = kernels_for(X)
    if kernels is not None:
        line = as_line(X)
        parts = run_in_threads(n_rows, lambda rows: kernels.column_summary(line, n_columns, rows.start, rows.stop))
    else:
        parts = [_summarise_block(np.asarray(X[rows])) for rows in row_blocks(n_rows, n_columns)]
    totals, minima, maxima = (np.array(column) for column in zip(*parts, strict=True))
    with np.errstate(invalid="ignore", over="ignore"):  # judged by the caller, from the summary
        minimum, maximum = minima.min(axis=0).astype(np.float64), maxima.max(axis=0).astype(np.float64)
        # Rounding may carry the mean of a nearly constant column outside its range; it never belongs there.
        mean = np.clip(totals.sum(axis=0) / n_rows, minimum, maximum)
    return ColumnSummary(n_rows, mean, minimum, maximum)


def _summarise_block(block: Array) -> tuple[Array, Array, Array]:
    with np.errstate(invalid="ignore", over="ignore"):
        total: FloatArray = np.sum(block, axis=0, dtype=np.float64)
    return total, block.min(axis=0), block.max(axis=0)


def scatter_matrix(X: Array, summary: ColumnSummary, column_scale: FloatArray) -> FloatArray:
    """Sum over rows of z z^T with z = (x - mean) / column_scale, in float64."""
    n_rows, n_columns = X.shape
    scatter = np.zeros((n_columns, n_columns))
    for rows in row_blocks(n_rows, n_columns):
        block = np.subtract(X[rows], summary.mean, dtype=np.float64)
        block /= column_scale
        scatter += block.T @ block
    return scatter


def principal_directions(X: Array, summary: ColumnSummary, column_scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variances of the scaled columns' principal directions, rising, and the directions as columns.

    Directions whose variance is rounding error, of the computation or of the input, are cut. Found from the
    d x d scatter matrix, or with fewer rows than columns from the n x n matrix of inner products.
    """
    n_rows, n_columns = X.shape
    scale = np.broadcast_to(column_scale, n_columns)
    if n_columns <= n_rows:
        eigenvalues, directions = eigh(scatter_matrix(X, summary, scale))
    else:
        eigenvalues, directions = _directions_of_wide_rows(X, summary, scale)
    input_rounding = np.finfo(X.dtype).eps if X.dtype.kind == "f" else 0.0
    noise = n_rows * float(np.max(input_rounding * summary.magnitude / scale)) ** 2
    cut = eigenvalues[-1] * max(n_rows, n_columns) * np.finfo(np.float64).eps + noise
    kept = eigenvalues > min(cut, eigenvalues[-1] / 2)  # the strongest direction is kept whatever happens
    return eigenvalues[kept] / n_rows, directions[:, kept]


def effective_dimension(X: Array, summary: ColumnSummary) -> float:
    """(sum_k w_k)^2 / sum_k w_k^2 over the variances w_k of the principal directions: d where all are equal."""
    n_rows, n_columns = X.shape
    one_scale = np.full(n_columns, summary.spread.max())
    products = inner_products if n_rows < n_columns else scatter_matrix  # either has the eigenvalues n w_k
    matrix = products(X, summary, one_scale)
    return float(np.trace(matrix) ** 2 / np.sum(matrix**2))


def inner_products(X: Array, summary: ColumnSummary, column_scale: FloatArray) -> FloatArray:
    """Z Z^T with Z = (X - mean) / column_scale, n x n: for rows that are longer than many."""
    n_rows, n_columns = X.shape
    products = np.zeros((n_rows, n_rows))
    for columns in row_blocks(n_columns, n_rows):
        block = _scaled_columns(X, summary, column_scale, columns)
        products += block @ block.T
    return products


def _directions_of_wide_rows(X: Array, summary: ColumnSummary, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of Z Z^T and the directions Z^T u / sqrt(eigenvalue), a block of columns at a time."""
    n_rows, n_columns = X.shape
    eigenvalues, sides = eigh(inner_products(X, summary, scale))
    sides /= np.sqrt(np.maximum(eigenvalues, np.finfo(np.float64).tiny))
    directions = np.empty((n_columns, n_rows))
    for columns in row_blocks(n_columns, n_rows):
        directions[columns] = _scaled_columns(X, summary, scale, columns).T @ sides
    return eigenvalues, directions


def _scaled_columns(X: Array, summary: ColumnSummary, scale: FloatArray, columns: slice) -> FloatArray:
    block = np.subtract(X[:, columns], summary.mean[columns], dtype=np.float64)
    block /= scale[columns]
    return block
