from __future__ import annotations

import numpy as np
import pytest

from inlier.repair import odds as module
from inlier.repair.odds import Odds, in_parts
from inlier.rows.null_pairs import pair_labels
from tests.repair.reference import fit_of, numbered, slow_odds

N = 60


def made(seed=0, strata=None, unit=None, top=6.0):
    """Scores of pairs that stand out, and their odds."""
    rng = np.random.RandomState(seed)
    scores = rng.normal(size=(N, N))
    scores[np.arange(N), np.arange(N)] += top * rng.uniform(size=N)
    tables = numbered(N)
    labels = pair_labels(*tables, None, strata)
    known = None if unit is None else (unit, scores.astype(np.float32))
    return scores, Odds.of(fit_of(scores), tables, labels, strata, np.ones(N), rng, known)


def whole(found):
    """All odds, by blocks as they come; where not all x are compared with all y, NaN."""
    table = np.full((found.n, found.n), np.nan)
    for rows, columns in found.blocks():
        table[np.ix_(rows, columns)] = found.block(rows, columns)
    return table


@pytest.mark.parametrize("with_strata", [False, True])
@pytest.mark.parametrize("top", [6.0, 400.0])  # of which exp() has no number
def test_odds_are_those_of_the_definition(with_strata, top):
    strata = np.arange(N) % 4 if with_strata else None
    scores, found = made(strata=strata, unit=0.5 if top > 100 else 1.5, top=top)
    expected = slow_odds(scores, found.unit, strata)
    np.testing.assert_allclose(whole(found), expected, rtol=1e-4, atol=2e-4)
    i, j = np.divmod(np.arange(N * N), N)
    np.testing.assert_allclose(found.pairs(i, j).reshape(N, N), expected, rtol=1e-4, atol=2e-4)
    np.testing.assert_allclose(found.own, np.diag(expected), rtol=1e-4, atol=2e-4)


def test_scores_that_are_kept_or_not_and_blocks_of_any_size_give_the_same_odds(monkeypatch):
    _, kept = made()
    monkeypatch.setattr(module, "_KEPT", 0)
    monkeypatch.setattr(module, "_AT_ONCE", 7 * N)
    _, anew = made()
    assert anew.kept is None
    assert anew.unit == kept.unit
    np.testing.assert_allclose(whole(anew), whole(kept), atol=1e-4)
    i, j = np.arange(N), np.arange(N)[::-1]
    np.testing.assert_allclose(anew.pairs(i, j), kept.pairs(i, j), atol=1e-4)
    assert [part.size for part in in_parts(np.arange(20), N)] == [7, 7, 6]


def test_of_many_pairs_a_sample_of_rivals_stands_for_all(monkeypatch):
    for name, value in (("MOST_COMPARED", 50), ("_SAMPLED", 0), ("_FEWEST_SAMPLED", 20)):
        monkeypatch.setattr(module, name, value)
    scores, found = made(unit=1.0)
    assert found.rivals.size == 20
    assert found.scale == 3
    expected = slow_odds(scores, 1.0, rivals=found.rivals)
    table = whole(found)
    looked_at = np.isfinite(table)
    assert looked_at[found.rivals].all()  # x of rivals with all y
    assert looked_at[:, found.rivals].all()  # other x with those of rivals
    np.testing.assert_allclose(table[looked_at], expected[looked_at], atol=2e-4)
    np.testing.assert_allclose(found.own, np.diag(expected), atol=2e-4)


def test_the_unit_finds_pairs_among_others():
    scores, found = made()

    def told(unit):
        own = np.diag(unit * scores) - np.log(np.exp(unit * scores).sum(axis=1))
        return np.logaddexp(np.log(0.5) + own, np.log(0.5 / N)).sum()

    assert told(found.unit) >= max(told(found.unit * 2), told(found.unit / 2))


def test_a_far_row_is_not_sure_of_the_first_that_comes_near():
    scores = np.full((N, N), -80.0)
    scores[np.arange(N), np.arange(N)] = 5.0
    scores[0, :] = scores[:, 0] = -50.0
    scores[0, 1] = -40.0  # the nearest of all to x_0, and far away all the same
    _, found = made()
    tables = numbered(N)
    known = 1.0, scores.astype(np.float32)
    found = Odds.of(fit_of(scores), tables, pair_labels(*tables), None, np.ones(N), np.random.RandomState(0), known)
    assert found.pairs(np.array([0]), np.array([1]))[0] < -30


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("repeated", [False, True])
def test_equal_rows_are_no_rivals(side, repeated):
    scores, _ = made()
    x, y = numbered(N)
    labels = pair_labels(x, y)
    if repeated:
        labels[:, 5] = labels[:, 4]
    found = Odds.of(fit_of(scores), (x, y), labels, None, np.ones(N), np.random.RandomState(0), (1.0, scores))
    every = np.arange(N)
    block = found.of_rivals(found.block(every, every), every, every, side)
    same = labels[side][:, None] == labels[side]
    assert (block[same] == -np.inf).all()
    assert np.isfinite(block[~same]).all()
