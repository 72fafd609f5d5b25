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

*Near misses* are matches to a neighbouring place, which are no chance either; pairs that agree tightly are told from
them. Where features look alike nearby, a wrong match often lies a few times farther off than a right one, and far
nearer than a re-pairing. Such near misses agree beyond chance, so that the scan for the bound takes them in. Here, the
map being known, the residuals up to some bounds are explained by three kinds of pairs. In d dimensions, each kind by
the density of the logarithm of its residual r:

    core           (r/s)^d (1 + r^2 / (v s^2))^(-(v + d)/2)       Student's t in d dimensions, v degrees of freedom
    near misses    (r/b)^d (1 + r^2 / b^2)^(-(1 + d)/2), b = 6 s  Cauchy: a wide component with a tail that hardly ends
    background     as re-pairings have it

Expectation and maximisation (EM) find the shares of the three and s, on a histogram of residuals, so that the time does
not depend on n but for one pass. Near misses are only spoken of where they explain the residuals far better than core
and background do alone: noise with a heavy tail is no near miss, and takes a gain of more than chance to be called so.
The residual up to which a pair is three times as likely core as anything else is the bound that is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betainc, gammaln, rel_entr

from inlier._typing import Array, FloatArray, Mask
from inlier.consensus._kernels_pairs import CAUTION, TIE_BREAK, best_bound, divergence
from inlier.consensus._kernels_pairs import shares_within as write_shares_within
from inlier.consensus.pairs import ColumnPairs, ResidualCounts
from inlier.rows.backend import bins_of, count_from
from inlier.rows.null_pairs import point_numbers
from inlier.transforms.least_squares import MapModel, Maps, identity

MOST_FALSE_ALARMS = 1e-3  # expected among wrong pairs, for a finding to count
_COARSE = 0.05  # share of re-pairings within the bound
_FEW, _SOME = 20, 100  # counts between which a density is read off and continued downwards
_MOST_NUMBERED = 52  # bits of the number of cubes that can be numbered one by one without rounding
_TINY = float(np.finfo(np.float64).tiny)
_DIMENSIONS = (2, 3)  # in which there are neighbouring places; in more, distances hardly differ
_DEGREES_OF_FREEDOM = 10.0  # of the core: noise is rarely quite Gaussian
_WIDTH = 6.0  # of near misses, beside the core's
_ODDS = 3.0  # of core against the others, at the bound: what is hardly more likely core is no tight pair
_WINDOW = 8.0  # bounds up to which residuals are explained
_NARROWEST, _WIDEST = 0.2, 1.0  # of a bound: the core's width, lest it shrink to what a few pairs have in common
_CLEAR_GAIN, _GAIN_A_PAIR = 10.0, 0.04  # in log likelihood, and for each pair of the core: what tails of noise may gain
_DROPPED_BITS = 52 - 3  # of the fraction of a float64: eight bins an octave
_BINS = 10 << 3  # ten octaves below the end of the window; what is smaller counts with the smallest
_MOST_ROUNDS, _SETTLED = 100, 1e-3  # of EM, and the change of shares, and of the width beside itself, that ends it


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
    numbers = np.sort(cell_numbers(np.floor((points - points.min(axis=1, keepdims=True)) / side)))
    return 1 + int(np.count_nonzero(numbers[1:] != numbers[:-1]))


def cell_numbers(cells: FloatArray) -> Array:
    """A number for each cell, which are columns of whole numbers: equal for equal ones."""
    cells = cells - cells.min(axis=1, keepdims=True)
    sizes = cells.max(axis=1) + 1
    if np.log2(sizes).sum() > _MOST_NUMBERED:
        return point_numbers(cells.T)
    numbers: Array = (np.cumprod(sizes) / sizes) @ cells
    return numbers


@lru_cache
def _log_sets(n: int, s: int) -> float:
    """log C(n, s)."""
    return float(gammaln(n + 1) - gammaln(s + 1) - gammaln(max(n - s, 0) + 1))


# ---- near misses


@dataclass(frozen=True)
class NearMisses:
    """Where the core ends and near misses begin."""

    bound: float  # residual up to which a pair is three times as likely core as anything else
    reach: float  # residual up to which, beyond the bound, it is more likely a near miss than chance
    ends: FloatArray  # upper ends of bins
    numbers: FloatArray  # (3, bins): how many pairs of core, near misses and background each is expected to hold

    def among(self, residuals: FloatArray, bound: float) -> Mask:
        """Pairs beyond both bounds that agree better than chance."""
        return (residuals > max(bound, self.bound)) & (residuals <= self.reach)

    def expected_within(self, bound: float) -> FloatArray:
        """How many pairs of each kind lie within this bound; of the core, those beyond what clumped chance gives."""
        starts = np.append(0.0, self.ends)
        return np.array([np.interp(bound, starts, np.append(0.0, np.cumsum(kind))) for kind in self.numbers])

    def doubt(self, residuals: FloatArray) -> FloatArray:
        """Chance that a pair beyond the bound is not of the core; 0 within it, where residuals do not tell."""
        of_bins = 1 - self.numbers[0] / np.maximum(self.numbers.sum(axis=0), _TINY)
        is_beyond = np.append(0.0, self.ends[:-1]) > self.bound  # where bins begin
        of_bins = np.maximum.accumulate(np.where(is_beyond, of_bins, 0.0))
        first = _bin_of(float(self.ends[0])) - 1  # each bin ends where the next one begins
        bins = bins_of(residuals, _DROPPED_BITS) - first
        return np.append(of_bins, 1.0).take(bins, mode="clip")  # beyond the window, surely


@dataclass(frozen=True, eq=False)
class Residuals:
    """A histogram of residuals up to the end of the window, and what chance does there."""

    middle: FloatArray  # of each bin
    ends: FloatArray  # upper ones
    counts: Array  # of pairs
    background: FloatArray  # shares of re-pairings, which add up to 1
    octaves: FloatArray  # widths of the bins, in logarithms
    dimension: int

    @property
    def n_pairs(self) -> int:
        """Within the window."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class Mixture:
    """Core, near misses and background: the core's width, and how many pairs of each kind lie in each bin."""

    width: float
    numbers: FloatArray  # (3, bins)
    log_likelihood: float


def find_near_misses(residuals: FloatArray, re_paired: FloatArray, bound: float, dimension: int) -> NearMisses | None:
    """Separate core and near misses, where there clearly are any.

    Parameters
    ----------
    residuals : ndarray of shape (n,)
        Of all pairs.
    re_paired : ndarray
        Residuals of re-pairings.
    bound : float
        Residual up to which pairs agree beyond chance.
    dimension : int
        Of y.
    """
    if dimension not in _DIMENSIONS or not bound > 0:
        return None
    if _are_too_few(residuals, bound):
        return None
    found = histogram(residuals, re_paired, bound, dimension)
    if not _may_be_any(found, bound):
        return None
    alone, split = fit_mixture(found, bound, near_misses=False), fit_mixture(found, bound)
    core, near, chance = split.numbers
    gain = split.log_likelihood - alone.log_likelihood
    if gain < _CLEAR_GAIN + _GAIN_A_PAIR * core.sum():
        return None
    is_core = core > _ODDS * (near + chance)
    last = int(np.flatnonzero(is_core)[-1]) if is_core.any() else int(np.argmax(core / (core + near + chance)))
    nearer = np.flatnonzero(near > chance)
    reach = found.ends[max(last, int(nearer[-1]))] if nearer.size else found.ends[last]
    bound = np.nextafter(found.ends[last], 0.0)  # a bin's upper end belongs to the next
    return NearMisses(float(bound), float(reach), found.ends, split.numbers)


def histogram(residuals: FloatArray, re_paired: FloatArray, bound: float, dimension: int) -> Residuals:
    """Count both by the first bits of their floating-point form: no logarithm is taken."""
    last = _bin_of(_WINDOW * bound)
    first = last - _BINS + 1
    ends = (np.arange(first, last + 2) << _DROPPED_BITS).view(np.float64)
    counts, chance = (
        count_from(first, bins_of(values, _DROPPED_BITS), _BINS)[:_BINS] for values in (residuals, re_paired)
    )
    shares = shares_within(ends[1:], np.cumsum(chance), re_paired.size, dimension)
    background = np.maximum(np.diff(shares, prepend=0.0), _TINY)
    middle, octaves = np.sqrt(ends[1:] * ends[:-1]), np.log(ends[1:] / ends[:-1])
    return Residuals(middle, ends[1:], counts, background / background.sum(), octaves, dimension)


def _bin_of(value: float) -> int:
    return int(np.float64(value).view(np.int64) >> _DROPPED_BITS)


def _are_too_few(residuals: FloatArray, bound: float) -> bool:
    """Whether `_may_be_any` says no whatever chance does: it counts by bins, of which one may hold the bound."""
    wider = 1 + 2.0 ** (_DROPPED_BITS - 52)  # no bin ends beyond so many times its beginning
    n_within = np.count_nonzero(residuals < bound / wider)
    n_beyond = np.count_nonzero(residuals < _WINDOW / 2 * bound * wider) - n_within
    return bool(n_beyond <= _CLEAR_GAIN / 2 + _GAIN_A_PAIR * n_within)


def _may_be_any(found: Residuals, bound: float) -> bool:
    """Whether so many pairs lie beyond the bound, and nearer than chance has them, that the gain could be clear."""
    beyond = found.ends > bound
    far = found.ends > _WINDOW / 2 * bound  # where chance has most of its pairs
    chance = found.counts[far].sum() * found.background / max(found.background[far].sum(), _TINY)
    excess = (found.counts - chance)[beyond & ~far].sum()
    return bool(excess > _CLEAR_GAIN / 2 + _GAIN_A_PAIR * found.counts[~beyond].sum())


def fit_mixture(found: Residuals, bound: float, near_misses: bool = True) -> Mixture:
    """EM for the shares of the kinds of pairs, and for the width of the core."""
    d, v, squared = found.dimension, _DEGREES_OF_FREEDOM, found.middle**2
    n, counts = max(found.n_pairs, 1), found.counts.astype(np.float64)
    width, shares = bound / 3, np.array([1.0, float(near_misses), 1.0]) / (2 + near_misses)
    kinds = np.stack([found.background] * 3)
    for _ in range(_MOST_ROUNDS):
        u = squared / width**2
        volumes = found.octaves * u ** (d / 2)
        kinds[0] = volumes * (1 + u / v) ** (-(v + d) / 2)
        if near_misses:
            kinds[1] = volumes * (1 + u / _WIDTH**2) ** (-(1 + d) / 2)
        numbers = (shares / kinds.sum(axis=1))[:, None] * kinds
        total = np.maximum(numbers.sum(axis=0), _TINY)
        expected = numbers * (counts / total)
        moved, shares = shares, expected.sum(axis=1) / n
        # The core's width is the root mean square of its residuals a dimension, far ones counting less.
        spread = float(expected[0] @ (squared * (v + d) / (v + u)) / max(d * shares[0] * n, _TINY))
        before, width = width, min(max(math.sqrt(spread), _NARROWEST * bound), _WIDEST * bound)
        if abs(width - before) < _SETTLED * width and np.abs(shares - moved).max() < _SETTLED:
            break
    return Mixture(before, n * numbers, float(counts @ np.log(total)))
