"""Which model is learned, and from how many pairs: chosen once, on a pilot; and what the matcher finds by it."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
from scipy.stats import ortho_group

from inlier import CalibratedMatcher
from inlier.calibration.cross_fit import cross_fit, re_pairings_of_a_pair
from inlier.calibration.models.anchors import AnchorPairs
from inlier.calibration.models.learner import PreparedPairs, choose_learner, prepared_rows
from inlier.calibration.models.linear_map import LinearMap
from inlier.calibration.models.ridge_map import RidgeMap
from inlier.datasets import make_gaussian_pairs
from inlier.estimators._base import prepare_model_pairs
from inlier.rows.backend import to_host
from inlier.rows.null_pairs import pair_labels
from tests.stores import STRICT_DEVICE


def rotated_pairs(n, d, n_real, noise=0.05, seed=0, heavy=False):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_t(3, size=(2, n, d)) if heavy else rng.standard_normal((2, n, d))
    y[:n_real] = x[:n_real]
    y = (y + noise * rng.standard_normal((n, d))) @ ortho_group.rvs(d, random_state=rng).T
    return x, y, np.arange(n) < n_real


def prepared(X, Y):
    pairs = prepare_model_pairs(X, Y, whiten=True)
    return PreparedPairs(pairs, pair_labels(X, Y), prepared_rows(pairs, slice(0, len(X))))


def learned_from(X, Y, seed=0):
    """What is chosen on a pilot, and learned from all pairs."""
    learner = choose_learner(prepared(X, Y), np.random.RandomState(seed))
    return learner, learner.learn(np.arange(len(X)))


@pytest.mark.parametrize(
    ("pairs", "kind", "model"),
    [
        ({"n": 400, "d": 5, "n_real": 200}, "map", LinearMap),
        ({"n": 600, "d": 200, "n_real": 40}, "anchors", AnchorPairs),  # fewer real pairs than dimensions
        ({"n": 100, "d": 60, "n_real": 80, "noise": 1.0}, "ridge", RidgeMap),  # few pairs beside their dimensions
        ({"n": 200, "d": 100, "n_real": 160, "noise": 0.3}, "map", LinearMap),  # which stand above all re-pairings
    ],
    ids=["map", "anchors", "ridge", "clear"],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_model_is_the_one_whose_pairs_stand_out_most(pairs, kind, model, seed):
    X, Y, real = rotated_pairs(**pairs, seed=seed)
    learner, found = learned_from(X, Y, seed)
    assert learner.kind == kind
    assert isinstance(found, model)
    assert found.support == pytest.approx(pairs["n_real"], rel=0.15)
    x, y = learner.data.take(np.arange(pairs["n"]))
    scores = np.asarray(found.scores(x, y))
    assert np.mean(scores[real] > np.median(scores[~real])) > 0.95


@pytest.mark.parametrize(("n", "d", "n_real"), [(400, 5, 200), (200, 50, 100), (150, 200, 40), (200, 40, 0)])
def test_it_is_one_for_all_folds(n, d, n_real):
    X, Y, _ = rotated_pairs(n, d, n_real, noise=0.3)
    found = cross_fit(prepared(X, Y), 5, np.random.RandomState(0))
    assert len({type(fold.judge) for fold in found.folds}) == 1
    assert len({(fold.deal, row) for fold in found.folds for row in fold.rows}) == sum(f.rows.size for f in found.folds)


def test_of_many_pairs_a_part_is_learned_from_and_more_where_it_is_not_enough():
    X, Y, _ = rotated_pairs(30_000, 5, 12_000)
    easy, found = learned_from(X, Y)
    assert found.support < 0.3 * 12_000
    X, Y, _ = rotated_pairs(30_000, 20, 900)
    hard, found = learned_from(X, Y)
    assert found.support > 300
    assert easy.size < hard.size < 30_000


@pytest.mark.parametrize(("n", "d", "fraction"), [(30_000, 5, 0.4), (20_000, 20, 0.05)])
def test_large_tables_are_learned_from_a_part(n, d, fraction):
    data = make_gaussian_pairs(n, d, fraction, noise=0.05, rng=0)
    accepted = CalibratedMatcher(random_state=0).fit(data.X, data.Y).inlier_mask_
    assert accepted[data.inlier_mask].mean() > 0.9
    assert accepted[~data.inlier_mask].sum() < 0.03 * accepted.sum()


def test_looking_for_nothing_among_many_pairs_ends():
    X, Y, _ = rotated_pairs(20_000, 4, 0)
    assert not CalibratedMatcher(random_state=0).fit(X, Y).inlier_mask_.any()


@pytest.mark.filterwarnings("ignore:.*far fewer pairs than numbers")
def test_a_ridge_does_not_stand_in_the_way_of_anchors():
    x, y, real = rotated_pairs(200, 1000, 20, noise=0)  # a ridge finds a little in some folds
    assert CalibratedMatcher(random_state=0).fit(x, y).inlier_mask_[real].mean() > 0.9


def test_anchors_are_taken_though_some_parts_of_the_pilot_hold_too_few():
    found = 0
    for seed in range(5):
        x, y, real = rotated_pairs(200, 300, 40, noise=0.3, seed=seed)
        found += CalibratedMatcher(random_state=0).fit(x, y).inlier_mask_[real].mean() > 0.9
    assert found >= 3  # in some draws too few folds hold enough


@pytest.mark.parametrize(
    ("n", "d", "n_real", "heavy"), [(1000, 3, 200, True), (1000, 50, 30, False), (600, 400, 24, True)]
)
def test_a_matcher_finds_a_few_real_pairs_and_says_how_many(n, d, n_real, heavy):
    X, Y, real = rotated_pairs(n, d, n_real, heavy=heavy)
    matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, Y)
    accepted = matcher.inlier_mask_
    assert accepted[real].mean() > 0.85
    assert accepted[~real].sum() < 0.15 * accepted.sum()
    assert matcher.inlier_fraction_ == pytest.approx(n_real / n, abs=0.03)


def test_sides_of_equally_many_columns_and_different_rank_are_answered():
    X, Y, _ = rotated_pairs(60, 4, 0)
    X[:, 3] = X[:, 0]
    matcher = CalibratedMatcher(random_state=0).fit(X, Y)
    assert not matcher.inlier_mask_.any()
    one_point = np.zeros((50, 3))
    one_point[0] = 1.0
    assert not CalibratedMatcher(random_state=0).fit(one_point, Y[:50, :3]).inlier_mask_.any()


@pytest.mark.parametrize("d", [3, 30])
def test_rows_on_a_device_are_judged_as_here(d):
    X, Y, _ = rotated_pairs(300, d, 20, heavy=True)
    put = lambda table: array_api_strict.asarray(table, device=STRICT_DEVICE)  # noqa: E731
    there = CalibratedMatcher(random_state=0).fit(put(X), put(Y))
    here = CalibratedMatcher(random_state=0).fit(X, Y)
    np.testing.assert_allclose(to_host(there.scores_), here.scores_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("d", [4, 40])
def test_wrong_pairs_stay_wrong_however_hard_one_looks(d):
    found = 0
    for seed in range(20):
        X, Y, _ = rotated_pairs(200, d, 0, seed=seed)
        found += CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, Y).inlier_mask_.any()
    assert found <= 4  # at a rate of one in twenty, five or more have a chance of 0.3 %


@pytest.mark.parametrize("seed", [0, 1])
def test_a_few_wrong_pairs_are_told_where_all_others_share_some_factors(seed):
    rng = np.random.default_rng(seed)
    factors, wrong = rng.normal(size=(300, 8)), [10, 20, 30]
    X, Y = (factors @ rng.normal(size=(8, d)) + rng.normal(size=(300, d)) for d in (60, 35))
    Y[wrong] = np.roll(Y[wrong], 1, axis=0)
    matcher = CalibratedMatcher(random_state=0).fit(X, Y)
    told = np.flatnonzero(matcher.q_values_ > 0.5).tolist()
    assert set(wrong) <= set(told)
    assert len(told) <= np.count_nonzero(~matcher.inlier_mask_) <= 4


def test_many_pairs_in_many_dimensions_are_re_paired_less_often():
    assert re_pairings_of_a_pair(5_000, 300) == 200
    assert re_pairings_of_a_pair(50_000, 300) == 20  # the last that is as ever
    assert re_pairings_of_a_pair(100_000, 300) == 3
    assert re_pairings_of_a_pair(100_000, 50) == 10
    assert re_pairings_of_a_pair(150_000, 5_000) == 1


def test_large_tables_are_answered_piece_by_piece_as_they_are_whole(monkeypatch):
    data = make_gaussian_pairs(4000, 30, 0.6, noise=1.0, rng=0)
    whole = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    monkeypatch.setattr("inlier.rows.threads._LARGE", 100)
    parts = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    np.testing.assert_allclose(parts.scores_, whole.scores_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(parts.q_values_, whole.q_values_, rtol=1e-6)
    np.testing.assert_array_equal(parts.inlier_mask_, whole.inlier_mask_)
