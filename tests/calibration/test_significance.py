from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.calibration.significance import Significance
from tests.stores import STRICT_DEVICE


def slow_berk_jones(p):
    """Berk and Jones, one by one."""
    n, most = len(p), 0.0
    for k, p_k in enumerate(sorted(p), start=1):
        share = k / n
        if p_k < share and p_k <= 0.5:
            rest = (1 - share) * np.log((1 - share) / (1 - p_k)) if k < n else 0.0
            most = max(most, n * (share * np.log(share / p_k) + rest))
    return most


@given(st.integers(0, 2**32 - 1))
def test_berk_jones_agrees_with_a_loop_where_no_score_is_beyond_the_tail(seed):
    rng = np.random.default_rng(seed)
    null = np.sort(rng.standard_normal(500))
    scores = np.minimum(rng.standard_normal(60) + 1, null[490])
    significance = Significance.of(scores, null)
    expected = [(1 + (null >= score).sum()) / 501 for score in scores]
    np.testing.assert_allclose(significance.p_values, expected)
    assert significance.berk_jones == pytest.approx(slow_berk_jones(expected))


def test_berk_jones_grows_with_the_distance_from_all_re_pairings():
    rng = np.random.default_rng(0)
    wrong, null = rng.standard_normal(380), rng.standard_normal(1600)
    statistics = [
        Significance.of(np.append(wrong, rng.normal(far, 0.1, 20)), null).berk_jones for far in (0, 4, 8, 16, 1e6)
    ]
    assert statistics[0] < 10
    assert (np.diff(statistics) > 20).all()
    assert np.isfinite(statistics).all()


def test_weights_are_large_where_p_values_are_denser_than_chance():
    rng = np.random.default_rng(0)
    scores = np.append(rng.standard_normal(900), rng.normal(8, 1, 100))
    weights = Significance.of(scores, rng.standard_normal(4000)).weights(2.0)
    assert weights[900:].min() > 0.8
    assert weights[:900].sum() < 15


def test_the_spread_is_that_of_the_upper_tail():
    null = np.arange(1001.0)
    significance = Significance.of(np.array([0.0]), null)
    assert (significance.centre, significance.spread) == (500, 490)


def test_without_re_pairings_nothing_stands_out():
    significance = Significance.of(np.arange(5.0), np.empty(0))
    assert (significance.p_values == 1).all()
    assert significance.berk_jones == 0


def test_scores_on_a_device_are_judged_as_here():
    rng = np.random.default_rng(0)
    scores, null = rng.standard_normal(50) + 1, rng.standard_normal(300)
    put = lambda values: array_api_strict.asarray(values, device=STRICT_DEVICE)  # noqa: E731
    here, there = Significance.of(scores, null), Significance.of(put(scores), put(null))
    np.testing.assert_array_equal(here.p_values, there.p_values)
    assert (here.centre, here.spread, here.berk_jones) == (there.centre, there.spread, there.berk_jones)
