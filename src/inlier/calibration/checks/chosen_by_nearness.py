"""Were the pairs chosen because they are near each other in the very columns that judge them? Then nothing is told.

Let u be the distance of a row to its own partner over that to the nearest other. Partners do not know who is nearest, so
nothing happens at u = 1: what lies beyond continues what lies before. Pairs that were chosen by nearness have u < 1, all
of them, and many close to 1: a cliff. Let s be the standard deviation of log u, N1 and N2 the numbers of pairs between
-5/4, -3/4 and -1/4 s, and N3 that beyond +1/4 s (between, the distance of the chooser may differ a little from ours).
Where log u has a smooth density with one mode, N3 is hardly less than N2 min(1, N2 / N1)^2 / 2; a normal one has 1.2 to
1.5 times as many. That is tested in each of the distances that a chooser may have used: after a rotation and, where both
tables have as many columns, as the columns are.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import cKDTree
from scipy.stats import binom

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.verdict import Verdict

_EDGES = (-1.25, -0.75, -0.25, 0.25)  # of stretches of log u, in its standard deviations
_SURE = 0.02  # chance of so many ties won, from which on it is said
_MOST = 5_000  # accepted pairs that are looked at
_FEWEST = 20
_LIKELY = 0.5  # q-value up to which pairs are looked at
CHOSEN = "chosen because they are near"
WARNING = (
    "The pairs seem to have been chosen because they are near each other in the columns that are to judge them: of the "
    "rows whose own partner and the nearest other are not far from equally near, {} are with the nearer and {} with the "
    "farther one (a chance of {:.1g} for pairs that were not). Then any pair looks real, and none is accepted. Judge them by "
    "columns that did not choose them."
)


def near_ties(x: FloatArray, own: FloatArray, everyone: FloatArray) -> tuple[int, int, float]:
    """How many near ties own partners win against the nearest other point, how many they lose; the chance of so few."""
    distance = np.linalg.norm(x - own, axis=1)
    nearest = cKDTree(everyone).query(x, k=2)[0]
    is_own = np.abs(nearest[:, 0] - distance) <= 1e-9 * (1 + distance)
    log_u = np.log(np.maximum(distance, 1e-300)) - np.log(np.maximum(np.where(is_own, nearest[:, 1], nearest[:, 0]), 1e-300))
    spread = float(np.subtract(*np.quantile(log_u, (0.75, 0.25)))) / 1.349
    at_least = [int((log_u > edge * spread).sum()) for edge in _EDGES]
    before, won, lost = at_least[0] - at_least[1], at_least[1] - at_least[2], at_least[3]
    expected = min(1.0, won / max(before, 1)) ** 2 / 2  # lost, over won
    return won, lost, float(binom.cdf(lost, won + lost, expected / (1 + expected))) if won + lost else 1.0


def chosen_by_nearness(X: Array, Y: Array, chosen: Mask, rng: np.random.RandomState) -> tuple[int, int, float] | None:
    """Ties won and lost, and the chance of so many, where pairs look chosen; None where they do not."""
    rows = rng.permutation(np.flatnonzero(chosen))[:_MOST]
    if rows.size < _FEWEST or X.shape[1] != Y.shape[1]:
        return None
    x, y = (np.asarray(table, dtype=np.float64) for table in (X, Y))
    everyone = np.unique(y, axis=0)
    if len(everyone) < _FEWEST:
        return None
    mean_x, mean_y = x[rows].mean(axis=0), y[rows].mean(axis=0)
    turn, _ = orthogonal_procrustes(x[rows] - mean_x, y[rows] - mean_y)
    found = [near_ties(x[rows], y[rows], everyone), near_ties((x[rows] - mean_x) @ turn + mean_y, y[rows], everyone)]
    won, lost, chance = min(found, key=lambda ties: ties[2])
    chance = min(1.0, len(found) * chance)
    return (won, lost, chance) if chance <= _SURE else None


def check(verdict: Verdict, X: Array, Y: Array, rng: np.random.RandomState) -> Verdict:
    """Take everything back where the pairs were chosen."""
    found = chosen_by_nearness(X, Y, verdict.q_values <= _LIKELY, rng)
    if found is None:
        return verdict
    return verdict.refused(np.ones(verdict.q_values.size, dtype=bool), CHOSEN).saying(WARNING.format(*found))
