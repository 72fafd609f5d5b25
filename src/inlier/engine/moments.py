"""The vocabulary: what one block of paired rows (x, y) adds to a sum, or is mapped to.

Row i of the face-splitting product K is the Kronecker product of x_i and y_i, so that the overlap
H = (X X^T) o (Y Y^T) is K K^T, and with u = vec(U) the product K u is x_i^T U y_i. Every function below is
a line of algebra on one block; `inlier.engine.kernels` holds compiled versions for narrow rows.
"""

from __future__ import annotations

import numpy as np

from inlier.engine.blocks import Array, FloatArray


def cross_moment(x: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Sum of w_i x_i y_i^T, a (d_x, d_y) matrix: K^T w."""
    if weights is not None:
        y = y * weights.astype(y.dtype, copy=False)[:, None]
    return x.T @ y


def gram_step(x: FloatArray, y: FloatArray, *, matrix: FloatArray) -> FloatArray:
    """K^T K u as a (d_x, d_y) matrix: one power step in one reading of the rows."""
    return cross_moment(x, y, bilinear(x, y, matrix=matrix))


def product_moment(x: FloatArray, y: FloatArray) -> FloatArray:
    """Sum over pairs of all x_a x_c y_b y_e with a <= c and b <= e: the distinct entries of K^T K.

    There are d_x (d_x + 1) d_y (d_y + 1) / 4 of them, about a quarter of (d_x d_y)^2.
    """
    return _products(x).T @ _products(y)


def bilinear(x: FloatArray, y: FloatArray, *, matrix: FloatArray) -> FloatArray:
    """x_i^T U y_i for each pair: K u."""
    return np.einsum("ij,ij->i", x @ matrix.astype(np.promote_types(x.dtype, y.dtype), copy=False), y)


def norm_product(x: FloatArray, y: FloatArray) -> FloatArray:
    """|x_i|^2 |y_i|^2 for each pair: the diagonal of H."""
    return np.einsum("ij,ij->i", x, x) * np.einsum("ij,ij->i", y, y)


def leave_one_out(x: FloatArray, y: FloatArray, *, matrix: FloatArray) -> FloatArray:
    """x_i^T U y_i - |x_i|^2 |y_i|^2: with U = X^T Y, the row sum of H without its diagonal."""
    return bilinear(x, y, matrix=matrix) - norm_product(x, y)


def kronecker_moment(product_moment: FloatArray, d_x: int, d_y: int) -> FloatArray:
    """K^T K, (d_x d_y, d_x d_y), from its distinct entries: entry (ab, ce) is the sum of x_a y_b x_c y_e."""
    blocks = product_moment[_product_index(d_x)[:, :, None, None], _product_index(d_y)]  # a, c, b, e
    return blocks.transpose(0, 2, 1, 3).reshape(d_x * d_y, d_x * d_y)


def _products(x: FloatArray) -> FloatArray:
    first, second = np.triu_indices(x.shape[1])
    return x[:, first] * x[:, second]


def _product_index(d: int) -> Array:
    """Where the product of coordinates a and c stands in a row of `_products`."""
    index = np.empty((d, d), dtype=np.intp)
    first, second = np.triu_indices(d)
    index[first, second] = index[second, first] = np.arange(first.size)
    return index
