"""Before a motion is called sure: is there another one that the scene's own symmetry makes as good?

A room is a box, and a box fits itself after half a turn; stairs, racks and windows fit themselves one step further on.
Matches alone do not suggest all of these motions, since a few that look a little more alike win. So they are put up on
purpose (`decoys`): the motion that was found, after each of the 24 turns that carry the main axes of the surfaces onto
each other, among them none at all, moved to where most matches then agree. They are refined and judged like all others.

Which of two motions that look sure is right the finest points tell, if anything does (`FineLook`): hills that are
nearly alike do not fit each other to within the noise; steps of one staircase do. A motion is rivalled by another that
looks sure and that the finest points do not contradict.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from scipy.spatial import cKDTree

from inlier._typing import FloatArray
from inlier.clouds.refinement import Motion, Nearest, contact, equations, polish
from inlier.clouds.second_opinion import Opinion
from inlier.clouds.suggestions import Level
from inlier.clouds.surfaces import Grid

_PEAKS = 3  # shifts after each turn, where most matches agree
_VOTE = 2.0  # sides of a cell: shifts that are the same
_ALONG = 0.94  # cosine of normals that are those of one direction (20 degrees)
_ACROSS = 0.34  # cosine of normals that are perpendicular to it
_MODES = 500  # normals that are tried as a main axis
_FIRST_LOOK = 3_000  # of the finest points, so many are asked where a rival touches
_WIDE = 8.0  # sides of the finest cells, within which points are near
_MOST_RIVALS = 6  # that are looked at so closely, the strongest
_AS_FINE, _NEARLY_AS_FINE = 0.95, 0.7  # of the share that meets at the motion found: a rival with less is contradicted
_AS_MANY = 0.5  # of the matches that support the motion found: then it takes a clearer no
_PER_MEDIAN = 4.5  # three standard deviations, in medians of the absolute residual


def decoys(level: Level, motion: Motion) -> list[Motion]:
    """The motion after each turn of the scene's axes, where most matches then agree."""
    x, y = level.ends
    axes = main_axes(level.target.normals_at(np.arange(len(level.target.points))))
    found = []
    for turn in _TURNS:
        rotation = axes @ turn @ axes.T @ motion.rotation
        for shift in _peaks(y - motion.scale * (x @ rotation.T), _VOTE * level.side):
            found.append(Motion(rotation, shift, motion.scale))
    return found


def main_axes(normals: FloatArray) -> FloatArray:
    """The direction of most normals, that of most that are perpendicular to it, and the third, as columns."""
    some = normals[:: max(1, len(normals) // _MODES)]
    first = _commonest(some, some)
    across = some[np.abs(some @ first) < _ACROSS]
    # On a plane any direction in it does.
    second = _commonest(across, across) if len(across) else np.eye(3)[np.abs(first).argmin()]
    second = second - first * (first @ second)
    second /= np.linalg.norm(second)
    return np.stack([first, second, np.cross(first, second)], axis=1)


def _commonest(candidates: FloatArray, normals: FloatArray) -> FloatArray:
    """The candidate that most normals are along, averaged over these."""
    along = np.abs(candidates @ normals.T) > _ALONG
    near = normals[along[along.sum(axis=1).argmax()]]
    direction: FloatArray = np.linalg.eigh(near.T @ near)[1][:, -1]
    return direction


def _peaks(shifts: FloatArray, bound: float) -> FloatArray:
    """Where most shifts lie, and next most, no two near each other."""
    tree, kept = cKDTree(shifts), np.empty((0, 3))
    votes = tree.query_ball_point(shifts, bound, return_length=True)
    for row in np.argsort(-votes, kind="stable"):
        if len(kept) == _PEAKS:
            break
        if not len(kept) or np.linalg.norm(kept - shifts[row], axis=1).min() > 2 * bound:
            near = tree.query_ball_point(shifts[row], bound)
            kept = np.vstack([kept, shifts[near].mean(axis=0)])
    return kept


def _proper_turns() -> list[FloatArray]:
    """The 24 turns that carry axes onto axes, none at all first."""
    turns = []
    for order in permutations(range(3)):
        for signs in product((1.0, -1.0), repeat=3):
            turn = np.eye(3)[list(order)] * np.array(signs)
            if np.linalg.det(turn) > 0:
                turns.append(turn)
    return sorted(turns, key=lambda turn: -np.trace(turn))


_TURNS = _proper_turns()


def rival_of(opinions: list[Opinion], look: FineLook, log_sure: float) -> Opinion | None:
    """The strongest other motion that would be sure by itself and that the finest points do not speak against."""
    others = [one for one in opinions[1:] if one.log_p_value <= log_sure][:_MOST_RIVALS]
    if not others:
        return None
    share, noise = look.share(opinions[0].motion)
    for one in others:
        has_as_many = one.n_supporting >= _AS_MANY * opinions[0].n_supporting
        if look.share(one.motion, noise)[0] >= (_NEARLY_AS_FINE if has_as_many else _AS_FINE) * share:
            return one
    return None


def set_aside(opinions: list[Opinion]) -> Opinion | None:
    """A motion that leaves a freedom, and has more in its favour than the first: it may be the right one."""
    stronger = [one for one in opinions[1:] if one.undetermined is not None and one.strength > opinions[0].strength]
    return max(stronger, key=lambda one: one.strength, default=None)


@dataclass(frozen=True, eq=False)
class FineLook:
    """How much of the surfaces meets to within the noise at a motion."""

    grids: tuple[Grid, Grid]
    free_scale: bool

    def share(self, motion: Motion, noise: float | None = None) -> tuple[float, float]:
        """Share of the near points that meet to within the noise (its own, if it is not given), and that noise."""
        refined, surfaces, _ = polish(self.grids, motion, free_scale=self.free_scale)
        bound = _WIDE * self.grids[-1].side
        every = max(1, len(surfaces[0].points) // _FIRST_LOOK)
        touching = contact(*surfaces, refined, Nearest(surfaces[1].tree, bound), every)
        there = equations(surfaces[1], touching, bound)
        if there is None:
            return 0.0, np.inf
        residual = np.abs(there.offset)
        noise = _PER_MEDIAN * float(np.median(residual)) if noise is None else noise
        distance, _ = surfaces[1].tree.query(touching.moved, distance_upper_bound=bound)
        n_near = int(np.count_nonzero(np.isfinite(distance)))
        return float(np.count_nonzero(residual <= noise)) / max(n_near, 1), noise
