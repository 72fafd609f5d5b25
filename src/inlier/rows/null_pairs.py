"""Pairs that are wrong for sure: x_i with y_j of another pair.

Real correspondences repeat points, so x_i and y_j may be a real pair under another number. Hence a point is never
re-paired where its own pair, or its partner's, has the same point. That alone would be unfair: a point that makes up a
share f of its side is left out by a share f of its partners. So a re-pairing is kept with a chance in proportion to
1 / ((1 - f of x_i) (1 - f of y_j)), and then points are met as often as they occur.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.rows.namespaces import to_host
from inlier.rows.threads import row_blocks

_ROUNDS = 4  # re-pairings of each pair
_SAMPLE = 10_000  # rows that are looked at first in a long table; if none repeats, repeats are too rare to matter
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # an odd constant whose bits look random


def re_pairings(points: Array, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Draw x_i and y_j, about four of each, that are of different pairs and share no point with the other's pair."""
    n = points.shape[1]
    order = rng.permutation(n)
    rounds = min(_ROUNDS, n - 1)
    first = np.tile(order, rounds)
    second = np.concatenate([np.roll(order, shift) for shift in range(1, rounds + 1)])
    return RePairing(points, rng).among(first, second)


class RePairing:
    """Which re-pairings count.

    Parameters
    ----------
    points : ndarray of int, shape (2, n)
        Numbers that are equal for equal points, of x and of y.
    rng : RandomState
        Leaves some out, where points are not equally frequent.
    """

    def __init__(self, points: Array, rng: np.random.RandomState) -> None:
        self._points, self._rng = points, rng
        self._chances = tuple(_chance_to_be_kept(side) for side in points)
        self._all_kept = all((chances == 1).all() for chances in self._chances)

    def among(self, first: Array, second: Array) -> tuple[Array, Array]:
        """Of x_i and y_j, those that count; i and j are numbers of pairs."""
        x, y = self._points
        counts = (x[first] != x[second]) & (y[first] != y[second])
        if not self._all_kept:
            counts &= self._rng.uniform(size=counts.size) < self._chances[0][first] * self._chances[1][second]
        return first[counts], second[counts]

    def with_each_of(self, some: slice) -> Mask:
        """Whether x_i with y_j counts, for all i and some j."""
        x, y = self._points
        counts: Mask = (x[:, None] != x[some]) & (y[:, None] != y[some])
        if not self._all_kept:
            counts &= self._rng.uniform(size=counts.shape) < self._chances[0][:, None] * self._chances[1][some]
        return counts


def _chance_to_be_kept(points: Array) -> FloatArray:
    """In proportion to 1 / (1 - f), f the share of each point; the largest is 1."""
    others = points.size - np.bincount(points)[points]
    chances: FloatArray = np.maximum(others.min(), 1) / np.maximum(others, 1)
    return chances


def point_numbers(table: Any) -> Array:
    """Return a number per row, equal for equal rows.

    Rows are compared by a 64-bit hash of their values, so two different rows are taken for one with a chance of
    some n^2 / 2^65.
    """
    n_rows = int(table.shape[0])
    if n_rows > 2 * _SAMPLE and _all_differ(_hashes(table[:_SAMPLE, :])):
        return np.arange(n_rows)
    hashes = _hashes(table)
    if _all_differ(hashes):  # the usual case, and faster to see than to number
        return np.arange(n_rows)
    return np.unique(hashes, return_inverse=True)[1]


def _all_differ(hashes: Array) -> bool:
    rising = np.sort(hashes)
    return bool((rising[1:] != rising[:-1]).all())


def _hashes(table: Any) -> Array:
    n_rows, n_columns = table.shape
    hashes = np.zeros(n_rows, dtype=np.uint64)
    for rows in row_blocks(n_rows, n_columns):
        values = np.ascontiguousarray(to_host(table[rows, :]), dtype=np.float64) + 0.0  # -0 and 0 are one number
        for column in values.T:
            mixed = (hashes[rows] ^ np.ascontiguousarray(column).view(np.uint64)) * _MIXER
            hashes[rows] = mixed ^ (mixed >> np.uint64(32))
    return hashes


def distinct_pairs(X: Any, Y: Any) -> tuple[Array, Array]:
    """Return the rows where each different pair stands first, in rising order, and which of those pairs each row is.

    Pairs are compared as `point_numbers` compares rows.
    """
    of_pairs = _hashes(X) * _MIXER + _hashes(Y)
    _, first, numbers = np.unique(of_pairs, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    return first[order], ranks[numbers]
