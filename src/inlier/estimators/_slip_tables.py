"""Tables in which slips are looked for: which rows stand beside which, and what judges any x with any y then.

Rows are counted through as they are given: those of the pairs, then those without a partner.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from inlier._typing import Array, FloatArray
from inlier.calibration.checks.copied_columns import without_columns
from inlier.calibration.cross_fit import WIDE, CrossFit, Fold, LeftOut
from inlier.calibration.folds import deal_folds, rows_together, training_without, units_of
from inlier.calibration.models.learner import KINDS, PreparedPairs, prepared_rows
from inlier.estimators._learned import Learned
from inlier.estimators._repairing import Stacked, judges_among, odds_of_rows
from inlier.repair.odds import Odds
from inlier.repair.slips.evidence import Crossed
from inlier.rows.backend import to_host
from inlier.rows.null_pairs import pair_labels
from inlier.rows.threads import single_threaded_blas

_FOLDS = 5
_LOWEST = -500.0  # odds of what could not have been paired, that can still be compared
_NARROWEST = 8  # dimensions: in fewer, directions say little, and a map is learned
_FEWEST_IN_SEQUENCE = 8  # rows of a group, on average, that can be out of step
_LEARNED_FROM = 20_000  # pairs


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
    """What was given, and how it is learned from."""

    matcher: Any
    X: FloatArray
    Y: FloatArray
    home: Array  # row of y beside each x, -1 where there is none
    sequences: list[tuple[int, int]]  # inside which rows have slipped, where there are any: groups that stand together
    rng: np.random.RandomState

    @staticmethod
    def of(matcher: Any, rest: tuple[Array, Array] | None, rng: np.random.RandomState) -> Tables:
        """The tables of a fit, with rows without a partner behind them."""
        X, Y = matcher._learned.tables()
        home = np.arange(len(X))
        if rest is not None:
            home = np.append(home, np.full(len(rest[0]), -1))
            X, Y = (np.concatenate([table, some]) for table, some in zip((X, Y), rest, strict=True))
        compared = matcher._learned.compared
        groups = None if compared is None else compared.groups
        return Tables(matcher, X, Y, home, [] if groups is None else _stretches(groups), rng)

    @property
    def as_given(self) -> Pairing:
        """Rows beside each other as they are given."""
        return Pairing(np.arange(len(self.X)), np.arange(len(self.Y)), int((self.home >= 0).sum()))

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
        x, y, compared = pairing.x[: pairing.n_pairs], pairing.y[: pairing.n_pairs], self._learned.compared
        of_x = (None, None) if compared is None else (compared.groups, compared.strata)
        groups, strata = (None if of is None else of[x] for of in of_x)
        return self.X[x], self.Y[y], groups, strata

    def refitted(self, pairing: Pairing) -> Any:
        """The same matcher, fitted to other pairs."""
        learned, (X, Y, groups, strata) = self._learned, self._pairs_of(pairing)
        trust = None if learned.trust is None else learned.trust[pairing.x[: pairing.n_pairs]]
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
            if fit is None:
                return None
            if rest is not None:
                others = (without_columns(table, some) for table, some in zip(rest, copied, strict=True))
                X, Y = pairing.stacked.tables(X, Y, tuple(others))  # type: ignore[arg-type]
                labels = pairing.stacked.set_apart(pair_labels(X, Y), np.arange(len(X)))
                fit = judges_among(fit, pairing.n_pairs, np.arange(len(X)))
            x, y = (
                np.asarray(to_host(prepare(table)), dtype=np.float64)
                for prepare, table in ((prepared.later.x, X), (prepared.later.y, Y))
            )
            odds = Odds.of(fit, (x, y), labels, strata, np.ones(len(X)), self.rng)
        return pairing.crossed(odds, self.home)


def _stretches(groups: Array) -> list[tuple[int, int]]:
    """First rows of groups, and those after their last; nothing where their rows do not stand together, or are few."""
    first = np.append(0, np.flatnonzero(groups[1:] != groups[:-1]) + 1)
    if first.size > np.unique(groups).size or groups.size < _FEWEST_IN_SEQUENCE * first.size:
        return []
    return list(zip(first.tolist(), [*first[1:].tolist(), groups.size], strict=True))


def _cross_fit(data: PreparedPairs, *, has_groups: bool, is_whole: bool, rng: np.random.RandomState) -> CrossFit | None:
    """Judges of one deal that have learned from all other pairs alike."""
    labels, units = data.labels, units_of(data.labels, has_groups=has_groups)
    learn = KINDS["ridge" if min(data.dimensions) >= _NARROWEST else "map"]
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


@contextmanager
def _quietly() -> Iterator[None]:
    """What would be warned of has been said of the fit before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
