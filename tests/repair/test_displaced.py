"""Whether rows are displaced at all, by the places of their own partners."""

from __future__ import annotations

import numpy as np
from scipy.stats import ortho_group

from inlier import CalibratedMatcher
from inlier.repair.displaced import chances_displaced, places
from inlier.repair.odds import Odds


def pairs_of(n, d, noise, rng):
    """Gaussian pairs."""
    X = rng.normal(size=(n, d))
    return X, X @ ortho_group.rvs(d, random_state=rng) + noise * rng.normal(size=(n, d))


def odds_from(scores):
    """Odds of which all scores are known."""
    n, nothing = len(scores), np.zeros(len(scores))
    labels = np.stack([np.arange(n), np.arange(n)])
    others = np.log(n + np.exp(scores).sum(axis=1)), np.log(n + np.exp(scores).sum(axis=0))
    return Odds(None, nothing, nothing, labels, None, np.arange(n), 1.0, np.diag(scores), *others, scores)


def test_places_are_counted_on_both_sides():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40, 40)).astype(np.float32)
    odds, every = odds_from(scores), np.ones(40, dtype=bool)
    i, j = np.array([3, 7, 11]), np.array([5, 7, 30])
    whole = odds.block(np.arange(40), np.arange(40))
    of_x, of_y = places(odds, i, j, (every, every))
    assert of_x.tolist() == [(whole[a] > whole[a, b]).sum() + 1 for a, b in zip(i, j, strict=True)]
    assert of_y.tolist() == [(whole[:, b] > whole[a, b]).sum() + 1 for a, b in zip(i, j, strict=True)]


def test_rows_whose_own_partner_is_near_the_top_are_at_home():
    rng, n = np.random.default_rng(1), 600
    scores = rng.normal(size=(n, n)).astype(np.float32)
    at_home = np.arange(n) < 100
    scores[np.flatnonzero(at_home), np.flatnonzero(at_home)] += 3  # nearly the best, and no more
    odds, every, rows = odds_from(scores), np.ones(n, dtype=bool), np.arange(200)
    chances = chances_displaced(odds, rows, places(odds, rows, rows, (every, every)), (every, every), rng)
    assert chances[~at_home[:200]].mean() > 0.55  # rather too low: where home ends is not known
    assert np.median(chances[at_home[:200]]) < 0.1


def test_where_all_are_displaced_none_is_at_home():
    rng, n = np.random.default_rng(2), 300
    odds, every, rows = odds_from(rng.normal(size=(n, n)).astype(np.float32)), np.ones(n, dtype=bool), np.arange(100)
    assert chances_displaced(odds, rows, places(odds, rows, rows, (every, every)), (every, every), rng).mean() > 0.7


def test_an_accepted_row_may_be_named():
    """Of those that are accepted some are wrong, the last of them: their partners are looked for, too."""
    named = right = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, Y = pairs_of(400, 5, 0.6, rng)
        rows, partner = rng.permutation(400)[:80], np.arange(400)
        partner[rows] = partner[np.concatenate([rows[40:], rows[:40]])]
        matcher = CalibratedMatcher(alpha=0.1, random_state=seed).fit(X, Y[partner])
        found = matcher.repair()
        some = matcher.inlier_mask_ & found.named
        named, right = named + some.sum(), right + (found.partner[some] == partner[some]).sum()
        assert (found.kind[matcher.inlier_mask_ & ~found.named] == "kept").mean() > 0.9
    assert named >= 5
    assert right > 0.7 * named
