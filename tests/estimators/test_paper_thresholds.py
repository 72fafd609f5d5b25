from __future__ import annotations

import pytest

from inlier import EigenvectorMatcher, RowSumMatcher, eigenvector_threshold, row_sum_threshold
from inlier.datasets import make_gaussian_pairs
from inlier.metrics import error_rates


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
