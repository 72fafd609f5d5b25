"""Weighted sums over pairs about their weighted centroids, in float64, a block of rows at a time.

Notation: z_x = (x - centre_x) / unit_x with a power of two for unit_x, so that it costs no digit and nothing
overflows; likewise z_y. W is the sum of the weights, the largest of which is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows.threads import row_blocks

_EPS = float(np.finfo(np.float64).eps)
_SUMMATION = 8.0  # rounding of a computed moment, in eps * dimension * (root of the two sums of squares)


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two point sets, as its sums see it.

    Attributes
    ----------
    centre : ndarray of shape (d,)
        Weighted centroid, or the origin.
    unit : float
        What z is measured in.
    rounding : ndarray of shape (d,)
        How far a value of each column may be off because it was stored, in units.
    length : float
        Root of the sum of w_i |z_i|^2.
    """

    centre: FloatArray
    unit: float
    rounding: FloatArray
    length: float

    def relative(self, points: Array) -> FloatArray:
        """Return z of these rows, as columns."""
        z = np.empty(points.shape[::-1])
        np.subtract(points.T, self.centre[:, None], out=z, dtype=np.float64)
        z /= self.unit
        return z


class CentredPairs:
    """n weighted pairs about their centroids (or the origin), of which only moments are kept.

    Parameters
    ----------
    X, Y : array of shape (n, d_x), (n, d_y)
        Finite numbers.
    weights : ndarray of shape (n,) or None
        Not negative, the largest 1. Rows of weight 0 are not looked at.
    about_origin : bool
        Do not subtract the centroids.
    """

    def __init__(self, X: Array, Y: Array, weights: FloatArray | None, *, about_origin: bool) -> None:
        self._tables, self._weights = (X, Y), weights
        self.n_active = len(X) if weights is None else int(np.count_nonzero(weights))
        self.total_weight = float(len(X) if weights is None else weights.sum())
        self.x, self.y = self._first_look(about_origin)
        self.cross = self._add_up(about_origin)

    def scatter(self) -> tuple[FloatArray, FloatArray]:
        """Return the sums of w z_x z_x^T and of w z_y z_y^T."""
        of_x, of_y = (np.zeros((side.centre.size,) * 2) for side in (self.x, self.y))
        for w, z_x, z_y in self._blocks():
            of_x += (w * z_x) @ z_x.T
            of_y += (w * z_y) @ z_y.T
        return of_x, of_y

    def triangle(self) -> FloatArray:
        """R of the QR decomposition of the rows sqrt(w) (z_x, z_y): least squares without squaring the condition."""
        width = self.x.centre.size + self.y.centre.size
        R: Any = np.zeros((0, width))
        for w, z_x, z_y in self._blocks():
            R = np.linalg.qr(np.vstack([R, (np.sqrt(w) * np.vstack([z_x, z_y])).T]), mode="r")
        return R

    def rank_of_cross(self, U: FloatArray, s: FloatArray, Vt: FloatArray) -> int:
        """How many singular values of `cross` = U diag(s) Vt are more than rounding.

        If x and y are off by e_x and e_y, then u^T cross v is off by (Y u).(E_x v) + (E_y u).(X v): by the rounding
        of one side times the spread of the other in that direction. Points on a line have no spread off it.
        """
        if s[-1] > self.noise(self.x.length, self.y.length):
            return s.size
        of_x, of_y = self.scatter()
        along_x = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", Vt, of_x, Vt), 0))
        along_y = np.sqrt(np.maximum(np.einsum("ik,ij,jk->k", U, of_y, U), 0))
        return int(np.count_nonzero(s > self.noise(along_x, along_y)))

    def noise(self, along_x: float | FloatArray, along_y: float | FloatArray) -> FloatArray:
        """Rounding in an entry of `cross` between directions along which the points have these lengths."""
        off_x, off_y = self.rounding_length(self.x), self.rounding_length(self.y)
        summed = _SUMMATION * _EPS * self.x.centre.size * self.x.length * self.y.length
        return summed + off_x * np.asarray(along_y) + off_y * np.asarray(along_x) + off_x * off_y

    def rounding_length(self, side: Side) -> float:
        """Length that points which are all equal may seem to have."""
        return float(np.sqrt(self.total_weight) * np.linalg.norm(side.rounding))

    def _blocks(self) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Weights, z_x and z_y of the pairs that have a weight.

        Points are columns here, as in the paper: sums over narrow rows run several times faster along contiguous lines.
        """
        X, Y = self._tables
        for rows in row_blocks(len(X), X.shape[1] + Y.shape[1]):
            x, y = X[rows], Y[rows]
            if self._weights is None:
                w: FloatArray = np.ones(len(x))
            else:
                w = self._weights[rows]
                if not w.all():
                    active = np.flatnonzero(w)
                    w, x, y = w[active], x[active], y[active]
            yield w, self.x.relative(x), self.y.relative(y)

    def _first_look(self, about_origin: bool) -> tuple[Side, Side]:
        """Find centroids to rounding, and units."""
        plain = [Side(np.zeros(T.shape[1]), 1.0, np.zeros(T.shape[1]), 0.0) for T in self._tables]
        self.x, self.y = plain
        sums, least, most = ([np.full(T.shape[1], start) for T in self._tables] for start in (0.0, np.inf, -np.inf))
        for w, *sides in self._blocks():
            for k, points in enumerate(sides):
                if len(w):
                    sums[k] += points @ w
                    np.minimum(least[k], points.min(axis=1), out=least[k])
                    np.maximum(most[k], points.max(axis=1), out=most[k])
        found = []
        for k, table in enumerate(self._tables):
            centre = np.zeros(table.shape[1]) if about_origin else sums[k] / self.total_weight
            reach = float(np.maximum(most[k] - centre, centre - least[k]).max())
            unit = float(np.ldexp(1.0, int(np.frexp(reach)[1]) - 1)) if reach > 0 else 1.0
            eps = max(float(np.finfo(table.dtype).eps) if table.dtype.kind == "f" else _EPS, _EPS)
            rounding = eps * (np.maximum(np.abs(least[k]), np.abs(most[k])) / unit)
            found.append(Side(centre, unit, rounding, 0.0))
        return found[0], found[1]

    def _add_up(self, about_origin: bool) -> FloatArray:
        """Sum of w z_y z_x^T; on the way the centroids lose the rounding that far-away data gave them."""
        d_x, d_y = self.x.centre.size, self.y.centre.size
        cross = np.zeros((d_y, d_x))
        sums, squares = [np.zeros(d_x), np.zeros(d_y)], [0.0, 0.0]
        for w, z_x, z_y in self._blocks():
            weighted_y = w * z_y
            cross += weighted_y @ z_x.T
            sums[0] += z_x @ w
            sums[1] += z_y @ w
            squares[0] += float(w @ np.einsum("ij,ij->j", z_x, z_x))
            squares[1] += float(np.vdot(weighted_y, z_y))
        if not about_origin:
            cross -= np.outer(sums[1], sums[0]) / self.total_weight
            squares = [max(a - float(b @ b) / self.total_weight, 0.0) for a, b in zip(squares, sums, strict=True)]
        sides = []
        for side, total, square in zip((self.x, self.y), sums, squares, strict=True):
            centre = side.centre if about_origin else side.centre + side.unit * (total / self.total_weight)
            sides.append(Side(centre, side.unit, side.rounding, float(np.sqrt(square))))
        self.x, self.y = sides
        return cross
