"""Odds of any x with any y: by how much they fit each other better than they fit all others.

Scores of different rows are not comparable: in the thick of the points anything fits, far out nothing does. The *odds*
of x_i with y_j are by how much y_j fits x_i better than all y together, or x_i fits y_j better than all x together,
whichever is less, in logarithms:

    r_ij = min( b s_ij - log(n + sum_k exp(b s_ik)),  b s_ij - log(n + sum_k exp(b s_kj)) ),

s_ij are scores by judges that have not seen pair i (nor j, where that matters: see `inlier.calibration.cross_fit`), b
the unit in which they tell best who belongs to whom. The n keep rows far out, where there is nothing else, from being
sure of the first that comes near.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from inlier._typing import Array, FloatArray
from inlier.calibration.cross_fit import CrossFit, all_pairings, pair_scores, scores_of_any

_UNITS = 2.0 ** np.arange(-7, 2.5, 0.5)  # b, that are tried
_ROWS_FOR_UNIT, _RIVALS_FOR_UNIT = 300, 1_000
_AT_ONCE = 5_000_000  # odds that are held at a time
MOST_COMPARED = 20_000  # pairs, each with each; of more, each is compared with a sample
_SAMPLED, _FEWEST_SAMPLED = 40_000_000, 500  # pairings with rivals, about; of each
_KEPT = 25_000_000  # scores that are kept between two passes
_FITS_IN_SINGLE = 75.0  # logarithm of what can be added up in single precision


@dataclass(frozen=True, eq=False)
class Odds:
    """Odds of any x with any y, in the scores of a cross-fit.

    The rivals are all rows, or of many pairs a sample of them, each of which stands for ``scale`` rows.
    """

    fit: CrossFit
    x: FloatArray
    y: FloatArray
    labels: Array  # of the points of x and y
    strata: Array | None  # inside which the partners are, where that was said
    rivals: Array
    unit: float
    own_scores: FloatArray  # b s_ii
    others_of_x: FloatArray  # log(n + sum over k != i of exp(b s_ik))
    others_of_y: FloatArray
    kept: FloatArray | None = None  # all scores, where they are few

    @staticmethod
    def of(
        fit: CrossFit,
        tables: tuple[FloatArray, FloatArray],
        labels: Array,
        strata: Array | None,
        weights: FloatArray,
        rng: np.random.RandomState,
        known: tuple[float, FloatArray] | None = None,
    ) -> Odds:
        """Add up what there is beside each x and each y; ``weights`` say how likely each pair is real.

        The unit and all scores may be ``known`` from before.
        """
        n, (x, y) = int(labels.shape[1]), tables
        every = np.arange(n)
        rivals = every if n <= MOST_COMPARED else np.sort(rng.permutation(n)[: max(_SAMPLED // n, _FEWEST_SAMPLED)])
        nothing = np.zeros(n)
        found = Odds(fit, x, y, labels, strata, rivals, 1.0, nothing, nothing, nothing)
        if known is not None:
            return replace(found, unit=known[0], kept=known[1])._added_up()
        found = replace(found, kept=scores_of_any(fit, x, y) if n * n <= _KEPT else None)
        return replace(found, unit=found._best_unit(weights, rng))._added_up()

    @property
    def n(self) -> int:
        """How many pairs."""
        return int(self.labels.shape[1])

    @property
    def scale(self) -> float:
        """How many rows each rival stands for."""
        return self.n / self.rivals.size

    @cached_property
    def beside_x(self) -> FloatArray:
        """What there is beside each x, its own y with it."""
        return np.logaddexp(self.others_of_x, self.own_scores)

    @cached_property
    def beside_y(self) -> FloatArray:
        """What there is beside each y, its own x with it."""
        return np.logaddexp(self.others_of_y, self.own_scores)

    @cached_property
    def own(self) -> FloatArray:
        """Odds of each pair."""
        return self.own_scores - np.maximum(self.beside_x, self.beside_y)

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Blocks of rows of x and of rows of y that they are compared with.

        x of rivals are compared with all y, others with those of rivals. Rows of a fold come together, because one
        judge scores them.
        """
        every = np.arange(self.n)
        judged = [fold.rows for fold in self.fit.judges_of_a_deal]
        judged.append(np.setdiff1d(every, np.concatenate(judged)))
        for rows in judged:
            is_rival = np.isin(rows, self.rivals)
            for some, columns in ((rows[is_rival], every), (rows[~is_rival], self.rivals)):
                yield from ((part, columns) for part in in_parts(some, columns.size))

    def scores(self, rows: Array, columns: Array) -> FloatArray:
        """Scores of x_i with y_j, in the unit b; -inf where they could not have been paired."""
        if self.kept is None:
            scores = all_pairings(self.fit, self.x, self.y, rows, columns)
            scores *= np.float32(self.unit)
        else:
            scores = self.kept[rows] if columns.size == self.n else self.kept[np.ix_(rows, columns)]
            scores = scores * np.float32(self.unit)
        if self.strata is not None:
            scores[self.strata[rows][:, None] != self.strata[columns]] = -np.inf
        return scores

    def block(self, rows: Array, columns: Array) -> FloatArray:
        """Odds of x_i with y_j."""
        beside_x, beside_y = (of.astype(np.float32) for of in (self.beside_x[rows], self.beside_y[columns]))
        odds = self.scores(rows, columns)
        odds -= np.maximum(beside_x[:, None], beside_y)
        return odds

    def pairs(self, i: Array, j: Array) -> FloatArray:
        """Odds of each x_i with its y_j."""
        return self.pair_scores(i, j) - np.maximum(self.beside_x[i], self.beside_y[j])

    def pair_scores(self, i: Array, j: Array) -> FloatArray:
        """Scores of each x_i with its y_j, in the unit b; -inf where they could not have been paired."""
        if self.kept is None:
            scores = self.unit * pair_scores(self.fit, self.x, self.y, i, j)
        else:
            scores = self.unit * self.kept[i, j].astype(np.float64)
        return scores if self.strata is None else np.where(self.strata[i] == self.strata[j], scores, -np.inf)

    def of_rivals(self, block: FloatArray, rows: Array, columns: Array, side: int) -> FloatArray:
        """The block, without odds of x_i with what is no other than y_i (side 1), or x_j (side 0)."""
        points = self.labels[side]
        if self._differ[side]:
            own = np.full(self.n, -1)
            own[columns] = np.arange(columns.size)
            is_there = own[rows] >= 0
            block[is_there, own[rows[is_there]]] = -np.inf
            return block
        return np.where(points[rows][:, None] == points[columns], np.float32(-np.inf), block)

    @cached_property
    def _differ(self) -> tuple[bool, bool]:
        """Whether no two x, and no two y, are equal."""
        x, y = (np.unique(side).size == self.n for side in self.labels[:2])
        return x, y

    def _best_unit(self, weights: FloatArray, rng: np.random.RandomState) -> float:
        """The unit by which held-out pairs are likeliest to be found among others."""
        n = weights.size
        likely = np.flatnonzero(weights > 0.5)
        likely = likely if likely.size else np.arange(n)
        rows = rng.permutation(likely)[:_ROWS_FOR_UNIT]
        others = np.union1d(rows, rng.permutation(n)[:_RIVALS_FOR_UNIT])
        scores = self.scores(rows, others)
        top = scores.max(axis=1)
        own = (scores[np.arange(rows.size), np.searchsorted(others, rows)] - top).astype(np.float64)
        scale = max(float(np.median(np.abs(own + top))), 1e-12)
        scores -= top[:, None]
        w, best, highest = weights[rows], 1.0, -np.inf
        for unit in _UNITS * 8 / scale:
            found = unit * own - np.log(np.exp(np.float32(unit) * scores).sum(axis=1))
            likelihood = float(w @ np.logaddexp(np.log(0.5) + found, np.log(0.5 / others.size)))
            if likelihood > highest:
                best, highest = unit, likelihood
        return best

    def _added_up(self) -> Odds:
        n, every = self.n, np.arange(self.n)
        is_rival = np.zeros(n, dtype=bool)
        is_rival[self.rivals] = True
        of_x, of_y = np.full((2, n), -np.inf)
        for rows, columns in self.blocks():
            scores = self.scores(rows, columns)
            scores[rows[:, None] == columns] = -np.inf
            beside_rows, beside_columns = _log_sums(scores, None if columns.size < n else is_rival)
            of_x[rows] = beside_rows
            if columns.size == n:
                of_y = np.logaddexp(of_y, beside_columns)
        size = np.full(n, n) if self.strata is None else np.bincount(self.strata)[self.strata]
        of_x, of_y = (np.logaddexp(of + np.log(self.scale), np.log(size)) for of in (of_x, of_y))
        return replace(self, own_scores=self.pair_scores(every, every), others_of_x=of_x, others_of_y=of_y)


def in_parts(rows: Array, n_columns: int) -> Iterator[Array]:
    """Rows, so many at a time as odds are held with so many columns."""
    at_once = max(1, _AT_ONCE // max(n_columns, 1))
    return (rows[start : start + at_once] for start in range(0, rows.size, at_once))


def _log_sums(scores: FloatArray, is_rival: Array | None) -> tuple[FloatArray, FloatArray]:
    """Logarithm of the sum of exp(scores) of each row, over rivals where there are others; and of each column."""
    kept = np.ones(scores.shape[1], np.float32) if is_rival is None else is_rival.astype(np.float32)
    top = float(scores.max(initial=-np.inf))
    with np.errstate(divide="ignore"):
        if top <= _FITS_IN_SINGLE:  # what is too small to be told there is nothing beside the n that are added
            e = np.exp(scores)
            return np.log((e @ kept).astype(np.float64)), np.log((np.ones(len(e), np.float32) @ e).astype(np.float64))
        rows = scores if is_rival is None else scores[:, is_rival]
        return logsumexp(rows.astype(np.float64), axis=1), logsumexp(scores.astype(np.float64), axis=0)
