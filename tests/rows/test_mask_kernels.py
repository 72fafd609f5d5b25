from __future__ import annotations

import numpy as np
import pytest

from inlier.rows._mask_kernels import evenly_spread, every_so_manieth, extremes_of_marked


@pytest.mark.parametrize("n_marked", [0, 1, 2, 40, 99, 100])
@pytest.mark.parametrize(("most_marked", "most_others"), [(0, 0), (1, 1), (7, 30), (200, 200), (0, 5)])
def test_rows_are_spread_evenly_over_the_marked_and_the_others(n_marked, most_marked, most_others):
    mask = np.zeros(100, dtype=bool)
    mask[np.random.default_rng(n_marked).permutation(100)[:n_marked]] = True
    expected = []
    for rows, most in ((np.flatnonzero(mask), most_marked), (np.flatnonzero(~mask), most_others)):
        ranks = np.floor(np.linspace(0, rows.size - 1, min(most, rows.size)) + 0.5 + 1e-9).astype(int)
        expected.append(rows[ranks])
    rows = evenly_spread(mask, n_marked, most_marked, most_others)
    np.testing.assert_array_equal(rows, np.sort(np.concatenate(expected)))


def test_extremes_of_the_marked():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 301))
    mask = first > 0.3
    found = extremes_of_marked(mask, first, second)
    assert found == (mask.sum(), first[mask].max(), second[mask].min())
    assert extremes_of_marked(np.zeros(301, dtype=bool), first, second) == (0, -np.inf, np.inf)


@pytest.mark.parametrize("enough", [1, 10, 1000])
def test_every_so_manieth_of_those_that_are_near(enough):
    rng = np.random.default_rng(0)
    values, weights = rng.uniform(size=500), rng.integers(0, 2, 500).astype(float)
    near = np.flatnonzero((values <= 0.6) & (weights > 0))
    rows, count = every_so_manieth(values, weights, 0.6, enough)
    assert count == near.size
    np.testing.assert_array_equal(rows, near[:: max(1, near.size // enough)])
    assert every_so_manieth(values, weights, -1.0, enough)[0].size == 0
