"""The pairs as the search sees them: points as columns in float64, near the origin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.consensus._kernels_columns import copy_to_columns, row_sums, spread_of, subtract_from_columns
from inlier.consensus._kernels_pairs import (
    UPPER_ENDS,
    common_support,
    counts_within,
    near_moments,
    re_paired_residuals,
    squared_residuals,
)
from inlier.consensus._kernels_space import refit_in_space
from inlier.consensus.models import MapModel, Maps, Moments, fit_maps, maps_of
from inlier.rows.threads import rows_per_narrow_range, run_in_threads

_WITH_SCATTER = ("similarity", "affine")  # the other models need no scatter
_ONCE = np.zeros(1)  # sharpness of a plain fit
_NARROW = 8  # columns up to which sums of products are fastest in a loop of our own


@dataclass(frozen=True, eq=False)
class ResidualCounts:
    """How many residuals lie below each of many bounds, of pairs and of re-pairings."""

    bounds: FloatArray
    pairs: Array
    re_pairings: Array
    n_pairs: int
    n_re_pairings: int

    def up_to(self, bound: float) -> ResidualCounts:
        """Keep only bounds that are no larger than this one."""
        last = int(np.argmin(np.abs(self.bounds - bound))) + 1
        return replace(self, bounds=self.bounds[:last], pairs=self.pairs[:last], re_pairings=self.re_pairings[:last])


@dataclass(frozen=True, eq=False)
class ColumnPairs:
    """n pairs as columns x (d_x, n), y (d_y, n), with weights.

    Attributes
    ----------
    x, y, weights : ndarray
        The pairs, in random order unless ``shuffled`` is given.
    shuffled : ColumnPairs, optional
        A sample of the pairs in random order, which stands for all where pairs are re-paired: neighbours in a table are
        often neighbours in space.
    """

    x: FloatArray
    y: FloatArray
    weights: FloatArray
    shuffled: ColumnPairs | None = None

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return int(self.x.shape[1])

    @property
    def in_random_order(self) -> ColumnPairs:
        """Pairs that may be re-paired with their neighbours."""
        return self.shuffled or self

    @cached_property
    def spread(self) -> float:
        """Root mean square of y about its mean; of a sample, where there is one."""
        return float(spread_of(self.y)) or 1.0 if self.shuffled is None else self.shuffled.spread

    @staticmethod
    def from_rows(
        X: Array, Y: Array, weights: FloatArray, centred: bool
    ) -> tuple[ColumnPairs, tuple[FloatArray, FloatArray]]:
        """Copy tables, about their means if ``centred``: little is lost to large coordinates; and those, or zeros."""
        (x, mean_x), (y, mean_y) = (_columns(table, centred) for table in (X, Y))
        return ColumnPairs(x, y, weights), (mean_x, mean_y)

    def take(self, which: Array) -> ColumnPairs:
        """Return some of the pairs."""
        # np.take keeps rows contiguous; x[:, which] would not, and all loops over it would be slow.
        x, y, weights = (np.take(part, which, axis=-1) for part in (self.x, self.y, self.weights))
        return ColumnPairs(x, y, weights)

    def with_sample(self, shuffled: ColumnPairs) -> ColumnPairs:
        """The same pairs, with some of them in random order."""
        return ColumnPairs(self.x, self.y, self.weights, shuffled)

    def squared_residuals(self, maps: Maps) -> FloatArray:
        """|y_i - map(x_i)|^2 under the first map."""
        squared = np.empty(self.n_pairs)
        linear, shift = _first_of(maps)
        run_in_threads(
            self.n_pairs,
            lambda rows: squared_residuals(linear, shift, self.x, self.y, rows.start, rows.stop, squared),
        )
        return squared

    def count_residuals(self, maps: Maps, re_pairings: int, unit: float | None = None) -> ResidualCounts:
        """Count residuals of the pairs and of at least n re-pairings, at bounds of which one is ``unit``."""
        unit = unit or self.spread
        shuffled = self.in_random_order
        rounds = shuffled._rounds(re_pairings)
        pairs = self._within(maps, unit, 0, 0)
        re_paired = shuffled._within(maps, unit, 1, rounds)
        return ResidualCounts(unit * UPPER_ENDS, pairs, re_paired, self.n_pairs, int(re_paired[-1]))

    def count_re_paired(self, maps: Maps, re_pairings: int) -> tuple[FloatArray, Array]:
        """Bounds, and how many of at least n re-pairings lie within each; in random order only."""
        return self.spread * UPPER_ENDS, self._within(maps, self.spread, 1, self._rounds(re_pairings))

    def _within(self, maps: Maps, unit: float, first: int, last: int) -> Array:
        """How many residuals of x_i and y_(i + step), for steps from first to last, lie within each bound."""
        linear, shift = _first_of(maps)
        parts = run_in_threads(
            self.n_pairs,
            lambda rows: counts_within(linear, shift, self.x, self.y, first, last, unit**2, rows.start, rows.stop),
        )
        within: Array = sum(parts[1:], start=parts[0])
        return within

    def re_paired_residuals(self, maps: Maps, re_pairings: int) -> FloatArray:
        """|y_j - map(x_i)| of about so many re-pairings, at least n, under the first map; in random order only."""
        residuals: FloatArray = re_paired_residuals(*_first_of(maps), self.x, self.y, self._rounds(re_pairings))
        return residuals

    def _rounds(self, re_pairings: int) -> int:
        return max(1, min(-(-re_pairings // self.n_pairs), self.n_pairs - 1))

    def row_sums(self, centred: bool) -> FloatArray:
        """x_i^T (X^T W Y) y_i, about the means if ``centred``: the paper's overlap of each pair with all."""
        if not self.is_wide:
            sums: FloatArray = row_sums(self.x, self.y, self.weights, centred)
            return sums
        x, y = ((p - p.mean(axis=1, keepdims=True) if centred else p) for p in (self.x, self.y))
        return ((((x * self.weights) @ y.T).T @ x) * y).sum(axis=0)

    def common_support(self, first: Maps, first_bound: float, second: Maps, second_bound: float) -> float:
        """Of the pairs that the first map brings within its bound, the share that the second does."""
        linear, shift = np.concatenate([first.linear, second.linear]), np.concatenate([first.shift, second.shift])
        within, both = common_support(linear, shift, np.array([first_bound**2, second_bound**2]), self.x, self.y)
        return both / max(within, 1)

    def fit(self, model: MapModel, factor: FloatArray | None = None) -> Maps:
        """Least squares, with the pairs' weights times a factor."""
        weights = self.weights if factor is None else self.weights * factor
        if self.is_wide:
            return fit_maps(model, self.x.T[None], self.y.T[None], weights[None])
        if self._is_one_range_in_space(model):
            maps, _, _ = self._refit_in_space(model, _nowhere(3, 3), weights, np.inf, _ONCE)
            return maps
        return maps_of(model, self._moments(model, None, weights, np.inf, 0.0)[0])

    def fit_near(self, model: MapModel, maps: Maps, reach: float, sharpness: float = 0.0) -> tuple[Maps, int]:
        """Least squares on the pairs within reach of the first map, and how many they are.

        The weight of a pair with residual e is divided by (1 + sharpness e^2)^2.
        """
        if self.is_wide:
            squared = self.squared_residuals(maps)
            near = np.flatnonzero(squared <= reach**2)
            return self.take(near).fit(model, 1 / (1 + sharpness * squared[near]) ** 2), near.size
        if self._is_one_range_in_space(model):
            maps, n_near, _ = self._refit_in_space(model, maps, self.weights, reach, np.array([sharpness]))
            return maps, n_near
        moments, n_near = self._moments(model, maps, self.weights, reach, sharpness)
        return maps_of(model, moments), n_near

    def fit_and_cross(self, model: MapModel, maps: Maps, reach: float, sharpness: float) -> tuple[Maps, FloatArray]:
        """`fit_near`, and the mean of (y - y_bar)(x - x_bar)^T that it rests on; not for wide pairs."""
        if self._is_one_range_in_space(model):
            maps, _, cross = self._refit_in_space(model, maps, self.weights, reach, np.array([sharpness]))
            return maps, cross
        moments, _ = self._moments(model, maps, self.weights, reach, sharpness)
        return maps_of(model, moments), moments.cross[0]

    def refit(self, model: MapModel, maps: Maps, reach: float, sharpnesses: FloatArray, steady: float = 0.0) -> Maps:
        """`fit_near` again and again, with each sharpness in turn, until the map's coefficients change by less."""
        if self._is_in_space(model):
            maps, _, _ = self._refit_in_space(model, maps, self.weights, reach, sharpnesses, steady)
            return maps
        for sharpness in sharpnesses.tolist():
            before = maps.linear
            maps, _ = self.fit_near(model, maps, reach, sharpness)
            if np.abs(maps.linear - before).max() < steady:
                break
        return maps

    def _is_in_space(self, model: MapModel) -> bool:
        """Whether there are compiled fits for such points and maps."""
        return len(self.x) == len(self.y) == 3 and model.name not in _WITH_SCATTER

    def _is_one_range_in_space(self, model: MapModel) -> bool:
        """... and threads would not help."""
        return self.n_pairs <= rows_per_narrow_range() and self._is_in_space(model)

    def _refit_in_space(
        self,
        model: MapModel,
        maps: Maps,
        weights: FloatArray,
        reach: float,
        sharpnesses: FloatArray,
        steady: float = 0.0,
    ) -> tuple[Maps, int, FloatArray]:
        options = model.has_shift, model.may_mirror, False
        linear, shift, n_near, cross = refit_in_space(
            *_first_of(maps), self.x, self.y, weights, reach**2, sharpnesses, options, steady, 0, self.n_pairs
        )
        return Maps(linear[None], shift[None]), n_near, cross

    @property
    def is_wide(self) -> bool:
        """Whether there are so many columns that matrix products are faster than loops."""
        return max(len(self.x), len(self.y)) > _NARROW

    def _moments(
        self, model: MapModel, maps: Maps | None, weights: FloatArray, reach: float, sharpness: float
    ) -> tuple[Moments, int]:
        """Gather the moments of the pairs within reach in one pass; within reach of no map are all."""
        linear, shift = _first_of(_nowhere(len(self.x), len(self.y)) if maps is None else maps)
        scattered = model.name in _WITH_SCATTER
        parts = run_in_threads(
            self.n_pairs,
            lambda rows: near_moments(
                linear, shift, self.x, self.y, weights, reach**2, sharpness, scattered, rows.start, rows.stop
            ),
        )
        near, *sums = (
            parts[0] if len(parts) == 1 else (sum(part[1:], start=part[0]) for part in zip(*parts, strict=True))
        )
        return Moments.from_sums(model, *sums), int(near)


def _columns(table: Array, centred: bool) -> tuple[FloatArray, FloatArray]:
    """A copy of the rows as columns, about their mean if ``centred``, and that mean, or zeros."""
    n, d = table.shape
    rows, columns = np.ascontiguousarray(table, dtype=np.float64), np.empty((d, n))
    parts = run_in_threads(n, lambda some: copy_to_columns(rows, columns, some.start, some.stop))
    if not centred:
        return columns, np.zeros(d)
    mean: FloatArray = sum(parts[1:], start=parts[0]) / n
    run_in_threads(n, lambda some: subtract_from_columns(columns, mean, some.start, some.stop))
    return columns, mean


def _nowhere(d_x: int, d_y: int) -> Maps:
    """A map that leaves nothing of x: all pairs are within infinite reach of it."""
    return Maps(np.zeros((1, d_y, d_x)), np.zeros((1, d_y)))


def _first_of(maps: Maps) -> tuple[FloatArray, FloatArray]:
    return np.ascontiguousarray(maps.linear[0]), np.ascontiguousarray(maps.shift[0])
