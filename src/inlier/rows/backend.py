"""What computes on a block of rows: array algebra for arrays of any library, and the choice of something faster.

Arrays are handled by one vocabulary, the array API standard, through array-api-compat. `Plain` computes on any of
them. A faster backend is a subclass that overrides the block functions it speeds up and says which blocks it takes; it
lives in a module of its own, which is loaded for blocks that may be for it, and has one line in ``_BACKENDS``.

Row i of the face-splitting product K is the Kronecker product of x_i and y_i, so that the overlap
H = (X X^T) o (Y Y^T) is K K^T, and with u = vec(U) the product K u is x_i^T U y_i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

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

from inlier._typing import Array, FloatArray
from inlier.rows.threads import pieces

if TYPE_CHECKING:
    from inlier.rows.columns import RowMap

FEWEST_ROWS = 4096  # below this plain NumPy takes under a millisecond, and numba's import a good part of a second
WIDEST_ROW = 16  # above this matrix products are faster
HISTOGRAM_ROUNDING = 2e-8  # of the range, per value: what the sums of any backend's histogram may be off by
_ROWS_PER_PRODUCT = 4096  # of a float32 product, before it is added up in float64


# ---- arrays of any library


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


def in_precision(tables: tuple[Any, Any], *, single: bool) -> tuple[Any, Any]:
    """Return two tables as they are, or in single precision."""
    if not single:
        return tables
    a, b = (namespace(table).astype(table, namespace(table).float32) for table in tables)
    return a, b


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


def bins_of(values: FloatArray, dropped_bits: int) -> Array:
    """Number the bins of numbers >= 0 by exponent and first bits of the fraction: no logarithm is taken."""
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64) >> dropped_bits


def count_from(first: int, bins: Array, fewest: int) -> Array:
    """Count numbers in each bin from the first one on, of ``fewest`` or more; what lies before counts there.

    ``bins`` are numbered from there afterwards.
    """
    bins -= first
    if bins.min(initial=0) < 0:
        np.maximum(bins, 0, out=bins)
    return np.bincount(bins, minlength=fewest)


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


# ---- lines of algebra on prepared rows

Rows = Any  # a table of prepared rows: a NumPy array, or any array of the array API


class Maps(NamedTuple):
    """What is done to the rows of both sides when they are read."""

    x: RowMap
    y: RowMap

    @property
    def only_centre(self) -> bool:
        """Whether rows on both sides are at most centred, and of unit length on both or on neither."""
        return self.x.only_centres and self.y.only_centres and self.x.unit_length == self.y.unit_length


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


def gram_step(x: Rows, y: Rows, matrix: FloatArray) -> Any:
    """K^T K u as a (d_x, d_y) matrix: one power step in one reading of the rows."""
    return cross_moment(x, y, bilinear(x, y, matrix))


def product_moment(x: Rows, y: Rows) -> Any:
    """Sum over pairs of all x_a x_c y_b y_e with a <= c and b <= e: the distinct entries of K^T K.

    There are d_x (d_x + 1) d_y (d_y + 1) / 4 of them, about a quarter of (d_x d_y)^2.
    """
    return cross_moment(_products(x), _products(y))


def _products(x: Rows) -> Any:
    xp = namespace(x)
    first, second = (from_host(index, x) for index in np.triu_indices(x.shape[1]))
    return xp.take(x, first, axis=1) * xp.take(x, second, axis=1)


def bilinear(x: Rows, y: Rows, matrix: FloatArray) -> Any:
    """x_i^T U y_i for each pair: K u."""
    xp = namespace(x)
    dtype = xp.result_type(x, y)
    turned = xp.astype(x, dtype, copy=False) @ xp.astype(from_host(matrix, x), dtype, copy=False)
    return xp.vecdot(turned, xp.astype(y, dtype, copy=False))


def norm_product(x: Rows, y: Rows) -> Any:
    """|x_i|^2 |y_i|^2 for each pair: the diagonal of H."""
    xp = namespace(x)
    return xp.vecdot(x, x) * xp.vecdot(y, y)


def leave_one_out(x: Rows, y: Rows, matrix: FloatArray) -> Any:
    """x_i^T U y_i - |x_i|^2 |y_i|^2: with U = X^T Y, the row sum of H without its diagonal."""
    return bilinear(x, y, matrix) - norm_product(x, y)


# ---- block functions: algebra on rows as they are stored, in pieces with room for temporaries


class Plain:
    """The block functions by array algebra, for every kind of array; a faster backend overrides what it can do.

    Blocks hold rows as they are stored; sums come as small NumPy arrays, maps as arrays of the block's own kind.
    """

    def takes(self, *blocks: Any) -> bool:
        """Whether this backend computes on these blocks."""
        return True

    def prepared(self, X: Any, Y: Any, maps: Maps) -> Iterator[tuple[slice, Rows, Rows]]:
        """Yield the rows of each piece of a block of pairs, and both sides of it prepared, until the next piece."""
        for rows in pieces(X, Y):
            yield rows, maps.x(X[rows, :]), maps.y(Y[rows, :])

    def cross_moment(self, X: Any, Y: Any, maps: Maps, weights: Any = None) -> FloatArray:
        """Sum of w_i x_i y_i^T; without weights all are 1."""
        return self._summed(
            X, Y, maps, lambda rows, x, y: cross_moment(x, y, None if weights is None else weights[rows])
        )

    def gram_step(self, X: Any, Y: Any, maps: Maps, matrix: FloatArray) -> FloatArray:
        """Sum of (x_i^T U y_i) x_i y_i^T."""
        return self._summed(X, Y, maps, lambda rows, x, y: gram_step(x, y, matrix))

    def product_moments(self, X: Any, Y: Any, maps: Maps) -> tuple[FloatArray, FloatArray]:
        """Sums of the distinct products x_a x_c y_b y_e, and of x_a y_b."""
        products = self._summed(X, Y, maps, lambda rows, x, y: product_moment(x, y))
        return products, self.cross_moment(X, Y, maps)

    def bilinear(self, X: Any, Y: Any, maps: Maps, matrix: FloatArray, scale: float) -> Any:
        """Return ``scale`` x_i^T U y_i of each pair."""
        return self.mapped(X, Y, maps, lambda x, y: bilinear(x, y, matrix), scale)

    def leave_one_out(self, X: Any, Y: Any, maps: Maps, matrix: FloatArray, scale: float) -> Any:
        """Return ``scale`` (x_i^T U y_i - |x_i|^2 |y_i|^2) of each pair."""
        return self.mapped(X, Y, maps, lambda x, y: leave_one_out(x, y, matrix), scale)

    def mapped(self, X: Any, Y: Any, maps: Maps, function: Callable[[Rows, Rows], Any], scale: float = 1.0) -> Any:
        """Return ``scale`` times any function of prepared rows, in float64."""
        xp = namespace(X)
        values = [xp.astype(function(x, y), xp.float64) * scale for _, x, y in self.prepared(X, Y, maps)]
        return values[0] if len(values) == 1 else xp.concat(values)

    def _summed(self, X: Any, Y: Any, maps: Maps, moment: Callable[[slice, Rows, Rows], Any]) -> FloatArray:
        xp, total = namespace(X), None
        for rows, x, y in self.prepared(X, Y, maps):
            part = moment(rows, x, y)
            total = xp.astype(part, xp.float64) if total is None else total + part
        return to_host(total)

    def columns(self, block: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sum, minimum and maximum of each column."""
        xp, d = namespace(block), block.shape[1]
        total, low, high = np.zeros(d), np.full(d, np.inf), np.full(d, -np.inf)
        with np.errstate(invalid="ignore", over="ignore"):
            for rows in pieces(block):
                piece = block[rows, :]
                total += to_host(xp.sum(piece, axis=0, dtype=xp.float64))
                low = np.minimum(low, to_host(xp.min(piece, axis=0)))
                high = np.maximum(high, to_host(xp.max(piece, axis=0)))
        return total, low, high

    def histogram(self, values: Any, low: float, high: float, n_buckets: int) -> tuple[Array, FloatArray, int]:
        """Number and sum of the values in each of equal buckets, and how many are exactly 0.

        Values beyond the ends count with the first and the last bucket. Sums may be off by `HISTOGRAM_ROUNDING` of the
        range for each value, so that a device can keep them in whole numbers.
        """
        xp = namespace(values)
        ordered = xp.sort(xp.astype(values, xp.float64))
        ranks = xp.searchsorted(ordered, from_host(np.linspace(low, high, n_buckets + 1)[1:-1], values))
        ends = np.concatenate([[0], to_host(ranks), [values.shape[0]]])
        total = xp.cumulative_sum(ordered, include_initial=True)
        zeros = int(xp.sum(xp.astype(values == 0, xp.int64)))
        return np.diff(ends), np.diff(to_host(xp.take(total, from_host(ends, values)))), zeros

    def window(self, values: Any, low: float, high: float) -> tuple[int, float, FloatArray, int, float]:
        """Number and sum of the values below ``low``, those up to ``high``, number and sum of the others."""
        xp = namespace(values)
        is_below = values < low
        below = xp.astype(is_below, values.dtype)
        n_below, sum_below = int(xp.sum(below)), float(xp.vecdot(values, below))
        inside = values[is_below != (values < high)]
        sum_above = float(xp.sum(values)) - sum_below - float(xp.sum(inside))
        return n_below, sum_below, to_host(inside), int(values.shape[0] - n_below - inside.shape[0]), sum_above


# ---- the choice


def _may_suit_numba(*blocks: Any) -> bool:
    return all(map(is_host_array, blocks)) and len(blocks[0]) >= FEWEST_ROWS


def _may_suit_cuda(*blocks: Any) -> bool:
    return all(hasattr(block, "__cuda_array_interface__") for block in blocks)


# For which blocks a backend's module is worth loading, and its name; the first that takes the blocks computes on them.
_BACKENDS: tuple[tuple[Callable[..., bool], str], ...] = (
    (_may_suit_numba, "_numba.Numba"),
    (_may_suit_cuda, "_cuda.Cuda"),
)
_PLAIN = Plain()


def backend_for(*blocks: Any) -> Plain:
    """Return what computes on these blocks."""
    for may_suit, name in _BACKENDS:
        if may_suit(*blocks):
            backend = _loaded(name)
            if backend is not None and backend.takes(*blocks):
                return backend
    return _PLAIN


@cache
def _loaded(name: str) -> Plain | None:
    """Return a backend, or None where the package that compiles for it is missing."""
    module, backend = name.split(".")
    try:
        found: Plain = getattr(import_module(f"inlier.rows.{module}"), backend)()
    except ImportError:
        return None
    return found
