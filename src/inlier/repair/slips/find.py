"""From the odds of any x with any y to the slips that explain them.

The evidence for x_i with y_j is by how much it is better than chance, and than both their own pairs,

    v_ij = log( e + (1 - e) exp( r_ij - max(r_ii, r_jj, c) ) ),    exp(c) the mean of exp(r_ij) over strangers,

e the share of rows that may be with another partner all the same. It is cut above, so that no row weighs more than a few. The best path through it (`path`), every change of lanes at the price of all that there are, proposes slips; the bets of
`significance` decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.repair.slips.lanes import HOME, REVERSED, SHIFTED, Lane, Lanes
from inlier.repair.slips.path import Run, best_path
from inlier.repair.slips.significance import MISS, p_value
from inlier.repair.slips.slip import EXCHANGED, Slip

SLIPS_AT = 0.01  # p-value up to which it is one
_MOST_EVIDENCE = 4.0  # of a row, for a lane
_AS_GOOD = 3.0  # evidence by which two places of a seam may differ so that both may be it
_STRANGERS = 20_000
_AT_ONCE = 5_000_000  # odds that are held at a time


@dataclass(frozen=True, eq=False)
class Crossed:
    """Odds of any x with any y, both in the order of their tables; and what stands beside what."""

    block: Callable[[Array, Array], FloatArray]
    pairs: Callable[[Array, Array], FloatArray]
    home: Array  # row of y beside each x, -1 where there is none
    n_y: int

    @property
    def n_x(self) -> int:
        """How many rows of x there are."""
        return int(self.home.size)

    @property
    def own_of_x(self) -> FloatArray:
        """Odds of each x with what stands beside it."""
        own, here = np.full(self.n_x, -np.inf), np.flatnonzero(self.home >= 0)
        own[here] = self.pairs(here, self.home[here])
        return own

    @property
    def home_of_y(self) -> Array:
        """Row of x beside each y."""
        home, here = np.full(self.n_y, -1), np.flatnonzero(self.home >= 0)
        home[self.home[here]] = here
        return home


@dataclass(frozen=True, eq=False)
class Found:
    """What was found: slips, the row of y that each x is given, and rows of which that is not sure."""

    slips: tuple[Slip, ...]
    partner: Array
    unsure: Mask

    @property
    def n_explained(self) -> int:
        """Rows that the slips explain."""
        return sum(slip.n_explained for slip in self.slips)


def find_slips(crossed: Crossed, lanes: Lanes, rng: np.random.RandomState, at: float = SLIPS_AT) -> Found:
    """Look for slips of a table, with a p-value of ``at`` or less; at 1 they are proposals."""
    evidence = _Evidence.of(crossed, lanes, rng)
    price = float(np.log(crossed.n_x * len(lanes)))
    runs = best_path(lanes.by_row(evidence.by_row()), price)
    of_runs = [1.0 if run.lane == HOME else evidence.p_value(run, rng) for run in runs]
    kept = [run if p <= at else run._replace(lane=HOME) for run, p in zip(runs, of_runs, strict=True)]
    slips, unsure = [], np.zeros(crossed.n_x, dtype=bool)
    for number, (run, p) in enumerate(zip(kept, of_runs, strict=True)):
        seam = evidence.seam(kept, number)
        if run.lane != HOME:
            slips.append(evidence.told(run, kept[number - 1] if number else None, p, seam))
        if number and run.lane != kept[number - 1].lane:
            unsure[seam[0] : seam[1]] = True
    partner = _claimed(crossed, lanes, kept)
    return Found(tuple(_exchanged(slips)), partner, unsure)


@dataclass(frozen=True, eq=False)
class _Evidence:
    crossed: Crossed
    lanes: Lanes
    own_of_x: FloatArray
    own_of_y: FloatArray
    chance: float  # odds of strangers, on average

    @staticmethod
    def of(crossed: Crossed, lanes: Lanes, rng: np.random.RandomState) -> _Evidence:
        own_of_x, home_of_y = crossed.own_of_x, crossed.home_of_y
        own_of_y = np.where(home_of_y >= 0, own_of_x[home_of_y], -np.inf)
        i, j = (rng.randint(n, size=_STRANGERS) for n in (crossed.n_x, crossed.n_y))
        odds = np.sort(crossed.pairs(i, j))[: -max(2 * _STRANGERS // crossed.n_y, 1)]  # but for partners
        return _Evidence(crossed, lanes, own_of_x, own_of_y, float(np.log(np.mean(np.exp(odds)))))

    def cut(self, odds: FloatArray, own: FloatArray) -> FloatArray:
        """Evidence from odds, and those of own pairs."""
        better = np.minimum(odds - np.maximum(own, self.chance), _MOST_EVIDENCE)
        return np.log(MISS + (1 - MISS) * np.exp(better))

    def by_row(self) -> Iterator[tuple[int, int, FloatArray]]:
        """Evidence of each x with all y that its lanes lead to: the row, the first column, the evidence."""
        n_x, n_y, lanes = self.crossed.n_x, self.crossed.n_y, self.lanes
        is_wide = lanes.reversals or bool(lanes.maps)
        at_once = max(1, _AT_ONCE // n_y) if is_wide else max(lanes.most, _AT_ONCE // (4 * lanes.most + 4))
        for start in range(0, n_x, at_once):
            rows = np.arange(start, min(start + at_once, n_x))
            first, last = (0, n_y) if is_wide else (max(0, start - lanes.most), min(n_y, rows[-1] + lanes.most + 1))
            columns = np.arange(first, max(last, first))
            own = np.maximum(self.own_of_x[rows, None], self.own_of_y[columns])
            block = self.cut(self.crossed.block(rows, columns), own)
            for row, values in zip(rows, block, strict=True):
                yield int(row), first, values

    def in_lane(self, rows: Array, lane: Lane) -> FloatArray:
        """Evidence of rows in a lane; 0 at home, and beyond the end of the table."""
        found = np.zeros(rows.size)
        if lane.kind:
            columns = self.lanes.columns(lane, rows)
            here = np.flatnonzero((columns >= 0) & (columns != self.crossed.home[rows]))
            i, j = rows[here], columns[here]
            found[here] = self.cut(self.crossed.pairs(i, j), np.maximum(self.own_of_x[i], self.own_of_y[j]))
        return found

    def p_value(self, run: Run, rng: np.random.RandomState) -> float:
        """Whether a run is a slip."""
        lane, n = self.lanes[run.lane], self.crossed.n_x
        rows = np.arange(run.start, run.stop)
        columns, home = self.lanes.columns(lane, rows), self.crossed.home[rows]
        here = (columns >= 0) & (columns != home) & (home >= 0)
        rows, columns, home = rows[here], columns[here], home[here]
        if not rows.size:
            return 1.0

        def ahead(by: int) -> FloatArray:
            """How far rows are ahead of their own pairs, where y is pushed on along x."""
            j, own = (columns + by) % self.crossed.n_y, (home + by) % self.crossed.n_y
            others = self.crossed.home_of_y[columns]
            of_y = np.full(rows.size, -np.inf)
            some = others >= 0
            of_y[some] = self.crossed.pairs(others[some], j[some])
            return self.crossed.pairs(rows, j) - np.maximum(self.crossed.pairs(rows, own), of_y)

        ends = 1 + (run.start > 0 and run.stop < n)  # that could be elsewhere
        return p_value(ahead, n, ends * np.log(n) + self._price_of(lane), rng)

    def _price_of(self, lane: Lane) -> float:
        """What a lane costs: shifts by little are commoner than others."""
        families = 1 + self.lanes.reversals + bool(self.lanes.maps)
        if lane.kind == SHIFTED:
            by = abs(lane.amount)
            return float(np.log(2 * families * by * (by + 1)))
        return float(np.log(families * (2 * self.crossed.n_x if lane.kind == REVERSED else len(self.lanes.maps))))

    def seam(self, runs: list[Run], number: int) -> tuple[int, int]:
        """Between which rows a run may have begun."""
        run = runs[number]
        if number == 0:
            return 0, 0
        before = runs[number - 1]
        rows = np.arange(before.start, run.stop)
        difference = self.in_lane(rows, self.lanes[before.lane]) - self.in_lane(rows, self.lanes[run.lane])
        total = np.append(0.0, np.cumsum(difference))  # for the run to begin at each of these rows
        at = run.start - before.start
        low = total >= total[at] - _AS_GOOD
        left, right = at, at
        while left > 0 and low[left - 1]:
            left -= 1
        while right < rows.size - 1 and low[right + 1]:
            right += 1
        return before.start + left, before.start + right

    def told(self, run: Run, before: Run | None, p: float, seam: tuple[int, int]) -> Slip:
        """A run as a slip."""
        lane, rows = self.lanes[run.lane], np.arange(run.start, run.stop)
        last = Lane("", 0) if before is None else self.lanes[before.lane]
        is_shift = lane.kind == SHIFTED and last.kind in ("", SHIFTED)
        explained = int((self.in_lane(rows, lane) > 0).sum())
        by = lane.amount - last.amount if is_shift else 0
        amount = lane.amount if lane.kind == SHIFTED else 0
        return Slip(lane.kind, run.start, run.stop, amount, by, p, explained, seam, self.crossed.n_x)


def _claimed(crossed: Crossed, lanes: Lanes, runs: list[Run]) -> Array:
    """Row of y that each x is given; one that two would have goes to whom it fits better."""
    partner = crossed.home.copy()
    for run in runs:
        if run.lane != HOME:
            partner[run.start : run.stop] = lanes.columns(lanes[run.lane], np.arange(run.start, run.stop))
    given = np.flatnonzero(partner >= 0)
    order = given[np.argsort(-crossed.pairs(given, partner[given]), kind="stable")]
    first = np.unique(partner[order], return_index=True)[1]
    lost = np.setdiff1d(given, order[first])
    partner[lost] = -1
    return partner


def _exchanged(slips: list[Slip]) -> list[Slip]:
    """Two blocks that stand in each other's place are one slip."""
    told: list[Slip] = []
    for slip in slips:
        other = next((one for one in told if one.kind == SHIFTED and _trade_places(one, slip)), None)
        if other is None:
            told.append(slip)
            continue
        told.remove(other)
        n_explained = other.n_explained + slip.n_explained
        told.append(
            Slip(
                EXCHANGED, other.start, other.stop, other.amount, 0, min(other.p_value, slip.p_value), n_explained,
                other.unsure, other.n_rows,
            )
        )  # fmt: skip
    return told


def _trade_places(one: Slip, other: Slip) -> bool:
    """Whether two shifts, by as much, lead more or less into each other's rows."""
    if other.kind != SHIFTED or one.amount != -other.amount:
        return False
    shared = min(one.stop + one.amount, other.stop) - max(one.start + one.amount, other.start)
    return 2 * shared > max(one.stop - one.start, other.stop - other.start)
