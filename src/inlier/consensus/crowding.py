"""How near to each other the points of one side lie, and what that says about chance: no map can do better.

Were the partners of all points drawn at random, a map T would bring x_i within e of y_j with a chance of about
v e^d int f_TX f_Y, the overlap of the two densities, v e^d the volume of a ball. By Cauchy and Schwarz that is at most

    sqrt( v e^d int f_TX^2  v e^d int f_Y^2 ) = sqrt( P(|T x_i - T x_j| <= e) P(|y_i - y_j| <= e) ),

whatever T is. Real wrong matches are not drawn at random: many of them join one spot here to one spot there. A map that
brings only those spots together has little overlap, so its own chance is small and its support seems a wonder. Measured
by the bound it is not. For the same reason support counts by the places where it is found, rather than by pairs.
"""

from __future__ import annotations

import numpy as np

from inlier.consensus.models import Maps
from inlier.consensus.pairs import ColumnPairs
from inlier.engine.blocks import Array, FloatArray

_FEW, _SOME = 20, 100  # counts between which a density is read off and continued downwards
_TINY = float(np.finfo(np.float64).tiny)
_NEIGHBOURS = 20_000  # pairs of points that are looked at, or as many as there are points


class Crowding:
    """The bound above, from a sample of the pairs.

    Parameters
    ----------
    pairs : ColumnPairs
        The sample.
    """

    def __init__(self, pairs: ColumnPairs) -> None:
        self._of_x, self._of_y = (_log_shares(points, pairs.weights) for points in (pairs.x, pairs.y))

    def most_by_chance(self, bound: float | FloatArray, stretch: float | FloatArray) -> FloatArray:
        """The largest share of re-pairings that maps which lengthen by ``stretch`` may bring within the bound."""
        log_bound, log_stretch = (np.log(np.maximum(value, _TINY)) for value in (bound, stretch))
        in_x, in_y = np.interp(log_bound - log_stretch, *self._of_x), np.interp(log_bound, *self._of_y)
        return np.exp((in_x + in_y) / 2)


def _log_shares(points: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithms of distances, and of the share of pairs of points that are no farther apart."""
    d = len(points)
    itself = Maps(np.eye(d)[None], np.zeros((1, d)))
    counts = ColumnPairs(points, points, weights).count_residuals(itself, _NEIGHBOURS)
    shares = shares_within(counts.bounds, counts.re_pairings, counts.n_re_pairings, d)
    return np.log(counts.bounds), np.log(shares)


def shares_within(bounds: FloatArray, counts: Array, total: int, dimension: int) -> FloatArray:
    """counts / total; where hardly any were counted, a power of the bound, and never less than could be seen."""
    shares = (counts + 1) / (total + 1)
    few, more = (min(int(np.searchsorted(counts, level)), bounds.size - 1) for level in (_FEW, _SOME))
    if few < more:
        rise = np.log2(counts[more] / counts[few]) / np.log2(bounds[more] / bounds[few])
        shares[:few] = shares[few] * (bounds[:few] / bounds[few]) ** np.clip(rise, 1.0, dimension)
    return np.maximum(shares, 1 / (total + 1))


def places(points: FloatArray, side: float) -> int:
    """How many cubes of this side hold some of the points."""
    if points.shape[1] == 0 or side <= 0:
        return 0
    cubes = np.floor((points - points.min(axis=1, keepdims=True)) / side)
    number = np.zeros(points.shape[1])
    for row in cubes:  # numbered like digits; beyond 2^53 two cubes may share a number
        number = number * (row.max() + 1) + row
    number.sort()
    return 1 + int(np.count_nonzero(number[1:] != number[:-1]))
