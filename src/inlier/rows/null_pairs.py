"""Pairs that are wrong for sure: x_i with y_j of another pair. The one way in which pairs are re-paired.

The pairs come in random order, and y is shifted round and round against x: in shift s, the partner of the pair at place
k is that at place k - s (`n_shifts` says how many shifts it takes). So every x and every y is met equally often.

Real correspondences repeat points, so x_i and y_j may be a real pair under another number. Hence a point is never
re-paired where its own pair, or its partner's, has the same point (`share_no_point`). That alone would be unfair: a
point that makes up a share f of its side is left out by a share f of its partners. So a re-pairing is kept with a
chance in proportion to 1 / ((1 - f of x_i) (1 - f of y_j)), and then points are met as often as they occur.

What belongs together stays together: pairs of one *group* (a subject's replicates) are never re-paired with each other,
and where wrong partners come from the same *stratum* (a plate, a tissue), re-pairings stay inside it, by shifting the
pairs of each stratum among themselves. Points, group and stratum of each pair are the rows of one array, its *labels*:
two of them where neither groups nor strata were given, otherwise four (`pair_labels`).

Points are equal if a hash of their coordinates is: `row_hashes`, from which follow `point_numbers` and
`distinct_pairs`. Pairs are numbers i and j in arrays; nothing here knows what they will be used for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.rows.backend import to_host
from inlier.rows.threads import row_blocks

_FEW_PARTNERS = 0.1  # quantile of the numbers of partners inside strata that the others are thinned out to
_SAMPLE = 10_000  # rows that are looked at first in a long table; if none repeats, repeats are too rare to matter
MIXER = np.uint64(0x9E3779B97F4A7C15)  # an odd constant whose bits look random


def pair_labels(X: Any, Y: Any, groups: Array | None = None, strata: Array | None = None) -> Array:
    """Return what pairs may have in common, a number per pair: its x, its y; and its group and stratum if given."""
    points = [point_numbers(X), point_numbers(Y)]
    if groups is None and strata is None:
        return np.stack(points)
    n = points[0].size
    groups = np.arange(n) if groups is None else groups
    return np.stack([*points, groups, np.zeros(n, dtype=np.int64) if strata is None else strata])


def re_pairings(labels: Array, n_shifts: int, rng: np.random.RandomState) -> Iterator[tuple[Array, Array]]:
    """Yield numbers i and j of pairs, so that x_i with y_j is wrong for sure; one cyclic shift at a time.

    ``labels`` are equal for equal points, of x and of y, and for pairs of one group and of one stratum (see
    `pair_labels`). About ``n_shifts`` partners for each point: fewer where there are not so many other pairs, or where
    points are not equally frequent.
    """
    n = labels.shape[1]
    order, chances = rng.permutation(n), _chances_to_be_kept(labels)
    first, size = np.zeros(n, dtype=np.int64), np.full(n, n)  # of the stratum of each place
    if len(labels) > 2:
        order = order[np.argsort(labels[3][order], kind="stable")]
        _, number, sizes = np.unique(labels[3][order], return_inverse=True, return_counts=True)
        first, size = (np.cumsum(sizes) - sizes)[number], sizes[number]
    place = np.arange(n) - first
    for shift in range(1, max(min(n_shifts, int(size.max(initial=1)) - 1), 1) + 1):
        i, j = order, order[first + (place - shift) % size]
        kept = _kept(labels, i, j, chances, rng)
        yield i[kept], j[kept]


def are_re_pairings(labels: Array, partners: Array, rng: np.random.RandomState) -> Mask:
    """Whether x_i with y_j is wrong for sure and kept, for all pairs i and these partners j: shape (n, k)."""
    return _kept(labels, np.arange(labels.shape[1])[:, None], partners, _chances_to_be_kept(labels), rng)


def n_shifts(n_pairs: int, n_re_pairings: int) -> int:
    """How many cyclic shifts of n pairs give about so many re-pairings: at least one, never back to the start."""
    return max(1, min(-(-n_re_pairings // n_pairs), n_pairs - 1))


def share_no_point(labels: Array, i: Array, j: Array) -> Mask:
    """Whether pairs i and j have neither the x nor the y in common; the numbers are broadcast against each other."""
    x, y = labels[:2]
    apart: Mask = (x[i] != x[j]) & (y[i] != y[j])
    return apart


def may_be_re_paired(labels: Array, i: Array, j: Array) -> Mask:
    """Whether x_i with y_j is wrong for sure, and a mistake that could have been made."""
    allowed = share_no_point(labels, i, j)
    if len(labels) > 2:
        group, stratum = labels[2:]
        allowed &= (group[i] != group[j]) & (stratum[i] == stratum[j])
    return allowed


def _kept(
    labels: Array, i: Array, j: Array, chances: tuple[FloatArray, FloatArray] | None, rng: np.random.RandomState
) -> Mask:
    kept = may_be_re_paired(labels, i, j)
    if chances is not None:
        kept &= rng.uniform(size=kept.shape) < chances[0][i] * chances[1][j]
    return kept


def _chances_to_be_kept(labels: Array) -> tuple[FloatArray, FloatArray] | None:
    """In proportion to 1 / (1 - f), f the share of each point of x and y; the largest is 1. None where all are."""
    if len(labels) > 2:
        return _chances_inside_strata(labels)
    of_x, of_y = (labels.shape[1] - np.bincount(side)[side] for side in labels)  # how many pairs have another point
    if of_x.min() == of_x.max() and of_y.min() == of_y.max():
        return None
    return max(of_x.min(), 1) / np.maximum(of_x, 1), max(of_y.min(), 1) / np.maximum(of_y, 1)


def _chances_inside_strata(labels: Array) -> tuple[FloatArray, FloatArray]:
    """In proportion to 1 / (how many partners a pair has in its stratum, of another group), so that all count alike.

    Not below a tenth of the pairs' number of partners: a stratum of two would otherwise thin out all the others.
    """
    inside = np.bincount(labels[3])[labels[3]]
    _, number, together = np.unique(labels[2:], axis=1, return_inverse=True, return_counts=True)
    partners = np.maximum(inside - together[number.reshape(-1)], 1)
    least = max(float(np.quantile(partners, _FEW_PARTNERS)), 1.0)
    return np.minimum(least / partners, 1.0), np.ones(partners.size)


def point_numbers(table: Any) -> Array:
    """Return a number per row, equal for equal rows.

    Rows are compared by a 64-bit hash of their values, so two different rows are taken for one with a chance of
    some n^2 / 2^65.
    """
    n_rows = int(table.shape[0])
    if n_rows > 2 * _SAMPLE and _all_differ(row_hashes(table[:_SAMPLE, :])):
        return np.arange(n_rows)
    hashes = row_hashes(table)
    if _all_differ(hashes):  # the usual case, and faster to see than to number
        return np.arange(n_rows)
    return np.unique(hashes, return_inverse=True)[1]


def distinct_pairs(X: Any, Y: Any) -> tuple[Array, Array]:
    """Return the rows where each different pair stands first, in rising order, and which of those pairs each row is.

    Pairs are compared as `point_numbers` compares rows.
    """
    of_pairs = row_hashes(X) * MIXER + row_hashes(Y)
    _, first, numbers = np.unique(of_pairs, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    return first[order], ranks[numbers]


def row_hashes(table: Any) -> Array:
    """Return a 64-bit number per row that is equal for equal rows, and hardly ever for others; -0 equals 0."""
    n_rows, n_columns = table.shape
    hashes = np.zeros(n_rows, dtype=np.uint64)
    for rows in row_blocks(n_rows, n_columns):
        values = np.ascontiguousarray(to_host(table[rows, :]), dtype=np.float64) + 0.0
        for column in values.T:
            mixed = (hashes[rows] ^ np.ascontiguousarray(column).view(np.uint64)) * MIXER
            hashes[rows] = mixed ^ (mixed >> np.uint64(32))
    return hashes


def _all_differ(hashes: Array) -> bool:
    rising = np.sort(hashes)
    return bool((rising[1:] != rising[:-1]).all())
