"""Were the pairs chosen because they are near each other in the very columns that judge them? Then nothing is told.

Partners do not know who is nearest. So where another partner would do about as well, pairs that were not chosen win
and lose such ties as smoothly as noise falls; chosen ones lose none (see `near_ties`). A chooser may have used some of
the columns, or scores. What it used is what the chosen pairs share, so exchanges are tried in canonical coordinates, as
far as these correlate beyond chance. Others are looked for, where both tables have as many columns, in the columns as
they are, in units of their spread and after a rotation: canonical coordinates of few pairs are too blurred for that.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import orthogonal_procrustes

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.checks.near_ties import NearTies, exchanges, others
from inlier.calibration.verdict import Verdict

_SURE = 0.02  # chance of so few ties lost, from which on it is said
_MOST, _PAIRINGS = 2_000, 20_000_000  # likely pairs that are looked at, and these times all rows
_FEWEST = 20
_LIKELY = 0.5  # q-value up to which a pair is
_MOST_SHARED = 10  # directions, in which it can be learned what is straight
_PER_DIRECTION = 6  # pairs, of which canonical coordinates are learned
_ROUNDED = 0.01  # of the spread of a column: the least step between its values, from which on they are taken as rounded
CHOSEN = "chosen because they are near"
WARNING = (
    "The pairs seem to have been chosen because they are near each other in the columns that are to judge them: where "
    "another partner would do about as well, {:.0f} rows are with the better one and {:.0f} with the worse (a chance "
    "of {:.1g} for pairs that were not chosen). Then any pair looks real, and none is accepted. Judge them by columns "
    "that did not choose them."
)


def chosen_by_nearness(X: Array, Y: Array, likely: Mask, rng: np.random.RandomState) -> NearTies | None:
    """Return the ties of pairs that look chosen; None where they do not."""
    among = rng.permutation(np.flatnonzero(likely))
    some, n_looked_at = among[:_MOST], min(_MOST, _PAIRINGS // len(X), among.size)
    if n_looked_at < _FEWEST:
        return None
    x, y = (np.asarray(table, dtype=np.float64) for table in (X, Y))
    of_x, of_y, weights = shared_directions(x[some], y[some])
    found = []
    for a, b in _as_chosen(x, y, some):
        everyone, rows = np.unique(b, axis=0), some[:n_looked_at]
        if len(everyone) >= _FEWEST:
            found.append(others(a[rows], b[rows], everyone))
    if 0 < weights.size <= _MOST_SHARED:
        a, b = ((table[among] @ of) * weights for table, of in ((x, of_x), (y, of_y)))
        of_a, of_b = (spread(table[among], rng) @ of * weights for table, of in ((x, of_x), (y, of_y)))
        both = exchanges(a, of_b, n_looked_at), exchanges(b, of_a, n_looked_at)
        found.append(max(both, key=lambda one: one.chance))
    if not found:
        return None
    ties = min(found, key=lambda one: one.chance)
    chance = min(1.0, len(found) * ties.chance)
    return ties._replace(chance=chance) if chance <= _SURE else None


def _as_chosen(x: FloatArray, y: FloatArray, some: Array) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Both tables in the coordinates that a chooser may have used."""
    mean_x, mean_y = x[some].mean(axis=0), y[some].mean(axis=0)
    if x.shape[1] == y.shape[1]:
        yield x, y
        turn, _ = orthogonal_procrustes(x[some] - mean_x, y[some] - mean_y)
        yield (x - mean_x) @ turn + mean_y, y
        yield (x - mean_x) / _spread_of(x[some]), (y - mean_y) / _spread_of(y[some])


def _spread_of(table: FloatArray) -> FloatArray:
    return np.maximum(table.std(axis=0), 1e-300)


def shared_directions(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Canonical directions of both tables that correlate beyond chance, and the weights of their inner products.

    Of correlation r the log likelihood ratio of "partners" against "strangers" holds a b r / (1 - r^2).
    """
    n, (of_x, of_y) = len(x), (_whitening(table) for table in (x, y))
    turn_x, r, turn_y = np.linalg.svd((x @ of_x).T @ ((y - y.mean(axis=0)) @ of_y) / n, full_matrices=False)
    p, q = of_x.shape[1] / n, of_y.shape[1] / n
    beyond = r > np.sqrt(p * (1 - q)) + np.sqrt(q * (1 - p))  # the largest that tables of strangers have
    r = np.minimum(r[beyond], 1 - 1e-9)
    return of_x @ turn_x[:, beyond], of_y @ turn_y.T[:, beyond], np.sqrt(r / (1 - r * r))


def _whitening(table: FloatArray) -> FloatArray:
    """Directions along which a table has variance 1, the strongest first; not more than its rows allow."""
    _, sizes, directions = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
    kept = max(1, min(int((sizes > 1e-9 * sizes[0]).sum()), len(table) // _PER_DIRECTION))
    return directions[:kept].T / np.maximum(sizes[:kept], 1e-300) * np.sqrt(len(table))


def spread(table: FloatArray, rng: np.random.RandomState) -> FloatArray:
    """Spread rounded values over the steps between them, so that two rows are hardly ever equal."""
    steps = np.zeros(table.shape[1])
    for k, column in enumerate(table[:_MOST].T):
        gaps = np.diff(np.unique(column))
        steps[k] = gaps.min() if gaps.size and gaps.min() >= _ROUNDED * column.std() else 0.0
    return table + steps * rng.uniform(-0.5, 0.5, table.shape) if steps.any() else table


def check(verdict: Verdict, X: Array, Y: Array, rng: np.random.RandomState) -> Verdict:
    """Take everything back where the pairs were chosen."""
    found = chosen_by_nearness(X, Y, verdict.q_values <= _LIKELY, rng)
    if found is None:
        return verdict
    return verdict.refused(np.ones(verdict.q_values.size, dtype=bool), CHOSEN).saying(WARNING.format(*found))
