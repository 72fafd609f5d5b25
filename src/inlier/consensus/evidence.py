"""How surely the pairs agree on a map beyond chance, and up to which residual: one scan for both.

For a map with residuals e_i, let k(e) be the number of pairs with e_i <= e, and p(e) the share of *re-paired*
residuals below e. Were all pairs wrong, k(e) would be binomial with rate p(e). The scan looks for the e at which the
support is least likely, (n - s) KL((k - s)/(n - s) || a p0(e)) at its largest: that is the noise bound that nobody
gave. There s pairs determine a map and prove nothing, and the factor a is a caution: real wrong matches are not quite
as independent as re-pairings. A little of the same beside p(e) itself is added, which decides where p0 explains all.

p0 bounds the p(e) of any map. Were the partners of all points drawn at random, a map T would bring x_i within e of y_j
with a chance of about v e^d int f_TX f_Y, the overlap of the two densities, v e^d the volume of a ball. By Cauchy and
Schwarz that is at most

    p0(e) = sqrt( v e^d int f_TX^2  v e^d int f_Y^2 ) = sqrt( P(|T x_i - T x_j| <= e) P(|y_i - y_j| <= e) ),

whatever T is. Real wrong matches are not drawn at random: many of them join one spot here to one spot there. A map that
brings only those spots together has little overlap, so its own p(e) is small and its support seems a wonder. Measured
by p0 it is not. For the same reason support also counts by the places where it is found, rather than by pairs.

But the map was looked for: any s pairs that determine one fit it, and chance offers as many maps as there are sets of s
pairs that fulfil its c constraints, C(n, s) q(2e)^c, with q(t) the share of re-paired pairs of pairs whose distances
differ by no more than t. So the expected number of maps that chance would support as well is about

    false alarms = C(n, s) q(2e)^c P(Binomial(n - s, p(e)) >= k - s),

the number of false alarms (NFA) in the sense of Desolneux, Moisan and Morel. As p(e) is counted in a sample of m
re-pairings, the logarithm of that chance is raised by how much less a likelihood-ratio test of two samples, of n and of
m, says than one with a known rate: n KL(k/n || p) - n KL(k/n || t) - m KL(p || t), t = (k + p m) / (n + m).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betainc, gammaln, rel_entr

from inlier._typing import Array, FloatArray
from inlier.consensus._kernels_pairs import CAUTION, TIE_BREAK, best_bound, divergence
from inlier.consensus._kernels_pairs import shares_within as write_shares_within
from inlier.consensus.pairs import ColumnPairs, ResidualCounts
from inlier.rows.null_pairs import point_numbers
from inlier.transforms.least_squares import MapModel, Maps, identity

MOST_FALSE_ALARMS = 1e-3  # expected among wrong pairs, for a finding to count
_COARSE = 0.05  # share of re-pairings within the bound
_FEW, _SOME = 20, 100  # counts between which a density is read off and continued downwards
_MOST_NUMBERED = 52  # bits of the number of cubes that can be numbered one by one without rounding
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Evidence:
    """What speaks for a map."""

    # logarithm of the expected number of maps that would find as much support among wrong pairs (NFA)
    log_false_alarms: float
    # how unlikely the support is for this map alone, as a logarithm, with some caution: what maps are compared by
    score: float
    bound: float  # residual up to which pairs support the map
    n_supporting: int  # pairs with residuals up to the bound
    by_chance: float  # share of re-paired residuals up to the bound
    n_pairs: int  # number of pairs looked at

    @property
    def p_value(self) -> float:
        """Chance, at most, of such a map where all pairs are wrong: Markov's bound from the false alarms."""
        return math.exp(min(self.log_false_alarms, 0.0))

    @property
    def is_significant(self) -> bool:
        """Whether chance would hardly ever do as well."""
        return self.log_false_alarms <= math.log(MOST_FALSE_ALARMS)

    @property
    def is_coarse(self) -> bool:
        """Whether so many wrong pairs lie within the bound that no single pair can be relied on for being there."""
        return self.by_chance > _COARSE

    @property
    def inlier_fraction(self) -> float:
        """Share of supporting pairs that chance does not explain."""
        if self.by_chance >= 1:
            return 0.0
        return max(0.0, (self.n_supporting / self.n_pairs - self.by_chance) / (1 - self.by_chance))


class Chance:
    """What wrong pairs do: how often distances agree, and how much a map can bring together.

    ``disagreements`` gives |dist(x_i, x_j) - dist(y_k, y_l)| of re-paired pairs of pairs, when asked. p0 is counted
    from a sample of the pairs in random order, by at least so many ``neighbours`` (pairs of its points); it is 0
    between different dimensions, which have no common density.
    """

    def __init__(
        self, model: MapModel, disagreements: Callable[[], FloatArray], pairs: ColumnPairs, neighbours: int
    ) -> None:
        self._model, self._disagreements = model, disagreements
        self._sides = None
        self._known: dict[tuple[float, int, float], FloatArray] = {}
        if len(pairs.x) == len(pairs.y):
            self._sides = tuple(_log_shares(side, neighbours) for side in pairs.sides)

    def log_number_of_maps(self, n_pairs: int, bound: float) -> float:
        """log C(n, s) q(2 bound)^c: how many maps wrong pairs might suggest."""
        by_chance = self._disagreements()
        log_share = math.log((np.count_nonzero(by_chance <= 2 * bound) + 1) / (by_chance.size + 1))
        log_sets = _log_sets(n_pairs, self._model.fewest_pairs)
        return max(log_sets + self._model.constraints * log_share, 0.0)

    def most_by_chance(self, bounds: FloatArray, stretch: float | FloatArray) -> FloatArray:
        """p0: the largest share of re-pairings that maps which lengthen by ``stretch`` may bring within the bounds."""
        if self._sides is None:
            return np.zeros(np.shape(bounds))
        log_bounds, log_stretch = np.log(np.maximum(bounds, _TINY)), np.log(np.maximum(stretch, _TINY))
        of_x, of_y = self._sides
        return np.exp((np.interp(log_bounds - log_stretch, *of_x) + np.interp(log_bounds, *of_y)) / 2)

    def _most_at(self, bounds: FloatArray, stretch: float) -> FloatArray:
        """The same; bounds are those of every map, but for another unit."""
        key = float(bounds[0]), bounds.size, stretch
        if key not in self._known:
            self._known[key] = self.most_by_chance(bounds, stretch)
        return self._known[key]

    def weigh(self, counts: ResidualCounts, maps: Maps, most_by_chance: float = 1.0) -> Evidence:
        """Scan the residuals for the bound with the strongest evidence, among those that chance seldom meets."""
        n, s, total = counts.n_pairs, self._model.fewest_pairs, counts.n_re_pairings  # s or fewer prove nothing
        own = shares_within(counts.bounds, counts.re_pairings, total, self._model.dimension)
        most = self._most_at(counts.bounds, self._stretch(maps))
        best, score = best_bound(counts.pairs, own, most, s, n, most_by_chance)
        bound, supporting, by_chance = float(counts.bounds[best]), int(counts.pairs[best]), float(own[best])
        # P(binomial >= support)
        tail = betainc(supporting - s, n - supporting + 1, by_chance) if supporting > s else 1.0
        of_known_rate, of_estimate = _one_and_two_sample_ratios(supporting - s, n - s, by_chance, total)
        log_chance = math.log(tail) if tail > 0 else -of_known_rate
        # The rate p(e) is an estimate, and of many maps one is found for which it happens to be low.
        log_chance += of_known_rate - of_estimate
        log_alarms = _log_sets(n, s) + log_chance
        if math.exp(min(log_alarms, 0.0)) > 0:  # else the p-value is 0 even if any s pairs suggested a map
            log_alarms = self.log_number_of_maps(n, bound) + log_chance
        return Evidence(log_alarms, score, bound, supporting, by_chance, n)

    def score(
        self, support: Array, n_pairs: int, own: FloatArray, bounds: FloatArray, stretch: float | FloatArray
    ) -> FloatArray:
        """How unlikely so much support within these bounds is; ``own`` is what chance does for the map itself."""
        s, most = self._model.fewest_pairs, self.most_by_chance(bounds, stretch)
        rates = CAUTION * np.stack([np.maximum(own, most), own])
        beside_most, beside_own = log_likelihood_ratio(support - s, n_pairs - s, rates)
        score: FloatArray = beside_most + TIE_BREAK * beside_own
        return score

    def place_score(self, n_places: int, n_pairs: int, maps: Maps, bound: float) -> float:
        """How unlikely it is to find support in so many places, all pairs of a place counted as one."""
        s, by_chance = self._model.fewest_pairs, self.most_by_chance(np.array(bound), self._stretch(maps))
        return float(log_likelihood_ratio(n_places - s, n_pairs - s, by_chance))

    def _stretch(self, maps: Maps) -> float:
        """By how much the first map lengthens."""
        return float(maps.stretch[0]) if self._model.may_stretch else 1.0


def log_likelihood_ratio(found: Array | float, n: int, p: FloatArray | float) -> FloatArray:
    """n KL(found / n || p) where there are more than p n, else 0."""
    share = np.minimum(np.maximum(found / max(n, 1), 0.0), 1.0)
    p = np.minimum(np.maximum(p, 1e-15), 1 - 1e-12)  # nothing is impossible, and nothing sure
    divergence = rel_entr(share, p) + rel_entr(1 - share, 1 - p)
    return np.where(share > p, max(n, 0) * divergence, 0.0)


def _one_and_two_sample_ratios(found: int, n: int, p: float, m: int) -> tuple[float, float]:
    """n KL(found / n || p), and n KL(found / n || t) + m KL(p || t), if p is the share in a sample of m.

    There t is the share of both together. So many fewer in the sample may be chance as well; where m is much larger
    than n, it makes no difference.
    """
    t, share = (found + p * m) / max(n + m, 1), max(found, 0) / max(n, 1)
    known, beside = (max(n, 0) * divergence(share, rate) for rate in (p, t))
    return known, beside + m * divergence(1 - p, 1 - t) if beside > 0 else 0.0  # KL(p || t) = KL(1 - p || 1 - t)


def shares_within(bounds: FloatArray, counts: Array, total: int, dimension: int) -> FloatArray:
    """counts / total; where hardly any were counted, a power of the bound, and never less than could be seen."""
    shares = np.empty(counts.size)
    write_shares_within(bounds, counts, total, dimension, _FEW, _SOME, shares)
    return shares


def most_within(counts: ResidualCounts, by_chance: float) -> float:
    """Share of pairs, at most, within any bound that no larger share of re-pairings meets; known before `weigh`."""
    # Where fewer were counted, the share of re-pairings is an extrapolation.
    n_seldom = int(counts.re_pairings.searchsorted(max(_FEW, by_chance * (counts.n_re_pairings + 1))))
    return int(counts.pairs[n_seldom - 1]) / counts.n_pairs if n_seldom else 0.0


def _log_shares(side: ColumnPairs, neighbours: int) -> tuple[FloatArray, FloatArray]:
    """One side's part of p0: logarithms of distances, and of the share of pairs of points no farther apart."""
    bounds, counts = side.count_re_paired(identity(len(side.x)), neighbours)
    return np.log(bounds), np.log(shares_within(bounds, counts, int(counts[-1]), len(side.x)))


def count_places(points: FloatArray, side: float) -> int:
    """How many cubes of this side hold some of the points (columns)."""
    if not points.shape[1] or side <= 0:
        return 0
    cubes = np.floor((points - points.min(axis=1, keepdims=True)) / side)
    sizes = cubes.max(axis=1) + 1
    if np.log2(sizes).sum() > _MOST_NUMBERED:
        return int(point_numbers(cubes.T).max()) + 1
    numbers = np.sort((np.cumprod(sizes) / sizes) @ cubes)
    return 1 + int(np.count_nonzero(numbers[1:] != numbers[:-1]))


@lru_cache
def _log_sets(n: int, s: int) -> float:
    """log C(n, s)."""
    return float(gammaln(n + 1) - gammaln(s + 1) - gammaln(max(n - s, 0) + 1))
