"""Name a partner for rows that have none, and say how often such names are wrong.

Every row is compared with all candidates (see `inlier.calibration.retrieval`) by what was learned from a dictionary
without the entries of its own fold, so that a row that was matched by mistake does not confirm its mistake. The null of
a name is "the best of all wrong partners": the same for pairs that are sure, with their own partner taken away. If N
rows are looked up, at most N F(s) wrong names have scores of s or more, F the null's upper tail, whether their partner
is there or not; so q-values need no share of rows that have one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.p_values import calibrate, p_values
from inlier.calibration.retrieval import Alignment, Side, best_partners, crowding
from inlier.rows.null_pairs import row_hashes

_FOLDS = 5
_MOST_SURVEYED = 20_000  # rows that principal directions are found from
_MOST_AROUND = 10_000  # rows of x that say how crowded it is around a candidate
_MOST_SURE = 2_000  # pairs whose best wrong partners are the null
_FEWEST_ENTRIES = 2 * _FOLDS


@dataclass(frozen=True, eq=False)
class Proposer:
    """What was learned from a dictionary, once for each fold without it, and the pairs that make the null."""

    sides: tuple[Side, Side]
    alignments: tuple[Alignment, ...]
    around: FloatArray  # rows of x, in principal directions, that candidates are near to
    sure_x: FloatArray  # rows of pairs that are sure
    sure_y: FloatArray

    @staticmethod
    def of(
        x: FloatArray,
        y: FloatArray,
        entries: tuple[Array, Array, FloatArray],
        sure: tuple[Array, Array],
        rng: np.random.RandomState,
    ) -> Proposer | None:
        """Learn from entries: rows i of x, rows j of y and what they count for; None where there are too few."""
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
        around = sides[0](x[_some(len(x), _MOST_AROUND, rng)])
        some = _some(sure[0].size, _MOST_SURE, rng)
        return Proposer(sides, alignments, around, x[sure[0][some]], y[sure[1][some]])

    def find(self, x: FloatArray, candidates: FloatArray, k: int) -> tuple[Array, FloatArray, FloatArray, FloatArray]:
        """Rows of the candidates for each x, the best first; scores, p-values and q-values: shapes (n, k)."""
        b, fold, sure_fold = self.sides[1](candidates), _fold_of(x), _fold_of(self.sure_x)
        of_sure, of_candidates = row_hashes(self.sure_y), row_hashes(candidates)
        k = min(k, len(candidates))
        rows, scores = np.zeros((len(x), k), dtype=np.int64), np.zeros((len(x), k))
        null: list[FloatArray] = [np.empty(0)]
        for own, alignment in enumerate(self.alignments):
            y = alignment.y(b)
            around_y = crowding(y, alignment.x(self.around))
            looked_up = np.flatnonzero(fold == own)
            queries = alignment.x(self.sides[0](x[looked_up]))
            rows[looked_up], scores[looked_up] = best_partners(queries, y, around_y, k)
            sure = sure_fold == own
            queries = alignment.x(self.sides[0](self.sure_x[sure]))
            own_partner = np.concatenate([of_sure[sure], of_candidates])
            null.append(best_partners(queries, y, around_y, 1, own_partner)[1].ravel())
        null_scores = np.concatenate(null)
        null_scores = np.sort(null_scores[np.isfinite(null_scores)])
        if null_scores.size == 0:  # no pair is sure, so nothing tells how often such names are wrong
            return rows, scores, np.ones_like(scores), np.ones_like(scores)
        p = np.stack([p_values(column, null_scores) for column in scores.T], axis=1)
        q = np.stack([calibrate(column, null_scores, (1.0, 0.0)).q_values for column in scores.T], axis=1)
        return rows, scores, p, q


def _fold_of(x: FloatArray) -> Array:
    """Fold of each row, by its values alone: the same row is always in the same fold."""
    return (row_hashes(x) % np.uint64(_FOLDS)).astype(np.int64)


def _some(n: int, most: int, rng: np.random.RandomState) -> Array:
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
