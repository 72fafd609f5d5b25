"""The two promises on tables whose rows resemble each other, were merged, shifted or joined by what is compared."""

from __future__ import annotations

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.exceptions import DependenceWarning

quiet = pytest.mark.filterwarnings("ignore::inlier.exceptions.DependenceWarning")


@quiet
def test_one_linear_map_with_correlated_residuals_is_one_map():
    """Every pair is right, in twelve draws: residuals of whitened rows are correlated, which is no second map."""
    accepted = []
    for seed in range(12):
        rng = np.random.default_rng([41, seed])
        X = rng.normal(size=(1000, 3))
        Y = X @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(1000, 6))
        accepted.append(CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, Y).inlier_mask_.mean())
    assert min(accepted) >= 0.9


@quiet
@pytest.mark.parametrize("correlation", [0.4, 0.6])
def test_rows_that_are_off_by_one_are_not_certain(correlation):
    """No pair is right, but the next row resembles the right one: it may be accepted, and is never certain."""
    for seed in range(3):
        rng = np.random.default_rng([42, seed])
        steps = rng.normal(size=(1000, 10))
        X = steps.copy()
        for i in range(1, 1000):
            X[i] = correlation * X[i - 1] + np.sqrt(1 - correlation**2) * steps[i]
        Y = X @ np.linalg.qr(rng.normal(size=(10, 10)))[0] + 0.5 * rng.normal(size=X.shape)
        matcher = CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, np.roll(Y, 1, axis=0))
        assert not matcher.certain_mask_.any()


@pytest.mark.parametrize("seed", range(2))
def test_no_rows_without_a_partner_are_none_that_were_given(seed):
    rng = np.random.default_rng([43, seed])
    X = rng.normal(size=(400, 4))
    Y = X @ rng.normal(size=(4, 5)) + 0.3 * rng.normal(size=(400, 5))
    plain, empty = (CalibratedMatcher(random_state=seed).fit(X, Y, unpaired=rest) for rest in (None, (X[:0], Y[:0])))
    assert plain.inlier_mask_.any()
    np.testing.assert_array_equal(empty.q_values_, plain.q_values_)


def test_a_column_that_both_tables_have_makes_no_pair_real():
    """Two unrelated tables that were joined by age, in years here and in months there."""
    found = 0
    for seed in range(6):
        rng = np.random.default_rng([44, seed])
        age = np.round(rng.normal(50, 15, 300))
        X, Y = (np.column_stack([age * unit, rng.normal(size=(300, 5))]) for unit in (1, 12))
        with pytest.warns(DependenceWarning, match="Column 0 is the same in X and y"):
            found += CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, Y).inlier_mask_.any()
    assert found <= 2  # at a rate of one in twenty, three or more have a chance of 0.2 %


def test_rows_that_hold_no_value_count_as_no_real_pairs():
    """Nothing can be said of a third of the pairs: the share, and its bound, are those of all that were given."""
    rng = np.random.default_rng(45)
    X = rng.normal(size=(600, 4))
    Y = X @ rng.normal(size=(4, 4)) + 0.1 * rng.normal(size=(600, 4))
    X[::3] = np.nan
    with pytest.warns(UserWarning, match="200 of the 600 pairs have a row without any value"):
        matcher = CalibratedMatcher(random_state=0).fit(X, Y)
    assert 0.6 < matcher.inlier_fraction_at_least_ <= matcher.inlier_fraction_ <= 2 / 3
    assert not matcher.inlier_mask_[::3].any()
    assert not matcher.certain_mask_[::3].any()
