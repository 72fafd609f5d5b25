"""Rows that are not independent, although nobody said so: replicates, copies, failed samples, neighbours.

Let r_1 < r_2 < ... be the distances of a row to the others. Where rows are drawn independently from any smooth
distribution in D dimensions, k D log(r_{k+1} / r_k) is an exponential variable of mean 1, whatever the density.
Replicates are far nearer to each other than to anyone else: with m of them, the gap at k = m - 1 is many times as
large. Only gaps that *both* tables have count: such pairs tell each other's answer. There is a gap around the mean if
some rows carry nothing but noise: wrong pairs of such rows are not like re-pairings with anyone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._checks import warn
from inlier._typing import Array, FloatArray, Mask
from inlier.exceptions import DependenceWarning
from inlier.rows import PairedRows
from inlier.rows.backend import namespace, take_rows, to_host
from inlier.rows.threads import pieces_of_many

_LOOKED_AT, _MOST_LOOKED_AT = 100, 20_000  # rows whose neighbours are looked for, and rows that these may be
_MOST_REPLICATES, _FARTHEST = 10, 21  # neighbours: at whose gap replicates are looked for, and up to which D is told by
_TYPICAL_GAP = 3.0  # mean gap over rows, 1 for independent ones, that tells replicates on both sides
_SMALL = 1e-12  # distance that counts as none, relative to a typical one
_LARGEST_GAP = 5.0  # times log n: the largest of n exponential variables is about log n
_FARTHER = 1.5  # times as far from the mean is the next row, at the least
_FEWEST_FAILED = 3
_FEWEST_DIMENSIONS = 2.5  # in one or two, levels of whole numbers leave such a gap
_BESIDE, _SURE = 5, 5.0  # rows before and after that count as near in order; standard errors above chance
_MIDDLE = 0.5  # p-value beyond which hardly any real pair lies
_REACHES, _MOST_OF_IT = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5), 0.8  # of small p-values; part of their surplus
_FEWEST_IN_SURPLUS, _FEWEST_ALIKE = 50.0, 20.0  # pairs; pairs of a cluster
_EVENLY = 0.2  # part of the surplus in the lowest tenth of its range; a tenth if it is spread evenly
_HALF = (0.3, 0.9)  # part in the lower half; otherwise all of them lie together, where few re-pairings let them
_NEARLY = 0.5  # of the distance that only a hundredth of right rows have to their nearest: then rows are nearly equal
_RARE = 0.01
_MOST_RIGHT = 2_000  # right rows whose nearest neighbours are looked for
_ROWS_AT_ONCE = 500
NONE_STANDS_OUT = (
    "The pairs score higher than strangers do, but no higher than pairs like them: rows resemble each other in "
    "clusters, and inside of these nothing tells who belongs to whom. The share of real pairs is only bounded from "
    "above. Say what the clusters are: fit(X, y, strata=...), or --stratum COLUMN."
)


@dataclass(frozen=True)
class Dependence:
    """What was seen."""

    replicates: int = 0  # how many rows resemble each other as replicates do, including the row itself; 0 if none do
    in_order: bool = False  # whether rows that follow each other resemble each other in both tables

    @staticmethod
    def between(x: FloatArray, y: FloatArray, equal: Array, rng: np.random.RandomState) -> Dependence:
        """Look at prepared rows; ``equal`` are numbers that pairs which are known to go together share."""
        n = min(len(x), _MOST_LOOKED_AT)
        if n <= 2 * _FARTHEST:
            return Dependence()
        rows = np.sort(rng.choice(n, min(n, _LOOKED_AT), replace=False))
        together = equal[rows][:, None] == equal[:n][None, :]
        gaps, n_beside = zip(*(_neighbours(side[:n], rows, together) for side in (x, y)), strict=True)
        smaller = np.minimum(*gaps)
        k = int(np.argmax(smaller))
        by_chance = rows.size * 2 * _BESIDE / n
        in_order = min(n_beside) > by_chance + _SURE * (by_chance + 1) ** 0.5
        return Dependence(k + 2 if smaller[k] > _TYPICAL_GAP else 0, in_order)


def _neighbours(table: FloatArray, rows: Array, together: Mask) -> tuple[FloatArray, int]:
    """Mean over some rows of k D log(r_{k+1} / r_k), k = 1, 2, ..., with D from farther neighbours.

    Also, how many of the rows have their nearest neighbour among the next few in the order of the table.
    """
    squares = np.einsum("ij,ij->i", table, table)
    distances = squares[rows][:, None] + squares[None, :] - 2 * table[rows] @ table.T
    distances[together] = np.inf  # oneself, and what is known to go together
    n_beside = int((np.abs(np.argmin(distances, axis=1) - rows) <= _BESIDE).sum())
    nearest = np.sort(np.partition(distances, _FARTHEST, axis=1)[:, : _FARTHEST + 1], axis=1)
    logarithms = np.log(np.maximum(nearest, _SMALL * float(np.mean(squares)))) / 2
    far = logarithms[:, _MOST_REPLICATES:]
    steps = np.diff(far, axis=1) * np.arange(_MOST_REPLICATES + 1, _FARTHEST + 1)  # each of mean 1 / D
    dimension = 1 / max(float(np.mean(steps)), _SMALL)
    k = np.arange(1, _MOST_REPLICATES + 1)
    return k * dimension * np.mean(np.diff(logarithms[:, : _MOST_REPLICATES + 1], axis=1), axis=0), n_beside


def blanks(x: Any, y: Any) -> tuple[Mask, Mask]:
    """Which prepared rows of each table lie near its mean, with a gap to all others: samples that failed."""
    inside = [_inside_a_gap(side) for side in (x, y)]
    first, second = (side if side.sum() >= _FEWEST_FAILED else np.zeros_like(side) for side in inside)
    return first, second


def _inside_a_gap(table: Any) -> Mask:
    n, lengths = int(table.shape[0]), to_host(namespace(table).vecdot(table, table))
    squares = [to_host(namespace(table).sum(take_rows(table, rows) ** 2, axis=0)) for rows in pieces_of_many(table)]
    variances = np.sum(squares, axis=0) / n
    dimension = float(np.sum(variances) ** 2 / np.sum(variances**2))
    if n <= 2 * _FARTHEST or dimension < _FEWEST_DIMENSIONS:
        return np.zeros(n, dtype=bool)
    rising = np.log(np.maximum(np.sort(lengths), _SMALL * float(np.mean(lengths)))) / 2
    half = np.arange(1, n // 2)
    steps = np.diff(rising)[: half.size]
    gaps = np.where(steps > np.log(_FARTHER), half * dimension * steps, 0.0)
    if not gaps.size or gaps.max() < _LARGEST_GAP * np.log(n):
        return np.zeros(n, dtype=bool)
    inside: Mask = lengths <= np.sort(lengths)[int(np.argmax(gaps))]
    return inside


def warn_of_dependence(x: Any, y: Any, labels: Array, rng: np.random.RandomState) -> bool:
    """Look for rows that tell each other's answer, and say so; return whether there are any."""
    rows = slice(0, min(labels.shape[1], _MOST_LOOKED_AT))
    x, y = (to_host(take_rows(side, rows)) for side in (x, y))
    seen = Dependence.between(x, y, np.unique(labels[:2, rows], axis=1, return_inverse=True)[1].reshape(-1), rng)
    if seen.replicates:
        warn(
            f"In both tables rows resemble each other in groups of about {seen.replicates}, far more than independent "
            f"rows do: replicates, or repeated visits? They tell each other's answer, and the share of wrong pairs "
            f"among the accepted is not bounded. Say which rows belong together: fit(X, y, groups=...), or "
            f"--group COLUMN.",
            DependenceWarning,
        )
    elif seen.in_order:
        warn(
            "In both tables rows that follow each other resemble each other: a time series, a scan, sorted rows? If a "
            "row may be paired with the partner of its neighbour, the share of wrong pairs among the accepted is not "
            "bounded. Say which rows are neighbours: fit(X, y, strata=...), or --stratum COLUMN.",
            DependenceWarning,
        )
    return bool(seen.replicates or seen.in_order)


def blank_rows(x: Any, y: Any) -> Mask | None:
    """Which pairs have a blank among their prepared rows, with a warning; None where none has, or on a device."""
    of_x, of_y = blanks(x, y) if isinstance(x, np.ndarray) else (np.zeros(1, bool), np.zeros(1, bool))
    if not of_x.any() and not of_y.any():
        return None
    counted = [f"{int(side.sum())} rows of {name}" for side, name in ((of_x, "X"), (of_y, "y")) if side.any()]
    warn(
        f"{' and '.join(counted)} lie near the mean, apart from all others: blanks, failed samples? Nothing is said of "
        f"their pairs, and they are not accepted. If they are sound, set them apart: fit(X, y, strata=...), or "
        f"--stratum COLUMN.",
        DependenceWarning,
    )
    return of_x | of_y


def some_stand_out(p: FloatArray, counts: Array | None = None) -> bool:
    """Whether small p-values crowd near 0, as those of real pairs do, or are spread evenly over a short range.

    The latter is what pairs have that resemble each other in clusters: each is as good as any other of its cluster, and
    better than all strangers. Looked at is the shortest range that holds most of the surplus; True if there is little.
    """
    times = np.ones(p.size) if counts is None else np.asarray(counts, dtype=np.float64)
    n, share_wrong = float(times.sum()), min(1.0, 2 * float(times @ (p > _MIDDLE)) / float(times.sum()))

    def surplus(below: float) -> float:
        return float(times @ (p <= below)) - share_wrong * below * n

    whole = surplus(_MIDDLE)
    if whole < max(_FEWEST_IN_SURPLUS, _MIDDLE * n):
        return True
    reach = next(below for below in _REACHES if surplus(below) >= _MOST_OF_IT * whole)
    if reach * n < _FEWEST_ALIKE:
        return True  # where wrong pairs were swapped, re-pairings meet a true partner now and then
    lowest, half = surplus(reach / 10) / surplus(reach), surplus(reach / 2) / surplus(reach)
    return lowest > _EVENLY or not _HALF[0] < half < _HALF[1]


def nearly_equal(pairs: PairedRows, suspects: Array, sure: Mask) -> Array:
    """Return for each suspect the surely right pair whose y is nearly equal to its own, -1 where there is none."""
    none = np.full(suspects.size, -1)
    right = np.flatnonzero(sure)[:: max(1, int(sure.sum()) // _MOST_RIGHT)]
    if right.size < 2 or not suspects.size:
        return none
    y = np.asarray(pairs.take(np.arange(pairs.n_pairs))[1], dtype=np.float64)
    typical = np.quantile(_nearest(y[right], y[right], skip_own=True)[0], _RARE)
    distance, nearest = _nearest(y[suspects], y[np.flatnonzero(sure)])
    return np.where(distance < _NEARLY * typical, np.flatnonzero(sure)[nearest], none)


def _nearest(rows: FloatArray, others: FloatArray, *, skip_own: bool = False) -> tuple[FloatArray, Array]:
    """Distance to the nearest of the others, and which it is."""
    distance, nearest = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
    squares = np.einsum("ij,ij->i", others, others)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[start : start + _ROWS_AT_ONCE]
        apart = np.einsum("ij,ij->i", block, block)[:, None] - 2 * block @ others.T + squares
        if skip_own:
            apart[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        nearest[start : start + len(block)] = apart.argmin(axis=1)
        distance[start : start + len(block)] = np.sqrt(np.maximum(apart.min(axis=1), 0.0))
    return distance, nearest
