"""Rows that are not independent, although nobody said so: replicates, failed samples, neighbours in the order of rows.

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

from inlier._typing import Array, FloatArray, Mask
from inlier.rows.backend import namespace, to_host

_LOOKED_AT, MOST_LOOKED_AT = 100, 20_000  # rows whose neighbours are looked for, and rows that these may be
_MOST_REPLICATES, _FARTHEST = 10, 21  # neighbours: at whose gap replicates are looked for, and up to which D is told by
_TYPICAL_GAP = 3.0  # mean gap over rows, 1 for independent ones, that tells replicates on both sides
_SMALL = 1e-12  # distance that counts as none, relative to a typical one
_LARGEST_GAP = 5.0  # times log n: the largest of n exponential variables is about log n
_FARTHER = 1.5  # times as far from the mean is the next row, at the least
_FEWEST_FAILED = 3
_FEWEST_DIMENSIONS = 2.5  # in one or two, levels of whole numbers leave such a gap
_BESIDE, _SURE = 5, 5.0  # rows before and after that count as near in order; standard errors above chance


@dataclass(frozen=True)
class Dependence:
    """What was seen."""

    replicates: int = 0  # how many rows resemble each other as replicates do, including the row itself; 0 if none do
    in_order: bool = False  # whether rows that follow each other resemble each other in both tables

    @staticmethod
    def between(x: FloatArray, y: FloatArray, equal: Array, rng: np.random.RandomState) -> Dependence:
        """Look at prepared rows; ``equal`` are numbers that pairs which are known to go together share."""
        n = min(len(x), MOST_LOOKED_AT)
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
    variances = to_host(namespace(table).mean(table**2, axis=0))
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
