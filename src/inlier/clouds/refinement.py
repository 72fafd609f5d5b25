"""Make a motion better on the surfaces themselves: point-to-plane ICP (Chen and Medioni 1991) with robust weights.

Each point of the source is taken to the nearest point of the target, and the motion w (a small turn and a shift) solves

    sum_i weight_i (n_i . (T(x_i) + w x (T(x_i) - c) + s - y_i))^2 = min,

n_i the normal at y_i. Points whose nearest is farther than a bound, or whose normals disagree, have no part; the others
weigh 1 / (1 + (e/b)^2)^2 by their residual e (Geman and McClure), b half the bound. The bound shrinks from what the
search leaves to one cell, on ever finer points (`polish`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from inlier._typing import Array, FloatArray
from inlier.clouds.surfaces import Grid, Surface
from inlier.transforms import SimilarityTransformation

_SAME_DIRECTION = 0.8  # cosine of the angle between normals, up to their sign, of points that belong together
_MOST_GROWTH = 0.1  # of a scale that is free, from where the search found it
_LITTLE = 1e-3  # of the bound: smaller steps end the rounds
_FINER_BOUNDS, _FINER_ROUNDS = (2.0, 1.0), 6  # in sides of a cell
_WIDEST = 8.0  # sides of a cell of the finest points, that residuals are looked at within, to see how large they are
_PER_MEDIAN = 12.0  # bound beside the median residual: weights are halved at some four standard errors
_BEYOND = 1.5  # bounds: so far the tree is asked for the nearest points, to be spared the next question
_RIDGE = 1e-6  # of the mean information about a parameter
_FEWEST = 12  # points that touch, for a step of six parameters


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
    """Refine on ever finer points, at last within the bound that the noise asks for; also the surfaces, and the bound.

    Where the noise is wider than the cells (depth cameras see far walls with centimetres), a bound of one cell keeps
    what happens to agree, and calls the rest outliers.
    """
    for grid in grids:
        surfaces = grid.surfaces
        for bound in _FINER_BOUNDS:
            motion = refine(*surfaces, motion, bound * grid.side, _FINER_ROUNDS, free_scale=free_scale)
    least, side = _FINER_BOUNDS[-1] * grids[-1].side, grids[-1].side
    bound = max(least, bound_of_noise(surfaces, motion, _WIDEST * side))
    if bound > least:
        motion = refine(*surfaces, motion, bound, _FINER_ROUNDS, free_scale=free_scale)
    return motion, surfaces, bound


def bound_of_noise(surfaces: tuple[Surface, Surface], motion: Motion, widest: float) -> float:
    """The bound that residuals ask for, and at most the one that they are looked at within."""
    touching = contact(*surfaces, motion, Nearest(surfaces[1].tree, widest))
    found = equations(surfaces[1], touching, widest)
    return 0.0 if found is None else min(widest, _PER_MEDIAN * float(np.median(np.abs(found.offset))))


def slid_to_surface(X: Array, Y: Array, motion: SimilarityTransformation, bound: float) -> SimilarityTransformation:
    """Refine a rigid motion in space on the surfaces that the points of its pairs lie on, whoever is whose partner."""
    points = [np.unique(side, axis=0).astype(np.float64) for side in (X, Y)]
    origin = points[0].mean(axis=0)
    image = motion(origin[None])[0]
    surfaces = Surface.dense(points[0] - origin), Surface.dense(points[1] - image)
    found = refine(*surfaces, Motion(motion.rotation, np.zeros(3)), bound, _FINER_ROUNDS)
    return SimilarityTransformation(found.rotation, image + found.translation - found.rotation @ origin, model="rigid")
