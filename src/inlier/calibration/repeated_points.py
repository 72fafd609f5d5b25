"""Which rows of a table are the same point: real correspondences repeat points, and re-pairing must know."""

from __future__ import annotations

from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.rows.blocks import row_blocks
from inlier.rows.namespaces import to_host

_SAMPLE = 10_000  # rows that are looked at first in a long table; if none repeats, repeats are too rare to matter
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # an odd constant whose bits look random


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
