"""Score any x with any y, by maps that were learned from trusted pairs without the fold of the row in question.

The pairs are dealt into folds, as in `inlier.calibration.cross_fit`; a fold's map is learned from the trusted pairs of
the other folds. So it has seen neither a pair of its fold nor one that is not trusted, and scores x_i with y_j of all
of these alike: what trusted pairs do by chance beside those that are not, these do by chance too.

Scores of different rows are not comparable: in the thick of the points anything fits, far out nothing does. The *log
odds* of x_i with y_j are by how much y_j fits x_i better than the other y do, or x_i fits y_j better than the other x
do, whichever is less:

    a_ij - log mean_k exp(a_ik),   k other than j and i, and one more that fits as a typical real pair does;

a_ij are the scores in the unit in which they tell best which row of y belongs to x_i. The one more keeps rows far out,
where there is nothing else, from being sure of the first that comes near; and the best of c rows has log odds of at
most log c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.cross_fit import WIDE, Teacher, how_many_deals
from inlier.calibration.folds import deal_folds, units_of
from inlier.calibration.models.learner import (
    Learner,
    PairScorer,
    PreparedPairs,
    choose_learner,
    in_float64,
    prepared_rows,
)
from inlier.calibration.models.linear_map import LinearMap
from inlier.rows import PairedRows
from inlier.rows.backend import to_host
from inlier.rows.null_pairs import may_be_re_paired
from inlier.rows.threads import single_threaded_blas

MOST_RIVALS = 2_000  # rows that each row is compared with, of a fold and of those that no map has seen
IMPOSSIBLE = -60.0  # log odds of pairs that may not be made
_LOWEST = -50.0  # log odds of pairs that may be made
_UNITS = 2.0 ** np.arange(-3, 8.5, 0.5)  # of evidence, that scores are tried in, over their typical difference
_SHARES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)  # of real pairs, for each of them
_ROWS_FOR_UNITS = 200  # that the unit is chosen by
_RIVALS_FOR_UNITS = 500  # and beside how many others, about
_FEWEST_FOR_UNITS = 4
_STEADY_PAIRS, _MOST_DEALS = 10_000, 10  # deals for a steady answer: so many over the number of pairs, and at most
_ROWS_AT_ONCE = 500
_OWN_PART = 7.0  # below the highest, log odds change by less than a thousandth if the pair itself is left out
_BEYOND = 1e-3  # slope of log odds beyond the highest that there can be


def _learn_without_each_fold(
    pairs: PairedRows,
    labels: Array,
    trusted: Mask,
    n_folds: int,
    rng: np.random.RandomState,
    n_deals: int,
    helped: Callable[[Learner], Teacher] | None,
) -> list[tuple[Array, PairScorer]]:
    """Rows of each fold, in several deals, and what was learned from the trusted ones of the others.

    Folds without which nothing is found are left out.
    """
    data = PreparedPairs(pairs, labels, prepared_rows(pairs, np.arange(pairs.n_pairs)))
    learner = choose_learner(data, rng)
    teacher = learner if helped is None else helped(learner)
    units, n_folds = units_of(labels, has_groups=len(labels) > 2), n_folds * (2 if data.are_few else 1)
    folds = [
        np.flatnonzero(of == fold)
        for _ in range(n_deals)
        for of in [deal_folds(labels, units, n_folds, rng)]
        for fold in np.unique(of)
    ]

    def learned(rows: Array) -> PairScorer | None:
        others = trusted.copy()
        others[rows] = False
        return teacher.learn(np.flatnonzero(others))

    with single_threaded_blas(unless=max(pairs.dimensions) > WIDE):
        found = [learned(rows) for rows in folds]
    return [(rows, f) for rows, f in zip(folds, found, strict=True) if f is not None]


def compare_any(
    pairs: PairedRows,
    labels: Array,
    trusted: Mask,
    n_folds: int,
    rng: np.random.RandomState,
    helped: Callable[[Learner], Teacher] | None = None,
    *,
    steady: bool = False,
) -> list[AnyPairs]:
    """Learn from the trusted ones of prepared pairs without each fold, so that any x can be scored with any y.

    One entry for each fold of each deal: a row is in one fold of each deal, labels and trusted are the same in all.
    Pairs are dealt as often as in `inlier.calibration.cross_fit`; where the answer is to be ``steady``, more often.
    ``labels`` are those of `inlier.rows.null_pairs`; ``helped`` makes of a learner one that knows more.
    """
    n_deals = how_many_deals(pairs.n_pairs)
    if steady:
        n_deals = max(n_deals, int(np.clip(_STEADY_PAIRS // pairs.n_pairs, 1, _MOST_DEALS)))
    tables = in_float64(*pairs.take(np.arange(pairs.n_pairs)))
    return [
        AnyPairs(tables, labels, trusted, rows, learned, rng)
        for rows, learned in _learn_without_each_fold(pairs, labels, trusted, n_folds, rng, n_deals, helped)
    ]


class AnyPairs:
    """Scores, and log odds, of any x with any y, by what was ``learned`` without a fold of ``rows``.

    The ``rivals`` are rows that no map has seen: those of the fold, and those that are not trusted.
    """

    def __init__(
        self,
        tables: tuple[FloatArray, FloatArray],
        labels: Array,
        trusted: Mask,
        rows: Array,
        learned: PairScorer,
        rng: np.random.RandomState,
    ) -> None:
        self.rows, self.learned = rows, learned
        self.labels, self.trusted = labels.astype(np.int32), trusted
        self._rival_labels = self.labels.copy()
        self._rival_labels[2:3] = np.arange(labels.shape[1])
        self._x, self._y = tables
        unseen = np.union1d(rows, np.flatnonzero(~trusted))
        if unseen.size > MOST_RIVALS:
            unseen = np.sort(rng.choice(unseen, MOST_RIVALS, replace=False))
        self.rivals = unseen
        self.is_in_fold, self._is_rival = np.zeros((2, trusted.size), dtype=bool)
        self.is_in_fold[rows] = True
        self._is_rival[unseen] = True

    def scores(self, i: Array, j: Array, unit: float = 1.0) -> FloatArray:
        """Scores of x_i with y_j, for all of these i and j, times a unit; in single precision, for there are many."""
        learned, x, y = self.learned, self._x[i], self._y[j]
        if not isinstance(learned, LinearMap):
            return (unit * np.asarray(to_host(learned.scores_of_all_pairings(x, y)))).astype(np.float32)
        of_x, of_y = learned.factors(x, y)
        scores: FloatArray = (unit * of_x).astype(np.float32) @ of_y.astype(np.float32).T
        return scores

    def pair_scores(self, i: Array, j: Array) -> FloatArray:
        """Scores of each x_i with its y_j."""
        return np.asarray(to_host(self.learned.scores(self._x[i], self._y[j])), dtype=np.float64)

    def allowed(self, i: Array, j: Array) -> Mask:
        """Whether x_i with y_j is a mistake that could have been made, or a pair that one could be."""
        return may_be_re_paired(self.labels, i[:, None], j[None, :])

    def are_rivals(self, i: Array, j: Array) -> Mask:
        """Whether y_j may be what x_i is mistaken for: also one of its own group, which resembles its own partner most.

        Where x_i belongs to a y of another group, the rows of its own group stand beside it, too. The numbers are
        broadcast against each other.
        """
        return may_be_re_paired(self._rival_labels, i, j)

    @cached_property
    def _unit_and_typical(self) -> tuple[float, float]:
        """The unit of evidence, and what a typical real pair has in it."""
        rows = self.rows[self.trusted[self.rows]]
        if rows.size < _FEWEST_FOR_UNITS:
            rows = self.rows
        own, some = self.pair_scores(rows, rows), rows[:_ROWS_FOR_UNITS]
        rivals = self.rivals[:: max(1, self.rivals.size // _RIVALS_FOR_UNITS)]
        differences = self.scores(some, rivals) - own[: some.size, None]
        unit = unit_of_evidence(differences, self.are_rivals(some[:, None], rivals))
        return unit, unit * float(np.median(own))

    @property
    def _unit(self) -> float:
        return self._unit_and_typical[0]

    def evidence(self, i: Array, j: Array) -> FloatArray:
        """By how much x_i of the fold and its y_j fit each other better than they fit others; NaN if there are none.

        The others are trusted rows of the fold. No map has seen them, and unlike what is not trusted they hold no true
        partner of a wrong pair, which re-pairings would not have beside them.
        """
        evidence = self._unit * self.pair_scores(i, j)
        counted, (of_x, of_y, is_other) = may_be_re_paired(self.labels, i, j), self._beside_trusted
        beside = np.zeros(i.size)
        for (total, number), without in ((of_x[:, i], is_other[j]), (of_y[:, j], is_other[i])):
            number = number - (counted & without)
            mean = self._without(total, evidence, counted & without) - np.log(np.maximum(number, 1))
            beside += np.where(number > 0, mean, np.nan) / 2
        return evidence - beside

    @cached_property
    def _beside_trusted(self) -> tuple[FloatArray, FloatArray, Mask]:
        """Of x of the fold's rows, and of every y: log of the sum of exp(a) over trusted rows, and their number."""
        n, unit, rows = self.trusted.size, self._unit, self.rows
        others = rows[self.trusted[rows]][:MOST_RIVALS]
        of_x, of_y, is_other = np.zeros((2, n)), np.zeros((2, n)), np.zeros(n, dtype=bool)
        is_other[others] = True
        if others.size:
            for block in _blocks(rows):
                of_x[:, block] = _log_sums(self.scores(block, others, unit), self.allowed(block, others))
            for block in _blocks(np.arange(n)):
                of_y[:, block] = _log_sums(self.scores(others, block, unit).T, self.allowed(block, others))
        return of_x, of_y, is_other

    @cached_property
    def _beside_rivals(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Of every x, and of every y: log of the sum of exp(a) over rivals and a typical pair, and of their number."""
        n, unit = self.trusted.size, self._unit
        of_x, n_x, of_y, n_y = np.empty((4, n))
        for block in _blocks(np.arange(n)):
            may = self.are_rivals(block[:, None], self.rivals)
            of_x[block], n_x[block] = self._added_up(self.scores(block, self.rivals, unit), may)
            of_y[block], n_y[block] = self._added_up(self.scores(self.rivals, block, unit).T, may)
        return of_x, n_x, of_y, n_y

    def _added_up(self, evidence: FloatArray, allowed: Mask) -> tuple[FloatArray, FloatArray]:
        typical = self._unit_and_typical[1]
        evidence[~allowed] = -np.inf
        top = np.maximum(evidence.max(axis=1, initial=-np.inf), np.float32(typical))
        evidence -= top[:, None]
        total = np.exp(evidence, out=evidence).sum(axis=1, dtype=np.float64) + np.exp(typical - top)
        return np.log(total) + top, np.log(np.maximum(number_of(allowed), 1))

    def log_odds(self, i: Array, j: Array) -> FloatArray:
        """Log odds of x_i with y_j against the rivals of both, for all of these i and j; also where not allowed."""
        of_x, n_x, of_y, n_y = self._beside_rivals
        beside_x, beside_y = (of.astype(np.float32) for of in (of_x[i] - n_x[i], of_y[j] - n_y[j]))
        odds = self.scores(i, j, self._unit)
        odds -= np.maximum(beside_x[:, None], beside_y)
        # below, the pair itself is a negligible part of what rivals add up to, and its log odds are not the highest
        row, column = entries(odds > np.float32(min(n_x[i].min(), n_y[j].min()) - _OWN_PART))
        evidence = odds[row, column] + np.maximum(beside_x[row], beside_y[column])
        odds[row, column] = self._beside_others(evidence, i[row], j[column])
        return np.maximum(odds, np.float32(_LOWEST), out=odds)

    def _beside_others(self, evidence: FloatArray, i: Array, j: Array) -> FloatArray:
        """Evidence of each x_i with its y_j beside that of rivals, without what the pair itself adds to it."""
        counted, (of_x, n_x, of_y, n_y) = self.are_rivals(i, j), self._beside_rivals
        beside_x = self._without(of_x[i], evidence, counted & self._is_rival[j])
        beside_y = self._without(of_y[j], evidence, counted & self._is_rival[i])
        odds = evidence - np.maximum(beside_x - n_x[i], beside_y - n_y[j])
        return _capped(odds, np.minimum(n_x[i], n_y[j]))

    def own_log_odds(self, rows: Array) -> FloatArray:
        """Log odds of pairs as they are."""
        return self._beside_others(self._unit * self.pair_scores(rows, rows), rows, rows)

    @staticmethod
    def _without(total: FloatArray, evidence: FloatArray, counted: Mask) -> FloatArray:
        """Log of the sum without what the pair itself contributes to it."""
        own = np.where(counted, np.exp(np.minimum(evidence - total, 0.0)), 0.0)
        return total + np.log1p(-np.minimum(own, 1 - 1e-12))


def number_of(mask: Mask) -> FloatArray:
    """How many are true in each row; a product is many times faster than a sum of truths."""
    return mask.astype(np.float32) @ np.ones(mask.shape[1], dtype=np.float32)


def entries(mask: Mask) -> tuple[Array, Array]:
    """Rows and columns of what is true, which is faster to find in one dimension."""
    row, column = np.divmod(np.flatnonzero(mask), max(mask.shape[1], 1))
    return row, column


def _blocks(rows: Array) -> Iterator[Array]:
    """The rows, some at a time."""
    return (rows[start : start + _ROWS_AT_ONCE] for start in range(0, rows.size, _ROWS_AT_ONCE))


def _log_sums(evidence: FloatArray, allowed: Mask) -> FloatArray:
    """Log of the sum of exp(evidence) over what is allowed, of each row; and over how many."""
    evidence = np.where(allowed, evidence, np.float32(-np.inf))
    top = np.maximum(evidence.max(axis=1), np.float32(-1e30))[:, None]
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(evidence - top).sum(axis=1, dtype=np.float64))
    return np.stack([total + top[:, 0], number_of(allowed)])


def _capped(odds: FloatArray, highest: FloatArray) -> FloatArray:
    """Log odds up to the highest that there can be; beyond, only their order is kept, and far below nothing."""
    capped: FloatArray = np.maximum(np.minimum(odds, highest) + _BEYOND * np.maximum(odds - highest, 0.0), _LOWEST)
    return capped


def unit_of_evidence(differences: FloatArray, allowed: Mask) -> float:
    """What differences of scores s_ik - s_ii are to be multiplied by so that they tell best who belongs to x_i.

    With a chance r, pair i is one of all rows in proportion to exp(unit * s_ik), otherwise any: the unit of the largest
    likelihood.
    """
    if not allowed.any():
        return 1.0
    typical = max(float(np.median(np.abs(differences[allowed]))), 1e-12)
    count = allowed.sum(axis=1)
    best, highest = 1.0 / typical, -np.inf
    for unit in _UNITS / typical:
        others = logsumexp(np.where(allowed, unit * differences, -np.inf), axis=1)
        own = (1 + count) / (1 + np.exp(np.minimum(others, 80.0)))
        likelihood = max(float(np.sum(np.log(share * own + 1 - share))) for share in _SHARES)
        if likelihood > highest:
            best, highest = float(unit), likelihood
    return best
