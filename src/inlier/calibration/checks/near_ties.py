"""Where another partner would do about as well: do pairs win such ties more often than those that were not chosen?

*Exchanges.* For pairs i and j let D = (a_i - a_j).(b_i - b_j), in coordinates a and b that both tables share. Where
D < 0 the two are nearer to each other after an exchange of partners; pairs that were assigned, or each taken as the
nearest, leave none such. If partners are b = f(a) + noise instead, two rows with about the same a may as well have had
each other's noise: that turns D into 2 m - D, m being what f alone gives, so D < 0 is as frequent as D > 2 m. f is
taken as straight, and rows are left out beside which it is much steeper or flatter than elsewhere: a map without noise that
bends everywhere in many directions, more than the rows around can show, looks like an assignment.

*Others.* Let u be the distance of a row to its own partner over that to the nearest other. Pairs chosen by nearness
end at u = 1, like off a cliff; where they keep each other away, as mutual nearest neighbours do, exchanges show little
of it. In d dimensions the nearest of strangers has log u = -t with density d exp(-d t), so that a stretch of 2 / d
holds most of them. Let A, B and C be the numbers of pairs with log u in the two such stretches below 0 and in the one
above. Where the density is smooth, and falls as B / A says or not at all, C is B min(1, B / A), and half of that where
its fall is steepening. Where rows stand on a grid, or keep apart, it is not smooth; but then it has the same cliff if
the distances to partners are dealt anew among the rows. A C far below what both explanations allow is a sign.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import binom
from sklearn.neighbors import NearestNeighbors

from inlier._typing import FloatArray

_STRETCH = 2.0  # over the dimension: of log u
_STEEPENING = 0.5
_SAME = 1e-9  # difference that is none: such ties are won and lost by half
_NEIGHBOURS = 8  # to exchange partners with
_BENT = 2.0  # factor between what the map beside a row and the map of all rows give
_AROUND, _PER_SLOPE = 40, 4  # neighbours from which the map beside a row is learned, at least, and for each column
_LOST = 0.4  # at least, of the exchanges of pairs that were not chosen: half, if noise is the same nearby


class NearTies(NamedTuple):
    """Rows of which another partner would do about as well."""

    won: float  # by their own
    lost: float
    chance: float  # of so few lost, for pairs that were not chosen


def exchanges(a: FloatArray, b: FloatArray, n_looked_at: int) -> NearTies:
    """Count exchanges that would bring the first rows and such with nearly the same a nearer, and the mirror images.

    Each row counts once, with the nearest row of which the one or the other is true.
    """
    d = a.shape[1]
    n_around = min(max(_AROUND, _PER_SLOPE * d), len(a) - 1)
    around = NearestNeighbors(n_neighbors=n_around + 1).fit(a).kneighbors(a[:n_looked_at])[1]
    i, j = np.broadcast_arrays(np.arange(len(around))[:, None], around)
    by_a, by_b = a[i] - a[j], b[i] - b[j]
    squares = np.einsum("nki,nkj->nij", by_a, by_a)
    squares += (1e-9 * np.trace(squares, axis1=1, axis2=2)[:, None, None] + 1e-300) * np.eye(d)
    products = np.einsum("nki,nkj->nij", by_a, by_b)
    beside, overall = np.linalg.solve(squares, products), np.linalg.solve(squares.sum(axis=0), products.sum(axis=0))
    i, j, by_a, by_b = (of[:, : _NEIGHBOURS + 1] for of in (i, j, by_a, by_b))
    by_overall, by_beside = np.sum(by_a @ overall * by_a, axis=2), np.einsum("nki,nij,nkj->nk", by_a, beside, by_a)
    gain, expected = np.sum(by_a * by_b, axis=2).ravel(), np.maximum(by_overall, by_beside).ravel()
    is_straight = expected < _BENT * np.minimum(by_overall, by_beside).ravel()
    i, j, by_a, by_b = i.ravel(), j.ravel(), by_a.reshape(-1, d), by_b.reshape(-1, d)
    apart = np.all([np.abs(by).max(axis=1) > _SAME * np.abs(by).max() for by in (by_a, by_b)], axis=0)
    lost, rows = gain < 0, np.flatnonzero(apart & is_straight & ((gain < 0) | (gain > 2 * expected)))
    is_used, n_lost = np.zeros(len(a), dtype=bool), 0
    for k in rows[np.argsort(np.linalg.norm(by_a[rows], axis=1), kind="stable")]:
        if not (is_used[i[k]] or is_used[j[k]]):
            is_used[[i[k], j[k]]] = True
            n_lost += int(lost[k])
    n_counted = int(is_used.sum()) // 2
    return NearTies(n_counted - n_lost, n_lost, float(binom.cdf(n_lost, n_counted, _LOST)))


def others(x: FloatArray, own: FloatArray, everyone: FloatArray) -> NearTies:
    """Count how many near ties own partners win against the nearest other point, and how many they lose."""
    to_own = np.linalg.norm(x - own, axis=1)
    nearest = NearestNeighbors(n_neighbors=2).fit(everyone).kneighbors(x)[0]
    is_own = np.abs(nearest[:, 0] - to_own) <= _SAME * (1 + to_own)
    to_other = np.where(is_own, nearest[:, 1], nearest[:, 0])
    own, other = (np.log(np.maximum(distance, 1e-300)) for distance in (to_own, to_other))
    at = np.arange(-2, 2) * _STRETCH / x.shape[1]
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
