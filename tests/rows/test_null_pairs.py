from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.rows.null_pairs import RePairing, re_pairings


@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
def test_re_pairings_share_no_point_with_the_pair(seed, n):
    rng = np.random.RandomState(seed)
    points = rng.randint(n, size=(2, n))
    first, second = re_pairings(points, rng)
    assert (points[:, first] != points[:, second]).all()
    assert first.size <= 4 * n


def test_every_pair_is_re_paired_four_times_on_each_side():
    first, second = re_pairings(np.stack([np.arange(30)] * 2), np.random.RandomState(0))
    assert (np.bincount(first) == 4).all()
    assert (np.bincount(second) == 4).all()


def test_without_repeats_nothing_is_left_out_but_the_pairs_themselves():
    points = np.stack([np.arange(20), np.arange(20)[::-1]])
    some = slice(0, 7)
    expected = np.arange(20)[:, None] != np.arange(7)
    np.testing.assert_array_equal(RePairing(points, np.random.RandomState(0)).with_each_of(some), expected)
    first, second = RePairing(points, np.random.RandomState(0)).among(np.arange(20), np.roll(np.arange(20), 3))
    assert first.tolist() == list(range(20))
    assert second.tolist() == np.roll(np.arange(20), 3).tolist()


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.6, 0.2, 0.1, 0.1), (0.25, 0.25, 0.25, 0.25)])
@pytest.mark.parametrize("side", [0, 1])
def test_points_are_met_as_often_as_they_occur(shares, side):
    n = 4000
    rng = np.random.RandomState(0)
    points = np.stack([np.arange(n), np.arange(n)])
    points[side] = rng.choice(len(shares), n, p=shares)
    for i, j in (
        np.nonzero(RePairing(points, rng).with_each_of(slice(0, n))),
        RePairing(points, rng).among(*(rng.randint(n, size=400_000) for _ in "ij")),
    ):
        met = points[side][(i, j)[side]]
        frequency = np.bincount(met, minlength=len(shares)) / met.size
        np.testing.assert_allclose(frequency, np.bincount(points[side]) / n, atol=0.02)
        assert (points[:, i] != points[:, j]).all()


def test_one_point_alone_cannot_be_re_paired():
    points = np.stack([np.arange(10), np.zeros(10, dtype=int)])
    assert not RePairing(points, np.random.RandomState(0)).with_each_of(slice(0, 10)).any()
    assert RePairing(points, np.random.RandomState(0)).among(np.arange(10), np.roll(np.arange(10), 1))[0].size == 0
