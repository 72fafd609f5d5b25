"""How far the refined motion may be off: by blocks of the surface, whose errors are independent of each other.

Refinement solves sum_i weight_i J_i e_i = 0, J_i the move of point i along the normal as the six parameters change.
With A the derivative of that sum and s_g its part from block g, the covariance is

    A^-1 (sum_g s_g s_g^T) A^-1 G / (G - 1).

Neighbouring points err alike (they share normals and the other scan's points), so a block is several cells wide.
"""

from __future__ import annotations

import numpy as np

from inlier._typing import FloatArray
from inlier.clouds.refinement import Motion, Surface, equations
from inlier.clouds.thinning import cell_numbers
from inlier.consensus.uncertainty import MotionUncertainty
from inlier.transforms import SimilarityTransformation

_FEWEST_BLOCKS = 12  # for six parameters
_SINGULAR = 1e10  # condition number of A


def errors_of(
    surfaces: tuple[Surface, Surface],
    motion: Motion,
    bound: float,
    block: float,
    found: SimilarityTransformation,
    origins: tuple[FloatArray, FloatArray],
) -> MotionUncertainty | None:
    """Standard errors of a motion between surfaces about their ``origins``, or None where too little tells.

    ``found`` is the same motion between the clouds as they came.
    """
    there = equations(*surfaces, motion, bound)
    if there is None:
        return None
    squared = (2 * there.offset / bound) ** 2
    slope = (1 - 3 * squared) / (1 + squared) ** 3  # of weight times offset
    A = (there.moves * slope[:, None]).T @ there.moves
    _, owner = np.unique(cell_numbers(there.points, block), return_inverse=True)
    n_blocks = int(owner.max()) + 1
    if n_blocks < _FEWEST_BLOCKS or np.linalg.cond(A) > _SINGULAR:
        return None
    scores = there.moves * (there.weight * there.offset)[:, None]
    sums = np.stack([np.bincount(owner, column) for column in scores.T], axis=1)
    pulls = np.linalg.solve(A, sums.T).T
    spread = pulls.T @ pulls * n_blocks / (n_blocks - 1)
    unit = np.diag([1 / there.size] * 3 + [1.0] * 3)  # from turns times the radius to turns
    spread = unit @ spread @ unit
    centre = motion.inverse(there.centre[None])[0] + origins[0]
    return _in_units(spread, float(n_blocks - 1), block, found, centre)


def _in_units(
    spread: FloatArray, degrees: float, block: float, found: SimilarityTransformation, centre: FloatArray
) -> MotionUncertainty:
    """From a turn in radians and a shift of the centre to degrees, and to the translation, which moves with both."""
    arm = -(found.rotation @ centre)
    change = np.zeros((6, 6))
    change[:3, :3] = np.degrees(1.0) * np.eye(3)
    change[3:, :3] = [[0, arm[2], -arm[1]], [-arm[2], 0, arm[0]], [arm[1], -arm[0], 0]]  # w -> w x arm
    change[3:, 3:] = np.eye(3)
    covariance = change @ spread @ change.T
    errors = np.sqrt(np.maximum(np.diag(covariance), 0))
    return MotionUncertainty(errors[:3], errors[3:], 0.0, covariance, degrees, block, found, centre, spread)
