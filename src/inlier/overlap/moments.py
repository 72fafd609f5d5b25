"""What one block of paired rows contributes to the overlap H = (X X^T) o (Y Y^T).

Row i of the face-splitting product K is the Kronecker product of x_i and y_i, so H = K K^T, and with
u = vec(U) the product K u is x_i^T U y_i. Every function below is a line of algebra on (x, y), one
block of n_b rows of each set.
"""

from __future__ import annotations

import numpy as np

from inlier.engine.blocks import FloatArray


def cross_moment(x: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Sum of w_i x_i y_i^T, a (d_x, d_y) matrix: K^T w."""
    if weights is not None:
        y = y * weights.astype(y.dtype, copy=False)[:, None]
    return x.T @ y


def bilinear(x: FloatArray, y: FloatArray, *, matrix: FloatArray) -> FloatArray:
    """Return x_i^T U y_i for each pair: K u."""
    return np.einsum("ij,ij->i", x @ matrix.astype(x.dtype, copy=False), y)


def norm_product(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return |x_i|^2 |y_i|^2 for each pair: the diagonal of H."""
    return np.einsum("ij,ij->i", x, x) * np.einsum("ij,ij->i", y, y)


def leave_one_out(x: FloatArray, y: FloatArray, *, matrix: FloatArray) -> FloatArray:
    """Return x_i^T U y_i - |x_i|^2 |y_i|^2: with U = X^T Y, the row sum of H without its diagonal."""
    return bilinear(x, y, matrix=matrix) - norm_product(x, y)


def kronecker_moment(x: FloatArray, y: FloatArray) -> FloatArray:
    """K^T K, a (d_x d_y, d_x d_y) matrix with the non-zero spectrum of H."""
    rows, width = x.shape[0], x.shape[1] * y.shape[1]
    kronecker = (x[:, :, None] * y[:, None, :]).reshape(rows, width)
    return kronecker.T @ kronecker


def gram_step(x: FloatArray, y: FloatArray, *, matrix: FloatArray) -> FloatArray:
    """K^T K u as a (d_x, d_y) matrix: one power step, in one reading of the rows."""
    return cross_moment(x, y, bilinear(x, y, matrix=matrix))
