"""Rows without a partner help to learn: annealed self-learning, as VecMap does it (Artetxe et al. 2018).

The pairs that are given, right and wrong, make a first map; rows of both sides, paired or not, that are each other's
nearest neighbours under it make the next dictionary, and so on. Where most of the given pairs are wrong, the first map
is little better than chance, and only the strongest directions are worth comparing: hence the softness of the whitening
(see `inlier.calibration.retrieval`), which falls when the dictionary has settled.

What was learned judges pairs that took no part in it: neither their pairing nor their rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.linear_map import LinearMap, learn_map
from inlier.calibration.retrieval import NEIGHBOURS, Alignment, Side, crowding, mutual_neighbours
from inlier.calibration.significance import Significance
from inlier.calibration.strategy import Learner, PairScorer, prepared_rows, re_paired_scores
from inlier.rows import PairedRows
from inlier.rows.backend import from_host, to_host
from inlier.rows.null_pairs import pair_labels

MOST_POOLED = 6_000  # rows of a side that neighbours are looked for among: a round takes their square
_FIRST_SOFTNESS, _LAST_SOFTNESS = 1.5, 0.1  # 3 and 10 left the start later with 80 % wrong, 0.3 too
_SETTLED = 0.97  # share of a dictionary that was in the last one; at 0.85 it may still be on its way
_MOST_ROUNDS = 16  # before the softness falls; with 80 % of 1,500 pairs wrong the dictionary grows for twelve
_FEWEST = 10  # mutual neighbours that a map is learned from
_HELD_OUT = 5  # one in so many training pairs decides which model is taken
_RE_PAIRINGS = 20  # of each of them


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
class NeighbourScorer:
    """CSLS of prepared rows in the coordinates that were learned, beside the pools they were learned from."""

    undo: tuple[FloatArray, FloatArray]
    sides: tuple[Side, Side]
    alignment: Alignment
    pool_x: FloatArray
    pool_y: FloatArray
    support: float
    significance: Significance

    def scores(self, x: Any, y: Any) -> Any:
        """CSLS of each pair."""
        a, b, around_a, around_b = self._placed(x, y)
        return from_host(2 * np.sum(a * b, axis=1, dtype=np.float64) - around_a - around_b, x)

    def scores_of_all_pairings(self, x: Any, y: Any) -> Any:
        """CSLS of x_i with y_j, for all i and j."""
        a, b, around_a, around_b = self._placed(x, y)
        return from_host(2 * (a @ b.T).astype(np.float64) - around_a[:, None] - around_b, x)

    def pairings(self, x: Any, y: Any) -> Callable[[Array, Array], Any]:
        """What scores x_i with y_j, given numbers i and j."""
        a, b, around_a, around_b = self._placed(x, y)

        def scores(i: Array, j: Array) -> Any:
            return from_host(2 * np.sum(a[i] * b[j], axis=1, dtype=np.float64) - around_a[i] - around_b[j], x)

        return scores

    def _placed(self, x: Any, y: Any) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        a = self.alignment.x(self.sides[0](to_host(x) @ self.undo[0]))
        b = self.alignment.y(self.sides[1](to_host(y) @ self.undo[1]))
        return a, b, crowding(a, self.pool_y), crowding(b, self.pool_x)


class SelfLearner:
    """Learns from pairs and from rows without a partner; the model that held-out pairs tell best apart is taken."""

    def __init__(
        self, learner: Any, pairs: PairedRows, x_rest: FloatArray, y_rest: FloatArray, rng: np.random.RandomState
    ) -> None:
        self._learner: Learner = learner
        self._pairs, self._rng = pairs, rng
        self._undo = pairs.map_x.undo(), pairs.map_y.undo()
        self._rest = x_rest @ self._undo[0], y_rest @ self._undo[1]
        self.by_pairs_alone = len(x_rest) + len(y_rest) == 0
        self._model: int | None = None  # number of the model that is taken, for all folds

    def learn(self, training: Array) -> PairScorer | None:
        """Learn from these pairs and the rows without a partner; the first time, choose what to learn."""
        if self._model is None:
            self._model = self._choose(self._rng.permutation(training))
        return self._learned(training, self._model)

    def _learned(self, rows: Array, model: int) -> PairScorer | None:
        """By neighbours, by a linear map from neighbours, or from the pairs alone."""
        if model == 2:
            return self._learner.learn(rows)
        rows = self._rng.permutation(rows)[:MOST_POOLED]
        prepared = [to_host(side) for side in prepared_rows(self._pairs, rows)]
        x, y = (side @ undo for side, undo in zip(prepared, self._undo, strict=True))
        rest = [some[: max(MOST_POOLED - rows.size, 0)] for some in self._rest]
        pools = Pools.of(x, y, *rest)
        i, j = learn_dictionary(pools)
        if model == 1:
            return self._linear_map(np.concatenate([x, rest[0]])[i], np.concatenate([y, rest[1]])[j])
        alignment = Alignment.of(pools.sides, pools.a[i], pools.b[j], np.ones(i.size))
        pool_x, pool_y = alignment.x(pools.a), alignment.y(pools.b)
        scorer = NeighbourScorer(self._undo, pools.sides, alignment, pool_x, pool_y, float(i.size), _UNKNOWN)
        return scorer if min(len(pool_x), len(pool_y)) > NEIGHBOURS else None

    def _linear_map(self, x: FloatArray, y: FloatArray) -> LinearMap | None:
        """The map between the neighbours, back in prepared coordinates."""
        of_x, of_y = (np.linalg.pinv(undo) for undo in self._undo)
        return learn_map(x @ of_x, y @ of_y, self._rng, None, np.ones(len(x)))

    def _choose(self, shuffled: Array) -> int:
        """The model whose scores tell pairs that it has not seen best from re-pairings."""
        held_out, others = np.split(shuffled, [max(shuffled.size // _HELD_OUT, 2)])
        x, y = prepared_rows(self._pairs, held_out)
        labels = pair_labels(to_host(x), to_host(y))
        strength = []
        for model in range(2 if self.by_pairs_alone else 3):  # without them, the pairs alone were tried before
            learned = self._learned(others, model)
            if learned is None:
                strength.append(-1.0)
                continue
            null = re_paired_scores(learned, x, y, labels, _RE_PAIRINGS, self._rng)
            strength.append(Significance.of(to_host(learned.scores(x, y)), null).berk_jones)
        return int(np.argmax(strength))


_UNKNOWN = Significance(np.ones(1), 0.0, 1.0, 0.0)  # how its own training pairs stand out is not asked
