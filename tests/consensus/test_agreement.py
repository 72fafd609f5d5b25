from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import special_ortho_group

from inlier.consensus.agreement import Agreement, excess_of_friends


def dense_agreement(x, y, tolerance, slack=0.0):
    """The definition, with n x n arrays of distances; a little slack makes up for rounding, or a negative one."""
    in_x, in_y = (np.linalg.norm(p[:, :, None] - p[:, None, :], axis=0) for p in (x, y))
    return (np.abs(in_x - in_y) <= tolerance * (1 + slack)) & (in_x + in_y > tolerance * (1 - slack))


def points(m, d=3, seed=0):
    return np.random.default_rng(seed).random((2, d, m))


@pytest.mark.parametrize("m", [1, 2, 63, 64, 65, 200, 600, 1100])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_bits_are_the_definition(m, d):
    x, y = points(m, d)
    tolerances = np.array([0.01, 0.2])
    agreement = Agreement(x, y, tolerances)
    for which, tolerance in enumerate(tolerances):
        found = agreement.to_dense(which)
        assert (found >= dense_agreement(x, y, tolerance, -1e-4)).all()
        assert (found <= dense_agreement(x, y, tolerance, 1e-4)).all()


@pytest.mark.parametrize("unit", [1e-60, 1.0, 1e60])
@pytest.mark.parametrize("tolerance", [1e-9, 0.1])
def test_bits_in_any_unit(unit, tolerance):
    x, y = points(100)
    y[:, :20] = x[:, :20] + 3
    expected = dense_agreement(x, y, tolerance)
    assert expected.sum() >= 20 * 19
    bits = Agreement(unit * x, unit * y, np.array([unit * tolerance])).to_dense(0)
    np.testing.assert_array_equal(bits, expected)


def test_without_a_tolerance_equal_distances_agree_unless_both_are_zero():
    x = np.array([[0.0, 0.0, 1.0, 3.0, 7.0]])
    y = np.array([[2.0, 2.0, 1.0, 5.0, 0.0]])
    expected = dense_agreement(x, y, 0.0)
    assert expected[0, 2]
    assert not expected[0, 1]
    np.testing.assert_array_equal(Agreement(x, y, np.array([0.0])).to_dense(0), expected)


def test_pairs_that_differ_by_just_the_tolerance_agree():
    grid = np.array(np.meshgrid(*[np.arange(4.0)] * 2)).reshape(2, -1)
    order = np.random.default_rng(5).permutation(16)
    tolerance = np.sqrt(5) - 2  # a difference of two distances on the grid
    expected = dense_agreement(grid, grid[:, order], tolerance * (1 + 1e-12))
    assert (dense_agreement(grid, grid[:, order], tolerance * (1 - 1e-12)) != expected).any()
    np.testing.assert_array_equal(Agreement(grid, grid[:, order], np.array([tolerance])).to_dense(0), expected)


@given(seed=st.integers(0, 1000), d=st.integers(2, 4), shift=st.floats(-5, 5))
def test_a_motion_of_either_side_changes_nothing(seed, d, shift):
    x, y = points(40, d, seed)
    rotation = special_ortho_group.rvs(d, random_state=seed)
    tolerance = np.array([0.05])
    moved = Agreement(rotation @ x + shift, y, tolerance).to_dense(0)
    assert (moved != Agreement(x, y, tolerance).to_dense(0)).mean() < 0.002  # rounding, at the tolerance itself


def tightness(A, circle):
    """Mean degree among the friends, each weighted by its degree."""
    among = A[np.ix_(circle[1:], circle[1:])].sum(axis=1)
    return (among**2).sum() / max(among.sum(), 1)


def test_circles_hold_the_friends_with_most_friends_in_common():
    x, y = points(150, seed=1)
    A = dense_agreement(x, y, 0.1).astype(int)
    common = A @ A
    circles = Agreement(x, y, np.array([0.3, 0.1])).tightest_circles(1, 8, 150)
    assert sorted(circles.members[:, 0]) == list(range(150))
    assert (np.diff(circles.tightness) <= 0).all()
    for members, weights, tight in zip(circles.members, circles.weights, circles.tightness, strict=True):
        chosen = members[members >= 0]
        friends = np.flatnonzero(A[chosen[0]])
        assert set(chosen[1:]) <= set(friends)
        assert len(set(chosen)) == chosen.size == min(8, friends.size + 1)
        best = np.sort(common[chosen[0], friends])[::-1][: chosen.size - 1]
        np.testing.assert_array_equal(np.sort(common[chosen[0], chosen[1:]])[::-1], best)
        assert (weights[chosen.size :] == 0).all()
        assert tight == pytest.approx(tightness(A, chosen))


def test_only_the_tightest_circles_are_returned():
    x, y = points(700, seed=6)
    agreement = Agreement(x, y, np.array([0.1]))
    few, all_ = (agreement.tightest_circles(0, 10, most) for most in (5, 700))
    np.testing.assert_array_equal(few.members, all_.members[:5])
    np.testing.assert_array_equal(few.weights, all_.weights[:5])


def test_weights_are_the_leading_eigenvector():
    x, y = points(100, seed=2)
    A = dense_agreement(x, y, 0.15).astype(float)
    circles = Agreement(x, y, np.array([0.15])).tightest_circles(0, 12, 100)
    for circle, weights in zip(circles.members[::7], circles.weights[::7], strict=True):
        members = circle[circle >= 0]
        vectors = np.linalg.eigh(A[np.ix_(members, members)])[1]
        assert abs(vectors[:, -1] @ weights[: members.size]) > 0.97


def test_a_clique_is_the_tightest_circle():
    x, y = points(60, seed=3)
    y[:, :10] = x[:, :10] + 3
    circles = Agreement(x, y, np.array([1e-9])).tightest_circles(0, 20, 60)
    np.testing.assert_allclose(circles.tightness, [8] * 10 + [0] * 50)
    assert set(circles.members[0][:10]) == set(range(10))
    np.testing.assert_allclose(circles.weights[0][:10], 10**-0.5)


@pytest.mark.parametrize("finest", [0.02, 1e-7])  # single precision, and double
def test_excess_counts_friends_beyond_those_among_re_pairings(finest):
    x, y = points(300, seed=4)
    y[:, :60] = x[:, :60] + 1
    tolerances = np.array([0.1, finest])
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
        exact = np.isclose(excess[:, column], (friends - strangers) / np.sqrt(strangers + 1))
        assert exact.mean() > 0.99 if finest == 0.02 else exact.all()
    assert excess[:60].mean() > excess[60:].mean() + 5
