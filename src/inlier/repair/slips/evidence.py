"""What speaks for x_i with y_j, where both are rows of tables in order, and for runs of such rows.

The evidence for x_i with y_j is by how much it is better than chance, and than both their own pairs,

    v_ij = log( e + (1 - e) exp( r_ij - max(r_ii, r_jj, c) ) ),    exp(c) the mean of exp(r_ij) over strangers,

r the odds of any x with any y, e the share of rows that may be with another partner all the same. It is cut above, so
that no row weighs more than a few. The best path through it, every change of lanes at the price of all that there are,
proposes runs; what the bets of `significance` win on them decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from inlier._typing import Array, FloatArray
from inlier.repair.slips.lanes import HOME, REVERSED, SHIFTED, Lane, Lanes
from inlier.repair.slips.path import Run, best_path, priced_path
from inlier.repair.slips.significance import MISS, STEEPNESS, won

_MOST_EVIDENCE = 4.0  # of a row, for a lane
_AS_GOOD = 2.0  # evidence by which two places of a seam may differ so that both may be it
_STRANGERS = 20_000  # pairs of rows whose odds are those of chance
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

    def own(self) -> tuple[FloatArray, FloatArray]:
        """Odds of each x, and of each y, with what stands beside it; -inf where there is nothing."""
        of_x, of_y = np.full(self.n_x, -np.inf), np.full(self.n_y, -np.inf)
        here = np.flatnonzero(self.home >= 0)
        of_x[here] = of_y[self.home[here]] = self.pairs(here, self.home[here])
        return of_x, of_y

    def inside(self, first: int, after: int, first_y: int, after_y: int) -> Crossed:
        """The same of rows ``first`` to before ``after``, beside those of y from one to before another."""

        def block(rows: Array, columns: Array) -> FloatArray:
            return self.block(rows + first, columns + first_y)

        def pairs(i: Array, j: Array) -> FloatArray:
            return self.pairs(i + first, j + first_y)

        home = self.home[first:after]
        return Crossed(block, pairs, np.where(home >= 0, home - first_y, -1), after_y - first_y)


class Weighed(NamedTuple):
    """A run, what bets on it have won, and what it costs to have looked everywhere else; in logarithms."""

    run: Run
    won: FloatArray
    price: float

    @staticmethod
    def at_home(run: Run) -> Weighed:
        """A run on which nothing is bet."""
        return Weighed(run._replace(lane=HOME), np.zeros(STEEPNESS.size), 0.0)

    @property
    def p_value(self) -> float:
        """Chance that a table without a slip has such a run anywhere."""
        gain = float(self.won.max() - np.log(STEEPNESS.size)) - self.price
        return 1.0 if self.run.lane == HOME else float(np.exp(-max(gain, 0.0)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What speaks for lanes, row by row, and for runs."""

    crossed: Crossed
    lanes: Lanes
    own_of_x: FloatArray
    own_of_y: FloatArray
    chance: float  # odds of strangers, on average
    first: tuple[int, int] = (0, 0)  # where these rows begin in the table, of x and of y

    @staticmethod
    def of(crossed: Crossed, lanes: Lanes, rng: np.random.RandomState) -> Evidence:
        """Look at own pairs and at strangers."""
        i, j = (rng.randint(n, size=_STRANGERS) for n in (crossed.n_x, crossed.n_y))
        odds = np.sort(crossed.pairs(i, j))[: -max(2 * _STRANGERS // crossed.n_y, 1)]  # but for partners
        return Evidence(crossed, lanes, *crossed.own(), float(logsumexp(odds) - np.log(odds.size)))

    def inside(self, first: int, after: int, first_y: int, after_y: int) -> Evidence:
        """The same inside of a sequence of rows."""
        n_x, n_y = after - first, after_y - first_y
        lanes = Lanes(n_x, n_y, min(self.lanes.most, max(n_x, n_y) - 1))
        crossed = self.crossed.inside(first, after, first_y, after_y)
        own = self.own_of_x[first:after], self.own_of_y[first_y:after_y]
        return Evidence(crossed, lanes, *own, self.chance, (first, first_y))

    def backwards(self) -> Evidence:
        """The same beside y from its last row to its first."""
        last, crossed = self.crossed.n_y - 1, self.crossed
        turned = replace(
            crossed, block=lambda i, j: crossed.block(i, last - j), pairs=lambda i, j: crossed.pairs(i, last - j)
        )
        own_of_x, own_of_y = turned.own()
        return replace(self, crossed=turned, own_of_x=own_of_x, own_of_y=own_of_y)

    def gained(self, price: float) -> float:
        """Evidence of the best path, less the price of its changes."""
        runs = self.runs(price)
        changes = sum(run.lane != before.lane for before, run in zip([Run(0, 0, HOME), *runs], runs, strict=False))
        return (
            sum(float(self.in_lane(np.arange(*run[:2]), self.lanes[run.lane]).sum()) for run in runs) - price * changes
        )

    def within(self, most: int) -> Evidence:
        """The same with shifts by so much at most, and no turns."""
        return replace(self, lanes=Lanes(self.crossed.n_x, self.crossed.n_y, min(most, self.lanes.most)))

    def runs(self, price: float) -> list[Run]:
        """The best path; what was done to a plate was done to all of it.

        Rows inside of the table that a lane leads out of it are at home: nothing spoke for it there.
        """
        lanes = np.empty(self.crossed.n_x, dtype=np.int64)
        for run in best_path(self.lanes.by_row(self._by_row()), price):
            rows = np.arange(run.start, run.stop)
            lanes[rows] = run.lane
            here = rows if run.lane == HOME else rows[self.lanes.columns(self.lanes[run.lane], rows) >= 0]
            if run.start > 0:
                lanes[run.start : here.min(initial=run.stop)] = HOME
            if run.stop < lanes.size:
                lanes[here.max(initial=run.start - 1) + 1 : run.stop] = HOME
        if self.lanes.plates is not None:
            self._of_whole_plates(lanes, self.lanes.plates)
        starts = np.append(0, np.flatnonzero(np.diff(lanes)) + 1)
        stops = np.append(starts[1:], lanes.size)
        return [Run(int(start), int(stop), int(lanes[start])) for start, stop in zip(starts, stops, strict=True)]

    def _of_whole_plates(self, lanes: Array, plates: Array) -> None:
        for plate in np.unique(plates):
            rows = np.flatnonzero(plates == plate)
            found, counts = np.unique(lanes[rows], return_counts=True)
            if 2 * counts.max() > rows.size and self.lanes[int(found[counts.argmax()])].kind in self.lanes.maps:
                lanes[rows] = found[counts.argmax()]

    def aligned(self, price_of_jump: Callable[[Array], FloatArray], price_of_end: float) -> list[Run]:
        """The best path through shifts, by what jumps cost, and what an end beside another row than the last of y."""
        amounts = np.append(0, np.arange(-self.lanes.most, self.lanes.most + 1))
        prices = price_of_jump(amounts - amounts[:, None])
        prices[:, self.lanes.most + 1] = np.inf  # to shift by none is to be at home
        ends = np.where(amounts == self.crossed.n_y - self.crossed.n_x, 0.0, price_of_end)
        return priced_path(self.lanes.by_row(self._by_row()), prices, ends)

    def weighed(self, runs: list[Run], rng: np.random.RandomState) -> list[Weighed]:
        """What every run is worth."""
        return [Weighed.at_home(run) if run.lane == HOME else self._weighed(run, rng) for run in runs]

    def in_lane(self, rows: Array, lane: Lane) -> FloatArray:
        """Evidence of rows in a lane; 0 at home, and beyond the end of the table."""
        found = np.zeros(rows.size)
        if lane.kind:
            columns = self.lanes.columns(lane, rows)
            here = np.flatnonzero((columns >= 0) & (columns != self.crossed.home[rows]))
            i, j = rows[here], columns[here]
            found[here] = self._cut(self.crossed.pairs(i, j), np.maximum(self.own_of_x[i], self.own_of_y[j]))
        return found

    def seam(self, runs: list[Run], number: int) -> tuple[int, int]:
        """Between which rows a run may have begun."""
        run, before = runs[number], runs[number - 1]
        if number == 0:
            return 0, 0
        rows = np.arange(before.start, run.stop)
        difference = self.in_lane(rows, self.lanes[before.lane]) - self.in_lane(rows, self.lanes[run.lane])
        total = np.append(0.0, np.cumsum(difference))  # for the run to begin at each of these rows
        left = right = run.start - before.start
        enough = total[left] - _AS_GOOD
        while left > 0 and total[left - 1] >= enough:
            left -= 1
        while right < rows.size - 1 and total[right + 1] >= enough:
            right += 1
        return before.start + left, before.start + right

    def unseen_shift(self, at: float, rng: np.random.RandomState) -> int:
        """Shift of the whole table up to which it could not be told from none, if rows are in their place; 0: none.

        What would be won on a shift is seen in the mirror: how far own pairs are ahead of those so many rows away.
        """
        n = min(self.crossed.n_x, self.crossed.n_y)
        unseen = 0
        for by in (1, 2, 4, 8, 16, 32):
            rows = np.arange(by, n - by)
            if 4 * by >= n:
                break
            rows = rows[(self.crossed.home[rows] == rows)]

            def ahead(pushed: int, rows: Array = rows, by: int = by) -> FloatArray:
                """How far they are ahead, where y is pushed on along x."""
                here = (rows + pushed) % n
                beside = self.crossed.pairs(rows, (rows + by + pushed) % n), self.crossed.pairs(rows - by, here)
                return self.crossed.pairs(rows, here) - np.maximum(*beside)

            gain = won(ahead, n, rng).max() - np.log(STEEPNESS.size) if rows.size else 0.0
            if gain - np.log(n) - self._price_of(Lane(SHIFTED, by)) >= -np.log(at):
                return unseen
            unseen = by
        return unseen

    def _cut(self, odds: FloatArray, own: FloatArray) -> FloatArray:
        better = np.minimum(odds - np.maximum(own, self.chance), _MOST_EVIDENCE)
        evidence: FloatArray = np.log(MISS + (1 - MISS) * np.exp(better))
        return evidence

    def _by_row(self) -> Iterator[tuple[int, int, FloatArray]]:
        """Evidence of each x with all y that its lanes lead to: the row, the first column, the evidence."""
        n_x, n_y, lanes = self.crossed.n_x, self.crossed.n_y, self.lanes
        is_wide = lanes.reversals or bool(lanes.maps)
        at_once = max(1, _AT_ONCE // n_y) if is_wide else max(lanes.most, _AT_ONCE // (4 * lanes.most + 4), 1)
        for start in range(0, n_x, at_once):
            rows = np.arange(start, min(start + at_once, n_x))
            first, after = (
                (0, n_y) if is_wide else (max(0, start - lanes.most), min(n_y, int(rows[-1]) + lanes.most + 1))
            )
            columns = np.arange(first, max(after, first))
            own = np.maximum(self.own_of_x[rows, None], self.own_of_y[columns])
            block = self._cut(self.crossed.block(rows, columns), own)
            for row, values in zip(rows, block, strict=True):
                yield int(row), first, values

    def _weighed(self, run: Run, rng: np.random.RandomState) -> Weighed:
        lane, (n_x, n_y) = self.lanes[run.lane], (self.crossed.n_x, self.crossed.n_y)
        rows = np.arange(run.start, run.stop)
        columns, home = self.lanes.columns(lane, rows), self.crossed.home[rows]
        here = (columns >= 0) & (columns != home) & (home >= 0)
        rows, columns, home = rows[here], columns[here], home[here]
        home_of_y = np.full(n_y, -1)
        beside = np.flatnonzero(self.crossed.home >= 0)
        home_of_y[self.crossed.home[beside]] = beside
        others = home_of_y[columns]

        def ahead(by: int) -> FloatArray:
            """How far rows are ahead of their own pairs, where y is pushed on along x."""
            j, own = (columns + by) % n_y, self.crossed.pairs(rows, (home + by) % n_y)
            some = others >= 0
            own[some] = np.maximum(own[some], self.crossed.pairs(others[some], j[some]))
            return self.crossed.pairs(rows, j) - own

        ends = 1 + (run.start > 0 and run.stop < n_x)  # that could be elsewhere
        if not rows.size:
            return Weighed.at_home(run)
        return Weighed(run, won(ahead, n_x, rng), float(ends * np.log(self._places(run)) + self._price_of(lane)))

    def _places(self, run: Run) -> int:
        """Where a run might as well begin, or end: at any row, or where a plate does."""
        plates = self.lanes.plates
        if plates is None or self.lanes[run.lane].kind not in self.lanes.maps:
            return self.crossed.n_x
        outside = np.append(plates[: run.start], plates[run.stop :])
        is_whole = not np.isin(plates[run.start : run.stop], outside).any()
        return np.unique(plates).size + 1 if is_whole else self.crossed.n_x

    def _price_of(self, lane: Lane) -> float:
        """What a lane costs: of shifts half are by any amount, half rather by little."""
        families = 1 + self.lanes.reversals + bool(self.lanes.maps)
        if lane.kind == SHIFTED:
            by = abs(lane.amount)
            return float(np.log(4.0 * families * min(by * (by + 1), self.lanes.most)))
        return float(np.log(families * (2.0 * self.crossed.n_x if lane.kind == REVERSED else len(self.lanes.maps))))
