from __future__ import annotations

import numpy as np
import pytest

from inlier import GramOverlap
from inlier.apps.reproduce.theory import (
    LOGARITHMIC,
    PROPORTIONAL,
    QUADRATIC,
    dimension,
    draw_rows,
    expected_overlap,
    log_log_slope,
    papers_curve,
)


@pytest.mark.parametrize("d", [8, 40])  # below and above 2 n - |G|: rows drawn, and Gram matrices drawn directly
def test_the_mean_of_h_is_the_expected_overlap(d):
    rng = np.random.default_rng(0)
    n, g, trials = 12, 7, 4000
    total = sum(GramOverlap(*draw_rows(n, d, g, rng)).to_dense() for _ in range(trials))
    expected = expected_overlap(n, d, g)
    error = (np.diag(expected) * 4 / d**0.5).max() / trials**0.5  # of the diagonal, the noisiest entries
    np.testing.assert_allclose(total / trials, expected, atol=5 * error)


def test_inliers_are_equal_and_outliers_are_not():
    X, Y = draw_rows(10, 30, 6, np.random.default_rng(0))
    np.testing.assert_array_equal(X[:6], Y[:6])
    assert (X[6:] != Y[6:]).any(axis=1).all()


def test_both_ways_of_drawing_have_one_distribution():
    rng = np.random.default_rng(1)
    n, g, d = 10, 4, 16
    direct = [draw_rows(n, d, g, rng) for _ in range(3000)]  # d = 2 n - g: by Bartlett
    drawn = [rng.standard_normal((2 * n - g, d)) for _ in range(3000)]
    plain = [(rows[:n], np.concatenate([rows[:g], rows[n:]])) for rows in drawn]
    sums = [np.array([GramOverlap(*pair).row_sums() for pair in sample]) for sample in (direct, plain)]
    for rows in (slice(0, g), slice(g, n)):
        a, b = (np.sort(each[:, rows].ravel()) for each in sums)
        assert np.median(a) == pytest.approx(np.median(b), rel=0.03)
        assert np.quantile(a, 0.9) == pytest.approx(np.quantile(b, 0.9), rel=0.05)


def test_slopes_and_their_errors():
    slope, stderr = log_log_slope([10, 100], [1, 10], [0.1, 0.1])
    assert slope == pytest.approx(1)
    assert stderr == pytest.approx(0.1 * 2**0.5 / np.log(10))


def test_regimes():
    assert dimension(PROPORTIONAL, 400) == 200
    assert dimension(LOGARITHMIC, 1000) == round(20 * np.log(1000))
    assert dimension(QUADRATIC, 2400) == round(2400**2 / 64 / np.log(2400))
    assert papers_curve(100, 25) == pytest.approx(np.sqrt(np.log(100)) * 15)
