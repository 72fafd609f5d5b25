from __future__ import annotations

import array_api_strict
import numpy as np
import pytest

from inlier.rows import PairedRows
from inlier.rows.paired_rows import score_bound
from tests.stores import STRICT_DEVICE


@pytest.mark.parametrize("shape", [(3, 3), (65, 65), (300, 80), (80, 300)])
def test_the_bound_is_never_below_the_spectral_norm_and_not_far_above(shape):
    rng = np.random.default_rng(0)
    one_direction = rng.normal(size=(shape[0], 1)) @ rng.normal(size=(1, shape[1]))
    for matrix in (rng.normal(size=shape), one_direction, 1e-100 * np.eye(*shape), np.zeros(shape)):
        exact = np.linalg.norm(matrix, 2) + 1  # and the pair's own share
        assert exact <= score_bound(matrix, 1.0) <= 1.5 * exact
        assert score_bound(matrix, -2.0) == pytest.approx(2 * score_bound(matrix, 1.0))


def test_the_bound_is_the_same_where_the_rows_are():
    matrix = np.random.default_rng(0).normal(size=(80, 70))
    rows = array_api_strict.asarray(np.ones((2, 2)), device=STRICT_DEVICE)
    assert score_bound(matrix, 1.0, rows) == pytest.approx(score_bound(matrix, 1.0), rel=1e-12)


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_sum_and_map_do_not_depend_on_the_blocks(small_blocks, rows):
    rng = np.random.default_rng(0)
    X, Y, w = rng.standard_normal((50, 2)), rng.standard_normal((50, 3)), rng.standard_normal(50)
    U = rng.standard_normal((2, 3))
    small_blocks(rows)
    pairs = PairedRows(X, Y)
    np.testing.assert_allclose(pairs.cross_moment(w), X.T @ (w[:, None] * Y))
    np.testing.assert_allclose(pairs.bilinear(U), np.diag(X @ U @ Y.T))
