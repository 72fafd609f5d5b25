"""One pass over one set of rows: what its columns look like, and what is refused of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from inlier._checks import warn
from inlier._typing import Array, FloatArray
from inlier.exceptions import ParameterError, ParameterWarning
from inlier.rows.backend import backend_for, from_host, namespace, rounding_of, to_host
from inlier.rows.stores import store_of
from inlier.rows.threads import pieces, row_blocks

_SMALLEST, _LARGEST = 1e-75, 1e75  # of the largest of all coordinates: fourth powers are numbers still


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
    def rounded(self) -> FloatArray:
        """Largest absolute value of each column that takes part in rounding: a constant one is centred exactly."""
        return np.where(self.minimum < self.maximum, self.magnitude, 0.0)

    @property
    def spread(self) -> FloatArray:
        """Largest distance of each column's values from its mean."""
        return np.maximum(self.maximum - self.mean, self.mean - self.minimum)


def summarise_columns(X: Any) -> ColumnSummary:
    """Summarise the columns of ``X`` in one pass, in float64 whatever the type of ``X``."""
    total, minimum, maximum = store_of(X).total(_ColumnParts(), X)
    n_rows = int(X.shape[0])
    with np.errstate(invalid="ignore", over="ignore"):  # judged by the caller, from the summary
        # Rounding may carry the mean of a nearly constant column outside its range; it never belongs there.
        mean = np.maximum(np.minimum(total / n_rows, maximum), minimum)
    return ColumnSummary(n_rows, mean, minimum, maximum)


@dataclass(frozen=True)
class _ColumnParts:
    """Sum, minimum and maximum of each column."""

    def __call__(self, block: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        return backend_for(block).columns(block)

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
        total: Any = 0.0
        for rows in pieces(block):
            z = (xp.astype(block[rows, :], xp.float64) - mean) / scale
            total = z.T @ z + total
        return to_host(total)

    def merge(self, parts: Sequence[FloatArray]) -> FloatArray:
        return sum(parts[1:], start=parts[0])


def scatter_matrix(X: Any, summary: ColumnSummary, column_scale: FloatArray) -> FloatArray:
    """Sum over rows of z z^T with z = (x - mean) / column_scale, in float64."""
    scale = np.array(np.broadcast_to(column_scale, summary.mean.size))
    scatter: FloatArray = store_of(X).total(_Scatter(summary.mean, scale), X)
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
        eigenvalues, directions = _directions_of_wide_rows(store_of(X).take(X, slice(0, n_rows)), summary, scale)
    input_rounding = rounding_of(X)
    noise = n_rows * float(np.max(input_rounding * summary.rounded / scale)) ** 2
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
        matrix = inner_products(store_of(X).take(X, slice(0, n_rows)), summary, one_scale)
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


def check_coordinates(table: Array, name: str) -> float:
    """Refuse NaN, infinity, equal rows and numbers whose powers overflow; warn about columns that say nothing.

    Return how far the largest of all numbers is above the least.
    """
    line = table.reshape(-1) if table.flags.c_contiguous else table
    lowest, highest = float(line.min()), float(line.max())  # NaN, if there is one
    first = table[:16]  # columns that vary usually do so here
    in_range = lowest >= -_LARGEST and highest <= _LARGEST and max(highest, -lowest) >= _SMALLEST
    if not (in_range and (first != first[0]).any(axis=0).all()):  # what may be wrong takes a closer look
        summary = summarise_columns(table)
        check_finite(table, summary, name)
        check_varies(summary, name)
        check_size(summary, name)
    return highest - lowest


def check_size(summary: ColumnSummary, name: str) -> None:
    """Refuse numbers so large or so small that their fourth powers are infinite or zero."""
    largest = float(summary.magnitude.max())
    or_else = ", or leave out the rows if only some are so large" if largest > 1 else ""
    check_magnitude(largest, name, "The largest value of ", or_else)


def check_magnitude(value: float, name: str, before: str = "", or_else: str = "") -> None:
    """Refuse a length whose fourth power is infinite or zero."""
    if not _SMALLEST <= value <= _LARGEST:
        limit = "infinity" if value > 1 else "zero"
        raise ParameterError(
            name,
            f"is {value:.3g}, and powers of such numbers cannot be told from {limit}. "
            f"Divide X and y{', and it,' * (not before)} by a number of that size first{or_else}.",
            before=before,
        )


def check_finite(table: Any, summary: ColumnSummary, name: str) -> None:
    """Refuse NaN, infinity and numbers whose sum overflows, and say where the first one is."""
    largest = float(summary.magnitude.max())
    if sys.float_info.max / summary.n_rows < largest < np.inf:
        raise ParameterError(name, f"has values as large as {largest:g}, whose sum overflows. Divide it by that first.")
    if not summary.is_finite:
        (row, column, value), count = store_of(table).total(_NonFinite(), table)[1:]
        raise ParameterError(
            name,
            f"contains NaN or infinity: {count} value(s), the first ({value}) in row {row}, column {column}. "
            f"Drop or fill those rows in both sets.",
        )


def check_varies(summary: ColumnSummary, name: str) -> None:
    """Refuse a table of equal rows; warn about columns that say nothing."""
    if (summary.minimum < summary.maximum).all():
        return
    constant, total = summary.constant_columns, summary.mean.size
    if constant.size == total:
        raise ParameterError(
            name,
            f"is constant: all {summary.n_rows} rows are the same (n_features = {total}), so no row has a "
            f"direction from their mean and no pair can be told from another. Check that the right columns were read.",
        )
    if constant.size:
        shown = ", ".join(map(str, constant[:5])) + (", ..." if constant.size > 5 else "")
        warn(
            ParameterWarning(
                name,
                f"hold a single value, or none (column {shown}). "
                f"They say nothing about which pairs match and are ignored; drop them to silence this.",
                before=f"{constant.size} of the {total} columns of ",
            )
        )


@dataclass(frozen=True)
class _NonFinite:
    """How many rows there are, row, column and value of the first entry that is not finite, and their number."""

    def __call__(self, block: Any) -> tuple[int, tuple[int, int, float] | None, int]:
        first, count = None, 0
        for rows in pieces(block):
            part = to_host(block[rows, :])
            bad = np.argwhere(~np.isfinite(part))
            if len(bad) and first is None:
                first = rows.start + int(bad[0, 0]), int(bad[0, 1]), float(part[tuple(bad[0])])
            count += len(bad)
        return int(block.shape[0]), first, count

    def merge(self, parts: Sequence[tuple[int, tuple[int, int, float] | None, int]]) -> Any:
        first, n_rows = None, 0
        for n, found, _ in parts:
            if first is None and found is not None:
                first = n_rows + found[0], *found[1:]
            n_rows += n
        return n_rows, first, sum(count for _, _, count in parts)
