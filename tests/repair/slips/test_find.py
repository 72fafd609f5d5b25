"""Slips in odds that are made: kinds, places, amounts; what two rows claim; sequences; where to begin."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.repair.slips.evidence import Crossed
from inlier.repair.slips.find import find_in_sequences, find_slips
from inlier.repair.slips.lanes import REVERSED, SHIFTED, Lane, Lanes
from inlier.repair.slips.whole import agreeing_lanes


def crossed(order, seed=0, clear=6.0):
    """Odds of tables in which y_j belongs to x of number order_j, -1 to nobody; rows of x are in their place."""
    rng, n = np.random.default_rng(seed), order.size
    odds = rng.normal(size=(n, n)) - np.log(2 * n)
    here = np.flatnonzero(order >= 0)
    odds[order[here], here] += clear
    return Crossed(lambda i, j: odds[np.ix_(i, j)], lambda i, j: odds[i, j], np.arange(n), n)


def look(order, lanes=None, **given):
    """Slips of such tables."""
    n = order.size
    return find_slips(crossed(order, **given), lanes or Lanes(n, n, n - 1, True), np.random.RandomState(0))


def lost(n, *lines):
    """Order of y without some lines; strangers at the end."""
    kept = np.delete(np.arange(n), lines)
    return np.append(kept, np.full(len(lines), -1))


def test_a_line_is_lost():
    found = look(lost(200, 90))
    (slip,) = found.slips
    assert (slip.kind, slip.start, slip.stop, slip.amount, slip.changed_by) == (SHIFTED, 91, 200, -1, -1)
    assert slip.p_value < 1e-15
    assert slip.n_explained > 100
    assert found.partner[[89, 90, 91, 199]].tolist() == [89, -1, 90, 198]
    assert slip.text().startswith(
        "From row 91 to the end, y stands one row too high: one line of y is missing at row 90"
    )


def test_lines_are_lost_and_put_in():
    order = np.insert(lost(300, 80, 160, 161), 240, -1)[:300]
    slips = look(order).slips
    assert [(slip.start, slip.amount, slip.changed_by) for slip in slips] == [(81, -1, -1), (162, -3, -2), (243, -2, 1)]
    assert "two" not in slips[1].text()
    assert "2 lines of y are missing at row 160" in slips[1].text()


def test_the_whole_table_is_shifted():
    (slip,) = look(np.append([-1, -1], np.arange(148))).slips
    assert (slip.start, slip.stop, slip.amount) == (0, 150, 2)
    assert (
        "From the first row to the last, y stands 2 rows too low: 2 lines of y are too many at the top" in slip.text()
    )


def test_blocks_are_exchanged():
    order = np.arange(300)
    order[20:70], order[200:250] = np.arange(200, 250), np.arange(20, 70)
    found = look(order)
    (slip,) = found.slips
    assert (slip.kind, slip.start, slip.stop, slip.amount) == ("exchanged", 20, 70, 180)
    assert "y is exchanged with rows 200 to 249" in slip.text(np.arange(300))
    assert (found.partner == np.argsort(order)).all()


def test_a_block_is_reversed():
    order = np.arange(200)
    order[50:120] = order[50:120][::-1]
    found = look(order)
    (slip,) = found.slips
    assert (slip.kind, slip.start, slip.stop) == (REVERSED, 50, 120)
    assert (found.partner == np.argsort(order)).all()


def test_a_map_that_was_named_is_found():
    turned = np.arange(192).reshape(2, 96)
    turned[1] = turned[1, ::-1]
    maps = {"turned": np.concatenate([np.arange(96)[::-1], 96 + np.arange(96)[::-1]])}
    (slip,) = look(turned.ravel(), Lanes(192, 192, 5, maps=maps)).slips
    assert (slip.kind, slip.start, slip.stop) == ("turned", 96, 192)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("clear", [0.0, 6.0])
def test_nothing_is_found_where_nothing_has_slipped(seed, clear):
    assert not look(np.arange(150), seed=seed, clear=clear).slips


def test_single_exchanges_are_no_slips():
    order = np.arange(200)
    some = np.random.default_rng(0).permutation(200)[:40]
    order[some] = np.roll(order[some], 1)
    assert not look(order).slips


def test_sequences_are_tested_together():
    """Short ones say little each: thirty of twenty rows, in half of which a line is lost."""
    rng, parts = np.random.default_rng(0), []
    for k in range(30):
        part = lost(20, rng.integers(2, 10)) if k % 2 else np.arange(20)
        parts.append(np.where(part >= 0, part + 20 * k, -1))
    order = np.concatenate(parts)
    ends = [(20 * k, 20 * k + 20) * 2 for k in range(30)]
    odds, lanes = crossed(order, clear=5.0), Lanes(600, 600, 599)
    found = find_in_sequences(odds, lanes, ends, np.random.RandomState(0))
    home = np.full(600, -1)
    home[order[order >= 0]] = np.flatnonzero(order >= 0)
    has = home >= 0
    assert (found.partner[has] == home[has]).mean() > 0.97
    assert {slip.start // 20 % 2 for slip in found.slips} == {1}
    in_place = crossed(np.arange(600), clear=5.0)
    assert not find_in_sequences(in_place, lanes, ends, np.random.RandomState(0)).slips


@pytest.mark.parametrize(
    ("order", "lane"), [(lost(300, 0, 1), Lane(SHIFTED, -2)), (np.arange(300)[::-1], Lane(REVERSED, 299))]
)
def test_whole_tables_agree_best_where_they_belong(order, lane):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    Y = X[order] @ rng.normal(size=(6, 9)) + rng.normal(size=(300, 9))
    assert agreeing_lanes(X, Y, Lanes(300, 300, 299, True))[0] == lane
    assert agreeing_lanes(X, rng.normal(size=(300, 9)), Lanes(300, 300, 299, True)) == []


def test_agreement_at_all_lags_is_that_of_each():
    from inlier.repair.slips.whole import _at_all_lags

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 3)), rng.normal(size=(17, 2))
    agreement, rows = _at_all_lags(x, y)
    for lag in range(-19, 17):
        i = np.arange(max(0, -lag), min(20, 17 - lag))
        assert rows[lag] == i.size
        np.testing.assert_allclose(agreement[lag], np.square(x[i].T @ y[i + lag]).sum(), atol=1e-9)
