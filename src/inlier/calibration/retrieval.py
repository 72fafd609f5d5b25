"""Who is nearest to whom: two sets of rows in common coordinates, compared by CSLS, a block of rows at a time.

*Coordinates.* Each side is centred and its rows scaled to unit length; then come its principal directions, of variance
v_k, divided by sqrt(v_k + softness * mean v): softness 0 is whitening. With the cross moment of known pairs
A^T W B = U S V^T, rows are compared as a U S^1/2 and b V S^1/2: directions count by how far the two sides agree.

*CSLS* (Conneau et al. 2018): 2 cos(x, y) - r(x) - r(y), where r is the mean cosine with the nearest rows of the other
side: a row that is near everybody is nobody's partner.

No matrix of all rows with all rows is kept: 10^5 x 10^5 takes as much memory as 10^5 x 100.

*Self-learning.* Rows without a partner help to learn, annealed, as VecMap does it (Artetxe et al. 2018). The pairs that
are given, right and wrong, make a first map; rows of both sides, paired or not, that are each other's nearest
neighbours under it make the next dictionary, and so on. Where most of the given pairs are wrong, the first map is
little better than chance, and only the strongest directions are worth comparing: hence the softness of the whitening,
which falls when the dictionary has settled. What was learned judges pairs that took no part in it: neither their
pairing nor their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.models.inner_products import InnerProducts
from inlier.calibration.models.learner import Learner, PairScorer, prepared_rows, re_paired_scores
from inlier.calibration.models.linear_map import LinearMap, learn_map
from inlier.calibration.models.significance import NOT_COMPARED, Significance
from inlier.rows import PairedRows, principal_directions, summarise_columns
from inlier.rows.backend import from_host, to_host
from inlier.rows.null_pairs import pair_labels

NEIGHBOURS = 10  # whose mean cosine says how crowded it is around a row; Conneau et al. take ten
NOWHERE = -2.0  # cosine of what is not there: below that of opposite rows
_BLOCK = 2**24  # cosines that are held at a time, 64 MiB of them
_SOFTNESS = 0.1  # of the coordinates that proposals are compared in: on its way from 3 to 0 nothing is gained any more
MOST_POOLED = 6_000  # rows of a side that neighbours are looked for among: a round takes their square
_FIRST_SOFTNESS, _LAST_SOFTNESS = 1.5, 0.1  # 3 and 10 left the start later with 80 % wrong, 0.3 too
_SETTLED = 0.97  # share of a dictionary that was in the last one; at 0.85 it may still be on its way
_MOST_ROUNDS = 16  # before the softness falls; with 80 % of 1,500 pairs wrong the dictionary grows for twelve
_FEWEST = 10  # mutual neighbours that a map is learned from
_HELD_OUT = 5  # one in so many training pairs decides which model is taken
_RE_PAIRINGS = 20  # of each of them


@dataclass(frozen=True, eq=False)
class Side:
    """How rows of one table are brought to the principal directions of many of them."""

    mean: FloatArray
    scale: FloatArray
    centre: FloatArray
    directions: FloatArray
    variances: FloatArray

    @staticmethod
    def of(rows: FloatArray) -> Side:
        """Centre the columns and divide them by their spread, scale rows to unit length, centre again."""
        mean, scale = rows.mean(axis=0), rows.std(axis=0)
        scale[scale == 0] = 1.0
        lengths_alike = unit_rows((rows - mean) / scale)
        summary = summarise_columns(lengths_alike)
        variances, directions = principal_directions(lengths_alike, summary, np.ones(1))
        return Side(mean, scale, summary.mean, directions, variances)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return rows in principal directions, as long as they come out."""
        return (unit_rows((rows - self.mean) / self.scale) - self.centre) @ self.directions

    def whitening(self, softness: float) -> FloatArray:
        """What the principal directions are divided by, inverted: with softness 0, their spread."""
        floor = max(softness, 1e-9) * float(self.variances.mean())
        return 1 / np.sqrt(self.variances + floor)


@dataclass(frozen=True, eq=False)
class Alignment:
    """The coordinates in which rows of both sides are compared; for rows in principal directions."""

    of_x: FloatArray
    of_y: FloatArray

    @staticmethod
    def of(
        sides: tuple[Side, Side], a: FloatArray, b: FloatArray, weights: FloatArray, softness: float = _SOFTNESS
    ) -> Alignment:
        """Learn them from rows a and b of pairs, in principal directions, that count so much each."""
        white_x, white_y = (side.whitening(softness) for side in sides)
        moment = (a * weights[:, None]).T @ b / max(float(weights.sum()), 1e-300)
        left, shared, right = np.linalg.svd(moment * white_x[:, None] * white_y, full_matrices=False)
        counts = np.sqrt(shared)
        return Alignment(white_x[:, None] * left * counts, white_y[:, None] * right.T * counts)

    def x(self, a: FloatArray) -> FloatArray:
        """Rows of x to be compared: float32, of unit length."""
        return unit_rows(a @ self.of_x).astype(np.float32)

    def y(self, b: FloatArray) -> FloatArray:
        """Rows of y to be compared: float32, of unit length."""
        return unit_rows(b @ self.of_y).astype(np.float32)


def unit_rows(rows: FloatArray) -> FloatArray:
    """Rows of unit length; a row of zeros stays one."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def crowding(rows: FloatArray, others: FloatArray) -> FloatArray:
    """Mean cosine of each row with the nearest of the others: r of CSLS."""
    k = min(NEIGHBOURS, len(others))
    means = [_mean_of_largest(rows[some] @ others.T, k) for some in _blocks(len(rows), len(others))]
    return np.concatenate(means) if means else np.empty(0)


def best_partners(
    x: FloatArray,
    y: FloatArray,
    crowding_of_y: FloatArray,
    k: int = 1,
    hide: Callable[[FloatArray, slice], None] | None = None,
) -> tuple[Array, FloatArray, FloatArray]:
    """Rows of y with the highest CSLS for each row of x, the best first, and how high it is: shapes (n, k).

    Also how crowded it is around x. ``hide`` is given the cosines of some rows of x, and sets those that are not there
    for them to `NOWHERE`.
    """
    n, k = len(x), min(k, len(y))
    rows, scores, around_x = np.empty((n, k), dtype=np.int64), np.empty((n, k)), np.empty(n)
    for some in _blocks(n, len(y)):
        cosines = x[some] @ y.T
        if hide is not None:
            hide(cosines, some)
        around_x[some] = _mean_of_largest(cosines, min(NEIGHBOURS, len(y)))
        cosines *= 2
        cosines -= crowding_of_y.astype(np.float32)
        best = _largest(cosines, k)
        rows[some] = best
        scores[some] = np.take_along_axis(cosines, best, axis=1) - around_x[some, None]
    return rows, scores, around_x


def mutual_neighbours(x: FloatArray, y: FloatArray) -> tuple[Array, Array]:
    """Rows i of x and j of y that are each other's best partner by CSLS."""
    around_y = crowding(y, x).astype(np.float32)
    of_x = np.empty(len(x), dtype=np.int64)
    of_y, highest = np.zeros(len(y), dtype=np.int64), np.full(len(y), -np.inf, dtype=np.float32)
    for some in _blocks(len(x), len(y)):
        cosines = x[some] @ y.T
        around_x = _mean_of_largest(cosines, min(NEIGHBOURS, len(y))).astype(np.float32)
        cosines *= 2
        cosines -= around_y
        of_x[some] = cosines.argmax(axis=1)
        cosines -= around_x[:, None]
        first = cosines.argmax(axis=0)
        values = cosines[first, np.arange(len(y))]
        higher = values > highest
        of_y[higher], highest[higher] = first[higher] + some.start, values[higher]
    i = np.flatnonzero(of_y[of_x] == np.arange(len(x)))
    return i, of_x[i]


def _mean_of_largest(table: FloatArray, k: int) -> FloatArray:
    return np.partition(table, table.shape[1] - k, axis=1)[:, table.shape[1] - k :].mean(axis=1, dtype=np.float64)


def _largest(table: FloatArray, k: int) -> Array:
    """Columns of the k largest values of each row, the largest first."""
    if k == 1:
        return table.argmax(axis=1)[:, None]
    some = np.argpartition(table, table.shape[1] - k, axis=1)[:, table.shape[1] - k :]
    order = np.argsort(-np.take_along_axis(table, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(width, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


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


_BY_NEIGHBOURS, _BY_THEIR_MAP, _BY_PAIRS_ALONE = range(3)  # models that `SelfLearner` chooses from


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
        self._model: int | None = None  # that is taken, for all folds

    def learn(self, training: Array) -> PairScorer | None:
        """Learn from these pairs and the rows without a partner; the first time, choose what to learn."""
        if self._model is None:
            enough = training.size >= _FEWEST  # a choice by a pair or two would be chance
            self._model = self._choose(self._rng.permutation(training)) if enough else _BY_PAIRS_ALONE
        return self._learned(training, self._model)

    def _learned(self, rows: Array, model: int) -> PairScorer | None:
        """By neighbours, by a linear map from neighbours, or from the pairs alone."""
        if model == _BY_PAIRS_ALONE:
            return self._learner.learn(rows)
        rows = self._rng.permutation(rows)[:MOST_POOLED]
        prepared = [to_host(side) for side in prepared_rows(self._pairs, rows)]
        x, y = (side @ undo for side, undo in zip(prepared, self._undo, strict=True))
        rest = [some[: max(MOST_POOLED - rows.size, 0)] for some in self._rest]
        pools = Pools.of(x, y, *rest)
        i, j = learn_dictionary(pools)
        if model == _BY_THEIR_MAP:
            return self._linear_map(np.concatenate([x, rest[0]])[i], np.concatenate([y, rest[1]])[j])
        alignment = Alignment.of(pools.sides, pools.a[i], pools.b[j], np.ones(i.size))
        pool_x, pool_y = alignment.x(pools.a), alignment.y(pools.b)
        scorer = NeighbourScorer(self._undo, pools.sides, alignment, pool_x, pool_y, float(i.size), NOT_COMPARED)
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
        models, strength = [_BY_NEIGHBOURS, _BY_THEIR_MAP], []
        if not self.by_pairs_alone:  # otherwise these alone were tried before
            models.append(_BY_PAIRS_ALONE)
        for model in models:
            learned = self._learned(others, model)
            if learned is None:
                strength.append(-1.0)
                continue
            null = re_paired_scores(learned, x, y, labels, _RE_PAIRINGS, self._rng)
            strength.append(Significance.of(to_host(learned.scores(x, y)), null).berk_jones)
        return models[int(np.argmax(strength))]
