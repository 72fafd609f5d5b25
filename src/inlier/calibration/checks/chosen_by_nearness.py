"""Were the pairs chosen because they are near each other in the very columns that judge them? Then nothing is told.

The sign is that of `inlier.consensus.near_ties`.

A chooser may have used the columns as they are, their logarithms, in units of their spread, without what they share,
their angles, sums of differences instead of squares, or the columns after a rotation: all are asked. A rotation of
many columns is learned from some of the pairs and asked about others: it brings its own together.
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
_SUMS = 100_000_000  # differences of numbers, each with each: more take too long to be added up
_FEWEST = 20
_AMPLE, _PARTS = 2.5, 10  # pairs over squared dimension: the pull is a tenth of a stretch; parts of fewer pairs
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
    if len(np.unique(Y, axis=0)) < _FEWEST:
        return None
    found = [near_ties(x, y[rows], np.unique(y, axis=0), power) for x, y, power in _as_chosen(X, Y, rows)]
    turned, *others = (1 / max(ties.chance, 1e-300) for ties in found)
    chance = 2 / (turned + float(np.mean(others)))  # harmonic mean; the rotation counts as much as all the others
    return min(found, key=lambda ties: ties.chance)._replace(chance=chance) if chance <= _SURE else None


def _as_chosen(X: Array, Y: Array, rows: Array) -> Iterator[tuple[FloatArray, FloatArray, int]]:
    """Some rows of X, and all of Y, in the coordinates that a chooser may have used; and the power of differences."""
    x, y = (np.asarray(table, dtype=np.float64) for table in (X, Y))
    yield _turned(x[rows], y[rows]), y, 2
    in_spreads = [(table - table.mean(axis=0)) / np.maximum(table.std(axis=0), 1e-300) for table in (x, y)]
    apart = _whitening(np.concatenate([x, y]))
    angles = [table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-300) for table in (x, y)]
    for of_x, of_y in ((x, y), in_spreads):
        yield of_x[rows], of_y, 2
        if rows.size * y.size <= _SUMS:
            yield of_x[rows], of_y, 1
    yield x[rows] @ apart, y @ apart, 2
    yield angles[0][rows], angles[1], 2
    if min(x.min(), y.min()) > 0:
        yield np.log(x[rows]), np.log(y), 2


def _turned(x: FloatArray, y: FloatArray) -> FloatArray:
    """Rows of x in the coordinates of y, by the rotation that fits them best; of few rows, each part by the others.

    A rotation brings the n pairs that it was learned from nearer by d / 2 n of their distance.
    """
    n, d = x.shape
    turned, part = np.empty_like(x), np.arange(n) % (1 if n >= _AMPLE * d**2 else _PARTS)
    for k in range(int(part.max()) + 1):
        learned = (part != k) | (part.max() == 0)
        mean_x, mean_y = x[learned].mean(axis=0), y[learned].mean(axis=0)
        turn, _ = orthogonal_procrustes(x[learned] - mean_x, y[learned] - mean_y)
        turned[part == k] = (x[part == k] - mean_x) @ turn + mean_y
    return turned


def _whitening(table: FloatArray) -> FloatArray:
    """What takes the covariance of a table away."""
    spread = np.maximum(table.std(axis=0), 1e-300)  # columns in other units would drown in rounding
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov((table / spread).T)))
    whitening: FloatArray = vectors / spread[:, None] / np.sqrt(np.maximum(values, max(values.max(), 1e-300) * 1e-12))
    return whitening


def check(verdict: Verdict, X: Array, Y: Array, rng: np.random.RandomState) -> Verdict:
    """Take everything back where the pairs were chosen."""
    found = chosen_by_nearness(X, Y, verdict.q_values <= _LIKELY, rng)
    if found is None:
        return verdict
    return verdict.refused(np.ones(verdict.q_values.size, dtype=bool), CHOSEN).saying(WARNING.format(*found))
