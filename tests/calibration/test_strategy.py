from __future__ import annotations

from types import SimpleNamespace

import array_api_strict
import numpy as np
import pytest
from scipy.stats import ortho_group

from inlier import CalibratedMatcher
from inlier.calibration.cross_fit import re_pairings_of_a_pair
from inlier.calibration.models.anchors import AnchorPairs
from inlier.calibration.models.linear_map import LinearMap
from inlier.calibration.models.ridge_map import RidgeMap
from inlier.calibration.models.learner import Learner
from inlier.datasets import make_gaussian_pairs
from inlier.estimators._base import prepare_model_pairs
from inlier.rows.backend import to_host
from tests.stores import STRICT_DEVICE


def rotated_pairs(n, d, n_real, noise=0.05, seed=0, heavy=False):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_t(3, size=(2, n, d)) if heavy else rng.standard_normal((2, n, d))
    y[:n_real] = x[:n_real]
    y = (y + noise * rng.standard_normal((n, d))) @ ortho_group.rvs(d, random_state=rng).T
    return x, y, np.arange(n) < n_real


def learner(X, Y, **options):
    pairs = prepare_model_pairs(X, Y, whiten=True)
    return Learner(pairs, np.stack([np.arange(len(X))] * 2), np.random.RandomState(0), **options)


def shuffled(n):
    return np.random.default_rng(1).permutation(n)


def test_clear_pairs_need_no_other_model(monkeypatch):
    X, Y, _ = rotated_pairs(400, 5, 200)
    monkeypatch.setattr(Learner, "_other_model", lambda *_: pytest.fail("tried another model"))
    assert isinstance(learner(X, Y).learn(shuffled(400)), LinearMap)


def test_few_real_pairs_in_few_dimensions_are_found_by_consensus():
    X, Y, real = rotated_pairs(800, 3, 40, heavy=True)
    plain = learner(X, Y).learn_from(shuffled(800), thorough=False)
    found = learner(X, Y).learn_from(shuffled(800))
    assert plain is None or plain.support < 20
    assert found.support == pytest.approx(40, abs=6)
    assert found.significance.p_values[real[shuffled(800)]].mean() < 0.01


def test_fewer_real_pairs_than_dimensions_are_found_by_anchors():
    X, Y, _ = rotated_pairs(600, 200, 40)
    found = learner(X, Y).learn(shuffled(600))
    assert isinstance(found, AnchorPairs)
    assert found.support == pytest.approx(40, abs=4)
    assert not isinstance(learner(X, Y, only_maps=True).learn(shuffled(600)), AnchorPairs)


def test_a_ridge_does_not_stand_in_the_way_of_anchors():
    x, y, real = rotated_pairs(200, 1000, 20, noise=0)  # a ridge finds a little in some folds
    assert CalibratedMatcher(random_state=0).fit(x, y).inlier_mask_[real].mean() > 0.9


def test_searches_in_vain_are_given_up(monkeypatch):
    X, Y, _ = rotated_pairs(300, 4, 0)
    tries = []
    monkeypatch.setattr(Learner, "_other_model", lambda *_: tries.append(1))
    one = learner(X, Y)
    for _ in range(5):
        one.learn(shuffled(300))
    assert len(tries) == 2


def test_searches_are_not_given_up_where_others_found_something(monkeypatch):
    X, Y, _ = rotated_pairs(300, 4, 0)
    one, tries = learner(X, Y), []

    def now_and_then(self, *given):
        """Three finds, two failures in a row, a find."""
        tries.append(1)
        return SimpleNamespace(significance=SimpleNamespace(berk_jones=50.0)) if len(tries) not in (4, 5) else None

    monkeypatch.setattr(Learner, "_other_model", now_and_then)
    for _ in range(6):
        one.learn(shuffled(300))
    assert len(tries) == 6


@pytest.mark.parametrize("seed", range(3))
def test_what_a_map_takes_for_real_are_anchors_to_start_from(seed):
    x, y, real = rotated_pairs(200, 300, 40, noise=0.3, seed=seed)  # of which the eigenvector finds few, in some folds
    assert CalibratedMatcher(random_state=0).fit(x, y).inlier_mask_[real].mean() > 0.9


@pytest.mark.parametrize(
    ("n", "d", "n_real", "heavy"), [(1000, 3, 50, True), (1000, 50, 30, False), (600, 400, 24, True)]
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
def test_a_map_is_taken_where_there_are_pairs_enough_for_one(seed):
    rng = np.random.default_rng(seed)
    factors, wrong = rng.normal(size=(300, 8)), [10, 20, 30]
    X, Y = (factors @ rng.normal(size=(8, d)) + rng.normal(size=(300, d)) for d in (60, 35))
    Y[wrong] = np.roll(Y[wrong], 1, axis=0)
    matcher = CalibratedMatcher(random_state=0).fit(X, Y)
    assert np.flatnonzero(matcher.q_values_ > 0.5).tolist() == wrong
    assert np.count_nonzero(~matcher.inlier_mask_) <= 4


def test_one_fold_does_not_make_ridges_of_all(monkeypatch):
    X, Y, _ = rotated_pairs(200, 50, 100, noise=0.3)
    one = learner(X, Y)
    assert isinstance(one.learn(shuffled(200)), LinearMap)
    assert isinstance(one.learn(shuffled(200)), LinearMap)
    monkeypatch.setattr("inlier.calibration.models.learner._AS_GOOD_A_RIDGE", 0.01)  # from now on every ridge is better
    assert isinstance(one.learn(shuffled(200)), LinearMap)
    assert not one.ridge_is_better
    for _ in range(2):
        last = one.learn(shuffled(200))
    assert one.ridge_is_better
    assert isinstance(last, RidgeMap)


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
