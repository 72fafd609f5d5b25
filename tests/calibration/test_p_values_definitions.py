"""Intervals, tails and small steps of the calibration, each beside its definition."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.calibration.models.linear_map import Significance
from inlier.calibration.p_values import Calibration, calibrate, has_heavy_tail, p_values


def calibration(p, share=0.4, error=0.02, detection=1e-6):
    p = np.asarray(p, dtype=float)
    return Calibration(p, np.minimum(2 * p, 1), share, error, detection)


class TestInterval:
    def test_two_standard_errors_and_what_may_be_hidden(self):
        p = np.concatenate([np.full(40, 0.001), np.full(30, 0.2), np.full(30, 0.8)])
        low, high = calibration(p).interval()
        assert low == pytest.approx(0.4 - 1.96 * 0.02)
        hidden = 0.3 - (1 - 0.4) * 0.49  # of those with p between 0.01 and 0.5, more than wrong pairs explain
        assert high == pytest.approx(0.4 + 1.96 * 0.02 + hidden)

    def test_p_values_at_the_ends_of_the_middle(self):
        assert calibration([0.01] * 50 + [0.9] * 50).interval()[1] == pytest.approx(0.4 + 1.96 * 0.02)
        upper_end = calibration([0.5] * 40 + [0.9] * 60).interval()[1]
        assert upper_end == pytest.approx(0.4 + 1.96 * 0.02 + 0.4 - 0.6 * 0.49)

    def test_where_more_than_a_third_of_the_real_pairs_are_on_their_way_there_is_no_upper_end(self):
        # 0.4 are real, and n_middle % - 0.6 * 49 % of all are on their way: a third of 0.4 from 43 on
        for n_middle, is_told in ((42, True), (43, False)):
            p = [0.5] * n_middle + [0.9] * (100 - n_middle)
            assert (calibration(p).interval()[1] < 1) == is_told

    def test_counts_say_how_often_each_occurs(self):
        few, counts = calibration([0.001, 0.2, 0.8]), np.array([40, 30, 30])
        p = np.repeat([0.001, 0.2, 0.8], counts)
        assert few.interval(counts) == pytest.approx(calibration(p).interval())

    def test_another_estimate_widens_it(self):
        p = np.full(100, 0.9)
        low, high = calibration(p).interval(other=(0.3, 0.03))
        assert low == pytest.approx(0.3 - 1.96 * 0.03)
        assert high == pytest.approx(calibration(p).interval()[1])
        low, high = calibration(p).interval(other=(0.5, 0.05))
        assert low == pytest.approx(0.4 - 1.96 * 0.02)
        assert high == pytest.approx(0.5 + 1.96 * 0.05)

    @pytest.mark.parametrize(("detection", "is_told"), [(0.05, True), (0.0501, False)])
    def test_where_nothing_is_detected_there_is_no_upper_end(self, detection, is_told):
        assert (calibration(np.full(10, 0.9), detection=detection).interval()[1] < 1) == is_told

    def test_it_stays_between_none_and_all(self):
        assert calibration(np.full(10, 0.9), share=0.01, error=0.1).interval()[0] == 0.0
        assert calibration(np.full(10, 0.9), share=0.99, error=0.1).interval()[1] == 1.0


class TestHeavyTail:
    def scores(self, n_far, far):
        """A hundred scores, half of them 1 off the median, and some far below."""
        return np.concatenate([np.tile([-1.0, 1.0], (100 - n_far) // 2), np.full(n_far, far)])

    @pytest.mark.parametrize(("n_far", "heavy"), [(4, False), (6, True)])
    def test_more_than_a_twentieth_ten_times_as_far_off_as_is_typical(self, n_far, heavy):
        assert has_heavy_tail(self.scores(n_far, -50.0)) == heavy
        assert not has_heavy_tail(self.scores(n_far, 50.0))

    def test_ten_times_is_meant_exactly(self):
        scores = np.concatenate([np.zeros(1), np.tile([-1.0, 1.0], 46), np.full(8, -10.0), np.full(8, 9.0)])
        assert np.median(scores) == 0.0
        assert np.median(np.abs(scores)) == 1.0
        assert not has_heavy_tail(scores)
        scores[scores == -10] = -10.001
        assert has_heavy_tail(scores)

    def test_five_are_enough_to_tell_and_four_are_not(self):
        five = np.array([0.0, 0.1, -0.1, 0.2, -100.0])
        assert has_heavy_tail(five)
        assert not has_heavy_tail(five[1:])

    def test_a_histogram_says_the_same(self):
        for far in (-5.0, -50.0):
            scores = self.scores(6, far)
            values, counts = np.unique(scores, return_counts=True)
            values, counts = np.append(values, [3.0, 4.0, 5.0]), np.append(counts, [1, 1, 1])
            plain = np.repeat(values, counts)
            assert has_heavy_tail(values, counts) == has_heavy_tail(plain) == (far == -50.0)


class TestSmallSteps:
    def test_doubt_counts_where_a_pair_is_more_likely_wrong(self):
        before = calibration([0.001, 0.001, 0.001, 0.4])
        after = before.doubting(np.array([0.5, 0.51, 0.0, 0.6]))
        assert after.q_values.tolist() == [0.002, 0.51, 0.002, 0.8]

    def test_entries_may_be_named_often(self):
        found = calibration([0.1, 0.2, 0.3]).at(np.array([2, 2, 0]))
        assert found.p_values.tolist() == [0.3, 0.3, 0.1]
        assert found.q_values.tolist() == [0.6, 0.6, 0.2]

    @pytest.mark.parametrize("null", [[1.0, 1.0, 2.0, 3.0], [3.0, 1.0, 2.0, 1.0]])
    def test_p_values_count_null_scores_at_or_above(self, null):
        expected = [(1 + sum(score <= other for other in null)) / 5 for score in (0.5, 1.0, 2.5, 9.0)]
        assert p_values(np.array([0.5, 1.0, 2.5, 9.0]), np.array(null)).tolist() == expected
        np.testing.assert_allclose(calibrate([0.5, 1.0, 2.5, 9.0], null).p_values, expected)

    def test_null_scores_need_not_be_sorted(self):
        rng = np.random.default_rng(0)
        scores, null = rng.normal(1, 2, 50), np.round(rng.normal(size=200), 1)
        here, there = calibrate(scores, null), calibrate(scores, np.sort(null))
        np.testing.assert_array_equal(here.q_values, there.q_values)

    def test_the_tail_beyond_the_highest_hundredth_is_exponential(self):
        """A score that is one mean excess above the last hundredth is e times as unlikely as that."""
        null = np.linspace(0, 1, 2001)
        score = null[1980] + 2.5 * (null[1980:] - null[1980]).mean()
        found = Significance.of(np.full(50, score), null)
        assert found.berk_jones == pytest.approx(50 * np.log(1 / (0.01 * np.exp(-2.5))), rel=1e-3)
