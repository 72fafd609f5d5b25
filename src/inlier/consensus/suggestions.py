"""Rough maps that circles of friends suggest, and a quick look at which of them are worth a closer one.

A rough map brings its pairs within some bound that is not known yet. So its support is looked at within several, each
beside a few re-pairings and the most that chance can do (see `evidence`); the bound at which it surprises most is where
it is fitted again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.consensus._kernels_support import support_within
from inlier.consensus.agreement import Agreement
from inlier.consensus.draws import Draws
from inlier.consensus.evidence import Chance
from inlier.consensus.models import MapModel, Maps, fit_maps
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.scales import closest_friends

_MOST_CANDIDATES = 1600  # pairs of which every two are compared to second order
_CIRCLE = 20  # friends, with the pair itself
_SEEDS = 24  # tightest circles of one tolerance that are fitted
_SHARPNESS = 8  # power of the weights in a circle: those who agree with only some of it have little say
_RESIDUAL = 1.5  # residuals of pairs whose distances differ by 1
_FINER = 0.5 ** np.arange(4)  # shares of a bound, at which support is looked at
_SHIFTS = (1, 2)  # of the two sides against each other: re-pairings for a quick look


@dataclass(frozen=True, eq=False)
class Suggestions:
    """Maps, the bounds within which their support surprises most, and by how much."""

    maps: Maps
    bounds: FloatArray
    promise: FloatArray

    def __len__(self) -> int:
        return len(self.maps)

    def __getitem__(self, which: Array) -> Suggestions:
        return Suggestions(self.maps[which], self.bounds[which], self.promise[which])

    def one_by_one(self) -> Iterator[tuple[Maps, float, float]]:
        """Yield each map with its bound and promise."""
        for s, (bound, promise) in enumerate(zip(self.bounds.tolist(), self.promise.tolist(), strict=True)):
            yield self.maps[s], bound, promise

    def different(self, spread: float, most: int) -> Suggestions:
        """Keep so many of the most promising, without those that are the same as a more promising one.

        Two are the same if they move the origin and the points at distance ``spread`` on each axis alike, up to the
        larger of their bounds.
        """
        ahead = np.argsort(-self.promise, kind="stable")[: 4 * most]
        shift, bounds = self.maps.shift[ahead, :, None], self.bounds[ahead]
        moved = np.concatenate([shift, shift + spread * self.maps.linear[ahead]], axis=2)
        steps = moved[:, None] - moved
        apart = np.einsum("stij,stij->stj", steps, steps).max(axis=2)
        chosen: list[int] = []
        for s, same in enumerate((apart <= np.maximum.outer(bounds, bounds) ** 2).tolist()):
            if len(chosen) < most and not any(same[before] for before in chosen):
                chosen.append(s)
        return self[ahead[chosen]]

    def fitted_again(self, model: MapModel, pairs: ColumnPairs) -> Maps:
        """Fit each map to the pairs within its bound, unless they are hardly enough for one."""
        maps = []
        for rough, bound, _ in self.one_by_one():
            fitted, n_within = pairs.fit_near(model, rough, bound)
            maps.append(fitted if n_within > model.fewest_pairs else rough)
        return Maps(np.concatenate([m.linear for m in maps]), np.concatenate([m.shift for m in maps]))


class QuickLook:
    """Looks at many maps at once.

    Parameters
    ----------
    chance : Chance
        Knows what chance can do.
    pairs : ColumnPairs
        Pairs that the maps are compared on.
    """

    def __init__(self, chance: Chance, pairs: ColumnPairs) -> None:
        self._chance, self._pairs = chance, pairs

    @cached_property
    def _x(self) -> FloatArray:
        return np.ascontiguousarray(self._pairs.x)

    @cached_property
    def _y(self) -> list[FloatArray]:
        """Of the pairs, and of re-pairings."""
        return [np.ascontiguousarray(np.roll(self._pairs.y, -shift, axis=1)) for shift in (0, *_SHIFTS)]

    def __call__(self, maps: Maps, bounds: FloatArray) -> Suggestions:
        """Find the bounds, up to the given ones, within which the support of each map surprises most."""
        within = _FINER[:, None] * bounds
        support, *by_chance = (self._support(maps, within, y) for y in self._y)
        own = (np.sum(by_chance, axis=0) + 1) / (self._pairs.n_pairs * len(_SHIFTS) + 1)
        surprise = self._chance.surprise(support, self._pairs.n_pairs, own, within, maps)
        best = np.argmax(surprise, axis=0), np.arange(len(maps))
        return Suggestions(maps, within[best], surprise[best])

    def _support(self, maps: Maps, within: FloatArray, y: FloatArray) -> FloatArray:
        """How many pairs (x_i, y_i) each map brings within each bound."""
        found = np.empty(within.shape)
        linear, shift = np.ascontiguousarray(maps.linear), np.ascontiguousarray(maps.shift)
        support_within(linear, shift, self._x, y, within, found)
        return found


def maps_of_circles(
    model: MapModel, sample: ColumnPairs, scale: float, tolerances: FloatArray, draws: Draws
) -> tuple[Maps, FloatArray] | None:
    """Fit the tightest circles of friends to each tolerance; also the residuals that their pairs may have.

    None if there are too few pairs to choose from.
    """
    x, y, weights, bounds = [], [], [], []
    for chosen, some in closest_friends(sample, scale, tolerances, model, _MOST_CANDIDATES, draws):
        if chosen.n_pairs < model.fewest_pairs:
            continue
        agreement = Agreement(scale * chosen.x, chosen.y, some)
        for which, tolerance in enumerate(some):
            circles = agreement.tightest_circles(which, _CIRCLE, _SEEDS)
            x.append(chosen.x.T[circles.members])
            y.append(chosen.y.T[circles.members])
            weights.append(circles.weights**_SHARPNESS * chosen.weights[circles.members])
            bounds.append(np.full(len(circles.weights), _RESIDUAL * tolerance))
    if not bounds:
        return None
    return fit_maps(model, *(np.concatenate(parts) for parts in (x, y, weights))), np.concatenate(bounds)
