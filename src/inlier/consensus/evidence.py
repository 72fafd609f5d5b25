"""How surely the pairs agree on a map beyond chance, and up to which residual: one scan for both.

For a map with residuals e_i, let k(e) be the number of pairs with e_i <= e, and p(e) the share of *re-paired*
residuals below e. Were all pairs wrong, k(e) would be binomial with rate p(e). The scan looks for the e at which the
support is most surprising, n KL(k/n || c p(e)) at its largest: that is the noise bound that nobody gave. The factor c
is for real wrong matches, which are not quite as independent as re-pairings.

But the map was looked for: any s pairs that determine one fit it, and chance offers as many maps as there are sets of s
pairs that fulfil its constraints, C(n, s) q(2e)^c, with q(t) the share of re-paired pairs of pairs whose distances
differ by no more than t. So the expected number of maps that chance would support as well is about

    false alarms = C(n, s) q(2e)^c P(Binomial(n - s, p(e)) >= k - s),

the number of false alarms in the sense of Desolneux, Moisan and Morel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaln, xlogy

from inlier.consensus.models import MapModel
from inlier.consensus.pairs import ResidualCounts
from inlier.engine.blocks import Array, FloatArray

_CAUTION = 4.0  # times that a wrong match may lie near more often than a re-pairing: features look alike nearby
_FEW, _SOME = 20, 100  # re-paired residuals between which their density is read off and continued downwards


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


class Chance:
    """What re-paired data do: how often the distances of two of them agree.

    Parameters
    ----------
    model : MapModel
        The maps that are looked for.
    disagreements : ndarray
        |dist(x_i, x_j) - dist(y_k, y_l)| of re-paired pairs of pairs, sorted.
    """

    def __init__(self, model: MapModel, disagreements: FloatArray) -> None:
        self._model, self._disagreements = model, disagreements

    def log_number_of_maps(self, n_pairs: int, bound: float) -> float:
        """log C(n, s) q(2 bound)^c: how many maps wrong pairs might suggest."""
        n, s = n_pairs, self._model.fewest_pairs
        size = self._disagreements.size
        agreeing = np.searchsorted(self._disagreements, 2 * bound, side="right")
        log_sets = gammaln(n + 1) - gammaln(s + 1) - gammaln(max(n - s, 0) + 1)
        return max(float(log_sets + self._model.constraints * np.log((agreeing + 1) / (size + 1))), 0.0)

    def weigh(self, counts: ResidualCounts, most_by_chance: float = 1.0) -> Evidence:
        """Scan the residuals for the bound with the strongest evidence, among those that chance seldom meets."""
        n, s = counts.n_pairs, self._model.fewest_pairs
        p = self._chances(counts)
        # s of the supporting pairs prove nothing: any s pairs have a map that fits them
        surprise = surprise_of(counts.pairs - s, n - s, np.minimum(_CAUTION * p, 1.0))
        surprise[(p > most_by_chance) & (counts.bounds > counts.bounds[0])] = 0.0
        best = int(np.argmax(surprise))
        bound, supporting = float(counts.bounds[best]), int(counts.pairs[best])
        tail = betainc(max(supporting - s, 1), n - max(supporting, s + 1) + 1, p[best])  # P(binomial >= support)
        log_chance = np.log(tail) if tail > 0 else -float(surprise_of(counts.pairs - s, n - s, p)[best])
        log_alarms = self.log_number_of_maps(n, bound) + log_chance
        return Evidence(float(log_alarms), float(surprise[best]), bound, supporting, float(p[best]), n)

    def _chances(self, counts: ResidualCounts) -> FloatArray:
        """Share of re-paired residuals within each bound; where hardly any are, a power of the bound."""
        bounds, count = counts.bounds, counts.re_pairings
        p = (count + 1) / (counts.n_re_pairings + 1)
        few, more = (min(int(np.searchsorted(count, level)), bounds.size - 1) for level in (_FEW, _SOME))
        if few < more:
            rise = np.log2(count[more] / count[few]) / np.log2(bounds[more] / bounds[few])
            power = np.clip(rise, 1.0, self._model.dimension)
            p[:few] = p[few] * (bounds[:few] / bounds[few]) ** power
        return np.maximum(p, 1 / (counts.n_re_pairings + 1))  # and never less than could have been seen


def surprise_of(found: Array, n: int, p: FloatArray) -> FloatArray:
    """n KL(found / n || p) where there are more than p n, else 0."""
    share, p = np.clip(found / max(n, 1), 0.0, 1.0), np.clip(p, 1e-15, 1 - 1e-12)
    divergence = xlogy(share, share / p) + xlogy(1 - share, (1 - share) / (1 - p))
    return np.where(share > p, max(n, 0) * divergence, 0.0)
