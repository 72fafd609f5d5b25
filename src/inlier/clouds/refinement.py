"""Make a motion better on the surfaces themselves: point-to-plane ICP (Chen and Medioni 1991) with robust weights.

Each point of the source is taken to the nearest point of the target, and the motion w (a small turn and a shift) solves

    sum_i weight_i (n_i . (T(x_i) + w x (T(x_i) - c) + s - y_i))^2 = min,

n_i the normal at y_i. Points whose nearest is farther than a bound, or whose normals disagree, have no part; the others
weigh 1 / (1 + (e/b)^2)^2 by their residual e (Geman and McClure), b half the bound. The bound shrinks from what the
search leaves to one cell, on ever finer points (`polish`).

How far the motion may still be off is told by blocks of the surface, whose errors are independent of each other.
Refinement solves sum_i weight_i J_i e_i = 0, J_i the move of point i along the normal as the six parameters change.
With A the derivative of that sum and s_g its part from block g, the covariance is

    A^-1 (sum_g s_g s_g^T) A^-1 G / (G - 1).

Neighbouring points err alike (they share normals and the other scan's points), so a block is several cells wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from inlier._typing import Array, FloatArray
from inlier.clouds.surfaces import Grid, Surface, cell_numbers
from inlier.consensus.uncertainty import MotionUncertainty
from inlier.transforms import SimilarityTransformation

_SAME_DIRECTION = 0.8  # cosine of the angle between normals, up to their sign, of points that belong together
_MOST_GROWTH = 0.1  # of a scale that is free, from where the search found it
_LITTLE = 1e-3  # of the bound: smaller steps end the rounds
_FINER_BOUNDS, _FINER_ROUNDS = (2.0, 1.0), 6  # in sides of a cell
_BEYOND = 1.5  # bounds: so far the tree is asked for the nearest points, to be spared the next question
_RIDGE = 1e-6  # of the mean information about a parameter
_FEWEST = 12  # points that touch, for a step of six parameters
_FEWEST_BLOCKS = 12  # for six parameters
_SINGULAR = 1e10  # condition number of A


@dataclass(frozen=True, eq=False)
class Motion:
    """x -> scale rotation x + translation."""

    rotation: FloatArray
    translation: FloatArray
    scale: float = 1.0

    def __call__(self, points: FloatArray) -> FloatArray:
        """Move points."""
        moved: FloatArray = points @ (self.scale * self.rotation.T) + self.translation
        return moved

    def then(self, other: Motion) -> Motion:
        """Follow it by another."""
        return Motion(other.rotation @ self.rotation, other(self.translation), other.scale * self.scale)

    @property
    def inverse(self) -> Motion:
        """The way back."""
        return Motion(self.rotation.T, -(self.rotation.T @ self.translation) / self.scale, 1 / self.scale)


@dataclass(frozen=True, eq=False)
class Contact:
    """Which points of the source touch the target at a motion, and where."""

    moved: FloatArray  # the points of the source
    rows: Array  # of those that touch
    nearest: Array  # points of the target that they touch

    @property
    def share(self) -> float:
        """Of the points of the source, how many touch."""
        return len(self.rows) / len(self.moved)


class Nearest:
    """The points of a target that are nearest to points that move little from one question to the next.

    A point that moved by d since the tree was asked has still the same nearest one, at a distance of a or less than
    a + d, if all others, at b or more, are still farther: a + d < b - d. Only of the others is the tree asked again.
    """

    def __init__(self, tree: cKDTree, bound: float) -> None:
        self._tree, self._bound, self._reach = tree, bound, _BEYOND * bound
        self._asked: FloatArray = np.empty((0, 3))  # where the points were when the tree was asked

    def __call__(self, points: FloatArray) -> tuple[FloatArray, Array]:
        """Distance to and row of the nearest; infinite where it is not within the bound."""
        if not len(self._asked):
            self._asked, self._spare = np.full(points.shape, np.inf), np.zeros(len(points))
            self._near: Array = np.zeros(len(points), dtype=np.intp)
        moved = points - self._asked
        self._ask(points, np.flatnonzero(np.einsum("ij,ij->i", moved, moved) >= self._spare**2))
        is_near = self._near < self._tree.n
        distance = np.full(len(points), np.inf)
        step = points[is_near] - self._tree.data[self._near[is_near]]
        distance[is_near] = np.sqrt(np.einsum("ij,ij->i", step, step))
        distance[distance >= self._bound] = np.inf
        return distance, self._near

    def _ask(self, points: FloatArray, rows: Array) -> None:
        distance, nearest = self._tree.query(points[rows], 2, distance_upper_bound=self._reach)
        first, second = np.minimum(distance, self._reach).T
        self._asked[rows], self._near[rows] = points[rows], nearest[:, 0]
        # Where nothing is within reach, nothing comes within the bound on a shorter way than this.
        self._spare[rows] = np.where(np.isfinite(distance[:, 0]), (second - first) / 2, self._reach - self._bound)


def contact_and_nearness(
    source: Surface, target: Surface, motion: Motion, bounds: tuple[float, float], every: int = 1
) -> tuple[Contact, int]:
    """What comes within a bound of the other surface, with a normal of the same direction, of every so many points.

    Also how many points come within a second bound, which is no less than the first.
    """
    moved = motion(source.points[::every])
    distance, nearest = target.tree.query(moved, distance_upper_bound=bounds[1])
    touching = _touching(source, target, motion, moved, np.flatnonzero(distance < bounds[0]), nearest, every)
    return touching, int(np.count_nonzero(np.isfinite(distance)))


def _touching(
    source: Surface, target: Surface, motion: Motion, moved: FloatArray, rows: Array, nearest: Array, every: int
) -> Contact:
    """Of points near the target, those whose normals have the same direction."""
    normal = target.normals_at(nearest[rows])
    turned = source.normals_at(every * rows) @ motion.rotation.T
    rows = rows[np.abs(np.einsum("ij,ij->i", turned, normal)) > _SAME_DIRECTION]
    return Contact(moved, rows, nearest[rows])


def contact(source: Surface, target: Surface, motion: Motion, nearest: Nearest, every: int = 1) -> Contact:
    """The same without the second bound, of points that are moved again and again."""
    moved = motion(source.points[::every])
    distance, rows = nearest(moved)
    return _touching(source, target, motion, moved, np.flatnonzero(np.isfinite(distance)), rows, every)


def refine(
    source: Surface,
    target: Surface,
    motion: Motion,
    bound: float,
    rounds: int,
    every: int = 1,
    *,
    free_scale: bool = False,
) -> Motion:
    """Improve a motion, at one bound, by every so many points of the source."""
    nearest = Nearest(target.tree, bound)
    for _ in range(rounds):
        touching = contact(source, target, motion, nearest, every)
        found = equations(target, touching, bound, free_scale=free_scale)
        if found is None:
            break
        information = (found.moves * found.weight[:, None]).T @ found.moves
        # Along a plane nothing is known, and nothing shall move.
        information[np.diag_indices(len(information))] += _RIDGE * np.trace(information) / len(information)
        step = -np.linalg.solve(information, found.moves.T @ (found.weight * found.offset))
        turn = Rotation.from_rotvec(step[:3] / found.size).as_matrix()
        growth = 1 + float(step[6]) / found.size if free_scale else 1.0
        if abs(growth * motion.scale - 1) > _MOST_GROWTH:
            break
        motion = motion.then(Motion(turn, found.centre - growth * turn @ found.centre + step[3:6], growth))
        if np.abs(step).max() < _LITTLE * bound:
            break
    return motion


@dataclass(frozen=True, eq=False)
class Equations:
    """The linear equations of one round: offset + moves (size w, s) = 0, w a turn about the centre, s a shift.

    With a free scale there is a seventh unknown, size g, g the growth about the centre.
    """

    points: FloatArray
    moves: FloatArray
    offset: FloatArray
    weight: FloatArray
    centre: FloatArray
    size: float  # radius of the points about their centre


def equations(target: Surface, touching: Contact, bound: float, *, free_scale: bool = False) -> Equations | None:
    """Set up a round; None where too few points touch."""
    if touching.rows.size < _FEWEST:
        return None
    x, n = touching.moved[touching.rows], target.normals_at(touching.nearest)
    offset = np.einsum("ij,ij->i", x - target.points[touching.nearest], n)
    centre = x.mean(axis=0)
    size = float(np.sqrt(((x - centre) ** 2).sum(axis=1).mean()))
    if size == 0:
        return None
    moves = screws((x - centre) / size, n, free_scale=free_scale)
    return Equations(x, moves, offset, 1 / (1 + (2 * offset / bound) ** 2) ** 2, centre, size)


def screws(x: FloatArray, n: FloatArray, *, free_scale: bool = False) -> FloatArray:
    """How far turns about the axes, shifts and, if it is free, growth move points along their normals."""
    (a, b, c), (u, v, w) = x.T, n.T
    moves = [b * w - c * v, c * u - a * w, a * v - b * u, u, v, w]
    return np.column_stack([*moves, a * u + b * v + c * w] if free_scale else moves)


def polish(
    grids: Sequence[Grid], motion: Motion, *, free_scale: bool = False
) -> tuple[Motion, tuple[Surface, Surface], float]:
    """Refine on ever finer points; also the finest surfaces, and the bound there."""
    for grid in grids:
        surfaces = Surface.dense(grid.source), Surface.dense(grid.target)
        for bound in _FINER_BOUNDS:
            motion = refine(*surfaces, motion, bound * grid.side, _FINER_ROUNDS, free_scale=free_scale)
    return motion, surfaces, _FINER_BOUNDS[-1] * grids[-1].side


def slid_to_surface(X: Array, Y: Array, motion: SimilarityTransformation, bound: float) -> SimilarityTransformation:
    """Refine a rigid motion in space on the surfaces that the points of its pairs lie on, whoever is whose partner."""
    points = [np.unique(side, axis=0).astype(np.float64) for side in (X, Y)]
    origin = points[0].mean(axis=0)
    image = motion(origin[None])[0]
    surfaces = Surface.dense(points[0] - origin), Surface.dense(points[1] - image)
    found = refine(*surfaces, Motion(motion.rotation, np.zeros(3)), bound, _FINER_ROUNDS)
    return SimilarityTransformation(found.rotation, image + found.translation - found.rotation @ origin, model="rigid")


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
    unit = np.diag([1 / there.size] * 3 + [1.0] * 3 + [1 / there.size] * free_scale)  # from turns times the radius
    spread = unit @ spread @ unit
    centre = found.inverse((there.centre + origin)[None])[0]
    return _in_units(spread, float(n_blocks - 1), block, found, centre)


def _in_units(
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
