"""What is done to a block of rows, wherever it is: the works that a `Place` applies.

Each takes blocks of tables (or of vectors) and is small enough to travel. NumPy blocks of narrow rows go to the
compiled kernels; everything else is a line or two of array algebra on blocks that stay in cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import FloatArray
from inlier.rows._cuda import cuda_map, cuda_sum
from inlier.rows.blocks import device_blocks, row_blocks
from inlier.rows.fused import PreparedRows, fused_map, fused_sum, fused_sums
from inlier.rows.namespaces import is_host_array, namespace, to_host
from inlier.rows.row_maps import RowMap

BlockFunction = Callable[..., Any]


def pieces(*blocks: Any) -> Iterator[slice]:
    """Slices of a block small enough for temporaries: in cache, or on a device in a part of its memory."""
    width = sum(block.shape[1] if block.ndim > 1 else 1 for block in blocks)
    cut = row_blocks if is_host_array(blocks[0]) else device_blocks
    return cut(blocks[0].shape[0], width)


@dataclass(frozen=True, eq=False)
class PairSum:
    """Sum of ``moment(x, y, ...)`` over prepared pairs, in float64."""

    moment: BlockFunction
    map_x: RowMap
    map_y: RowMap
    matrix: FloatArray | None = None

    def __call__(self, X: Any, Y: Any, *vectors: Any) -> FloatArray:
        """Return the sum over one block of pairs."""
        fused = fused_sum(self, X, Y, vectors) if is_host_array(X) else cuda_sum(self, X, Y, vectors)
        if fused is not None:
            return fused
        xp = namespace(X)
        fixed = {} if self.matrix is None else {"matrix": self.matrix}
        x, y = PreparedRows(self.map_x, X), PreparedRows(self.map_y, Y)
        total: Any = None
        for rows in pieces(X, Y):
            part = self.moment(x(X[rows, :]), y(Y[rows, :]), *(v[rows] for v in vectors), **fixed)
            if total is None:
                total = xp.astype(part, xp.float64)
            else:
                total += part
        return to_host(total)

    def merge(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Add."""
        return sum(parts[1:], start=parts[0])


@dataclass(frozen=True, eq=False)
class PairMap:
    """``scale * score(x, y, ...)`` of each prepared pair, in float64."""

    score: BlockFunction
    map_x: RowMap
    map_y: RowMap
    matrix: FloatArray | None = None
    scale: float = 1.0
    dtype: str = "float64"

    def into(self, entries: FloatArray, X: Any, Y: Any) -> None:
        """Write the scores of one block of pairs in memory."""
        if not fused_map(self, X, Y, entries):
            entries[...] = self(X, Y)

    def __call__(self, X: Any, Y: Any) -> Any:
        """Return the scores of one block of pairs."""
        entries = np.empty(len(X)) if is_host_array(X) else None
        if entries is not None and fused_map(self, X, Y, entries):
            return entries
        fused = cuda_map(self, X, Y) if entries is None else None
        if fused is not None:
            return fused
        xp = namespace(X)
        fixed = {} if self.matrix is None else {"matrix": self.matrix}
        x, y = PreparedRows(self.map_x, X), PreparedRows(self.map_y, Y)
        scores = [
            xp.astype(self.score(x(X[rows, :]), y(Y[rows, :]), **fixed), xp.float64) * self.scale
            for rows in pieces(X, Y)
        ]
        return scores[0] if len(scores) == 1 else xp.concat(scores)


@dataclass(frozen=True)
class Together:
    """Several totals in one reading."""

    works: tuple[Any, ...]

    def __call__(self, *blocks: Any) -> tuple[Any, ...]:
        """Return the parts of one block."""
        fused = fused_sums(self.works, *blocks) if is_host_array(blocks[0]) else None
        return tuple(work(*blocks) for work in self.works) if fused is None else fused

    def merge(self, parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Merge each."""
        return tuple(work.merge([part[k] for part in parts]) for k, work in enumerate(self.works))


@dataclass(frozen=True)
class AtLeast:
    """Whether each score reaches the threshold; with a second vector, only where that is not zero."""

    threshold: float
    dtype: str = "bool"

    def __call__(self, scores: Any, *others: Any) -> Any:
        """Return the mask of one block."""
        mask = scores >= self.threshold
        for other in others:
            mask = mask & (other != 0)
        return mask


@dataclass(frozen=True)
class CountZeros:
    """How many entries are exactly zero."""

    def __call__(self, values: Any) -> int:
        """Return the count in one block."""
        xp = namespace(values)
        return int(xp.sum(xp.astype(values == 0, xp.int64)))

    def merge(self, parts: Sequence[int]) -> int:
        """Add."""
        return sum(parts)


@dataclass(frozen=True)
class Extremes:
    """Smallest and largest entry."""

    def __call__(self, values: Any) -> tuple[float, float]:
        """Return those of one block."""
        if values.shape[0] == 0:
            return np.inf, -np.inf
        xp = namespace(values)
        return float(xp.min(values)), float(xp.max(values))

    def merge(self, parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """Take the smallest of the smallest, the largest of the largest."""
        low, high = zip(*parts, strict=True)
        return min(low), max(high)
