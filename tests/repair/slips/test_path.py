"""Lanes, and the best path through them, beside a programme that looks back at all lanes from every row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlier.repair.slips.lanes import HOME, REVERSED, SHIFTED, Lane, Lanes
from inlier.repair.slips.path import Run, best_path


def slow_path(evidence, price):
    """Lane of each row by the textbook: every cell remembers where it was reached from."""
    n, n_lanes = evidence.shape
    score, back = np.full((n, n_lanes), -np.inf), np.zeros((n, n_lanes), dtype=int)
    for row in range(n):
        for lane in range(n_lanes):
            if row == 0:
                score[0, lane] = evidence[0, lane] - price * (lane != HOME)
                continue
            reached = [score[row - 1, before] - price * (before != lane) for before in range(n_lanes)]
            back[row, lane] = int(np.argmax(reached))
            score[row, lane] = max(reached) + evidence[row, lane]
    return float(score[-1].max())


def value(runs, evidence, price):
    """Evidence of a path, less its price."""
    changes = sum(run.lane != before.lane for before, run in zip([Run(0, 0, HOME), *runs], runs, strict=False))
    return sum(evidence[run.start : run.stop, run.lane].sum() for run in runs) - price * changes


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 12), st.floats(0.1, 6), st.integers(0, 10_000))
def test_the_path_is_the_best_there_is(n, n_lanes, price, seed):
    evidence = np.random.default_rng(seed).normal(size=(n, n_lanes))
    evidence[:, HOME] = 0.0
    runs = best_path(iter(evidence), price)
    assert [run.start for run in runs] == [0, *(run.stop for run in runs[:-1])]
    assert runs[-1].stop == n
    assert value(runs, evidence, price) == pytest.approx(slow_path(evidence, price))


def test_a_path_finds_what_was_planted():
    rng = np.random.default_rng(0)
    evidence = rng.normal(size=(200, 40)) - 1
    evidence[:, HOME] = 0.0
    evidence[60:120, 7] += 3
    evidence[120:, 9] += 3
    runs = best_path(iter(evidence), 9.0)
    assert [run.lane for run in runs] == [HOME, 7, 9]
    assert abs(runs[1].start - 60) <= 2
    assert abs(runs[2].start - 120) <= 2


def test_lanes_say_what_is_beside_what():
    lanes = Lanes(5, 6, 2, reversals=True, maps={"mirrored": np.array([1, 0, -1, 4, 3])})
    assert len(lanes) == 1 + 5 + 10 + 1
    rows = np.arange(5)
    assert lanes[HOME] == Lane("", 0)
    assert [lanes[number].amount for number in range(2, 7)] == [-2, -1, 0, 1, 2]
    assert lanes.columns(Lane(SHIFTED, 2), rows).tolist() == [2, 3, 4, 5, -1]
    assert lanes.columns(Lane(REVERSED, 4), rows).tolist() == [4, 3, 2, 1, 0]
    assert lanes.columns(lanes[1], rows).tolist() == [1, 0, -1, 4, 3]


@pytest.mark.parametrize("reversals", [False, True])
def test_evidence_of_lanes_is_that_of_their_cells(reversals):
    rng, maps = np.random.default_rng(1), {"mirrored": np.array([1, 0, -1, 4, 3])}
    values, lanes = rng.normal(size=(5, 6)), Lanes(5, 6, 3, reversals, maps if reversals else {})
    blocks = (
        (row, 0, values[row]) if reversals else (row, max(0, row - 3), values[row, max(0, row - 3) : row + 4])
        for row in range(5)
    )
    for row, found in enumerate(lanes.by_row(blocks)):
        for number in range(len(lanes)):
            lane = lanes[number]
            column = lanes.columns(lane, np.array([row]))[0]
            says_nothing = number == HOME or column < 0 or lane == Lane(SHIFTED, 0)
            assert found[number] == (0.0 if says_nothing else values[row, column])
