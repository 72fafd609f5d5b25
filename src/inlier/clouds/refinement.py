"""Make a motion better on the surfaces themselves: point-to-plane ICP (Chen and Medioni 1991) with robust weights.

Each point of the source is taken to the nearest point of the target, and the motion w (a small turn and a shift) solves

    sum_i weight_i (n_i . (T(x_i) + w x (T(x_i) - c) + s - y_i))^2 = min,

n_i the normal at y_i. Points whose nearest is farther than a bound, or whose normals disagree, have no part; the others
weigh 1 / (1 + (e/b)^2)^2 by their residual e (Geman and McClure), b half the bound. The bound shrinks from what the
search leaves to what the residuals say, on ever finer points (`polish`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from inlier._typing import Array, FloatArray, Mask
from inlier.clouds.normals import dense_normals
from inlier.clouds.thinning import side_for, thin

_SAME_DIRECTION = 0.8  # cosine of the angle between normals, up to their sign, of points that belong together
_LITTLE = 1e-3  # of the bound: smaller steps end the rounds
_FINER = (6_000, 20_000)  # points of each cloud that the motion is refined on, one after the other
_FINER_BOUNDS, _FINER_ROUNDS = (2.0, 1.0), 6  # in sides of a cell
_RIDGE = 1e-6  # of the mean information about a parameter
_FEWEST = 12  # points that touch, for a step of six parameters


@dataclass(frozen=True, eq=False)
class Surface:
    """Points with normals, and a tree of them."""

    points: FloatArray
    normals: FloatArray
    tree: cKDTree

    @staticmethod
    def of(points: FloatArray, normals: FloatArray) -> Surface:
        """Build the tree."""
        return Surface(points, normals, cKDTree(points))

    @staticmethod
    def dense(points: FloatArray) -> Surface:
        """Work the normals out."""
        tree = cKDTree(points)
        return Surface(points, dense_normals(points, tree), tree)


@dataclass(frozen=True, eq=False)
class Motion:
    """x -> rotation x + translation."""

    rotation: FloatArray
    translation: FloatArray

    def __call__(self, points: FloatArray) -> FloatArray:
        """Move points."""
        moved: FloatArray = points @ self.rotation.T + self.translation
        return moved

    def then(self, turn: FloatArray, shift: FloatArray) -> Motion:
        """Follow it by another."""
        return Motion(turn @ self.rotation, turn @ self.translation + shift)

    @property
    def inverse(self) -> Motion:
        """The way back."""
        return Motion(self.rotation.T, -self.rotation.T @ self.translation)


@dataclass(frozen=True, eq=False)
class Contact:
    """Which points of the source touch the target at a motion: where, and how far from its plane."""

    moved: FloatArray  # all points of the source
    nearest: Array  # point of the target
    touches: Mask
    offset: FloatArray  # along the normal of the target


def contact(source: Surface, target: Surface, motion: Motion, bound: float) -> Contact:
    """Find what comes within a bound of the other surface, with a normal of the same direction."""
    moved = motion(source.points)
    distance, nearest = target.tree.query(moved, distance_upper_bound=bound)
    is_near = np.isfinite(distance)
    nearest = np.where(is_near, nearest, 0)
    normal = target.normals[nearest]
    is_parallel = np.abs(np.einsum("ij,ij->i", source.normals @ motion.rotation.T, normal)) > _SAME_DIRECTION
    offset = np.einsum("ij,ij->i", moved - target.points[nearest], normal)
    return Contact(moved, nearest, is_near & is_parallel, offset)


def refine(source: Surface, target: Surface, motion: Motion, bound: float, rounds: int) -> Motion:
    """Improve a motion, at one bound."""
    for _ in range(rounds):
        found = equations(source, target, motion, bound)
        if found is None:
            break
        information = (found.moves * found.weight[:, None]).T @ found.moves
        # Along a plane nothing is known, and nothing shall move.
        information[np.diag_indices(6)] += _RIDGE * np.trace(information) / 6
        step = -np.linalg.solve(information, found.moves.T @ (found.weight * found.offset))
        turn = Rotation.from_rotvec(step[:3] / found.size).as_matrix()
        motion = motion.then(turn, found.centre - turn @ found.centre + step[3:])
        if np.abs(step).max() < _LITTLE * bound:
            break
    return motion


@dataclass(frozen=True, eq=False)
class Equations:
    """The linear equations of one round: offset + moves (size w, s) = 0, w a turn about the centre, s a shift."""

    points: FloatArray
    moves: FloatArray
    offset: FloatArray
    weight: FloatArray
    centre: FloatArray
    size: float  # radius of the points about their centre


def equations(source: Surface, target: Surface, motion: Motion, bound: float) -> Equations | None:
    """Set up a round; None where too few points touch."""
    touching = contact(source, target, motion, bound)
    rows = np.flatnonzero(touching.touches)
    if rows.size < _FEWEST:
        return None
    x, n, offset = touching.moved[rows], target.normals[touching.nearest[rows]], touching.offset[rows]
    centre = x.mean(axis=0)
    size = float(np.sqrt(((x - centre) ** 2).sum(axis=1).mean()))
    if size == 0:
        return None
    moves = np.hstack([np.cross((x - centre) / size, n), n])
    return Equations(x, moves, offset, 1 / (1 + (2 * offset / bound) ** 2) ** 2, centre, size)


def polish(source: FloatArray, target: FloatArray, motion: Motion) -> tuple[Motion, tuple[Surface, Surface], float]:
    """Refine on ever finer points; also the finest surfaces, and the bound there."""
    for n_points in _FINER:
        side = side_for((source, target), n_points)
        surfaces = Surface.dense(thin(source, side)), Surface.dense(thin(target, side))
        for bound in _FINER_BOUNDS:
            motion = refine(*surfaces, motion, bound * side, _FINER_ROUNDS)
    return motion, surfaces, _FINER_BOUNDS[-1] * side
