from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ortho_group

from inlier import CalibratedMatcher
from inlier.repair.partner_sets import PartnerSets, lowest_odds, number_of_strangers


def fitted(seed, n=300, n_wrong=60, strata=None, noise=0.3):
    """A fit with a ring of wrong pairs, and where the partner of each row is."""
    rng = np.random.default_rng([seed, 21])
    X, partner = rng.normal(size=(n, 6)), np.arange(n)
    for stratum in np.unique(strata if strata is not None else np.zeros(n)):
        rows = np.flatnonzero(strata == stratum) if strata is not None else np.arange(n)
        rows = rng.permutation(rows)[: n_wrong * rows.size // n]
        partner[rows] = np.roll(rows, 1)
    y = (X @ ortho_group.rvs(6, random_state=rng) + noise * rng.normal(size=X.shape))[partner]
    given = {} if strata is None else {"strata": strata}
    return CalibratedMatcher(random_state=0).fit(X, y, **given).partner_sets(X, y), np.argsort(partner)


@pytest.mark.seeds
@pytest.mark.filterwarnings("ignore::inlier.exceptions.DependenceWarning")
@pytest.mark.parametrize("with_strata", [False, True])
def test_sets_hold_the_partner_wherever_it_stands(with_strata, seed, promise, note):
    strata = np.arange(300) % 3 if with_strata else None
    sets, home = fitted(seed, strata=strata)
    missed = ~sets.contains(np.arange(300), home)
    note(size=sets.sizes.mean(), missed=missed.mean())
    promise("partners that are missed", int(missed.sum()), 300, sets.miss)
    assert missed.mean() < 0.1
    if with_strata:
        assert all((strata[sets.of(row)] == strata[row]).all() for row in range(0, 300, 7))


def test_a_set_is_told_in_three_ways():
    rng = np.random.default_rng(0)
    holds = rng.random((21, 21)) < 0.3
    sets = PartnerSets(21, np.packbits(holds, axis=1))
    every = np.arange(21)
    np.testing.assert_array_equal(sets.contains(every[:, None], every), holds)
    np.testing.assert_array_equal(sets.sizes, holds.sum(axis=1))
    np.testing.assert_array_equal(sets.of(4), np.flatnonzero(holds[4]))


def test_where_nothing_is_known_all_rows_are_in_each_set():
    assert PartnerSets(5).sizes.tolist() == [5] * 5
    within = PartnerSets(5, strata=np.array([0, 0, 1, 1, 1]))
    assert within.sizes.tolist() == [2, 2, 3, 3, 3]
    assert within.of(1).tolist() == [0, 1]


def test_rows_that_were_not_compared_fit_all():
    holds = np.eye(4, dtype=bool)
    whole = PartnerSets(4, np.packbits(holds, axis=1)).among(np.array([True, False, True, True, True]))
    assert whole.n == 5
    assert whole.of(0).tolist() == [0, 1]
    assert whole.of(1).tolist() == [0, 1, 2, 3, 4]
    assert whole.of(4).tolist() == [1, 4]


@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
def test_partners_and_strangers_are_told_apart_by_their_odds(share):
    rng = np.random.default_rng(1)
    n, wrong = 2000, int(2000 * share)
    partners, strangers = rng.normal(size=n - wrong), -8 + rng.normal(size=20_000)
    own = np.concatenate([partners, strangers[:wrong]])
    estimate = number_of_strangers(own, strangers)
    assert 0.9 * wrong - 5 <= estimate <= wrong + 1  # rather too few
    misses = np.array([0.01, 0.05, 0.2])
    lowest, expected = lowest_odds(own, strangers, wrong, misses), np.quantile(partners, misses)
    np.testing.assert_allclose(lowest[1:], expected[1:], atol=0.2)
    assert lowest[0] < expected[0] + 0.2  # rather too low, where strangers are more than these


def test_too_few_pairs_say_nothing_of_rare_misses():
    assert lowest_odds(np.arange(10.0), np.full(10, -5.0), 0.0, np.array([0.01]))[0] == -np.inf
