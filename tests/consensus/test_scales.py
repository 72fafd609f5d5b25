from __future__ import annotations

import numpy as np

from inlier.consensus.draws import Draws
from inlier.consensus.models import MapModel
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.scales import Scales

BOUND = 0.02


def tolerances(noise_bound):
    x, y = np.random.default_rng(0).uniform(size=(2, 3, 500))
    scales = Scales(MapModel("rigid", 3), ColumnPairs(x, y, np.ones(500)), noise_bound, Draws(0))
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
