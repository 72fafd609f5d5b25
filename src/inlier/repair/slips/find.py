"""From the odds of any x with any y to the slips that explain them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier._typing import Array, Mask
from inlier.repair.slips.evidence import Crossed, Evidence, Weighed
from inlier.repair.slips.lanes import HOME, SHIFTED, Lane, Lanes
from inlier.repair.slips.path import Run
from inlier.repair.slips.slip import EXCHANGED, Slip

SLIPS_AT = 0.01  # p-value up to which it is one
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
    return _told(evidence, _kept(weighed, at))


def find_in_sequences(
    crossed: Crossed, lanes: Lanes, ends: list[tuple[int, int]], rng: np.random.RandomState, at: float = SLIPS_AT
) -> Found:
    """Look for slips inside of sequences, each from a row to before another: one test for all of them.

    Where it says that there are some, they are looked for again at the price of changes that are as common as they were
    found to be, as far as they were found to go.
    """
    whole = Evidence.of(crossed, lanes, rng)
    parts = [whole.inside(*some) for some in ends]
    found = [part.weighed(part.runs(float(np.log(part.crossed.n_x * len(part.lanes)))), rng) for part in parts]
    changes = [one for part in found for one in part if one.run.lane != HOME]
    p = float(np.exp(-sum(max(one.won - one.price - np.log(len(parts)), 0.0) for one in changes)))
    if not changes or p > at:
        return _joined([_told(part, _kept(some, at, len(parts))) for part, some in zip(parts, found, strict=True)])
    most = max(abs(part.lanes[one.run.lane].amount) for part, some in zip(parts, found, strict=True) for one in some)
    parts = [part.within(most + _MARGIN) for part in parts]
    price = float(np.log(crossed.n_x / len(changes)) + np.log(2 * (most + _MARGIN) + 1))
    return _joined([_told(part, [Weighed(run, -np.log(p), 0.0) for run in part.runs(price)]) for part in parts])


def _kept(weighed: list[Weighed], at: float, times: int = 1) -> list[Weighed]:
    """The runs, at home where they may be chance, of so many sequences."""
    dear = [one._replace(price=one.price + np.log(times)) for one in weighed]
    return [one if one.p_value <= at else one._replace(run=one.run._replace(lane=HOME)) for one in dear]


def _told(evidence: Evidence, weighed: list[Weighed]) -> Found:
    """Runs as slips, and what becomes of the rows."""
    runs, slips, unsure = [one.run for one in weighed], [], np.zeros(evidence.crossed.n_x, dtype=bool)
    for number, one in enumerate(weighed):
        seam = evidence.seam(runs, number)
        if one.run.lane != HOME:
            before = Lane("", 0) if number == 0 else evidence.lanes[runs[number - 1].lane]
            slips.append(_slip(evidence, one, before, seam))
        unsure[seam[0] : seam[1]] |= number > 0 and one.run.lane != runs[number - 1].lane
    partner = _claimed(evidence, runs)
    first = evidence.first
    told = tuple(slip.further_down(first) for slip in _exchanged(slips))
    return Found(told, np.where(partner >= 0, partner + first, -1), unsure)


def _slip(evidence: Evidence, one: Weighed, before: Lane, seam: tuple[int, int]) -> Slip:
    lane, run = evidence.lanes[one.run.lane], one.run
    explained = int((evidence.in_lane(np.arange(run.start, run.stop), lane) > 0).sum())
    amount = lane.amount if lane.kind == SHIFTED else 0
    changed_by = amount - before.amount if lane.kind == SHIFTED and before.kind in ("", SHIFTED) else 0
    n = evidence.crossed.n_x
    return Slip(lane.kind, run.start, run.stop, amount, changed_by, one.p_value, explained, seam, n)


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


def _joined(found: list[Found]) -> Found:
    """What was found in one sequence after the other."""
    slips = tuple(slip for some in found for slip in some.slips)
    return Found(slips, *(np.concatenate([getattr(some, name) for some in found]) for name in ("partner", "unsure")))


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
    if one.kind != SHIFTED or other.kind != SHIFTED or one.amount != -other.amount:
        return False
    shared = min(one.stop + one.amount, other.stop) - max(one.start + one.amount, other.start)
    return 2 * shared > max(one.stop - one.start, other.stop - other.start)
