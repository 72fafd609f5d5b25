"""Were pairs chosen because they are near? Near ties between one's own partner and the nearest other tell.

Let u be the distance of a row to its own partner over that to the nearest other. Partners do not know who is nearest,
so nothing happens at u = 1. Pairs that were chosen by nearness end there, like off a cliff. In d dimensions the nearest
of strangers has log u = -t with density d exp(-d t), so that a stretch of 2 / d holds most of them. Let A, B and C be
the numbers of pairs with log u in the two such stretches below 0 and in the one above. Where the density is smooth, and
falls as B / A says or not at all, C is B min(1, B / A), and half of that where its fall is steepening. Where rows stand
on a grid, or keep apart, it is not smooth; but then it has the same cliff if the distances to partners are dealt anew
among the rows. A C far below what both explanations allow is a sign.

After a motion, all columns are lengths and few pairs may have been chosen, so two questions are asked, of x and of
both sides: half as wide stretches, in which a smooth density hardly bends, without the second explanation; and the wide
ones without the half in it. Right pairs of any noise, on any surface or grid, pass both
(`tests/consensus/test_near_ties.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import binom
from sklearn.neighbors import NearestNeighbors

from inlier._typing import FloatArray

_STRETCH, _NARROW = 2.0, 1.0  # over the dimension: of log u
_STEEPENING = 0.5
_SAME = 1e-9  # difference of log u that is none: such ties are won and lost by half


class NearTies(NamedTuple):
    """Rows whose own partner and the nearest other are about equally near."""

    won: float  # own is the nearer
    lost: float
    chance: float  # of so few lost, for pairs that were not chosen


class _Counts(NamedTuple):
    """How many pairs have log u in each stretch, and how many if distances to partners are dealt anew."""

    before: float
    won: float
    lost: float
    dealt_won: float
    dealt_lost: float

    def and_of(self, other: _Counts) -> _Counts:
        return _Counts(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def if_smooth(self) -> float:
        """Share of ties that are lost where the density is smooth."""
        smooth = _STEEPENING * min(1.0, (self.won + 1) / (self.before + 1))
        return smooth / (1 + smooth)

    @property
    def if_dealt(self) -> float:
        return self.dealt_lost / max(self.dealt_won + self.dealt_lost, 1e-300)

    def ties(self, share: float) -> NearTies:
        """The ties, and how likely so few are lost where this share would be."""
        n = round(self.won + self.lost)
        chance = float(binom.cdf(np.floor(self.lost), n, share)) if self.won + self.lost >= 1 else 1.0
        return NearTies(self.won, self.lost, chance)


def near_ties(x: FloatArray, own: FloatArray, everyone: FloatArray) -> NearTies:
    """Count how many near ties own partners win against the nearest other point, and how many they lose."""
    counts = _counts(x, own, everyone, [_STRETCH])[0]
    return counts.ties(min(counts.if_smooth, _STEEPENING * counts.if_dealt))


def near_ties_of_motion(images: FloatArray, own: FloatArray, all_images: FloatArray, everyone: FloatArray) -> NearTies:
    """Of pairs that a motion brings together: the least likely ties, of images alone and of both sides."""
    stretches = [_STRETCH, _NARROW]
    here = _counts(images, own, everyone, stretches)
    both = [a.and_of(b) for a, b in zip(here, _counts(own, images, all_images, stretches), strict=True)]
    found = [
        ties
        for wide, narrow in (here, both)
        for ties in (wide.ties(min(wide.if_smooth, wide.if_dealt)), narrow.ties(narrow.if_smooth))
    ]
    return min(found, key=lambda ties: ties.chance)


def _counts(x: FloatArray, own: FloatArray, everyone: FloatArray, stretches: list[float]) -> list[_Counts]:
    """The counts for some widths of the stretches."""
    to_own = np.linalg.norm(x - own, axis=1)
    nearest = NearestNeighbors(n_neighbors=2).fit(everyone).kneighbors(x)[0]
    is_own = np.abs(nearest[:, 0] - to_own) <= _SAME * (1 + to_own)
    to_other = np.where(is_own, nearest[:, 1], nearest[:, 0])
    to_own, other = (np.log(np.maximum(distance, 1e-300)) for distance in (to_own, to_other))
    found = []
    for stretch in stretches:
        at = np.arange(-2, 2) * stretch / x.shape[1]
        above = _above(np.sort(to_own - other), at)
        dealt = _above(np.sort(to_own), other[:, None] + at).sum(axis=0)
        _, dealt_won, dealt_lost = (dealt[:-1] - dealt[1:]) / len(x)
        found.append(_Counts(*(above[:-1] - above[1:]), dealt_won, dealt_lost))
    return found


def _above(rising: FloatArray, at: FloatArray) -> FloatArray:
    """How many of the values are above these; those that are equal count half."""
    ends = [rising.size - np.searchsorted(rising, at + side * _SAME) for side in (-1, 1)]
    return np.mean(ends, axis=0)
