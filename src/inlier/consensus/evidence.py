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

the number of false alarms in the sense of Desolneux, Moisan and Morel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaln

from inlier.consensus.chance_kernels import shares_within, surprises
from inlier.consensus.crowding import Crowding
from inlier.consensus.models import MapModel, Maps
from inlier.consensus.pairs import ResidualCounts
from inlier.engine.blocks import Array, FloatArray

_CAUTION = 2.0  # times that a wrong match may lie near more often than a re-pairing: features look alike nearby
_WHISPER = 1e-3  # where the most that chance can do explains all, what it does for this map decides


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
        |dist(x_i, x_j) - dist(y_k, y_l)| of re-paired pairs of pairs, sorted.
    crowding : Crowding
        Bounds what any map can bring together by chance.
    """

    def __init__(self, model: MapModel, disagreements: FloatArray, crowding: Crowding) -> None:
        self._model, self._disagreements, self._crowding = model, disagreements, crowding

    def log_number_of_maps(self, n_pairs: int, bound: float) -> float:
        """log C(n, s) q(2 bound)^c: how many maps wrong pairs might suggest."""
        n, s = n_pairs, self._model.fewest_pairs
        size = self._disagreements.size
        agreeing = np.searchsorted(self._disagreements, 2 * bound, side="right")
        log_sets = gammaln(n + 1) - gammaln(s + 1) - gammaln(max(n - s, 0) + 1)
        return max(float(log_sets + self._model.constraints * np.log((agreeing + 1) / (size + 1))), 0.0)

    def weigh(self, counts: ResidualCounts, maps: Maps, most_by_chance: float = 1.0) -> Evidence:
        """Scan the residuals for the bound with the strongest evidence, among those that chance seldom meets."""
        n, s = counts.n_pairs, self._model.fewest_pairs
        p = shares_within(counts.bounds, counts.re_pairings, counts.n_re_pairings, self._model.dimension)
        surprise = self.surprise(counts.pairs, n, p, counts.bounds, maps[0])
        surprise[(p > most_by_chance) & (counts.bounds > counts.bounds[0])] = 0.0
        best = int(np.argmax(surprise))
        bound, supporting = float(counts.bounds[best]), int(counts.pairs[best])
        # P(binomial >= support); s pairs or fewer prove nothing.
        tail = betainc(supporting - s, n - supporting + 1, p[best]) if supporting > s else 1.0
        log_chance = np.log(tail) if tail > 0 else -float(surprise_of(counts.pairs - s, n - s, p)[best])
        log_alarms = self.log_number_of_maps(n, bound) + log_chance
        return Evidence(float(log_alarms), float(surprise[best]), bound, supporting, float(p[best]), n)

    def surprise(
        self, support: Array, n_pairs: int, p: FloatArray, bounds: float | FloatArray, maps: Maps
    ) -> FloatArray:
        """How surprising support is beside the most that chance can do for any map; p is what it does for this one."""
        s = self._model.fewest_pairs  # of the supporting pairs prove nothing: any s pairs have a map that fits them
        beside_most, beside_own = (
            surprise_of(support - s, n_pairs - s, np.minimum(_CAUTION * chance, 1.0))
            for chance in (np.maximum(p, self._most_by_chance(bounds, maps)), p)
        )
        return beside_most + _WHISPER * beside_own

    def breadth(self, n_places: int, n_pairs: int, maps: Maps, bound: float) -> float:
        """How surprising it is to find support in so many places, all pairs of a place counted as one."""
        s = self._model.fewest_pairs
        by_chance = self._most_by_chance(bound, maps[0])
        return float(surprise_of(np.array([n_places - s]), n_pairs - s, by_chance)[0])

    def _most_by_chance(self, bound: float | FloatArray, maps: Maps) -> FloatArray:
        """Largest share of re-pairings that these maps can bring within the bound; 0 where it is not known."""
        of_one_dimension = maps.linear.shape[1] == maps.linear.shape[2]  # else the two sides have no common density
        return self._crowding.most_by_chance(bound, maps.stretch) if of_one_dimension else np.zeros(1)


def surprise_of(found: Array, n: int, p: FloatArray) -> FloatArray:
    """n KL(found / n || p) where there are more than p n, else 0; one p for each, or one for all."""
    shape = np.broadcast_shapes(np.shape(found), np.shape(p))
    return surprises(np.ravel(np.broadcast_to(found, shape)).astype(np.float64), n, np.ravel(p)).reshape(shape)
