"""What the surface about a point looks like: fast point feature histograms (FPFH, Rusu et al. 2009), free of signs.

For two neighbours with normals n_1, n_2 and the unit vector e from one to the other, in the frame u = n_1,
v = e x u / |e x u|, w = u x v, the features are

    alpha = v . n_2,   phi = u . e,   theta = atan2(w . n_2, u . n_2).

A normal's sign is arbitrary unless somebody knows where the sensor stood. So n_2 is turned to the side of n_1, and if
both are turned over, phi and theta change their sign and alpha does not. A histogram is kept in two parts: the *even*
one, which does not change as the normal is turned over, and the *odd* one, which changes its sign. Neighbours are added
up to FPFH with their relative sign, and two points are compared under the better of the two signs:

    similarity = F_even . G_even + |F_odd . G_odd|.

Histograms are taken at two radii, and the square roots of their entries are compared (as in RootSIFT; Arandjelovic and
Zisserman 2012), less their mean: what all points have in common tells none of them apart. Candidate matches are, for
each point of either cloud, the point of the other that looks most alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.clouds.surfaces import Neighbours

_BINS = 11  # of each feature, as in the paper
_HALF = _BINS // 2
_LIMITS = 1.0, 1.0, np.pi / 2  # of alpha, phi and theta
_TINY = 1e-30
_BLOCK = 2**22  # entries of the matrix of similarities at a time


@dataclass(frozen=True, eq=False)
class Descriptors:
    """A row per point, in two parts."""

    even: Array
    odd: Array

    def centred(self, mean: Array) -> Descriptors:
        """Without what is common, and of unit length."""
        return _of_unit_length(self.even - mean, self.odd)


def describe(normals: FloatArray, neighbours: Neighbours, radii: tuple[float, ...]) -> Descriptors:
    """Describe each point by its neighbours within each of the radii, and by theirs."""
    *features, same_side = _pair_features(normals, neighbours)
    bins = [_bins(feature, limit) for feature, limit in zip(features, _LIMITS, strict=True)]
    parts = []
    for radius in radii:
        kept = np.flatnonzero(neighbours.distance <= radius)
        if kept.size < neighbours.first.size:
            near = neighbours.nearer(radius)
            parts.append(_rooted(_fpfh(near, [one[kept] for one in bins], same_side[kept])))
        else:
            parts.append(_rooted(_fpfh(neighbours, bins, same_side)))
    return _of_unit_length(np.hstack([part.even for part in parts]), np.hstack([part.odd for part in parts]))


def common_part(a: Descriptors, b: Descriptors) -> Array:
    """The mean of the even parts of two clouds."""
    mean: Array = (a.even.mean(axis=0) + b.even.mean(axis=0)) / 2
    return mean


def match(source: Descriptors, target: Descriptors) -> Array:
    """Rows of source and target that are nearest to each other, in at least one direction; each pair once."""
    n, m = len(source.even), len(target.even)
    of_source, of_target, best = np.empty(n, np.intp), np.zeros(m, np.intp), np.full(m, -np.inf, np.float32)
    step = max(1, _BLOCK // m)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        similarity = source.even[rows] @ target.even.T
        odd = source.odd[rows] @ target.odd.T
        similarity += np.abs(odd, out=odd)
        of_source[rows] = np.argmax(similarity, axis=1)
        top = np.argmax(similarity, axis=0)
        value = similarity[top, np.arange(m)]
        better = value > best
        of_target[better], best[better] = top[better] + start, value[better]
    one_way = np.arange(n) * m + of_source
    other_way = of_target * m + np.arange(m)
    numbers = np.union1d(one_way, other_way)
    return np.column_stack([numbers // m, numbers % m])


def _pair_features(normals: FloatArray, neighbours: Neighbours) -> tuple[Array, ...]:
    """alpha, phi and theta with the sign of n_first, and whether n_second has the same sign, as 1 and -1."""
    columns, e = np.ascontiguousarray(normals.T, dtype=np.float32), neighbours.direction
    n, m = columns.take(neighbours.first, axis=1), columns.take(neighbours.second, axis=1)
    between = _dot(n, m)
    same_side = np.copysign(np.float32(1), between)
    first, second = _dot(n, e), _dot(m, e) * same_side
    volume = same_side * _dot(e, _cross(n, m))  # e . (n x m), as v . n_2 times |e x u|
    # The frame belongs to the point whose normal is nearer to the line between them, so that both see the same.
    swap = np.abs(first) < np.abs(second)
    phi, other = np.where(swap, -second, first), np.where(swap, -first, second)
    across = np.sqrt(np.maximum(1 - phi**2, np.float32(1e-12)))  # |e x u|
    cosine = np.abs(between)
    theta = np.arctan2((other - phi * cosine) / across, cosine)  # w . n_2 = (e . n_2 - (e . u) (u . n_2)) / |e x u|
    return volume / across, phi, theta, same_side


def _dot(a: Iterable[Array], b: Iterable[Array]) -> Array:
    (x, y, z), (u, v, w) = a, b
    product: Array = x * u + y * v + z * w
    return product


def _cross(a: Array, b: Array) -> tuple[Array, Array, Array]:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _bins(feature: Array, limit: float) -> Array:
    """Numbers of the bins that a feature in [-limit, limit] falls into; that of -feature is the last less that."""
    bins = ((feature / np.float32(limit) + 1) * np.float32(_BINS / 2)).astype(np.intp)
    return np.clip(bins, 0, _BINS - 1, out=bins)


def _fpfh(neighbours: Neighbours, bins: Sequence[Array], same_side: Array) -> Descriptors:
    """The histograms of a point and, by nearness, of its neighbours."""
    n, first, second = neighbours.n_points, _BINS * neighbours.first, _BINS * neighbours.second
    alpha, *signed = bins
    even, odd = [_histogram(n, first + alpha) + _histogram(n, second + alpha)], []
    for one in signed:
        counts = _histogram(n, first + one) + _histogram(n, second + np.where(same_side > 0, one, _BINS - 1 - one))
        even.append(counts + counts[:, ::-1])
        odd.append(counts - counts[:, ::-1])
    share = (1 / np.maximum(neighbours.count(), 1)).astype(np.float32)[:, None]
    single_even, single_odd = np.hstack(even) * share, np.hstack(odd) * share
    nearness = (1 / np.maximum(neighbours.distance, _TINY)).astype(np.float32)
    nearness /= nearness.max(initial=_TINY)
    total = np.maximum(neighbours.sums(np.ones((n, 1), np.float32), nearness), _TINY)
    return Descriptors(
        single_even + neighbours.sums(single_even, nearness) / total,
        single_odd + neighbours.sums(single_odd, nearness * same_side) / total,
    )


def _histogram(n_points: int, numbers: Array) -> Array:
    """Counts of the bins of each point."""
    return np.bincount(numbers, minlength=n_points * _BINS).reshape(n_points, _BINS).astype(np.float32)


def _rooted(histograms: Descriptors) -> Descriptors:
    """Square roots of the entries, split into even and odd parts again, each entry of them once."""
    even, odd = [np.sqrt(histograms.even[:, :_BINS])], []
    for k in (0, 1):
        plus = histograms.even[:, (k + 1) * _BINS : (k + 2) * _BINS]
        minus = histograms.odd[:, k * _BINS : (k + 1) * _BINS]
        root = np.sqrt(np.maximum(plus + minus, 0) / 2)
        turned_over = root[:, ::-1]
        even += [(root + turned_over)[:, :_HALF] / np.sqrt(2), root[:, _HALF : _HALF + 1]]
        odd.append((root - turned_over)[:, :_HALF] / np.sqrt(2))
    return _of_unit_length(np.hstack(even), np.hstack(odd))


def _of_unit_length(even: Array, odd: Array) -> Descriptors:
    length = np.sqrt(np.einsum("ij,ij->i", even, even) + np.einsum("ij,ij->i", odd, odd))
    length = np.maximum(length, _TINY)[:, None]
    return Descriptors((even / length).astype(np.float32), (odd / length).astype(np.float32))
