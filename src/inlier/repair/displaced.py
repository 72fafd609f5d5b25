"""Is a row displaced at all? A row at home has its own partner near the top, whoever else comes nearer.

Of a row that is with a stranger, the own partner stands among all others in any place alike; so do those of rows that
are re-paired with each other. Where own pairs stand near the top more often than these, rows are at home, badly
measured or not: a local false discovery rate of places, by a mixture of what is even and a power law (Pounds and
Morris, 2003). It asks nothing of how well a pair fits, so that it holds for rows that are far out, where nothing fits
and strangers come near.
"""

from __future__ import annotations

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.repair.odds import Odds, in_parts

_RE_PAIRINGS = 2_000  # of rows that are tried, about
_MOST_EACH = 20
_TIE = 1e-4  # odds that differ by less are those of one pair, in single precision
_NEAR = np.linspace(0.0, 0.99, 100)  # shares of own partners whose places follow a power law, those of others any
_STEEP = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6])  # its powers


def places(odds: Odds, i: Array, j: Array, has: tuple[Mask, Mask]) -> tuple[Array, Array]:
    """Place of y_j among all y for x_i, and of x_i among all x for y_j; 1 if none fits better."""
    every_x, every_y = np.flatnonzero(has[0]), np.flatnonzero(has[1])
    of_x, of_y = np.ones((2, i.size), dtype=np.int64)
    for part in in_parts(np.arange(i.size), odds.n):
        own = (odds.pairs(i[part], j[part]) + _TIE).astype(np.float32)
        of_x[part] += (odds.block(i[part], every_y) > own[:, None]).sum(axis=1)
        of_y[part] += (odds.block(every_x, j[part]) > own).sum(axis=0)
    return of_x, of_y


def chances_displaced(
    odds: Odds, rows: Array, own_places: tuple[Array, Array], has: tuple[Mask, Mask], rng: np.random.RandomState
) -> FloatArray:
    """Chance that each of these pairs is none, by the places of the two for each other."""
    strata = np.zeros(odds.n, dtype=np.int64) if odds.strata is None else odds.strata
    some, times = rng.permutation(rows)[:_RE_PAIRINGS], min(_RE_PAIRINGS // max(rows.size, 1) + 1, _MOST_EACH)
    i, j = np.concatenate([_re_paired(some, strata, rng) for _ in range(times)], axis=1)
    if not i.size:
        return np.ones(rows.size)
    size = np.bincount(strata).astype(np.float64)
    own, null = (
        np.log(of_x * of_y / size[strata[of]] ** 2)
        for of, (of_x, of_y) in ((rows, own_places), (i, places(odds, i, j, has)))
    )
    null.sort()
    below = (np.searchsorted(null, own, "right") + 1) / (null.size + 1)
    near = _STEEP * below[:, None] ** (_STEEP - 1)
    seen = 1 - _NEAR + _NEAR * near[:, :, None]
    last = 1 - _NEAR + _NEAR * _STEEP[:, None]  # where only displaced rows stand
    likelihood = np.log(seen).sum(axis=0) + np.log(last)  # as if one more stood there
    steep, share = np.unravel_index(np.argmax(likelihood), likelihood.shape)
    found: FloatArray = np.minimum(last[steep, share] / seen[:, steep, share], 1.0)
    return found


def _re_paired(rows: Array, strata: Array, rng: np.random.RandomState) -> Array:
    """Each of the rows with another of its stratum, where there is one."""
    order = rng.permutation(rows)
    order = order[np.argsort(strata[order], kind="stable")]
    first = np.append(0, np.flatnonzero(np.diff(strata[order])) + 1)
    last = np.append(first[1:], order.size) - 1
    after = np.arange(1, order.size + 1)
    after[last] = first
    pairs = np.stack([order, order[after]])
    return pairs[:, pairs[0] != pairs[1]]
