"""Who is nearest to whom: two sets of rows in common coordinates, compared by CSLS, a block of rows at a time.

*Coordinates.* Each side is centred and its rows scaled to unit length; then come its principal directions, of variance
v_k, divided by sqrt(v_k + softness * mean v): softness 0 is whitening. With the cross moment of known pairs
A^T W B = U S V^T, rows are compared as a U S^1/2 and b V S^1/2: directions count by how far the two sides agree.

*CSLS* (Conneau et al. 2018): 2 cos(x, y) - r(x) - r(y), where r is the mean cosine with the nearest rows of the other
side: a row that is near everybody is nobody's partner.

No matrix of all rows with all rows is kept: 10^5 x 10^5 takes as much memory as 10^5 x 100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows import principal_directions, summarise_columns

NEIGHBOURS = 10  # whose mean cosine says how crowded it is around a row; Conneau et al. take ten
NOWHERE = -2.0  # cosine of what is not there: below that of opposite rows
_BLOCK = 2**24  # cosines that are held at a time, 64 MiB of them
_SOFTNESS = 0.1  # of the coordinates that proposals are compared in: on its way from 3 to 0 nothing is gained any more


@dataclass(frozen=True, eq=False)
class Side:
    """How rows of one table are brought to the principal directions of many of them."""

    mean: FloatArray
    scale: FloatArray
    centre: FloatArray
    directions: FloatArray
    variances: FloatArray

    @staticmethod
    def of(rows: FloatArray) -> Side:
        """Centre the columns and divide them by their spread, scale rows to unit length, centre again."""
        mean, scale = rows.mean(axis=0), rows.std(axis=0)
        scale[scale == 0] = 1.0
        lengths_alike = unit_rows((rows - mean) / scale)
        summary = summarise_columns(lengths_alike)
        variances, directions = principal_directions(lengths_alike, summary, np.ones(1))
        return Side(mean, scale, summary.mean, directions, variances)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return rows in principal directions, as long as they come out."""
        return (unit_rows((rows - self.mean) / self.scale) - self.centre) @ self.directions

    def whitening(self, softness: float) -> FloatArray:
        """What the principal directions are divided by, inverted: with softness 0, their spread."""
        floor = max(softness, 1e-9) * float(self.variances.mean())
        return 1 / np.sqrt(self.variances + floor)


@dataclass(frozen=True, eq=False)
class Alignment:
    """The coordinates in which rows of both sides are compared; for rows in principal directions."""

    of_x: FloatArray
    of_y: FloatArray

    @staticmethod
    def of(
        sides: tuple[Side, Side], a: FloatArray, b: FloatArray, weights: FloatArray, softness: float = _SOFTNESS
    ) -> Alignment:
        """Learn them from rows a and b of pairs, in principal directions, that count so much each."""
        white_x, white_y = (side.whitening(softness) for side in sides)
        moment = (a * weights[:, None]).T @ b / max(float(weights.sum()), 1e-300)
        left, shared, right = np.linalg.svd(moment * white_x[:, None] * white_y, full_matrices=False)
        counts = np.sqrt(shared)
        return Alignment(white_x[:, None] * left * counts, white_y[:, None] * right.T * counts)

    def x(self, a: FloatArray) -> FloatArray:
        """Rows of x to be compared: float32, of unit length."""
        return unit_rows(a @ self.of_x).astype(np.float32)

    def y(self, b: FloatArray) -> FloatArray:
        """Rows of y to be compared: float32, of unit length."""
        return unit_rows(b @ self.of_y).astype(np.float32)


def unit_rows(rows: FloatArray) -> FloatArray:
    """Rows of unit length; a row of zeros stays one."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def crowding(rows: FloatArray, others: FloatArray) -> FloatArray:
    """Mean cosine of each row with the nearest of the others: r of CSLS."""
    k = min(NEIGHBOURS, len(others))
    means = [_mean_of_largest(rows[some] @ others.T, k) for some in _blocks(len(rows), len(others))]
    return np.concatenate(means) if means else np.empty(0)


def best_partners(
    x: FloatArray,
    y: FloatArray,
    crowding_of_y: FloatArray,
    k: int = 1,
    hide: Callable[[FloatArray, slice], None] | None = None,
) -> tuple[Array, FloatArray, FloatArray]:
    """Rows of y with the highest CSLS for each row of x, the best first, and how high it is: shapes (n, k).

    Also how crowded it is around x. ``hide`` is given the cosines of some rows of x, and sets those that are not there
    for them to `NOWHERE`.
    """
    n, k = len(x), min(k, len(y))
    rows, scores, around_x = np.empty((n, k), dtype=np.int64), np.empty((n, k)), np.empty(n)
    for some in _blocks(n, len(y)):
        cosines = x[some] @ y.T
        if hide is not None:
            hide(cosines, some)
        around_x[some] = _mean_of_largest(cosines, min(NEIGHBOURS, len(y)))
        cosines *= 2
        cosines -= crowding_of_y.astype(np.float32)
        best = _largest(cosines, k)
        rows[some] = best
        scores[some] = np.take_along_axis(cosines, best, axis=1) - around_x[some, None]
    return rows, scores, around_x


def mutual_neighbours(x: FloatArray, y: FloatArray) -> tuple[Array, Array]:
    """Rows i of x and j of y that are each other's best partner by CSLS."""
    around_y = crowding(y, x).astype(np.float32)
    of_x = np.empty(len(x), dtype=np.int64)
    of_y, highest = np.zeros(len(y), dtype=np.int64), np.full(len(y), -np.inf, dtype=np.float32)
    for some in _blocks(len(x), len(y)):
        cosines = x[some] @ y.T
        around_x = _mean_of_largest(cosines, min(NEIGHBOURS, len(y))).astype(np.float32)
        cosines *= 2
        cosines -= around_y
        of_x[some] = cosines.argmax(axis=1)
        cosines -= around_x[:, None]
        first = cosines.argmax(axis=0)
        values = cosines[first, np.arange(len(y))]
        higher = values > highest
        of_y[higher], highest[higher] = first[higher] + some.start, values[higher]
    i = np.flatnonzero(of_y[of_x] == np.arange(len(x)))
    return i, of_x[i]


def _mean_of_largest(table: FloatArray, k: int) -> FloatArray:
    return np.partition(table, table.shape[1] - k, axis=1)[:, table.shape[1] - k :].mean(axis=1, dtype=np.float64)


def _largest(table: FloatArray, k: int) -> Array:
    """Columns of the k largest values of each row, the largest first."""
    if k == 1:
        return table.argmax(axis=1)[:, None]
    some = np.argpartition(table, table.shape[1] - k, axis=1)[:, table.shape[1] - k :]
    order = np.argsort(-np.take_along_axis(table, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(width, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
