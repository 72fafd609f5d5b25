"""How far the found motion may be off: its covariance, from the residuals of the pairs that made it.

The motion is y = scale R x + t. Small changes of it are a turn w about axes of the target space (one angle in the
plane), a shift of the image of the centroid, and a relative change of scale; they move a point by J_i (w, shift,
change).
The fit solves sum_i J_i^T psi(r_i) = 0 with psi(r) = weight(r) r, so its covariance is

    A^-1 B A^-1,   A = sum_i J_i^T psi'(r_i) J_i,   B = sum_i J_i^T psi(r_i) psi(r_i)^T J_i.

Nothing is assumed of the noise but that pairs err independently.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier.consensus.refine import closeness, closeness_slope
from inlier.engine.blocks import Array, FloatArray
from inlier.transforms import SimilarityTransformation

_ENOUGH = 2000  # pairs that the covariance is estimated from; of more, every so many


@dataclass(frozen=True, eq=False)
class MotionUncertainty:
    """Standard errors of a motion in the plane or in space, and their covariance.

    Attributes
    ----------
    rotation : ndarray
        In degrees: of the angle in the plane, of turns about the three axes of the target space.
    translation : ndarray of shape (d,)
        In the units of y.
    scale : float
        0 where the scale is fixed.
    covariance : ndarray
        Of rotation (degrees), translation and, for similarities, scale, in that order.
    """

    rotation: FloatArray
    translation: FloatArray
    scale: float
    covariance: FloatArray


def motion_uncertainty(
    motion: SimilarityTransformation, X: Array, Y: Array, weights: FloatArray, near: Array, bound: float
) -> MotionUncertainty | None:
    """Estimate the covariance of a motion fitted with `closeness` weights; None where it is not determined.

    Parameters
    ----------
    motion : SimilarityTransformation
        In 2 or 3 dimensions.
    X, Y : ndarray of shape (n, d)
        The pairs.
    weights : ndarray of shape (n,)
        What each counted beforehand.
    near : ndarray of int
        Those that had a say.
    bound : float
        Residual scale of the closeness weights.
    """
    some = near[:: max(1, near.size // _ENOUGH)]
    share, weights = some.size / near.size, weights[some]
    X, Y = (np.asarray(table[some], dtype=np.float64) for table in (X, Y))
    d = X.shape[1]
    has_shift, has_scale = motion.model in ("rigid", "similarity"), motion.model == "similarity"
    residual = Y - X @ motion.linear.T - motion.translation
    squared = np.sum(residual**2, axis=1)
    say = weights * closeness(squared, bound)
    centre = say @ X / say.sum() if has_shift else np.zeros(d)
    arm = (X - centre) @ motion.linear.T  # from the centroid's image to each point's
    jacobian = _jacobian(arm, has_shift, has_scale)
    along = (residual[:, None] @ jacobian)[:, 0]  # J_i^T r_i
    pull = say[:, None] * along
    # psi'(r) = weight I + 2 weight' r r^T, so that A needs only J^T J and J^T r.
    rows = jacobian.reshape(-1, jacobian.shape[2])
    slope = 2 * weights * closeness_slope(squared, bound)
    bread = (np.repeat(say, d)[:, None] * rows).T @ rows + (slope[:, None] * along).T @ along
    if np.linalg.cond(bread) > 1e12:
        return None
    inverse = np.linalg.inv(bread)
    spread = share * inverse @ (pull.T @ pull) @ inverse.T  # as many more pairs, so much less
    return _in_units(spread, motion, centre, has_shift, has_scale)


def _jacobian(arm: FloatArray, has_shift: bool, has_scale: bool) -> FloatArray:
    """Movement of each point by a turn, a shift and a stretch, as (n, d, parameters)."""
    n, d = arm.shape
    if d == 2:
        parts = [np.stack([-arm[:, 1], arm[:, 0]], axis=1)[:, :, None]]
    else:  # the columns of w -> w x arm
        x, y, z = arm.T
        zero = np.zeros(n)
        parts = [np.stack([zero, z, -y, -z, zero, x, y, -x, zero], axis=1).reshape(n, 3, 3)]
    if has_shift:
        parts.append(np.broadcast_to(np.eye(d), (n, d, d)))
    if has_scale:
        parts.append(arm[:, :, None])
    return np.concatenate(parts, axis=2)


def _in_units(
    spread: FloatArray, motion: SimilarityTransformation, centre: FloatArray, has_shift: bool, has_scale: bool
) -> MotionUncertainty:
    """From turn, shift of the centroid and stretch to rotation in degrees, translation and scale."""
    d, turns = centre.size, 1 if centre.size == 2 else 3
    # t = image of the centroid - scale R centroid: it moves with all three.
    to_translation = np.zeros((d, len(spread)))
    if has_shift:
        to_translation = _jacobian(-(motion.linear @ centre)[None], has_shift, has_scale)[0]
    change = np.vstack(
        [
            np.degrees(np.eye(len(spread))[:turns]),
            to_translation,
            motion.scale * np.eye(len(spread))[-1:] if has_scale else np.empty((0, len(spread))),
        ]
    )
    covariance = change @ spread @ change.T
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = float(errors[-1]) if has_scale else 0.0
    return MotionUncertainty(errors[:turns], errors[turns : turns + d], scale, covariance)
