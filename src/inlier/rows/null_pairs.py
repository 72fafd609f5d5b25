"""Pairs that are wrong for sure: x_i with y_j of another pair. The one way in which pairs are re-paired.

The pairs come in random order, and y is shifted round and round against x: in shift s, the partner of the pair at place
k is that at place k - s (`n_shifts` says how many shifts it takes). So every x and every y is met equally often.

Real correspondences repeat points, so x_i and y_j may be a real pair under another number. Hence a point is never
re-paired where its own pair, or its partner's, has the same point (`share_no_point`). That alone would be unfair: a
point that makes up a share f of its side is left out by a share f of its partners. So a re-pairing is kept with a
chance in proportion to 1 / ((1 - f of x_i) (1 - f of y_j)), and then points are met as often as they occur.

Whatever else re-pairings will have to respect belongs here too: groups of rows that go together and strata that are not
left are a matter of the order that is shifted.

Points are equal if a hash of their coordinates is: `row_hashes`, from which follow `point_numbers` and
`distinct_pairs`. Pairs are numbers i and j in arrays; nothing here knows what they will be used for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.rows.backend import to_host
from inlier.rows.threads import row_blocks

_SAMPLE = 10_000  # rows that are looked at first in a long table; if none repeats, repeats are too rare to matter
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # an odd constant whose bits look random


def re_pairings(points: Array, n_shifts: int, rng: np.random.RandomState) -> Iterator[tuple[Array, Array]]:
    """Yield numbers i and j of pairs, so that x_i with y_j is wrong for sure; one cyclic shift at a time.

    ``points`` are equal for equal points, of x and of y (see `point_numbers`). About ``n_shifts`` partners for each
    point: fewer where there are not so many other pairs, or where points are not equally frequent.
    """
    n = points.shape[1]
    order, chances = rng.permutation(n), _chances_to_be_kept(points)
    for shift in range(1, min(n_shifts, n - 1) + 1):
        i, j = order, np.roll(order, shift)
        kept = _kept(points, i, j, chances, rng)
        yield i[kept], j[kept]


def are_re_pairings(points: Array, partners: Array, rng: np.random.RandomState) -> Mask:
    """Whether x_i with y_j is wrong for sure and kept, for all pairs i and these partners j: shape (n, k)."""
    return _kept(points, np.arange(points.shape[1])[:, None], partners, _chances_to_be_kept(points), rng)


def n_shifts(n_pairs: int, n_re_pairings: int) -> int:
    """How many cyclic shifts of n pairs give about so many re-pairings: at least one, never back to the start."""
    return max(1, min(-(-n_re_pairings // n_pairs), n_pairs - 1))


def share_no_point(points: Array, i: Array, j: Array) -> Mask:
    """Whether pairs i and j have neither the x nor the y in common; the numbers are broadcast against each other."""
    x, y = points
    apart: Mask = (x[i] != x[j]) & (y[i] != y[j])
    return apart


def _kept(
    points: Array, i: Array, j: Array, chances: tuple[FloatArray, FloatArray] | None, rng: np.random.RandomState
) -> Mask:
    kept = share_no_point(points, i, j)
    if chances is not None:
        kept &= rng.uniform(size=kept.shape) < chances[0][i] * chances[1][j]
    return kept


def _chances_to_be_kept(points: Array) -> tuple[FloatArray, FloatArray] | None:
    """In proportion to 1 / (1 - f), f the share of each point of x and y; the largest is 1. None where all are."""
    of_x, of_y = (points.shape[1] - np.bincount(side)[side] for side in points)  # how many pairs have another point
    if of_x.min() == of_x.max() and of_y.min() == of_y.max():
        return None
    return max(of_x.min(), 1) / np.maximum(of_x, 1), max(of_y.min(), 1) / np.maximum(of_y, 1)


def point_numbers(table: Any) -> Array:
    """Return a number per row, equal for equal rows.

    Rows are compared by a 64-bit hash of their values, so two different rows are taken for one with a chance of
    some n^2 / 2^65.
    """
    n_rows = int(table.shape[0])
    if n_rows > 2 * _SAMPLE and _all_differ(row_hashes(table[:_SAMPLE, :])):
        return np.arange(n_rows)
    hashes = row_hashes(table)
    if _all_differ(hashes):  # the usual case, and faster to see than to number
        return np.arange(n_rows)
    return np.unique(hashes, return_inverse=True)[1]


def distinct_pairs(X: Any, Y: Any) -> tuple[Array, Array]:
    """Return the rows where each different pair stands first, in rising order, and which of those pairs each row is.

    Pairs are compared as `point_numbers` compares rows.
    """
    of_pairs = row_hashes(X) * _MIXER + row_hashes(Y)
    _, first, numbers = np.unique(of_pairs, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    return first[order], ranks[numbers]


def row_hashes(table: Any) -> Array:
    """Return a 64-bit number per row that is equal for equal rows, and hardly ever for others; -0 equals 0."""
    n_rows, n_columns = table.shape
    hashes = np.zeros(n_rows, dtype=np.uint64)
    for rows in row_blocks(n_rows, n_columns):
        values = np.ascontiguousarray(to_host(table[rows, :]), dtype=np.float64) + 0.0
        for column in values.T:
            mixed = (hashes[rows] ^ np.ascontiguousarray(column).view(np.uint64)) * _MIXER
            hashes[rows] = mixed ^ (mixed >> np.uint64(32))
    return hashes


def _all_differ(hashes: Array) -> bool:
    rising = np.sort(hashes)
    return bool((rising[1:] != rising[:-1]).all())
