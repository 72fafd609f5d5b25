"""From a rough map to the one that most pairs support: fit to those within the bound, weigh again, until it settles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier.consensus.evidence import Chance, Evidence
from inlier.consensus.models import MapModel, Maps
from inlier.consensus.pairs import ColumnPairs

_MOST_ROUNDS = 20
_SETTLED = 1e-3  # gain in log false alarms, relative to it, that ends the rounds


@dataclass(frozen=True, eq=False)
class Finding:
    """A map and what speaks for it."""

    map: Maps
    evidence: Evidence

    def beats(self, other: Finding | None) -> bool:
        """Whether chance is the less likely explanation of this one."""
        return other is None or self.evidence.log_false_alarms < other.evidence.log_false_alarms


@dataclass(frozen=True, eq=False)
class Refiner:
    """Weighs maps, and improves them."""

    model: MapModel
    chance: Chance
    noise_bound: float | None
    rng: np.random.RandomState

    def weigh(self, pairs: ColumnPairs, maps: Maps, re_pairings: int = 0) -> Finding:
        """What speaks for this map among these pairs, judged by at least so many re-pairings."""
        squared, re_paired = pairs.squared_residuals(maps), pairs.re_paired(maps, re_pairings, self.rng)
        return Finding(maps, self.chance.weigh(squared, re_paired, self.noise_bound))

    def refine(self, pairs: ColumnPairs, maps: Maps, re_pairings: int = 0) -> Finding:
        """Fit again to the pairs within the bound for as long as the evidence grows."""
        found = self.weigh(pairs, maps, re_pairings)
        for _ in range(_MOST_ROUNDS):
            within = pairs.squared_residuals(found.map) <= found.evidence.bound**2
            if np.count_nonzero(within) < self.model.fewest_pairs:
                break
            better = self.weigh(pairs, pairs.fit(self.model, within), re_pairings)
            gain = found.evidence.log_false_alarms - better.evidence.log_false_alarms
            if gain > 0:
                found = better
            if gain <= _SETTLED * abs(found.evidence.log_false_alarms):
                break
        return found
