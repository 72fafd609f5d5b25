"""Which rows of a table are the same point: real correspondences repeat points, and re-pairing must know."""

from __future__ import annotations

import numpy as np

from inlier.engine.blocks import Array, row_blocks

MOST_ROWS = 200_000  # with more, a re-pairing that happens to meet the same point again is too rare to matter


def point_numbers(table: Array) -> Array:
    """Return a number per row, equal for equal rows.

    Rows are compared by their inner product with one fixed random direction: equal rows give equal sums to the
    last bit, and two different ones do so only by an accident of some 2^-50.
    """
    n_rows, n_columns = table.shape
    if n_rows > MOST_ROWS:
        return np.arange(n_rows)
    direction = np.random.default_rng(0).uniform(1.0, 2.0, n_columns)
    mark = np.empty(n_rows)
    for rows in row_blocks(n_rows, n_columns):
        mark[rows] = np.einsum("ij,j->i", np.asarray(table[rows], dtype=np.float64), direction, optimize=False)
    return np.unique(mark, return_inverse=True)[1]
