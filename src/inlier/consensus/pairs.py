"""The pairs as the search sees them: points as columns in float64, near the origin."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.consensus._kernels_pairs import (
    N_BINS,
    TILE,
    UPPER_ENDS,
    count_residuals,
    fit_rotation,
    near_moments,
    residuals_within,
)
from inlier.rows.null_pairs import MIXER, distinct_pairs
from inlier.rows.threads import row_blocks, rows_per_block, rows_per_narrow_range, run_in_threads
from inlier.transforms.least_squares import MapModel, Maps, Moments, fit_maps, identity, maps_of

_NARROW = 8  # columns up to which sums of products are fastest in a loop of our own
_LOOKED_AT = 256  # different pairs, about, that are looked at for copies
_TINY = float(np.finfo(np.float64).tiny)


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

    Wrong pairs are made as in `inlier.rows.null_pairs`: from a random order, by cyclic shifts of one side against the
    other, without those of two pairs that share a point.
    """

    x: FloatArray  # the pairs, in random order unless ``shuffled`` is given
    y: FloatArray  # the pairs, in random order unless ``shuffled`` is given
    weights: FloatArray  # the pairs, in random order unless ``shuffled`` is given
    # A sample of the pairs in random order, which stands for all where pairs are re-paired: neighbours in a table are
    # often neighbours in space
    shuffled: ColumnPairs | None = None

    @staticmethod
    def from_rows(
        X: Array, Y: Array, weights: FloatArray, centred: bool
    ) -> tuple[ColumnPairs, tuple[FloatArray, FloatArray]]:
        """Copy tables, about their means if ``centred``: little is lost to large coordinates; and those, or zeros."""
        # In one piece: the allocator keeps what is this large, and hands it to the next fit without asking the system.
        columns = np.empty((X.shape[1] + Y.shape[1], len(X)))
        x, y = columns[: X.shape[1]], columns[X.shape[1] :]
        origin = _copy_columns(X, x, centred), _copy_columns(Y, y, centred)
        return ColumnPairs(x, y, weights), origin

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return self.x.shape[1]

    @property
    def is_wide(self) -> bool:
        """Whether there are so many columns that matrix products are faster than loops."""
        return len(self.x) > _NARROW or len(self.y) > _NARROW

    @property
    def in_random_order(self) -> ColumnPairs:
        """Pairs that may be re-paired with their neighbours."""
        return self.shuffled or self

    @cached_property
    def spread(self) -> float:
        """Root mean square of y about its mean; of a sample, where there is one."""
        return spread_of(self.y) if self.shuffled is None else self.shuffled.spread

    @cached_property
    def weights_differ(self) -> bool:
        """Whether some pairs count for more than others."""
        return bool((self.weights != self.weights[0]).any())

    @cached_property
    def around(self) -> tuple[FloatArray, FloatArray]:
        """The columns of x and of y twice, one after the other: so those that follow any one can be counted on."""
        x = np.concatenate([self.x, self.x], axis=1)
        return x, x if self.y is self.x else np.concatenate([self.y, self.y], axis=1)

    @cached_property
    def sides(self) -> tuple[ColumnPairs, ColumnPairs]:
        """Each side with itself: the re-pairings of such pairs are pairs of points of that side."""
        return ColumnPairs(self.x, self.x, self.weights), ColumnPairs(self.y, self.y, self.weights)

    def take(self, which: Array) -> ColumnPairs:
        """Return some of the pairs."""
        # This keeps rows contiguous; x[:, which] would not, and all loops over it would be slow.
        return ColumnPairs(self.x.take(which, axis=1), self.y.take(which, axis=1), self.weights.take(which))

    def squared_residuals(self, maps: Maps) -> FloatArray:
        """|y_i - map(x_i)|^2 under the first map."""
        squared, maps = np.empty((1, self.n_pairs)), _first_of(maps)
        run_in_threads(self.n_pairs, lambda rows: self._write_squares(maps, (0, 1), rows.start, squared[:, rows]))
        return squared[0]

    def near(self, maps: Maps, bound: float) -> ColumnPairs:
        """The pairs that the first map brings within the bound."""
        return self.take(self.is_near(maps, bound).nonzero()[0])

    def is_near(self, maps: Maps, bound: float) -> Mask:
        """Which pairs these are; block by block, for memory for all residuals is new to the cache."""
        maps, limit, near = _first_of(maps), bound**2, np.empty(self.n_pairs, dtype=bool)

        def compare(rows: slice) -> None:
            squared = np.empty((1, min(rows_per_block(4), rows.stop - rows.start)))
            for start in range(rows.start, rows.stop, squared.shape[1]):
                here = squared[:, : rows.stop - start]
                self._write_squares(maps, (0, 1), start, here)
                np.less_equal(here[0], limit, out=near[start : start + here.shape[1]])

        run_in_threads(self.n_pairs, compare)
        return near

    def common_support(self, first: Maps, first_bound: float, second: Maps, second_bound: float) -> float:
        """Of the pairs that the first map brings within its bound, the share that the second does."""
        within = self.is_near(first, first_bound)
        both = within & self.is_near(second, second_bound)
        return int(np.count_nonzero(both)) / max(int(np.count_nonzero(within)), 1)

    def count_residuals(self, maps: Maps, re_pairings: int, unit: float | None = None) -> ResidualCounts:
        """Count residuals of the pairs and of at least n re-pairings, at bounds of which one is ``unit``."""
        unit = unit or self.spread
        pairs = self._within(maps, unit, (0, 1))
        re_paired = self.in_random_order.count_re_paired(maps, re_pairings, unit)[1]
        return ResidualCounts(unit * UPPER_ENDS, pairs, re_paired, self.n_pairs, int(re_paired[-1]))

    def count_re_paired(self, maps: Maps, re_pairings: int, unit: float | None = None) -> tuple[FloatArray, Array]:
        """Bounds, and how many of at least n re-pairings lie within each; in random order only."""
        unit = unit or self.spread
        return unit * UPPER_ENDS, self._within(maps, unit, (1, self._shifts(re_pairings) + 1))

    def _within(self, maps: Maps, unit: float, steps: tuple[int, int]) -> Array:
        """How many residuals of x_i and y_(i + step), for a range of steps, lie within each bound."""
        (linear, shift), per_unit = _coefficients_of(maps), 1 / max(unit**2, _TINY)
        x, y = (self.x, self.y) if steps[1] == 1 else self.around

        def count(rows: slice) -> Array:
            counts, room = np.zeros(N_BINS + 1, dtype=np.int64), np.empty((2, TILE))
            count_residuals(
                *(linear, shift, x, y, steps, per_unit, rows.start, rows.stop, room, room.view(np.uint64), counts)
            )
            return counts

        counts: Array = sum(run_in_threads(self.n_pairs, count))[:N_BINS].cumsum()
        return counts

    def re_paired_residuals(self, maps: Maps, re_pairings: int) -> FloatArray:
        """|y_j - map(x_i)| of about so many re-pairings, at least n, under the first map; in random order only."""
        n, (x, y), squared = self.n_pairs, self.around, self._re_paired_squares(maps, re_pairings)
        if _all_differ(self.x[0]) and _all_differ(self.y[0]):  # as usual
            return np.sqrt(squared, out=squared).reshape(-1)
        apart = [
            (x[:, :n] != x[:, step : step + n]).any(axis=0) & (y[:, :n] != y[:, step : step + n]).any(axis=0)
            for step in range(1, len(squared) + 1)
        ]
        return np.sqrt(squared[np.stack(apart)])

    def neighbour_distances(self, count: int) -> tuple[FloatArray, FloatArray]:
        """|x_i - x_j| and |y_k - y_m| of about so many, at least n, different i, j, k and m; in random order only."""
        x, y = (np.sqrt(side._re_paired_squares(identity(len(side.x)), count)).reshape(-1) for side in self.sides)
        half = self.n_pairs // 2
        return x[:count], np.concatenate([y[y.size - half :], y[: y.size - half]])[:count]

    def _re_paired_squares(self, maps: Maps, re_pairings: int) -> FloatArray:
        """Squared residuals of x_i and y_(i + step), a row for each step."""
        squared = np.empty((self._shifts(re_pairings), self.n_pairs))
        self._write_squares(_first_of(maps), (1, len(squared) + 1), 0, squared)
        return squared

    def _write_squares(self, first: Maps, steps: tuple[int, int], start: int, squared: FloatArray) -> None:
        """Write squared residuals of x_i and y_(i + step) under one map, i from ``start`` on, a row for each step."""
        x, y = (self.x, self.y) if steps[1] == 1 else self.around
        bounds = np.empty((0, 1))  # none to be counted within
        residuals_within(first.linear, first.shift, x, y, steps, start, bounds, np.empty((1, TILE)), squared, bounds)

    def _shifts(self, re_pairings: int) -> int:
        return max(1, min(-(-re_pairings // self.n_pairs), self.n_pairs - 1))

    def support(self, maps: Maps, bounds: FloatArray, steps: tuple[int, int]) -> FloatArray:
        """How many x_i each map (columns) brings within its bounds (rows) of y_(i + step), for a range of steps."""
        found, squared, room = (
            np.zeros(bounds.shape),
            np.empty((steps[1] - steps[0], self.n_pairs)),
            np.empty((1, TILE)),
        )
        linear, shift = np.ascontiguousarray(maps.linear), np.ascontiguousarray(maps.shift)
        residuals_within(linear, shift, *self.around, steps, 0, bounds**2, room, squared, found)
        return found

    def row_sums(self, centred: bool) -> FloatArray:
        """x_i^T (X^T W Y) y_i, about the means if ``centred``: the paper's overlap of each pair with all."""
        x, y = (_about_mean(side) if centred else side for side in (self.x, self.y))
        sums: FloatArray = ((y @ (x * self.weights).T) @ x * y).sum(axis=0)
        return sums

    def fit(self, model: MapModel, factor: FloatArray | None = None) -> Maps:
        """Least squares, with the pairs' weights times a factor."""
        weights = self.weights if factor is None else self.weights * factor
        if self.is_wide:
            return fit_maps(model, self.x.T[None], self.y.T[None], weights[None])
        anywhere = Maps(np.eye(len(self.y), len(self.x))[None], np.zeros((1, len(self.y))))
        return ColumnPairs(self.x, self.y, weights).fit_near(model, anywhere, np.inf)[0]

    def fit_near(self, model: MapModel, maps: Maps, reach: float, sharpness: float = 0.0) -> tuple[Maps, int]:
        """Least squares on the pairs within reach of the first map, one of the model, and how many they are.

        The weight of a pair with residual e is divided by (1 + sharpness e^2)^2.
        """
        if self.is_wide:
            squared = self.squared_residuals(maps)
            near = np.flatnonzero(squared <= reach**2)
            return self.take(near).fit(model, 1 / (1 + sharpness * squared[near]) ** 2), near.size
        return self._fit_and_sums(model, maps, reach, sharpness)[:2]

    def refit(self, model: MapModel, maps: Maps, reach: float, sharpnesses: FloatArray, steady: float = 0.0) -> Maps:
        """`fit_near` again and again, with each sharpness in turn, until the map's coefficients change by less."""
        if self._is_in_one_loop(model):
            return self._refit_rotation(model, maps, reach, sharpnesses, steady)[0]
        for sharpness in sharpnesses.tolist():
            before = maps.linear
            maps, _ = self.fit_near(model, maps, reach, sharpness)
            if np.abs(maps.linear - before).max() < steady:
                break
        return maps

    def fit_and_moments(self, model: MapModel, maps: Maps, reach: float, sharpness: float) -> tuple[Maps, Moments]:
        """`fit_near`, and what it rests on; not for wide pairs."""
        fitted, _, sums = self._fit_and_sums(model, maps, reach, sharpness)
        return fitted, Moments.from_sums(model, sums)

    def _is_in_one_loop(self, model: MapModel) -> bool:
        """Whether moments and fits take turns without a detour: rotations of pairs too few for several threads."""
        turns_only = not (model.may_mirror or model.may_stretch)
        return turns_only and not self.is_wide and self.n_pairs <= rows_per_narrow_range()

    def _fit_and_sums(
        self, model: MapModel, maps: Maps, reach: float, sharpness: float
    ) -> tuple[Maps, int, FloatArray]:
        """Least squares, how many pairs are within reach, and their sums."""
        if self._is_in_one_loop(model):
            return self._refit_rotation(model, maps, reach, np.array([sharpness]))
        sums, n_near = self._near_sums(model, maps, reach, sharpness)
        return maps_of(model, Moments.from_sums(model, sums)), n_near, sums

    def _refit_rotation(
        self, model: MapModel, maps: Maps, reach: float, sharpnesses: FloatArray, steady: float = 0.0
    ) -> tuple[Maps, int, FloatArray]:
        """The same with each sharpness in turn, for rotations."""
        linear, shift, n_near = maps.linear[0].copy(), maps.shift[0].copy(), 0
        d, has_shift, reach = len(self.x), model.has_shift, reach**2
        sums, room, work = np.empty((2 * d + 1, d + 1)), np.empty((3, TILE)), np.empty((4, d, d))
        x, y, weights, n = self.x, self.y, self.weights, self.n_pairs
        for sharpness in sharpnesses.tolist():
            sums.fill(0.0)
            n_near = near_moments(linear, shift, x, y, 0, weights, reach, sharpness, False, 0, n, room, sums)
            if fit_rotation(linear, shift, sums, has_shift, work) < steady:
                break
        return Maps(linear[None], shift[None]), n_near, sums

    def _near_sums(self, model: MapModel, maps: Maps, reach: float, sharpness: float) -> tuple[FloatArray, int]:
        """The sums of w z (1, x)^T, z = (1, x, y), that those are, and how many pairs are within reach."""
        scattered = model.name == "affine"
        linear, shift = _coefficients_of(maps)
        size = 1 + len(self.x) + len(self.y)

        def add_up(rows: slice) -> tuple[FloatArray, int]:
            sums = np.zeros((size, 1 + len(self.x)))
            how = reach**2, sharpness, scattered, rows.start, rows.stop, np.empty((3, TILE)), sums
            n_near = near_moments(linear, shift, self.x, self.y, 0, self.weights, *how)
            return sums, n_near

        parts = run_in_threads(self.n_pairs, add_up)
        return sum(sums for sums, _ in parts), sum(n_near for _, n_near in parts)

    def any_repeats(self, residuals: FloatArray, bound: float, n_within: int) -> bool:
        """Whether some of the pairs within the bound are listed twice; of many, some hundreds are looked at.

        Half of those are chosen by their coordinates alone: so copies are looked at together, wherever they stand in
        the table. The others are every k-th: so a single pair that is listed very often is not overlooked. Repeats
        that are less than about 1 of 100 of the pairs may be. ``n_within`` says how many pairs there are, about.
        """
        chosen = self._chosen_by_coordinates(_LOOKED_AT / max(n_within, 1))
        chosen[:: max(1, n_within // _LOOKED_AT)] = True
        rows = chosen.nonzero()[0]
        rows = rows[residuals.take(rows) <= bound][: 8 * _LOOKED_AT]
        if _all_differ(self.x[0].take(rows)):
            return False
        return distinct_pairs(self.x.T[rows], self.y.T[rows])[0].size < rows.size

    def _chosen_by_coordinates(self, share: float) -> Array:
        """Choose about this share of the pairs; equal ones together."""
        if share >= 1:
            return np.ones(self.n_pairs, dtype=bool)
        chosen, limit = np.empty(self.n_pairs, dtype=bool), np.uint64(share * 2.0**64)
        for rows in row_blocks(self.n_pairs, 4):
            mixed = np.pi * self.y[-1, rows]
            mixed += self.x[0, rows]
            bits = mixed.view(np.uint64)
            bits *= MIXER
            np.less(bits, limit, out=chosen[rows])
        return chosen


def every_kth(chosen: Mask, enough: int) -> tuple[Array, int]:
    """Of the rows that are chosen, every k-th, k as large as leaves ``enough`` of them; and how many were chosen.

    Block by block, since memory for a list of all rows is new to the cache.
    """
    count = int(np.count_nonzero(chosen))
    k, passed, rows = max(1, count // enough), 0, []
    for block in row_blocks(chosen.size, 1):
        found = chosen[block].nonzero()[0]
        rows.append(found[-passed % k :: k] + block.start)
        passed += found.size
    return np.concatenate(rows), count


def _all_differ(values: FloatArray) -> bool:
    rising = np.sort(values)
    return bool((rising[1:] > rising[:-1]).all())


def spread_of(points: FloatArray) -> float:
    """Root mean square of columns about their mean; 1 where they are all one."""
    steps = _about_mean(points)
    # Row by row: for all at once, BLAS would wake its threads, which takes longer.
    return math.sqrt(sum(float(row @ row) for row in steps) / points.shape[1]) or 1.0


def _about_mean(points: FloatArray) -> FloatArray:
    return points - points.sum(axis=1, keepdims=True) / points.shape[1]


def _copy_columns(table: Array, columns: FloatArray, centred: bool) -> FloatArray:
    """Copy the rows into columns, about their mean if ``centred``; that mean, or zeros."""
    n, d = table.shape

    def copy(rows: slice) -> FloatArray:
        columns[:, rows] = table[rows].T
        return columns[:, rows].sum(axis=1)

    total = sum(run_in_threads(n, copy))
    if not centred:
        return np.zeros(d)
    mean: FloatArray = total / n

    def centre(rows: slice) -> None:
        columns[:, rows] -= mean[:, None]

    run_in_threads(n, centre)
    return mean


def _first_of(maps: Maps) -> Maps:
    return Maps(np.ascontiguousarray(maps.linear[:1]), np.ascontiguousarray(maps.shift[:1]))


def _coefficients_of(maps: Maps) -> tuple[FloatArray, FloatArray]:
    """Of the first one."""
    return np.ascontiguousarray(maps.linear[0]), np.ascontiguousarray(maps.shift[0])
