"""The leading eigenvector of H by three routes that give one answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from inlier.engine import PairedRows
from inlier.engine.blocks import FloatArray
from inlier.engine.moments import bilinear, cross_moment, gram_step, kronecker_moment, product_moment

_SMALLEST_FOR_LANCZOS = 32  # below this a full eigendecomposition is both faster and safer


class Eigenpair(NamedTuple):
    """An eigenvalue and its unit eigenvector."""

    value: float
    vector: FloatArray


def eigenpair_by_moments(pairs: PairedRows) -> Eigenpair:
    """Form K^T K (d_x d_y square) in one pass; its leading eigenvector u gives v = K u / |K u|."""
    moment = kronecker_moment(pairs.sum(product_moment), *pairs.dimensions)
    value, u = _leading_of_dense(moment)
    return _from_side_of_moments(pairs, value, u)


def eigenpair_by_operator(pairs: PairedRows) -> Eigenpair:
    """Lanczos without a matrix, on whichever side of H = K K^T is smaller.

    In the space of (d_x, d_y) matrices one step reads the rows once and moves d_x d_y numbers; with
    fewer pairs than d_x d_y a step is H v, two thin products.
    """
    d_x, d_y = pairs.dimensions

    def step_in_moments(u: FloatArray) -> FloatArray:
        return pairs.sum(gram_step, matrix=u.reshape(d_x, d_y)).ravel()

    def step_in_pairs(v: FloatArray) -> FloatArray:
        return pairs.map(bilinear, matrix=pairs.sum(cross_moment, v))

    all_ones = pairs.sum(cross_moment).ravel()  # K^T 1: the row sums already point at the inliers
    if d_x * d_y <= pairs.n_pairs:
        value, u = _leading_by_lanczos(step_in_moments, all_ones)
        return _from_side_of_moments(pairs, value, u)
    start = pairs.map(bilinear, matrix=all_ones.reshape(d_x, d_y))
    value, v = _leading_by_lanczos(step_in_pairs, start)
    return Eigenpair(value, _oriented(v))


def eigenpair_of_dense(H: FloatArray) -> Eigenpair:
    """Leading eigenpair of H itself, already formed."""
    if len(H) < _SMALLEST_FOR_LANCZOS:
        value, v = _leading_of_dense(H)
    else:
        value, v = _leading_by_lanczos(lambda v: H @ v, H.sum(axis=1))
    return Eigenpair(value, _oriented(v))


def _from_side_of_moments(pairs: PairedRows, value: float, u: FloatArray) -> Eigenpair:
    v = pairs.map(bilinear, matrix=u.reshape(pairs.dimensions))
    return Eigenpair(value, _oriented(v))


def _leading_of_dense(matrix: FloatArray) -> tuple[float, FloatArray]:
    last = len(matrix) - 1
    values, vectors = eigh(matrix, subset_by_index=[last, last])
    return float(values[0]), vectors[:, 0]


def _leading_by_lanczos(step: Callable[[FloatArray], FloatArray], start: FloatArray) -> tuple[float, FloatArray]:
    size = start.size
    if size < _SMALLEST_FOR_LANCZOS:
        matrix = np.stack([step(column) for column in np.eye(size)])
        return _leading_of_dense((matrix + matrix.T) / 2)
    # A pinch of fixed noise: a start orthogonal to the answer would never find it.
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
    undecided = abs(total) <= 1e-8 * np.sqrt(v.size)
    sign = v.max() + v.min() if undecided else total
    return -v if sign < 0 else v
