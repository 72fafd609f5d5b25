"""How slips are found: looked for by what the fit has learned, undone, learned from again; then rows one by one.

Where most rows have slipped, a fit learns little or nothing from the pairs as they stand. It is then begun with the
shift by which the whole tables agree best (`inlier.repair.slips.whole`): the rows that are right then teach the judges,
which score every x with every y as always. What they find is undone, and learned from again, which sees more.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from inlier._typing import Array, FloatArray
from inlier.estimators._learned import Learned
from inlier.estimators._repairing import Stacked, odds_of_rows, repair_pairs
from inlier.repair.answer import KEPT, LOST, NOT_CLEAR, SLIPPED, Repair
from inlier.repair.slips.find import Crossed, Found, find_slips
from inlier.repair.slips.lanes import Lanes
from inlier.repair.slips.whole import agreeing_lanes
from inlier.rows.backend import to_host

_ALL_SHIFTS = 5_000  # rows up to which all amounts are tried, and reversals
_MOST = 1_000  # rows that a shift of more amounts to at most
_MOST_ROWS = 200_000
_ROUNDS = 2  # of undoing and learning again, at most
_SETTLED = 0.005  # share of rows that learning again moves, below which it has settled
_DETECTED = 0.05  # detection p-value up to which there is something to look by


@dataclass(frozen=True, eq=False)
class InStep:
    """Slips undone: which rows stand beside which then, and what was learned from these.

    Rows are counted through: those of the fit, then those that were given without a partner.
    """

    found: Found
    x: Array  # rows in the order of the new fit, pairs first
    y: Array
    n_pairs: int
    matcher: Any
    home: Array
    rest: tuple[Array, Array] | None  # without a partner then


@dataclass(frozen=True, eq=False)
class _Tables:
    """What was given, with rows without a partner behind it."""

    matcher: Any
    learned: Learned
    X: FloatArray
    Y: FloatArray
    n_pairs: int

    @staticmethod
    def of(matcher: Any, rest: tuple[Array, Array] | None) -> _Tables:
        learned = matcher._learned
        X, Y = learned.tables()
        n = len(X)
        if rest is not None:
            X, Y = (np.concatenate([table, some]) for table, some in zip((X, Y), rest, strict=True))
        return _Tables(matcher, learned, X, Y, n)

    @property
    def home(self) -> Array:
        """Row of y beside each x."""
        rows = np.arange(len(self.X))
        return np.where(rows < self.n_pairs, rows, -1)

    def refitted(self, partner: Array) -> tuple[Any, Array, Array, int]:
        """Learn again from other pairs; who has none gets what is left over, so that as many are paired as can be."""
        x, y, n_pairs = self._paired(partner)
        compared = self.learned.compared
        given = {
            name: None if of is None else of[x[:n_pairs]]
            for name, of in (
                ("groups", None if compared is None else compared.groups),
                ("strata", None if compared is None else compared.strata),
                ("sample_weight", self.learned.trust),
            )
        }
        matcher = clone(self.matcher).set_params(same_columns=self.learned.same_columns or False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # which have been said of the fit before
            matcher.fit(self.X[x[:n_pairs]], self.Y[y[:n_pairs]], unpaired=self.learned.unpaired, **given)
        return matcher, x, y, n_pairs

    def _paired(self, partner: Array) -> tuple[Array, Array, int]:
        x, y = np.arange(len(self.X)), partner.copy()
        without, left = np.flatnonzero(y < 0), np.setdiff1d(np.arange(len(self.Y)), y)
        n_filled = min(without.size, left.size)
        y[without[:n_filled]] = left[:n_filled]
        paired = y >= 0
        return (
            np.concatenate([x[paired], x[~paired]]),
            np.concatenate([y[paired], left[n_filled:]]),
            int(paired.sum()),
        )

    def rest_of(self, x: Array, y: Array, n_pairs: int) -> tuple[Array, Array] | None:
        """Rows without a partner."""
        return None if max(x.size, y.size) == n_pairs else (self.X[x[n_pairs:]], self.Y[y[n_pairs:]])

    def crossed(self, fitted: tuple[Any, Array, Array, int], rng: np.random.RandomState) -> Crossed | None:
        """Odds of any x with any y by the judges of a fit; None where it has found nothing to judge by."""
        matcher, x, y, n_pairs = fitted
        if matcher.detection_p_value_ > _DETECTED:
            return None
        stacked = Stacked(n_pairs, x.size - n_pairs, y.size - n_pairs)
        odds = odds_of_rows(matcher._learned, stacked, self.rest_of(x, y, n_pairs), 1 - matcher.q_values_, rng)
        place_x, place_y = np.empty_like(x), np.empty_like(y)
        place_x[x], place_y[y] = np.arange(x.size), np.arange(y.size)
        place_y[y[n_pairs:]] += stacked.n_x

        def block(rows: Array, columns: Array) -> FloatArray:
            places = place_y[columns]
            rising = np.sort(places)  # as blocks of odds are asked for
            return odds.block(place_x[rows], rising)[:, np.searchsorted(rising, places)]

        return Crossed(
            block,
            lambda i, j: odds.pairs(place_x[i], place_y[j]),
            self.home,
            y.size,
        )


def put_in_step(
    matcher: Any, rest: tuple[Array, Array] | None, maps: dict[str, Array], random_state: Any
) -> InStep | None:
    """Look for slips, undo them, and learn again; None where there are none."""
    learned = matcher._learned
    if learned.pairs is None or learned.pairs.n_pairs > _MOST_ROWS or learned.compared is None:
        return None
    rng, tables = check_random_state(random_state), _Tables.of(matcher, rest)
    n_x, n_y = len(tables.X), len(tables.Y)
    are_few = max(n_x, n_y) <= _ALL_SHIFTS
    lanes = Lanes(n_x, n_y, min(_MOST, max(n_x, n_y) - 1) if not are_few else max(n_x, n_y) - 1, are_few, maps)
    as_given = matcher, np.arange(n_x), np.arange(n_y), tables.n_pairs
    best = _looked_for(tables, as_given, lanes, rng)
    for lane in agreeing_lanes(tables.X, tables.Y, lanes) if best is None else ():
        fitted = tables.refitted(lanes.columns(lane, np.arange(n_x)))
        best = _looked_for(tables, fitted, lanes, rng)
        if best is not None:
            break
    if best is None:
        return None
    fitted = tables.refitted(best.partner)
    for _ in range(_ROUNDS):
        again = _looked_for(tables, fitted, lanes, rng)
        if again is None or np.mean(again.partner != best.partner) < _SETTLED:
            break
        best = again
        fitted = tables.refitted(best.partner)
    return InStep(best, *fitted[1:], fitted[0], tables.home, tables.rest_of(*fitted[1:]))


def _looked_for(
    tables: _Tables, fitted: tuple[Any, Array, Array, int], lanes: Lanes, rng: np.random.RandomState
) -> Found | None:
    crossed = tables.crossed(fitted, rng)
    found = None if crossed is None else find_slips(crossed, lanes, rng)
    return found if found is not None and found.slips else None


def repair_in_step(step: InStep, alpha: float, random_state: Any) -> Repair:
    """Say of each row with whom it belongs, slips undone: single mistakes are looked for in what is left."""
    matcher, n_x, n_y = step.matcher, step.x.size, step.y.size
    q = np.asarray(to_host(matcher.q_values_))
    inner = repair_pairs(matcher._learned, q, matcher.detection_p_value_, step.rest, alpha, random_state)
    of_y, n = np.append(step.y, -1), min(step.n_pairs, int((step.home >= 0).sum()))
    partner, kind = of_y[inner.partner], inner.kind.astype(object)
    lost = (step.found.partner[step.x] < 0) & (kind != KEPT) & (partner == np.append(step.y, [-1] * n_x)[:n_x])
    partner[lost], kind[lost] = -1, LOST
    certain = np.append(matcher.certain_q_values_ <= alpha, np.zeros(n_x - step.n_pairs, dtype=bool))
    kind[(kind == KEPT) & step.found.unsure[step.x] & ~certain] = NOT_CLEAR
    kind[(kind == KEPT) & (partner != step.home[step.x])] = SLIPPED
    back = np.argsort(step.x)
    beside = np.full(n_y, -1)
    paired = np.arange(step.n_pairs)
    beside[step.y[paired]] = step.x[paired]
    return replace(
        inner,
        kind=kind.astype(str)[back],
        partner=partner[back],
        q_values=inner.q_values[back],
        chance_wrong=np.where(lost, np.nan, inner.chance_wrong)[back],
        candidates=of_y[inner.candidates][back],
        chances=inner.chances[back],
        own_rank=inner.own_rank[back],
        copy_of=np.append(step.x, -1)[inner.copy_of][back],
        gaps=inner.gaps[back],
        n_unpaired=(int((step.home < 0).sum()), n_y - int((step.home >= 0).sum())),
        slips=step.found.slips,
        beside=beside,
    )
