"""Learn who belongs together from who is nearest to whom, whoever they were paired with.

Where most pairs are wrong because they are a permutation of each other, and where there are rows without a partner
besides the pairs, the right partners are in the tables all the same. Annealed, as VecMap does it (Artetxe et al. 2018):
the pairs that are given, right and wrong, make a first map; rows of both sides, paired or not, that are each other's
nearest neighbours under it (see `inlier.calibration.retrieval`) make the next dictionary, and so on. Where most of the
given pairs are wrong, the first map is little better than chance, and only the strongest directions are worth
comparing: hence the softness of the whitening, which falls when the dictionary has settled. What was learned judges
pairs that took no part in it: neither their pairing nor their rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.models.inner_products import InnerProducts
from inlier.calibration.models.significance import NOT_COMPARED, Significance
from inlier.calibration.retrieval import NEIGHBOURS, Alignment, Side, crowding, mutual_neighbours
from inlier.rows.backend import from_host, to_host

MOST_POOLED = 6_000  # rows of a side that neighbours are looked for among: a round takes their square
_FIRST_SOFTNESS, _LAST_SOFTNESS = 1.5, 0.1  # 3 and 10 left the start later with 80 % wrong, 0.3 too
_SETTLED = 0.97  # share of a dictionary that was in the last one; at 0.85 it may still be on its way
_MOST_ROUNDS = 16  # before the softness falls; with 80 % of 1,500 pairs wrong the dictionary grows for twelve
_FEWEST = 10  # mutual neighbours that a map is learned from


@dataclass(frozen=True, eq=False)
class Pools:
    """Rows of both sides in principal directions, of which the first are paired, row by row."""

    sides: tuple[Side, Side]
    a: FloatArray
    b: FloatArray
    n_paired: int

    @staticmethod
    def of(x: FloatArray, y: FloatArray, x_rest: FloatArray, y_rest: FloatArray) -> Pools:
        """Put paired rows and rows without a partner together."""
        all_x, all_y = np.concatenate([x, x_rest]), np.concatenate([y, y_rest])
        sides = Side.of(all_x), Side.of(all_y)
        return Pools(sides, sides[0](all_x), sides[1](all_y), len(x))


def learn_dictionary(pools: Pools) -> tuple[Array, Array]:
    """Learn which rows of the pools belong together, from pairs of which many may be wrong: mutual neighbours."""
    i = j = np.arange(pools.n_paired)
    softness, n_rounds, before = _FIRST_SOFTNESS, 0, np.full(len(pools.a), -1)
    while softness >= _LAST_SOFTNESS:
        alignment = Alignment.of(pools.sides, pools.a[i], pools.b[j], np.ones(i.size), softness)
        found = mutual_neighbours(alignment.x(pools.a), alignment.y(pools.b))
        if found[0].size < _FEWEST:
            break
        i, j = found
        n_rounds += 1
        if n_rounds >= _MOST_ROUNDS or np.mean(before[i] == j) >= _SETTLED:
            softness /= 2
        before[:] = -1
        before[i] = j
    return i, j


@dataclass(frozen=True, eq=False)
class NeighbourScorer(InnerProducts):
    """CSLS of prepared rows in the coordinates that were learned, beside the pools they were learned from."""

    undo: tuple[FloatArray, FloatArray]
    sides_of: tuple[Side, Side]
    alignment: Alignment
    pool_x: FloatArray
    pool_y: FloatArray
    support: float
    significance: Significance

    def sides(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Rows whose inner products are 2 cos(x, y) - r(x) - r(y)."""
        a, b = (side(to_host(rows) @ undo) for side, rows, undo in zip(self.sides_of, (x, y), self.undo, strict=True))
        a, b = self.alignment.x(a), self.alignment.y(b)
        around_a, around_b = crowding(a, self.pool_y)[:, None], crowding(b, self.pool_x)[:, None]
        left = np.hstack([2.0 * a, -around_a, np.ones_like(around_a)])
        return from_host(left, x), from_host(np.hstack([b, np.ones_like(around_b), -around_b]), y)


def learn_neighbours(
    x: FloatArray, y: FloatArray, rest: tuple[FloatArray, FloatArray], undo: tuple[FloatArray, FloatArray]
) -> NeighbourScorer | None:
    """Learn from prepared rows of pairs, in random order, and rows without a partner; ``undo`` gives them back."""
    paired = [rows[:MOST_POOLED] for rows in (x, y)]
    pooled = [some[: max(MOST_POOLED - len(x), 0)] for some in rest]
    if min(len(own) + len(others) for own, others in zip(paired, pooled, strict=True)) <= NEIGHBOURS:
        return None  # where most rows are copies of each other, few are left, or none
    pools = Pools.of(*(rows @ back for rows, back in zip((*paired, *pooled), (*undo, *undo), strict=True)))
    i, j = learn_dictionary(pools)
    alignment = Alignment.of(pools.sides, pools.a[i], pools.b[j], np.ones(i.size))
    pool_x, pool_y = alignment.x(pools.a), alignment.y(pools.b)
    return NeighbourScorer(undo, pools.sides, alignment, pool_x, pool_y, float(i.size), NOT_COMPARED)
