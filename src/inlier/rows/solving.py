"""Linear systems of ridge regression, solved where the matrix is."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from array_api_compat import device, is_cupy_array, is_torch_array
from scipy.linalg import cho_factor, cho_solve

from inlier.rows.namespaces import is_host_array, namespace


def ridge_solver(moment: Any, ridge: float) -> Callable[[Any], Any]:
    """Factor A = moment + ridge I once; the function that is returned maps B to A^-1 B.

    By Cholesky's factors and not by the inverse: where A has directions of very different lengths, and B lies in the
    long ones, the entries of the inverse are large, cancel, and take the digits along.
    """
    xp = namespace(moment)
    matrix = moment + ridge * xp.eye(moment.shape[0], dtype=moment.dtype, device=device(moment))
    if is_host_array(matrix):
        factor = cho_factor(matrix, overwrite_a=True)
        return lambda right: cho_solve(factor, right)
    lower = xp.linalg.cholesky(matrix)
    if is_torch_array(matrix):
        return lambda right: import_module("torch").cholesky_solve(right, lower)
    if is_cupy_array(matrix):
        triangular = import_module("cupyx.scipy.linalg").solve_triangular
        return lambda right: triangular(lower, triangular(lower, right, lower=True), trans=1, lower=True)
    return lambda right: xp.linalg.solve(xp.matrix_transpose(lower), xp.linalg.solve(lower, right))
