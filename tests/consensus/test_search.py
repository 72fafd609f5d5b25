from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import special_ortho_group

from inlier.consensus.find import find_consensus
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.search import AgreementSearch, Setting, as_generator
from inlier.transforms.least_squares import MapModel, Maps

RIGID = MapModel("rigid", 3)


def drawn(n: int, n_real: int, seed: int = 0):
    """Pairs of which some follow a motion, up to noise of 0.01, and that motion."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 1, size=(2, 3, n))
    real = rng.permutation(n)[:n_real]
    rotation, shift = special_ortho_group.rvs(3, random_state=seed), 0.1 * rng.normal(size=3)
    y[:, real] = rotation @ x[:, real] + shift[:, None] + 0.01 * rng.normal(size=(3, n_real))
    return x, y, Maps(rotation[None], shift[None])


def searched(n: int, n_real: int, seed: int = 0):
    """A search among such pairs, where maps are weighed, and the motion."""
    x, y, motion = drawn(n, n_real, seed)
    setting = Setting(RIGID, ColumnPairs(x, y, np.ones(n)), None, np.random.default_rng(seed))
    stage = setting.stage()
    return AgreementSearch(setting, stage), stage, motion


@pytest.mark.parametrize(("n", "n_real"), [(100, 12), (1000, 15), (6000, 60)])
def test_agreement_finds_the_motion_that_few_pairs_follow(n, n_real):
    search, stage, motion = searched(n, n_real)
    found = search.run(stage.refined(Maps(-motion.linear, motion.shift)))
    assert np.abs(found.map.linear - motion.linear).max() < 0.05
    assert found.evidence.n_supporting >= 0.6 * n_real * found.evidence.n_pairs / n


def test_a_sure_map_tells_how_large_a_sample_should_be():
    search, stage, motion = searched(2000, 100)
    sure = stage.refined(motion)
    size = search._telling_size(sure, 5000)
    assert search._independent_share(sure) * (size - 1) < 19 <= search._independent_share(sure) * size
    unsure = stage.refined(Maps(-motion.linear, motion.shift))
    assert search._independent_share(unsure) == 0
    assert search._telling_size(unsure, 5000) == 5000
    assert search._telling_size(unsure, 64_000) == 16_000


def test_of_what_was_found_on_all_pairs_the_one_with_most_places_is_best():
    search, stage, motion = searched(6000, 300)
    right = stage.on_all_pairs(stage.refined(motion))
    wrong = stage.on_all_pairs(stage.refined(Maps(-motion.linear, motion.shift)))
    favoured_by_a_part = [replace(right, place_score=1.0), replace(wrong, place_score=9.0)]
    assert search._best_of(favoured_by_a_part).map is right.map
    assert search._best_of(favoured_by_a_part[1:]).map is wrong.map


def test_coarser_fits_are_tried_only_where_evidence_is_scarce():
    _, stage, motion = searched(300, 10)
    found = stage.refined(motion)
    assert found.evidence.log_false_alarms > -40
    assert len(list(stage.coarser_fits(stage.sample, found))) == 2
    _, stage, motion = searched(300, 100)
    assert not list(stage.coarser_fits(stage.sample, stage.refined(motion)))


def test_samples_follow_the_weights_and_come_in_random_order():
    x, y, _ = drawn(5000, 100)
    x[0] = np.arange(5000.0)  # says which pair it is
    weights = np.where(np.arange(5000) < 2500, 0.0, 1.0)
    weights[:10] = 0.5
    sample = Setting(RIGID, ColumnPairs(x, y, weights), None, np.random.default_rng(0)).sample(2000)
    assert np.unique(sample.x[0]).size == sample.n_pairs == 2000
    assert (sample.weights > 0).all()
    assert abs(np.corrcoef(sample.x[0], np.arange(2000))[0, 1]) < 0.1


@pytest.mark.parametrize("n", [60, 3000])
def test_the_same_state_gives_the_same_map(n):
    x, y, _ = drawn(n, n // 4)
    first, again, generator, state = (
        find_consensus(RIGID, x.T, y.T, np.ones(n), None, 0.01, random_state).map.linear
        for random_state in (7, 7, np.random.default_rng(7), np.random.RandomState(7))
    )
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, generator)
    np.testing.assert_allclose(first, state, atol=0.02)


def test_a_number_a_state_a_generator_or_none():
    assert as_generator(7).integers(10**6) == as_generator(np.int64(7)).integers(10**6)
    state = np.random.RandomState(0)
    first, second = (as_generator(state).integers(10**9) for _ in range(2))
    assert first != second  # a state goes on
    assert as_generator(np.random.RandomState(0)).integers(10**9) == first
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator
    own = np.random.mtrand._rand  # what None stands for
    own.seed(3)
    first = as_generator(None).integers(10**9)
    own.seed(3)
    assert as_generator(None).integers(10**9) == first
    for wrong in ("seven", -1, 1.5):
        with pytest.raises(ValueError, match=r"seed|non-negative"):
            as_generator(wrong)
