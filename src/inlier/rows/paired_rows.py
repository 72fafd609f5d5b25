"""n pairs of rows (x_i, y_i), read one block at a time wherever they are stored, and one score for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows.backend import Maps, backend_for, from_host, namespace, norm_product
from inlier.rows.columns import RowMap, identity_rows
from inlier.rows.stores import MapWork, RowStore, store_of
from inlier.rows.threads import row_blocks

N_BUCKETS = 1024
_SMALL_MATRIX = 64  # columns up to which singular values are cheap


class PairedRows:
    """Two tables of equal length, read together in blocks through their row maps.

    Everything this package computes is one of two things: a *sum* over pairs of small matrices, or a *map* from each
    pair to a number. Neither holds more than a block of prepared rows. Where the rows are decides how that is done, see
    `inlier.rows.stores`; sums come as NumPy arrays, maps in kind.

    Parameters
    ----------
    X, Y : array of shape (n, d_x), (n, d_y)
        NumPy, Dask, torch, CuPy or any other array of the array API, or rows in files.
    map_x, map_y : RowMap, optional
        Applied to each block as it is read. By default rows are used as they are.
    """

    def __init__(self, X: Any, Y: Any, map_x: RowMap | None = None, map_y: RowMap | None = None) -> None:
        self.store = store_of(X, Y)
        self.X, self.Y = self.store.align(X, Y)
        self.maps = Maps(map_x or identity_rows(X.shape[1]), map_y or identity_rows(Y.shape[1]))
        self.map_x, self.map_y = self.maps

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
        return self.map_x(self.store.take(self.X, rows)), self.map_y(self.store.take(self.Y, rows))

    def near(self, rows: slice | Array) -> PairedRows:
        """Return some pairs where they can be read at will: on their device, or else in this computer's memory."""
        return PairedRows(self.store.near(self.X, rows), self.store.near(self.Y, rows), *self.maps)

    def blocks(self) -> Iterator[slice]:
        """Slices that cover all pairs, each a block."""
        return row_blocks(self.n_pairs, self.X.shape[1] + self.Y.shape[1])

    def cross_moment(self, weights: FloatArray | None = None) -> FloatArray:
        """Sum of w_i x_i y_i^T, K^T w; by default of x_i y_i^T."""
        vectors = () if weights is None else (self.store.from_host(weights, self.X),)
        return self._total(_CrossMoment(self.maps), *vectors)

    def gram_step(self, matrix: FloatArray) -> FloatArray:
        """Sum of (x_i^T U y_i) x_i y_i^T: K^T K u as a matrix."""
        return self._total(_GramStep(self.maps, matrix))

    def product_moments(self) -> tuple[FloatArray, FloatArray]:
        """Sums of all x_a x_c y_b y_e with a <= c and b <= e, and of x_i y_i^T, in one reading."""
        return self._total(_ProductMoments(self.maps))

    def bilinear(self, matrix: FloatArray, scale: float = 1.0) -> Any:
        """Return scale x_i^T U y_i for each pair, in kind: K u."""
        return self.store.map(_Bilinear(self.maps, matrix, float(scale)), self.X, self.Y)

    def leave_one_out(self, matrix: FloatArray, scale: float = 1.0) -> Any:
        """Return scale (x_i^T U y_i - |x_i|^2 |y_i|^2) for each pair, in kind."""
        return self.store.map(_LeaveOneOut(self.maps, matrix, float(scale)), self.X, self.Y)

    def norm_product(self) -> Any:
        """Return |x_i|^2 |y_i|^2 for each pair, in kind: the diagonal of H."""
        return self.map(norm_product)

    def map(self, function: Callable[[Any, Any], Any]) -> Any:
        """Return ``function(x, y)`` of prepared rows, one float64 number per pair, in kind."""
        return self.store.map(_Mapped(self.maps, function), self.X, self.Y)

    def bilinear_scores(self, matrix: FloatArray, scale: float) -> Scores:
        """Return what `bilinear` does with its histogram, for rows of unit length."""
        return self._scores(_Bilinear(self.maps, matrix, float(scale)))

    def leave_one_out_scores(self, matrix: FloatArray, scale: float) -> Scores:
        """Return what `leave_one_out` does with its histogram, for rows of unit length."""
        return self._scores(_LeaveOneOut(self.maps, matrix, float(scale)))

    def _scores(self, work: _Bilinear | _LeaveOneOut) -> Scores:
        bound = score_bound(work.matrix, work.scale, self.X)
        return Scores.mapped(self.store, work, bound, self.X, self.Y)

    def _total(self, work: Any, *vectors: Any) -> Any:
        return self.store.total(work, self.X, self.Y, *vectors)


@dataclass(frozen=True, eq=False)
class _CrossMoment:
    maps: Maps

    def __call__(self, X: Any, Y: Any, *weights: Any) -> FloatArray:
        return backend_for(X, Y).cross_moment(X, Y, self.maps, *weights)

    def merge(self, parts: Sequence[FloatArray]) -> FloatArray:
        return sum(parts[1:], start=parts[0])


@dataclass(frozen=True, eq=False)
class _GramStep(_CrossMoment):
    matrix: FloatArray

    def __call__(self, X: Any, Y: Any, *weights: Any) -> FloatArray:
        return backend_for(X, Y).gram_step(X, Y, self.maps, self.matrix)


@dataclass(frozen=True, eq=False)
class _ProductMoments:
    maps: Maps

    def __call__(self, X: Any, Y: Any) -> tuple[FloatArray, FloatArray]:
        return backend_for(X, Y).product_moments(X, Y, self.maps)

    def merge(self, parts: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
        products, crosses = zip(*parts, strict=True)
        return sum(products[1:], start=products[0]), sum(crosses[1:], start=crosses[0])


@dataclass(frozen=True, eq=False)
class _Bilinear:
    maps: Maps
    matrix: FloatArray
    scale: float
    dtype: str = "float64"

    def __call__(self, X: Any, Y: Any) -> Any:
        return backend_for(X, Y).bilinear(X, Y, self.maps, self.matrix, self.scale)


@dataclass(frozen=True, eq=False)
class _LeaveOneOut(_Bilinear):
    def __call__(self, X: Any, Y: Any) -> Any:
        return backend_for(X, Y).leave_one_out(X, Y, self.maps, self.matrix, self.scale)


@dataclass(frozen=True, eq=False)
class _Mapped:
    maps: Maps
    function: Callable[[Any, Any], Any]
    dtype: str = "float64"

    def __call__(self, X: Any, Y: Any) -> Any:
        return backend_for(X, Y).mapped(X, Y, self.maps, self.function)


class Histogram(NamedTuple):
    """Numbers and sums of the values between edges; whatever lies beyond counts with the first or last bucket.

    ``edges`` has one entry more than there are buckets. ``zeros`` is how many values are exactly 0.
    """

    edges: FloatArray
    counts: Array
    sums: FloatArray
    zeros: int


class Window(NamedTuple):
    """The values with low <= value < high, sorted, and the number and sum of those on either side."""

    n_below: int
    sum_below: float
    inside: FloatArray
    n_above: int
    sum_above: float


class Scores:
    """One number per pair, kept or computed where the pairs are.

    Sorting n numbers takes longer than computing them. What two-means needs is less: how many lie in each of many
    buckets and what they add up to, then the numbers themselves in the few buckets that matter. Both are totals.
    """

    def __init__(self, store: RowStore, values: Any, histogram: Histogram) -> None:
        self.store, self.values, self._histogram = store, values, histogram

    @classmethod
    def mapped(cls, store: RowStore, work: MapWork, bound: float, *tables: Any) -> Scores:
        """Scores that are mapped from tables and known to lie within -bound and bound."""
        values, parts = store.map_and_total(work, buckets := _Buckets(-bound, bound), *tables)
        return cls(store, values, Histogram(buckets.edges, *parts))

    @classmethod
    def of_values(cls, values: Any) -> Scores:
        """Scores that exist already."""
        store = store_of(values)
        low, high = store.total(Extremes(), values)
        least = max(1e-12 * max(abs(low), abs(high)), 1e-200)  # equal values have no spread, and buckets need some
        buckets = _Buckets(low, max(high, low + least))
        return cls(store, values, Histogram(buckets.edges, *store.total(buckets, values)))

    @property
    def zeros(self) -> int:
        """How many are exactly 0."""
        return self._histogram.zeros

    def histogram(self, low: float | None = None, high: float | None = None) -> Histogram:
        """Numbers and sums in buckets; of all values, or between ``low`` and ``high``, the others at the ends."""
        if low is None or high is None:
            return self._histogram
        width = (high - low) / (N_BUCKETS - 2)
        buckets = _Buckets(low - width, high + width)
        return Histogram(buckets.edges, *self.store.total(buckets, self.values))

    def window(self, low: float, high: float) -> Window:
        """Return the values from ``low`` up to ``high``, sorted, and what lies on either side."""
        n_below, sum_below, inside, n_above, sum_above = self.store.total(_WindowOf(low, high), self.values)
        return Window(n_below, sum_below, np.sort(inside), n_above, sum_above)

    def at_least(self, threshold: float, *not_zero: Any) -> Any:
        """Return the mask of the scores that reach the threshold (where the other vector is not zero), in kind."""
        return self.store.map(AtLeast(threshold), self.values, *not_zero)

    def count_zeros(self, vector: Any) -> int:
        """How many entries of another vector beside this one are exactly zero."""
        count: int = self.store.total(_CountZeros(), vector)
        return count


def score_bound(matrix: FloatArray, scale: float, rows: Any = None) -> float:
    """Largest score of unit rows: |x^T U y| is at most the spectral norm of U, and a pair's own share at most 1.

    Found on the device of the rows, if they are on one.
    """
    if max(matrix.shape) <= _SMALL_MATRIX:
        norm = float(np.linalg.norm(matrix, 2))
    else:
        norm = _spectral_bound(matrix if rows is None else from_host(matrix, rows))
    return abs(scale) * (norm + 1.0) * (1 + 1e-6)


def _spectral_bound(matrix: Any) -> float:
    """At least the spectral norm, at most d^(1/16) times it: |(U^T U)^4|_F^(1/8).

    Products take a tenth of the time of a singular value decomposition.
    """
    length = _length(matrix)
    if length == 0.0:
        return 0.0
    unit = matrix / length  # the eigenvalues of G = unit^T unit add up to 1
    G = unit.T @ unit if matrix.shape[0] >= matrix.shape[1] else unit @ unit.T
    G2 = G @ G
    return length * _length(G2 @ G2) ** 0.125


def _length(matrix: Any) -> float:
    return float(namespace(matrix).sum(matrix * matrix)) ** 0.5


@dataclass(frozen=True)
class _Buckets:
    """Number and sum of the values in each of equal buckets, and the number of zeros."""

    low: float
    high: float

    @property
    def edges(self) -> FloatArray:
        return np.linspace(self.low, self.high, N_BUCKETS + 1)

    def __call__(self, values: Any) -> tuple[Array, FloatArray, int]:
        return backend_for(values).histogram(values, self.low, self.high, N_BUCKETS)

    def merge(self, parts: Sequence[tuple[Array, FloatArray, int]]) -> tuple[Array, FloatArray, int]:
        counts, sums, zeros = zip(*parts, strict=True)
        return np.sum(counts, axis=0), np.sum(sums, axis=0), sum(zeros)


@dataclass(frozen=True)
class _WindowOf:
    """The values inside a window, and number and sum of those on either side."""

    low: float
    high: float

    def __call__(self, values: Any) -> tuple[int, float, FloatArray, int, float]:
        return backend_for(values).window(values, self.low, self.high)

    def merge(self, parts: Sequence[tuple[int, float, FloatArray, int, float]]) -> tuple[Any, ...]:
        n_below, sum_below, inside, n_above, sum_above = zip(*parts, strict=True)
        return sum(n_below), sum(sum_below), np.concatenate(inside), sum(n_above), sum(sum_above)


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
class _CountZeros:
    def __call__(self, values: Any) -> int:
        xp = namespace(values)
        return int(xp.sum(xp.astype(values == 0, xp.int64)))

    def merge(self, parts: Sequence[int]) -> int:
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
