from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import special_ortho_group

from inlier.consensus.candidates import (
    Agreement,
    RoughCandidates,
    Scales,
    excess_of_neighbours,
    rough_maps,
    worth_comparing,
)
from inlier.consensus.evidence import Chance
from inlier.consensus.pairs import ColumnPairs
from inlier.transforms.least_squares import MapModel, Maps

RIGID = MapModel("rigid", 3)
BOUND = 0.02


def tolerances(noise_bound):
    x, y = np.random.default_rng(0).uniform(size=(2, 3, 500))
    scales = Scales(MapModel("rigid", 3), ColumnPairs(x, y, np.ones(500)), noise_bound, np.random.default_rng(0))
    return [(likely, scale, list(some)) for likely, scale, some in scales]


def test_usual_tolerances_are_tried_before_unlikely_ones():
    found = tolerances(None)
    assert [likely for likely, _, _ in found] == [True, False]
    assert {scale for _, scale, _ in found} == {1.0}


def test_a_known_bound_comes_first_and_limits_the_others():
    (_, _, first), *others = tolerances(BOUND)
    assert first == [BOUND, BOUND / 2]
    expected = {t for _, _, some in tolerances(None) for t in some if t <= 2 * BOUND}
    assert 0 < len(expected) < 6
    assert {t for _, _, some in others for t in some} == expected


def test_a_tiny_bound_leaves_no_other_tolerance():
    assert tolerances(1e-9) == [(True, 1.0, [1e-9, 5e-10])]


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


def density(A, members_of_set):
    """Mean degree among the neighbours, each weighted by its degree."""
    among = A[np.ix_(members_of_set[1:], members_of_set[1:])].sum(axis=1)
    return (among**2).sum() / max(among.sum(), 1)


def test_sets_hold_the_neighbours_with_most_neighbours_in_common():
    x, y = points(150, seed=1)
    A = dense_agreement(x, y, 0.1).astype(int)
    common = A @ A
    sets = Agreement(x, y, np.array([0.3, 0.1])).densest_sets(1, 8, 150)
    assert sorted(sets.members[:, 0]) == list(range(150))
    assert (np.diff(sets.density) <= 0).all()
    for members, weights, dense in zip(sets.members, sets.weights, sets.density, strict=True):
        chosen = members[members >= 0]
        neighbours = np.flatnonzero(A[chosen[0]])
        assert set(chosen[1:]) <= set(neighbours)
        assert len(set(chosen)) == chosen.size == min(8, neighbours.size + 1)
        best = np.sort(common[chosen[0], neighbours])[::-1][: chosen.size - 1]
        np.testing.assert_array_equal(np.sort(common[chosen[0], chosen[1:]])[::-1], best)
        assert (weights[chosen.size :] == 0).all()
        assert dense == pytest.approx(density(A, chosen))


def test_only_the_densest_sets_are_returned():
    x, y = points(700, seed=6)
    agreement = Agreement(x, y, np.array([0.1]))
    few, all_ = (agreement.densest_sets(0, 10, most) for most in (5, 700))
    np.testing.assert_array_equal(few.members, all_.members[:5])
    np.testing.assert_array_equal(few.weights, all_.weights[:5])


def test_weights_are_the_leading_eigenvector():
    x, y = points(100, seed=2)
    A = dense_agreement(x, y, 0.15).astype(float)
    sets = Agreement(x, y, np.array([0.15])).densest_sets(0, 12, 100)
    for members_of_set, weights in zip(sets.members[::7], sets.weights[::7], strict=True):
        members = members_of_set[members_of_set >= 0]
        vectors = np.linalg.eigh(A[np.ix_(members, members)])[1]
        assert abs(vectors[:, -1] @ weights[: members.size]) > 0.97


def test_a_clique_is_the_tightest_members_of_set():
    x, y = points(60, seed=3)
    y[:, :10] = x[:, :10] + 3
    sets = Agreement(x, y, np.array([1e-9])).densest_sets(0, 20, 60)
    np.testing.assert_allclose(sets.density, [8] * 10 + [0] * 50)
    assert set(sets.members[0][:10]) == set(range(10))
    np.testing.assert_allclose(sets.weights[0][:10], 10**-0.5)


@pytest.mark.parametrize("finest", [0.02, 1e-7])  # single precision, and double
def test_excess_counts_neighbours_beyond_those_among_re_pairings(finest):
    x, y = points(300, seed=4)
    y[:, :60] = x[:, :60] + 1
    tolerances = np.array([0.1, finest])
    excess = excess_of_neighbours(x, y, tolerances, np.random.default_rng(0))
    assert excess.shape == (300, 2)
    order = np.random.default_rng(0).permutation(300)
    partner = np.empty(300, dtype=int)
    partner[order] = np.roll(order, 1)
    for column, tolerance in enumerate(tolerances):
        in_x, in_y = (np.linalg.norm(p[:, :, None] - p[:, None, :], axis=0) for p in (x, y))
        other = in_y[:, partner]
        strangers = ((np.abs(in_x - other) <= tolerance) & (in_x + other > tolerance)).sum(axis=1)
        neighbours = dense_agreement(x, y, tolerance).sum(axis=1)
        exact = np.isclose(excess[:, column], (neighbours - strangers) / np.sqrt(strangers + 1))
        assert exact.mean() > 0.99 if finest == 0.02 else exact.all()
    assert excess[:60].mean() > excess[60:].mean() + 5


def scan(n: int = 400, n_real: int = 20, seed: int = 0):
    """Pairs of which the first few follow a motion, up to noise of 0.01, and that motion."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 1, size=(2, 3, n))
    rotation, shift = special_ortho_group.rvs(3, random_state=seed), rng.normal(size=3)
    y[:, :n_real] = rotation @ x[:, :n_real] + shift[:, None] + 0.01 * rng.normal(size=(3, n_real))
    return ColumnPairs(x, y, np.ones(n)), Maps(rotation[None], shift[None])


def chance_of(pairs: ColumnPairs) -> Chance:
    scales = Scales(RIGID, pairs, None, np.random.default_rng(0))
    return Chance(RIGID, lambda: scales.disagreements, pairs, 20_000)


def angle(first, second) -> float:
    return float(np.degrees(np.arccos(np.clip((np.trace(first.T @ second) - 1) / 2, -1, 1))))


def some_maps(seed: int = 1, count: int = 5) -> Maps:
    rng = np.random.default_rng(seed)
    return Maps(special_ortho_group.rvs(3, size=count, random_state=seed), 0.3 * rng.normal(size=(count, 3)))


def test_a_quick_look_finds_the_bound_of_the_best_score():
    pairs, motion = scan()
    chance, others = chance_of(pairs), some_maps()
    maps = Maps(np.concatenate([others.linear, motion.linear]), np.concatenate([others.shift, motion.shift]))
    bounds = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.2])
    found = RoughCandidates.at_their_best(chance, pairs, maps, bounds)
    for s in range(6):
        moved = maps.linear[s] @ pairs.x + maps.shift[s][:, None]
        own = np.linalg.norm(pairs.y - moved, axis=0)
        others_ = [np.linalg.norm(np.roll(pairs.y, -k, axis=1) - moved, axis=0) for k in (1, 2)]
        scores = {}
        for bound in bounds[s] * np.array([1, 0.5, 0.25, 0.125]):
            support = np.count_nonzero(own <= bound)
            by_chance = (sum(np.count_nonzero(other <= bound) for other in others_) + 1) / 801
            table = (np.array([[value]]) for value in (float(support), by_chance, bound))
            scores[bound] = chance.score(next(table), 400, *table, maps[s].stretch)[0, 0]
        assert found.scores[s] == pytest.approx(max(scores.values()))
        assert scores[found.bounds[s]] == pytest.approx(max(scores.values()))
    assert np.argmax(found.scores) == 5


def test_different_candidates_are_the_best_of_each_kind():
    maps = some_maps(count=3)
    near = Maps(maps.linear, maps.shift + 0.01)
    both = Maps(np.concatenate([maps.linear, near.linear]), np.concatenate([maps.shift, near.shift]))
    found = RoughCandidates(both, np.full(6, 0.05), np.array([3.0, 1.0, 2.0, 5.0, 6.0, 0.0]))
    np.testing.assert_array_equal(found.different(spread=1.0, most=6).scores, [6, 5, 2])
    np.testing.assert_array_equal(found.different(spread=1.0, most=2).scores, [6, 5])
    finer = RoughCandidates(both, np.full(6, 0.001), found.scores)
    np.testing.assert_array_equal(finer.different(spread=1.0, most=6).scores, [6, 5, 3, 2, 1, 0])


def test_a_candidate_is_fitted_to_the_pairs_within_its_bound():
    pairs, motion = scan(n_real=50)
    rough = Maps(np.repeat(motion.linear, 2, axis=0), motion.shift + np.array([[0.02], [9.0]]))
    found = RoughCandidates(rough, np.array([0.1, 0.1]), np.zeros(2)).fitted_again(RIGID, pairs)
    fitted, _ = pairs.fit_near(RIGID, rough[0], 0.1)
    np.testing.assert_array_equal(found.linear[0], fitted.linear[0])
    assert np.linalg.norm(found.shift[0] - motion.shift[0]) < np.linalg.norm(rough.shift[0] - motion.shift[0])
    np.testing.assert_array_equal(found.shift[1], rough.shift[1])  # hardly a pair lies near it


@pytest.mark.parametrize("n", [400, 1700])  # all are compared, or those with the most neighbours
def test_tight_sets_suggest_the_motion(n):
    pairs, motion = scan(n)
    maps, bounds = rough_maps(RIGID, pairs, 1.0, np.array([0.02, 0.05]), np.random.default_rng(0))
    assert len(maps) == 48
    np.testing.assert_allclose(bounds, np.repeat([0.03, 0.075], 24))
    assert min(angle(linear, motion.linear[0]) for linear in maps.linear) < 3


def test_too_few_pairs_suggest_nothing():
    pairs, _ = scan(2, 1)
    assert rough_maps(RIGID, pairs, 1.0, np.array([0.1]), np.random.default_rng(0)) is None


def test_all_pairs_are_worth_comparing_to_all_tolerances_unless_they_are_too_many():
    pairs, _ = scan(60, 30)
    tolerances, draws = np.array([0.02, 0.05]), np.random.default_rng(0)
    ((chosen, together),) = worth_comparing(pairs, 1.0, tolerances, RIGID, 60, draws)
    assert chosen is pairs
    assert together is tolerances
    one_by_one = list(worth_comparing(pairs, 1.0, tolerances, RIGID, 30, draws))
    np.testing.assert_array_equal([some for _, some in one_by_one], [[0.02], [0.05]])
    for chosen, _ in one_by_one:
        assert chosen.n_pairs == 30
        assert np.isin(chosen.x[0], pairs.x[0, :30]).mean() > 0.8  # the real ones have most neighbours


def test_about_the_origin_lengths_have_to_agree_too():
    pairs, motion = scan(200)
    turned = ColumnPairs(pairs.x, pairs.y - motion.shift[0][:, None], pairs.weights)
    ((chosen, _),) = worth_comparing(
        turned, 1.0, np.array([0.05]), MapModel("rotation", 3), 200, np.random.default_rng(0)
    )
    lengths = np.linalg.norm(turned.x, axis=0) - np.linalg.norm(turned.y, axis=0)
    np.testing.assert_array_equal(np.sort(chosen.x[0]), np.sort(turned.x[0, np.abs(lengths) <= 0.05]))
