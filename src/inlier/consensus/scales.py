"""At which scale of space, and to which tolerance, distances on the two sides are compared; and whose.

A tolerance is fixed by how often chance agrees to it, so that it needs no unit. The scale is 1, except for
similarities: there the ratio |y_i - y_j| / |x_i - x_j| of two real pairs is the scale, and ratios that are more
frequent among the pairs than among re-pairings tell which scales are worth a try.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.ndimage import uniform_filter1d

from inlier._typing import FloatArray
from inlier.consensus._kernels_columns import disagreements_along, distances_between
from inlier.consensus.agreement import excess_of_friends
from inlier.consensus.draws import Draws
from inlier.consensus.models import MapModel
from inlier.consensus.pairs import ColumnPairs

_DENSITIES = (0.05, 0.1, 0.02), (0.2, 0.007, 0.002)  # of chance agreements; the usual ones are tried first
_SHARES_OF_BOUND = np.array([1.0, 0.5])  # tolerances that are tried before, where a noise bound is known
_PAIRS_OF_PAIRS = 4_000
_FEW_ROUNDS = 5  # through the pairs: up to which neighbours are as good as pairs that are drawn
_RATIOS = 200_000
_RATIO_BINS = np.linspace(-4.0, 4.0, 401)  # of the logarithm, about the ratio of the spreads
_WIDTHS = (1, 3, 9)  # bins over which an excess is summed: noise spreads the ratios of real pairs
_MOST_SCALES = 3


class Scales:
    """The scales to be tried, each with its tolerances; ``disagreements`` are those of re-pairings.

    Parameters
    ----------
    model : MapModel
        The maps that are looked for.
    pairs : ColumnPairs
        A sample of the pairs, in random order.
    noise_bound : float or None
        Largest residual of a real pair, if known.
    draws : Draws
        Draws pairs of pairs.
    """

    def __init__(self, model: MapModel, pairs: ColumnPairs, noise_bound: float | None, draws: Draws) -> None:
        self._pairs, self._noise_bound, self._draws = pairs, noise_bound, draws
        of_fixed_scale = model.keeps_distances and model.name != "similarity"
        self._typical = 1.0 if of_fixed_scale else pairs.spread / _spread(pairs.x)
        self._scales = [1.0] if of_fixed_scale else self._frequent_ratios()
        self.disagreements = self._disagreements(self._typical)

    def __iter__(self) -> Iterator[tuple[bool, float, FloatArray]]:
        """Yield scales with some tolerances each, and whether they are likely; those come first."""
        if self._noise_bound is not None:
            yield from ((True, scale, self._noise_bound * _SHARES_OF_BOUND) for scale in self._scales)
        most = np.inf if self._noise_bound is None else 2 * self._noise_bound  # by which distances can differ
        by_chance = {s: self.disagreements if s == self._typical else self._disagreements(s) for s in self._scales}
        for densities in _DENSITIES:
            for scale in self._scales:
                ranks = (np.array(densities) * _PAIRS_OF_PAIRS).astype(int)
                tolerances = np.partition(by_chance[scale], ranks)[ranks]
                if (tolerances <= most).any():
                    yield densities is _DENSITIES[0], scale, tolerances[tolerances <= most]

    def _disagreements(self, scale: float) -> FloatArray:
        """| scale |x_i - x_j| - |y_k - y_l| | of four pairs at random: what chance does."""
        rounds = -(-_PAIRS_OF_PAIRS // self._pairs.n_pairs)
        if rounds <= _FEW_ROUNDS:  # they come in random order
            found: FloatArray = disagreements_along(self._pairs.x, self._pairs.y, scale, rounds)
            return found[:_PAIRS_OF_PAIRS]
        x, y = self._distances(_PAIRS_OF_PAIRS, paired=False)
        return np.abs(scale * x - y)

    def _distances(self, size: int, paired: bool) -> tuple[FloatArray, FloatArray]:
        i, j, k, m = self._draws.numbers(self._pairs.n_pairs, 4 * size).reshape(4, size)
        k, m = (i, j) if paired else (k, m)
        x, y = self._pairs.x, self._pairs.y
        return distances_between(x, i, j), distances_between(y, k, m)

    def _frequent_ratios(self) -> list[float]:
        """Scales at which ratios of distances are more frequent than among re-pairings, the most striking first."""
        found, by_chance = (self._ratio_histogram(paired) for paired in (True, False))
        excess = np.max(
            [
                (uniform_filter1d(found, w) - uniform_filter1d(by_chance, w))
                / np.sqrt(uniform_filter1d(by_chance, w) + 1)
                * np.sqrt(w)
                for w in _WIDTHS
            ],
            axis=0,
        )
        middles = (_RATIO_BINS[1:] + _RATIO_BINS[:-1]) / 2
        scales: list[float] = []
        for _ in range(_MOST_SCALES):
            peak = int(np.argmax(excess))
            scales.append(float(self._typical * np.exp(middles[peak])))
            excess[max(0, peak - max(_WIDTHS)) : peak + max(_WIDTHS) + 1] = -np.inf
        return scales

    def _ratio_histogram(self, paired: bool) -> FloatArray:
        x, y = self._distances(_RATIOS, paired)
        usable = (x > 0) & (y > 0)
        ratio = np.log(y[usable] / x[usable] / self._typical)
        return np.histogram(ratio, _RATIO_BINS)[0].astype(np.float64)


def _spread(points: FloatArray) -> float:
    """Root mean square about the mean; 1 where they are all one."""
    return float(np.sqrt(np.sum(np.var(points, axis=1)))) or 1.0


def closest_friends(
    sample: ColumnPairs,
    scale: float,
    tolerances: FloatArray,
    model: MapModel,
    most: int,
    draws: Draws,
) -> Iterator[tuple[ColumnPairs, FloatArray]]:
    """Yield the pairs worth comparing, and to which tolerances: all, or those with the most friends beyond chance."""
    if sample.n_pairs <= most and model.has_shift:
        yield sample, tolerances
        return
    x = scale * sample.x
    excess = excess_of_friends(x, sample.y, tolerances, draws.numpy) if sample.n_pairs > most else None
    lengths = np.abs(np.linalg.norm(x, axis=0) - np.linalg.norm(sample.y, axis=0))
    for column, tolerance in enumerate(tolerances):
        rank = np.zeros(sample.n_pairs) if excess is None else -excess[:, column]
        # A rotation about the origin keeps lengths too.
        possible = np.arange(rank.size) if model.has_shift else np.flatnonzero(lengths <= tolerance)
        chosen = possible[np.argsort(rank[possible], kind="stable")[:most]]
        yield sample.take(chosen), tolerances[column : column + 1]
