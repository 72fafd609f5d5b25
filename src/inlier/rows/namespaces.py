"""Arrays of any library by one vocabulary: the array API standard, through array-api-compat."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_cupy_array,
    is_dask_array,
    is_torch_array,
    to_device,
)
from numpy.typing import DTypeLike
from scipy.linalg import cho_factor, cho_solve

from inlier._typing import Array


def is_host_array(array: Any) -> bool:
    """Whether this is a NumPy array (a memory map included)."""
    return isinstance(array, np.ndarray)


def is_device_array(array: Any) -> bool:
    """Whether this is an array of a library other than NumPy that computes at once: torch, CuPy, array-api-strict."""
    return not is_host_array(array) and is_array_api_obj(array) and not is_dask_array(array)


def is_beyond_memory(array: Any) -> bool:
    """Whether this is an array of such a library that NumPy cannot read where it is, as it can a tensor of the CPU."""
    return is_device_array(array) and not (is_torch_array(array) and array.device.type == "cpu")


def namespace(array: Any) -> Any:
    """Return the functions that go with an array."""
    return np if is_host_array(array) else array_namespace(array)


def to_host(array: Any) -> Array:
    """Return the values as a NumPy array; a lazy array is computed."""
    if is_host_array(array):
        return array
    if is_dask_array(array):
        return np.asarray(array.compute())
    if not is_device_array(array):
        return np.asarray(array)
    if is_torch_array(array):
        return array.detach().cpu().numpy()  # NumPy cannot carry a tensor's history
    if is_cupy_array(array):
        return array.get()
    host = array_namespace(array).__array_namespace_info__().devices()[0]
    return np.from_dlpack(to_device(array, host))


def from_host(values: Array, like: Any) -> Any:
    """Return NumPy values as an array of the kind, and on the device, of ``like``; as they are if it is on none."""
    if not is_device_array(like):
        return values
    return array_namespace(like).asarray(np.ascontiguousarray(values), device=device(like))


def beside(values: Any, like: Any) -> Any:
    """Return values, wherever they are, as an array of the kind, and on the device, of ``like``."""
    if is_host_array(values) or is_host_array(like):
        return from_host(to_host(values), like)
    return values


def take_rows(table: Any, rows: Any) -> Any:
    """Return some rows of a NumPy or device array, in kind: a slice, or numbers that are here or where the table is."""
    if is_host_array(table):
        return table[rows]
    if isinstance(rows, slice):
        return table[rows, :] if table.ndim > 1 else table[rows]
    index = from_host(rows.astype(np.int64, copy=False), table) if is_host_array(rows) else rows
    if is_torch_array(table):
        return table.index_select(0, index)  # take() would first look for negative numbers
    return array_namespace(table).take(table, index, axis=0)


def dtype_name(array: Any) -> str:
    """Return "float32", "uint8", ...: what every library calls it in the end."""
    return str(array.dtype).rsplit(".", 1)[-1]


def rounding_of(array: Any) -> float:
    """Relative rounding error of the values as they are stored; 0 for whole numbers."""
    if isinstance(array, np.ndarray):  # NumPy remembers it, and spells out a type's name anew each time
        return float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0
    return _rounding_of_type(dtype_name(array))


@cache
def _rounding_of_type(name: str) -> float:
    if "float" not in name:
        return 0.0
    return 2.0**-7 if name == "bfloat16" else float(np.finfo(name).eps)


def compute_dtype(dtype: DTypeLike) -> np.dtype[np.floating]:
    """Return float32 where it holds every value of ``dtype`` exactly (float32, uint8, ...), else float64."""
    if dtype == "bfloat16" or np.result_type(dtype, np.float32) == np.float32:
        return np.dtype(np.float32)
    return np.dtype(np.float64)


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
