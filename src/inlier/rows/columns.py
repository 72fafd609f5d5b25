"""One pass over one set of rows: what its columns look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from inlier._typing import Array, FloatArray
from inlier.rows._cuda import cuda_columns, kernels_on_cuda
from inlier.rows.blocks import device_blocks, row_blocks
from inlier.rows.fused import as_line, kernels_for
from inlier.rows.namespaces import from_host, is_host_array, namespace, rounding_of, to_host
from inlier.rows.places import place_of

_WIDEST_SUMMARY = 4096  # columns that the compiled summary takes


@dataclass(frozen=True)
class ColumnSummary:
    """Mean, minimum and maximum of every column.

    A NaN anywhere in a column makes its mean NaN, an infinity makes it infinite or NaN, and a constant column has
    its minimum and maximum equal, so this one pass is also the check for all three.
    """

    n_rows: int
    mean: FloatArray
    minimum: FloatArray
    maximum: FloatArray

    @property
    def is_finite(self) -> bool:
        """Whether every value of the table is a finite number."""
        return bool(np.isfinite(self.mean).all())

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


def summarise_columns(X: Any) -> ColumnSummary:
    """Summarise the columns of ``X`` in one pass, in float64 whatever the type of ``X``."""
    total, minimum, maximum = place_of(X).total(_ColumnParts(), X)
    n_rows = int(X.shape[0])
    with np.errstate(invalid="ignore", over="ignore"):  # judged by the caller, from the summary
        # Rounding may carry the mean of a nearly constant column outside its range; it never belongs there.
        mean = np.maximum(np.minimum(total / n_rows, maximum), minimum)
    return ColumnSummary(n_rows, mean, minimum, maximum)


@dataclass(frozen=True)
class _ColumnParts:
    """Sum, minimum and maximum of each column."""

    def __call__(self, block: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        kernels = kernels_for(block, widest=_WIDEST_SUMMARY) if is_host_array(block) else None
        if kernels is not None:
            return kernels.column_summary(as_line(block), block.shape[1], 0, len(block))
        if not is_host_array(block):
            on_cuda = kernels_on_cuda(block)
            if on_cuda is not None:
                return cuda_columns(on_cuda, block)
            return self.merge([self._of_piece(block[rows, :]) for rows in device_blocks(*block.shape)])
        with np.errstate(invalid="ignore", over="ignore"):
            return self.merge([self._of_piece(block[rows]) for rows in row_blocks(*block.shape)])

    @staticmethod
    def _of_piece(block: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        xp = namespace(block)
        parts = xp.sum(block, axis=0, dtype=xp.float64), xp.min(block, axis=0), xp.max(block, axis=0)
        total, minimum, maximum = (to_host(part).astype(np.float64) for part in parts)
        return total, minimum, maximum

    def merge(self, parts: Sequence[tuple[FloatArray, ...]]) -> tuple[FloatArray, FloatArray, FloatArray]:
        if len(parts) == 1:
            total, minimum, maximum = parts[0]
            return total, minimum, maximum
        totals, minima, maxima = zip(*parts, strict=True)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.sum(totals, axis=0), np.min(minima, axis=0), np.max(maxima, axis=0)


@dataclass(frozen=True, eq=False)
class _Scatter:
    """Sum of z z^T, z = (x - mean) / scale."""

    mean: FloatArray
    scale: FloatArray

    def __call__(self, block: Any) -> FloatArray:
        xp = namespace(block)
        mean, scale = from_host(self.mean, block), from_host(self.scale, block)
        cut = row_blocks if is_host_array(block) else device_blocks
        total: Any = 0.0
        for rows in cut(*block.shape):
            z = (xp.astype(block[rows, :], xp.float64) - mean) / scale
            total = z.T @ z + total
        return to_host(total)

    def merge(self, parts: Sequence[FloatArray]) -> FloatArray:
        return sum(parts[1:], start=parts[0])


def scatter_matrix(X: Any, summary: ColumnSummary, column_scale: FloatArray) -> FloatArray:
    """Sum over rows of z z^T with z = (x - mean) / column_scale, in float64."""
    scale = np.array(np.broadcast_to(column_scale, summary.mean.size))
    scatter: FloatArray = place_of(X).total(_Scatter(summary.mean, scale), X)
    return scatter


def principal_directions(X: Any, summary: ColumnSummary, column_scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variances of the scaled columns' principal directions, rising, and the directions as columns.

    Directions whose variance is rounding error, of the computation or of the input, are cut. Found from the
    d x d scatter matrix, or with fewer rows than columns from the n x n matrix of inner products.
    """
    n_rows, n_columns = X.shape
    scale = np.broadcast_to(column_scale, n_columns)
    if n_columns <= n_rows:
        eigenvalues, directions = eigh(scatter_matrix(X, summary, scale))
    else:
        # Fewer rows than columns: few enough to bring here.
        eigenvalues, directions = _directions_of_wide_rows(place_of(X).take(X, slice(0, n_rows)), summary, scale)
    input_rounding = rounding_of(X)
    noise = n_rows * float(np.max(input_rounding * summary.magnitude / scale)) ** 2
    cut = eigenvalues[-1] * max(n_rows, n_columns) * np.finfo(np.float64).eps + noise
    kept = eigenvalues > min(cut, eigenvalues[-1] / 2)  # the strongest direction is kept whatever happens
    return eigenvalues[kept] / n_rows, _signed(directions[:, kept])


def _signed(directions: FloatArray) -> FloatArray:
    """Turn each direction so that its largest coordinate is positive: the same wherever the rows were summed."""
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])]
    return directions * np.where(largest < 0, -1.0, 1.0)


def effective_dimension(X: Any, summary: ColumnSummary) -> float:
    """(sum_k w_k)^2 / sum_k w_k^2 over the variances w_k of the principal directions: d where all are equal."""
    n_rows, n_columns = X.shape
    one_scale = np.full(n_columns, summary.spread.max())
    if n_rows < n_columns:  # either matrix has the eigenvalues n w_k
        matrix = inner_products(place_of(X).take(X, slice(0, n_rows)), summary, one_scale)
    else:
        matrix = scatter_matrix(X, summary, one_scale)
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
