"""With whom, then? Partners of the rows that are wrong, with an error rate for the names.

Each suspect's x_i is tried with the y of all suspects. What a name is worth is told by pairs that are surely right:
they have their partner, so that the best that *they* find among the same y, their own left out, is the best of m wrong
partners. Two kinds of evidence are looked at, for a mix-up is seldom alone: x_i with y_j; and where the two were
swapped, the weaker of x_i with y_j and x_j with y_i. The stronger counts, each in units of what the surely right pairs
reach by chance, and so does the stronger of theirs: the p-values hold for whichever was chosen. In a cycle of three,
x_j may fit y_i for good reasons while x_i with y_j is chance; so for each surely right pair one j, drawn at random, is
taken to be such.

They do not hold for rows that have their partner and are suspects because they are odd: odd rows find more by chance.
So a partner is looked for only where a row is more likely wrong than right; the y of the others stay candidates.

No y is given to two x: of the candidates, those are taken that together have most evidence
(`scipy.optimize.linear_sum_assignment`, in each connected part of the candidates).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.any_pairs import IMPOSSIBLE, AnyPairs
from inlier.calibration.p_values import calibrate

_ROWS_AT_ONCE = 500
_MOST_CANDIDATES = 5  # of a row
_LARGEST_PART = 3_000  # rows that are assigned to each other at once; of more, each keeps fewer candidates
_TAIL, _FEWEST_IN_TAIL = 0.05, 5  # of the surely right pairs' evidence, beyond which it is taken for exponential
_MOST_SURE = 3_000  # surely right pairs that tell what chance does
_MORE_LIKELY = 0.5  # chance of being wrong from which a partner is looked for
_CLEAR = 0.05  # q-value up to which names count where it is asked how many partners are here
FEWEST_SURE = 20  # surely right pairs without which no name is given


@dataclass(frozen=True, eq=False)
class Names:
    """For each suspect the partner that is proposed, if any."""

    partner: Array  # number of the pair whose y it is; -1 where there is no candidate
    p_values: FloatArray
    q_values: FloatArray
    runner_up: Array  # the next best, -1 where there is none
    not_here: FloatArray  # chance that the partner is none of the candidates, given that no name holds


@dataclass(frozen=True, eq=False)
class Owners:
    """For each suspect the surely right pair that it resembles most, as a copy does."""

    of: Array
    q_values: FloatArray


def name_partners(compared: Sequence[AnyPairs], suspects: Array, wrong: FloatArray, sure: Mask) -> Names:
    """Propose partners of the suspects, which are wrong with these chances, among each other; folds were weighed."""
    m = suspects.size
    none = Names(np.full(m, -1), np.ones(m), np.ones(m), np.full(m, -1), np.full(m, 0.5))
    chance = _Chance.of(compared, suspects, sure)
    asked = wrong > _MORE_LIKELY  # one that has its partner is odd now and then, and finds a better one by chance
    if m < 2 or chance is None or not asked.any():
        return none
    best, second = np.full((2, m), -1)
    row, column, weight, highest = [], [], [], np.full(m, IMPOSSIBLE)
    for places, onward, back in _mean_log_odds(compared, suspects):
        own = onward[np.arange(places.size), places]
        possible = compared[0].allowed(suspects[places], suspects)
        onward, back = (np.where(possible, side, IMPOSSIBLE) for side in (onward, back))
        highest[places] = onward.max(axis=1)
        evidence = np.where(possible & (onward > own[:, None]), chance.evidence(onward, back), 0.0)
        order = np.argsort(-evidence, axis=1)[:, :_MOST_CANDIDATES]
        strength = np.take_along_axis(evidence, order, axis=1)
        best[places], second[places] = order[:, 0], order[:, min(1, order.shape[1] - 1)]
        r, c = np.nonzero((strength > 0) & asked[places][:, None])
        row.append(places[r])
        column.append(order[r, c])
        weight.append(strength[r, c])
    chosen, strength = _assigned(np.concatenate(row), np.concatenate(column), np.concatenate(weight), m)
    p, q = np.ones((2, m))
    judged = calibrate(strength[asked], chance.null)
    p[asked], q[asked] = judged.p_values, np.where(chosen[asked] >= 0, judged.q_values, 1.0)
    runner_up = np.where(best == chosen, second, best)
    lost = _chance_not_here(highest, chance, q <= _CLEAR)
    partner, other = (np.where(c >= 0, suspects[c], -1) for c in (chosen, runner_up))
    return Names(partner, p, q, other, lost)


def find_owners(compared: Sequence[AnyPairs], suspects: Array, sure: Mask, *, of_y: bool) -> Owners:
    """Of which surely right pair a suspect's y is a copy (or its x): whose x (or y) it fits.

    What that is worth is told by the surely right pairs themselves, each with the best of the others.
    """
    right = np.flatnonzero(sure)[:: max(1, int(sure.sum()) // _MOST_SURE)]
    m = suspects.size
    if m == 0 or right.size < FEWEST_SURE:
        return Owners(np.full(m, -1), np.ones(m))
    total, count, null = np.zeros((m, right.size + 1)), np.zeros((m, 1)), []
    place = np.full(sure.size, -1)
    place[suspects] = np.arange(m)

    def log_odds(fold: AnyPairs, rows: Array) -> FloatArray:
        odds = fold.log_odds(right, rows).T if of_y else fold.log_odds(rows, right)
        return np.where(fold.allowed(rows, right), odds, IMPOSSIBLE)

    for fold in compared:
        own = fold.fold.rows[place[fold.fold.rows] >= 0]
        for start in range(0, own.size, _ROWS_AT_ONCE):
            rows = own[start : start + _ROWS_AT_ONCE]
            total[place[rows]] += np.column_stack([log_odds(fold, rows), fold.own_log_odds(rows)])
            count[place[rows]] += 1
        null.append(log_odds(fold, np.intersect1d(fold.fold.rows, right)).max(axis=1, initial=IMPOSSIBLE))
    mean, own_partner = np.split(np.where(count > 0, total / np.maximum(count, 1), IMPOSSIBLE), [right.size], axis=1)
    judged = calibrate(mean.max(axis=1), np.concatenate(null), (1.0, 0.0))
    fits_better = mean.max(axis=1) > own_partner[:, 0]
    return Owners(right[mean.argmax(axis=1)], np.where(fits_better, judged.q_values, 1.0))


def _mean_log_odds(compared: Sequence[AnyPairs], suspects: Array) -> Iterator[tuple[Array, FloatArray, FloatArray]]:
    """Log odds of x_i with all suspects' y, and of y_i with all suspects' x, some suspects i at a time.

    Each by the maps of its own folds, the mean over the deals.
    """
    place = np.full(compared[0].trusted.size, -1)
    place[suspects] = np.arange(suspects.size)
    for start in range(0, suspects.size, _ROWS_AT_ONCE):
        places = np.arange(start, min(start + _ROWS_AT_ONCE, suspects.size))
        total, count = np.zeros((2, places.size, suspects.size)), np.zeros((places.size, 1))
        for fold in compared:
            rows = fold.fold.rows
            rows = rows[(place[rows] >= start) & (place[rows] < start + places.size)]
            if rows.size:
                at = place[rows] - start
                total[0, at] += fold.log_odds(rows, suspects)
                total[1, at] += fold.log_odds(suspects, rows).T
                count[at] += 1
        onward, back = np.where(count > 0, total / np.maximum(count, 1), IMPOSSIBLE)
        yield places, onward, back


def _kinds_of_evidence(onward: FloatArray, back: FloatArray) -> list[FloatArray]:
    """x_i with y_j; the weaker of that and x_j with y_i."""
    return [onward, np.minimum(onward, back)]


@dataclass(frozen=True, eq=False)
class _Chance:
    """What surely right pairs find among the suspects."""

    highest: list[FloatArray]  # the strongest of each kind of evidence, in rising order, of each pair in each deal
    null: FloatArray  # the strongest of all kinds
    own: FloatArray  # log odds of their own partners, in rising order

    @staticmethod
    def of(compared: Sequence[AnyPairs], suspects: Array, sure: Mask) -> _Chance | None:
        right = np.flatnonzero(sure)[:: max(1, int(sure.sum()) // _MOST_SURE)]
        if right.size < FEWEST_SURE or suspects.size == 0:
            return None
        kinds: list[list[FloatArray]] = [[], []]
        own = []
        for fold in compared:
            rows = np.intersect1d(fold.fold.rows, right)
            for start in range(0, rows.size, _ROWS_AT_ONCE):
                some = rows[start : start + _ROWS_AT_ONCE]
                possible = fold.allowed(some, suspects)
                onward = np.where(possible, fold.log_odds(some, suspects), IMPOSSIBLE)
                back = np.where(possible, fold.log_odds(suspects, some).T, IMPOSSIBLE)
                back[np.arange(some.size), some % suspects.size] = -IMPOSSIBLE  # as if it were so for good reasons
                for kind, evidence in zip(kinds, _kinds_of_evidence(onward, back), strict=True):
                    kind.append(evidence.max(axis=1))
                own.append(fold.own_log_odds(some))
        found = [np.concatenate(kind) for kind in kinds]
        highest = [np.sort(values) for values in found]
        null = np.max([_in_units_of_chance(v, h) for v, h in zip(found, highest, strict=True)], axis=0)
        return _Chance(highest, null, np.sort(np.concatenate(own)))

    def evidence(self, onward: FloatArray, back: FloatArray) -> FloatArray:
        """The strongest kind of evidence for each pair, in units of what chance does."""
        kinds = _kinds_of_evidence(onward, back)
        return np.max([_in_units_of_chance(v, h) for v, h in zip(kinds, self.highest, strict=True)], axis=0)


def _in_units_of_chance(values: FloatArray, rising: FloatArray) -> FloatArray:
    """Minus the log of the share of chance results that are as high; beyond the last ones, as if exponential."""
    n = rising.size
    k = min(max(int(_TAIL * n), _FEWEST_IN_TAIL), n)
    start = rising[n - k]
    scale = max(float(np.mean(rising[n - k :] - start)), 1e-9)
    share = (1.0 + n - np.searchsorted(rising, values)) / (1.0 + n)
    return np.where(values > start, np.log((1 + n) / (1 + k)) + (values - start) / scale, -np.log(share))


def _chance_not_here(highest: FloatArray, chance: _Chance, named: Mask) -> FloatArray:
    """Chance that the partner of a row without a name is not among the candidates.

    If it were, its log odds would be at most the highest that were found: as seldom as those of surely right pairs are.
    """
    below = np.searchsorted(chance.own, highest, side="right") / chance.own.size
    found = float(np.mean(1 - below[~named])) if (~named).any() else 1.0  # of partners that are here, would be named
    here = min(float(named.mean()) / max(found, 0.05), 0.95)
    return (1 - here) / np.maximum(1 - here + here * below, 1e-12)


def _assigned(row: Array, column: Array, weight: FloatArray, m: int) -> tuple[Array, FloatArray]:
    """Column of each row, no column twice, with the largest total weight; -1 and 0 where there is none."""
    chosen, strength = np.full(m, -1), np.zeros(m)
    if not row.size:
        return chosen, strength
    row, column, weight = _in_small_parts(row, column, weight, m)
    part = _parts(row, column, m)[row]
    order = np.argsort(part, kind="stable")
    for edges in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
        (rows, r), (columns, c) = (np.unique(side[edges], return_inverse=True) for side in (row, column))
        gain = np.zeros((rows.size, columns.size))
        gain[r, c] = weight[edges]
        i, j = linear_sum_assignment(gain, maximize=True)
        taken = gain[i, j] > 0
        chosen[rows[i[taken]]], strength[rows[i[taken]]] = columns[j[taken]], gain[i, j][taken]
    return chosen, strength


def _parts(row: Array, column: Array, m: int) -> Array:
    """Number of the connected part of each row of the graph of candidates."""
    graph = coo_matrix((np.ones(row.size), (row, m + column)), shape=(2 * m, 2 * m))
    return np.asarray(connected_components(graph, directed=False)[1])


def _in_small_parts(row: Array, column: Array, weight: FloatArray, m: int) -> tuple[Array, Array, FloatArray]:
    """Leave out the weakest candidates of each row until no connected part is too large."""
    order = np.lexsort((-weight, row))
    row, column, weight = row[order], column[order], weight[order]
    rank = np.arange(row.size) - np.searchsorted(row, row)
    for most in range(_MOST_CANDIDATES, 0, -1):
        kept = rank < most
        if np.bincount(_parts(row[kept], column[kept], m)[:m]).max() <= _LARGEST_PART:
            break
    return row[kept], column[kept], weight[kept]
