"""The leading eigenvector of H by three routes that give one answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from inlier._typing import Array, FloatArray
from inlier.rows import Extremes, PairedRows
from inlier.rows.backend import to_host
from inlier.rows.threads import single_threaded_blas

_UNDECIDED = 1e-8  # a sum of the unit vector's entries, over its largest possible, that does not tell its sign
_NARROW = 128  # dimensions
_SMALLEST_FOR_LANCZOS = 32  # below this a full eigendecomposition is both faster and safer


class Eigenpair(NamedTuple):
    """An eigenvalue and its unit eigenvector."""

    value: float
    vector: FloatArray


class MomentSide(NamedTuple):
    """The leading eigenvector as u, seen from the other side of H = K K^T: v = K u / length, K u = x_i^T U y_i."""

    value: float
    matrix: FloatArray
    length: float

    def eigenpair(self, pairs: PairedRows) -> Eigenpair:
        """Return v itself."""
        return Eigenpair(self.value, pairs.bilinear(self.matrix, 1 / self.length))


def eigenpair_by_moments(pairs: PairedRows) -> Eigenpair | MomentSide:
    """Form K^T K (d_x d_y square) in one pass; its leading eigenvector u gives v = K u / |K u|."""
    products, all_ones = pairs.product_moments()
    value, u = _leading_of_dense(_kronecker_moment(products, *pairs.dimensions))
    return _from_side_of_moments(pairs, value, u, all_ones)


def eigenpair_by_operator(pairs: PairedRows) -> Eigenpair | MomentSide:
    """Lanczos without a matrix, on whichever side of H = K K^T is smaller.

    In the space of (d_x, d_y) matrices one step reads the rows once and moves d_x d_y numbers; with
    fewer pairs than d_x d_y a step is H v, two thin products.
    """
    # Threads inside products this small wait for each other longer than they work, above all on a busy machine.
    with single_threaded_blas() if max(pairs.dimensions) <= _NARROW else nullcontext():
        return _by_operator(pairs)


def _by_operator(pairs: PairedRows) -> Eigenpair | MomentSide:
    d_x, d_y = pairs.dimensions

    def step_in_moments(u: FloatArray) -> FloatArray:
        return pairs.gram_step(u.reshape(d_x, d_y)).ravel()

    def step_in_pairs(v: FloatArray) -> FloatArray:
        return to_host(pairs.bilinear(pairs.cross_moment(v)))

    all_ones = pairs.cross_moment()  # K^T 1: the row sums already point at the inliers
    if d_x * d_y <= pairs.n_pairs:
        value, u = _leading_by_lanczos(step_in_moments, all_ones.ravel())
        return _from_side_of_moments(pairs, value, u, all_ones)
    start = to_host(pairs.bilinear(all_ones))
    value, v = _leading_by_lanczos(step_in_pairs, start)
    return Eigenpair(value, _oriented(v))


def eigenpair_of_dense(H: FloatArray) -> Eigenpair:
    """Leading eigenpair of H itself, already formed."""
    if len(H) < _SMALLEST_FOR_LANCZOS:
        value, v = _leading_of_dense(H)
    else:
        value, v = _leading_by_lanczos(lambda v: H @ v, H.sum(axis=1))
    return Eigenpair(value, _oriented(v))


def _from_side_of_moments(
    pairs: PairedRows, value: float, u: FloatArray, all_ones: FloatArray
) -> MomentSide | Eigenpair:
    """Give v its length and sign without computing it: |K u|^2 = u^T (K^T K u), and its sum is u^T K^T 1."""
    matrix = u.reshape(pairs.dimensions)
    if value <= 0.0:
        return Eigenpair(0.0, np.full(pairs.n_pairs, pairs.n_pairs**-0.5))  # H = 0: any unit vector will do
    length = float(np.sqrt(value))
    total = float(np.vdot(matrix, all_ones)) / length
    if abs(total) <= _UNDECIDED * np.sqrt(pairs.n_pairs):
        total = sum(pairs.store.total(Extremes(), pairs.bilinear(matrix)))
    return MomentSide(value, -matrix if total < 0 else matrix, length)


def _kronecker_moment(product_moment: FloatArray, d_x: int, d_y: int) -> FloatArray:
    """K^T K, (d_x d_y, d_x d_y), from its distinct entries: entry (ab, ce) is the sum of x_a y_b x_c y_e."""
    blocks = product_moment[_product_index(d_x)[:, :, None, None], _product_index(d_y)]  # a, c, b, e
    return blocks.transpose(0, 2, 1, 3).reshape(d_x * d_y, d_x * d_y)


def _product_index(d: int) -> Array:
    """Where the product of coordinates a and c stands among the distinct ones."""
    index = np.empty((d, d), dtype=np.intp)
    first, second = np.triu_indices(d)
    index[first, second] = index[second, first] = np.arange(first.size)
    return index


def _leading_of_dense(matrix: FloatArray) -> tuple[float, FloatArray]:
    last = len(matrix) - 1
    values, vectors = eigh(matrix, subset_by_index=[last, last])
    return float(values[0]), vectors[:, 0]


def _leading_by_lanczos(step: Callable[[FloatArray], FloatArray], start: FloatArray) -> tuple[float, FloatArray]:
    size = start.size
    if size < _SMALLEST_FOR_LANCZOS:
        matrix = np.stack([step(column) for column in np.eye(size)])
        return _leading_of_dense((matrix + matrix.T) / 2)
    # A little fixed noise: a start orthogonal to the answer would never find it.
    noise = np.random.default_rng(0).standard_normal(size)
    scale = np.linalg.norm(start) or 1.0
    start = start / scale + 1e-3 * noise / np.linalg.norm(noise)
    if not step(start).any():  # the matrix is zero: every vector is an eigenvector
        return 0.0, start
    operator = LinearOperator((size, size), matvec=lambda u: step(np.ravel(u)), dtype=np.float64)
    values, vectors = eigsh(operator, k=1, which="LA", v0=start)
    return float(values[0]), vectors[:, 0]


def _oriented(v: FloatArray) -> FloatArray:
    """Unit length, and the sign that makes the sum positive (the longer tail, if the sum says nothing)."""
    length = np.linalg.norm(v)
    if length == 0.0:  # H = 0: every unit vector is an eigenvector
        return np.full(v.size, v.size**-0.5)
    v = v / length
    total = v.sum()
    undecided = abs(total) <= _UNDECIDED * np.sqrt(v.size)
    sign = v.max() + v.min() if undecided else total
    return -v if sign < 0 else v
