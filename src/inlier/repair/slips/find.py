"""From the odds of any x with any y to the slips that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import ttest_1samp

from inlier._typing import Array, FloatArray, Mask
from inlier.repair.slips.evidence import Crossed, Evidence, Weighed
from inlier.repair.slips.lanes import HOME, SHIFTED, Lane, Lanes
from inlier.repair.slips.path import Run
from inlier.repair.slips.significance import STEEPNESS
from inlier.repair.slips.slip import EXCHANGED, Slip

SLIPS_AT = 0.01  # p-value up to which it is one
_SHARES = (0.5, 0.1)  # of sequences that have slipped, beforehand
_FEWEST_SEQUENCES = 8  # that are compared with themselves backwards
_ROUNDS = 2  # of counting how common jumps are
_MARGIN = 2  # rows more than sequences have been found to shift, that others may


@dataclass(frozen=True, eq=False)
class Found:
    """What was found: slips, the row of y that each x is given, and rows of which that is not sure."""

    slips: tuple[Slip, ...]
    partner: Array
    unsure: Mask


def find_slips(crossed: Crossed, lanes: Lanes, rng: np.random.RandomState, at: float = SLIPS_AT) -> Found:
    """Look for slips of a table, with a p-value of ``at`` or less; at 1 they are proposals."""
    evidence = Evidence.of(crossed, lanes, rng)
    weighed = evidence.weighed(evidence.runs(float(np.log(crossed.n_x * len(lanes)))), rng)
    return _decided(evidence, _together(_traded(evidence, weighed), crossed.n_x), at)


def find_in_sequences(
    crossed: Crossed,
    lanes: Lanes,
    ends: Sequence[tuple[int, int, int, int]],
    rng: np.random.RandomState,
    at: float = SLIPS_AT,
) -> Found:
    """Look for slips inside of sequences, each from a row of x to before another, and of y: one test for all of them.

    Where it says that there are some, they are looked for again at the price of changes that are as common as they were
    found to be, as far as they were found to go. Where sequences are longer on one side, the last of x belongs with the
    last of y as a rule.
    """
    whole = Evidence.of(crossed, lanes, rng)
    parts = [whole.inside(*some) for some in ends]
    found = [part.weighed(part.runs(float(np.log(part.crossed.n_x * len(part.lanes)))), rng) for part in parts]
    changes = [one for part in found for one in part if one.run.lane != HOME]
    p = _of_all(found)
    if not changes:
        return _joined([_decided(part, some, at) for part, some in zip(parts, found, strict=True)], crossed.n_x)
    most = max(abs(part.lanes[one.run.lane].amount) for part, some in zip(parts, found, strict=True) for one in some)
    most = max(most, *(abs(part.crossed.n_x - part.crossed.n_y) for part in parts))
    near = [part.within(most + _MARGIN) for part in parts]
    price = float(np.log(crossed.n_x / len(changes)) + np.log(2 * (most + _MARGIN) + 1))
    if p > at:
        p = min(2 * min(p, _beside_backwards(near, price)), 1.0)
    if p > at:
        decided = (_decided(part, some, at, len(parts)) for part, some in zip(parts, found, strict=True))
        return _joined(list(decided), crossed.n_x)
    runs = [part.runs(price) for part in near]
    to_the_end = any(part.crossed.n_x != part.crossed.n_y for part in parts)
    jumps = _Jumps.of(near, runs)
    for _ in range(_ROUNDS):
        runs = [part.aligned(jumps.prices, price if to_the_end else 0.0) for part in near]
        jumps = _Jumps.of(near, runs)
    return _joined([_told(part, some, [p] * len(some)) for part, some in zip(near, runs, strict=True)], crossed.n_x)


@dataclass(frozen=True, eq=False)
class _Jumps:
    """How common jumps of each amount are, from row to row of sequences."""

    amounts: Array
    shares: FloatArray
    others: float  # share of any other amount

    @staticmethod
    def of(parts: list[Evidence], runs: list[list[Run]]) -> _Jumps:
        """Count them along paths; there is one more than was seen of any amount."""
        found = [
            part.lanes[run.lane].amount - part.lanes[before.lane].amount
            for part, some in zip(parts, runs, strict=True)
            for before, run in zip([Run(0, 0, HOME), *some], some, strict=False)
        ]
        n, n_amounts = sum(part.crossed.n_x for part in parts), 4 * max(part.lanes.most for part in parts) + 1
        amounts, counts = np.unique([jump for jump in found if jump], return_counts=True)
        return _Jumps(amounts.astype(np.int64), (counts + 1 / n_amounts) / (n + 1), 1 / n_amounts / (n + 1))

    def prices(self, jumps: Array) -> FloatArray:
        """What they cost."""
        price = np.full(jumps.shape, -np.log(self.others))
        for amount, share in zip(self.amounts, self.shares, strict=True):
            price[jumps == amount] = -np.log(share)
        price[jumps == 0] = -np.log1p(-self.shares.sum())
        return price


def _beside_backwards(parts: list[Evidence], price: float) -> float:
    """Chance that paths gain so much more than where y is read backwards: what one sequence gains says little.

    Rows in their place gain less, and strangers as much; neighbours resemble each other either way.
    """
    more = np.array([part.gained(price) - part.backwards().gained(price) for part in parts])
    if more.size < _FEWEST_SEQUENCES or not more.any():
        return 1.0
    return float(ttest_1samp(more, 0.0, alternative="greater").pvalue)


def _of_all(found: list[list[Weighed]]) -> float:
    """Chance that so many sequences have such runs; how common they are is tried, too."""
    never = np.full(STEEPNESS.size, -np.inf)
    gains = ([one.won - one.price for one in some if one.run.lane != HOME] for some in found)
    gain = np.array([np.max([never, *of], axis=0) for of in gains])
    shares = (*_SHARES, 0.5 / len(found))
    totals = [np.logaddexp(np.log1p(-share), np.log(share) + gain).sum(axis=0) for share in shares]
    return float(np.exp(min(np.log(np.size(totals)) - np.max(totals), 0.0)))


def _traded(evidence: Evidence, weighed: list[Weighed]) -> list[Weighed]:
    """The same, where two blocks that trade places are one slip: bets on both, three ends that could be elsewhere."""
    price, told = float(3 * np.log(evidence.crossed.n_x) + np.log(4)), list(weighed)
    for k, one in enumerate(weighed):
        for other in weighed[k + 1 :]:
            if HOME not in (one.run.lane, other.run.lane) and _lead_into(
                evidence.lanes[one.run.lane], one.run, evidence.lanes[other.run.lane], other.run
            ):
                told[k], told[weighed.index(other)] = (
                    some._replace(won=one.won + other.won, price=price) for some in (one, other)
                )
    return told


def _together(weighed: list[Weighed], n: int) -> list[Weighed]:
    """The same, where runs in one lane are one slip with something else inside: bets on all of them, all ends paid."""
    told = list(weighed)
    for lane in {one.run.lane for one in weighed} - {HOME}:
        same = [k for k, one in enumerate(weighed) if one.run.lane == lane and one.won.max() > 0]
        if len(same) > 1:
            won = np.sum([weighed[k].won for k in same], axis=0)
            price = max(weighed[k].price for k in same) + float((len(same) - 1) * np.log(n))
            both = [told[k]._replace(won=won, price=price) for k in same]
            for k, one in zip(same, both, strict=True):
                told[k] = min(told[k], one, key=lambda some: some.p_value)
    return told


def _lead_into(one: Lane, run: Run, other: Lane, other_run: Run) -> bool:
    """Whether two shifts, by as much, lead more or less into each other's rows."""
    if one.kind != SHIFTED or other.kind != SHIFTED or one.amount != -other.amount:
        return False
    shared = min(run.stop + one.amount, other_run.stop) - max(run.start + one.amount, other_run.start)
    return 2 * shared > max(run.stop - run.start, other_run.stop - other_run.start)


def _decided(evidence: Evidence, weighed: list[Weighed], at: float, times: int = 1) -> Found:
    """What is left of runs where those that may be chance stay at home, in one of so many sequences."""
    dear = [one._replace(price=one.price + np.log(times)) for one in weighed]
    kept = [one if one.p_value <= at else Weighed.at_home(one.run) for one in dear]
    return _told(evidence, [one.run for one in kept], [one.p_value for one in kept])


def _told(evidence: Evidence, runs: list[Run], p_values: list[float]) -> Found:
    """Runs as slips, and what becomes of the rows."""
    partner, unsure, slips = _claimed(evidence, runs), np.zeros(evidence.crossed.n_x, dtype=bool), []
    for number, (run, p) in enumerate(zip(runs, p_values, strict=True)):
        before = Lane("", 0) if number == 0 else evidence.lanes[runs[number - 1].lane]
        if evidence.lanes[run.lane] == before:
            continue
        seam = evidence.seam(runs, number)
        unsure[seam[0] : seam[1]] = True
        if run.lane != HOME:
            given = np.flatnonzero(partner[run.start : run.stop] >= 0)  # rows whose partner was lost stand before it
            start = run.start + (int(given[0]) if given.size else 0)
            slips.append(_slip(evidence, run._replace(start=start), before, p, seam))
    first = evidence.first
    told = tuple(slip.further_down(first[0]) for slip in _exchanged(slips))
    return Found(told, np.where(partner >= 0, partner + first[1], -1), unsure)


def _slip(evidence: Evidence, run: Run, before: Lane, p: float, seam: tuple[int, int]) -> Slip:
    lane, n = evidence.lanes[run.lane], evidence.crossed.n_x
    explained = int((evidence.in_lane(np.arange(run.start, run.stop), lane) > 0).sum())
    amount = lane.amount if lane.kind == SHIFTED else 0
    changed_by = amount - before.amount if lane.kind == SHIFTED and before.kind in ("", SHIFTED) else 0
    moved = min(changed_by, 0)  # lines that are missing belong beside the rows above
    at, first, last = (max(row + moved, 0) for row in (run.start, *seam))
    rows = (at,) if first == last else (first, last) if last == first + 1 else (at, first, last)
    at_rows = () if run.start == 0 or not changed_by else rows
    return Slip(lane.kind, run.start, run.stop, amount, changed_by, p, explained, seam, n, at_rows)


def _claimed(evidence: Evidence, runs: list[Run]) -> Array:
    """Row of y that each x is given; one that two would have goes to whom it fits better."""
    partner = evidence.crossed.home.copy()
    for run in runs:
        if run.lane != HOME:
            rows = np.arange(run.start, run.stop)
            partner[rows] = evidence.lanes.columns(evidence.lanes[run.lane], rows)
    given = np.flatnonzero(partner >= 0)
    order = given[np.argsort(-evidence.crossed.pairs(given, partner[given]), kind="stable")]
    first = np.unique(partner[order], return_index=True)[1]
    partner[np.setdiff1d(given, order[first])] = -1
    return partner


def _joined(found: list[Found], n_x: int) -> Found:
    """What was found in one sequence after the other; rows behind them have nobody."""
    n_groups = sum(bool(some.slips) for some in found)
    slips = tuple(replace(slip, n_groups=n_groups) for some in found for slip in some.slips)
    partner, unsure = np.full(n_x, -1), np.zeros(n_x, dtype=bool)
    for name, whole in (("partner", partner), ("unsure", unsure)):
        together = np.concatenate([getattr(some, name) for some in found])
        whole[: together.size] = together
    return Found(slips, partner, unsure)


def _exchanged(slips: list[Slip]) -> list[Slip]:
    """Two blocks that stand in each other's place are one slip."""
    told: list[Slip] = []
    for slip in slips:
        other = next((one for one in told if _trade_places(one, slip)), None)
        if other is None:
            told.append(slip)
        else:
            told[told.index(other)] = other.and_back(slip, EXCHANGED)
    return told


def _trade_places(one: Slip, other: Slip) -> bool:
    """Whether two shifts, by as much, lead more or less into each other's rows."""
    runs = (Run(slip.start, slip.stop, HOME) for slip in (one, other))
    return _lead_into(Lane(one.kind, one.amount), next(runs), Lane(other.kind, other.amount), next(runs))
