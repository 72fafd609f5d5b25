"""Were the pairs chosen because they are near each other in the very columns that judge them? Then nothing is told.

The sign is that of `consensus.near_ties`. A chooser may have used the columns as they are, in units of their spread,
without what they share, their angles, or the columns after a rotation: all are asked.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import orthogonal_procrustes

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.verdict import Verdict
from inlier.consensus.near_ties import NearTies, near_ties

_SURE = 0.02  # chance of so few ties lost, from which on it is said
_MOST, _PAIRINGS = 2_000, 20_000_000  # likely pairs that are looked at, and these times all rows
_FEWEST = 20
_LIKELY = 0.5  # q-value up to which a pair is
CHOSEN = "chosen because they are near"
WARNING = (
    "The pairs seem to have been chosen because they are near each other in the columns that are to judge them: of the "
    "rows whose own partner and the nearest other are about equally near, {:.0f} are with the nearer and {:.0f} with "
    "the farther one (a chance of {:.1g} for pairs that were not). Then any pair looks real, and none is accepted. "
    "Judge them by columns that did not choose them."
)


def chosen_by_nearness(X: Array, Y: Array, likely: Mask, rng: np.random.RandomState) -> NearTies | None:
    """Return the ties of pairs that look chosen; None where they do not."""
    rows = rng.permutation(np.flatnonzero(likely))[: min(_MOST, _PAIRINGS // len(X))]
    if rows.size < _FEWEST or X.shape[1] != Y.shape[1]:
        return None
    tables = ((x[rows], y[rows], np.unique(y, axis=0)) for x, y in _as_chosen(X, Y, rows))
    found = [near_ties(*some) for some in tables if len(some[-1]) >= _FEWEST]
    if not found:
        return None
    ties = min(found, key=lambda one: one.chance)
    chance = min(1.0, len(found) * ties.chance)
    return ties._replace(chance=chance) if chance <= _SURE else None


def _as_chosen(X: Array, Y: Array, rows: Array) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Both tables in the coordinates that a chooser may have used."""
    x, y = (np.asarray(table, dtype=np.float64) for table in (X, Y))
    yield x, y
    mean_x, mean_y = x[rows].mean(axis=0), y[rows].mean(axis=0)
    turn, _ = orthogonal_procrustes(x[rows] - mean_x, y[rows] - mean_y)
    yield (x - mean_x) @ turn + mean_y, y
    of_x, of_y = ((table - table.mean(axis=0)) / np.maximum(table.std(axis=0), 1e-300) for table in (x, y))
    yield of_x, of_y
    apart = _whitening(np.concatenate([x, y]))
    yield x @ apart, y @ apart
    length_x, length_y = (np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-300) for table in (x, y))
    yield x / length_x, y / length_y


def _whitening(table: FloatArray) -> FloatArray:
    """What takes the covariance of a table away."""
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(table.T)))
    return vectors / np.sqrt(np.maximum(values, max(values.max(), 1e-300) * 1e-12))


def check(verdict: Verdict, X: Array, Y: Array, rng: np.random.RandomState) -> Verdict:
    """Take everything back where the pairs were chosen."""
    found = chosen_by_nearness(X, Y, verdict.q_values <= _LIKELY, rng)
    if found is None:
        return verdict
    return verdict.refused(np.ones(verdict.q_values.size, dtype=bool), CHOSEN).saying(WARNING.format(*found))
