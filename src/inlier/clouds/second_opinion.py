"""Before anything is called sure: what do the surfaces say at the motion that was found?

Three questions to a motion, at the octave that it was found at:

- *Support*: how many of the matches does it explain, after the surfaces have refined it? Wrong motions are explained by
  the clumps that suggested them, and refinement takes them away from these.
- *Contact*: of all points that come near the other surface (within five cells), how many touch it, with a normal of the
  same direction? Surfaces that cross each other are near in many places and touch in few; where two scans show the same
  place they touch in most.
- *Freedom*: is there a turn or shift that the touching surfaces leave free? On a plane, a ball or a pipe any motion along
  it fits as well, and nothing tells which is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier._typing import FloatArray
from inlier.clouds.levels import Level
from inlier.clouds.refinement import Contact, Motion, Surface, contact
from inlier.clouds.suggestions import n_supporting

_TOUCH, _NEAR = 1.5, 5.0  # sides of a cell: points that touch the other surface, points that are near it


@dataclass(frozen=True, eq=False)
class Opinion:
    """What speaks for a motion."""

    motion: Motion
    n_supporting: int  # matches
    n_matches: int
    contact: float  # share of the points near the other surface that touch it, in both directions
    overlap: tuple[float, float]  # share of the points of source and target that touch the other
    freedoms: FloatArray  # how firmly the touching surfaces hold each of six small motions, in rising order


def opinion_on(motion: Motion, levels: list[Level]) -> Opinion:
    """Ask the three questions; surfaces are those of the last level."""
    level = levels[-1]
    there = contact(level.source, level.target, motion, _TOUCH * level.side)
    back = contact(level.target, level.source, motion.inverse, _TOUCH * level.side)
    n_near = _n_near(there, level.target, level.side) + _n_near(back, level.source, level.side)
    n_touching = np.count_nonzero(there.touches) + np.count_nonzero(back.touches)
    return Opinion(
        motion,
        sum(n_supporting(level, motion) for level in levels),
        sum(len(level.matches) for level in levels),
        n_touching / max(n_near, 1),
        (float(there.touches.mean()), float(back.touches.mean())),
        freedoms(there, level.target),
    )


def freedoms(there: Contact, target: Surface) -> FloatArray:
    """Eigenvalues of the information about turns (at the radius of the contact) and shifts, a point on average."""
    x = there.moved[there.touches]
    if len(x) < 6:
        return np.zeros(6)
    centred = x - x.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=1).mean()) or 1.0
    n = target.normals[there.nearest[there.touches]]
    J = np.hstack([np.cross(centred / size, n), n])
    values: FloatArray = np.maximum(np.linalg.eigvalsh(J.T @ J / len(J)), 0)
    return values


def _n_near(there: Contact, other: Surface, side: float) -> int:
    distance, _ = other.tree.query(there.moved, distance_upper_bound=_NEAR * side)
    return int(np.count_nonzero(np.isfinite(distance)))
