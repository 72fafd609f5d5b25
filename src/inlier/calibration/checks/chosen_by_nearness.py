"""Were the pairs chosen because they are near each other in the very columns that judge them? Then nothing is told.

Let u be the distance of a row to its own partner over that to the nearest other. Partners do not know who is nearest,
so nothing happens at u = 1. Pairs that were chosen by nearness end there, like off a cliff. In d dimensions the nearest
of strangers has log u = -t with density d exp(-d t), so that a stretch of 2 / d holds most of them. How many dimensions
count is read off the others, whose k-th and next are 1 / (k d) apart, in logarithms. Let A, B and C be
the numbers of pairs with log u in the two such stretches below 0 and in the one above. Where the density is smooth, and
falls as B / A says or not at all, C is B min(1, B / A), and half of that where its fall is steepening. Where rows stand
on a grid, or keep apart, it is not smooth; but then it has the same cliff if the distances to partners are dealt anew
among the rows. A C far below what both explanations allow is a sign.

A chooser may have used the columns as they are, in units of their spread, without what they share, their angles, or the
columns after a rotation: all are asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.stats import binom
from sklearn.neighbors import NearestNeighbors

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.verdict import Verdict

_STRETCH = 2.0  # over the dimensions: of log u
_NEAR, _FAR = 3, 9  # others that tell how many count: whether the own was the nearest hardly matters there
_STEEPENING = 0.5
_SURE = 0.02  # chance of so few ties lost, from which on it is said
_MOST, _PAIRINGS = 2_000, 20_000_000  # likely pairs that are looked at, and these times all rows
_FEWEST = 20
_LIKELY = 0.5  # q-value up to which a pair is
_SAME = 1e-9  # difference of log u that is none: such ties are won and lost by half
CHOSEN = "chosen because they are near"
WARNING = (
    "The pairs seem to have been chosen because they are near each other in the columns that are to judge them: of the "
    "rows whose own partner and the nearest other are about equally near, {:.0f} are with the nearer and {:.0f} with "
    "the farther one (a chance of {:.1g} for pairs that were not). Then any pair looks real, and none is accepted. "
    "Judge them by columns that did not choose them."
)


class NearTies(NamedTuple):
    """Rows whose own partner and the nearest other are about equally near."""

    won: float  # own is the nearer
    lost: float
    chance: float  # of so few lost, for pairs that were not chosen


def near_ties(x: FloatArray, own: FloatArray, everyone: FloatArray) -> NearTies:
    """Count how many near ties own partners win against the nearest other point, and how many they lose."""
    to_own = np.linalg.norm(x - own, axis=1)
    nearest = NearestNeighbors(n_neighbors=_FAR + 1).fit(everyone).kneighbors(x)[0]
    is_own = np.abs(nearest - to_own[:, None]) <= _SAME * (1 + to_own[:, None])
    is_own[:, -1] |= ~is_own.any(axis=1)  # where it is farther than all of them
    others = np.sort(np.where(np.arange(_FAR + 1) == is_own.argmax(axis=1)[:, None], np.inf, nearest), axis=1)[:, :-1]
    own, others = (np.log(np.maximum(distance, 1e-300)) for distance in (to_own, others))
    dimensions = (1 / np.arange(_NEAR, _FAR)).sum() / max(np.mean(others[:, -1] - others[:, _NEAR - 1]), 1e-300)
    other, at = others[:, 0], np.arange(-2, 2) * _STRETCH / dimensions
    above = _above(np.sort(own - other), at)
    before, won, lost = above[:-1] - above[1:]
    dealt_above = _above(np.sort(own), other[:, None] + at).sum(axis=0)
    _, dealt_won, dealt_lost = (dealt_above[:-1] - dealt_above[1:]) / len(x)
    if won + lost < 1:
        return NearTies(won, lost, 1.0)
    smooth = _STEEPENING * min(1.0, (won + 1) / (before + 1))
    share = min(smooth / (1 + smooth), _STEEPENING * dealt_lost / max(dealt_won + dealt_lost, 1e-300))
    return NearTies(won, lost, float(binom.cdf(np.floor(lost), round(won + lost), share)))


def _above(rising: FloatArray, at: FloatArray) -> FloatArray:
    """How many of the values are above these; those that are equal count half."""
    ends = [rising.size - np.searchsorted(rising, at + side * _SAME) for side in (-1, 1)]
    return np.mean(ends, axis=0)


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
