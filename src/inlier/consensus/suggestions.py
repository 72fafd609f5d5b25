"""Rough maps that circles of friends suggest, and a quick look at which of them are worth a closer one.

A rough map brings its pairs within some bound that is not known yet. So its support is looked at within several, each
beside a few re-pairings and the most that chance can do (see `evidence`); the bound at which it surprises most is where
it is fitted again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inlier.consensus.evidence import Chance
from inlier.consensus.models import MapModel, Maps, fit_maps
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.scales import closest_friends
from inlier.consensus.support_kernels import support_within
from inlier.engine.blocks import FloatArray
from inlier.overlap.agreement import Agreement

_MOST_CANDIDATES = 1600  # pairs of which every two are compared to second order
_CIRCLE = 20  # friends, with the pair itself
_SEEDS = 24  # tightest circles of one tolerance that are fitted
_RESIDUAL = 1.5  # residuals of pairs whose distances differ by 1
_FINER = 0.5 ** np.arange(4)  # shares of a bound, at which support is looked at
_SHIFTS = (1, 2)  # of the two sides against each other: re-pairings for a quick look
_FOLLOWED = 6  # most promising maps that are fitted again
_SETTLING_ROUNDS = 2


@dataclass(frozen=True, eq=False)
class Suggestions:
    """Maps, the bounds within which their support surprises most, and by how much; the most promising first."""

    maps: Maps
    bounds: FloatArray
    promise: FloatArray

    def __iter__(self) -> Iterator[tuple[Maps, float]]:
        """Yield each map with its bound."""
        return ((self.maps[s], float(self.bounds[s])) for s in range(len(self.maps)))

    def different(self, spread: float, most: int) -> Suggestions:
        """Leave out those that are the same as a more promising one, and all but ``most`` of the others.

        Two are the same if they move the origin and the ends of a cross of this spread alike, up to their bounds.
        """
        linear, shift = spread * self.maps.linear, self.maps.shift
        ends = np.concatenate([shift[:, :, None], linear + shift[:, :, None], linear - shift[:, :, None]], axis=2)
        chosen: list[int] = []
        for s in range(len(self.maps)):
            apart = np.sqrt(((ends[chosen] - ends[s]) ** 2).sum(axis=1)).max(axis=1, initial=0.0)
            if not np.any(apart <= np.maximum(self.bounds[chosen], self.bounds[s])):
                chosen.append(s)
            if len(chosen) == most:
                break
        return Suggestions(self.maps[np.array(chosen)], self.bounds[chosen], self.promise[chosen])


def suggestions(
    model: MapModel,
    chance: Chance,
    sample: ColumnPairs,
    scale: float,
    tolerances: FloatArray,
    jury: ColumnPairs,
    judges: ColumnPairs,
    rng: np.random.RandomState,
) -> Suggestions | None:
    """Fit the tightest circles of friends in a sample, and settle those that a jury finds most promising."""
    rough = _maps_of_circles(model, sample, scale, tolerances, rng)
    if rough is None:
        return None
    found = look(chance, jury, *rough).different(jury.spread, _FOLLOWED)
    for _ in range(_SETTLING_ROUNDS):
        found = look(chance, judges, _fitted_again(model, judges, found), found.bounds)
    return found.different(judges.spread, _FOLLOWED)


def look(chance: Chance, pairs: ColumnPairs, maps: Maps, bounds: FloatArray) -> Suggestions:
    """Quickly look at many maps: within which bound, up to the one given, does their support surprise, by how much?"""
    within = _FINER[:, None] * bounds
    support, *by_chance = (_support(pairs, maps, within, shift) for shift in (0, *_SHIFTS))
    own = (sum(by_chance) + 1) / (pairs.n_pairs * len(_SHIFTS) + 1)
    surprise = chance.surprise(support, pairs.n_pairs, own, within, maps)
    best = np.argmax(surprise, axis=0)
    each = np.arange(len(maps))
    promise = surprise[best, each]
    order = np.argsort(-promise, kind="stable")
    return Suggestions(maps[order], within[best, each][order], promise[order])


def _support(pairs: ColumnPairs, maps: Maps, within: FloatArray, shift: int) -> FloatArray:
    """How many pairs, or x_i with y_(i + shift), each map brings within each bound."""
    found = np.empty(within.shape)
    y = np.roll(pairs.y, -shift, axis=1) if shift else pairs.y
    support_within(np.ascontiguousarray(maps.linear), np.ascontiguousarray(maps.shift), pairs.x, y, within, found)
    return found


def _maps_of_circles(
    model: MapModel, sample: ColumnPairs, scale: float, tolerances: FloatArray, rng: np.random.RandomState
) -> tuple[Maps, FloatArray] | None:
    """Fit the tightest circles to each tolerance; also the residuals that their pairs may have."""
    maps, bounds = [], []
    for chosen, some in closest_friends(sample, scale, tolerances, model, _MOST_CANDIDATES, rng):
        if chosen.n_pairs < model.fewest_pairs:
            continue
        agreement = Agreement(scale * chosen.x, chosen.y, some)
        x, y = chosen.x.T, chosen.y.T
        for which, tolerance in enumerate(some):
            circles = agreement.tightest_circles(which, _CIRCLE, _SEEDS)
            weights = circles.weights * chosen.weights[circles.members]
            maps.append(fit_maps(model, x[circles.members], y[circles.members], weights))
            bounds.append(np.full(len(weights), _RESIDUAL * tolerance))
    if not maps:
        return None
    return Maps(*(np.concatenate(part) for part in zip(*((m.linear, m.shift) for m in maps)))), np.concatenate(bounds)


def _fitted_again(model: MapModel, pairs: ColumnPairs, found: Suggestions) -> Maps:
    """Fit each map to the pairs within its bound, unless they are hardly enough for one."""
    maps = []
    for rough, bound in found:
        fitted, n_within = pairs.fit_near(model, rough, bound)
        maps.append(fitted if n_within > model.fewest_pairs else rough)
    return Maps(np.concatenate([m.linear for m in maps]), np.concatenate([m.shift for m in maps]))
