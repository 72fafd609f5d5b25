"""Moments and scores of pairs of narrow rows on a CUDA device, compiled by numba for their dimensions."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

from numba import cuda, float64

from inlier.rows import _cuda_kernels as cuda_kernels
from inlier.rows._cuda_kernels import add_up

_MOST_KEPT = 24  # numbers common to all rows that a thread copies to registers


class _Layout(NamedTuple):
    """Where the numbers common to all rows stand in the line ``fixed`` that a kernel is given.

    Both means, the least squared lengths of a row with a direction (from ``least`` on), whether rows get unit length,
    and the matrix U (from ``matrix`` on). A thread copies ``n_kept`` of them to registers, or reads them in place if
    they are too many.
    """

    least: int
    matrix: int
    n_kept: int

    @classmethod
    def of(cls, d_x, d_y):
        matrix = d_x + d_y + 3
        size = matrix + d_x * d_y
        return cls(d_x + d_y, matrix, size if size <= _MOST_KEPT else 1)


@cache
def pair_kernels(d_x, d_y):
    """Kernels for pairs of these dimensions, which are part of the compiled code."""
    return {
        "cross_moment": _moment_kernel(d_x, d_y, stepping=False),
        "gram_step": _moment_kernel(d_x, d_y, stepping=True),
        "product_moment": _products_kernel(d_x, d_y),
        "scores": _scores_kernel(d_x, d_y),
    }


@cache
def _access(n_kept):
    """Device functions that copy the line ``fixed`` to registers, and that read an entry of it."""

    @cuda.jit(device=True)
    def keep(fixed, kept):
        for k in range(n_kept):
            kept[k] = fixed[k] if k < fixed.shape[0] else 0.0

    @cuda.jit(device=True)
    def from_registers(fixed, kept, k):
        return kept[k]

    @cuda.jit(device=True)
    def in_place(fixed, kept, k):
        return fixed[k]

    return keep, from_registers if n_kept > 1 else in_place


@cache
def _loader(d_x, d_y):
    """Device function that reads and centres a pair."""
    least, _, n_kept = _Layout.of(d_x, d_y)
    _, at = _access(n_kept)

    @cuda.jit(device=True)
    def load(X, Y, row, fixed, kept, x, y, own):
        """Centred rows into x and y, |x|^2 |y|^2 f^2 into own; f = 1 / (|x| |y|), 0 without direction, 1 if as is."""
        squared_x = 0.0
        for a in range(d_x):
            x[a] = float64(X[row, a]) - at(fixed, kept, a)
            squared_x += x[a] * x[a]
        squared_y = 0.0
        for b in range(d_y):
            y[b] = float64(Y[row, b]) - at(fixed, kept, d_x + b)
            squared_y += y[b] * y[b]
        factor = 1.0
        if at(fixed, kept, least + 2) > 0.0:
            factor = 0.0
            if squared_x > at(fixed, kept, least) and squared_y > at(fixed, kept, least + 1):
                factor = 1.0 / math.sqrt(squared_x * squared_y)
        own[0] = squared_x * squared_y * factor * factor
        return factor

    return load


@cache
def _product_with_matrix(d_x, d_y):
    """Device function for x^T U y."""
    _, matrix, n_kept = _Layout.of(d_x, d_y)
    _, at = _access(n_kept)

    @cuda.jit(device=True)
    def product_with_matrix(fixed, kept, x, y):
        score = 0.0
        for a in range(d_x):
            along = 0.0
            for b in range(d_y):
                along += at(fixed, kept, matrix + a * d_y + b) * y[b]
            score += x[a] * along
        return score

    return product_with_matrix


def _moment_kernel(d_x, d_y, stepping):
    n_kept = _Layout.of(d_x, d_y).n_kept
    n_threads, n_moment = cuda_kernels.THREADS, d_x * d_y  # sizes of arrays must be constants
    (keep, _), load, product_with_matrix = _access(n_kept), _loader(d_x, d_y), _product_with_matrix(d_x, d_y)

    @cuda.jit
    def moment(X, Y, fixed, partial):
        """Sum of f x y^T, or with ``stepping`` of (f x^T U y) f x y^T, a line per block."""
        x, y, own = cuda.local.array(d_x, float64), cuda.local.array(d_y, float64), cuda.local.array(1, float64)
        total, kept = cuda.local.array(n_moment, float64), cuda.local.array(n_kept, float64)
        scratch = cuda.shared.array(n_threads, float64)
        keep(fixed, kept)
        for k in range(n_moment):
            total[k] = 0.0
        for row in range(cuda.grid(1), X.shape[0], cuda.gridsize(1)):
            weight = load(X, Y, row, fixed, kept, x, y, own)
            if stepping:
                weight *= product_with_matrix(fixed, kept, x, y) * weight
            for a in range(d_x):
                for b in range(d_y):
                    total[a * d_y + b] += (weight * x[a]) * y[b]
        for k in range(n_moment):
            found = add_up(total[k], scratch)
            if cuda.threadIdx.x == 0:
                partial[cuda.blockIdx.x, k] = found

    return moment


def _products_kernel(d_x, d_y):
    n_kept = _Layout.of(d_x, d_y).n_kept
    n_threads, n_products = cuda_kernels.THREADS, d_x * (d_x + 1) // 2 * (d_y * (d_y + 1) // 2)
    (keep, _), load = _access(n_kept), _loader(d_x, d_y)

    @cuda.jit
    def products(X, Y, fixed, partial):
        """Sum of all x_a x_c y_b y_e with a <= c and b <= e, times f^2, a line per block."""
        x, y, own = cuda.local.array(d_x, float64), cuda.local.array(d_y, float64), cuda.local.array(1, float64)
        total, kept = cuda.local.array(n_products, float64), cuda.local.array(n_kept, float64)
        scratch = cuda.shared.array(n_threads, float64)
        keep(fixed, kept)
        for k in range(n_products):
            total[k] = 0.0
        for row in range(cuda.grid(1), X.shape[0], cuda.gridsize(1)):
            factor = load(X, Y, row, fixed, kept, x, y, own)
            k = 0
            for a in range(d_x):
                for c in range(a, d_x):
                    product = x[a] * x[c] * factor * factor
                    for b in range(d_y):
                        for e in range(b, d_y):
                            total[k] += product * (y[b] * y[e])
                            k += 1
        for k in range(n_products):
            found = add_up(total[k], scratch)
            if cuda.threadIdx.x == 0:
                partial[cuda.blockIdx.x, k] = found

    return products


def _scores_kernel(d_x, d_y):
    n_kept = _Layout.of(d_x, d_y).n_kept
    (keep, _), load, product_with_matrix = _access(n_kept), _loader(d_x, d_y), _product_with_matrix(d_x, d_y)

    @cuda.jit
    def scores(X, Y, fixed, scale, leave_out, out):
        """Write scale (f x^T U y), or scale (f x^T U y - f^2 |x|^2 |y|^2) with ``leave_out``."""
        x, y, own = cuda.local.array(d_x, float64), cuda.local.array(d_y, float64), cuda.local.array(1, float64)
        kept = cuda.local.array(n_kept, float64)
        keep(fixed, kept)
        for row in range(cuda.grid(1), X.shape[0], cuda.gridsize(1)):
            factor = load(X, Y, row, fixed, kept, x, y, own)
            score = factor * product_with_matrix(fixed, kept, x, y)
            if leave_out:
                score -= own[0]
            out[row] = scale * score

    return scores
