from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from inlier import EigenvectorMatcher, RowSumMatcher, SplitMatcher
from inlier.datasets import load_brain, make_gaussian_pairs, make_mispaired
from inlier.metrics import error_rates
from tests import reference


@pytest.fixture(scope="module")
def brain():
    return make_mispaired(load_brain().features, 1000, 0.8, rng=0)


@pytest.mark.parametrize("inner", [RowSumMatcher(), EigenvectorMatcher(), EigenvectorMatcher(threshold=0.5)])
def test_algorithm_3_literally(brain, inner):
    """Normalise all, split, and let the algorithm normalise again inside each part."""
    split = SplitMatcher(inner, n_splits=3, random_state=0).fit(brain.X, brain.Y)
    x, y = reference.prepared(brain.X), reference.prepared(brain.Y)
    for number in range(3):
        part = np.flatnonzero(split.part_ == number)
        alone = type(inner)(threshold=inner.threshold).fit(x[part], y[part])
        np.testing.assert_allclose(split.scores_[part], alone.scores_, atol=1e-9 * np.abs(alone.scores_).max())
        np.testing.assert_array_equal(split.inlier_mask_[part], alone.inlier_mask_)
        assert split.threshold_[number] == pytest.approx(alone.threshold_)


def test_normalising_twice_is_not_normalising_once(brain):
    """The test above can only fail if the two differ."""
    split = SplitMatcher(RowSumMatcher(), n_splits=3, random_state=0).fit(brain.X, brain.Y)
    part = np.flatnonzero(split.part_ == 0)
    once = RowSumMatcher().fit(brain.X[part], brain.Y[part])
    assert np.abs(split.scores_[part] - once.scores_).max() > 1e-3 * np.abs(once.scores_).max()


def test_parts_have_similar_sizes_and_are_random(brain):
    part = SplitMatcher(RowSumMatcher(), n_splits=7, random_state=0).fit(brain.X, brain.Y).part_
    sizes = np.bincount(part)
    assert len(sizes) == 7
    assert np.ptp(sizes) <= 1
    assert np.ptp(part[:50]) > 0


@pytest.mark.parametrize(("n", "d"), [(1000, 6), (4000, 60), (150_000, 3)])
def test_the_answer_does_not_depend_on_the_number_of_jobs(n, d):
    data = make_gaussian_pairs(n, d, 0.7, noise=0.1, rng=0)
    fits = [
        SplitMatcher(RowSumMatcher(), n_splits=2, n_jobs=jobs, random_state=5).fit(data.X, data.Y) for jobs in (None, 2)
    ]
    np.testing.assert_array_equal(fits[0].scores_, fits[1].scores_)
    np.testing.assert_array_equal(fits[0].inlier_mask_, fits[1].inlier_mask_)


def test_the_seed_decides(brain):
    def part(seed):
        return SplitMatcher(RowSumMatcher(), random_state=seed).fit(brain.X, brain.Y).part_

    np.testing.assert_array_equal(part(1), part(1))
    assert (part(1) != part(2)).any()


def test_one_part_is_the_matcher_on_unit_rows(brain):
    split = SplitMatcher(RowSumMatcher(), n_splits=1, random_state=0).fit(brain.X, brain.Y)
    alone = RowSumMatcher().fit(reference.prepared(brain.X), reference.prepared(brain.Y))
    np.testing.assert_allclose(split.scores_, alone.scores_, atol=1e-9 * np.abs(alone.scores_).max())


def test_a_whitening_matcher_still_sees_through_a_linear_map():
    data = make_gaussian_pairs(3000, 6, 0.6, rng=0)
    Y = data.Y @ np.random.default_rng(0).standard_normal((6, 6)) * [1e-3, 1, 1, 1, 1, 1e3]
    split = SplitMatcher(RowSumMatcher(whiten=True), n_splits=3, random_state=0).fit(data.X, Y)
    assert error_rates(data.inlier_mask, split.inlier_mask_).overall < 0.15


def test_splits_of_splits(brain):
    nested = SplitMatcher(SplitMatcher(RowSumMatcher(), n_splits=2), n_splits=2, random_state=0)
    first = nested.fit(brain.X, brain.Y).inlier_mask_
    np.testing.assert_array_equal(first, nested.fit(brain.X, brain.Y).inlier_mask_)
    assert nested.threshold_.shape == (2, 2)


def test_brain_error_stays_as_the_paper_says():
    rates = [
        error_rates(
            data.inlier_mask, SplitMatcher(RowSumMatcher(), 12, random_state=0).fit(data.X, data.Y).inlier_mask_
        )
        for data in (make_mispaired(load_brain().features, 12_000, 0.8, rng=seed) for seed in range(10))
    ]
    assert np.mean([rate.overall for rate in rates]) == pytest.approx(0.0745, abs=0.003)


@pytest.mark.parametrize(
    ("n_splits", "message"),
    [(0, "whole number of at least 1"), (2.5, "whole number"), (600, "use 500 or less")],
)
def test_bad_number_of_splits(brain, n_splits, message):
    with pytest.raises(ValueError, match=message):
        SplitMatcher(RowSumMatcher(), n_splits=n_splits).fit(brain.X, brain.Y)


@pytest.mark.parametrize("matcher", ["row-sum", RowSumMatcher, LinearRegression()])
def test_bad_matcher(brain, matcher):
    with pytest.raises(ValueError, match="matcher must be a matcher such as RowSumMatcher"):
        SplitMatcher(matcher).fit(brain.X, brain.Y)
