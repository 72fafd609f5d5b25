"""Small steps of the calibration, each beside its definition."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.calibration.models.significance import Significance
from inlier.calibration.p_values import Calibration, calibrate, p_values


def calibration(p, share=0.4, error=0.02, detection=1e-6):
    p = np.asarray(p, dtype=float)
    return Calibration(p, np.minimum(2 * p, 1), share, error, detection)


class TestSmallSteps:
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
