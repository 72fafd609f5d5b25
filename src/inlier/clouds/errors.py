"""How far a motion between two surfaces may be off: noise, by blocks of the surface, and distortion of the scans.

*Noise.* Refinement (`refinement`) solves sum_i weight_i J_i e_i = 0, J_i the move of point i along the normal as the
six parameters change, e_i its residual. With A the derivative of that sum and s_g its part from block g, its share of
the covariance is

    A^-1 (sum_g s_g s_g^T) A^-1 G / (G - 1).

Neighbouring points err alike (they share normals and the other scan's points), so a block is several cells wide.

*Distortion.* A depth camera bends and stretches what it sees, smoothly, by centimetres; no block is a witness against
the next, and a thousand blocks are as few witnesses as one. A bent scan shows it: after the best rigid motion, what is
left still varies smoothly over the surface. So the residuals are explained once more, by a smooth field of moves

    d(x) = sum_j sum_k b_jk f_j(x) axis_k,

f_j the polynomials of up to the second degree along the main axes of the contact, of mean square 1 (thirty moves, six
of which are motions and are not to be told from ours). With b_m the parts that the rest can tell apart and v_m what
noise alone gives them, by blocks, the size tau of the distortion is that for which

    sum_m b_m^2 / (tau^2 + v_m) = their number      (Paule and Mandel 1982), or 0,

and a field of that size moves the fit by tau^2 H H^T, H = S^-1 sum_i weight_i J_i (f_j n_k)_i, S = sum weight J J^T:
the parts that look like motions are taken to be as large as those that do not. A scan that is not bent pays nothing.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from inlier._typing import Array, FloatArray
from inlier.clouds.refinement import Equations, Motion, Nearest, contact, equations
from inlier.clouds.surfaces import Surface, cell_numbers
from inlier.consensus.uncertainty import MotionUncertainty
from inlier.transforms import SimilarityTransformation

_FEWEST_BLOCKS = 12  # for six parameters
_SINGULAR = 1e10  # condition number of A
_PER_PART = 3  # blocks for each part of a distortion that is looked for
_TOLD_APART = 1e-3  # of the best told part of a distortion: what is told less is left out


def errors_of(
    surfaces: tuple[Surface, Surface],
    motion: Motion,
    bound: float,
    block: float,
    found: SimilarityTransformation,
    origin: FloatArray,
) -> MotionUncertainty | None:
    """Standard errors of a motion between surfaces, or None where too little tells.

    ``found`` is the same motion between the clouds as they came, ``origin`` what was subtracted from the target.
    """
    free_scale = found.model == "similarity"
    touching = contact(*surfaces, motion, Nearest(surfaces[1].tree, bound))
    there = equations(surfaces[1], touching, bound, free_scale=free_scale)
    if there is None:
        return None
    normals = surfaces[1].normals_at(touching.nearest)
    _, owner = np.unique(cell_numbers(there.points, block), return_inverse=True)
    n_blocks = int(owner.max()) + 1
    noise = _of_noise(there, bound, owner, n_blocks)
    if noise is None:
        return None
    bent, n_parts = _of_distortion(there, normals, owner, n_blocks)
    spread = noise + bent
    # The share of each in the whole, and how many errors tell it (Satterthwaite 1946).
    share = float(np.trace(np.linalg.solve(spread, bent))) / len(spread) if bent.any() else 0.0
    degrees = 1 / ((1 - share) ** 2 / (n_blocks - 1) + share**2 / max(n_parts, 1))
    unit = np.diag([1 / there.size] * 3 + [1.0] * 3 + [1 / there.size] * free_scale)  # from turns times the radius
    centre = found.inverse((there.centre + origin)[None])[0]
    return in_units(unit @ spread @ unit, max(degrees, len(spread) + 1.0), block, found, centre)


def _of_noise(there: Equations, bound: float, owner: Array, n_blocks: int) -> FloatArray | None:
    """Covariance from residuals that are alike within blocks only."""
    squared = (2 * there.offset / bound) ** 2
    slope = (1 - 3 * squared) / (1 + squared) ** 3  # of weight times offset
    A = (there.moves * slope[:, None]).T @ there.moves
    if n_blocks < _FEWEST_BLOCKS or np.linalg.cond(A) > _SINGULAR:
        return None
    pulls = np.linalg.solve(A, _sums(there.moves * (there.weight * there.offset)[:, None], owner).T).T
    return pulls.T @ pulls * n_blocks / (n_blocks - 1)


def _of_distortion(there: Equations, normals: FloatArray, owner: Array, n_blocks: int) -> tuple[FloatArray, int]:
    """Covariance from smooth distortions of the size that residuals show, and how many parts of them tell that size."""
    moves, weight = there.moves, there.weight[:, None]
    fields = smooth_moves(there.points, normals)
    information = (moves * weight).T @ moves
    effect = np.linalg.solve(information, (moves * weight).T @ fields)
    residual = there.offset - moves @ np.linalg.solve(information, moves.T @ (there.weight * there.offset))
    left = fields - moves @ effect
    values, axes = np.linalg.eigh((left * weight).T @ left)
    n_parts = min(int(np.count_nonzero(values > _TOLD_APART * values[-1])), n_blocks // _PER_PART - moves.shape[1])
    if n_parts < 1:
        return np.zeros((moves.shape[1],) * 2), 0
    values, parts = values[-n_parts:], left @ axes[:, -n_parts:]
    size = parts.T @ (there.weight * residual) / values
    unexplained = (there.weight * (residual - parts @ size))[:, None]
    free = n_blocks / (n_blocks - n_parts - moves.shape[1])
    by_noise = (_sums(parts * unexplained, owner) ** 2).sum(axis=0) / values**2 * free
    return size_of_distortion(size**2, by_noise) * effect @ effect.T, n_parts


def smooth_moves(points: FloatArray, normals: FloatArray) -> FloatArray:
    """How far smooth fields of moves move points along their normals: each polynomial along each axis."""
    centred = points - points.mean(axis=0)
    along = centred @ np.linalg.eigh(centred.T @ centred)[1]
    u = along / np.maximum(np.sqrt((along**2).mean(axis=0)), np.finfo(float).tiny)
    i, j = np.triu_indices(3)
    second = np.where(i == j, (u[:, i] * u[:, j] - 1) / np.sqrt(2), u[:, i] * u[:, j])
    polynomials = np.hstack([np.ones((len(u), 1)), u, second])
    moves: FloatArray = (polynomials[:, :, None] * normals[:, None, :]).reshape(len(u), -1)
    return moves


def size_of_distortion(squares: FloatArray, by_noise: FloatArray) -> float:
    """The variance that squares have beyond what noise gives them.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.clouds.errors import size_of_distortion
    >>> round(size_of_distortion(np.array([4.0, 6.0]), np.array([1.0, 1.0])), 6)
    4.0
    >>> size_of_distortion(np.array([1.0, 0.5]), np.array([1.0, 1.0]))
    0.0
    """

    def beyond(variance: float) -> float:
        return float((squares / (variance + by_noise)).sum()) - len(squares)

    if not (by_noise > 0).all() or beyond(0.0) <= 0:
        return 0.0
    most = float(squares.sum())
    return float(brentq(beyond, 0.0, most, xtol=1e-9 * most, rtol=1e-9))


def _sums(scores: FloatArray, owner: Array) -> FloatArray:
    """Sums over blocks."""
    return np.stack([np.bincount(owner, column) for column in scores.T], axis=1)


def in_units(
    spread: FloatArray, degrees: float, block: float, found: SimilarityTransformation, centre: FloatArray
) -> MotionUncertainty:
    """From a turn in radians, a shift of the centre and growth to degrees, translation (which all move) and scale."""
    p = len(spread)
    arm = -(found.linear @ centre)
    change = np.zeros((p, p))
    change[:3, :3] = np.degrees(1.0) * np.eye(3)
    change[3:6, :3] = [[0, arm[2], -arm[1]], [-arm[2], 0, arm[0]], [arm[1], -arm[0], 0]]  # w -> w x arm
    change[3:6, 3:6] = np.eye(3)
    change[3:6, 6:], change[6:, 6:] = arm[:, None], found.scale
    covariance = change @ spread @ change.T
    errors = np.sqrt(np.maximum(np.diag(covariance), 0))
    of_scale = float(errors[6:].sum())  # none where the scale is fixed
    return MotionUncertainty(errors[:3], errors[3:6], of_scale, covariance, degrees, block, found, centre, spread)
