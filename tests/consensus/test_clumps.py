from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.consensus.clumps import (
    JointNeighbours,
    _members,
    clump_length,
    coincidence,
    folds_of_blocks,
    looks_clumped,
)


def spots(rng, n_spots, n=400, radius=0.02):
    """Each pair joins the same spot here to the same spot there."""
    spot = rng.integers(n_spots, size=n)
    return tuple(rng.random((n_spots, 3))[spot] + radius * rng.normal(size=(n, 3)) for _ in range(2))


def joint_distances(X, Y):
    return np.maximum(*(np.linalg.norm(side[:, None] - side, axis=2) for side in (X, Y)))


@pytest.mark.parametrize("n_spots", [4, 10, 30])
def test_the_length_of_spots_is_about_their_size(n_spots):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, Y = spots(rng, n_spots)
        assert looks_clumped(X, Y, rng)
        assert 0.05 < clump_length(X, Y, rng) < 0.3


@pytest.mark.parametrize("n", [60, 400, 3000])
def test_independent_mistakes_have_no_length(n):
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 3))
        Y = rng.permutation(X @ np.diag([1.0, 2.0, 0.5]))
        found.append(looks_clumped(X, Y, rng) or clump_length(X, Y, rng) > 0)
    assert sum(found) <= 1


def test_the_length_does_not_depend_on_the_unit_or_the_place():
    X, Y = spots(np.random.default_rng(0), 10)
    lengths = [
        clump_length(scale * X + shift, scale * Y - shift, np.random.default_rng(1)) / scale
        for scale, shift in ((1.0, 0.0), (1024.0, 0.0), (1.0, 5.0))
    ]
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-9)


def test_points_that_are_all_one_have_no_length():
    one = np.zeros((80, 3))
    assert clump_length(one, one, np.random.default_rng(0)) == 0.0
    assert not looks_clumped(one, one, np.random.default_rng(0))


def test_corners_of_other_windows_coincide_more_often_than_re_pairings():
    rng = np.random.default_rng(0)
    corner, sites = rng.integers(4, size=600), rng.random((40, 4, 2))
    X, Y = (sites[rng.integers(40, size=600), corner] + 0.001 * rng.normal(size=(600, 2)) for _ in range(2))
    assert 2 < coincidence(X, Y, 0.01, rng) < 8
    assert coincidence(X, rng.permutation(Y), 0.01, rng) == 1.0


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 1.5))
def test_joint_neighbours_are_those_near_on_both_sides(seed, reach):
    rng = np.random.default_rng(seed)
    X, Y = rng.random((40, 3)), rng.random((40, 2))
    listed = JointNeighbours.within(X, Y, reach)
    near = np.zeros((40, 40), dtype=bool)
    near[listed.first, listed.second] = near[listed.second, listed.first] = True
    distances = joint_distances(X, Y)
    np.testing.assert_array_equal(near, (distances <= reach) & ~np.eye(40, dtype=bool))
    np.testing.assert_allclose(listed.distance, distances[listed.first, listed.second])
    np.testing.assert_allclose(listed.votes(), 1 / (1 + near.sum(axis=1)))
    chosen = rng.random(40) < 0.5
    np.testing.assert_array_equal(listed.touching(chosen), (near & chosen).any(axis=1))
    np.testing.assert_allclose(listed.among(chosen).votes()[chosen], 1 / (1 + near[chosen][:, chosen].sum(axis=1)))
    assert (listed.nearer(reach / 2).distance <= reach / 2).all()


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 1.0))
def test_separated_pairs_are_no_neighbours_and_none_can_be_added(seed, reach):
    rng = np.random.default_rng(seed)
    X, Y = rng.random((60, 2)), rng.random((60, 2))
    chosen = rng.random(60) < 0.8
    kept = JointNeighbours.within(X, Y, reach).separated(chosen, rng)
    near = joint_distances(X, Y) <= reach
    assert not kept[~chosen].any()
    assert near[kept][:, kept].sum() == kept.sum()  # each is near itself alone
    assert near[chosen][:, kept].any(axis=1).all()


def test_a_clump_has_one_vote():
    X = np.repeat(np.arange(5.0), 7)[:, None] * 10
    assert JointNeighbours.within(X, X, 1.0).votes().sum() == pytest.approx(5)


def test_folds_hold_whole_blocks_and_about_as_many_pairs_each():
    rng = np.random.default_rng(0)
    X = rng.random((4000, 3))
    fold = folds_of_blocks(X, 0.15, 8, rng)
    assert np.bincount(fold).min() > 400
    neighbour = np.argsort(np.linalg.norm(X[:50, None] - X, axis=2), axis=1)[:, 1]
    assert (fold[:50] == fold[neighbour]).mean() > 0.5  # 1/8 for folds of single pairs
    assert (folds_of_blocks(X, 100.0, 8, np.random.default_rng(3)) < 8).all()


@pytest.mark.parametrize("n", [2, 3, 250, 2000])
def test_pairs_of_things_are_numbered_as_by_scipy(n):
    np.testing.assert_array_equal(_members(np.arange(n * (n - 1) // 2), n), np.triu_indices(n, 1))
