"""Rows that come one after the other, in both tables: what whole stretches of them support is no evidence.

Two files that are sorted by the same column, two scans in the order of their rays, two drives paired by time stamp:
each row resembles the next one, here and there, so that pairs agree that have nothing to do with each other.
Re-pairings of single rows do not know that. Re-pairings of whole stretches do: x_i with y_(i + k), the same k for all
i, or with y_(n - i), keeps the order and loses the partners. What a search finds there, order alone has done.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inlier._typing import FloatArray
from inlier.consensus.pairs import ColumnPairs

_LEVEL = 4.0  # standard errors by which steps from row to row are shorter than steps between any rows
_SHARE = 1 / 50  # of the rows, by which one table is shifted against the other
_FEWEST = 50  # rows, for an order to be told


def is_in_order(pairs: ColumnPairs) -> bool:
    """Whether each row is nearer to the next one than to others, on both sides."""
    return pairs.n_pairs >= _FEWEST and all(_follows_on(points) for points in (pairs.x, pairs.y))


def _follows_on(points: FloatArray) -> bool:
    """Von Neumann's ratio: the mean square of steps is twice the variance where rows are independent."""
    variance = float(points.var(axis=1).sum())
    ratio = float(np.mean(np.sum(np.diff(points, axis=1) ** 2, axis=0))) / (2 * variance) if variance > 0 else 1.0
    return ratio < 1 - _LEVEL / np.sqrt(points.shape[1])


def kept_in_order(pairs: ColumnPairs, apart: float, most: int, rng: np.random.Generator) -> Iterator[ColumnPairs]:
    """Some of the rows, in random order, with partners that are farther off than that: shifted, and backwards."""
    rows = np.arange(pairs.n_pairs)
    for others in (rows[::-1], rows + round(_SHARE * rows.size)):
        own = rows[(others >= 0) & (others < rows.size)]
        others = others[own]
        moved = np.sum((pairs.y[:, others] - pairs.y[:, own]) ** 2, axis=0) > apart**2
        some = rng.permutation(np.flatnonzero(moved))[:most]
        own, others = own[some], others[some]
        yield ColumnPairs(pairs.x.take(own, axis=1), pairs.y.take(others, axis=1), pairs.weights.take(own))
