from __future__ import annotations

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration.self_learning import Pools, learn_dictionary


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
