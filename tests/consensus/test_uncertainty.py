from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from inlier import Registration
from inlier.consensus.uncertainty import _movements

X = Rotation.random(5000, random_state=0).apply([0.4, 0.0, 0.0])
TURN, SHIFT = Rotation.from_euler("xyz", [70, -30, 110], degrees=True), np.array([0.3, -0.5, 0.1])


def jacobian(arm, has_shift, has_scale):
    """Movement of one point by small turns, shifts and a stretch, one after the other."""
    turns = [[[0, -1], [1, 0]]]
    if arm.size == 3:
        turns = [
            [[0, 0, 0], [0, 0, -1], [0, 1, 0]],
            [[0, 0, 1], [0, 0, 0], [-1, 0, 0]],
            [[0, -1, 0], [1, 0, 0], [0] * 3],
        ]
    moves = [np.array(turn) @ arm for turn in turns]
    moves += list(np.eye(arm.size)) if has_shift else []
    moves += [arm] if has_scale else []
    return np.array(moves).T


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize(("has_shift", "has_scale"), [(True, False), (True, True), (False, False)])
def test_movements_of_points(d, has_shift, has_scale):
    arms = np.random.default_rng(d).normal(size=(40, d))
    expected = [jacobian(arm, has_shift, has_scale) for arm in arms]
    np.testing.assert_allclose(_movements(arms, has_shift, has_scale), expected, atol=1e-12)


def errors_in_claimed_ones(n_real, n, weights=None, draws=60):
    """Errors of turns and shifts over their standard errors, in draws of fresh noise; and how many had none."""
    ratios, without = [], 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        x = X[:n]
        y = TURN.apply(x) + SHIFT + 0.01 * rng.normal(size=x.shape)
        y[n_real:] = SHIFT + rng.uniform(-0.5, 0.5, (n - n_real, 3))
        found = Registration(random_state=seed).fit(x, y, sample_weight=weights)
        if found.uncertainty_ is None:
            without += 1
            continue
        turned = Rotation.from_matrix(found.transformation_.rotation) * TURN.inv()
        ratios.append(np.degrees(turned.as_rotvec()) / found.uncertainty_.rotation)
        ratios.append((found.transformation_.translation - SHIFT) / found.uncertainty_.translation)
    return float(np.sqrt(np.mean(np.square(ratios)))), without


@pytest.mark.filterwarnings("ignore:The transformation is sure, but")
@pytest.mark.parametrize(("n_real", "n"), [(120, 300), (12, 40), (10, 10)])
def test_standard_errors_of_few_pairs_are_not_too_small(n_real, n):
    ratio, without = errors_in_claimed_ones(n_real, n)
    assert 0.75 < ratio < 1.35
    assert without <= 6


@pytest.mark.parametrize("n", [100, 5000])
def test_a_few_pairs_that_outweigh_all_others_decide_on_the_errors(n):
    weights = np.where(np.arange(n) % (n // 20) == 3, 1e6, 1.0)
    ratio, without = errors_in_claimed_ones(n, n, weights, draws=20)
    assert 0.75 < ratio < 1.35
    assert without == 0


@pytest.mark.parametrize(("n_heavy", "light"), [(3, 0.0), (4, 0.0), (4, 1e-6)])
def test_where_hardly_more_pairs_count_than_fix_the_motion_there_are_no_errors(n_heavy, light):
    weights = np.where(np.arange(100) < n_heavy, 1.0, light)
    y = TURN.apply(X[:100]) + SHIFT + 0.01 * np.random.default_rng(0).normal(size=(100, 3))
    assert Registration(random_state=0).fit(X[:100], y, sample_weight=weights).uncertainty_ is None


@pytest.mark.parametrize("unit", [2.0**-150, 2.0**40, 2.0**150])
def test_units_do_not_matter(unit):
    y = TURN.apply(X[:300]) + SHIFT + 0.01 * np.random.default_rng(0).normal(size=(300, 3))
    expected = Registration(random_state=0).fit(X[:300], y).uncertainty_
    found = Registration(random_state=0).fit(unit * X[:300], unit * y).uncertainty_
    np.testing.assert_allclose(found.rotation, expected.rotation)
    np.testing.assert_allclose(found.translation, unit * expected.translation)
