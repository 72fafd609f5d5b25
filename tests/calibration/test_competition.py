"""Rivals: rows that fit better than a pair's own."""

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration import Calibration
from inlier.calibration.competition import (
    FoldScores,
    Rivals,
    RivalShare,
    _lowest_named,
    clearly_real,
    nearest_rivals,
    share_by_rivals,
    without_true_partners,
)
from inlier.calibration.models.linear_map import learn_map
from inlier.exceptions import DependenceWarning


def pairs(n, d, noise, rng):
    x = rng.normal(size=(n, d))
    return x, x[:, ::-1] + noise * rng.normal(size=(n, d))


@pytest.mark.parametrize("kind", ["all differ", "a point repeats", "groups"])
def test_log_ratio_is_that_of_the_plain_formula(kind):
    rng = np.random.default_rng(0)
    x, y = pairs(60, 4, 0.3, rng)
    labels = np.stack([np.arange(60)] * 2)
    with_groups = kind == "groups"
    if kind != "all differ":
        labels[0, 1:] -= 1  # pairs 0 and 1 share their x, and are no rivals
    if with_groups:  # nor are pairs of one group, or of different strata
        labels = np.stack([*labels, np.arange(60) // 3, np.arange(60) % 2])
    learned = learn_map(x, y, np.random.RandomState(0))
    rows = np.array([0, 5, 7])
    scores = np.asarray(learned.scores(x[rows], y[rows]))
    rivals = Rivals.of(x, y, labels, np.random.RandomState(0))
    ratios = rivals.log_ratio(learned, x[rows], y[rows], rows, scores)
    for row, own, ratio in zip(rows, scores, ratios, strict=True):
        others = [j for j in range(60) if j != row and labels[0, j] != labels[0, row]]
        if with_groups:
            others = [j for j in others if j // 3 != row // 3 and j % 2 == row % 2]
        of_x = [float(learned.scores(x[[row]], y[[j]])[0]) - own for j in others]
        of_y = [float(learned.scores(x[[j]], y[[row]])[0]) - own for j in others]
        assert ratio == pytest.approx((np.log(np.mean(np.exp(of_x))) + np.log(np.mean(np.exp(of_y)))) / 2, abs=1e-3)


def test_share_of_pairs_that_hold_beside_rivals():
    rng = np.random.default_rng(2)
    ratio = np.where(rng.uniform(size=2000) < 0.7, -6 + rng.normal(size=2000), 6 + rng.normal(size=2000))
    found = share_by_rivals(ratio[None, :])
    assert found.share[0] == pytest.approx(0.7, abs=3 * found.share[1])
    assert found.share[1] == pytest.approx((0.7 * 0.3 / 2000) ** 0.5, rel=0.1)
    assert ((found.chance_wrong > 0.5) == (ratio > 0)).mean() > 0.99
    assert found.contradicts(0.99, 0.005)
    assert not found.contradicts(0.72, 0.02)


def test_pairs_come_last_that_rivals_doubt_and_are_accepted_where_the_rate_allows_it():
    found = share_by_rivals(np.array([[-9.0, 9.0, -8.0, -7.0, 2.0]]))
    rising = np.sort(found.chance_wrong)
    by_hand = [rising[: 1 + int((found.chance_wrong < chance).sum())].mean() for chance in found.chance_wrong]
    np.testing.assert_allclose(found.q_values(), by_hand)
    judged = Calibration(np.full(5, 1e-3), np.full(5, 1e-3), 0.9, 0.1, 1e-3)
    assert judged.doubting(found.chance_wrong).accepted(0.5).tolist() == [True, False, True, True, False]
    allowed = judged.doubting(found.chance_wrong, found.q_values())
    assert allowed.accepted(0.5).all()
    assert allowed.accepted(0.1).tolist() == [True, False, True, True, False]


def test_surely_wrong_pairs_are_not_accepted_even_where_the_rate_allows_it():
    found = RivalShare(np.array([0.0, 0.0, 0.0, 0.999, 0.99995]), (0.6, 0.1))
    judged = Calibration(np.full(5, 1e-3), np.full(5, 1e-3), 0.9, 0.1, 1e-3)
    assert judged.doubting(found.chance_wrong, found.q_values()).accepted(0.5).tolist() == [True] * 4 + [False]


def test_two_standard_errors_contradict():
    beside_rivals = RivalShare(np.zeros(3), (0.5, 0.04))
    assert beside_rivals.contradicts(0.601, 0.03)  # whose difference has an error of 0.05
    assert not beside_rivals.contradicts(0.599, 0.03)


def test_pairs_that_were_never_compared_are_not_judged():
    assert share_by_rivals(np.array([[np.nan, 1.0], [np.nan, 2.0]])) is None


def swapped_inside_clusters(seed):
    rng = np.random.default_rng(seed)
    n, cluster = 600, rng.integers(0, 12, 600)
    X = 5 * rng.normal(size=(12, 10))[cluster] + rng.normal(size=(n, 10))
    Y = X[:, ::-1] + 0.3 * rng.normal(size=(n, 10))
    partner = np.arange(n)
    for k in range(12):
        rows = np.flatnonzero(cluster == k)[:10]
        partner[rows] = np.roll(rows, 1)
    return X, Y[partner], partner == np.arange(n), cluster


def test_swaps_inside_clusters_are_warned_of_and_mostly_not_accepted():
    X, Y, real, _ = swapped_inside_clusters(0)
    with pytest.warns(DependenceWarning, match="strata="):
        matcher = CalibratedMatcher(random_state=0).fit(X, Y)
    accepted = matcher.inlier_mask_
    assert (accepted & ~real).sum() / accepted.sum() < 0.05  # all of them, 0.2, where only strangers are compared
    assert (accepted & real).sum() / real.sum() > 0.99
    assert matcher.inlier_fraction_ < 0.9
    assert matcher.inlier_fraction_interval_[0] <= real.mean() <= matcher.inlier_fraction_interval_[1]


def test_with_strata_given_none_of_them_is_accepted():
    X, Y, real, cluster = swapped_inside_clusters(1)
    matcher = CalibratedMatcher(random_state=0).fit(X, Y, strata=[f"plate {k}" for k in cluster])
    accepted = matcher.inlier_mask_
    assert (accepted & ~real).sum() / accepted.sum() < 0.015
    assert (accepted & real).sum() / real.sum() > 0.99
    assert matcher.inlier_fraction_ == pytest.approx(real.mean(), abs=0.03)


def test_where_no_pair_stands_out_of_its_stratum_the_share_is_bounded_from_above_alone():
    rng = np.random.default_rng(0)
    n, X = 600, rng.normal(size=(600, 10))
    for t in range(1, n):
        X[t] = 0.8 * X[t - 1] + 0.6 * X[t]
    real = np.arange(n) % 300 < 200
    Y = X + 0.6 * rng.normal(size=X.shape)
    Y[~real] = np.roll(Y, 1, axis=0)[~real]  # off by one: nearer than the other rows of ten are
    matcher = CalibratedMatcher(random_state=0).fit(X, Y, strata=np.arange(n) // 10)
    assert not matcher.inlier_mask_.any()
    low, high = matcher.inlier_fraction_interval_
    assert low == 0
    assert high >= real.mean()


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
