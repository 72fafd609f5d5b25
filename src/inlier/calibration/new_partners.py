"""Partners for rows that have none, with an error rate for the names: who is nearest, and is that by chance?

A row is compared with all candidates by what was learned from a dictionary without the entries of its own fold, and how
crowded it is around a candidate is told by rows of other folds, so that no row takes part in what judges it. A name's
score is by how much its CSLS is above the next best for its x, or for its y, whichever is less. Pairs that are sure,
looked up like any row, tell how often a name is wrong and scores s or more: F(s) where the partner is not among the
candidates (their own taken away), W(s) where it is. Of N rows, of which a share h have their partner there,

    N ((1 - h) F(s) + h W(s))

names are wrong and score s or more. The share is told by how many names score high: with G(s) that of all names of sure
pairs, a share (1 - h) F + h G; h is taken two standard errors low. Sure pairs are clearer than others, so G is too
large, and h too small, which errs on the safe side, for F > W.

Rows looked up may come from one cluster of those that were learned from, or from another batch. So sure pairs count as
often as rows looked up are as crowded as they are; and nothing is said of a name if it is more crowded around its x
than around any sure pair's, or emptier around its y, where no x is that could be a rival.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import false_discovery_control

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.retrieval import NOWHERE, Alignment, Side, best_partners, crowding
from inlier.rows.null_pairs import row_hashes

_FOLDS = 5
_MOST_SURVEYED = 20_000  # rows that principal directions are found from
_MOST_AROUND = 10_000  # rows of x that say how crowded it is around a candidate
_MOST_SURE = 2_000  # pairs that tell how often names are wrong
_CROWDED_ALIKE = 20  # sure pairs that stand for each row looked up
_TAKEN_LOW = 2.0  # standard errors by which the share of rows with their partner there is taken low
_FEWEST_ENTRIES = 2 * _FOLDS


class Found(NamedTuple):
    """Candidates for each x, the best first: shapes (n, k)."""

    rows: Array
    scores: FloatArray
    p_values: FloatArray
    q_values: FloatArray
    alike: Mask  # whether x, and the name for it, are in such surroundings as sure pairs are; nothing is said of others


@dataclass(frozen=True, eq=False)
class Proposer:
    """What was learned from a dictionary, once for each fold without it, and the pairs that make the null."""

    sides: tuple[Side, Side]
    alignments: tuple[Alignment, ...]
    around: FloatArray  # rows of x, in principal directions, that candidates are near to
    fold_around: Array
    sure_x: FloatArray  # rows of pairs that are sure
    sure_y: FloatArray

    @staticmethod
    def of(
        x: FloatArray,
        y: FloatArray,
        entries: tuple[Array, Array, FloatArray],
        sure: Array,
        rng: np.random.RandomState,
    ) -> Proposer | None:
        """Learn from entries: rows i of x, rows j of y and what they count for; None where there are too few.

        ``sure`` are numbers of rows that are pairs, of x as of y.
        """
        i, j, weights = entries
        if np.count_nonzero(weights) < _FEWEST_ENTRIES:
            return None
        sides = (
            Side.of(x[_some(len(x), _MOST_SURVEYED, rng)]),
            Side.of(y[_some(len(y), _MOST_SURVEYED, rng)]),
        )
        a, b, fold = sides[0](x[i]), sides[1](y[j]), _fold_of(x[i])
        alignments = tuple(
            Alignment.of(sides, a[fold != own], b[fold != own], weights[fold != own]) for own in range(_FOLDS)
        )
        around = x[_some(len(x), _MOST_AROUND, rng)]
        some = sure[_some(sure.size, _MOST_SURE, rng)]
        return Proposer(sides, alignments, sides[0](around), _fold_of(around), x[some], y[some])

    def find(self, x: FloatArray, candidates: FloatArray, k: int) -> Found:
        """Look for the k best candidates for each x."""
        n, m = len(x), len(self.sure_x)
        rows_y = np.concatenate([candidates, self.sure_y])
        different, same_as = _different(rows_y)  # equal rows are one candidate
        n_candidates, own = int(np.count_nonzero(different < len(candidates))), same_as[len(candidates) :]
        k = min(k, n_candidates)
        # sure pairs are looked up twice: with their own partner among the candidates, and without it
        pool = _Pool(rows_y[different], n_candidates, np.concatenate([np.full(n, -1), own, own]), n + m)
        best, scores, around_x, around_y = self._best(np.concatenate([x, self.sure_x, self.sure_x]), pool, k)
        found, if_here, if_gone = np.split(scores, [n, n + m])
        if_gone[own < n_candidates, n_candidates - 1 :] = np.inf  # where there is no candidate left
        sure = slice(n, n + m)
        alike = (around_x[:n] <= around_x[sure].max(initial=-np.inf)) & (
            around_y[:n] >= around_y[sure].min(initial=np.inf)
        )
        weights, p = _as_crowded(around_x[:n][alike], around_x[sure]), np.ones_like(found)
        here = _share_here(np.where(alike, found[:, :1].T, -np.inf).ravel(), if_here, if_gone, weights)
        for rank in range(k if m else 0):  # with no pair that is sure, nothing tells how often names are wrong
            wrong = np.where(best[sure, rank] == own, -np.inf, if_here[:, rank])
            p_here, p_gone = (_tail(found[:, rank], null, weights) for null in (wrong, if_gone[:, rank]))
            p[:, rank] = np.where(alike, here * p_here + (1 - here) * p_gone, 1.0)
        return Found(different[best[:n]], found, p, false_discovery_control(p, axis=0) if n else p, alike)

    def _best(self, x: FloatArray, pool: _Pool, k: int) -> tuple[Array, FloatArray, FloatArray, FloatArray]:
        """Best k of the pool for each x, by what was learned without its fold; scores; crowding around x and name."""
        a, b, fold = self.sides[0](x), self.sides[1](pool.y), _fold_of(x)
        best, scores = np.zeros((len(x), k), dtype=np.int64), np.zeros((len(x), k))
        around_x, around_name = np.zeros((2, len(x)))
        for own, alignment in enumerate(self.alignments):
            others = self.fold_around != own
            y, around = alignment.y(b), alignment.x(self.around[others if others.any() else ~others])
            around_y, rival = crowding(y, around), best_partners(y, around, crowding(around, y))[1][:, 0]
            mine = np.flatnonzero(fold == own)
            hide = partial(pool.hide, mine)
            rows, nearness, around_x[mine] = best_partners(alignment.x(a[mine]), y, around_y, max(k, 2), hide)
            best_other = np.repeat(nearness[:, :1], nearness.shape[1], axis=1)
            best_other[:, 0] = nearness[:, 1] if nearness.shape[1] > 1 else -np.inf
            best[mine], scores[mine] = rows[:, :k], (nearness - np.maximum(best_other, rival[rows]))[:, :k]
            around_name[mine] = around_y[rows[:, 0]]
        return best, scores, around_x, around_name


def _as_crowded(found: FloatArray, sure: FloatArray) -> FloatArray:
    """What sure pairs count for: how often they are among those that are crowded most like a row looked up."""
    k = min(_CROWDED_ALIKE, sure.size)
    if not k or not found.size:
        return np.full(sure.size, 1 / max(sure.size, 1))
    order = np.argsort(sure)
    first = np.clip(np.searchsorted(sure[order], found) - k // 2, 0, sure.size - k)
    counts = np.bincount((first[:, None] + np.arange(k)).ravel(), minlength=sure.size)
    weights = np.empty(sure.size)
    weights[order] = counts / counts.sum()
    return weights


def _tail(scores: FloatArray, null: FloatArray, weights: FloatArray) -> FloatArray:
    """Share of the null that is as high as each score, as if one more were, of as many as they count for."""
    order, m = np.argsort(null), 1 / float(weights @ weights)
    above = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)[np.searchsorted(null[order], scores)]
    tail: FloatArray = np.minimum((m * above + 1) / (m + 1), 1.0)
    return tail


def _different(rows: FloatArray) -> tuple[Array, Array]:
    """Numbers of rows that are no copy of one before; and for each row, which of these it equals."""
    _, first, inverse = np.unique(row_hashes(rows), return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[inverse]


@dataclass(frozen=True, eq=False)
class _Pool:
    """Candidates, and behind them the partners of sure pairs, each of which is there for its own pair alone."""

    y: FloatArray
    n_candidates: int
    own: Array  # which of them is the partner of each x, -1 where that is not known
    n_with_own: int  # for the first x their partner is there, for the others it is taken away

    def hide(self, rows: Array, cosines: FloatArray, some: slice) -> None:
        """Take away what is not there for some of these rows of x."""
        own, is_there = self.own[rows[some]], rows[some] < self.n_with_own
        known = np.flatnonzero(own >= 0)
        of_own = np.where(is_there[known], cosines[known, own[known]], NOWHERE)
        cosines[:, self.n_candidates :] = NOWHERE
        cosines[known, own[known]] = of_own


def _share_here(found: FloatArray, if_here: FloatArray, if_gone: FloatArray, weights: FloatArray) -> float:
    """Share of the rows looked up whose partner is among the candidates, two standard errors low.

    ``found`` are the scores of the best names. Told where those of sure pairs with their own partner there differ most
    from those without.
    """
    if not if_here.size or not found.size:
        return 0.0
    at = np.sort(if_here[:, 0])
    here, gone = (_tail(at, scores[:, 0], weights) for scores in (if_here, if_gone))
    told = int(np.argmax(here - gone))
    high, low, m = float(here[told]), float(gone[told]), 1 / float(weights @ weights)
    above = max(float(np.sum(found >= at[told])) - 1, 0.0) / found.size  # one of them is the name in question
    error = ((high * (1 - high) + low * (1 - low)) / m + above * (1 - above) / found.size) ** 0.5
    return float(np.clip((above - low - _TAKEN_LOW * error) / max(high - low, 1e-9), 0.0, 1.0))


def _fold_of(x: FloatArray) -> Array:
    """Fold of each row, by its values alone: the same row is always in the same fold."""
    return (row_hashes(x) % np.uint64(_FOLDS)).astype(np.int64)


def _some(n: int, most: int, rng: np.random.RandomState) -> Array:
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
