"""Before anything is called sure: what do the surfaces say at the motion that was found?

Three questions to a motion, at the octave that it was found at:

- *Support*: how many of the matches does it explain, after the surfaces have refined it? Wrong motions are explained by
  the clumps that suggested them, and refinement takes them away from these.
- *Contact*: of all points that come near the other surface (within five cells), how many touch it, with a normal of the
  same direction? Surfaces that cross each other are near in many places and touch in few; where two scans show the same
  place they touch in most.
- *Freedom*: is there a turn or shift that the touching surfaces leave free? On a plane, a ball or a pipe any motion
  along it fits as well, and nothing tells which is right.

The first two make one number, for K of n matches supporting, T points touching and a share c of the near ones:

    strength = log(K / n) + 0.6 log(K / T) + 4 c.

Among clouds of different places its upper tail is exponential, and that is the p-value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier._typing import FloatArray
from inlier.clouds.levels import Level
from inlier.clouds.refinement import Contact, Motion, Surface, contact
from inlier.clouds.suggestions import n_supporting

_TOUCH, _NEAR = 1.5, 5.0  # sides of a cell: points that touch the other surface, points that are near it
_PER_POINT, _PER_CONTACT = 0.6, 4.0  # weights of log(K / T) and of c beside log(K / n)
_FEW = 20  # touching points below which their number says little
# Strength that 9 % of 215 pairs of clouds without a motion exceed, and the mean excess of those.
_TAIL_START, _TAIL_SHARE, _TAIL_LENGTH = -4.03, 0.093, 0.321
_LEAST_HELD = 0.006  # of the mean information a point: below, a freedom is left undetermined


@dataclass(frozen=True, eq=False)
class Opinion:
    """What speaks for a motion."""

    motion: Motion
    n_supporting: int  # matches
    n_matches: int
    contact: float  # share of the points near the other surface that touch it, in both directions
    overlap: tuple[float, float]  # share of the points of source and target that touch the other
    n_touching: int
    freedoms: FloatArray  # how firmly the touching surfaces hold each of six small motions, in rising order
    least_held: FloatArray  # the first of these motions: a turn (times the radius of the contact) and a shift

    @property
    def strength(self) -> float:
        """One number for support and contact."""
        per_match = np.log((self.n_supporting + 1) / max(self.n_matches, 1))
        per_point = np.log((self.n_supporting + 1) / (self.n_touching + _FEW))
        return float(per_match + _PER_POINT * per_point + _PER_CONTACT * self.contact)

    @property
    def log_p_value(self) -> float:
        """Logarithm of the chance of such a strength for clouds of different places; 0 where a freedom is left."""
        if self.undetermined is not None:
            return 0.0
        return min(0.0, float(np.log(_TAIL_SHARE) - (self.strength - _TAIL_START) / _TAIL_LENGTH))

    def to_dict(self) -> dict[str, float]:
        """The evidence in numbers."""
        return {
            "n_supporting": self.n_supporting,
            "n_matches": self.n_matches,
            "contact": float(self.contact),
            "p_value": float(np.exp(self.log_p_value)),
        }

    @property
    def undetermined(self) -> str | None:
        """In words, the small motion that the touching surfaces do not determine, if there is one."""
        if self.freedoms[0] >= _LEAST_HELD:
            return None
        turn, shift = self.least_held[:3], self.least_held[3:]
        kind, axis = ("turn about", turn) if turn @ turn > shift @ shift else ("shift along", shift)
        return f"a {kind} ({', '.join(f'{part:.2f}' for part in axis / np.linalg.norm(axis))})"


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
        int(n_touching),
        *freedoms(there, level.target),
    )


def freedoms(there: Contact, target: Surface) -> tuple[FloatArray, FloatArray]:
    """Information about turns (at the radius of the contact) and shifts, a point on average, and what is known least.

    In rising order, along the main axes.
    """
    x = there.moved[there.touches]
    if len(x) < 6:
        return np.zeros(6), np.eye(6)[5]
    centred = x - x.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=1).mean()) or 1.0
    n = target.normals[there.nearest[there.touches]]
    moves = np.hstack([np.cross(centred / size, n), n])
    values, axes = np.linalg.eigh(moves.T @ moves / len(moves))
    return np.maximum(values, 0), axes[:, 0]


def _n_near(there: Contact, other: Surface, side: float) -> int:
    distance, _ = other.tree.query(there.moved, distance_upper_bound=_NEAR * side)
    return int(np.count_nonzero(np.isfinite(distance)))
