"""One pass over one set of rows: what its columns look like, what is refused of them, and the maps of rows that follow.

A map is what is done to each row before it is compared: centre, turn, scale to unit length. It is applied to a block
when the block is read, so a prepared copy of the data never exists.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from inlier._checks import warn
from inlier._typing import Array, FloatArray
from inlier.exceptions import ParameterError, ParameterWarning
from inlier.rows.backend import backend_for, compute_dtype, dtype_name, from_host, namespace, rounding_of, to_host
from inlier.rows.stores import store_of
from inlier.rows.threads import pieces, row_blocks

_FEWEST_DIGITS = 1e-300  # numbers below are near those that are kept with fewer digits
_SMALLEST, _LARGEST = 1e-75, 1e75  # of the largest of all coordinates: fourth powers are numbers still
# A centred row shorter than a few rounding errors of the mean has no direction.
_WEAK = 0.01  # of the median variance: directions that are looked at for how many rows vary in them
_A_HANDFUL = 5.0  # rows
_USUAL_EXPONENTS = 100  # of two, with which squares and their squares can be computed
_ROUNDING_SLACK = 8.0 * np.finfo(np.float64).eps


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
    """Refuse a table of equal rows, or of numbers with hardly any digits; warn about columns that say nothing."""
    tiny = np.flatnonzero((summary.spread > 0) & (summary.magnitude < _FEWEST_DIGITS))
    if tiny.size:
        raise ParameterError(
            name,
            f"holds numbers as small as {summary.magnitude[tiny[0]]:.3g}, which computers keep with fewer digits than "
            f"others (column {tiny[0]}). Multiply them by 1e300 first, or leave the column out.",
        )
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
                f"{'holds' if constant.size == 1 else 'hold'} a single value, or none (column {shown}). "
                f"Such columns say nothing about which pairs match and are ignored; drop them to silence this.",
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


# ---- maps of rows


@dataclass(frozen=True)
class RowMap:
    """x -> (x - mean) * scale @ linear, then to unit length if ``unit_length``; each part may be absent."""

    n_columns: int
    mean: FloatArray | None = None
    scale: float = 1.0
    linear: FloatArray | None = None
    unit_length: bool = False
    shortest: float = 0.0  # rows that come out no longer than this are rounding error, and become zero
    units: FloatArray | None = None  # what ``linear`` divides the columns by before it turns them

    @property
    def only_centres(self) -> bool:
        """Whether rows are neither turned nor scaled, except to unit length."""
        return self.linear is None and self.scale == 1.0

    def __call__(self, block: Any) -> Any:
        """Map a block of rows, of any kind of array; a row without direction becomes zero."""
        xp = namespace(block)
        if self.mean is None:
            return xp.astype(block, xp.float64, copy=False)
        dtype = getattr(xp, compute_dtype(dtype_name(block)).name)
        # Turning may magnify what rounding is left, so it is done in float64; without it float32 data stays float32.
        dtype = dtype if self.linear is None or self.unit_length else xp.float64  # a model's rows stay as exact
        centred = self._centred(block, dtype if self.linear is None else xp.float64)
        if self.scale != 1.0:
            centred *= self.scale
        if self.linear is not None:
            centred = centred @ from_host(self.linear, block)
        if self.unit_length:
            length = xp.sqrt(xp.vecdot(centred, centred))
            has_direction = length > self.shortest
            inverse = 1.0 / xp.where(has_direction, length, xp.ones_like(length))
            centred *= xp.where(has_direction, inverse, xp.zeros_like(length))[:, None]
        return xp.astype(centred, dtype, copy=False)

    def _centred(self, block: Any, dtype: Any) -> Any:
        """x - mean in two steps: a mean rounded to float32 would move every row of data far from the origin.

        The first difference is exact where x is near the mean, and the second takes off what was rounded away.
        """
        xp = namespace(block)
        assert self.mean is not None
        near = from_host(self.mean, block)
        first = xp.astype(near, dtype)
        centred = xp.subtract(block, first, dtype=dtype) if xp is np else xp.astype(block, dtype) - first
        if dtype != xp.float64:
            rest = near - xp.astype(first, xp.float64)
            centred -= xp.astype(rest, dtype)
        return centred

    def undo(self) -> FloatArray:
        """Return the linear map from a model's rows back to centred ones; directions that were cut come back as 0.

        The columns of diag(units) linear are orthogonal, so that its inverse is its transpose over their squares.
        """
        assert self.linear is not None
        assert self.units is not None
        turned = self.units[:, None] * self.linear
        return (turned / np.sum(turned**2, axis=0)).T * self.units


def identity_rows(n_columns: int) -> RowMap:
    """Return the map that leaves rows as they are."""
    return RowMap(n_columns)


def unit_rows(summary: ColumnSummary) -> RowMap:
    """Centre the columns, then scale each row to unit length: step 1 of Algorithms 1-3."""
    scale = _safe_scale(summary)
    shortest = float(_ROUNDING_SLACK * np.linalg.norm(scale * summary.rounded))
    return RowMap(summary.mean.size, summary.mean, scale, unit_length=True, shortest=shortest)


def whitened_rows(summary: ColumnSummary, X: Any) -> RowMap:
    """Centre, whiten, then scale each row to unit length.

    The whitened rows, before the last step, are an orthonormal basis of the centred column space. Because
    the columns are first divided by their own spread, the units of a column do not decide what counts as
    rounding error and is cut.
    """
    column_scale = _column_scale(summary)
    variances, directions = principal_directions(X, summary, column_scale)
    linear = directions / np.sqrt(variances * summary.n_rows) / column_scale[:, None]
    shortest = float(_ROUNDING_SLACK * np.linalg.norm(summary.rounded @ np.abs(linear)))
    return RowMap(variances.size, summary.mean, linear=linear, unit_length=True, shortest=shortest)


def model_rows(summary: ColumnSummary, X: Any, *, whiten: bool, most_directions: int) -> RowMap:
    """Centre, turn to principal directions, whiten as far as there are rows for it; unit mean square.

    Direction k, of variance w_k, is divided by sqrt(w_k + e) with e such that the directions count for
    ``most_directions`` altogether, sum_k w_k / (w_k + e); e = 0 where there are no more than that. So a few
    rows in many dimensions whiten the strong directions and leave the weak ones weak: fully whitened they
    would all be equally far apart, and say nothing.
    """
    in_own_units = whiten and summary.mean.size <= most_directions
    column_scale = _column_scale(summary) if in_own_units else np.full(1, 1 / _safe_scale(summary))
    variances, directions = _of_many_rows(X, summary, column_scale, *principal_directions(X, summary, column_scale))
    soft = _softening(variances, most_directions) if whiten else np.inf
    scale = np.sqrt(variances + soft) if np.isfinite(soft) else np.ones(1)
    mean_square = float(np.mean(variances / scale**2))
    linear = directions / (scale * np.sqrt(mean_square)) / column_scale[:, None]
    units = np.broadcast_to(column_scale, summary.mean.size)
    return RowMap(variances.size, summary.mean, linear=linear, units=units)


def _of_many_rows(
    X: Any, summary: ColumnSummary, column_scale: FloatArray, variances: FloatArray, directions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Leave out weak directions in which only a handful of rows vary, of tables in memory.

    Where a column is the sum of others, one row with a typing error or a gap that was filled in has such a direction
    for itself. Whitened, nothing else of that row would count. How many rows vary in a direction is told by
    (sum z^2)^2 / sum z^4.
    """
    weak = np.flatnonzero(variances < _WEAK * np.median(variances))
    if not weak.size or not isinstance(X, np.ndarray):
        return variances, directions
    squares = (((X - summary.mean) / column_scale) @ directions[:, weak]) ** 2
    n_varying = squares.sum(axis=0) ** 2 / np.maximum((squares**2).sum(axis=0), np.finfo(np.float64).tiny)
    few = weak[n_varying < _A_HANDFUL]
    return np.delete(variances, few), np.delete(directions, few, axis=1)


def in_usual_units(table: Array) -> Array:
    """Return the table as it is, or where its units are extreme times a power of two: its squares can be computed."""
    exponent = int(np.frexp(np.abs(table).max())[1])
    return table if abs(exponent) < _USUAL_EXPONENTS else np.ldexp(table.astype(np.float64, copy=False), -exponent)


def _safe_scale(summary: ColumnSummary) -> float:
    """1, or for data in extreme units the power of two that keeps squares from over- or underflowing."""
    exponent = int(np.frexp(summary.spread.max())[1])
    return 1.0 if abs(exponent) < _USUAL_EXPONENTS else float(np.ldexp(1.0, -exponent))


def _column_scale(summary: ColumnSummary) -> FloatArray:
    return np.where(summary.spread > 0, summary.spread, 1.0)


def _softening(variances: FloatArray, most_directions: int) -> float:
    if variances.size <= most_directions:
        return 0.0
    return float(
        brentq(
            lambda soft: np.sum(variances / (variances + soft)) - most_directions,
            0.0,
            variances[-1] * variances.size / most_directions,
        )
    )
