"""Folds: what is learned must not have seen the pair that it judges, nor anything that tells its answer.

Pairs of one *unit* share a fold. Units are the groups that were given. Where none were, they are the equal rows of one
table, of that which repeats itself more: a subject's row that was merged onto all visits is one witness, not many.
Equal rows of the other table are kept apart by leaving out of the training whatever has a row in common with the fold
(`training_without`); were they tied together too, matches of many to many would all be one unit.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from inlier._typing import Array

_MANY_STRATA = 4  # for each fold: then strata are not split, so that all of each can be re-paired


def units_of(labels: Array, *, has_groups: bool) -> Array | None:
    """Number of the unit of each pair; None where every pair is one of its own."""
    if not has_groups:
        most_repeated = min(labels[:2], key=lambda side: np.unique(side).size)
        return None if np.unique(most_repeated).size == most_repeated.size else _numbered(most_repeated)
    points, groups, n = labels[:2], labels[2], labels.shape[1]
    equal = np.unique(points, axis=1, return_inverse=True)[1].reshape(-1)
    together = coo_matrix((np.ones(n), (groups, groups.max() + 1 + equal)), shape=(2 * n, 2 * n))
    found = _numbered(connected_components(together, directed=False)[1][groups])
    return None if found.max() + 1 == n else found


def _numbered(labels: Array) -> Array:
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def mean_size(units: Array | None) -> float:
    """How many pairs there are in the unit of a typical pair: so many stand or fall together."""
    if units is None:
        return 1.0
    sizes = np.bincount(units)
    return float(np.sum(sizes**2) / np.sum(sizes))


def training_without(own: Array, labels: Array, *, has_groups: bool) -> Array:
    """Pairs that may be learned from where ``own`` are judged: neither these nor any that has a row of theirs."""
    apart = np.ones(labels.shape[1], dtype=bool)
    apart[own] = False
    if not has_groups:
        for side in labels[:2]:
            met = np.zeros(int(side.max()) + 1, dtype=bool)
            met[side[own]] = True
            apart &= ~met[side]
    return np.flatnonzero(apart)


def rows_together(labels: Array, units: Array | None, *, has_groups: bool) -> list[tuple[Array, Array]]:
    """Pairs of units beside which others may not be learned from either, and all that is left out with them."""
    units = np.arange(labels.shape[1]) if units is None else units
    linked = [units] if has_groups else [units, *labels[:2]]
    several = [np.bincount(side)[side] > 1 for side in linked]
    found = []
    for unit in np.unique(units[np.any(several, axis=0)]):
        own = np.flatnonzero(units == unit)
        training = training_without(own, labels, has_groups=has_groups)
        found.append((own, np.setdiff1d(np.arange(units.size), training)))
    return found


def deal_folds(labels: Array, units: Array | None, n_folds: int, rng: np.random.RandomState) -> Array:
    """Deal the pairs into folds of similar size; pairs of one unit go together, strata are spread over the folds."""
    n = labels.shape[1]
    if units is None:
        return _deal_pairs(labels, min(n_folds, n // 2), rng)
    size = np.bincount(units)
    n_folds = min(n_folds, max(size.size // 2, 2))
    order = rng.permutation(size.size)
    if len(labels) > 2:  # every stratum is spread over the folds
        stratum = np.zeros(size.size, dtype=int)
        stratum[units] = labels[3]
        order = order[np.argsort(stratum[order], kind="stable")]
        order = np.concatenate([order[start::n_folds] for start in range(n_folds)])
    middle = np.cumsum(size[order]) - size[order] / 2  # units in a row, cut into stretches of equal length
    fold_of_unit = np.empty(size.size, dtype=int)
    fold_of_unit[order] = middle * n_folds // n
    return fold_of_unit[units]


def _deal_pairs(labels: Array, n_folds: int, rng: np.random.RandomState) -> Array:
    """Pairs one by one; of a stratum two at a time, which can be re-paired; whole strata where there are many."""
    n = labels.shape[1]
    if len(labels) == 2:
        return rng.permutation(np.arange(n) % n_folds)
    n_strata = int(labels[3].max()) + 1
    if n_strata >= _MANY_STRATA * n_folds:
        return rng.permutation(np.arange(n_strata) % n_folds)[labels[3]]
    order = rng.permutation(n)
    order = order[np.argsort(labels[3][order], kind="stable")]
    fold_of = np.empty(n, dtype=int)
    fold_of[order] = np.arange(n) // 2 % n_folds
    return fold_of
