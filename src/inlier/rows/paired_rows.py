"""n pairs of rows (x_i, y_i), read one block at a time, wherever they live."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows.block_work import BlockFunction, PairMap, PairSum, Together
from inlier.rows.blocks import row_blocks
from inlier.rows.namespaces import is_beyond_memory, take_rows
from inlier.rows.places import place_of
from inlier.rows.row_maps import RowMap, identity_rows
from inlier.rows.scores import Scores, score_bound


class PairedRows:
    """Two tables of equal length, read together in blocks through their row maps.

    Everything this package computes is one of two things: a *sum* over pairs of small matrices, or a
    *map* from each pair to a number. Both take a function of one block from
    `inlier.rows.algebra`, and neither holds more than a block of prepared rows. Where the rows live decides how
    that is done, see `inlier.rows.places`; sums come as NumPy arrays, maps in kind.

    Parameters
    ----------
    X, Y : array of shape (n, d_x), (n, d_y)
        NumPy, Dask, torch, CuPy or any other array of the array API, or rows in files.
    map_x, map_y : RowMap, optional
        Applied to each block as it is read. By default rows are used as they are.
    """

    def __init__(self, X: Any, Y: Any, map_x: RowMap | None = None, map_y: RowMap | None = None) -> None:
        self.place = place_of(X, Y)
        self.X, self.Y = self.place.align(X, Y)
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
        """Return the prepared rows x and y of some pairs, as NumPy arrays."""
        return self.map_x(self.place.take(self.X, rows)), self.map_y(self.place.take(self.Y, rows))

    def near(self, rows: slice | Array) -> PairedRows:
        """Return some pairs where they can be read at will: on their device, or else in this computer's memory."""
        X, Y = (take_rows(T, rows) if is_beyond_memory(T) else self.place.take(T, rows) for T in (self.X, self.Y))
        return PairedRows(X, Y, self.map_x, self.map_y)

    def blocks(self) -> Iterator[slice]:
        """Slices that cover all pairs, each a block."""
        return row_blocks(self.n_pairs, self.X.shape[1] + self.Y.shape[1])

    def sum(self, moment: BlockFunction, *row_vectors: FloatArray, matrix: FloatArray | None = None) -> FloatArray:
        """Sum ``moment(x, y, ...)`` over all blocks, in float64."""
        work = PairSum(moment, self.map_x, self.map_y, matrix)
        vectors = (self.place.from_host(v, self.X) if isinstance(v, np.ndarray) else v for v in row_vectors)
        total: FloatArray = self.place.total(work, self.X, self.Y, *vectors)
        return total

    def sums(self, *moments: BlockFunction) -> tuple[FloatArray, ...]:
        """Sum several moments in one reading."""
        works = tuple(PairSum(moment, self.map_x, self.map_y) for moment in moments)
        totals: tuple[FloatArray, ...] = self.place.total(Together(works), self.X, self.Y)
        return totals

    def map(self, score: BlockFunction, *, matrix: FloatArray | None = None, scale: float = 1.0) -> Any:
        """Return ``scale * score(x, y, ...)``, one float64 number per pair, in kind."""
        return self.place.map(PairMap(score, self.map_x, self.map_y, matrix, float(scale)), self.X, self.Y)

    def scores(self, score: BlockFunction, *, matrix: FloatArray, scale: float = 1.0) -> Scores:
        """Return the same with its histogram, for rows of unit length."""
        work = PairMap(score, self.map_x, self.map_y, matrix, float(scale))
        return Scores.mapped(self.place, work, score_bound(matrix, float(scale), self.X), self.X, self.Y)
