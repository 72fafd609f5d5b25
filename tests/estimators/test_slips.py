"""Slips in tables, from a fit to the page: rows are put right, gaps are named, nothing is found where none slipped."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.exceptions import ParameterError


def tables(n, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 6))
    return tuple(hidden @ rng.normal(size=(6, d)) + noise * rng.normal(size=(n, d)) for d in (15, 10))


def repaired(X, y, groups=None, **given):
    return CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y, groups=groups).repair(**given)


def test_a_line_that_is_lost_leaves_a_gap_and_all_else_is_put_right():
    X, Y = tables(400)
    y = np.delete(Y, 150, axis=0)
    found = repaired(X[:399], y, unpaired=(X[399:], y[:0]))
    (slip,) = found.slips
    assert (slip.kind, slip.start, slip.amount) == ("shifted", 151, -1)
    assert slip.p_value < 1e-10
    assert found.partner[150] == -1
    assert found.kind[150] == "lost"
    fixed = found.apply(y)
    rows = np.delete(np.arange(400), [148, 149, 150, 151, 152])  # at the seam two may fit
    np.testing.assert_allclose(fixed[rows], Y[rows])
    assert "one row too high: one line of y is missing" in found.answer


def test_single_mistakes_are_found_in_what_is_left():
    X, Y = tables(400, noise=0.2)
    y = np.vstack([np.delete(Y, 100, axis=0), Y[:1] + 30])
    y[[250, 300]] = y[[300, 250]]
    found = repaired(X, y)
    assert len(found.slips) == 1
    assert found.partner[[251, 301]].tolist() == [300, 250]
    assert (found.kind[[251, 301]] == "swapped").all()


def test_whole_tables_are_turned_or_pushed():
    X, Y = tables(300)
    assert [slip.kind for slip in repaired(X, Y[::-1]).slips] == ["reversed"]
    pushed = repaired(X, np.roll(Y, 3, axis=0))
    assert (pushed.partner[:290] == np.arange(3, 293)).all()


@pytest.mark.parametrize("given", ["shape", "labels"])
def test_a_plate_is_turned(given):
    X, Y = tables(288)
    order = np.arange(288)
    order[96:192] = order[96:192][::-1]
    labels = [f"{'ABCDEFGH'[k % 96 // 12]}{k % 12 + 1:02d}" for k in range(288)]
    found = repaired(X, Y[order], wells=(8, 12) if given == "shape" else labels)
    (slip,) = found.slips
    assert (slip.kind, slip.start, slip.stop) == ("turned round by 180 degrees", 96, 192)
    assert slip.p_value < 1e-6
    assert (found.partner == np.argsort(order)).all()


def test_plates_are_exchanged():
    X, Y = tables(480)
    order = np.arange(480)
    order[96:192], order[384:] = np.arange(384, 480), np.arange(96, 192)
    (slip,) = repaired(X, Y[order], wells=(8, 12)).slips
    assert (slip.kind, slip.start, slip.stop, slip.amount) == ("exchanged", 96, 192, 288)


def test_wells_that_cannot_be_are_refused():
    X, Y = tables(100)
    with pytest.raises(ParameterError, match="no whole number of such plates"):
        repaired(X, Y, wells=(8, 12))


def chapters(share, seed=1):
    """Two tables, of which the second has lost lines in chapters; pairs by place in the chapter, and what is left."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(30), rng.integers(15, 40, 30))
    X, Y = tables(groups.size, seed=seed)
    kept = np.flatnonzero(rng.random(groups.size) >= share)
    rows, rows_y = [], []
    for chapter in range(30):
        both = np.flatnonzero(groups == chapter), np.flatnonzero(groups[kept] == chapter)
        n = min(map(len, both))
        rows.append((both[0][:n], both[0][n:]))
        rows_y.append((both[1][:n], both[1][n:]))
    (of_pairs, rest), (of_pairs_y, rest_y) = (map(np.concatenate, zip(*of, strict=True)) for of in (rows, rows_y))
    return X, Y[kept], groups, kept, (of_pairs, rest), (of_pairs_y, rest_y)


def test_sequences_that_lost_lines_are_put_in_step():
    X, y, groups, kept, (rows, rest), (rows_y, rest_y) = chapters(0.05)
    found = repaired(
        X[rows],
        y[rows_y],
        groups[rows],
        unpaired=(X[rest], y[rest_y]),
        unpaired_groups=(groups[rest], groups[kept][rest_y]),
    )
    given_y = np.append(kept[np.append(rows_y, rest_y)], -1)  # the row of X that each belongs to
    partner = np.full(len(X), -1)
    partner[np.append(rows, rest)] = given_y[found.partner]
    assert (partner[kept] == kept).mean() > 0.97
    assert (kept[rows_y] == rows).mean() < 0.7
    assert "groups rows are out of step" in found.answer
    assert len(found.apply(np.concatenate([y[rows_y], y[rest_y]]))) == len(X)


def test_rows_without_a_partner_may_have_no_group():
    X, Y = tables(240)
    found = repaired(X[:230], Y[np.r_[:229, 235]], np.arange(230) // 2, unpaired=(X[230:], Y[[229]]))
    assert not found.slips
    assert found.partner[:229].tolist() == list(range(229))


def test_groups_of_rows_without_a_partner_are_checked():
    X, Y = tables(200)
    fitted = CalibratedMatcher(random_state=0).fit(X, Y)
    with pytest.raises(ParameterError, match="fit with groups"):
        fitted.repair(unpaired=(X[:1], Y[:1]), unpaired_groups=(["a"], ["a"]))
    grouped = CalibratedMatcher(random_state=0).fit(X, Y, groups=np.repeat(np.arange(100), 2))
    with pytest.raises(ParameterError, match="a group for each row"):
        grouped.repair(unpaired=(X[:1], Y[:1]), unpaired_groups=(["a"], ["a", "b"]))


@pytest.mark.parametrize("order", ["as drawn", "sorted", "re-paired"])
def test_nothing_is_found_where_nothing_slipped(order):
    X, Y = tables(300, noise=1.0)
    rows = np.argsort(X[:, 0]) if order == "sorted" else np.arange(300)
    X, Y = X[rows], Y[rows]
    if order == "re-paired":
        Y = Y[np.random.default_rng(0).permutation(300)]
    assert not repaired(X, Y).slips


def test_the_page_and_the_json_tell_of_slips():
    pytest.importorskip("jinja2")
    X, Y = tables(300)
    matcher = pickle.loads(pickle.dumps(CalibratedMatcher(random_state=0).fit(X, np.roll(Y, -1, axis=0))))
    report = matcher.report(repair=matcher.repair())
    assert "One slip explains it" in report.html()
    assert '"kind": "shifted"' in report.json()


@pytest.mark.parametrize("both", [False, True])
def test_a_block_that_was_sorted_alone_is_named_and_one_that_was_sorted_in_both_is_none(both):
    X, Y = tables(300, noise=0.3)
    order = np.arange(300)
    order[80:180] = 80 + np.argsort(Y[80:180, 2])
    found = repaired(X[order] if both else X, Y[order])
    assert [(slip.kind, slip.start, slip.stop, slip.amount) for slip in found.slips] == (
        [] if both else [("sorted", 80, 180, 2)]
    )
    if not both:
        assert "sorted on its own, by its column 2" in found.answer
        assert np.mean(found.partner == np.argsort(order)) > 0.8
