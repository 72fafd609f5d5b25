"""What is done to each row before it is compared: centre, turn, scale to unit length.

A map is applied to a block when the block is read, so a prepared copy of the data never exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from inlier._typing import FloatArray
from inlier.rows.backend import compute_dtype, dtype_name, from_host, namespace
from inlier.rows.columns import ColumnSummary, principal_directions

# A centred row shorter than a few rounding errors of the mean has no direction.
_ROUNDING_SLACK = 8.0 * np.finfo(np.float64).eps


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
    variances, directions = principal_directions(X, summary, column_scale)
    soft = _softening(variances, most_directions) if whiten else np.inf
    scale = np.sqrt(variances + soft) if np.isfinite(soft) else np.ones(1)
    mean_square = float(np.mean(variances / scale**2))
    linear = directions / (scale * np.sqrt(mean_square)) / column_scale[:, None]
    units = np.broadcast_to(column_scale, summary.mean.size)
    return RowMap(variances.size, summary.mean, linear=linear, units=units)


def _safe_scale(summary: ColumnSummary) -> float:
    """1, or for data in extreme units the power of two that keeps squares from over- or underflowing."""
    exponent = int(np.frexp(summary.spread.max())[1])
    return 1.0 if abs(exponent) < 100 else float(np.ldexp(1.0, -exponent))


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
