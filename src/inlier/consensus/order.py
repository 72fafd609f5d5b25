"""Rows that come one after the other, in both tables: what whole stretches of them support is no evidence.

Two files that are sorted by the same column, two scans in the order of their rays, two drives paired by time stamp:
each row resembles the next one, here and there, so that pairs agree that have nothing to do with each other.
Re-pairings of single rows do not know that. Re-pairings of whole stretches do: x_i with y_(i + k), the same k for all
i, keeps the order and loses the partners. What a search finds there, order alone has done.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inlier._typing import FloatArray
from inlier.consensus.pairs import ColumnPairs

_LEVEL = 4.0  # standard errors by which steps from row to row are shorter than steps between any rows
_SHARES = (1 / 400, 1 / 50, 1 / 5)  # of the rows, by which one table is shifted against the other
_FEWEST = 50  # rows, for an order to be told


def is_in_order(pairs: ColumnPairs) -> bool:
    """Whether each row is nearer to the next one than to others, on both sides."""
    return pairs.n_pairs >= _FEWEST and all(_follows_on(points) for points in (pairs.x, pairs.y))


def _follows_on(points: FloatArray) -> bool:
    """Von Neumann's ratio: the mean square of steps is twice the variance where rows are independent."""
    variance = float(points.var(axis=1).sum())
    ratio = float(np.mean(np.sum(np.diff(points, axis=1) ** 2, axis=0))) / (2 * variance) if variance > 0 else 1.0
    return ratio < 1 - _LEVEL / np.sqrt(points.shape[1])


def shifted(pairs: ColumnPairs, apart: float, most: int, rng: np.random.Generator) -> Iterator[ColumnPairs]:
    """Some of the rows, in random order, with partners so many rows farther on, and farther apart than that."""
    for share in _SHARES:
        step = max(1, round(share * pairs.n_pairs))
        moved = np.sum((pairs.y[:, step:] - pairs.y[:, :-step]) ** 2, axis=0) > apart**2
        rows = rng.permutation(np.flatnonzero(moved))[:most]
        yield ColumnPairs(pairs.x.take(rows, axis=1), pairs.y.take(rows + step, axis=1), pairs.weights.take(rows))
