"""Assumption 1 as the theory experiments need it: Gaussian rows, the first of them inliers, nothing normalised.

H does not depend on the rotation R, so R is the identity here. It depends on the rows through their Gram
matrices only; where d is large these are drawn directly (Bartlett), at a cost that does not grow with d.
"""

from __future__ import annotations

import numpy as np

from inlier._typing import FloatArray


def draw_rows(n: int, d: int, n_inliers: int, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return X and Y whose Gram matrices are those of Assumption 1; the first ``n_inliers`` pairs are real."""
    n_distinct = 2 * n - n_inliers  # rows of X, and those of Y that are not rows of X
    direct = d >= n_distinct
    rows = _bartlett_factor(n_distinct, d, random) if direct else random.standard_normal((n_distinct, d))
    return rows[:n], np.concatenate([rows[:n_inliers], rows[n:]])


def _bartlett_factor(n: int, d: int, random: np.random.Generator) -> FloatArray:
    """Lower triangular L with L L^T distributed as the Gram matrix of n Gaussian rows in d >= n dimensions."""
    factor = np.tril(random.standard_normal((n, n)), -1)
    np.fill_diagonal(factor, np.sqrt(random.chisquare(d - np.arange(n))))
    return factor


def expected_overlap(n: int, d: int, n_inliers: int) -> FloatArray:
    """E[H]: d between different inliers, d^2 + 2 d on their diagonal, d^2 on the outliers' and 0 elsewhere."""
    expected = np.zeros((n, n))
    expected[:n_inliers, :n_inliers] = d
    np.fill_diagonal(expected, d**2)
    inliers = np.arange(n_inliers)
    expected[inliers, inliers] = d**2 + 2 * d
    return expected
