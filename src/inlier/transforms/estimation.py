"""`estimate_transformation`: read the tables, fit without losing digits, and say in words where pairs do not suffice.

The sums are about the centroids and in float64, a block of rows at a time. Notation as in `least_squares`, and
z_x = (x - centre_x) / unit_x with a power of two for unit_x, so that it costs no digit and nothing overflows; likewise
z_y. W is the sum of the weights, the largest of which is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from inlier._checks import check_paired, check_weights
from inlier._typing import Array, FloatArray
from inlier.exceptions import DegenerateConfigurationError
from inlier.rows import as_table, check_finite, summarise_columns
from inlier.rows.threads import row_blocks
from inlier.transforms.least_squares import MapModel, check_model, rank_and_uniqueness
from inlier.transforms.transformations import AffineTransformation, SimilarityTransformation, Transformation

_EPS = float(np.finfo(np.float64).eps)
_SUMMATION = 8.0  # rounding of a computed moment, in eps * dimension * (root of the two mean squares)


def estimate_transformation(
    model: str,
    X: Any,
    Y: Any,
    weights: Any = None,
    *,
    reflection: bool = False,
    allow_undetermined: bool = False,
) -> Transformation:
    """Fit the transformation that carries X onto Y, by weighted least squares in closed form.

    It trusts every pair as far as its weight says; nothing here looks for wrong pairs.

    Parameters
    ----------
    model : {"orthogonal", "rotation", "rigid", "similarity", "affine"}
        ``"rotation"`` and ``"orthogonal"`` have no translation, and the latter may reflect; ``"rigid"`` is rotation and
        translation; ``"similarity"`` has a scale too; ``"affine"`` is any linear map and translation.
    X : array-like of shape (n, d_x)
        Points.
    Y : array-like of shape (n, d_y)
        Their partners, in the same order. d_y = d_x except for ``"affine"``.
    weights : array-like of shape (n,), optional
        How much each pair counts; a mask will do. Pairs of weight 0 do not count at all.
    reflection : bool, default=False
        Whether ``"rigid"`` and ``"similarity"`` may mirror. ``"orthogonal"`` and ``"affine"`` always may.
    allow_undetermined : bool, default=False
        If the pairs fit several maps equally well, return the one nearest to the identity (the smallest rotation that
        completes what they determine; scale 1; for ``"affine"``, directions that X does not span are mapped to 0),
        with ``determined`` False, rather than raise.

    Returns
    -------
    SimilarityTransformation or AffineTransformation

    Raises
    ------
    DegenerateConfigurationError
        If the pairs do not determine the map: too few, coinciding, collinear, coplanar, and so on. A rotation takes
        d - 1 independent directions (d points, or d - 1 without translation), a reflection d, an affine map d_x.

    Notes
    -----
    O(n d^2) time; beyond the input it holds a block of rows, the weights and d x d matrices. Sums are in float64 and
    about the centroids, whatever the type of the input and however far from the origin it lies.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier import estimate_transformation
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> Y = 3 * X @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + [7.0, 0.0]
    >>> T = estimate_transformation("similarity", X, Y)
    >>> T
    <similarity transformation in 2 dimensions: scales by 3, turns by 90 degrees counter-clockwise and moves by (7, 0)>
    >>> np.allclose(T(X), Y), bool(T.residuals(X, Y).max() < 1e-12)
    (True, True)
    """
    X, Y = as_table(X, "X", one_column=True), as_table(Y, "Y", one_column=True)
    check_paired(X, Y, fewest=1)
    check_model(model, X, Y, reflection)
    for table, name in ((X, "X"), (Y, "Y")):
        check_finite(table, summarise_columns(table), name)
    checked = None if weights is None else check_weights(weights, len(X))
    return fit_transformation(MapModel(model, X.shape[1], reflection), X, Y, checked, allow_undetermined)


def fit_transformation(
    model: MapModel, X: Array, Y: Array, weights: FloatArray | None, allow_undetermined: bool
) -> Transformation:
    """Fit as `estimate_transformation` does, to tables and weights that have been checked."""
    if weights is not None and not weights.any():
        raise DegenerateConfigurationError(
            f"All {len(weights)} weights are 0, so no pair counts. Some must be positive."
        )
    pairs = _CentredPairs(X, Y, None if weights is None else weights / weights.max(), about_origin=not model.has_shift)
    if model.name == "affine":
        return _fit_affine(model, pairs, allow_undetermined)
    return _fit_similarity(model, pairs, allow_undetermined)


@dataclass(frozen=True, eq=False)
class _Side:
    """One point set: its centroid (or the origin) and unit; in units each column's rounding and the mean of w z z^T."""

    centre: FloatArray
    unit: float
    rounding: FloatArray
    scatter: FloatArray

    @property
    def length(self) -> float:
        """Root mean square of the points."""
        return float(np.sqrt(max(np.trace(self.scatter), 0.0)))

    @property
    def off(self) -> float:
        """Length that points which are all equal may seem to have."""
        return float(np.linalg.norm(self.rounding))

    @property
    def is_one_point(self) -> bool:
        """Whether all points coincide, as far as can be told."""
        return self.length <= self.off

    def along(self, directions: FloatArray) -> FloatArray:
        """Root mean square of the points in these directions, given as rows."""
        return np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", directions, self.scatter, directions), 0))

    @property
    def rank(self) -> int:
        """Dimensions that the points fill."""
        noise = max(8 * len(self.scatter) * _EPS * self.length**2, self.off**2)
        return int(np.count_nonzero(np.linalg.eigvalsh(self.scatter) > noise))


class _CentredPairs:
    """Means over weighted pairs about their centroids (or the origin); pairs of weight 0 are not looked at."""

    def __init__(self, X: Array, Y: Array, weights: FloatArray | None, *, about_origin: bool) -> None:
        self._X, self._Y, self._weights = X, Y, weights
        self.n_active = len(X) if weights is None else int(np.count_nonzero(weights))
        self.total_weight = float(len(X) if weights is None else weights.sum())
        d_x, d = X.shape[1], X.shape[1] + Y.shape[1]
        self._centre, self._unit = np.zeros(d), np.ones(d)  # of z = (z_x, z_y)
        rounding = self._centre_and_scale(about_origin)
        means, products = np.zeros(d), np.zeros((d, d))
        for w, z in self._blocks():
            products += (w * z) @ z.T
            means += z @ w
        means = means * (not about_origin) / self.total_weight
        products = products / self.total_weight - np.outer(means, means)
        self._centre = self._centre + self._unit * means  # without the rounding that far-away data gave it
        self.x, self.y = (
            _Side(self._centre[part], float(self._unit[part][0]), rounding[part], products[part, part])
            for part in (slice(d_x), slice(d_x, None))
        )
        self.cross = products[d_x:, :d_x]

    def noise(self, along_x: float | FloatArray, along_y: float | FloatArray) -> FloatArray:
        """Rounding in an entry of `cross` between directions along which the points have these lengths.

        If x and y are off by e_x and e_y, then u^T cross v is off by (Y u).(E_x v) + (E_y u).(X v): by the rounding
        of one side times the spread of the other in that direction. Points on a line have no spread off it.
        """
        x, y = self.x, self.y
        summed = _SUMMATION * _EPS * x.centre.size * x.length * y.length
        return summed + x.off * np.asarray(along_y) + y.off * np.asarray(along_x) + x.off * y.off

    def triangle(self) -> FloatArray:
        """R of the QR decomposition of the rows sqrt(w) z: least squares without squaring the condition."""
        R: Any = np.zeros((0, self._centre.size))
        for w, z in self._blocks():
            R = np.linalg.qr(np.vstack([R, (np.sqrt(w) * z).T]), mode="r")
        return R

    def _blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Weights and z of the pairs that have a weight; z as columns, since sums over narrow rows run slower."""
        d_x, d = self._X.shape[1], self._centre.size
        for rows in row_blocks(len(self._X), d):
            x, y = self._X[rows], self._Y[rows]
            w: FloatArray = np.ones(len(x)) if self._weights is None else self._weights[rows]
            if not w.all():
                active = np.flatnonzero(w)
                w, x, y = w[active], x[active], y[active]
            if w.size:
                z = np.empty((d, w.size))
                z[:d_x], z[d_x:] = x.T, y.T
                z -= self._centre[:, None]
                z /= self._unit[:, None]
                yield w, z

    def _centre_and_scale(self, about_origin: bool) -> FloatArray:
        """Find centroids to rounding, and units; return the rounding of each column in units."""
        sums, least, most = (np.full(self._centre.size, start) for start in (0.0, np.inf, -np.inf))
        for w, z in self._blocks():
            sums += z @ w
            np.minimum(least, z.min(axis=1), out=least)
            np.maximum(most, z.max(axis=1), out=most)
        centre = np.zeros_like(sums) if about_origin else sums / self.total_weight
        reach, eps, d_x = np.maximum(most - centre, centre - least), np.empty(centre.size), self._X.shape[1]
        for table, part in ((self._X, slice(d_x)), (self._Y, slice(d_x, None))):
            farthest = float(reach[part].max())
            self._unit[part] = np.ldexp(1.0, int(np.frexp(farthest)[1]) - 1) if farthest > 0 else 1.0
            eps[part] = max(float(np.finfo(table.dtype).eps) if table.dtype.kind == "f" else _EPS, _EPS)
        self._centre = centre
        return eps * (np.maximum(np.abs(least), np.abs(most)) / self._unit)


def _fit_similarity(model: MapModel, pairs: _CentredPairs, allow: bool) -> SimilarityTransformation:
    U, s, Vt = np.linalg.svd(pairs.cross)
    handedness = 1.0 if np.linalg.det(U) * np.linalg.det(Vt) > 0 else -1.0
    rank, determined = rank_and_uniqueness(model, s, handedness, pairs.noise(pairs.x.along(Vt), pairs.y.along(U.T)))
    if not (determined or allow):
        _refuse(model, pairs, rank)
    enough = rank >= model.directions_needed
    R = _polar_factor(U, Vt, 0 if model.may_mirror else handedness, known=s.size if enough else rank)
    scale = 1.0
    if model.name == "similarity":
        scale, has_scale = _scale(pairs, float(np.vdot(R, pairs.cross)), allow)
        determined = determined and has_scale
    shift = pairs.y.centre - scale * (R @ pairs.x.centre) if model.has_shift else None
    return SimilarityTransformation(R, shift, scale, model.name, determined)  # type: ignore[arg-type]


def _polar_factor(U: FloatArray, Vt: FloatArray, handedness: float, known: int) -> FloatArray:
    """R = U D V^T on the first ``known`` singular directions, and as near to the identity as can be on the others.

    ``handedness`` is det U det V where det R = +1 is asked for, 0 where it is free.
    """
    d = len(U)
    D = np.eye(d)
    if known < d:  # maximise tr R over D = diag(I, Q): Q is the polar factor of U_2^T V_2
        A, _, Bt = np.linalg.svd(U[:, known:].T @ Vt[known:].T)
        D[known:, known:] = A @ Bt
        if handedness * np.linalg.det(D) < 0:
            A[:, -1] *= -1
            D[known:, known:] = A @ Bt
    elif handedness < 0:
        D[-1, -1] = -1.0
    return U @ D @ Vt


def _scale(pairs: _CentredPairs, trace: float, allow: bool) -> tuple[float, bool]:
    """c = tr(R^T C) / mean of w |x - x_bar|^2, and whether the pairs determine it."""
    if pairs.x.is_one_point:
        if allow:
            return 1.0, False
        raise DegenerateConfigurationError(
            f"The scale is undetermined: all {pairs.n_active} points of X that count coincide. Add other points, use "
            f"model='rigid', or pass allow_undetermined=True for scale 1.",
            rank=0,
            rank_needed=1,
        )
    if trace <= pairs.noise(pairs.x.length, pairs.y.length):
        reason = "all points of Y coincide" if pairs.y.is_one_point else "Y does not follow X, or mirrors it"
        raise DegenerateConfigurationError(
            f"No positive scale fits the {pairs.n_active} pairs: the best is 0, because {reason}. Check the pairing; "
            f"if Y may be a mirror image, pass reflection=True.",
        )
    return trace / pairs.x.length**2 * (pairs.y.unit / pairs.x.unit), True


def _fit_affine(model: MapModel, pairs: _CentredPairs, allow: bool) -> AffineTransformation:
    """Least squares of z_y on z_x with columns of equal length, by the SVD of the triangle of its QR."""
    d_x = pairs.x.centre.size
    triangle = pairs.triangle()
    A, B = triangle[:, :d_x].copy(), triangle[:, d_x:]
    rounding = np.sqrt(pairs.total_weight) * pairs.x.rounding
    length = np.linalg.norm(A, axis=0)
    flat = length <= rounding
    A[:, flat], length[flat], rounding[flat] = 0.0, 1.0, 0.0
    U, s, Vt = np.linalg.svd(A / length, full_matrices=False)
    rank = int(np.count_nonzero(s > 8 * d_x * _EPS * s[0] + np.linalg.norm(rounding / length)))
    if rank < d_x and not allow:
        _refuse(model, pairs, rank)
    linear = ((U[:, :rank].T @ B) / s[:rank, None]).T @ (Vt[:rank] / length)
    if rank < d_x:
        span, _ = np.linalg.qr(length[:, None] * Vt[:rank].T)
        linear = (linear @ span) @ span.T
    linear = linear * (pairs.y.unit / pairs.x.unit)
    return AffineTransformation(linear, pairs.y.centre - linear @ pairs.x.centre, rank == d_x)


def _refuse(model: MapModel, pairs: _CentredPairs, rank: int) -> NoReturn:
    """Say what is degenerate about the pairs, and the cure."""
    n, needed = pairs.n_active, model.directions_needed
    name = (
        f"{'An' if model.name[0] in 'ao' else 'A'} {model.name} transformation of {model.dimension}-dimensional points"
    )
    cure = "or pass allow_undetermined=True for the best map on what they span."
    if n < needed + model.has_shift:
        fewest = needed + model.has_shift
        message = f"{name} needs at least {fewest} pairs of positive weight, but there are {n}. Add some, {cure}"
    elif rank >= needed:
        message = (
            f"{name} is not determined: the {n} pairs are mirror images, and many rotations are equally near to that "
            f"mirroring. Allow reflections (model='orthogonal', or reflection=True), {cure}"
        )
    else:
        x, y = (_shape(side.rank, len(side.scatter), model.has_shift) for side in (pairs.x, pairs.y))
        message = (
            f"{name} is not determined by these {n} pairs: the points of X {x}, those of Y {y}, and together they fix "
            f"{rank} independent direction(s) where {needed} are needed. Add pairs in other directions, {cure}"
        )
    raise DegenerateConfigurationError(message, rank, needed)


def _shape(rank: int, d: int, centred: bool) -> str:
    """Name the figure that points of this rank lie on."""
    if rank >= d:
        return f"fill all {d} dimension(s)"
    if centred:
        names = {0: "all coincide", 1: "are collinear", 2: "are coplanar"}
        return names.get(rank, f"lie in a {rank}-dimensional flat")
    names = {0: "are all at the origin", 1: "lie on a line through the origin", 2: "lie in a plane through the origin"}
    return names.get(rank, f"span {rank} dimensions from the origin")
