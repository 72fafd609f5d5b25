from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import special_ortho_group

from inlier.consensus.draws import Draws
from inlier.consensus.models import MapModel, Maps
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.search import ConsensusSearch

RIGID = MapModel("rigid", 3)


def searched(n: int, n_real: int, seed: int = 0):
    """A search among pairs of which some follow a motion, up to noise of 0.01, and that motion."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 1, size=(2, 3, n))
    real = rng.permutation(n)[:n_real]
    rotation, shift = special_ortho_group.rvs(3, random_state=seed), 0.1 * rng.normal(size=3)
    y[:, real] = rotation @ x[:, real] + shift[:, None] + 0.01 * rng.normal(size=(3, n_real))
    search = ConsensusSearch(RIGID, ColumnPairs(x, y, np.ones(n)), None, Draws(seed))
    return search, Maps(rotation[None], shift[None])


@pytest.mark.parametrize(("n", "n_real"), [(100, 12), (1000, 15), (6000, 60)])
def test_agreement_finds_the_motion_that_few_pairs_follow(n, n_real):
    search, motion = searched(n, n_real)
    start = search._refine(Maps(-motion.linear, motion.shift))
    found = search._from_agreement(n, start)
    assert np.abs(found.map.linear - motion.linear).max() < 0.05
    assert found.evidence.n_supporting >= 0.6 * n_real * search._judges.n_pairs / n


def test_a_sure_map_tells_how_large_a_sample_should_be():
    search, motion = searched(2000, 100)
    sure = search._refine(motion)
    size = search._telling_size(sure, 5000)
    assert search._independent_members(sure, size - 1) < 19 <= search._independent_members(sure, size)
    unsure = search._refine(Maps(-motion.linear, motion.shift))
    assert search._independent_members(unsure, 1000) == 0
    assert search._telling_size(unsure, 5000) == 5000
    assert search._telling_size(unsure, 64_000) == 16_000


def test_of_what_was_found_on_all_pairs_the_broadest_is_best():
    search, motion = searched(6000, 300)
    right = search._on_all_pairs(search._refine(motion))
    wrong = search._on_all_pairs(search._refine(Maps(-motion.linear, motion.shift)))
    favoured_by_a_part = [replace(right, breadth=1.0), replace(wrong, breadth=9.0)]
    assert search._best_of_all(favoured_by_a_part).map is right.map
    assert search._best_of_all(favoured_by_a_part[1:]).map is wrong.map


def test_starting_from_coarser_fits_loses_nothing():
    search, motion = searched(300, 10)
    found = search._refine(motion)
    assert found.evidence.log_false_alarms > -40
    again = search._from_coarser_fits(found)
    assert (again.breadth, again.evidence.surprise) >= (found.breadth, found.evidence.surprise)
    ample, motion = searched(300, 100)
    found = ample._refine(motion)
    assert ample._from_coarser_fits(found) is found  # beyond doubt
