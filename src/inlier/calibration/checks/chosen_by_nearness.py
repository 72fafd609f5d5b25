"""Were the pairs chosen because they are near each other in the very columns that judge them? Then nothing is told.

Let u be the distance of a row to its own partner over that to the nearest other. Partners do not know who is nearest, so
nothing happens at u = 1: what lies beyond continues what lies before. Pairs that were chosen by nearness end there, like
off a cliff. In d dimensions the nearest of strangers has log u = -t with density d exp(-d t), so that a stretch of 2 / d
holds most of them. Let A, B and C be the numbers of pairs with log u in the two such stretches below 0 and in the one
above. Where the density is smooth and falls as B / A says, or not at all, C is B min(1, B / A), and half of that where
its fall is steepening. Fewer than that half are a sign, in either of the distances that a chooser may have used: after a
rotation, and as the columns are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import cKDTree
from scipy.stats import binom

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.verdict import Verdict

_STRETCH = 2.0  # over the dimension: of log u
_STEEPENING = 0.5
_SURE = 0.02  # chance of so few ties lost, from which on it is said
_MOST = 5_000  # likely pairs that are looked at
_FEWEST = 20
_LIKELY = 0.5  # q-value up to which a pair is
CHOSEN = "chosen because they are near"
WARNING = (
    "The pairs seem to have been chosen because they are near each other in the columns that are to judge them: of the "
    "rows whose own partner and the nearest other are about equally near, {} are with the nearer and {} with the "
    "farther one (a chance of {:.1g} for pairs that were not). Then any pair looks real, and none is accepted. Judge them by "
    "columns that did not choose them."
)


class NearTies(NamedTuple):
    """Rows whose own partner and the nearest other are about equally near."""

    won: int  # own is the nearer
    lost: int
    chance: float  # of so few lost, for pairs that were not chosen


def near_ties(x: FloatArray, own: FloatArray, everyone: FloatArray) -> NearTies:
    """Count how many near ties own partners win against the nearest other point, and how many they lose."""
    distance = np.linalg.norm(x - own, axis=1)
    nearest = cKDTree(everyone).query(x, k=2)[0]
    is_own = np.abs(nearest[:, 0] - distance) <= 1e-9 * (1 + distance)
    other = np.where(is_own, nearest[:, 1], nearest[:, 0])
    log_u = np.log(np.maximum(distance, 1e-300)) - np.log(np.maximum(other, 1e-300))
    above = [int((log_u > k * _STRETCH / x.shape[1]).sum()) for k in (-2, -1, 0, 1)]
    before, won, lost = (above[k] - above[k + 1] for k in range(3))
    lost_over_won = _STEEPENING * min(1.0, (won + 1) / (before + 1))
    chance = binom.cdf(lost, won + lost, lost_over_won / (1 + lost_over_won)) if won + lost else 1.0
    return NearTies(won, lost, float(chance))


def chosen_by_nearness(X: Array, Y: Array, likely: Mask, rng: np.random.RandomState) -> NearTies | None:
    """Return the ties of pairs that look chosen; None where they do not."""
    rows = rng.permutation(np.flatnonzero(likely))[:_MOST]
    if rows.size < _FEWEST or X.shape[1] != Y.shape[1]:
        return None
    x, y = (np.asarray(table, dtype=np.float64) for table in (X, Y))
    everyone = np.unique(y, axis=0)
    if len(everyone) < _FEWEST:
        return None
    mean_x, mean_y = x[rows].mean(axis=0), y[rows].mean(axis=0)
    turn, _ = orthogonal_procrustes(x[rows] - mean_x, y[rows] - mean_y)
    found = [near_ties(some, y[rows], everyone) for some in (x[rows], (x[rows] - mean_x) @ turn + mean_y)]
    ties = min(found, key=lambda ties: ties.chance)
    chance = min(1.0, len(found) * ties.chance)
    return ties._replace(chance=chance) if chance <= _SURE else None


def check(verdict: Verdict, X: Array, Y: Array, rng: np.random.RandomState) -> Verdict:
    """Take everything back where the pairs were chosen."""
    found = chosen_by_nearness(X, Y, verdict.q_values <= _LIKELY, rng)
    if found is None:
        return verdict
    return verdict.refused(np.ones(verdict.q_values.size, dtype=bool), CHOSEN).saying(WARNING.format(*found))
