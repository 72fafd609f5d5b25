"""The unit of evidence of a motion: a place, never a row.

A surface on a surface, a file of few distinct points, a patch taken for another patch: many pairs may say one and the
same thing. So space is cut into cells two noise bounds wide, and pairs in the same cell on both sides count once. The
support of a map is the number of cells that its supporters occupy, on the side where they are fewer.

Were all pairs wrong, a place would support a map that was not made for it with the chance p that re-paired places have,
and wrong places suggest C(n, s) q^c maps, as in `evidence`. So of n places k support one of them in

    false alarms = C(n, s) q(2e)^c P(Binomial(n - s, p(e)) >= k - s)

maps. It is 1 where no more places agree than it takes to fix the map.

Where neighbours here are matched to neighbours there (`clumps`), places are not quite independent either: floors lie on
floors, edges on edges. Such evidence counts a fifth (`benchmarks/places.py`), and bounds finer than a share of
the length up to which mistakes come together say nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import betainc, gammaln

from inlier._typing import FloatArray
from inlier.consensus.evidence import MOST_FALSE_ALARMS, cell_numbers, count_places
from inlier.consensus.pairs import ColumnPairs
from inlier.transforms.least_squares import MapModel, Maps

_RE_PAIRINGS = 40_000  # that chances are counted from
_ENOUGH = 500  # supporting pairs of a sample, beside which others need not be looked at
_IN_CLUMPS = 0.2  # of the evidence of places whose neighbours are matched to neighbours
_BOUNDS_IN_CLUMPS = 0.15 * 2.0 ** np.arange(0.0, 1.6, 0.5)  # of the length up to which mistakes come together


@dataclass(frozen=True, eq=False)
class Support:
    """What places say of a map."""

    map: Maps
    bound: float
    n_places: int  # that support it
    n_pairs: int  # that lie in them
    log_p_value: float  # logarithm of a bound on the chance of so many

    @property
    def is_sure(self) -> bool:
        """Whether chance could hardly ever have done it."""
        return self.log_p_value <= math.log(MOST_FALSE_ALARMS)


@dataclass(frozen=True, eq=False)
class Places:
    """Pairs (some thousands, in random order) that stand in places, and what chance does there."""

    model: MapModel
    pairs: ColumnPairs
    length: float = 0.0  # up to which mistakes come together; 0 where they are independent
    noise_bound: float | None = None
    everyone: ColumnPairs | None = None  # all pairs, where ``pairs`` are some of them

    def best_support(self, maps: Maps, bound: float) -> Support:
        """The support of a map within the bound that speaks for it most."""
        bounds = np.array([bound]) if self.length == 0 else self.length * _BOUNDS_IN_CLUMPS
        limit = np.inf if self.noise_bound is None else self.noise_bound
        found = [self._support(maps, one) for one in np.unique(np.minimum(bounds, limit)).tolist()]
        return min(found, key=lambda support: support.log_p_value)

    def _support(self, maps: Maps, bound: float) -> Support:
        side, stretch = 2 * bound, max(float(maps.stretch[0]), 1e-300) if self.model.may_stretch else 1.0
        pairs, near = self.pairs, self.pairs.near(maps, bound)
        if near.n_pairs < _ENOUGH and self.everyone is not None:
            pairs, near = self.everyone, self.everyone.near(maps, bound)
        n_places, log_p_value = min(count_places(near.x, side / stretch), count_places(near.y, side)), 0.0
        if n_places > self.model.fewest_pairs:
            share = self.one_a_place(side, stretch).n_pairs / self.pairs.n_pairs
            by_chance = self.share_by_chance(maps, bound)
            log_p_value = self.log_chance(n_places, math.ceil(pairs.n_pairs * share), by_chance, bound)
        return Support(maps, bound, n_places, near.n_pairs, log_p_value)

    def share_by_chance(self, maps: Maps, bound: float) -> float:
        """How often a map brings re-paired places within the bound."""
        side, stretch = 2 * bound, max(float(maps.stretch[0]), 1e-300) if self.model.may_stretch else 1.0
        again = self.one_a_place(side, stretch).re_paired_residuals(maps, _RE_PAIRINGS)
        return float((np.count_nonzero(again <= bound) + 1) / (again.size + 1))

    def log_chance(self, n_places: int, n: int, by_chance: float, bound: float) -> float:
        """The logarithm of a bound on the chance that so many of n places support one of the maps they suggest."""
        s = self.model.fewest_pairs
        tail = log_binomial_tail(n_places - s, max(n - s, n_places - s), min(by_chance, 1.0))
        return min((_IN_CLUMPS if self.length > 0 else 1.0) * (self._log_maps(n, bound) + tail), 0.0)

    def one_a_place(self, side: float, stretch: float = 1.0) -> ColumnPairs:
        """One of the pairs in each place."""
        if (side, stretch) not in self._known:
            cells = np.concatenate([np.floor(self.pairs.x * (stretch / side)), np.floor(self.pairs.y / side)])
            rows = np.unique(cell_numbers(cells), return_index=True)[1]
            rows.sort()
            self._known[side, stretch] = self.pairs.take(rows)
        return self._known[side, stretch]

    def _log_maps(self, n: int, bound: float) -> float:
        """log C(n, s) q(2 bound)^c."""
        s = self.model.fewest_pairs
        share = (np.searchsorted(self._disagreements, 2 * bound, side="right") + 1) / (self._disagreements.size + 1)
        log_sets = float(gammaln(n + 1) - gammaln(s + 1) - gammaln(max(n - s, 0) + 1))
        return max(log_sets + self.model.constraints * math.log(share), 0.0)

    @cached_property
    def _known(self) -> dict[tuple[float, float], ColumnPairs]:
        """One pair a place, by sides and stretches: one map is asked about after the other."""
        return {}

    @cached_property
    def _disagreements(self) -> FloatArray:
        """By how much distances differ among re-paired pairs of pairs, in rising order."""
        of_x, of_y = self.pairs.neighbour_distances(_RE_PAIRINGS)
        return np.sort(np.abs(of_x - of_y[: of_x.size]))


def log_binomial_tail(k: float, n: int, p: float) -> float:
    """log P(Binomial(n, p) >= k), by Chernoff's bound where that is too small to be written."""
    if k <= n * p:
        return 0.0
    tail = float(betainc(k, n - k + 1, p)) if k < n else p**n
    if tail > 0:
        return math.log(tail)
    share = k / n
    rest = (1 - share) * math.log((1 - share) / (1 - p)) if share < 1 else 0.0
    return -n * (share * math.log(share / p) + rest)
