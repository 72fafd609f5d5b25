"""Were pairs chosen because they are near? Near ties between one's own partner and the nearest other tell.

Let u be the distance of a row to its own partner over that to the nearest other. Partners do not know who is nearest,
so nothing happens at u = 1. Pairs that were chosen by nearness end there, like off a cliff. In d dimensions the nearest
of strangers has log u = -t with density d exp(-d t), so that a stretch of 2 / d holds most of them. 1 / d is told by
how distances to the nearest others grow (Levina and Bickel): columns may be many and directions few, and beside a large
table a small one is a point. Let A, B and C be the numbers of pairs with log u in the two such stretches below 0 and in
the one above. Where the density is smooth, and falls as B / A says or not at all, C is B min(1, B / A), and half of
that where its fall is steepening. Where rows stand on a grid, or keep apart, it is not smooth; but then it has the same
cliff if the distances to partners are dealt anew among the rows. A C far below what both explanations allow is a sign.

Pairs that were dealt out one by one, each to the nearest that was left, or all at once, so that distances add up to as
little as can be, lose such ties: somebody nearer is taken. But no two of them would change partners, both to their
gain. So of rows i that are nearer to the partner of some j, and would rather have it, we ask by how much j is nearer to
that of i, or farther: the same cliff, of *swaps*.

After a motion all columns are lengths and few pairs may have been chosen, so both explanations count whole, and the
ties of x alone and of both sides are asked about. A motion that was fitted to chosen pairs blurs the cliff, so it is
looked for where the motion must have been that chose them (`choosing`). Where nearly all pairs end up near each other,
those that were not accepted are asked, too. Right pairs of any noise, on any surface or grid, pass
(`benchmarks/near_ties.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import binom
from sklearn.neighbors import NearestNeighbors

from inlier._typing import Array, FloatArray, Mask
from inlier.consensus.choosing import choosing_move

_STRETCH = 2.0  # over the dimension: of log u
_NEIGHBOURS = 10  # that tell the dimension
_LOW = 8  # columns up to which a tree is faster
_STEEPENING = 0.5
_DEALS, _NEARBY = 3, 12  # how often what is between partners is dealt anew, among so many rows
_DEALT, _MOST_DEALS = 1_000, 10  # so many rows in all, where they are few
_ALIKE = 1 / 3  # mean cosine of what is between neighbours and their partners, above which no two would change anyhow
_FEWEST, _ENOUGH = 6, 400  # pairs that are asked, and of which a motion is looked for that chose them
_NEAR, _NEARLY_ALL = 2, 0.85  # stretches within which a pair is near, and share of pairs from which on all are asked
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


def near_ties(x: FloatArray, own: FloatArray, everyone: FloatArray, power: int = 2) -> NearTies:
    """Count how many near ties own partners win against the nearest other point, and how many they lose."""
    if len(everyone) <= 2:
        return NearTies(0, 0, 1.0)
    to_own, others = _log_distances(x, own, everyone, min(_NEIGHBOURS, len(everyone) - 1), power)
    inverse_dimension = float(np.median(np.mean(others[:, -1:] - others[:, :-1], axis=1)))
    counts = _counts(to_own, others[:, 0], _STRETCH * inverse_dimension)
    return counts.ties(min(counts.if_smooth, _STEEPENING * counts.if_dealt))


def near_swaps(x: FloatArray, own: FloatArray, power: int, rng: np.random.RandomState) -> NearTies:
    """Of rows whose partner another would rather have, count how many would rather keep it, and how many change.

    How many change where nobody chose is seen if what is between partners is dealt anew among rows nearby.
    """
    between = own - x
    beside = between[NearestNeighbors(n_neighbors=2).fit(x).kneighbors(x)[1][:, 1]]
    lengths = np.linalg.norm(between, axis=1) @ np.linalg.norm(beside, axis=1)
    if np.sum(between * beside) > _ALIKE * lengths:
        return NearTies(0, 0, 1.0)
    dealt = [_swaps(x, x + between[_dealt_nearby(x, rng)], power, rng) for _ in range(_DEALS)]
    counts = _Counts(0, *_swaps(x, own, power, rng), *np.sum(dealt, axis=0))
    return counts.ties(min(counts.if_dealt, 0.5))


def _dealt_nearby(x: FloatArray, rng: np.random.RandomState) -> Any:
    """Rows in another order, in which each stands for one nearby."""
    together = cKDTree(x, leafsize=_NEARBY // 2).indices
    mixed = np.argsort(np.arange(len(x)) // _NEARBY + rng.random(len(x)))
    order = np.empty(len(x), dtype=np.int64)
    order[together] = together[mixed]
    return order


def _swaps(x: FloatArray, own: FloatArray, power: int, rng: np.random.RandomState) -> tuple[int, int]:
    """How many rows, each counted once, would lose a little by a change that another wants; and gain a little."""
    to_own = np.linalg.norm(x - own, ord=power, axis=1)
    far, there = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, len(x)), p=power).fit(own).kneighbors(x)
    inverse_dimension = float(np.median(np.mean(np.log(far[:, -1:] + 1e-300) - np.log(far[:, :-1] + 1e-300), axis=1)))
    stretch = _STRETCH * inverse_dimension
    i, place = np.nonzero(far < (1 - _SAME) * to_own[:, None])
    j = there[i, place]
    to_that = np.linalg.norm(x[j] - own[i], ord=power, axis=1)
    gain = np.log(np.maximum(to_own[j], 1e-300)) - np.log(np.maximum(to_that, 1e-300))
    is_free, apart = np.ones(len(x), dtype=bool), []
    for k in rng.permutation(np.flatnonzero(np.abs(gain) < stretch)):
        if is_free[i[k]] and is_free[j[k]]:
            is_free[[i[k], j[k]]] = False
            apart.append(gain[k] > 0)
    return len(apart) - sum(apart), sum(apart)


def near_ties_of_motion(
    images: FloatArray, own: FloatArray, accepted: Mask, all_images: FloatArray, everyone: FloatArray
) -> NearTies:
    """Of pairs that a motion brings together: the less likely ties, of images alone and of both sides."""
    stretch = _STRETCH / images.shape[1]
    of_all = _log_distances(images, own, everyone, 1)
    is_near = of_all[0] - of_all[1][:, 0] < _NEAR * stretch
    asked = accepted | is_near if np.mean(is_near) >= _NEARLY_ALL else accepted
    if np.count_nonzero(asked) < _FEWEST:
        return NearTies(0, 0, 1.0)
    counts = _counts(of_all[0][asked], of_all[1][asked, 0], stretch)
    if counts.won <= counts.lost:
        return NearTies(counts.won, counts.lost, 1.0)
    images, own, found = images[asked], own[asked], []
    once = np.unique(own, axis=0, return_index=True)[1]
    beside = everyone[cKDTree(own).query(everyone)[0] > 0]
    some = slice(None, None, max(1, len(images) // _ENOUGH))
    for is_mutual in (False, True):
        move = choosing_move(images[some], own[some], all_images, everyone, is_mutual=is_mutual)
        sides = _Sides(move(images), own, move(all_images), once, beside, stretch, is_mutual)
        counts = sides.counts()
        found.append(counts.ties(min(counts.if_smooth, counts.if_dealt)))
    return min(found, key=lambda ties: ties.chance)


@dataclass(frozen=True, eq=False)
class _Sides:
    """Images and their own, both among everyone there is on their side."""

    images: FloatArray
    own: FloatArray
    all_images: FloatArray
    once: Array  # rows of own, each point once
    beside: FloatArray  # everyone else
    stretch: float
    is_mutual: bool  # whether ties of both sides count

    def counts(self) -> _Counts:
        """Ties as they are, and as they would be if what is between partners is dealt anew among pairs nearby."""
        between, rng = self.own - self.images, np.random.RandomState(0)
        n_deals = min(max(_DEALS, _DEALT // len(between)), _MOST_DEALS)
        dealt = [self._ties(self.images + between[_dealt_nearby(self.images, rng)]) for _ in range(n_deals)]
        return _Counts(*self._ties(self.own), *np.mean(dealt, axis=0)[1:])

    def _ties(self, own: FloatArray) -> FloatArray:
        """How many pairs have log u in each stretch."""
        ties = self._of(self.images, own, np.vstack([own[self.once], self.beside]))
        return ties + self._of(own, self.images, self.all_images) if self.is_mutual else ties

    def _of(self, x: FloatArray, own: FloatArray, everyone: FloatArray) -> FloatArray:
        to_own, others = _log_distances(x, own, everyone, 1)
        return _between(np.sort(to_own - others[:, 0]), self.stretch)


def _log_distances(
    x: FloatArray, own: FloatArray, everyone: FloatArray, k: int, power: int = 2
) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the distances to the own partner, and to the k nearest others."""
    to_own = np.linalg.norm(x - own, ord=power, axis=1)
    width = float(np.ptp(everyone, axis=0).max())
    if x.shape[1] <= _LOW:
        nearest = cKDTree(everyone).query(x, k=k + 1, p=power)[0]
    else:
        nearest = NearestNeighbors(n_neighbors=k + 1, p=power).fit(everyone).kneighbors(x)[0]
    is_own = np.abs(nearest - to_own[:, None]) <= _SAME * np.maximum(width, to_own[:, None])
    is_own[:, -1] |= ~is_own.any(axis=1)  # where own is farther than those, one too many was asked for
    others = nearest[np.arange(k + 1) != np.argmax(is_own, axis=1)[:, None]].reshape(-1, k)
    return np.log(np.maximum(to_own, 1e-300)), np.log(np.maximum(others, 1e-300))


def _counts(to_own: FloatArray, to_other: FloatArray, stretch: float) -> _Counts:
    """The counts for stretches so wide."""
    before, won, lost = _between(np.sort(to_own - to_other), stretch)
    at = np.arange(-2, 2) * stretch
    dealt = _above(np.sort(to_own), to_other[:, None] + at).sum(axis=0)
    _, dealt_won, dealt_lost = (dealt[:-1] - dealt[1:]) / len(to_own)
    return _Counts(before, won, lost, dealt_won, dealt_lost)


def _between(rising: FloatArray, stretch: float) -> FloatArray:
    """How many values lie in the two stretches below 0 and in the one above."""
    above = _above(rising, np.arange(-2, 2) * stretch)
    between: FloatArray = above[:-1] - above[1:]
    return between


def _above(rising: FloatArray, at: FloatArray) -> FloatArray:
    """How many of the values are above these; those that are equal count half."""
    ends = [rising.size - np.searchsorted(rising, at + side * _SAME) for side in (-1, 1)]
    return np.mean(ends, axis=0)
