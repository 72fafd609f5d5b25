from __future__ import annotations

import numpy as np

from inlier.calibration.near_copies import _nearest, nearly_equal
from inlier.rows import PairedRows


def test_the_nearest_is_that_of_a_plain_loop():
    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=(30, 4)), rng.normal(size=(50, 4))
    apart = np.array([[np.linalg.norm(a - b) for b in others] for a in rows])
    distance, nearest = _nearest(rows, others)
    np.testing.assert_allclose(distance, apart.min(axis=1))
    np.testing.assert_array_equal(nearest, apart.argmin(axis=1))
    assert (_nearest(rows, rows, skip_own=True)[1] != np.arange(30)).all()


def test_only_near_copies_are_found():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(200, 5))
    y[10] = y[20] + 0.01
    sure = np.ones(200, dtype=bool)
    sure[[10, 11]] = False
    found = nearly_equal(PairedRows(y, y), np.array([10, 11]), sure)
    assert found.tolist() == [20, -1]
    assert nearly_equal(PairedRows(y, y), np.array([10]), np.zeros(200, dtype=bool)).tolist() == [-1]
