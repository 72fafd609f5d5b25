"""How surely the pairs agree on a map beyond chance, and up to which residual: one scan for both.

For a map with residuals e_i, let k(e) be the number of pairs with e_i <= e, and p(e) the share of *re-paired*
residuals below e. Were all pairs wrong, k(e) would be binomial with rate p(e). The scan looks for the e at which the
support is most surprising, (n - s) KL((k - s)/(n - s) || a p0(e)) at its largest: that is the noise bound that nobody
gave. There s pairs determine a map and prove nothing, p0 bounds the p(e) of any map (see `crowding`), and the factor a
is another caution: real wrong matches are not quite as independent as re-pairings. A little of the same beside p(e)
itself is added, which decides where p0 explains all.

But the map was looked for: any s pairs that determine one fit it, and chance offers as many maps as there are sets of s
pairs that fulfil its c constraints, C(n, s) q(2e)^c, with q(t) the share of re-paired pairs of pairs whose distances
differ by no more than t. So the expected number of maps that chance would support as well is about

    false alarms = C(n, s) q(2e)^c P(Binomial(n - s, p(e)) >= k - s),

the number of false alarms in the sense of Desolneux, Moisan and Morel. As p(e) is counted in a sample of m re-pairings,
the logarithm of that chance is raised by how much less a likelihood-ratio test of two samples, of n and of m, says than
one with a known rate: n KL(k/n || p) - n KL(k/n || t) - m KL(p || t), t = (k + p m) / (n + m).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from scipy.special import betainc, gammaln

from inlier._typing import Array, FloatArray
from inlier.consensus._kernels_chance import count_up_to, scan, surprise_beside, surprise_of, surprise_table
from inlier.consensus.crowding import Crowding
from inlier.consensus.models import MapModel, Maps
from inlier.consensus.pairs import ResidualCounts

_MOST_FALSE_ALARMS = 1e-3  # expected among wrong pairs, for a finding to count
_COARSE = 0.05  # share of re-pairings within the bound


@dataclass(frozen=True)
class Evidence:
    """What speaks for a map.

    Attributes
    ----------
    log_false_alarms : float
        Logarithm of the expected number of maps that would find as much support among wrong pairs.
    surprise : float
        How unlikely the support is for this map alone, as a logarithm, with some caution: what maps are compared by.
    bound : float
        Residual up to which pairs support the map.
    n_supporting : int
        Pairs with residuals up to the bound.
    by_chance : float
        Share of re-paired residuals up to the bound.
    n_pairs : int
        Number of pairs looked at.
    """

    log_false_alarms: float
    surprise: float
    bound: float
    n_supporting: int
    by_chance: float
    n_pairs: int

    @property
    def is_significant(self) -> bool:
        """Whether chance would hardly ever do as well."""
        return self.log_false_alarms <= math.log(_MOST_FALSE_ALARMS)

    @property
    def is_coarse(self) -> bool:
        """Whether so many wrong pairs lie within the bound that no single pair can be relied on for being there."""
        return self.by_chance > _COARSE

    @property
    def inlier_fraction(self) -> float:
        """Share of supporting pairs that chance does not explain."""
        share = self.n_supporting / self.n_pairs
        return max(0.0, (share - self.by_chance) / (1 - min(self.by_chance, 0.999)))

    @property
    def surprise_per_pair(self) -> float:
        """To compare what a sample says with what all pairs say."""
        return self.surprise / self.n_pairs


class Chance:
    """What re-paired data do: how often distances agree, and how much a map can bring together.

    Parameters
    ----------
    model : MapModel
        The maps that are looked for.
    disagreements : ndarray
        |dist(x_i, x_j) - dist(y_k, y_l)| of re-paired pairs of pairs.
    crowding : Crowding
        Bounds what any map can bring together by chance.
    """

    def __init__(self, model: MapModel, disagreements: FloatArray, crowding: Crowding) -> None:
        self._model, self._disagreements, self._crowding = model, disagreements, crowding

    def log_number_of_maps(self, n_pairs: int, bound: float) -> float:
        """log C(n, s) q(2 bound)^c: how many maps wrong pairs might suggest."""
        agreeing = count_up_to(self._disagreements, 2 * bound)
        log_share = math.log((agreeing + 1) / (self._disagreements.size + 1))
        log_sets = _log_sets(n_pairs, self._model.fewest_pairs)
        return max(float(log_sets + self._model.constraints * log_share), 0.0)

    def weigh(self, counts: ResidualCounts, maps: Maps, most_by_chance: float = 1.0) -> Evidence:
        """Scan the residuals for the bound with the strongest evidence, among those that chance seldom meets."""
        n, s = counts.n_pairs, self._model.fewest_pairs  # s pairs or fewer prove nothing: they have a map that fits
        of_x, of_y, stretch = self._crowding.of_x, self._crowding.of_y, self._stretch(maps)
        d, total = self._model.dimension, counts.n_re_pairings
        bound, supporting, by_chance, surprise = scan(
            counts.bounds, counts.pairs, counts.re_pairings, total, s, n, d, most_by_chance, stretch, of_x, of_y
        )
        # P(binomial >= support)
        tail = betainc(supporting - s, n - supporting + 1, by_chance) if supporting > s else 1.0
        surprise_at_p = surprise_of(supporting - s, n - s, by_chance)
        log_chance = math.log(tail) if tail > 0 else -surprise_at_p
        # The rate p(e) is an estimate, and of many maps one is found for which it happens to be low.
        log_chance += surprise_at_p - surprise_beside(supporting - s, n - s, by_chance, total)
        log_alarms = self.log_number_of_maps(n, bound) + log_chance
        return Evidence(float(log_alarms), surprise, bound, supporting, by_chance, n)

    def surprise(self, support: Array, n_pairs: int, p: FloatArray, bounds: FloatArray, maps: Maps) -> FloatArray:
        """How surprising the support of each map (columns) is within each of its bounds (rows).

        Beside the most that chance can do for any map; p is what it does for this one.
        """
        s, of_x, of_y = self._model.fewest_pairs, self._crowding.of_x, self._crowding.of_y
        table: FloatArray = surprise_table(support - s, n_pairs - s, p, bounds, maps.stretch, of_x, of_y)
        return table

    def breadth(self, n_places: int, n_pairs: int, maps: Maps, bound: float) -> float:
        """How surprising it is to find support in so many places, all pairs of a place counted as one."""
        s, by_chance = self._model.fewest_pairs, self._crowding.most_by_chance(bound, self._stretch(maps))
        return float(surprise_of(n_places - s, n_pairs - s, by_chance))

    def _stretch(self, maps: Maps) -> float:
        """By how much the first map lengthens."""
        return float(maps.stretch[0]) if self._model.may_stretch else 1.0


@lru_cache
def _log_sets(n: int, s: int) -> float:
    """log C(n, s)."""
    return float(gammaln(n + 1) - gammaln(s + 1) - gammaln(max(n - s, 0) + 1))
