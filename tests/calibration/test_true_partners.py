from __future__ import annotations

import numpy as np

from inlier import CalibratedMatcher
from inlier.calibration.true_partners import (
    FoldScores,
    _lowest_named,
    clearly_real,
    nearest_rivals,
    without_true_partners,
)


def problem(seed, shift):
    """40 pairs, 10 of them real; the others' partners are in the same fold, `shift` above chance."""
    rng = np.random.default_rng(seed)
    folds, real = [], np.zeros(400, dtype=bool)
    for fold in range(10):
        rows = np.arange(40 * fold, 40 * fold + 40)
        real[rows[:10]] = True
        scores = rng.normal(size=(40, 40))
        scores[np.arange(10, 40), np.roll(np.arange(10, 40), 1)] += shift
        folds.append(FoldScores(rows, scores, ~np.eye(40, dtype=bool)))
    return folds, real


def test_true_partners_are_left_out_and_little_else():
    folds, real = problem(0, 12.0)
    kept = without_true_partners(folds, real, np.random.RandomState(0))
    partners = (np.arange(10, 40), np.roll(np.arange(10, 40), 1))
    left = sum(int(mask[partners].sum()) for mask in kept)
    assert left < 0.15 * 300
    assert sum(int((~mask).sum()) for mask in kept) <= 10 * 40 + 300


def test_where_there_are_none_nothing_is_left_out():
    folds, real = problem(0, 0.0)
    kept = without_true_partners(folds, real, np.random.RandomState(0))
    assert all((mask == fold.may_be_re_paired).all() for mask, fold in zip(kept, folds, strict=True))


def test_few_names_are_wrong_from_the_lowest_on():
    rng = np.random.default_rng(0)
    chance = rng.normal(size=200)
    threshold, rate = _lowest_named(np.concatenate([rng.normal(size=50), rng.normal(10, 1, 50)]), chance)
    assert 1 < threshold < 9
    assert rate <= 0.1
    assert _lowest_named(np.full(3, -np.inf), chance) == (np.inf, 0.0)


def test_it_is_looked_for_only_where_it_matters():
    rng = np.random.default_rng(0)
    null = rng.normal(size=10_000)
    few = np.concatenate([rng.normal(9, 1, 30), rng.normal(size=270)])
    real = clearly_real(few, null, None)
    assert real is not None
    assert real[:30].all()
    assert clearly_real(rng.normal(9, 1, 300), null, None) is None
    assert clearly_real(rng.normal(size=300), null, None) is None


def test_partners_that_were_parted_help_to_learn():
    rng = np.random.default_rng(2)
    latent = rng.normal(size=(497, 20))
    X, Y = (latent @ rng.normal(size=(20, 50)) + 0.1 * rng.normal(size=(497, 50)) for _ in range(2))
    ring, partner = np.random.default_rng(1002).permutation(497)[:447], np.arange(497)
    partner[ring] = np.roll(ring, 1)
    real = partner == np.arange(497)
    accepted = CalibratedMatcher(random_state=2).fit(X, Y[partner]).inlier_mask_
    assert (accepted & real).sum() >= 30
    assert (accepted & ~real).sum() <= 1


def test_the_nearest_rivals_are_the_best_of_the_others_but_for_partners():
    scores = np.array([[9.0, 4.0, 1.0], [5.0, 0.0, 8.0], [2.0, 7.0, 3.0]])  # x_1 belongs with y_2, and x_2 with y_1
    fold = FoldScores(np.arange(3), scores, ~np.eye(3, dtype=bool))
    np.testing.assert_array_equal(nearest_rivals([fold]), [4.0, 5.0])  # of x_0 and of y_0
    alone = FoldScores(np.arange(3), scores, np.zeros((3, 3), dtype=bool))
    assert nearest_rivals([alone]).size == 0
    assert nearest_rivals([fold, fold]).tolist() == [4.0, 4.0, 5.0, 5.0]


def series_off_by_one(seed, rho):
    """1,000 rows in order, of which ten runs of thirty are shifted by one row; strata of ten rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 10))
    for t in range(1, 1000):
        X[t] = rho * X[t - 1] + np.sqrt(1 - rho**2) * X[t]
    Y = X[:, ::-1] + 0.3 * rng.normal(size=X.shape)
    partner = np.arange(1000)
    for start in range(0, 1000, 100):
        partner[start : start + 30] = np.roll(partner[start : start + 30], 1)
    return X, Y[partner], partner == np.arange(1000), np.arange(1000) // 10


def test_rows_off_by_one_are_told_in_small_strata():
    for seed in range(3):
        X, Y, real, strata = series_off_by_one(seed, 0.5)
        accepted = CalibratedMatcher(random_state=seed).fit(X, Y, strata=strata).inlier_mask_
        assert accepted[real].mean() > 0.9
        assert accepted[~real].sum() <= 0.015 * accepted.sum()


def test_rows_that_resemble_their_neighbours_too_much_are_not_accepted():
    X, Y, _, strata = series_off_by_one(0, 0.99)
    assert not CalibratedMatcher(random_state=0).fit(X, Y, strata=strata).inlier_mask_.any()
