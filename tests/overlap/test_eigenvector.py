from __future__ import annotations

import numpy as np
import pytest

from inlier.overlap.eigenvector import (
    MomentSide,
    eigenpair_by_moments,
    eigenpair_by_operator,
    eigenpair_of_dense,
)
from inlier.rows import PairedRows


def pairs_and_overlap(n, d_x, d_y):
    """Some pairs of unit rows, half of them alike, and H_ij = <x_i, x_j> <y_i, y_j>."""
    rng = np.random.default_rng(n)
    X, Y = rng.normal(size=(n, d_x)), rng.normal(size=(n, d_y))
    Y[::2, : min(d_x, d_y)] = X[::2, : min(d_x, d_y)]
    X, Y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (X, Y))
    return PairedRows(X, Y), (X @ X.T) * (Y @ Y.T)


@pytest.mark.parametrize("route", [eigenpair_by_moments, eigenpair_by_operator])
@pytest.mark.parametrize(("n", "d_x", "d_y"), [(200, 3, 3), (500, 7, 6), (60, 9, 9), (20, 6, 5)])
def test_each_route_gives_the_leading_eigenpair_of_the_whole_matrix(route, n, d_x, d_y):
    pairs, H = pairs_and_overlap(n, d_x, d_y)
    values, vectors = np.linalg.eigh(H)
    expected = vectors[:, -1] * np.sign(vectors[:, -1].sum())
    found = route(pairs)
    found = found.eigenpair(pairs) if isinstance(found, MomentSide) else found
    dense = eigenpair_of_dense(H)
    for value, vector in (found, dense):
        assert value == pytest.approx(values[-1], rel=1e-8)
        np.testing.assert_allclose(vector, expected, atol=1e-6)
