"""From a rough map to the one that most pairs support: fit to those within the bound, weigh again, until it settles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier._typing import FloatArray
from inlier.consensus.crowding import places
from inlier.consensus.evidence import Chance, Evidence
from inlier.consensus.models import MapModel, Maps
from inlier.consensus.pairs import ColumnPairs

# Real wrong matches are not quite independent: a scene has a floor, and features look alike near each other. So at a
# coarse scale there is always something that chance does not explain, and a search has to look at fine ones.
FINE = 0.01  # share of re-pairings within the bound
_MOST_ROUNDS = 20
_RE_PAIRINGS = 20_000
_POLISHED_ON = 5_000  # pairs, or less than twice as many
_LAST_ROUNDS = 3  # on all pairs, each of which takes off about half of what is left of the part's error
NEAR = 3.0  # bounds: beyond, a pair has no say
_SCALE = 0.5  # of a bound: where a pair's weight has fallen to a quarter
_NARROWING = 1.4 ** -np.arange(9.0)  # of the spread of y: where a pair's weight has fallen to a quarter
_STEADY = 1e-4  # change of a map's coefficients that ends the polishing
_SETTLED = 1e-3  # gain in surprise, relative to it, that ends the rounds


@dataclass(frozen=True, eq=False)
class Finding:
    """A map, what speaks for it, and how surprising the number of places is where its support lies."""

    map: Maps
    evidence: Evidence
    breadth: float = 0.0


def better_of(first: Finding, second: Finding) -> Finding:
    """Return the one with the broader support, or else the more surprising, the first where both are equal."""
    ranks = [(found.breadth, found.evidence.surprise) for found in (first, second)]
    return first if ranks[0] >= ranks[1] else second


@dataclass(frozen=True, eq=False)
class Refiner:
    """Weighs maps, and improves them."""

    model: MapModel
    chance: Chance
    noise_bound: float | None
    most_by_chance: float = FINE
    re_pairings: int = _RE_PAIRINGS  # at least, that a map is weighed beside

    def weigh(self, pairs: ColumnPairs, maps: Maps, re_pairings: int | None = None) -> Finding:
        """What speaks for this map among these pairs, beside at least so many re-pairings."""
        counts = pairs.count_residuals(maps, re_pairings or self.re_pairings, self.noise_bound)
        if self.noise_bound is not None:  # real pairs lie within it, and the best of them nearer still
            return Finding(maps, self.chance.weigh(counts.up_to(self.noise_bound), maps))
        return Finding(maps, self.chance.weigh(counts, maps, self.most_by_chance))

    def narrow(self, pairs: ColumnPairs, maps: Maps) -> Maps:
        """Fit again and again with weights that fall with the residual, ever more sharply (Geman and McClure).

        So wrong pairs lose their say little by little, before it is known how far off a pair must be to be one. Maps
        that may shrink are left as they are: with little say for far pairs they might bring all points to one place.
        """
        if self.model.name in ("similarity", "affine") or pairs.is_wide:
            return maps
        return pairs.refit(self.model, maps, np.inf, 1 / (_NARROWING * pairs.spread) ** 2)

    def refine(self, pairs: ColumnPairs, maps: Maps) -> Finding:
        """Fit again to the pairs within the bound for as long as the evidence grows."""
        found = self.weigh(pairs, maps)
        for _ in range(_MOST_ROUNDS):
            fitted, n_within = pairs.fit_near(self.model, found.map, found.evidence.bound)
            if n_within < self.model.fewest_pairs:
                break
            better = self.weigh(pairs, fitted)
            gain = better.evidence.surprise - found.evidence.surprise
            if gain > 0:
                found = better
            if gain <= _SETTLED * found.evidence.surprise:
                break
        return found

    def breadth(self, pairs: ColumnPairs, found: Finding) -> float:
        """How surprising the support is if all pairs in one place, of twice the bound, count as one."""
        _, n_places = self.support_and_places(pairs, found)
        return self.chance.breadth(n_places, pairs.n_pairs, found.map, found.evidence.bound)

    def support_and_places(self, pairs: ColumnPairs, found: Finding) -> tuple[int, int]:
        """How many pairs support the map, and in how many places they lie, on the side where those are fewer."""
        bound, stretch = found.evidence.bound, float(found.map.stretch[0])
        near = pairs.take(np.flatnonzero(pairs.squared_residuals(found.map) <= bound**2))
        in_x = places(near.x, 2 * bound / stretch) if stretch > 0 else 1
        return near.n_pairs, min(in_x, places(near.y, 2 * bound))

    def polish(self, pairs: ColumnPairs, found: Finding) -> Maps:
        """Weigh near pairs more than far ones (Geman and McClure): nearer to the truth than all or nothing."""
        maps, bound = found.map, found.evidence.bound
        nearby, step = pairs, 1
        in_vain = (1 - found.evidence.inlier_fraction) * pairs.n_pairs
        if in_vain > _POLISHED_ON or pairs.n_pairs > 2 * _POLISHED_ON:
            near = np.flatnonzero(pairs.squared_residuals(maps) <= (NEAR * bound) ** 2)
            step = max(1, near.size // _POLISHED_ON)
            nearby = pairs.take(near[::step])
        reach, sharpness = fall_off(bound)
        maps = nearby.refit(self.model, maps, reach, np.full(_MOST_ROUNDS, sharpness), _STEADY)
        for _ in range(_LAST_ROUNDS if step > 1 else 0):
            maps, _ = pairs.fit_near(self.model, maps, reach, sharpness)
        return maps


def fall_off(bound: float) -> tuple[float, float]:
    """Reach and sharpness of a fit whose weights are `closeness`."""
    return NEAR * bound, 1 / max((_SCALE * bound) ** 2, np.finfo(np.float64).tiny)


def closeness(squared: FloatArray, bound: float) -> FloatArray:
    """Weights that fall with the residual: a quarter at half the bound, 0 beyond three bounds."""
    return np.where(squared <= (NEAR * bound) ** 2, 1 / (1 + squared / (_SCALE * bound) ** 2) ** 2, 0.0)


def closeness_slope(squared: FloatArray, bound: float) -> FloatArray:
    """Derivative of `closeness` by the squared residual."""
    unit = (_SCALE * bound) ** 2
    return np.where(squared <= (NEAR * bound) ** 2, -2 / unit / (1 + squared / unit) ** 3, 0.0)
