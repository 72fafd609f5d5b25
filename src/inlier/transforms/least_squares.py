"""The transformation that carries weighted points X onto Y, by least squares in closed form.

Minimises sum_i w_i |y_i - T(x_i)|^2 over the maps T of a model.

Notation (code <-> Umeyama 1991): cross is C = sum_i w_i (y_i - y_bar)(x_i - x_bar)^T = U diag(s) V^T (eq. 38, times
the total weight); R = U D V^T its polar factor, with D = diag(1, ..., 1, det U det V) where reflections are not
allowed (eq. 40, 43); scale c = tr(D diag(s)) / sum_i w_i |x_i - x_bar|^2 (eq. 42); translation t = y_bar - c R x_bar
(eq. 41). Models without translation have x_bar = y_bar = 0. Vt is V^T.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from inlier._checks import check_choice, check_paired, check_weights
from inlier._typing import Array, FloatArray
from inlier.rows import as_table, check_finite, summarise_columns
from inlier.transforms.moments import CentredPairs, Side
from inlier.transforms.transformations import (
    SIMILARITY_MODELS,
    AffineTransformation,
    SimilarityTransformation,
    Transformation,
)

MODELS = (*SIMILARITY_MODELS, "affine")
_WITHOUT_TRANSLATION = ("orthogonal", "rotation")
_EPS = float(np.finfo(np.float64).eps)


class DegenerateConfigurationError(ValueError):
    """The pairs leave the transformation undetermined; the message says why and what it takes.

    Attributes
    ----------
    rank : int or None
        Number of independent directions in which the pairs say something.
    rank_needed : int or None
        How many it takes.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier import DegenerateConfigurationError, estimate_transformation
    >>> line = np.outer(np.arange(5.0), [1, 2, 3])
    >>> try:
    ...     estimate_transformation("rigid", line, line)
    ... except DegenerateConfigurationError as error:
    ...     print(error.rank, error.rank_needed)
    1 2
    """

    def __init__(self, message: str, rank: int | None = None, rank_needed: int | None = None) -> None:
        super().__init__(message)
        self.rank, self.rank_needed = rank, rank_needed


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
    <similarity transformation in 2 dimensions: scales by 3, turns by 90 degrees, moves by (7, 0)>
    >>> np.allclose(T(X), Y), bool(T.residuals(X, Y).max() < 1e-12)
    (True, True)
    """
    check_choice(model, MODELS, "model")
    X, Y = as_table(X, "X", one_column=True), as_table(Y, "Y", one_column=True)
    _check_tables(model, X, Y, reflection)
    checked = None if weights is None else check_weights(weights, len(X))
    return fit_transformation(model, X, Y, checked, reflection, allow_undetermined)


def fit_transformation(
    model: str, X: Array, Y: Array, weights: FloatArray | None, reflection: bool, allow_undetermined: bool
) -> Transformation:
    """Do what `estimate_transformation` does, on tables and weights that have been checked."""
    pairs = CentredPairs(X, Y, _relative(weights), about_origin=model in _WITHOUT_TRANSLATION)
    if model == "affine":
        return _fit_affine(pairs, allow_undetermined)
    return _fit_similarity(model, pairs, reflection or model == "orthogonal", allow_undetermined)


def _check_tables(model: str, X: Array, Y: Array, reflection: bool) -> None:
    check_paired(X, Y, fewest=1)
    if model != "affine" and X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"A transformation of model {model!r} keeps the dimension, but X has shape {X.shape} and Y {Y.shape}. "
            f"Use model='affine', or bring both to the same number of columns."
        )
    if model == "rotation" and reflection:
        raise ValueError("Model 'rotation' never reflects. Use model='orthogonal', or leave out reflection=True.")
    for table, name in ((X, "X"), (Y, "Y")):
        check_finite(table, summarise_columns(table), name)


def _relative(weights: FloatArray | None) -> FloatArray | None:
    """Return the weights with the largest made 1."""
    if weights is None:
        return None
    if not weights.any():
        raise DegenerateConfigurationError(
            f"All {len(weights)} weights are 0, so no pair counts. Some must be positive."
        )
    return weights / weights.max()


def _fit_similarity(model: str, pairs: CentredPairs, reflection: bool, allow: bool) -> SimilarityTransformation:
    U, s, Vt = np.linalg.svd(pairs.cross)
    d = s.size
    handedness = 1.0 if np.linalg.det(U) * np.linalg.det(Vt) > 0 else -1.0
    rank, needed = pairs.rank_of_cross(U, s, Vt), d if reflection else d - 1
    # R is unique up to det R = +1 iff s_(d-1) + det(U V) s_d > 0: mirrored pairs may be as near to many rotations.
    torn = not reflection and rank == d > 1 and s[-2] + handedness * s[-1] <= pairs.noise(*_lengths(pairs))
    determined = rank >= needed and not torn
    if not (determined or allow):
        _refuse(model, pairs, rank, needed, torn)
    R = _polar_factor(U, Vt, 0 if reflection else handedness, known=d if rank >= needed else rank)
    scale = 1.0
    if model == "similarity":
        scale, has_scale = _scale(pairs, float(np.vdot(R, pairs.cross)), allow)
        determined = determined and has_scale
    shift = None if model in _WITHOUT_TRANSLATION else pairs.y.centre - scale * (R @ pairs.x.centre)
    return SimilarityTransformation(R, shift, scale, model, determined)  # type: ignore[arg-type]


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


def _scale(pairs: CentredPairs, trace: float, allow: bool) -> tuple[float, bool]:
    """c = tr(R^T C) / sum w |x - x_bar|^2, and whether the pairs determine it."""
    if _is_one_point(pairs, pairs.x):
        if allow:
            return 1.0, False
        raise DegenerateConfigurationError(
            f"The scale is undetermined: all {pairs.n_active} points of X that count coincide. Add other points, use "
            f"model='rigid', or pass allow_undetermined=True for scale 1.",
            rank=0,
            rank_needed=1,
        )
    if trace <= pairs.noise(*_lengths(pairs)):
        reason = "all points of Y coincide" if _is_one_point(pairs, pairs.y) else "Y does not follow X, or mirrors it"
        raise DegenerateConfigurationError(
            f"No positive scale fits the {pairs.n_active} pairs: the best is 0, because {reason}. Check the pairing; "
            f"if Y may be a mirror image, pass reflection=True.",
        )
    return trace / pairs.x.length**2 * (pairs.y.unit / pairs.x.unit), True


def _fit_affine(pairs: CentredPairs, allow: bool) -> AffineTransformation:
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
        _refuse("affine", pairs, rank, d_x, torn=False)
    linear = ((U[:, :rank].T @ B) / s[:rank, None]).T @ (Vt[:rank] / length)
    if rank < d_x:
        span, _ = np.linalg.qr(length[:, None] * Vt[:rank].T)
        linear = (linear @ span) @ span.T
    linear = linear * (pairs.y.unit / pairs.x.unit)
    return AffineTransformation(linear, pairs.y.centre - linear @ pairs.x.centre, rank == d_x)


def _refuse(model: str, pairs: CentredPairs, rank: int, needed: int, torn: bool) -> NoReturn:
    """Say what is degenerate about the pairs, and the cure."""
    n, centred = pairs.n_active, model not in _WITHOUT_TRANSLATION
    name = f"{'An' if model[0] in 'ao' else 'A'} {model} transformation of {pairs.x.centre.size}-dimensional points"
    cure = "or pass allow_undetermined=True for the best map on what they span."
    if n < needed + centred:
        message = (
            f"{name} needs at least {needed + centred} pairs of positive weight, but there are {n}. Add some, {cure}"
        )
    elif torn:
        message = (
            f"{name} is not determined: the {n} pairs are mirror images, and many rotations are equally near to that "
            f"mirroring. Allow reflections (model='orthogonal', or reflection=True), {cure}"
        )
    else:
        x, y = (
            _shape(_rank_of_points(pairs, side, scatter), len(scatter), centred)
            for side, scatter in zip((pairs.x, pairs.y), pairs.scatter(), strict=True)
        )
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


def _rank_of_points(pairs: CentredPairs, side: Side, scatter: FloatArray) -> int:
    noise = max(8 * len(scatter) * _EPS * side.length**2, pairs.rounding_length(side) ** 2)
    return int(np.count_nonzero(np.linalg.eigvalsh(scatter) > noise))


def _is_one_point(pairs: CentredPairs, side: Side) -> bool:
    return side.length <= pairs.rounding_length(side)


def _lengths(pairs: CentredPairs) -> tuple[float, float]:
    return pairs.x.length, pairs.y.length
