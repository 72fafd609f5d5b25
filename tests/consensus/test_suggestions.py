from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import special_ortho_group

from inlier.consensus.crowding import Crowding
from inlier.consensus.draws import Draws
from inlier.consensus.evidence import Chance
from inlier.consensus.models import MapModel, Maps
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.scales import Scales, closest_friends
from inlier.consensus.suggestions import QuickLook, Suggestions, maps_of_circles

RIGID = MapModel("rigid", 3)


def scan(n: int = 400, n_real: int = 20, seed: int = 0):
    """Pairs of which the first few follow a motion, up to noise of 0.01, and that motion."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 1, size=(2, 3, n))
    rotation, shift = special_ortho_group.rvs(3, random_state=seed), rng.normal(size=3)
    y[:, :n_real] = rotation @ x[:, :n_real] + shift[:, None] + 0.01 * rng.normal(size=(3, n_real))
    return ColumnPairs(x, y, np.ones(n)), Maps(rotation[None], shift[None])


def chance_of(pairs: ColumnPairs) -> Chance:
    scales = Scales(RIGID, pairs, None, Draws(0))
    return Chance(RIGID, scales.disagreements, Crowding(pairs))


def angle(first, second) -> float:
    return float(np.degrees(np.arccos(np.clip((np.trace(first.T @ second) - 1) / 2, -1, 1))))


def some_maps(seed: int = 1, count: int = 5) -> Maps:
    rng = np.random.default_rng(seed)
    return Maps(special_ortho_group.rvs(3, size=count, random_state=seed), 0.3 * rng.normal(size=(count, 3)))


def test_a_quick_look_finds_the_bound_of_the_largest_surprise():
    pairs, motion = scan()
    chance, others = chance_of(pairs), some_maps()
    maps = Maps(np.concatenate([others.linear, motion.linear]), np.concatenate([others.shift, motion.shift]))
    bounds = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.2])
    found = QuickLook(chance, pairs)(maps, bounds)
    for s in range(6):
        moved = maps.linear[s] @ pairs.x + maps.shift[s][:, None]
        own = np.linalg.norm(pairs.y - moved, axis=0)
        others_ = [np.linalg.norm(np.roll(pairs.y, -k, axis=1) - moved, axis=0) for k in (1, 2)]
        surprises = {}
        for bound in bounds[s] * np.array([1, 0.5, 0.25, 0.125]):
            support = np.count_nonzero(own <= bound)
            by_chance = (sum(np.count_nonzero(other <= bound) for other in others_) + 1) / 801
            table = (np.array([[value]]) for value in (float(support), by_chance, bound))
            surprises[bound] = chance.surprise(next(table), 400, *table, maps[s])[0, 0]
        assert found.promise[s] == pytest.approx(max(surprises.values()))
        assert surprises[found.bounds[s]] == pytest.approx(max(surprises.values()))
    assert np.argmax(found.promise) == 5


def test_different_suggestions_are_the_most_promising_of_each_kind():
    maps = some_maps(count=3)
    near = Maps(maps.linear, maps.shift + 0.01)
    both = Maps(np.concatenate([maps.linear, near.linear]), np.concatenate([maps.shift, near.shift]))
    found = Suggestions(both, np.full(6, 0.05), np.array([3.0, 1.0, 2.0, 5.0, 6.0, 0.0]))
    np.testing.assert_array_equal(found.different(spread=1.0, most=6).promise, [6, 5, 2])
    np.testing.assert_array_equal(found.different(spread=1.0, most=2).promise, [6, 5])
    finer = Suggestions(both, np.full(6, 0.001), found.promise)
    np.testing.assert_array_equal(finer.different(spread=1.0, most=6).promise, [6, 5, 3, 2, 1, 0])


def test_a_suggestion_is_fitted_to_the_pairs_within_its_bound():
    pairs, motion = scan(n_real=50)
    rough = Maps(np.repeat(motion.linear, 2, axis=0), motion.shift + np.array([[0.02], [9.0]]))
    found = Suggestions(rough, np.array([0.1, 0.1]), np.zeros(2)).fitted_again(RIGID, pairs)
    fitted, _ = pairs.fit_near(RIGID, rough[0], 0.1)
    np.testing.assert_array_equal(found.linear[0], fitted.linear[0])
    assert np.linalg.norm(found.shift[0] - motion.shift[0]) < np.linalg.norm(rough.shift[0] - motion.shift[0])
    np.testing.assert_array_equal(found.shift[1], rough.shift[1])  # hardly a pair lies near it


@pytest.mark.parametrize("n", [400, 1700])  # all are compared, or those with the most friends
def test_tight_circles_suggest_the_motion(n):
    pairs, motion = scan(n)
    maps, bounds = maps_of_circles(RIGID, pairs, 1.0, np.array([0.02, 0.05]), Draws(0))
    assert len(maps) == 48
    np.testing.assert_allclose(bounds, np.repeat([0.03, 0.075], 24))
    assert min(angle(linear, motion.linear[0]) for linear in maps.linear) < 3


def test_too_few_pairs_suggest_nothing():
    pairs, _ = scan(2, 1)
    assert maps_of_circles(RIGID, pairs, 1.0, np.array([0.1]), Draws(0)) is None


def test_all_pairs_are_worth_comparing_to_all_tolerances_unless_they_are_too_many():
    pairs, _ = scan(60, 30)
    tolerances, draws = np.array([0.02, 0.05]), Draws(0)
    ((chosen, together),) = closest_friends(pairs, 1.0, tolerances, RIGID, 60, draws)
    assert chosen is pairs
    assert together is tolerances
    one_by_one = list(closest_friends(pairs, 1.0, tolerances, RIGID, 30, draws))
    np.testing.assert_array_equal([some for _, some in one_by_one], [[0.02], [0.05]])
    for chosen, _ in one_by_one:
        assert chosen.n_pairs == 30
        assert np.isin(chosen.x[0], pairs.x[0, :30]).mean() > 0.8  # the real ones have most friends


def test_about_the_origin_lengths_have_to_agree_too():
    pairs, motion = scan(200)
    turned = ColumnPairs(pairs.x, pairs.y - motion.shift[0][:, None], pairs.weights)
    ((chosen, _),) = closest_friends(turned, 1.0, np.array([0.05]), MapModel("rotation", 3), 200, Draws(0))
    lengths = np.linalg.norm(turned.x, axis=0) - np.linalg.norm(turned.y, axis=0)
    np.testing.assert_array_equal(np.sort(chosen.x[0]), np.sort(turned.x[0, np.abs(lengths) <= 0.05]))
