"""Were pairs chosen because they are near? Near ties between one's own partner and the nearest other tell.

Let u be the distance of a row to its own partner over that to the nearest other. Partners do not know who is nearest,
so nothing happens at u = 1. Pairs that were chosen by nearness end there, like off a cliff. In d dimensions the nearest
of strangers has log u = -t with density d exp(-d t), so that a stretch of 2 / d holds most of them. 1 / d is told by
how distances to the nearest others grow (Levina and Bickel): columns may be many and directions few, and beside a large
table a small one is a point. Let A, B and C be the numbers of pairs with log u in the two such stretches below 0 and in
the one above. Where the density is smooth, and falls as B / A says or not at all, C is B min(1, B / A), and half of
that where its fall is steepening. Where rows stand on a grid, or keep apart, it is not smooth; but then it has the same
cliff if the distances to partners are dealt anew among the rows. A C far below what both explanations allow is a sign.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import binom
from sklearn.neighbors import NearestNeighbors

from inlier._typing import FloatArray

_STRETCH = 2.0  # over the dimension: of log u
_NEIGHBOURS = 10  # that tell the dimension
_STEEPENING = 0.5
_SAME = 1e-9  # difference of log u that is none: such ties are won and lost by half


class NearTies(NamedTuple):
    """Rows whose own partner and the nearest other are about equally near."""

    won: float  # own is the nearer
    lost: float
    chance: float  # of so few lost, for pairs that were not chosen


def near_ties(x: FloatArray, own: FloatArray, everyone: FloatArray, power: int = 2) -> NearTies:
    """Count how many near ties own partners win against the nearest other point, and how many they lose."""
    to_own = np.linalg.norm(x - own, ord=power, axis=1)
    k = min(_NEIGHBOURS, len(everyone) - 1)
    nearest = NearestNeighbors(n_neighbors=k + 1, p=power).fit(everyone).kneighbors(x)[0]
    is_own = np.abs(nearest - to_own[:, None]) <= _SAME * (1 + to_own[:, None])
    is_own[:, -1] |= ~is_own.any(axis=1)  # where own is farther than those, one too many was asked for
    others = nearest[np.arange(k + 1) != np.argmax(is_own, axis=1)[:, None]].reshape(-1, k)
    own, others = (np.log(np.maximum(distances, 1e-300)) for distances in (to_own, others))
    other, inverse_dimension = others[:, 0], float(np.median(np.mean(others[:, -1:] - others[:, :-1], axis=1)))
    at = np.arange(-2, 2) * _STRETCH * inverse_dimension
    above = _above(np.sort(own - other), at)
    before, won, lost = above[:-1] - above[1:]
    dealt_above = _above(np.sort(own), other[:, None] + at).sum(axis=0)
    _, dealt_won, dealt_lost = (dealt_above[:-1] - dealt_above[1:]) / len(x)
    if won + lost < 1:
        return NearTies(won, lost, 1.0)
    smooth = _STEEPENING * min(1.0, (won + 1) / (before + 1))
    share = min(smooth / (1 + smooth), _STEEPENING * dealt_lost / max(dealt_won + dealt_lost, 1e-300))
    return NearTies(won, lost, float(binom.cdf(np.floor(lost), round(won + lost), share)))


def _above(rising: FloatArray, at: FloatArray) -> FloatArray:
    """How many of the values are above these; those that are equal count half."""
    ends = [rising.size - np.searchsorted(rising, at + side * _SAME) for side in (-1, 1)]
    return np.mean(ends, axis=0)
