"""How far the found motion may be off: its covariance, from the residuals of the pairs that made it.

The motion is y = scale R x + t. Small changes of it are a turn w about axes of the target space (one angle in the
plane), a shift of the image of the centroid, and a relative change of scale; they move a point by J_i (w, shift,
change).
The fit solves sum_i J_i^T psi(r_i) = 0 with psi(r) = weight(r) r, so its covariance is

    A^-1 B A^-1,   A = sum_i J_i^T psi'(r_i) J_i,   B = sum_i weight_i^2 J_i^T q_i q_i^T J_i,   q_i = (I - H_i)^-1 r_i.

The fit draws each pair to itself, so its residual is too short; q_i is about the residual that it would have in a fit
without it, by its leverage H_i = weight_i J_i (sum_k weight_k J_k^T J_k)^-1 J_i^T (HC3, MacKinnon and White 1985).
Nothing is assumed of the noise but that pairs err independently. Where hardly more pairs count than it takes to fix the
motion, residuals say nothing about the noise, and no covariance is given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.consensus.refine import NEAR, closeness, closeness_slope
from inlier.transforms import SimilarityTransformation

_ENOUGH = 1000  # pairs that the covariance is estimated from; of more, every so many
_SPARE = 2.0  # pairs that must count beyond those that fix the motion
_ALONE = 1e-6  # 1 - leverage: below, a pair fixes a part of the motion alone, and nothing tells how far it is off


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
    """Some of the pairs that had a say in a fit: what it takes to say how far it may be off."""

    X: Array  # the pairs
    Y: Array  # the pairs
    weights: FloatArray  # what each counted beforehand
    stands_for: FloatArray  # how many of those that had a say each stands for
    bound: float  # residual scale of the closeness weights

    @staticmethod
    def among(X: Array, Y: Array, weights: FloatArray, residuals: FloatArray, bound: float) -> NearPairs:
        """Copy every k-th of the pairs that are near."""
        is_near = residuals <= NEAR * bound
        near = np.flatnonzero(is_near if weights.all() else is_near & (weights > 0))
        rows = near[:: max(1, near.size // _ENOUGH)]
        stands_for = np.full(rows.size, near.size / max(rows.size, 1))
        if rows.size < near.size and np.ptp(weights) > 0:
            rows, stands_for = _heavy_and_some(near, weights)
        x, y, weights = (np.take(part, rows, axis=0) for part in (X, Y, weights))
        return NearPairs(x, y, weights, stands_for, bound)


def _heavy_and_some(near: Array, weights: FloatArray) -> tuple[Array, FloatArray]:
    """All that hold much of the weight, every k-th of the rest, and how many each stands for."""
    of_near = weights[near]
    is_heavy = of_near * _ENOUGH > of_near.sum()
    heavy, light = near[is_heavy], near[~is_heavy]
    some = light[:: max(1, light.size // _ENOUGH)]
    stands_for = np.repeat([1.0, light.size / max(some.size, 1)], [heavy.size, some.size])
    return np.concatenate([heavy, some]), stands_for


def motion_uncertainty(motion: SimilarityTransformation, near: NearPairs) -> MotionUncertainty | None:
    """Covariance of a motion in 2 or 3 dimensions fitted with `closeness` weights; None where too few pairs tell."""
    if not near.weights.size:
        return None
    x, y = (np.asarray(table, dtype=np.float64) for table in (near.X, near.Y))
    d, has_shift, has_scale = x.shape[1], motion.model in ("rigid", "similarity"), motion.model == "similarity"
    residual = y - x @ motion.linear.T - motion.translation
    squared = np.einsum("ij,ij->i", residual, residual)
    say = near.weights * closeness(squared, near.bound)
    total = near.stands_for * say
    centre = total @ x / total.sum() if has_shift else np.zeros(d)
    moves = _movements((x - centre) @ motion.linear.T, has_shift, has_scale)
    if total.sum() ** 2 / (total @ say) < moves.shape[2] / d + _SPARE:  # the effective number of pairs
        return None
    size = np.sqrt(np.einsum("n,nap,nap->p", total, moves, moves))  # so that no unit matters
    if not size.all():
        return None
    spread = _spread(moves / size, residual, near, say, squared)
    return None if spread is None else _in_units(spread / np.outer(size, size), motion, centre, has_shift, has_scale)


def _spread(
    moves: FloatArray, residual: FloatArray, near: NearPairs, say: FloatArray, squared: FloatArray
) -> FloatArray | None:
    """The covariance of small changes of the motion."""
    total = near.stands_for * say
    squares = np.einsum("n,nap,naq->pq", total, moves, moves)
    along = np.einsum("nap,na->np", moves, residual)  # J_i^T r_i
    # psi'(r) = weight I + 2 weight' r r^T, so that A needs only J^T J and J^T r.
    slope = 2 * near.stands_for * near.weights * closeness_slope(squared, near.bound)
    bread = squares + (slope * along.T) @ along
    if max(np.linalg.cond(squares), np.linalg.cond(bread)) > 1e12:
        return None
    leverage = say[:, None, None] * (moves @ np.linalg.inv(squares) @ moves.transpose(0, 2, 1))
    apart = np.eye(residual.shape[1]) - leverage
    if np.linalg.eigvalsh(apart).min() < _ALONE:
        return None
    without_it = np.linalg.solve(apart, residual[:, :, None])[:, :, 0]
    pull = np.einsum("n,nap,na->np", say, moves, without_it)
    inverse = np.linalg.inv(bread)
    covariance: FloatArray = inverse @ ((near.stands_for * pull.T) @ pull) @ inverse.T
    return covariance


def _movements(arm: FloatArray, has_shift: bool, has_scale: bool) -> FloatArray:
    """J_i, as (n, d, parameters): how a turn, a shift and a stretch move points that lie at these arms."""
    n, d = arm.shape
    if d == 2:
        turn = np.stack([-arm[:, 1], arm[:, 0]], axis=1)[:, :, None]
    else:  # the columns of w -> w x arm
        (x, y, z), zero = arm.T, np.zeros(n)
        turn = np.array([[zero, z, -y], [-z, zero, x], [y, -x, zero]]).transpose(2, 0, 1)
    shift = [np.broadcast_to(np.eye(d), (n, d, d))] * has_shift
    return np.concatenate([turn, *shift, *[arm[:, :, None]] * has_scale], axis=2)


def _in_units(
    spread: FloatArray, motion: SimilarityTransformation, centre: FloatArray, has_shift: bool, has_scale: bool
) -> MotionUncertainty:
    """From turn, shift of the centroid and stretch to rotation in degrees, translation and scale."""
    d, turns = centre.size, 1 if centre.size == 2 else 3
    change = np.zeros((turns + d + has_scale, len(spread)))
    change[range(turns), range(turns)] = np.degrees(1.0)
    if has_shift:  # t = image of the centroid - scale R centroid: it moves with all three
        change[turns : turns + d] = _movements(-(motion.linear @ centre)[None], True, has_scale)[0]
    if has_scale:
        change[-1, -1] = motion.scale
    covariance = change @ spread @ change.T
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = float(errors[-1]) if has_scale else 0.0
    return MotionUncertainty(errors[:turns], errors[turns : turns + d], scale, covariance)
