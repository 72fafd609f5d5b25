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

from inlier.consensus.refine import NEAR, closeness, closeness_slope
from inlier.engine.blocks import Array, FloatArray
from inlier.engine.mask_kernels import every_so_manieth
from inlier.transforms import SimilarityTransformation

_ENOUGH = 1000  # pairs that the covariance is estimated from; of more, every so many


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


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Some of the pairs that had a say in a fit: what it takes to say how far it may be off.

    Attributes
    ----------
    X, Y : ndarray of shape (m, d)
        The pairs.
    weights : ndarray of shape (m,)
        What each counted beforehand.
    share : float
        Of those that had a say, how many these are.
    bound : float
        Residual scale of the closeness weights.
    """

    X: Array
    Y: Array
    weights: FloatArray
    share: float
    bound: float

    @staticmethod
    def among(X: Array, Y: Array, weights: FloatArray, residuals: FloatArray, bound: float) -> NearPairs:
        """Copy every so manieth of the pairs that are near."""
        rows, n_near = every_so_manieth(residuals, weights, NEAR * bound, _ENOUGH)
        x, y, weights = (np.take(part, rows, axis=0) for part in (X, Y, weights))
        return NearPairs(x, y, weights, rows.size / max(n_near, 1), bound)


def motion_uncertainty(motion: SimilarityTransformation, near: NearPairs) -> MotionUncertainty | None:
    """Estimate the covariance of a motion fitted with `closeness` weights; None where it is not determined.

    Parameters
    ----------
    motion : SimilarityTransformation
        In 2 or 3 dimensions.
    near : NearPairs
        Pairs that it was fitted to.
    """
    share, bound, weights = near.share, near.bound, near.weights
    if not weights.size:
        return None
    x, y = (np.array(table.T, dtype=np.float64, order="C") for table in (near.X, near.Y))
    has_shift, has_scale = motion.model in ("rigid", "similarity"), motion.model == "similarity"
    residual = y - motion.linear @ x - motion.translation[:, None]
    squared = np.einsum("ij,ij->j", residual, residual)
    say = weights * closeness(squared, bound)
    centre = x @ say / say.sum() if has_shift else np.zeros(len(x))
    arm = motion.linear @ (x - centre[:, None])  # from the centroid's image to each point's
    along = _along(arm, residual, has_shift, has_scale)  # J_i^T r_i
    # psi'(r) = weight I + 2 weight' r r^T, so that A needs only J^T J and J^T r.
    slope = 2 * weights * closeness_slope(squared, bound)
    bread = _squared_jacobians(arm, say, has_shift, has_scale) + (slope * along) @ along.T
    if np.linalg.cond(bread) > 1e12:
        return None
    inverse = np.linalg.inv(bread)
    pull = say * along
    spread = share * inverse @ (pull @ pull.T) @ inverse.T  # as many more pairs, so much less
    return _in_units(spread, motion, centre, has_shift, has_scale)


def _along(arm: FloatArray, residual: FloatArray, has_shift: bool, has_scale: bool) -> FloatArray:
    """J_i^T r_i, as (parameters, n): how far a turn, a shift and a stretch would move each point along its residual."""
    if len(arm) == 2:
        parts = [(arm[0] * residual[1] - arm[1] * residual[0])[None]]
    else:  # (w x arm) . r = w . (arm x r)
        (a, b, c), (u, v, w) = arm, residual
        parts = [np.stack([b * w - c * v, c * u - a * w, a * v - b * u])]
    if has_shift:
        parts.append(residual)
    if has_scale:
        parts.append(np.einsum("ij,ij->j", arm, residual)[None])
    return np.concatenate(parts)


def _squared_jacobians(arm: FloatArray, say: FloatArray, has_shift: bool, has_scale: bool) -> FloatArray:
    """Sum of say J^T J. A turn moves points across their arms, a stretch along them, and the arms add up to 0."""
    scatter, d = (say * arm) @ arm.T, len(arm)
    length, turns = np.trace(scatter), 1 if d == 2 else 3
    diagonal = [length] * turns + [say.sum()] * d * has_shift + [length] * has_scale
    squares = np.diag(np.array(diagonal, dtype=np.float64))
    if d == 3:
        squares[:3, :3] -= scatter
    return squares


def _movement(arm: FloatArray, has_scale: bool) -> FloatArray:
    """J of one point, for a motion with a shift: its movement by a turn, a shift and a stretch."""
    if arm.size == 2:
        turn = np.array([[-arm[1]], [arm[0]]])
    else:  # the columns of w -> w x arm
        x, y, z = arm
        turn = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
    return np.hstack([turn, np.eye(arm.size), *([arm[:, None]] if has_scale else [])])


def _in_units(
    spread: FloatArray, motion: SimilarityTransformation, centre: FloatArray, has_shift: bool, has_scale: bool
) -> MotionUncertainty:
    """From turn, shift of the centroid and stretch to rotation in degrees, translation and scale."""
    d, turns = centre.size, 1 if centre.size == 2 else 3
    change = np.zeros((turns + d + has_scale, len(spread)))
    change[range(turns), range(turns)] = np.degrees(1.0)
    if has_shift:  # t = image of the centroid - scale R centroid: it moves with all three
        change[turns : turns + d] = _movement(-(motion.linear @ centre), has_scale)
    if has_scale:
        change[-1, -1] = motion.scale
    covariance = change @ spread @ change.T
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = float(errors[-1]) if has_scale else 0.0
    return MotionUncertainty(errors[:turns], errors[turns : turns + d], scale, covariance)
