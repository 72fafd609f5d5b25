from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import special_ortho_group

from inlier.overlap.agreement import Agreement, excess_of_friends


def dense_agreement(x, y, tolerance):
    """The definition, with n x n arrays of distances."""
    in_x, in_y = (np.linalg.norm(p[:, :, None] - p[:, None, :], axis=0) for p in (x, y))
    return (np.abs(in_x - in_y) <= tolerance) & (in_x + in_y > tolerance)


def points(m, d=3, seed=0):
    return np.random.default_rng(seed).random((2, d, m))


@pytest.mark.parametrize("m", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("tolerance", [0.01, 0.2])
def test_bits_are_the_definition(m, tolerance):
    x, y = points(m)
    np.testing.assert_array_equal(Agreement(x, y, tolerance).to_dense(), dense_agreement(x, y, tolerance))


@given(seed=st.integers(0, 1000), d=st.integers(2, 4), shift=st.floats(-5, 5))
def test_a_motion_of_either_side_changes_nothing(seed, d, shift):
    x, y = points(40, d, seed)
    rotation = special_ortho_group.rvs(d, random_state=seed)
    moved = Agreement(rotation @ x + shift, y, 0.05).to_dense()
    assert (moved != Agreement(x, y, 0.05).to_dense()).mean() < 0.002  # rounding, at the tolerance itself


def test_circles_hold_the_friends_with_most_friends_in_common():
    x, y = points(150, seed=1)
    A = dense_agreement(x, y, 0.1)
    common = A.astype(int) @ A.astype(int)
    circles = Agreement(x, y, 0.1).circles(8)
    for i in range(150):
        friends = np.flatnonzero(A[i])
        chosen = circles.members[i][circles.members[i] >= 0]
        assert chosen[0] == i
        assert set(chosen[1:]) <= set(friends)
        assert chosen.size == min(8, friends.size + 1)
        best = np.sort(common[i, friends])[::-1][: chosen.size - 1]
        np.testing.assert_array_equal(np.sort(common[i, chosen[1:]])[::-1], best)
        assert (circles.weights[i, chosen.size :] == 0).all()


def test_strength_and_weights_are_the_leading_eigenpair():
    x, y = points(100, seed=2)
    A = dense_agreement(x, y, 0.15).astype(float)
    circles = Agreement(x, y, 0.15).circles(12)
    for i in range(0, 100, 7):
        members = circles.members[i][circles.members[i] >= 0]
        values, vectors = np.linalg.eigh(A[np.ix_(members, members)])
        assert circles.strength[i] == pytest.approx(values[-1], rel=0.05)
        assert abs(vectors[:, -1] @ circles.weights[i, : members.size]) > 0.97


def test_a_clique_has_its_size_as_strength():
    x, y = points(60, seed=3)
    y[:, :10] = x[:, :10] + 3
    circles = Agreement(x, y, 1e-9).circles(20)
    np.testing.assert_allclose(circles.strength[:10], 9)
    assert set(circles.members[0][:10]) == set(range(10))
    np.testing.assert_allclose(circles.strength[10:], 0)


def test_excess_counts_friends_beyond_those_among_re_pairings():
    x, y = points(300, seed=4)
    y[:, :60] = x[:, :60] + 1
    tolerances = np.array([0.1, 0.02])
    excess = excess_of_friends(x, y, tolerances, np.random.RandomState(0))
    assert excess.shape == (300, 2)
    order = np.random.RandomState(0).permutation(300)
    partner = np.empty(300, dtype=int)
    partner[order] = np.roll(order, 1)
    for column, tolerance in enumerate(tolerances):
        in_x, in_y = (np.linalg.norm(p[:, :, None] - p[:, None, :], axis=0) for p in (x, y))
        other = in_y[:, partner]
        strangers = ((np.abs(in_x - other) <= tolerance) & (in_x + other > tolerance)).sum(axis=1)
        friends = dense_agreement(x, y, tolerance).sum(axis=1)
        np.testing.assert_allclose(excess[:, column], (friends - strangers) / np.sqrt(strangers + 1))
    assert excess[:60].mean() > excess[60:].mean() + 5
