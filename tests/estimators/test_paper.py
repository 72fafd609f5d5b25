from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from inlier import EigenvectorMatcher, RowSumMatcher, SplitMatcher, eigenvector_threshold, row_sum_threshold
from inlier.datasets import brain_features, load_brain, make_gaussian_pairs, make_mispaired
from inlier.metrics import error_rates
from tests import reference

MATCHERS = [RowSumMatcher, EigenvectorMatcher]


@pytest.fixture(scope="module")
def gaussian():
    return make_gaussian_pairs(400, 20, 0.6, rng=0)


class TestAlgorithm1:
    @pytest.mark.parametrize("solver", ["auto", "moments", "operator", "dense"])
    def test_steps_by_the_definitions(self, solver):
        data = make_mispaired(load_brain().features, 500, 0.7, rng=3)
        H = reference.overlap(reference.prepared(data.X), reference.prepared(data.Y))
        v = reference.leading_eigenvector(H)[1]
        matcher = EigenvectorMatcher(solver=solver).fit(data.X, data.Y)
        np.testing.assert_allclose(matcher.scores_, np.sqrt(500) * v, atol=1e-8)
        # k-means as the paper writes it: on v itself, from +-n^(-1/2).
        np.testing.assert_array_equal(matcher.inlier_mask_, reference.lloyd(v, -(500**-0.5), 500**-0.5))

    def test_fixed_threshold(self, gaussian):
        matcher = EigenvectorMatcher(threshold=0.5).fit(gaussian.X, gaussian.Y)
        assert matcher.threshold_ == 0.5
        np.testing.assert_array_equal(matcher.inlier_mask_, matcher.scores_ >= 0.5)

    def test_scores_have_the_population_level(self):
        data = make_gaussian_pairs(3000, 100, 0.5, rng=0)
        scores = EigenvectorMatcher().fit(data.X, data.Y).scores_
        assert scores[data.inlier_mask].mean() == pytest.approx(1 / np.sqrt(0.5), rel=0.02)
        assert scores[~data.inlier_mask].mean() == pytest.approx(0, abs=0.05)


class TestAlgorithm2:
    @pytest.mark.parametrize("solver", ["auto", "moments", "operator", "dense"])
    def test_steps_by_the_definitions(self, solver):
        data = make_mispaired(load_brain().features, 500, 0.7, rng=3)
        expected = reference.row_sum_scores(data.X, data.Y)
        matcher = RowSumMatcher(solver=solver).fit(data.X, data.Y)
        np.testing.assert_allclose(matcher.scores_, expected, atol=1e-10 * np.abs(expected).max())
        upper = matcher.inlier_mask_
        within = sum(((part - part.mean()) ** 2).sum() for part in (expected[upper], expected[~upper]))
        assert within == pytest.approx(reference.best_two_means(expected), rel=1e-9)

    def test_fixed_threshold(self, gaussian):
        matcher = RowSumMatcher(threshold=1000).fit(gaussian.X, gaussian.Y)
        assert matcher.threshold_ == 1000.0
        np.testing.assert_array_equal(matcher.inlier_mask_, matcher.scores_ >= 1000)

    def test_scores_have_the_population_level(self):
        n, d, r = 3000, 100, 0.5
        data = make_gaussian_pairs(n, d, r, rng=0)
        scores = RowSumMatcher().fit(data.X, data.Y).scores_
        assert scores[data.inlier_mask].mean() == pytest.approx(d * (r * n + 1), rel=0.02)
        assert scores[~data.inlier_mask].mean() == pytest.approx(0, abs=0.02 * d * r * n)

    def test_dimensions_may_differ(self):
        data = make_gaussian_pairs(2000, 40, 0.6, rng=0)
        wide = data.Y @ np.linalg.qr(np.ones((60, 60)) + np.eye(60))[0][:40]
        matcher = RowSumMatcher().fit(data.X, wide)
        assert error_rates(data.inlier_mask, matcher.inlier_mask_).overall == 0
        assert matcher.scores_.size == 2000
        assert matcher.n_features_in_ == 40


@pytest.mark.parametrize("Matcher", MATCHERS)
class TestBoth:
    def test_exact_recovery_where_the_theory_promises_it(self, Matcher):
        data = make_gaussian_pairs(2000, 200, 0.5, translation=5.0, rng=0)
        assert error_rates(data.inlier_mask, Matcher().fit(data.X, data.Y).inlier_mask_).overall == 0

    @given(seed=st.integers(0, 2**32 - 1), factor=st.floats(1e-3, 1e3))
    def test_rotation_translation_scale_and_permutation_change_nothing(self, Matcher, seed, factor):
        rng = np.random.default_rng(seed)
        data = make_gaussian_pairs(80, 5, 0.7, noise=0.1, rng=seed)
        rotation, _ = np.linalg.qr(rng.standard_normal((5, 5)))
        order = rng.permutation(80)
        plain = Matcher().fit(data.X, data.Y)
        moved = Matcher().fit((factor * data.X @ rotation + 10)[order], (data.Y * factor - 3)[order])
        tolerance = 1e-6 * np.abs(plain.scores_).max()
        np.testing.assert_allclose(moved.scores_, plain.scores_[order], atol=tolerance)
        clear = np.abs(plain.scores_ - plain.threshold_) > 10 * tolerance
        np.testing.assert_array_equal(moved.inlier_mask_[clear[order]], plain.inlier_mask_[order][clear[order]])

    @pytest.mark.parametrize("rows", [1, 13, 400])
    def test_the_blocks_change_nothing(self, Matcher, gaussian, small_blocks, rows):
        expected = Matcher().fit(gaussian.X, gaussian.Y).scores_
        small_blocks(rows)
        np.testing.assert_allclose(
            Matcher().fit(gaussian.X, gaussian.Y).scores_, expected, atol=1e-9 * np.abs(expected).max()
        )

    def test_float32_gives_the_same_mask(self, Matcher, gaussian):
        wide = Matcher().fit(gaussian.X, gaussian.Y)
        narrow = Matcher().fit(gaussian.X.astype(np.float32), gaussian.Y.astype(np.float32))
        np.testing.assert_allclose(narrow.scores_, wide.scores_, atol=1e-5 * np.abs(wide.scores_).max())
        np.testing.assert_array_equal(narrow.inlier_mask_, wide.inlier_mask_)

    def test_input_is_left_alone(self, Matcher, gaussian):
        X, Y = gaussian.X.copy(), gaussian.Y.copy()
        Matcher(whiten=True).fit(X, Y)
        np.testing.assert_array_equal(X, gaussian.X)
        np.testing.assert_array_equal(Y, gaussian.Y)

    def test_whitening_sees_through_a_linear_map(self, Matcher):
        rng = np.random.default_rng(0)
        data = make_gaussian_pairs(2000, 10, 0.6, rng=0)
        Y = data.Y @ (rng.standard_normal((10, 10)) * 10.0 ** np.arange(-3, 2, 0.5))
        whitened = error_rates(data.inlier_mask, Matcher(whiten=True).fit(data.X, Y).inlier_mask_).overall
        plain = error_rates(data.inlier_mask, Matcher().fit(data.X, Y).inlier_mask_).overall
        assert whitened < 0.05 < 0.15 < plain

    def test_whitened_scores_are_those_of_the_svd(self, Matcher, gaussian):
        x, y = reference.whitened(gaussian.X), reference.whitened(gaussian.Y)
        H = reference.overlap(x, y)
        if Matcher is RowSumMatcher:
            expected = 400 * (H.sum(axis=1) - 1)  # d_x d_y = 400
        else:
            expected = np.sqrt(400) * reference.leading_eigenvector(H)[1]
        scores = Matcher(whiten=True).fit(gaussian.X, gaussian.Y).scores_
        np.testing.assert_allclose(scores, expected, atol=1e-8 * np.abs(expected).max())

    def test_whitening_without_enough_pairs_warns(self, Matcher):
        X = np.random.default_rng(0).standard_normal((10, 30))
        with pytest.warns(UserWarning, match=r"10 rows of X span 9 dimensions.*Use whiten=False"):
            Matcher(whiten=True).fit(X, X[:, :3])

    def test_a_row_without_direction_is_an_outlier_and_one_warning_counts_them(self, Matcher):
        rng = np.random.default_rng(0)
        half = rng.standard_normal((50, 3))
        X = np.vstack([half, -half, np.zeros((2, 3))])  # the mean is exactly 0
        Y = X @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
        with pytest.warns(UserWarning, match="2 of 102 pairs have a row equal to the mean") as caught:
            matcher = Matcher(threshold=-1e9).fit(X, Y)
        assert len(caught) == 1
        assert matcher.scores_[-2:].tolist() == [0, 0]
        assert matcher.inlier_mask_.sum() == 100
        assert not matcher.inlier_mask_[-2:].any()

    def test_one_dimensional_y_is_one_column(self, Matcher, gaussian):
        flat, column = Matcher().fit(gaussian.X, gaussian.Y[:, 0]), Matcher().fit(gaussian.X, gaussian.Y[:, :1])
        np.testing.assert_array_equal(flat.scores_, column.scores_)

    def test_frames(self, Matcher, gaussian):
        expected = Matcher().fit(gaussian.X, gaussian.Y).scores_
        names = [f"c{i}" for i in range(20)]
        for frame in (pd.DataFrame, pl.DataFrame):
            X = frame(dict(zip(names, gaussian.X.T, strict=True)))
            Y = frame(dict(zip(names, gaussian.Y.T, strict=True)))
            matcher = Matcher().fit(X, Y)
            np.testing.assert_allclose(matcher.scores_, expected, rtol=1e-6)
            assert matcher.feature_names_in_.tolist() == names

    def test_frames_with_other_labels_are_noticed(self, Matcher, gaussian):
        X, Y = pd.DataFrame(gaussian.X), pd.DataFrame(gaussian.Y)
        with pytest.warns(UserWarning, match=r"indexes differ.*paired by position.*y.loc\[X.index\]"):
            Matcher().fit(X, Y.sample(frac=1, random_state=0))

    def test_whiten_must_be_a_flag(self, Matcher, gaussian):
        with pytest.raises(ValueError, match="whiten must be True or False; got 'no'"):
            Matcher(whiten="no").fit(gaussian.X, gaussian.Y)

    def test_float32_rounding_is_not_whitened(self, Matcher):
        rng = np.random.default_rng(0)
        X = (rng.standard_normal((500, 2)) @ rng.standard_normal((2, 6)) + 100).astype(np.float32)
        assert Matcher(whiten=True).prepare(X, X).dimensions == (2, 2)

    def test_lists_and_series(self, Matcher, gaussian):
        expected = Matcher().fit(gaussian.X, gaussian.Y[:, 0]).scores_
        from_lists = Matcher().fit(gaussian.X.tolist(), gaussian.Y[:, 0].tolist())
        from_series = Matcher().fit(pd.DataFrame(gaussian.X), pd.Series(gaussian.Y[:, 0]))
        np.testing.assert_allclose(from_lists.scores_, expected)
        np.testing.assert_allclose(from_series.scores_, expected)

    def test_memory_map(self, Matcher, gaussian, tmp_path):
        np.save(tmp_path / "x.npy", gaussian.X)
        X = np.load(tmp_path / "x.npy", mmap_mode="r")
        np.testing.assert_array_equal(
            Matcher().fit(X, gaussian.Y).scores_, Matcher().fit(gaussian.X, gaussian.Y).scores_
        )

    def test_fit_twice_is_fit_once(self, Matcher, gaussian):
        matcher = Matcher().fit(gaussian.X[:50], gaussian.Y[:50]).fit(gaussian.X, gaussian.Y)
        np.testing.assert_array_equal(matcher.scores_, clone(matcher).fit(gaussian.X, gaussian.Y).scores_)

    def test_html_repr(self, Matcher):
        assert Matcher.__name__ in Matcher()._repr_html_()

    @pytest.mark.parametrize("threshold", ["k-means", None, float("nan"), True, [1]])
    def test_bad_threshold(self, Matcher, gaussian, threshold):
        with pytest.raises(ValueError, match="threshold must be"):
            Matcher(threshold=threshold).fit(gaussian.X, gaussian.Y)

    def test_bad_solver(self, Matcher, gaussian):
        with pytest.raises(ValueError, match="solver must be one of 'auto'"):
            Matcher(solver="quick").fit(gaussian.X, gaussian.Y)

    def test_dense_over_the_budget(self, Matcher):
        X = np.random.default_rng(0).standard_normal((20_000, 2))
        if Matcher is EigenvectorMatcher:
            with pytest.raises(MemoryError, match=r"n = 20,000.*3,200,000,000 bytes.*solver='operator'"):
                Matcher(solver="dense").fit(X, X)
        else:
            np.testing.assert_allclose(
                Matcher(solver="dense").fit(X[:500], X[:500]).scores_,
                Matcher(solver="operator").fit(X[:500], X[:500]).scores_,
            )


def mean_errors(table, draws):
    rates = np.array(
        [
            [error_rates(data.inlier_mask, Matcher().fit(data.X, data.Y).inlier_mask_).overall for Matcher in MATCHERS]
            for data in (make_mispaired(table, 12_000, 0.8, rng=seed) for seed in range(draws))
        ]
    )
    return rates.mean(axis=0)


def test_the_shipped_brain_table_gives_the_paper_s_error():
    # Tables 1 and 2 print 0.072 (row sum) and 0.075 (eigenvector) with standard deviation 0.002 per draw.
    row_sum, eigenvector = mean_errors(load_brain().features, draws=20)
    assert row_sum == pytest.approx(0.0745, abs=0.002)
    assert eigenvector == pytest.approx(0.0775, abs=0.002)


def test_the_s1200_table_gives_the_paper_s_error(real_data):
    with np.load(real_data / "brain" / "S1200_L_32k.npz") as maps:
        table = brain_features(maps["xyz"], maps["thickness"], maps["curvature"], maps["myelin"])
    assert len(table) == 32_488  # the paper's count
    row_sum, eigenvector = mean_errors(table, draws=100)
    assert row_sum == pytest.approx(0.070, abs=0.004)
    assert eigenvector == pytest.approx(0.075, abs=0.004)


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


def test_the_formulas():
    assert eigenvector_threshold(0.64) == pytest.approx(1 / (2 * 0.8))
    assert row_sum_threshold(1000, 50, 0.3) == pytest.approx(50 * 301 / 2)


def test_they_separate_where_the_theory_says_so():
    data = make_gaussian_pairs(2000, 100, 0.4, rng=0)
    for matcher in (
        EigenvectorMatcher(threshold=eigenvector_threshold(0.4)),
        RowSumMatcher(threshold=row_sum_threshold(2000, 100, 0.4)),
    ):
        assert error_rates(data.inlier_mask, matcher.fit(data.X, data.Y).inlier_mask_).overall == 0


@pytest.mark.parametrize("fraction", [0, -0.1, 1.1, float("nan"), "half", True])
def test_bad_fraction(fraction):
    with pytest.raises(ValueError, match="inlier_fraction must"):
        eigenvector_threshold(fraction)


@pytest.mark.parametrize(("n", "d"), [(0, 3), (10, 0), (10.5, 3)])
def test_bad_counts(n, d):
    with pytest.raises(ValueError, match="must be a whole number of at least 1"):
        row_sum_threshold(n, d, 0.5)
