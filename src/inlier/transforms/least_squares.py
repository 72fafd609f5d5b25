"""The one least squares: weighted, in closed form, of all models, for one set of pairs or for many at once.

Minimises sum_i w_i |y_i - T(x_i)|^2 over the maps T of a model.

Notation (code <-> Umeyama 1991): cross is C = mean of w (y - y_bar)(x - x_bar)^T = U diag(s) V^T (eq. 38); R = U D V^T
its polar factor, with D = diag(1, ..., 1, det U det V) where reflections are not allowed (eq. 40, 43); scale
c = tr(D diag(s)) / mean of w |x - x_bar|^2 (eq. 42); shift t = y_bar - c R x_bar (eq. 41). Models without a shift have
x_bar = y_bar = 0. Vt is V^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from inlier._checks import check_choice
from inlier._typing import Array, FloatArray

MODELS = ("orthogonal", "rotation", "rigid", "similarity", "affine")
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class MapModel:
    """A family of maps y = linear x + shift between spaces of dimension d."""

    name: str  # ``"orthogonal"``, ``"rotation"``, ``"rigid"``, ``"similarity"`` or ``"affine"``
    dimension: int  # of x; that of y may differ for ``"affine"``
    reflection: bool = False  # whether a map may mirror

    @property
    def has_shift(self) -> bool:
        """Whether it translates."""
        return self.name not in ("orthogonal", "rotation")

    @property
    def keeps_distances(self) -> bool:
        """Whether distances on both sides are equal, up to one common scale."""
        return self.name != "affine"

    @property
    def may_mirror(self) -> bool:
        """Whether det(linear) may be negative."""
        return self.reflection or self.name in ("orthogonal", "affine")

    @property
    def may_stretch(self) -> bool:
        """Whether lengths may change."""
        return self.name in ("similarity", "affine")

    @property
    def directions_needed(self) -> int:
        """Independent directions that fix the linear part."""
        return self.dimension if self.may_mirror else self.dimension - 1

    @property
    def fewest_pairs(self) -> int:
        """Pairs in general position that determine a map (up to a reflection)."""
        d = self.dimension
        return d + 1 if self.name == "affine" else d if self.has_shift else max(d - 1, 1)

    @property
    def constraints(self) -> int:
        """Equations between the two sides that ``fewest_pairs`` real pairs fulfil: distances, lengths."""
        if not self.keeps_distances:
            return 0
        k = self.fewest_pairs
        return k * (k - 1) // 2 + (0 if self.has_shift else k) - (self.name == "similarity")

    @property
    def freedom(self) -> int:
        """Number of parameters of a map."""
        d = self.dimension
        if self.name == "affine":
            return d * (d + 1)
        return d * (d - 1) // 2 + d * self.has_shift + (self.name == "similarity")


def check_model(model: str, X: Array, Y: Array, reflection: bool) -> None:
    """Refuse what no transformation of a model can be."""
    check_choice(model, MODELS, "model")
    if model == "rotation" and reflection:
        raise ValueError("Model 'rotation' never reflects. Use model='orthogonal', or leave out reflection=True.")
    if model != "affine" and X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"A {model} transformation keeps the dimension, but X has shape {X.shape} and Y {Y.shape}. "
            f"Use model='affine', or bring both to the same number of columns."
        )


@dataclass(frozen=True, eq=False)
class Maps:
    """Several maps y = linear x + shift: (s, d_y, d_x) and (s, d_y)."""

    linear: FloatArray
    shift: FloatArray

    def __len__(self) -> int:
        return len(self.linear)

    @cached_property
    def stretch(self) -> FloatArray:
        """By how much each lengthens on average: the d-th root of its determinant; 0 between different dimensions."""
        d_y, d_x = self.linear.shape[1:]
        return np.abs(np.linalg.det(self.linear)) ** (1 / d_x) if d_x == d_y else np.zeros(len(self))

    def __getitem__(self, which: int | slice | Array) -> Maps:
        which = slice(which, which + 1) if isinstance(which, int) else which
        return Maps(self.linear[which], self.shift[which])


@cache
def identity(d: int) -> Maps:
    """The map that leaves points of d dimensions where they are."""
    return Maps(np.eye(d)[None], np.zeros((1, d)))


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted means over sets of pairs: of x (s, d_x), of y (s, d_y), and of products about those means.

    ``cross`` is the mean of (y - y_bar)(x - x_bar)^T, ``scatter`` that of (x - x_bar)(x - x_bar)^T; only affine maps
    need more than its diagonal. For maps without a shift x_bar = y_bar = 0.
    """

    x_bar: FloatArray
    y_bar: FloatArray
    cross: FloatArray
    scatter: FloatArray

    @cached_property
    def handedness(self) -> float:
        """1 where the pairs of the first set look turned, -1 where they look mirrored, 0 where neither."""
        cross = self.cross[0]
        return float(np.sign(np.linalg.det(cross / max(float(np.abs(cross).max()), _TINY))))

    @staticmethod
    def from_sums(model: MapModel, sums: FloatArray) -> Moments:
        """Of one set, from its sum of w z (1, x)^T, z = (1, x, y)."""
        k = sums.shape[1]
        means = sums / max(float(sums[0, 0]), _TINY)
        if not model.has_shift:
            means[1:, 0] = 0.0
        bar = means[None, :, 0]
        about = means[None, 1:, 1:] - bar[:, 1:, None] * bar[:, None, 1:k]
        return Moments(bar[:, 1:k], bar[:, k:], about[:, k - 1 :], about[:, : k - 1])


def fit_maps(model: MapModel, x: FloatArray, y: FloatArray, weights: FloatArray) -> Maps:
    """Fit one map per set: x (s, k, d_x), y (s, k, d_y), weights (s, k)."""
    share = (weights / np.maximum(weights.sum(axis=1), _TINY)[:, None])[:, None, :]
    x_bar, y_bar = ((share @ points)[:, 0] * model.has_shift for points in (x, y))
    x, y = x - x_bar[:, None], y - y_bar[:, None]
    weighted_x = x * share.transpose(0, 2, 1)
    cross, scatter = y.transpose(0, 2, 1) @ weighted_x, x.transpose(0, 2, 1) @ weighted_x
    return maps_of(model, Moments(x_bar, y_bar, cross, scatter))


def maps_of(model: MapModel, moments: Moments) -> Maps:
    """The maps of least squares for these moments; sets that determine nothing give some map."""
    if model.name == "affine":
        linear = moments.cross @ np.linalg.pinv(moments.scatter, hermitian=True)
    else:
        U, s, Vt = np.linalg.svd(moments.cross)
        linear = U @ Vt
        if not model.may_mirror:
            mirrored = np.linalg.det(linear) < 0
            if mirrored.any():
                U[mirrored, :, -1] *= -1.0
                s[mirrored, -1] *= -1.0
                linear = U @ Vt
        if model.name == "similarity":
            squares = np.trace(moments.scatter, axis1=1, axis2=2)
            scale = np.maximum(s.sum(axis=1), 0.0) / np.maximum(squares, _TINY)
            # Copies of one pair say nothing about the scale.
            linear = np.where(squares <= _TINY, 1.0, scale)[:, None, None] * linear
    if not model.has_shift:
        return Maps(linear, np.zeros(linear.shape[:2]))
    return Maps(linear, moments.y_bar - (linear @ moments.x_bar[:, :, None])[:, :, 0])


def rank_and_uniqueness(
    model: MapModel, s: FloatArray, handedness: float, noise: float | FloatArray
) -> tuple[int, bool]:
    """How many directions the pairs fix, and whether those leave only one rotation: the test of being determined.

    ``s`` are the singular values of the cross-covariance C, falling; ``handedness`` is det U det V, or the sign of
    det C; ``noise`` is what rounding might make of each one. Not for affine maps: there the rank of X decides.
    Where it may mirror, R is unique iff s_d > 0. Else iff s_(d-1) + det(U V) s_d > 0: mirrored pairs may be as near to
    many rotations.
    """
    rank = int(np.count_nonzero(s > noise))
    if rank < model.directions_needed:
        return rank, False
    torn = not model.may_mirror and rank == s.size > 1 and s[-2] + handedness * s[-1] <= np.max(noise)
    return rank, not torn
