"""Which of two motions the finest points prefer: a box after half a turn says nothing, a box with a dent does."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.clouds.refinement import Motion
from inlier.clouds.rivals import FineLook
from inlier.clouds.surfaces import Grid

HALF_A_TURN = np.diag([-1.0, -1.0, 1.0])
STAYS, TURNED = (Motion(rotation, np.zeros(3)) for rotation in (np.eye(3), HALF_A_TURN))


def box(rng, n, waves=0.0):
    """The faces of a box; one long side waves."""
    points, face = rng.uniform(-0.5, 0.5, (n, 3)), rng.integers(0, 6, n)
    points[np.arange(n), face // 2] = face % 2 - 0.5
    points *= [4, 3, 2]
    side = face == 3
    points[side, 1] += waves * (np.sin(3 * points[side, 0]) + np.cos(4 * points[side, 2]))
    return points + 0.003 * rng.normal(size=points.shape)


def look(waves):
    rng = np.random.default_rng(0)
    return FineLook((*(Grid.of(box(rng, 40_000, waves), box(rng, 40_000, waves), n) for n in (6_000, 20_000)),), False)


@pytest.mark.parametrize(("waves", "is_told"), [(0.0, False), (0.15, True)])
def test_the_finest_points_tell_what_the_scene_tells(waves, is_told):
    looked = look(waves)
    assert looked.prefers(STAYS, TURNED) == is_told
    assert not looked.prefers(TURNED, STAYS)
    assert not looked.prefers(STAYS, STAYS)
