"""Tell the pairs that agree tightly from near misses: matches to a neighbouring place, which are no chance either.

Where features look alike nearby, a wrong match often lies a few times farther off than a right one, and far nearer
than a re-pairing. Such near misses agree beyond chance, so that the scan for the bound takes them in. Here, the map
being known, the residuals up to some bounds are explained by three kinds of pairs. In d dimensions, each kind by the
density of the logarithm of its residual r:

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
from dataclasses import dataclass

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.consensus.evidence import shares_within
from inlier.rows.backend import bins_of, count_from

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
_TINY = float(np.finfo(np.float64).tiny)


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
