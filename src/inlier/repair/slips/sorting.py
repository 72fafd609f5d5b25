"""A block of one table that was sorted alone: its map of rows has many parameters, but it leaves a trace.

In the block a column rises, or falls, from row to row, which rows in no order hardly do. That is asked of the columns
first; then whether pairs of the block are worse than those elsewhere, and whether the rows of its x fit some y of the
block better than rows from elsewhere do. Where both hold it is said; who belongs to whom is then looked for row by row,
for to learn from pairs that were chosen because they fit would call them right whatever they are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.stats import mannwhitneyu

from inlier._typing import FloatArray
from inlier.repair.slips.evidence import Crossed

_SHORTEST = 30  # rows of a block
_LONGEST = 2_000
_OTHERS = 200  # columns beside which own pairs are looked at


class Block(NamedTuple):
    """Rows from ``start`` to before ``stop`` in which a column of a table is in order."""

    start: int
    stop: int
    column: int
    is_of_x: bool


def sorted_blocks(X: FloatArray, Y: FloatArray) -> list[Block]:
    """Blocks of one table that stand in the order of one of its columns, while the other is in none; longest first."""
    found = [block for is_of_x, table in ((False, Y), (True, X)) for block in _in_order(table, is_of_x=is_of_x)]
    return sorted(found, key=lambda block: block.start - block.stop)


def _in_order(table: FloatArray, *, is_of_x: bool) -> list[Block]:
    n, found = len(table), []
    for column in range(table.shape[1]):
        steps = np.diff(table[:, column])
        for sign in (1, -1):
            ends = np.concatenate([[-1], np.flatnonzero(sign * steps < 0), [n - 1]])
            for before, last in pairwise(ends):
                values = table[before + 1 : last + 1, column]
                if _SHORTEST <= values.size <= _LONGEST and np.unique(values).size > values.size / 2:
                    found.append(Block(int(before) + 1, int(last) + 1, column, is_of_x))
    return found


def p_of_block(crossed: Crossed, block: Block, rng: np.random.RandomState) -> float:
    """Chance that pairs of a block are as bad, and yet fit each other as well, where it was not sorted alone."""
    rows = np.arange(block.start, block.stop)
    elsewhere = np.setdiff1d(np.flatnonzero(crossed.home >= 0), rows)
    if elsewhere.size < _SHORTEST or (crossed.home[rows] != rows).any():
        return 1.0
    elsewhere = rng.permutation(elsewhere)[:_OTHERS]
    columns = np.sort(rng.permutation(crossed.n_y)[:_OTHERS])
    rank = [
        (crossed.block(some, columns) < crossed.pairs(some, crossed.home[some])[:, None]).mean(axis=1)
        for some in (rows, elsewhere)
    ]
    best = [crossed.block(some, rows).max(axis=1) for some in (rows, elsewhere)]
    worse = mannwhitneyu(rank[0], rank[1], alternative="less").pvalue
    fits = mannwhitneyu(best[0], best[1], alternative="greater").pvalue
    return float(max(worse, fits))
