"""The pairs as the search sees them: points as columns in float64, near the origin, in units of their spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier.consensus.kernels import squared_residuals, support
from inlier.consensus.models import MapModel, Maps, fit_maps
from inlier.engine.blocks import Array, FloatArray, Mask
from inlier.engine.threads import run_in_threads


@dataclass(frozen=True, eq=False)
class ColumnPairs:
    """n pairs as columns, x (d_x, n) and y (d_y, n), each with a weight, and numbers that equal points share."""

    x: FloatArray
    y: FloatArray
    weights: FloatArray
    points: Array

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return int(self.x.shape[1])

    def take(self, which: Array) -> ColumnPairs:
        """Return some of the pairs."""
        return ColumnPairs(self.x[:, which], self.y[:, which], self.weights[which], self.points[:, which])

    def squared_residuals(self, maps: Maps, partner: Array | None = None) -> FloatArray:
        """|y - map(x)|^2 under the first map, of each pair or of x_i with y_partner(i)."""
        partner = np.arange(self.n_pairs) if partner is None else partner
        squared = np.empty(self.n_pairs)
        linear, shift = np.ascontiguousarray(maps.linear[0]), maps.shift[0]
        run_in_threads(
            self.n_pairs,
            lambda rows: squared_residuals(linear, shift, self.x, self.y, partner, rows.start, rows.stop, squared),
        )
        return squared

    def re_paired(self, maps: Maps, fewest: int, rng: np.random.RandomState) -> FloatArray:
        """Squared residuals of x_i with y_j, neither of them a point of the other's pair; about ``fewest`` or n."""
        n = self.n_pairs
        order = rng.permutation(n)
        partner = np.empty(n, dtype=np.intp)
        squared = []
        for step in range(1, min(max(1, -(-fewest // n)), n - 1) + 1):
            partner[order] = np.roll(order, step)
            different = (self.points != self.points[:, partner]).all(axis=0)
            squared.append(self.squared_residuals(maps, partner)[different])
        return np.concatenate(squared)

    def support(self, maps: Maps, bound: float) -> Array:
        """How many pairs each map brings within the bound."""
        count = np.empty(len(maps), dtype=np.int64)
        support(np.ascontiguousarray(maps.linear), maps.shift, self.x, self.y, bound**2, count)
        return count

    def fit(self, model: MapModel, which: Mask) -> Maps:
        """Least squares on the pairs that are marked."""
        return fit_maps(model, self.x[:, which].T[None], self.y[:, which].T[None], self.weights[which][None])
