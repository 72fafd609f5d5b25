"""How near to each other the points of one side lie, and what that says about chance: no map can do better.

Were the partners of all points drawn at random, a map T would bring x_i within e of y_j with a chance of about
v e^d int f_TX f_Y, the overlap of the two densities, v e^d the volume of a ball. By Cauchy and Schwarz that is at most

    sqrt( v e^d int f_TX^2  v e^d int f_Y^2 ) = sqrt( P(|T x_i - T x_j| <= e) P(|y_i - y_j| <= e) ),

whatever T is. Real wrong matches are not drawn at random: many of them join one spot here to one spot there. A map that
brings only those spots together has little overlap, so its own chance is small and its support seems a wonder. Measured
by the bound it is not. For the same reason support counts by the places where it is found, rather than by pairs.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from inlier._typing import FloatArray
from inlier.consensus._kernels_chance import log_shares_within, most_by_chance
from inlier.consensus._kernels_columns import count_places
from inlier.consensus.models import Maps
from inlier.consensus.pairs import ColumnPairs

_NEIGHBOURS = 20_000
_NEVER = np.array([[0.0], [-np.inf]])  # logarithm of a share of 0, at any distance


class Crowding:
    """The bound above, from a sample of the pairs; 0 between different dimensions, which have no common density.

    Parameters
    ----------
    pairs : ColumnPairs
        The sample.
    neighbours : int
        How many pairs of points to look at, at least; or as many as there are points.

    Attributes
    ----------
    of_x, of_y : ndarray of shape (2, k)
        Logarithms of distances, and of the share of pairs of points that are no farther apart, as the kernels take it.
    """

    def __init__(self, pairs: ColumnPairs, neighbours: int = _NEIGHBOURS) -> None:
        self.of_x = self.of_y = _NEVER
        if len(pairs.x) == len(pairs.y):
            self.of_x, self.of_y = (_log_shares(points, pairs.weights, neighbours) for points in (pairs.x, pairs.y))

    def most_by_chance(self, bound: float, stretch: float) -> float:
        """The largest share of re-pairings that maps which lengthen by ``stretch`` may bring within the bound."""
        return float(most_by_chance(bound, stretch, self.of_x, self.of_y))


def _log_shares(points: FloatArray, weights: FloatArray, neighbours: int) -> FloatArray:
    """One side's part of the bound."""
    d = len(points)
    bounds, counts = ColumnPairs(points, points, weights).count_re_paired(_itself(d), neighbours)
    log_shares: FloatArray = log_shares_within(bounds, counts, int(counts[-1]), d)
    return log_shares


@cache
def _itself(d: int) -> Maps:
    return Maps(np.eye(d)[None], np.zeros((1, d)))


def places(points: FloatArray, side: float) -> int:
    """How many cubes of this side hold some of the points."""
    return int(count_places(points, side)) if points.shape[1] and side > 0 else 0
