"""Tables in which slips are looked for: which rows stand beside which, and what judges any x with any y then.

Rows are counted through as they are given: those of the pairs, then those without a partner.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from inlier._typing import Array, FloatArray
from inlier.calibration.checks.copied_columns import without_columns
from inlier.calibration.cross_fit import CrossFit, Fold, LeftOut
from inlier.calibration.folds import deal_folds, rows_together, training_without, units_of
from inlier.calibration.models.learner import KINDS, WIDE, PreparedPairs, prepared_rows
from inlier.estimators._learned import Learned
from inlier.estimators._repairing import Stacked, judges_among, odds_of_rows
from inlier.repair.odds import Odds
from inlier.repair.slips.evidence import Crossed
from inlier.repair.slips.whole import MOST_LAGS, agreeing_lags
from inlier.rows.backend import to_host
from inlier.rows.null_pairs import pair_labels
from inlier.rows.threads import single_threaded_blas

_FOLDS = 5
_LOWEST = -500.0  # odds of what could not have been paired, that can still be compared
_NARROWEST = 8  # dimensions: in fewer, directions say little, and a map is learned
_FEWEST_IN_SEQUENCE = 8  # rows of a group, on average, that can be out of step
_LEARNED_FROM = 20_000  # pairs
_OVER_LAGS = 5  # times as many, where most are wrong
_STRETCHES = 10  # of a table without sequences, which are judged by what was learned from the others


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which rows stand beside which: pairs first, then rows without a partner."""

    x: Array
    y: Array
    n_pairs: int

    @staticmethod
    def of(partner: Array, n_y: int) -> Pairing:
        """Who has no partner gets what is left over, so that as many are paired as can be."""
        y, without, left = partner.copy(), np.flatnonzero(partner < 0), np.setdiff1d(np.arange(n_y), partner)
        n_filled = min(without.size, left.size)
        y[without[:n_filled]] = left[:n_filled]
        paired, alone = np.flatnonzero(y >= 0), np.flatnonzero(y < 0)
        return Pairing(np.append(paired, alone), np.append(y[paired], left[n_filled:]), paired.size)

    @property
    def stacked(self) -> Stacked:
        """How many there are of each."""
        return Stacked(self.n_pairs, self.x.size - self.n_pairs, self.y.size - self.n_pairs)

    def crossed(self, odds: Odds, home: Array) -> Crossed:
        """Odds of rows in the order of this pairing as odds of rows in the order of the tables."""
        place_x, place_y = np.argsort(self.x), np.argsort(self.y)
        place_y = np.where(place_y < self.n_pairs, place_y, place_y + self.stacked.n_x)

        def block(rows: Array, columns: Array) -> FloatArray:
            places = place_y[columns]
            rising = np.sort(places)  # as blocks of odds are asked for
            return odds.block(place_x[rows], rising)[:, np.searchsorted(rising, places)]

        def pairs(i: Array, j: Array) -> FloatArray:
            return np.maximum(odds.pairs(place_x[i], place_y[j]), _LOWEST)

        return Crossed(block, pairs, home, self.y.size)


@dataclass(frozen=True, eq=False)
class Tables:
    """What was given, in the order in which it stands, and how it is learned from."""

    matcher: Any
    X: FloatArray
    Y: FloatArray
    places: tuple[Array, Array]  # of rows of x and of y as they are given: pairs, then those without a partner
    home: Array  # row of y beside each x, -1 where there is none
    sequences: list[Sequence]  # inside which rows have slipped, where there are any: groups that stand together
    labels: tuple[Array | None, Array | None]  # groups and strata of x
    rng: np.random.RandomState

    @staticmethod
    def of(
        matcher: Any,
        rest: tuple[Array, Array] | None,
        rest_groups: tuple[Array, Array] | None,
        rng: np.random.RandomState,
        order: Array | None = None,
    ) -> Tables:
        """The tables of a fit, with rows without a partner behind them, or behind those of their group.

        Pairs may stand in another ``order``, that of y.
        """
        X, Y = matcher._learned.tables()
        n, compared = len(X), matcher._learned.compared
        if rest is not None:
            X, Y = (np.concatenate([table, some]) for table, some in zip((X, Y), rest, strict=True))
        of_pairs = None if compared is None else compared.groups
        groups: Any = of_pairs
        strata = None if compared is None else compared.strata
        stretches = [] if of_pairs is None else _stretches(of_pairs)
        of_y: Any = groups
        if of_pairs is not None and rest is not None:
            if rest_groups is None:  # each is in a group of its own
                stretches, next_x = [], int(of_pairs.max()) + 1
                rest_groups = tuple(next_x + np.arange(len(some)) for some in rest)  # type: ignore[assignment]
            groups, of_y = (np.append(of_pairs, some) for some in rest_groups or ())
        rows = np.arange(len(X)), np.arange(len(Y))
        sequences: list[Sequence] = []
        if order is not None:
            stretches, by = [], np.argsort(order, kind="stable")
            rows = np.append(by, rows[0][n:]), np.append(by, rows[1][n:])
        if stretches:
            rows, sequences = _by_sequence(stretches, groups, of_y)
        places = np.argsort(rows[0]), np.argsort(rows[1])
        home = np.full(len(X), -1)
        home[places[0][:n]] = places[1][:n]
        labels = None if groups is None else groups[rows[0]], None if strata is None else strata[rows[0]]
        return Tables(matcher, X[rows[0]], Y[rows[1]], places, home, sequences, labels, rng)

    @property
    def as_given(self) -> Pairing:
        """Rows beside each other as they are given."""
        return Pairing(*self.places, int((self.home >= 0).sum()))

    @property
    def is_in_order(self) -> bool:
        """Whether rows stand as they are given."""
        return all((np.diff(places) > 0).all() for places in self.places)

    @property
    def _learned(self) -> Learned:
        learned: Learned = self.matcher._learned
        return learned

    def rest_of(self, pairing: Pairing) -> tuple[Array, Array] | None:
        """Rows without a partner."""
        if max(pairing.x.size, pairing.y.size) == pairing.n_pairs:
            return None
        return self.X[pairing.x[pairing.n_pairs :]], self.Y[pairing.y[pairing.n_pairs :]]

    def _pairs_of(self, pairing: Pairing) -> tuple[FloatArray, FloatArray, Array | None, Array | None]:
        """Rows of x and of y, their groups and their strata."""
        x, y = pairing.x[: pairing.n_pairs], pairing.y[: pairing.n_pairs]
        groups, strata = (None if of is None else of[x] for of in self.labels)
        return self.X[x], self.Y[y], groups, strata

    def refitted(self, pairing: Pairing) -> Any:
        """The same matcher, fitted to other pairs."""
        learned, (X, Y, groups, strata) = self._learned, self._pairs_of(pairing)
        trust = None
        if learned.trust is not None:
            trust = np.ones(len(self.X))
            trust[self.places[0][: learned.trust.size]] = learned.trust
            trust = trust[pairing.x[: pairing.n_pairs]]
        matcher = clone(self.matcher).set_params(same_columns=learned.columns or False)
        with _quietly():
            return matcher.fit(X, Y, groups, strata, trust, learned.unpaired)

    def judged_by(self, matcher: Any, pairing: Pairing) -> Crossed | None:
        """Odds of any x with any y by the judges of a fit to these pairs; None where it has learned nothing."""
        if not matcher._learned.judges.folds:
            return None
        weights, rest = 1 - np.asarray(to_host(matcher.q_values_)), self.rest_of(pairing)
        return pairing.crossed(odds_of_rows(matcher._learned, pairing.stacked, rest, weights, self.rng), self.home)

    def judged_soon(self, pairing: Pairing) -> Crossed | None:
        """The same by the simplest of judges, a ridge of all pairs alike: some must be right, none be known to be."""
        X, Y, groups, strata = self._pairs_of(pairing)
        rest, copied = self.rest_of(pairing), self._learned.copied
        X, Y = (without_columns(table, some) for table, some in zip((X, Y), copied, strict=True))
        labels = pair_labels(X, Y, groups, strata)
        with _quietly(), single_threaded_blas(unless=max(X.shape[1], Y.shape[1]) > WIDE):
            prepared = self.matcher.prepare(X, Y)
            data = PreparedPairs(prepared, labels, prepared_rows(prepared, slice(0, len(X))))
            fit = _cross_fit(data, has_groups=groups is not None, is_whole=rest is None, rng=self.rng)
            return None if fit is None else self._crossed(fit, prepared, pairing)

    def judged_over(self, lags: Array) -> Crossed | None:
        """The same by a ridge of each x with all y so far from its place, in the same sequence or stretch of rows."""
        pairing = self.as_given
        X, Y, *_ = self._pairs_of(pairing)
        copied = self._learned.copied
        x_of, y_of = stretch_of_rows(self.sequences, len(self.X), len(self.Y))
        i = np.repeat(np.arange(len(self.X)), lags.size)
        j = self._beside(i) + np.tile(lags, len(self.X))
        inside = (j >= 0) & (j < len(self.Y))
        inside[inside] = x_of[i[inside]] == y_of[j[inside]]
        i, j = i[inside], j[inside]
        with _quietly(), single_threaded_blas(unless=max(X.shape[1], Y.shape[1]) > WIDE):
            prepared = self.matcher.prepare(*(without_columns(t, c) for t, c in zip((X, Y), copied, strict=True)))
            x, y = self._prepared(prepared, self.X, self.Y)
            data = PreparedPairs(prepared, np.stack([i, j, x_of[i], np.zeros(i.size, dtype=np.int64)]), (x[i], y[j]))
            folds, nothing = [], np.empty(0)
            fold_of = self.rng.permutation(int(x_of.max()) + 1) % _FOLDS
            of_pairs = fold_of[x_of[pairing.x[: pairing.n_pairs]]]
            for fold in np.unique(of_pairs):
                others = self.rng.permutation(np.flatnonzero(fold_of[x_of[i]] != fold))
                judge = _learn(data)(data, others[: _LEARNED_FROM * _OVER_LAGS], self.rng) if others.size else None
                if judge is not None:
                    folds.append(Fold(0, np.flatnonzero(of_pairs == fold), judge, 0.0, 1.0, nothing, nothing))
            if len(folds) < 2:
                return None
            fit = CrossFit(np.zeros(pairing.n_pairs), np.zeros(1), folds=tuple(folds))
            return self._crossed(fit, prepared, pairing)

    def agreeing_lags(self) -> Array:
        """Lags from which something can be learned, where many rows have been lost here and there."""
        most = max((max(one.after_x - one.x, one.after_y - one.y) for one in self.sequences), default=len(self.X)) - 1
        stretches = stretch_of_rows(self.sequences, len(self.X), len(self.Y))
        beside = self._beside(np.arange(len(self.X)))
        return agreeing_lags(self.X, self.Y, beside, stretches, min(most, MOST_LAGS))

    def beside_x(self, rows: Array) -> Array:
        """Places of x beside those of y, in a sequence as far down; beyond its end, where there are none."""
        offset = np.zeros(len(self.Y), dtype=np.int64)
        for one in self.sequences:
            offset[one.y : one.after_y] = one.x - one.y
        beside: Array = rows + offset[rows]
        return beside

    def _beside(self, rows: Array) -> Array:
        """Places of y beside places of x: as far down in the sequence, or in the table."""
        if not self.sequences:
            return rows
        offset = np.zeros(len(self.X), dtype=np.int64)
        for one in self.sequences:
            offset[one.x : one.after_x] = one.y - one.x
        beside: Array = rows + offset[rows]
        return beside

    def _prepared(self, prepared: Any, X: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        copied = self._learned.copied
        x, y = (
            np.asarray(to_host(prepare(without_columns(table, some))), dtype=np.float64)
            for prepare, table, some in zip((prepared.later.x, prepared.later.y), (X, Y), copied, strict=True)
        )
        return x, y

    def _crossed(self, fit: CrossFit, prepared: Any, pairing: Pairing) -> Crossed:
        """Odds by judges of pairs; rows without a partner are judged by any of them."""
        X, Y, groups, strata = self._pairs_of(pairing)
        rest, labels = self.rest_of(pairing), pair_labels(X, Y, groups, strata)
        if rest is not None:
            X, Y = pairing.stacked.tables(X, Y, rest)
            labels = pairing.stacked.set_apart(pair_labels(X, Y), np.arange(len(X)))
            fit, strata = judges_among(fit, pairing.n_pairs, np.arange(len(X))), None
        odds = Odds.of(fit, self._prepared(prepared, X, Y), labels, strata, np.ones(len(X)), self.rng)
        return pairing.crossed(odds, self.home)


class Sequence(NamedTuple):
    """First rows of a sequence, of x and of y, and those after its last."""

    x: int
    after_x: int
    y: int
    after_y: int


def stretch_of_rows(sequences: list[Sequence], n_x: int, n_y: int) -> tuple[Array, Array]:
    """Number of the sequence of each row of x and of y; of a table without any that of a stretch of it."""
    if not sequences:
        length = max(-(-max(n_x, n_y) // _STRETCHES), 1)
        return np.arange(n_x) // length, np.arange(n_y) // length
    of_x, of_y = np.full(n_x, len(sequences)), np.full(n_y, len(sequences))
    for number, one in enumerate(sequences):
        of_x[one.x : one.after_x] = of_y[one.y : one.after_y] = number
    return of_x, of_y


def _by_sequence(
    stretches: list[tuple[int, int]], of_x: Array, of_y: Array
) -> tuple[tuple[Array, Array], list[Sequence]]:
    """Rows in the order of their sequences, those without a partner behind the others; and where each begins."""
    rank = np.full(int(max(of_x.max(), of_y.max())) + 1, len(stretches))
    for number, (first, _) in enumerate(stretches):
        rank[of_x[first]] = number
    rows, ends = [], []
    for groups in (of_x, of_y):
        rows.append(np.argsort(rank[groups], kind="stable"))
        ends.append(np.cumsum(np.bincount(rank[groups], minlength=len(stretches) + 1))[:-1])
    begins = [np.append(0, end[:-1]) for end in ends]
    columns = (of_side.tolist() for of_side in (begins[0], ends[0], begins[1], ends[1]))
    return (rows[0], rows[1]), [Sequence(*one) for one in zip(*columns, strict=True)]


def _stretches(groups: Array) -> list[tuple[int, int]]:
    """First rows of groups, and those after their last; nothing where their rows do not stand together, or are few."""
    first = np.append(0, np.flatnonzero(groups[1:] != groups[:-1]) + 1)
    if first.size > np.unique(groups).size or groups.size < _FEWEST_IN_SEQUENCE * first.size:
        return []
    return list(zip(first.tolist(), [*first[1:].tolist(), groups.size], strict=True))


def _cross_fit(data: PreparedPairs, *, has_groups: bool, is_whole: bool, rng: np.random.RandomState) -> CrossFit | None:
    """Judges of one deal that have learned from all other pairs alike."""
    labels, units = data.labels, units_of(data.labels, has_groups=has_groups)
    learn = _learn(data)
    fold_of, folds, nothing = deal_folds(labels, units, _FOLDS, rng), [], np.empty(0)
    for own in (np.flatnonzero(fold_of == fold) for fold in np.unique(fold_of)):
        others = rng.permutation(training_without(own, labels, has_groups=has_groups))
        judge = learn(data, others[:_LEARNED_FROM], rng)
        if judge is not None:
            folds.append(Fold(0, own, judge, 0.0, 1.0, nothing, nothing))
    if not folds:
        return None
    fit = CrossFit(np.zeros(data.n), np.zeros(1), folds=tuple(folds))
    if learn is not KINDS["ridge"] or data.shared_ridge is None or not is_whole:
        return fit
    return replace(fit, ridges=LeftOut(data.shared_ridge, rows_together(labels, units, has_groups=has_groups)))


def _learn(data: PreparedPairs) -> Any:
    return KINDS["ridge" if min(data.dimensions) >= _NARROWEST else "map"]


@contextmanager
def _quietly() -> Iterator[None]:
    """What would be warned of has been said of the fit before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
