"""Bets on runs: no honest coin makes them rich, and rows that resemble each other count for few."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from inlier.repair.slips.significance import MISS, STEEPNESS, _bets, won


@pytest.mark.parametrize("steepness", [0.0625, 0.25, 1.0, 4.0])
@pytest.mark.parametrize("scale", [0.01, 1.0, 50.0])
def test_an_honest_coin_wins_nothing_on_average(steepness, scale):
    size = np.abs(np.random.default_rng(0).normal(size=1000)) * scale
    both = np.exp(_bets(size, steepness)) + np.exp(_bets(-size, steepness))
    np.testing.assert_allclose(both / 2, 1.0)


def test_a_row_wins_log_2_at_most_and_loses_as_much_as_a_miss_costs():
    assert _bets(np.array([1e6]), 1.0)[0] == pytest.approx(np.log(2 - MISS))
    assert _bets(np.array([-1e6]), 1.0)[0] == pytest.approx(np.log(MISS))


def of(series, n_lines=60):
    """What is won on the first rows of a series; where y is pushed on, on later ones."""
    logs = won(lambda by: series[np.arange(n_lines) + by], series.size - n_lines, np.random.RandomState(0))
    return logs.max() - np.log(STEEPNESS.size)


def test_chance_is_seldom_as_rich_as_it_may_be():
    rng = np.random.default_rng(1)
    logs = np.array([of(3 * rng.normal(size=600)) for _ in range(400)])
    for level in (0.1, 0.01):
        assert (logs >= -np.log(level)).mean() <= level


def test_rows_that_resemble_their_neighbours_count_for_few():
    rng = np.random.default_rng(2)
    smooth = [gaussian_filter1d(rng.normal(size=600), 15) * 100 for _ in range(200)]
    assert np.mean([of(series) >= -np.log(0.05) for series in smooth]) <= 0.08
    clear = np.abs(rng.normal(size=600)) * np.append(np.ones(60), rng.choice([-1, 1], 540)) * 5
    assert of(clear) > 20
