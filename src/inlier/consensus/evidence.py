"""How surely the pairs agree on a map beyond chance, and up to which residual: one scan for both.

For a map with residuals e_i, let k(e) be the number of pairs with e_i <= e, and p(e) the share of *re-paired*
residuals below e. Were all pairs wrong, k(e) would be binomial with rate p(e), and by Chernoff's bound at least as
large with a chance of at most exp(-n KL(k/n || p)). But the map was looked for: as many maps could have been found as
there are sets of s pairs that determine one and fulfil its constraints, C(n, s) q(2e)^c, with q(t) the share of
re-paired pairs of pairs whose distances differ by no more than t. So the expected number of maps that chance would
support as well is at most

    false alarms(e) = scales * C(n, s) * q(2e)^c * exp(-(n - s) KL((k - s)/(n - s) || p(e))),

the number of false alarms in the sense of Desolneux, Moisan and Morel. The e that makes it smallest is the noise
bound that nobody gave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, xlogy

from inlier.consensus.models import MapModel
from inlier.engine.blocks import FloatArray

_STEPS_PER_OCTAVE = 4
_OCTAVES = 40  # from the largest residual down
_SCALES = 8.0  # residual bounds that are about independent


@dataclass(frozen=True)
class Evidence:
    """What speaks for a map.

    Attributes
    ----------
    log_false_alarms : float
        Logarithm of the expected number of maps that would find as much support among wrong pairs.
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
        |dist(x_i, x_j) - dist(y_k, y_l)| of re-paired pairs of pairs.
    """

    def __init__(self, model: MapModel, disagreements: FloatArray) -> None:
        self._model, self._disagreements = model, np.sort(disagreements)

    def log_number_of_maps(self, n_pairs: int, bound: FloatArray) -> FloatArray:
        """log C(n, s) q(2 bound)^c: how many maps wrong pairs might suggest."""
        n, s = n_pairs, self._model.fewest_pairs
        size = self._disagreements.size
        agreeing = np.searchsorted(self._disagreements, 2 * bound, side="right")
        log_sets = gammaln(n + 1) - gammaln(s + 1) - gammaln(max(n - s, 0) + 1)
        return np.maximum(log_sets + self._model.constraints * np.log((agreeing + 1) / (size + 1)), 0.0)

    def weigh(self, squared: FloatArray, re_paired: FloatArray, bound: float | None = None) -> Evidence:
        """Scan the residuals (squares of them) for the bound with the strongest evidence, or take the one given."""
        n, s = squared.size, self._model.fewest_pairs
        bounds, found, by_chance = _counts(squared, re_paired) if bound is None else _count(squared, re_paired, bound)
        p = np.minimum((by_chance + 1) / (re_paired.size + 1), 1 - 1e-12)
        share = np.clip((found - s) / max(n - s, 1), 0.0, 1.0)
        divergence = xlogy(share, share / p) + xlogy(1 - share, (1 - share) / (1 - p))
        surprise = np.where(share > p, max(n - s, 0) * divergence, 0.0)
        log_alarms = np.log(_SCALES) + self.log_number_of_maps(n, bounds) - surprise
        best = int(np.argmin(log_alarms))
        return Evidence(float(log_alarms[best]), float(bounds[best]), int(found[best]), float(p[best]), n)


def _counts(squared: FloatArray, re_paired: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bounds, a quarter of an octave apart, and how many residuals of either kind lie within each."""
    largest = max(float(re_paired.max()), float(squared.max()), np.finfo(np.float64).tiny)
    steps = np.arange(_STEPS_PER_OCTAVE * _OCTAVES + 1)
    bounds = np.sqrt(largest) * 2.0 ** ((steps - steps[-1]) / _STEPS_PER_OCTAVE)
    return bounds, _cumulative(squared / largest, steps.size), _cumulative(re_paired / largest, steps.size)


def _cumulative(relative: FloatArray, size: int) -> FloatArray:
    # e <= bound_k  iff  k >= last + steps * log2(e / largest); squares have twice the logarithm
    with np.errstate(divide="ignore"):
        step = np.ceil(size - 1 + (_STEPS_PER_OCTAVE / 2) * np.log2(relative) - 1e-9)
    return np.cumsum(np.bincount(np.clip(step, 0, size - 1).astype(np.intp), minlength=size)).astype(np.float64)


def _count(squared: FloatArray, re_paired: FloatArray, bound: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    within = [np.array([np.count_nonzero(values <= bound**2)], dtype=np.float64) for values in (squared, re_paired)]
    return np.array([bound]), within[0], within[1]
