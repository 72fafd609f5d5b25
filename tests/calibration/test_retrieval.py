from __future__ import annotations

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration import retrieval
from inlier.calibration.retrieval import (
    Alignment,
    Pools,
    Side,
    best_partners,
    crowding,
    learn_dictionary,
    mutual_neighbours,
    unit_rows,
)


@pytest.fixture(params=[2**24, 60])
def _blocks_of(request, monkeypatch):
    """All rows at once, and a few at a time."""
    monkeypatch.setattr(retrieval, "_BLOCK", request.param)


def rows_of(n, d, seed):
    return unit_rows(np.random.default_rng(seed).normal(size=(n, d))).astype(np.float32)


def csls(x, y, k=10):
    """The definition, all rows with all rows."""
    cosines = x.astype(np.float64) @ y.T.astype(np.float64)
    around_x = np.array([np.sort(row)[-min(k, len(y)) :].mean() for row in cosines])
    around_y = np.array([np.sort(row)[-min(k, len(x)) :].mean() for row in cosines.T])
    return 2 * cosines - around_x[:, None] - around_y


@pytest.mark.usefixtures("_blocks_of")
@pytest.mark.parametrize(("n", "m"), [(30, 40), (5, 40), (40, 5)])
def test_best_partners_are_those_of_the_definition(n, m):
    x, y = rows_of(n, 6, 0), rows_of(m, 6, 1)
    scores = csls(x, y)
    rows, found = best_partners(x, y, crowding(y, x), k=3)
    order = np.argsort(-scores, axis=1)[:, :3]
    np.testing.assert_array_equal(rows, order)
    np.testing.assert_allclose(found, np.take_along_axis(scores, order, axis=1), atol=1e-5)


@pytest.mark.usefixtures("_blocks_of")
def test_mutual_neighbours_are_those_of_the_definition():
    x, y = rows_of(50, 5, 2), rows_of(45, 5, 3)
    scores = csls(x, y)
    best, back = scores.argmax(axis=1), scores.argmax(axis=0)
    expected = [(i, j) for i, j in enumerate(best) if back[j] == i]
    assert list(zip(*map(np.ndarray.tolist, mutual_neighbours(x, y)), strict=True)) == expected


@pytest.mark.usefixtures("_blocks_of")
def test_a_partner_that_is_left_out_is_not_found():
    x = rows_of(20, 5, 4)
    own = np.concatenate([np.arange(20), np.arange(20)])
    rows, _ = best_partners(x, x, crowding(x, x))
    np.testing.assert_array_equal(rows[:, 0], np.arange(20))
    rows, scores = best_partners(x, x, crowding(x, x), leave_out=own)
    assert (rows[:, 0] != np.arange(20)).all()
    reference = csls(x, x)
    np.fill_diagonal(reference, -np.inf)
    np.testing.assert_array_equal(rows[:, 0], reference.argmax(axis=1))
    np.testing.assert_allclose(scores[:, 0], reference.max(axis=1), atol=1e-5)


def test_a_rotation_is_undone_whatever_the_units():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 8))
    Y = X @ np.linalg.qr(rng.normal(size=(8, 8)))[0] * 30 + 7
    sides = Side.of(X * 10.0 ** np.arange(-4, 4)), Side.of(Y)
    a, b = sides[0](X * 10.0 ** np.arange(-4, 4)), sides[1](Y)
    alignment = Alignment.of(sides, a[:100], b[:100], np.ones(100))
    x, y = alignment.x(a), alignment.y(b)
    rows, _ = best_partners(x[100:], y, crowding(y, x))
    assert (rows[:, 0] == np.arange(100, 200)).mean() > 0.95


def test_rows_of_zeros_stay():
    assert (unit_rows(np.zeros((2, 3))) == 0).all()


def vocabularies(n=600, d=20, n_entries=250, wrong=0.7, noise=0.5, seed=0):
    """Rows of two spaces that differ by a rotation; some are entries, of which many are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(1, 0.2, d)
    Y = X @ np.linalg.qr(rng.normal(size=(d, d)))[0] + noise * X.std() * rng.normal(size=(n, d))
    entries, rest = np.arange(n_entries), np.arange(n_entries, n)
    partner = entries.copy()
    bad = rng.permutation(n_entries)[: round(wrong * n_entries)]
    partner[bad] = partner[np.roll(bad, 1)]
    return X, Y, partner, rest


def test_a_dictionary_grows_from_entries_that_are_mostly_wrong():
    X, Y, partner, rest = vocabularies()
    pools = Pools.of(X[: len(partner)], Y[partner], X[rest], Y[rest])
    i, j = learn_dictionary(pools)
    words_y = np.concatenate([partner, rest])
    assert i.size > 300
    assert (words_y[j] == i).mean() > 0.8
    assert np.unique(i).size == np.unique(j).size == i.size


@pytest.mark.seeds
def test_unpaired_rows_help_and_claims_hold(seed, promise):
    X, Y, partner, rest = vocabularies(seed=seed)
    entries = np.arange(len(partner))
    right = partner == entries
    alone = CalibratedMatcher(alpha=0.1, random_state=0).fit(X[entries], Y[partner])
    helped = CalibratedMatcher(alpha=0.1, random_state=0)
    helped.fit(X[entries], Y[partner], unpaired=(X[rest], Y[rest]))
    accepted = helped.inlier_mask_
    promise("wrong among the accepted", int((accepted & ~right).sum()), max(int(accepted.sum()), 1), 0.1, spread=2)
    assert (accepted & right).sum() >= (alone.inlier_mask_ & right).sum() - 5
    assert (accepted & right).sum() > 0.6 * right.sum()
    found = helped.find_partners(X[rest])
    is_right = np.concatenate([partner, rest])[found.rows[:, 0]] == rest
    named = found.q_values[:, 0] <= 0.1
    promise("wrong names", int((named & ~is_right).sum()), max(int(named.sum()), 1), 0.1, spread=2)
    assert is_right.mean() > 0.6
    assert helped.map_.error < 0.6
    later, judge = helped._learned.preparation, helped._learned.judges.judges[0]
    x, y = later.x(X[:40]), later.y(Y[:40])
    table = judge.scores_of_all_pairings(x, y)
    np.testing.assert_allclose(judge.pairings(x, y)(np.arange(30), np.arange(10, 40)), np.diag(table, 10), atol=1e-5)
    np.testing.assert_allclose(judge.scores(x, y), np.diag(table), atol=1e-5)


def test_nothing_is_claimed_of_vocabularies_that_have_nothing_in_common():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(2, 400, 10))
    matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(X[:200], Y[:200], unpaired=(X[200:], Y[200:]))
    assert not matcher.inlier_mask_.any()
    assert matcher.map_.kind == "none"
    found = matcher.find_partners(X[200:210], k=2)
    assert (found.rows == -1).all()
    assert (found.q_values == 1).all()


def test_what_is_not_two_tables_is_refused():
    X, Y, partner, rest = vocabularies()
    pairs = X[: len(partner)], Y[partner]
    with pytest.raises(ValueError, match="unpaired must be two tables"):
        CalibratedMatcher().fit(*pairs, unpaired=X)
    with pytest.raises(ValueError, match="unpaired must be two tables"):
        CalibratedMatcher().fit(*pairs, unpaired=5)
    with pytest.raises(ValueError, match="unpaired has rows of 19 columns for y, which has 20"):
        CalibratedMatcher().fit(*pairs, unpaired=(X[rest], Y[rest][:, :-1]))
