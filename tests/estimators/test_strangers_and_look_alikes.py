"""The two promises on tables whose rows resemble each other, were merged, shifted or joined by what is compared."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

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


def test_a_table_of_subjects_merged_onto_their_visits_makes_no_pair_real():
    """Unrelated, but every subject stands there five times, and its visits are alike."""
    found = 0
    for seed in range(8):
        rng = np.random.default_rng([45, seed])
        subject = rng.permutation(np.repeat(np.arange(40), 5))
        X = rng.normal(size=(40, 20))[subject] + rng.normal(size=(200, 20))
        Y = rng.normal(size=(40, 10))[subject]
        found += CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, Y).inlier_mask_.any()
    assert found <= 2  # at a rate of one in twenty, three or more have a chance of 0.6 %


@pytest.mark.parametrize("seed", range(3))
def test_unrelated_rows_that_were_chosen_as_nearest_are_refused(seed):
    X, Y = np.random.default_rng([46, seed]).normal(size=(2, 600, 5))
    there, back = cKDTree(Y).query(X)[1], cKDTree(X).query(Y)[1]
    rows = np.flatnonzero(back[there] == np.arange(600))
    with pytest.warns(DependenceWarning, match="chosen because they are near"):
        matcher = CalibratedMatcher(alpha=0.05, random_state=seed).fit(X[rows], Y[there[rows]])
    assert not matcher.inlier_mask_.any()


@pytest.mark.parametrize("seed", range(3))
def test_siblings_that_were_mixed_up_have_rivals_and_are_not_certain(seed):
    rng = np.random.default_rng([47, seed])
    family = np.repeat(np.arange(100), 3)
    X = 0.8**0.5 * rng.normal(size=(100, 30))[family] + 0.2**0.5 * rng.normal(size=(300, 30))
    Y = X @ np.linalg.qr(rng.normal(size=(30, 30)))[0] + rng.normal(size=(300, 30))
    partner = np.arange(300).reshape(100, 3)
    partner[:20] = np.roll(partner[:20], 1, axis=1)
    matcher = CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, Y[partner.ravel()])
    assert not matcher.certain_mask_[:60].any()
    assert (matcher.n_rivals_[:60] > 0).mean() > 0.9


@quiet
def test_of_few_rows_hardly_more_are_wrong_than_promised():
    """Twenty rows, four of them in a ring: of all that is accepted in 8 draws, as many as of one table."""
    wrong = accepted = 0
    for seed in range(8):
        rng = np.random.default_rng([48, seed])
        X = rng.normal(size=(20, 3))
        Y = X @ np.linalg.qr(rng.normal(size=(3, 3)))[0] + 0.2 * rng.normal(size=(20, 3))
        Y[:4] = np.roll(Y[:4], 1, axis=0)
        mask = CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, Y).inlier_mask_
        wrong, accepted = wrong + mask[:4].sum(), accepted + mask.sum()
    assert accepted > 50
    assert wrong <= 0.1 * accepted


def test_independent_answers_on_a_scale_of_five_need_no_warning(recwarn):
    for seed in range(5):
        X, Y = np.random.default_rng([49, seed]).integers(1, 6, size=(2, 300, 6))
        CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, Y)
    assert not recwarn.list


def test_most_pairs_are_a_permutation_of_each_other():
    """Then re-pairings meet true partners, one in n of them, and q-values would stay above alpha."""
    found = wrong = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 20))
        Y = X @ np.linalg.qr(rng.normal(size=(20, 20)))[0] + 0.1 * rng.normal(size=X.shape)
        ring, partner = rng.permutation(400)[:360], np.arange(400)
        partner[ring] = np.roll(ring, 1)
        accepted, real = CalibratedMatcher(random_state=seed).fit(X, Y[partner]).inlier_mask_, partner == np.arange(400)
        found, wrong = found + (accepted & real).sum(), wrong + (accepted & ~real).sum()
    assert found >= 0.8 * 120
    assert wrong <= 4
