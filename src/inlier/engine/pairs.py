"""n pairs of rows (x_i, y_i), read one block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from inlier.engine.blocks import Array, FloatArray, row_blocks
from inlier.engine.fused import fused_map, fused_sum
from inlier.engine.row_maps import RowMap, identity_rows

BlockFunction = Callable[..., FloatArray]


class PairedRows:
    """Two tables of equal length, read together in blocks through their row maps.

    Everything this package computes is one of two things: a *sum* over pairs of small matrices, or a
    *map* from each pair to a number. Both take a function of one block from
    `inlier.engine.moments`, and neither holds more than a block of prepared rows. Where
    `inlier.engine.kernels` has a compiled version, that one runs.

    Parameters
    ----------
    X, Y : array of shape (n, d_x), (n, d_y)
        Anything that is sliced like a NumPy array; only blocks of it are read.
    map_x, map_y : RowMap, optional
        Applied to each block as it is read. By default rows are used as they are.
    """

    def __init__(self, X: Array, Y: Array, map_x: RowMap | None = None, map_y: RowMap | None = None) -> None:
        self.X, self.Y = X, Y
        self.map_x = map_x or identity_rows(X.shape[1])
        self.map_y = map_y or identity_rows(Y.shape[1])

    @property
    def n_pairs(self) -> int:
        """Number of pairs n."""
        return int(self.X.shape[0])

    @property
    def dimensions(self) -> tuple[int, int]:
        """Dimensions (d_x, d_y) of the rows after their maps."""
        return self.map_x.n_columns, self.map_y.n_columns

    def take(self, rows: slice | Array) -> tuple[FloatArray, FloatArray]:
        """Return the prepared rows x and y of some pairs."""
        return self.map_x(np.asarray(self.X[rows])), self.map_y(np.asarray(self.Y[rows]))

    def blocks(self) -> Iterator[slice]:
        """Slices that cover all pairs, each a block."""
        return row_blocks(self.n_pairs, self.X.shape[1] + self.Y.shape[1])

    def sum(self, moment: BlockFunction, *row_vectors: FloatArray, matrix: FloatArray | None = None) -> FloatArray:
        """Sum ``moment(x, y, ...)`` over all blocks, in float64."""
        fused = fused_sum(self, moment, row_vectors, matrix)
        if fused is not None:
            return fused
        fixed = {} if matrix is None else {"matrix": matrix}
        total: FloatArray = np.zeros(())
        for rows in self.blocks():
            total = total + moment(*self.take(rows), *(v[rows] for v in row_vectors), **fixed)
        return total

    def map(self, score: BlockFunction, *, matrix: FloatArray | None = None) -> FloatArray:
        """Return ``score(x, y, ...)``, one float64 number per pair."""
        scores = np.empty(self.n_pairs)
        if not fused_map(self, score, matrix, scores):
            fixed = {} if matrix is None else {"matrix": matrix}
            for rows in self.blocks():
                scores[rows] = score(*self.take(rows), **fixed)
        return scores
