"""Before a motion is called sure: is there another one that the scene's own symmetry makes as good?

A room is a box, and a box fits itself after half a turn; stairs, racks and windows fit themselves one step further on.
Matches alone do not suggest all of these motions, since a few that look a little more alike win. So they are put up on
purpose (`decoys`): the motion that was found, after each of the 24 turns that carry the main axes of the surfaces onto
each other, among them none at all, moved to where most matches then agree. They are refined and judged like all others.

Which of two motions that look sure is right the finest points tell, if anything does (`FineLook`): hills that are
nearly alike do not fit each other to within the noise; steps of one staircase do. A motion is rivalled by another that
looks sure and that the finest points do not contradict: far fewer of them meet; or somewhat fewer, in nearly all blocks
of the surface that come near at both motions (a sign test: where a scene repeats, each is ahead in about half of them).
If that is said for the other one, it is the motion.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import binom

from inlier._typing import FloatArray, Mask
from inlier.clouds.refinement import Motion, Nearest, contact, equations, polish
from inlier.clouds.second_opinion import Opinion
from inlier.clouds.suggestions import Level
from inlier.clouds.surfaces import Grid, cell_numbers

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
_BLOCK = 12.0  # sides of the finest cells: points within err alike
_CLEARLY = 0.001  # chance of being ahead in so many blocks, from which on a motion is


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


def settled(opinions: list[Opinion], look: FineLook, log_sure: float) -> tuple[list[Opinion], Opinion | None]:
    """The opinions, the one that the finest points clearly prefer to the first before it, and what rivals that."""
    rival = rival_of(opinions, look, log_sure)
    if rival is None or not look.prefers(rival.motion, opinions[0].motion):
        return opinions, rival
    opinions = [rival, *(one for one in opinions if one is not rival)]
    return opinions, rival_of(opinions, look, log_sure)


def rival_of(opinions: list[Opinion], look: FineLook, log_sure: float) -> Opinion | None:
    """The strongest other motion that would be sure by itself and that the finest points do not speak against."""
    first = opinions[0]
    others = [one for one in opinions[1:] if one.log_p_value <= log_sure][:_MOST_RIVALS]
    if not others:
        return None
    share, noise = look.share(first.motion)
    for one in others:
        has_as_many = one.n_supporting >= _AS_MANY * first.n_supporting
        is_as_fine = look.share(one.motion, noise)[0] >= (_NEARLY_AS_FINE if has_as_many else _AS_FINE) * share
        if is_as_fine and not look.prefers(first.motion, one.motion):
            return one
    return None


def set_aside(opinions: list[Opinion], log_sure: float) -> Opinion | None:
    """A motion that leaves a freedom, has more in its favour than the first, and would be sure: it may be right."""
    free = [one for one in opinions[1:] if one.undetermined is not None and one.log_p_if_held <= log_sure]
    stronger = [one for one in free if one.strength > opinions[0].strength]
    return max(stronger, key=lambda one: one.strength, default=None)


@dataclass(frozen=True, eq=False)
class FineLook:
    """How much of the surfaces meets to within the noise at a motion."""

    grids: tuple[Grid, Grid]
    free_scale: bool

    def share(self, motion: Motion, noise: float | None = None) -> tuple[float, float]:
        """Share of the near points that meet to within the noise (its own, if it is not given), and that noise."""
        _, meets, is_near, noise = self._at(motion, noise, _FIRST_LOOK)
        return float(np.count_nonzero(meets)) / max(int(np.count_nonzero(is_near)), 1), noise

    def prefers(self, one: Motion, other: Motion) -> bool:
        """Whether more points meet at one motion than at the other, in all and in clearly more than half of the blocks.

        To within the larger noise of the two: where points are listed twice, the smaller may be none.
        """
        noise = max(self.share(motion)[1] for motion in (one, other))
        points, meets, is_near, _ = self._at(one, noise)
        _, meets_there, is_near_there, _ = self._at(other, noise)
        both = is_near & is_near_there
        if np.count_nonzero(meets_there[both]) >= _AS_FINE * np.count_nonzero(meets[both]):
            return False
        _, owner = np.unique(cell_numbers(points[both], _BLOCK * self.grids[-1].side), return_inverse=True)
        ahead = np.bincount(owner, meets[both].astype(float) - meets_there[both])
        n_ahead, n_behind = (int(np.count_nonzero(side * ahead > 0)) for side in (1, -1))
        return bool(binom.sf(n_ahead - 1, n_ahead + n_behind, 0.5) <= _CLEARLY)

    def _at(
        self, motion: Motion, noise: float | None = None, most: int | None = None
    ) -> tuple[FloatArray, Mask, Mask, float]:
        """The finest points (so many, evenly spaced), which of them meet, which come near, and the noise."""
        refined, surfaces, _ = polish(self.grids, motion, free_scale=self.free_scale)
        points, bound = surfaces[0].points, _WIDE * self.grids[-1].side
        every = 1 if most is None else max(1, len(points) // most)
        touching = contact(*surfaces, refined, Nearest(surfaces[1].tree, bound), every)
        distance, _ = surfaces[1].tree.query(touching.moved, distance_upper_bound=bound)
        meets, is_near = np.zeros(len(distance), dtype=bool), np.isfinite(distance)
        there = equations(surfaces[1], touching, bound)
        if there is None:
            return points[::every], meets, np.zeros_like(meets), np.inf
        residual = np.abs(there.offset)
        noise = _PER_MEDIAN * float(np.median(residual)) if noise is None else noise
        meets[touching.rows] = residual <= noise
        return points[::every], meets, is_near, noise
