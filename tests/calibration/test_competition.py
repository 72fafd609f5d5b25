"""Rivals: rows that fit better than a pair's own."""

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration import Calibration
from inlier.calibration.competition import Rivals, RivalShare, share_by_rivals
from inlier.calibration.linear_map import learn_map
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
