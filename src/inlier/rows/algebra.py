"""The vocabulary: what one block of paired rows (x, y) adds to a sum, or is mapped to.

Row i of the face-splitting product K is the Kronecker product of x_i and y_i, so that the overlap
H = (X X^T) o (Y Y^T) is K K^T, and with u = vec(U) the product K u is x_i^T U y_i. Every function below is
a line of algebra on one block; `inlier.rows._numba` holds compiled versions for narrow rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows.namespaces import from_host, namespace

_ROWS_PER_PRODUCT = 4096

Rows = Any  # a table of prepared rows: a NumPy array, or any array of the array API


def cross_moment(x: Rows, y: Rows, weights: Any = None) -> Any:
    """Sum of w_i x_i y_i^T, a (d_x, d_y) matrix: K^T w."""
    xp = namespace(x)
    if weights is not None:
        y = y * xp.astype(weights, y.dtype, copy=False)[:, None]
    dtype = xp.result_type(x, y)
    x, y = xp.astype(x, dtype, copy=False), xp.astype(y, dtype, copy=False)
    whole = x.shape[0] - x.shape[0] % _ROWS_PER_PRODUCT
    if xp is np or dtype == xp.float64 or not whole:  # NumPy's blocks are short anyway
        return x.T @ y
    # A float32 product over very many rows would lose digits: products over some, added up in float64.
    some_x, some_y = (xp.reshape(rows[:whole, :], (-1, _ROWS_PER_PRODUCT, rows.shape[1])) for rows in (x, y))
    total = xp.sum(xp.matrix_transpose(some_x) @ some_y, axis=0, dtype=xp.float64)
    return total + xp.astype(x[whole:, :].T @ y[whole:, :], xp.float64)


def gram_step(x: Rows, y: Rows, *, matrix: FloatArray) -> Any:
    """K^T K u as a (d_x, d_y) matrix: one power step in one reading of the rows."""
    return cross_moment(x, y, bilinear(x, y, matrix=matrix))


def product_moment(x: Rows, y: Rows) -> Any:
    """Sum over pairs of all x_a x_c y_b y_e with a <= c and b <= e: the distinct entries of K^T K.

    There are d_x (d_x + 1) d_y (d_y + 1) / 4 of them, about a quarter of (d_x d_y)^2.
    """
    return cross_moment(_products(x), _products(y))


def bilinear(x: Rows, y: Rows, *, matrix: FloatArray) -> Any:
    """x_i^T U y_i for each pair: K u."""
    xp = namespace(x)
    dtype = xp.result_type(x, y)
    turned = xp.astype(x, dtype, copy=False) @ xp.astype(from_host(matrix, x), dtype, copy=False)
    return xp.vecdot(turned, xp.astype(y, dtype, copy=False))


def norm_product(x: Rows, y: Rows) -> Any:
    """|x_i|^2 |y_i|^2 for each pair: the diagonal of H."""
    xp = namespace(x)
    return xp.vecdot(x, x) * xp.vecdot(y, y)


def leave_one_out(x: Rows, y: Rows, *, matrix: FloatArray) -> Any:
    """x_i^T U y_i - |x_i|^2 |y_i|^2: with U = X^T Y, the row sum of H without its diagonal."""
    return bilinear(x, y, matrix=matrix) - norm_product(x, y)


def kronecker_moment(product_moment: FloatArray, d_x: int, d_y: int) -> FloatArray:
    """K^T K, (d_x d_y, d_x d_y), from its distinct entries: entry (ab, ce) is the sum of x_a y_b x_c y_e."""
    blocks = product_moment[_product_index(d_x)[:, :, None, None], _product_index(d_y)]  # a, c, b, e
    return blocks.transpose(0, 2, 1, 3).reshape(d_x * d_y, d_x * d_y)


def _products(x: Rows) -> Any:
    xp = namespace(x)
    first, second = (from_host(index, x) for index in np.triu_indices(x.shape[1]))
    return xp.take(x, first, axis=1) * xp.take(x, second, axis=1)


def _product_index(d: int) -> Array:
    """Where the product of coordinates a and c stands in a row of `_products`."""
    index = np.empty((d, d), dtype=np.intp)
    first, second = np.triu_indices(d)
    index[first, second] = index[second, first] = np.arange(first.size)
    return index
