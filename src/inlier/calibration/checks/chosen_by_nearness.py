"""Were the pairs chosen because they are near each other in the very columns that judge them? Then nothing is told.

The sign is that of `inlier.consensus.near_ties`.

A chooser may have used the columns as they are, their logarithms, in units of their spread, without what they share,
their angles, sums of differences instead of squares, or the columns after a rotation: all are asked. A rotation of
many columns is learned from some of the pairs and asked about others: it brings its own together. Or only what the
columns say together, in leading components, or one number, such as a propensity: the directions in which pairs agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import orthogonal_procrustes

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.verdict import Verdict
from inlier.consensus.near_ties import NearTies, near_swaps, near_ties

_Map = Callable[[FloatArray], FloatArray]
_Seen = tuple[FloatArray, FloatArray, int]  # some rows of x, all of y, in coordinates; power of differences
_SURE = 0.01  # bound on the chance of so few ties lost, from which on all is refused; right pairs hardly come near it
_MOST, _PAIRINGS = 2_000, 20_000_000  # likely pairs that are looked at, and these times all rows
_SUMS = 100_000_000  # differences of numbers, each with each: more take too long to be added up
_FEWEST = 20
_AMPLE, _PARTS = 2.5, 10  # pairs over squared dimension: the pull is a tenth of a stretch; parts of fewer pairs
_PER_COLUMN = 10  # pairs, from which a rotation or directions in which they agree do not bring them together
_ROUNDS, _KEPT = 5, 0.8
_SWAPS = 400  # pairs, between which changes are looked for
_BEYOND = 3.0  # standard deviations of a correlation by chance
_ROUNDING = 1e-9
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
    if rows.size < _FEWEST or len(np.unique(Y, axis=0)) < _FEWEST:
        return None
    x, y = (np.asarray(table, dtype=np.float64) for table in (X, Y))
    x, y = (table[:, _varies(table)] for table in (x, y))  # by a single value nobody has chosen
    turned_first = list(_as_chosen(x, y, rows)) if x.shape[1] == y.shape[1] else []
    one_number_first = _where_they_agree(x, y, rows)
    some = slice(0, _SWAPS)  # of whom no two would change either

    def ties(kinds: list[_Seen], of_swaps: bool = False) -> list[NearTies]:
        differ = [(of_x, of_y, power, np.unique(of_y, axis=0)) for of_x, of_y, power in kinds]
        known = [kind for kind in differ if len(kind[3]) >= _FEWEST]
        if of_swaps:
            return [near_swaps(of_x[some], of_y[rows[some]], power, rng) for of_x, of_y, power, _ in known]
        return [near_ties(of_x, of_y[rows], everyone, power) for of_x, of_y, power, everyone in known]

    questions = (turned_first[:1], turned_first[1:], one_number_first[:1], one_number_first[1:])
    asked = [ties(kinds) for kinds in questions]
    asked.append(ties([seen for seen in turned_first if seen[2] == 2], of_swaps=True))
    asked = [found for found in asked if found]
    if not asked:
        return None
    chances = [np.mean([1 / max(ties.chance, 1e-300) for ties in found]) for found in asked]
    chance = 1 / float(np.mean(chances))  # harmonic mean: each question counts alike, in however many coordinates
    least = min((ties for found in asked for ties in found), key=lambda ties: ties.chance)
    return least._replace(chance=chance) if chance <= _SURE else None


def _as_chosen(x: FloatArray, y: FloatArray, rows: Array) -> Iterator[_Seen]:
    """Some rows of x, and all of y, in the coordinates that a chooser may have used; and the power of differences."""
    if rows.size >= _PER_COLUMN * x.shape[1]:
        yield _turned(x[rows], y[rows]), y, 2
        apart = _whitening(np.concatenate([x, y]))
        yield x[rows] @ apart, y @ apart, 2
    in_spreads = [(table - table.mean(axis=0)) / np.maximum(table.std(axis=0), 1e-300) for table in (x, y)]
    angles = [table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-300) for table in (x, y)]
    for of_x, of_y in ((x, y), in_spreads):
        yield of_x[rows], of_y, 2
        if rows.size * y.size <= _SUMS:
            yield of_x[rows], of_y, 1
    yield angles[0][rows], angles[1], 2
    if min(x.min(), y.min()) > 0:
        yield np.log(x[rows]), np.log(y), 2


def _where_they_agree(x: FloatArray, y: FloatArray, rows: Array) -> list[_Seen]:
    """The same in directions in which pairs agree: the most correlated one; all such; leading principal components."""
    n = rows.size
    are_alike, varying = x.shape[1] == y.shape[1], [_varies(x[rows]), _varies(y[rows])]
    if are_alike:
        both = np.concatenate([x, y])[:, varying[0] | varying[1]]
    x, y = x[:, varying[0]], y[:, varying[1]]
    if n < _PER_COLUMN * (x.shape[1] + y.shape[1]) or min(x.shape[1], y.shape[1]) == 0:
        return []
    chance = _BEYOND / n**0.5  # of a correlation
    of_x, of_y, shared = _agreeing(x[rows], y[rows])
    k = int((shared > chance).sum())
    found: list[_Seen] = [(of_x(x[rows])[:, :k], of_y(y)[:, :k], 2)] if k > 1 else []
    for _ in range(_ROUNDS):  # one number, such as a propensity, is near in the thick of them, less so in the tails
        gap = np.abs(of_x(x[rows])[:, 0] - of_y(y[rows])[:, 0])
        near = rows[np.argsort(gap)[: int(_KEPT * n)]]
        if not (_varies(x[near]).any() and _varies(y[near]).any()):
            break
        of_x, of_y, _ = _agreeing(x[near], y[near])
    found.insert(0, (of_x(x[rows])[:, :1], of_y(y)[:, :1], 2))
    for unit in (1.0, both.std(axis=0)) if are_alike else ():
        scaled = _centred(both / unit)
        a, b = np.split(scaled @ np.linalg.svd(scaled, full_matrices=False)[2].T, 2)
        spread = np.maximum(a[rows].std(axis=0) * b[rows].std(axis=0), 1e-300)
        covariance = np.mean(_centred(a[rows]) * _centred(b[rows]), axis=0)
        differ = np.flatnonzero(covariance / spread <= chance)
        if differ.size and differ[0] > 0:
            found.append((a[rows, : differ[0]], b[:, : differ[0]], 2))
    return found


def _agreeing(x: FloatArray, y: FloatArray) -> tuple[_Map, _Map, FloatArray]:
    """What brings rows of either side to their canonical directions, and how far they agree in each."""
    white_x, white_y = _whitening(x), _whitening(y)
    left, shared, right = np.linalg.svd(white_x.T @ _centred(x).T @ _centred(y) @ white_y / len(x))
    return (
        lambda rows: (rows - x.mean(axis=0)) @ white_x @ left,
        lambda rows: (rows - y.mean(axis=0)) @ white_y @ right.T,
        shared,
    )


def _varies(table: FloatArray) -> Mask:
    """Columns that hold more than one value, up to rounding."""
    varies: Mask = np.ptp(table, axis=0) > _ROUNDING * np.abs(table).max(axis=0)
    return varies


def _centred(table: FloatArray) -> FloatArray:
    centred: FloatArray = table - table.mean(axis=0)
    return centred


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
    """What takes the covariance of a table away; directions in which these rows do not vary are left out."""
    spread = np.where(_varies(table), table.std(axis=0), np.inf)  # columns in other units would drown in rounding
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov((table / spread).T)))
    kept = values > values.max() * 1e-12
    whitening: FloatArray = vectors[:, kept] / spread[:, None] / np.sqrt(values[kept])
    return whitening


def check(verdict: Verdict, X: Array, Y: Array, rng: np.random.RandomState) -> Verdict:
    """Take everything back where the pairs were chosen."""
    found = chosen_by_nearness(X, Y, verdict.q_values <= _LIKELY, rng)
    if found is None:
        return verdict
    return verdict.refused(np.ones(verdict.q_values.size, dtype=bool), CHOSEN).saying(WARNING.format(*found))
