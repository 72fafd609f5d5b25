"""The maps that are looked for: least squares on many small sets of pairs at once, and what it takes to fix one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.consensus._kernels_space import rotations_in_space, singular_values_in_space

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class MapModel:
    """A family of maps y = linear x + shift between spaces of dimension d.

    Parameters
    ----------
    name : str
        ``"orthogonal"``, ``"rotation"``, ``"rigid"``, ``"similarity"`` or ``"affine"``.
    dimension : int
        Of x; that of y may differ for ``"affine"``.
    reflection : bool
        Whether a map may mirror.
    """

    name: str
    dimension: int
    reflection: bool = False

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


@dataclass(frozen=True, eq=False)
class Maps:
    """Several maps y = linear x + shift: (s, d_y, d_x) and (s, d_y)."""

    linear: FloatArray
    shift: FloatArray

    def __len__(self) -> int:
        return len(self.linear)

    @property
    def stretch(self) -> FloatArray:
        """By how much each lengthens on average: the d-th root of its determinant; 0 between different dimensions."""
        d_y, d_x = self.linear.shape[1:]
        return np.abs(np.linalg.det(self.linear)) ** (1 / d_x) if d_x == d_y else np.zeros(len(self))

    def __getitem__(self, which: int | slice | Array) -> Maps:
        which = slice(which, which + 1) if isinstance(which, int) else which
        return Maps(self.linear[which], self.shift[which])


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted means over sets of pairs: of x (s, d_x), of y (s, d_y), and of products about those means.

    ``cross`` is the mean of (y - y_bar)(x - x_bar)^T, ``scatter`` that of (x - x_bar)(x - x_bar)^T. For maps without a
    shift x_bar = y_bar = 0.
    """

    x_bar: FloatArray
    y_bar: FloatArray
    cross: FloatArray
    scatter: FloatArray

    @staticmethod
    def from_sums(
        model: MapModel, total: float, x: FloatArray, y: FloatArray, cross: FloatArray, scatter: FloatArray
    ) -> Moments:
        """Of one set, from its sums of w, w x, w y, w y x^T and w x x^T."""
        x, y, cross, scatter = (part / max(total, _TINY) for part in (x, y, cross, scatter))
        if model.has_shift:
            cross, scatter = cross - y[:, None] * x, scatter - x[:, None] * x
        else:
            x, y = np.zeros_like(x), np.zeros_like(y)
        return Moments(x[None], y[None], cross[None], scatter[None])


def determines(model: MapModel, cross: FloatArray, smallest: float) -> bool:
    """Whether pairs with this cross-covariance fix a motion, by its singular values above ``smallest``.

    The rotation of least squares is unique iff s_(d-1) + sign(det cross) s_d > 0; where it may mirror, iff s_d > 0.
    """
    if cross.shape == (3, 3):
        values, sign = singular_values_in_space(cross)
    else:
        values, sign = np.linalg.svd(cross, compute_uv=False), np.sign(np.linalg.det(cross))
    if model.may_mirror or values.size == 1:
        return bool(values[-1] > smallest)
    return bool(min(values[-2], values[-2] + sign * values[-1]) > smallest)


def fit_maps(model: MapModel, x: FloatArray, y: FloatArray, weights: FloatArray) -> Maps:
    """Weighted least squares, one map per set: x (s, k, d_x), y (s, k, d_y), weights (s, k)."""
    total = np.maximum(weights.sum(axis=1), _TINY)[:, None]
    share = (weights / total)[:, None, :]
    x_bar, y_bar = (share @ x)[:, 0], (share @ y)[:, 0]
    if not model.has_shift:
        x_bar, y_bar = np.zeros_like(x_bar), np.zeros_like(y_bar)
    x, y = x - x_bar[:, None], y - y_bar[:, None]
    weighted_x = x * share.transpose(0, 2, 1)
    cross, scatter = y.transpose(0, 2, 1) @ weighted_x, x.transpose(0, 2, 1) @ weighted_x
    return maps_of(model, Moments(x_bar, y_bar, cross, scatter))


def maps_of(model: MapModel, moments: Moments) -> Maps:
    """The maps of least squares for these moments.

    C = cross = U S V^T; R = U D V^T with det R = +1 unless it may mirror; scale tr(D S) / tr(scatter); shift
    y_bar - scale R x_bar (Umeyama 1991). Sets that determine nothing give some map, which then finds no support.
    """
    if model.name == "affine":
        linear = moments.cross @ np.linalg.pinv(moments.scatter, hermitian=True)
    elif moments.cross.shape[1:] == (3, 3) and model.name != "similarity":
        linear = rotations_in_space(np.ascontiguousarray(moments.cross), model.may_mirror)
    else:
        linear = _conformal(model, moments.cross, np.trace(moments.scatter, axis1=1, axis2=2))
    return Maps(linear, moments.y_bar - (linear @ moments.x_bar[:, :, None])[:, :, 0])


def _conformal(model: MapModel, cross: FloatArray, squared_length: FloatArray) -> FloatArray:
    U, s, Vt = np.linalg.svd(cross)
    if not model.may_mirror:
        handedness = np.where(np.linalg.det(U @ Vt) < 0, -1.0, 1.0)
        U[:, :, -1] *= handedness[:, None]
        s[:, -1] *= handedness
    rotation = U @ Vt
    if model.name != "similarity":
        return rotation
    scale = np.maximum(s.sum(axis=1), 0.0) / np.maximum(squared_length, _TINY)
    in_one_place = squared_length <= _TINY  # copies of one pair, which say nothing about the scale
    return np.where(in_one_place, 1.0, scale)[:, None, None] * rotation
