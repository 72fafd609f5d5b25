"""n numbers, where the rows live, seen through a histogram and through a window.

Sorting n numbers takes longer than computing them. What two-means needs is less: how many lie in each of many
buckets and what they add up to, then the numbers themselves in the one or two buckets that matter. Both are totals
over rows, so they are had in memory, from files, on a cluster and on a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows._cuda import cuda_histogram, cuda_window, kernels_on_cuda
from inlier.rows.block_work import AtLeast, CountZeros, Extremes
from inlier.rows.fused import kernels_for
from inlier.rows.namespaces import from_host, is_device_array, is_host_array, namespace, to_host
from inlier.rows.places import MapWork, Place, place_of

N_BUCKETS = 1024
ROUNDING = 2e-8
_SMALL_MATRIX = 64  # columns up to which singular values are cheap


class Histogram(NamedTuple):
    """Numbers and sums of the values between edges; whatever lies beyond counts with the first or last bucket.

    ``edges`` has one entry more than there are buckets. ``zeros`` is how many values are exactly 0. Sums may be off by
    `ROUNDING` of the range times the number of values, for a device may keep them in whole steps.
    """

    edges: FloatArray
    counts: Array
    sums: FloatArray
    zeros: int


class Tail(NamedTuple):
    """The values on one side of a window: how many, their sum, and the one nearest to the window."""

    number: int
    sum: float
    nearest: float


class Window(NamedTuple):
    """The values with low <= value < high, sorted, and what lies on either side of them."""

    below: Tail
    inside: FloatArray
    above: Tail


class Scores:
    """One number per pair, kept or computed where the pairs live."""

    def __init__(self, place: Place, values: Any, histogram: Histogram) -> None:
        self.place, self.values, self._histogram = place, values, histogram

    @classmethod
    def mapped(cls, place: Place, work: MapWork, bound: float, *tables: Any) -> Scores:
        """Scores that are mapped from tables and known to lie within -bound and bound."""
        values, parts = place.map_and_total(work, buckets := _Buckets(-bound, bound), *tables)
        return cls(place, values, buckets.histogram(parts))

    @classmethod
    def of_values(cls, values: Any) -> Scores:
        """Scores that exist already."""
        place = place_of(values)
        low, high = place.total(Extremes(), values)
        least = max(1e-12 * max(abs(low), abs(high)), 1e-200)  # equal values have no spread, and buckets need some
        buckets = _Buckets(low, max(high, low + least))
        return cls(place, values, buckets.histogram(place.total(buckets, values)))

    @property
    def n_pairs(self) -> int:
        """How many there are."""
        return int(self.values.shape[0])

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
        return buckets.histogram(self.place.total(buckets, self.values))

    def window(self, low: float, high: float) -> Window:
        """Return the values from ``low`` up to ``high``, sorted, and what lies on either side."""
        below, inside, above = self.place.total(_WindowOf(low, high), self.values)
        return Window(below, np.sort(inside), above)

    def at_least(self, threshold: float, *not_zero: Any) -> Any:
        """Return the mask of the scores that reach the threshold (where the other vector is not zero), in kind."""
        return self.place.map(AtLeast(threshold), self.values, *not_zero)

    def count_zeros(self, vector: Any) -> int:
        """How many entries of another vector beside this one are exactly zero."""
        count: int = self.place.total(CountZeros(), vector)
        return count


def score_bound(matrix: FloatArray, scale: float, rows: Any = None) -> float:
    """Largest score of unit rows: |x^T U y| is at most the spectral norm of U, and a pair's own share at most 1.

    Found on the device of the rows, if they are on one.
    """
    there = matrix if rows is None or not is_device_array(rows) else from_host(matrix, rows)
    norm = float(np.linalg.norm(matrix, 2)) if max(matrix.shape) <= _SMALL_MATRIX else _spectral_bound(there)
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
        kernels = kernels_for(values) if is_host_array(values) else None
        per_bucket = N_BUCKETS / (self.high - self.low)
        if kernels is not None and np.isfinite(per_bucket):
            return kernels.histogram(values, self.low, per_bucket, N_BUCKETS)
        on_cuda = kernels_on_cuda(values)
        if on_cuda is not None and np.isfinite(per_bucket) and on_cuda.BUCKETS == N_BUCKETS:
            return cuda_histogram(on_cuda, values, self.low, self.high)
        return self._by_sorting(values)

    def _by_sorting(self, values: Any) -> tuple[Array, FloatArray, int]:
        xp = namespace(values)
        ordered = xp.sort(xp.astype(values, xp.float64))
        places = xp.searchsorted(ordered, from_host(self.edges[1:-1], values))
        ends = np.concatenate([[0], to_host(places), [values.shape[0]]])
        total = xp.cumulative_sum(ordered, include_initial=True)
        zeros = int(xp.sum(xp.astype(values == 0, xp.int64)))
        return np.diff(ends), np.diff(to_host(xp.take(total, from_host(ends, values)))), zeros

    def merge(self, parts: Sequence[tuple[Array, FloatArray, int]]) -> tuple[Array, FloatArray, int]:
        counts, sums, zeros = zip(*parts, strict=True)
        return np.sum(counts, axis=0), np.sum(sums, axis=0), sum(zeros)

    def histogram(self, parts: tuple[Array, FloatArray, int]) -> Histogram:
        return Histogram(self.edges, *parts)


@dataclass(frozen=True)
class _WindowOf:
    """The values inside a window, and the tails on either side."""

    low: float
    high: float

    def __call__(self, values: Any) -> tuple[Tail, FloatArray, Tail]:
        kernels = kernels_for(values) if is_host_array(values) else None
        if kernels is not None:
            *tails, inside = kernels.window(values, self.low, self.high)
            return Tail(*tails[:3]), inside, Tail(*tails[3:])
        on_cuda = kernels_on_cuda(values)
        found = None if on_cuda is None else cuda_window(on_cuda, values, self.low, self.high)
        if found is not None:
            return Tail(*found[0]), found[1], Tail(*found[2])
        below, above = values < self.low, values >= self.high
        return _tail(values, below, -np.inf), to_host(values[~(below | above)]), _tail(values, above, np.inf)

    def merge(self, parts: Sequence[tuple[Tail, FloatArray, Tail]]) -> tuple[Tail, FloatArray, Tail]:
        below, inside, above = zip(*parts, strict=True)
        return _joined(below, max), np.concatenate(inside), _joined(above, min)


def _tail(values: Any, chosen: Any, nothing: float) -> Tail:
    xp = namespace(values)
    count = int(xp.sum(xp.astype(chosen, xp.int64)))
    total = float(xp.sum(xp.where(chosen, values, xp.zeros_like(values))))
    others = xp.where(chosen, values, xp.full_like(values, nothing))
    nearest = nothing if count == 0 else float(xp.max(others) if nothing < 0 else xp.min(others))
    return Tail(count, total, nearest)


def _joined(tails: Sequence[Tail], nearest: Any) -> Tail:
    return Tail(sum(t.number for t in tails), sum(t.sum for t in tails), nearest(t.nearest for t in tails))
