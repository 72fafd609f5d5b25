"""How a repair is found: which rows are looked at, whose names are looked for, and what becomes of each row.

Rows that are given without a partner stand behind the pairs, each beside a row that counts for nothing:

    X   x of pairs   x alone    filler
    y   y of pairs   filler     y alone
        n_pairs      n_x        n_y rows
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control
from sklearn.isotonic import IsotonicRegression
from sklearn.utils import check_random_state

from inlier._checks import warn
from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.cross_fit import CrossFit
from inlier.estimators._learned import Learned
from inlier.exceptions import ParameterError
from inlier.repair.answer import COPY, KEPT, LOST, MOVED, NOT_CLEAR, SWAPPED, Repair
from inlier.repair.copies import nearly_equal
from inlier.repair.names import N_CANDIDATES, Names, find_names
from inlier.repair.odds import Odds
from inlier.rows.backend import to_host
from inlier.rows.null_pairs import pair_labels

_ALL_LOOKED_AT = 5_000  # pairs; of more, those that are tried, and so many others, beside whom they are compared
_BESIDE_THEM = 3_000
_MOST_TRIED = 30_000  # rows, each of which is compared with each
MOST_UNPAIRED = 5_000  # rows without a partner, of either table
_DETECTED = 0.05  # detection p-value up to which there is something to repair by
_LOST_FALSELY = 0.05  # rate of rows whose partner is here, among those called lost


@dataclass(frozen=True, eq=False)
class Stacked:
    """How many rows there are: pairs, and behind them those that were given without a partner."""

    n_pairs: int
    n_x: int = 0
    n_y: int = 0

    @property
    def n_all(self) -> int:
        """All of them."""
        return self.n_pairs + self.n_x + self.n_y

    def have_x_and_y(self, rows: Array) -> tuple[Mask, Mask]:
        """Whether these rows have an x, and a y, that is no filler."""
        return rows < self.n_pairs + self.n_x, (rows < self.n_pairs) | (rows >= self.n_pairs + self.n_x)

    def tables(self, X: Array, Y: Array, rest: tuple[Array, Array]) -> tuple[Array, Array]:
        """Both tables with the others behind them."""
        filler_x, filler_y = (np.linspace(0, self.n_pairs - 1, n).astype(np.int64) for n in (self.n_y, self.n_x))
        return np.concatenate([X, rest[0], X[filler_x]]), np.concatenate([Y, Y[filler_y], rest[1]])

    def set_apart(self, labels: Array, rows: Array) -> Array:
        """Labels of these rows, in which filler has nothing in common with what it repeats."""
        for side, has in zip(labels, self.have_x_and_y(rows), strict=False):
            side[~has] = side.max(initial=0) + 1 + np.arange((~has).sum())
        return labels


def repair_pairs(
    learned: Learned,
    q_values: FloatArray,
    detection_p_value: float,
    rest: tuple[Array, Array] | None,
    alpha: float,
    random_state: Any,
) -> Repair:
    """Say of each row of the fit, and of x without a partner, with whom it belongs."""
    rng, n = check_random_state(random_state), q_values.size
    if rest is not None and max(map(len, rest)) > MOST_UNPAIRED:
        reason = f"has {max(map(len, rest)):,} rows; up to {MOST_UNPAIRED:,} are tried with each other."
        raise ParameterError("unpaired", f"{reason} For more, see find_partners.")
    gaps = np.zeros(n, dtype=np.int64) if learned.compared is None else learned.compared.gaps
    stacked = Stacked(n) if rest is None else Stacked(n, *map(len, rest))
    q, wrong = (np.append(of, np.ones(stacked.n_x + stacked.n_y)) for of in (q_values, _one_by_one(q_values)))
    looked_at = _rows_to_look_at(wrong > alpha, stacked, rng)
    tried = wrong[looked_at] > alpha
    has = stacked.have_x_and_y(looked_at)
    names, copy_of = Names.nobody(np.flatnonzero(tried & has[0])), np.full(looked_at.size, -1)
    if detection_p_value <= _DETECTED and tried.any() and not tried.all():
        tables, labels = rows_and_labels(learned, stacked, rest, looked_at)
        odds = _odds(learned, stacked, looked_at, tables, labels, 1 - q[looked_at], rng)
        names = find_names(odds, labels, tried, has, np.clip(1 - q[looked_at], 0.0, 1.0), rng)
        refused = q[looked_at] > alpha
        may_repeat = refused & has[0] & has[1] & ~names.belongs_to_another(refused)
        copy_of = nearly_equal(tables, np.flatnonzero(may_repeat), ~refused)
    return _outcome(q, alpha, stacked, looked_at, names, copy_of, gaps)


def with_nobody_for(repair: Repair, stacked: Stacked) -> Repair:
    """The same with rows without a partner behind the others, for whom nobody was looked for."""
    n = stacked.n_x
    fill: dict[str, Any] = {
        "kind": LOST, "partner": -1, "q_values": 1.0, "chance_wrong": np.nan, "own_rank": 0, "copy_of": -1, "gaps": 0
    }  # fmt: skip
    columns: dict[str, Any] = {
        name: np.append(getattr(repair, name), np.full(n, value)) for name, value in fill.items()
    }
    several: dict[str, Any] = {
        name: np.concatenate([getattr(repair, name), np.full((n, N_CANDIDATES), value)])
        for name, value in (("candidates", -1), ("chances", 0.0))
    }
    return replace(repair, **columns, **several, n_unpaired=(stacked.n_x, stacked.n_y))


def _one_by_one(q_values: FloatArray) -> FloatArray:
    """Chance of each pair to be wrong: of the k surest q_k k are, so of the last of them by how much that grows.

    A share alpha of those that are accepted may be wrong, and they are the last of them.
    """
    order, k = np.argsort(q_values, kind="stable"), np.arange(1, q_values.size + 1)
    more = np.diff(k * q_values[order], prepend=0.0)
    found = np.empty(q_values.size)
    found[order] = IsotonicRegression(y_max=1.0).fit_transform(k, more)
    return found


def _rows_to_look_at(is_tried: Mask, stacked: Stacked, rng: np.random.RandomState) -> Array:
    """Rows that are tried, and enough of the others; nobody where they are too many."""
    if stacked.n_pairs <= _ALL_LOOKED_AT:
        return np.arange(stacked.n_all)
    tried, accepted = np.flatnonzero(is_tried), np.flatnonzero(~is_tried)
    if tried.size > _MOST_TRIED:
        warn(
            f"{tried.size:,} rows are not sure, and up to {_MOST_TRIED:,} are compared with each other: nobody's "
            f"partner was looked for. Repair the table in parts; find_partners takes any number of rows."
        )
        return np.empty(0, dtype=np.int64)
    return np.union1d(tried, rng.permutation(accepted)[:_BESIDE_THEM])


def rows_and_labels(
    learned: Learned, stacked: Stacked, rest: tuple[Array, Array] | None, looked_at: Array
) -> tuple[tuple[FloatArray, FloatArray], Array]:
    """Prepared rows that are looked at, and what they have in common."""
    compared = learned.compared
    assert compared is not None
    some = looked_at[looked_at < stacked.n_pairs]
    X, Y = learned.tables(some)
    behind = replace(stacked, n_pairs=some.size)
    if rest is not None:
        X, Y = behind.tables(X, Y, rest)
    groups, strata = (None if of is None else of[some] for of in (compared.groups, compared.strata))
    if groups is not None:  # rows without a partner are in groups of their own
        groups = np.append(groups, groups.max() + 1 + np.arange(behind.n_all - behind.n_pairs))
    labels = behind.set_apart(pair_labels(X, Y, groups, strata), np.arange(behind.n_all))
    x, y = (np.asarray(to_host(side), dtype=np.float64) for side in learned.prepared(X, Y))
    return (x, y), labels


def odds_of_rows(
    learned: Learned,
    stacked: Stacked,
    rest: tuple[Array, Array] | None,
    weights: FloatArray,
    rng: np.random.RandomState,
) -> Odds:
    """Odds of all rows with each other, those that were given without a partner with them."""
    every = np.arange(stacked.n_all)
    tables, labels = rows_and_labels(learned, stacked, rest, every)
    weights = np.append(weights, np.zeros(stacked.n_all - stacked.n_pairs))
    return _odds(learned, stacked, every, tables, labels, weights, rng)


def _odds(
    learned: Learned,
    stacked: Stacked,
    looked_at: Array,
    tables: tuple[FloatArray, FloatArray],
    labels: Array,
    weights: FloatArray,
    rng: np.random.RandomState,
) -> Odds:
    """Odds of these rows by the judges of the fit; rows that it did not see are judged by any of them."""
    compared = learned.compared
    assert compared is not None
    strata = None if compared.strata is None else compared.strata[looked_at]
    known = None
    if compared.scores is not None and looked_at.size == compared.scores.shape[0]:
        known = compared.unit, compared.scores
    fit = judges_among(learned.judges, stacked.n_pairs, looked_at)
    return Odds.of(fit, tables, labels, strata, weights, rng, known)


def judges_among(fit: CrossFit, n_pairs: int, rows: Array) -> CrossFit:
    """The fit, of these rows alone; those that are in no fold are dealt to the judges in turn."""
    fold_of = np.arange(max(int(rows.max(initial=0)) + 1, n_pairs)) % len(fit.folds)
    for number, fold in enumerate(fit.folds):
        fold_of[fold.rows.astype(np.int64)] = number
    folds = (replace(fold, rows=np.flatnonzero(fold_of[rows] == number)) for number, fold in enumerate(fit.folds))
    return replace(fit, levels=np.zeros(rows.size), folds=tuple(folds))


def _outcome(
    q: FloatArray, alpha: float, stacked: Stacked, looked_at: Array, names: Names, copy_of: Array, gaps: Array
) -> Repair:
    """What becomes of each row; numbers of rows that were looked at become those that were given."""
    n_x, q = stacked.n_pairs + stacked.n_x, q.copy()
    numbers, rows = np.append(looked_at, -1), looked_at[names.rows]
    as_given: Callable[[Array], Array] = lambda partner: np.where(partner >= n_x, partner - stacked.n_x, partner)  # noqa: E731
    named = (names.q_values <= alpha) & (names.partner >= 0)
    partner, copies = np.arange(q.size), np.full(q.size, -1)
    partner[stacked.n_pairs :] = -1
    partner[rows[named]] = numbers[names.partner[named]]
    copies[looked_at] = numbers[copy_of]
    given_away = np.zeros(q.size, dtype=bool)
    given_away[partner[rows[named]]] = True
    kind = np.where((q <= alpha) & ~given_away, KEPT, NOT_CLEAR).astype(object)
    some = rows[given_away[rows]]  # their y belong to others; if their partners are here, they should fit well
    if some.size:
        p_here = np.where(named, 1.0, names.chance_here)[given_away[rows]]
        kind[some[false_discovery_control(p_here) <= _LOST_FALSELY]] = LOST
    kind[copies >= 0] = COPY
    partner[(given_away | (copies >= 0)) & (partner == np.arange(q.size))] = -1
    is_exchange = partner[partner[rows[named]]] == rows[named]
    kind[rows[named]] = np.where(is_exchange, SWAPPED, MOVED)
    surest = np.ones(q.size)  # smallest rate at which its x, or its y, is said to belong to another
    surest[rows[named]] = names.q_values[named]
    np.minimum.at(surest, partner[rows[named]], names.q_values[named])
    chance_wrong = np.where(kind == KEPT, q, np.where(surest <= alpha, 1 - surest, np.nan))
    candidates, chances = names.with_named(named)
    told = kind[rows] != KEPT
    rows = rows[told]
    q[rows] = names.q_values[told]
    candidates_of, chances_of = np.full((q.size, N_CANDIDATES), -1), np.zeros((q.size, N_CANDIDATES))
    candidates_of[rows], chances_of[rows] = numbers[candidates[told]], chances[told]
    own_rank = np.zeros(q.size, dtype=np.int64)
    own_rank[rows] = names.own_rank[told]
    return Repair(
        kind=kind[:n_x].astype(str),
        partner=as_given(partner)[:n_x],
        q_values=q[:n_x],
        chance_wrong=np.where(np.arange(n_x) < stacked.n_pairs, chance_wrong[:n_x], np.nan),
        candidates=as_given(candidates_of)[:n_x],
        chances=chances_of[:n_x],
        own_rank=own_rank[:n_x],
        copy_of=copies[:n_x],
        gaps=np.append(gaps, np.zeros(stacked.n_x, dtype=np.int64)),
        alpha=alpha,
        n_unpaired=(stacked.n_x, stacked.n_y),
    )
