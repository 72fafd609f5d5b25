"""The best path through a table: which lane each row is in, where every change of lanes has its price.

A dynamic programme over rows and lanes. All changes cost the same, so whoever changes at a row does so from what was
best at the row before: only the first row of each lane's present run has to be kept, and memory is linear in the rows
and in the lanes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from inlier._typing import FloatArray
from inlier.repair.slips.lanes import HOME


class Run(NamedTuple):
    """Rows from ``start`` to before ``stop`` in one lane."""

    start: int
    stop: int
    lane: int


def best_path(evidence: Iterable[FloatArray], price: float) -> list[Run]:
    """The runs of the path whose evidence, less the price of each change of lanes, is largest; it begins at home.

    ``evidence`` holds that of all lanes, row by row.
    """
    score, first = np.empty(0), np.empty(0, dtype=np.int64)
    best_lane, its_first = [], []
    for row, values in enumerate(evidence):
        if row == 0:
            score = np.full(values.size, -price)
            score[HOME], first = 0.0, np.zeros(values.size, dtype=np.int64)
        else:
            changed = score < score.max() - price
            score[changed], first[changed] = score.max() - price, row
        score += values
        best_lane.append(int(np.argmax(score)))
        its_first.append(int(first[best_lane[-1]]))
    runs, stop = [], len(best_lane)
    while stop > 0:
        runs.append(Run(its_first[stop - 1], stop, best_lane[stop - 1]))
        stop = its_first[stop - 1]
    return runs[::-1]


def priced_path(evidence: Iterable[FloatArray], prices: FloatArray, at_the_end: FloatArray) -> list[Run]:
    """The same where a change has its price by the lanes that it leads from and to, and so has the lane of the end.

    Every cell remembers where it was reached from: for rows by the hundred, not by the million.
    """
    score, came_from = np.full(len(prices), -np.inf), []
    score[HOME] = 0.0
    to = np.arange(len(prices))
    for values in evidence:
        reached = score[:, None] - prices
        came_from.append(np.argmax(reached, axis=0))
        score = reached[came_from[-1], to] + values
    lane, runs, stop = int(np.argmax(score - at_the_end)), [], len(came_from)
    for row in range(len(came_from) - 1, -1, -1):
        before = int(came_from[row][lane])
        if before != lane or row == 0:
            runs.append(Run(row, stop, lane))
            stop = row
        lane = before
    return runs[::-1]
