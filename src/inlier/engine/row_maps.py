"""What is done to each row before it is compared: centre, turn, scale to unit length.

A map is applied to a block when the block is read, so a prepared copy of the data never exists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from inlier.engine.blocks import Array, FloatArray, compute_dtype
from inlier.engine.columns import ColumnSummary

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

    def __call__(self, block: Array) -> FloatArray:
        """Map a block of rows; a row without direction becomes zero."""
        dtype = compute_dtype(block.dtype)
        if self.mean is None:
            return block.astype(dtype, copy=False)
        # The difference is taken in float64: a float32 mean would move every row of data far from the origin.
        centred = np.subtract(block, self.mean, dtype=np.float64)
        if self.scale != 1.0:
            centred *= self.scale
        if self.linear is not None:
            centred = centred @ self.linear
        if not self.unit_length:
            return centred.astype(dtype, copy=False)
        length = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        has_direction = length > self.shortest
        np.divide(centred, length[:, None], out=centred, where=has_direction[:, None])
        centred[~has_direction] = 0.0
        return centred.astype(dtype, copy=False)


def identity_rows(n_columns: int) -> RowMap:
    """Return the map that leaves rows as they are."""
    return RowMap(n_columns)


def unit_rows(summary: ColumnSummary) -> RowMap:
    """Centre the columns, then scale each row to unit length: step 1 of Algorithms 1-3."""
    # Only the direction of a row matters, so a power of two that keeps squares from over- or
    # underflowing changes nothing else.
    exponent = int(np.frexp(summary.spread.max())[1])
    scale = 1.0 if abs(exponent) < 100 else float(np.ldexp(1.0, -exponent))
    shortest = float(_ROUNDING_SLACK * np.linalg.norm(scale * summary.magnitude))
    return RowMap(summary.mean.size, summary.mean, scale, unit_length=True, shortest=shortest)


def whitened_rows(summary: ColumnSummary, scatter: FloatArray, column_scale: FloatArray) -> RowMap:
    """Centre, whiten, then scale each row to unit length.

    The whitened rows, before the last step, are an orthonormal basis of the centred column space:
    with the scaled scatter Z^T Z = V diag(w) V^T the basis is Z V w^(-1/2). Directions whose
    variance is rounding error are cut. Because the columns are first divided by their own spread,
    the units of a column do not decide what is cut.
    """
    eigenvalues, eigenvectors = eigh(scatter)
    cut = eigenvalues[-1] * max(summary.n_rows, summary.mean.size) * np.finfo(np.float64).eps
    kept = eigenvalues > cut
    basis = eigenvectors[:, kept] / np.sqrt(eigenvalues[kept])
    linear = basis / column_scale[:, None]
    shortest = float(_ROUNDING_SLACK * np.linalg.norm(summary.magnitude @ np.abs(linear)))
    return RowMap(int(kept.sum()), summary.mean, linear=linear, unit_length=True, shortest=shortest)
