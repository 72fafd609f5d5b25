"""More pairs than are judged one by one: a sample is learned from, all are scored, a histogram is judged."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration import sampled_fit as many_pairs
from inlier.calibration.models.learner import Learner
from inlier.calibration.models.linear_map import LinearMap
from inlier.calibration.models.significance import Significance
from inlier.calibration.p_values import calibrate, estimate_null_fraction
from inlier.calibration.sampled_fit import FoldMaps
from inlier.datasets import make_gaussian_pairs
from inlier.estimators import calibrated
from inlier.rows.backend import is_device_array, to_host
from tests.stores import STORES

UNUSED = Significance(np.ones(1), 0.0, 1.0, 0.0)  # for maps of which it does not matter how they were learned


@pytest.fixture
def many(monkeypatch):
    """Call 3,000 pairs many, and learn from a sample of 2,000."""
    monkeypatch.setattr(calibrated, "MOST_ONE_BY_ONE", 2_999)
    monkeypatch.setattr(many_pairs, "_SAMPLE", 2_000)


@pytest.mark.parametrize(("d", "fraction"), [(6, 0.6), (30, 0.15)])
def test_the_answer_is_nearly_that_of_one_by_one(many, d, fraction):
    data = make_gaussian_pairs(6000, d, fraction, noise=0.2, rng=0)
    found = CalibratedMatcher(alpha=0.05, random_state=0).fit(data.X, data.Y)
    mask = found.inlier_mask_
    assert found.inlier_fraction_ == pytest.approx(fraction, abs=0.03)
    assert (mask & ~data.inlier_mask).sum() <= 0.06 * mask.sum()
    assert (mask & data.inlier_mask).sum() >= 0.95 * data.inlier_mask.sum()
    np.testing.assert_array_equal(mask, found.q_values_ <= 0.05)
    np.testing.assert_array_equal(mask, found.scores_ >= found.threshold_)


@pytest.mark.parametrize("put", STORES)
def test_rows_of_float32_are_judged_as_the_same_numbers_in_float64(many, put, tmp_path):
    data = make_gaussian_pairs(3000, 4, 0.5, noise=0.2, rng=0)
    X, Y = data.X.astype(np.float32), data.Y.astype(np.float32)
    here = CalibratedMatcher(random_state=0).fit(X.astype(np.float64), Y.astype(np.float64))
    there = CalibratedMatcher(random_state=0).fit(put(X, tmp_path, "X"), put(Y, tmp_path, "Y"))
    np.testing.assert_allclose(to_host(there.scores_), here.scores_, atol=1e-6)
    np.testing.assert_array_equal(to_host(there.inlier_mask_), here.inlier_mask_)


def test_nothing_is_found_where_there_is_nothing(many):
    data = make_gaussian_pairs(4000, 5, 0.0, rng=0)
    found = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    assert not found.inlier_mask_.any()
    assert found.inlier_fraction_ <= 0.05


@pytest.mark.parametrize("put", STORES)
def test_one_answer_wherever_the_pairs_live(many, put, tmp_path):
    data = make_gaussian_pairs(3000, 4, 0.5, noise=0.2, rng=0)
    here = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    there = CalibratedMatcher(random_state=0).fit(put(data.X, tmp_path, "X"), put(data.Y, tmp_path, "Y"))
    np.testing.assert_allclose(to_host(there.scores_), here.scores_, atol=1e-8)
    np.testing.assert_allclose(to_host(there.q_values_), here.q_values_, atol=1e-8)
    np.testing.assert_array_equal(to_host(there.inlier_mask_), here.inlier_mask_)
    assert there.inlier_fraction_ == pytest.approx(here.inlier_fraction_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(3000, 4), (400, 60)])
def test_tensors_are_learned_from_where_they_are(many, monkeypatch, dtype, n, d):
    torch = pytest.importorskip("torch", reason="torch is the user's to bring, and is not here")
    monkeypatch.setattr("inlier.rows.stores.is_beyond_memory", is_device_array)  # as if the CPU were a device
    data = make_gaussian_pairs(n, d, 0.5, noise=0.2, rng=0)
    X, Y = data.X.astype(dtype), data.Y.astype(dtype)
    here = CalibratedMatcher(random_state=0).fit(X, Y)
    there = CalibratedMatcher(random_state=0).fit(torch.from_numpy(X), torch.from_numpy(Y))
    assert isinstance(there.scores_, torch.Tensor)
    np.testing.assert_allclose(there.scores_, here.scores_, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(there.inlier_mask_, here.inlier_mask_)


@pytest.mark.parametrize("put", STORES)
def test_few_pairs_are_judged_one_by_one_and_go_back(put, tmp_path):
    data = make_gaussian_pairs(400, 4, 0.5, noise=0.2, rng=0)
    X = put(data.X, tmp_path, "X")
    there = CalibratedMatcher(random_state=0).fit(X, put(data.Y, tmp_path, "Y"))
    here = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    np.testing.assert_array_equal(to_host(there.inlier_mask_), here.inlier_mask_)
    np.testing.assert_array_equal(to_host(there.p_values_), here.p_values_)
    if isinstance(X, da.Array):
        assert isinstance(there.q_values_, da.Array)


def test_a_fold_that_finds_nothing_says_nothing_about_the_share(many, monkeypatch):
    honest, calls = Learner.learn, []

    def first_fails(*arguments):
        calls.append(1)
        return None if len(calls) == 1 else honest(*arguments)

    monkeypatch.setattr(Learner, "learn", first_fails)
    data = make_gaussian_pairs(3000, 4, 0.5, rng=0)
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    assert 0.3 < matcher.inlier_mask_.mean() < 0.45  # a fifth is not scored
    assert matcher.inlier_fraction_ == pytest.approx(0.5, abs=0.04)


def test_a_pair_is_scored_by_the_map_of_its_fold_and_equal_pairs_share_it():
    rng = np.random.default_rng(0)
    maps = tuple(LinearMap(np.full((2, 2), k + 1.0), np.zeros(2), np.ones(2), 0.0, UNUSED) for k in range(3))
    score = FoldMaps((*maps, None), rng.uniform(1, 2, 2), rng.uniform(1, 2, 2), lowest=-7.0)
    x, y = np.tile(rng.standard_normal((500, 2)), (2, 1)), np.tile(rng.standard_normal((500, 2)), (2, 1))
    fold, scores = score.fold_of(x, y), score(x, y)
    assert np.bincount(fold, minlength=4).min() > 180
    np.testing.assert_array_equal(fold[:500], fold[500:])
    for k, learned in enumerate(maps):
        np.testing.assert_allclose(scores[fold == k], learned.scores(x, y)[fold == k])
    assert (scores[fold == 3] == -7).all()


def test_a_histogram_of_scores_is_calibrated_as_the_scores_are():
    rng = np.random.default_rng(0)
    values = np.round(np.concatenate([rng.normal(6, 1, 300), rng.normal(0, 1, 700)]), 1)
    null = rng.normal(0, 1, 20_000)
    distinct, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    one_by_one, together = calibrate(values, null), calibrate(distinct, null, counts=counts)
    np.testing.assert_allclose(together.p_values[where], one_by_one.p_values)
    np.testing.assert_allclose(together.q_values[where], one_by_one.q_values)
    assert together.inlier_fraction == pytest.approx(one_by_one.inlier_fraction)
    assert together.detection_p_value == pytest.approx(one_by_one.detection_p_value)
    p = np.repeat([0.01, 0.5, 0.9], [5, 3, 2])
    assert estimate_null_fraction([0.01, 0.5, 0.9], [5, 3, 2]) == pytest.approx(estimate_null_fraction(p))
