"""What `Registration` promises, over draws: a right answer fails about once in a million seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import binom, norm

from inlier import Registration

pytestmark = pytest.mark.seeds

NEVER = 1e-6  # chance that one test fails though all is right
NOISE = 0.01
ONCE_IN = 1000  # problems of pure noise: what is reported there is a mistake


def scan(n, wrong, rng):
    """Points of a bumpy ball of size 1, turned and moved; of ``wrong`` of them, the partner lies anywhere."""
    direction = rng.normal(size=(n, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    X = direction * (0.35 + 0.1 * np.sin(3 * direction[:, :1]) + 0.05 * direction[:, 1:2])
    turn, shift = Rotation.random(random_state=np.random.RandomState(rng.integers(2**31))), rng.uniform(-1, 1, 3)
    y = turn.apply(X) + shift + NOISE * rng.normal(size=X.shape)
    n_wrong = round(wrong * n)
    y[:n_wrong] = shift + rng.uniform(-0.5, 0.5, (n_wrong, 3))
    return X, y, turn, shift


@pytest.mark.parametrize(("n", "wrong"), [(1000, 0.95), (300, 0.85), (5000, 0.98)])
def test_the_motion_is_found_among_wrong_pairs(seed, note, promise, n, wrong):
    """With so many real pairs (45 to 100) a method that finds the motion finds it every time."""
    angles, shifts, accepted, mistakes = [], [], 0, 0
    for draw in range(10):
        X, y, turn, shift = scan(n, wrong, np.random.default_rng([seed, draw, n]))
        found = Registration(random_state=seed).fit(X, y)
        angles.append(np.degrees((Rotation.from_matrix(found.transformation_.rotation) * turn.inv()).magnitude()))
        shifts.append(np.linalg.norm(found.transformation_.translation - shift))
        agrees = np.linalg.norm(y - turn.apply(X) - shift, axis=1) < 6 * NOISE
        accepted += found.inlier_mask_.sum()
        mistakes += (found.inlier_mask_ & ~agrees).sum()
    promise("wrong among the accepted", mistakes, accepted, 0.01)
    note(largest_turn_in_degrees=max(angles), largest_shift=max(shifts), wrong_accepted=mistakes / accepted)
    assert max(angles) < 5
    assert max(shifts) < 5 * NOISE
    assert mistakes <= 0.01 * accepted + norm.isf(NEVER) * np.sqrt(0.01 * accepted)


@pytest.mark.parametrize("n", [20, 100, 400])
@pytest.mark.parametrize("kind", ["anywhere", "re-paired"])
def test_noise_is_refused(seed, note, promise, n, kind):
    draws, smallest = 20, 1.0
    found = 0
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw, n])
        X, y, _, _ = scan(n, 1.0 if kind == "anywhere" else 0.0, rng)
        y = y if kind == "anywhere" else np.roll(y[rng.permutation(n)], 1, axis=0)
        registration = Registration(raise_on_failure=False, random_state=seed).fit(X, y)
        found += registration.success_
        smallest = min(smallest, registration.detection_p_value_)
    note(found=found, smallest_p=smallest)
    promise("motions claimed in noise", found, draws, 1 / ONCE_IN)
    assert found <= binom.isf(NEVER, draws, 1 / ONCE_IN)


@pytest.mark.parametrize(("n", "wrong"), [(300, 0.4), (2000, 0.8)])
def test_errors_of_the_motion_are_as_large_as_their_standard_errors(seed, note, promise, n, wrong):
    off = []
    for draw in range(20):
        X, y, turn, shift = scan(n, wrong, np.random.default_rng([seed, draw, n]))
        found = Registration(random_state=seed).fit(X, y)
        turned = Rotation.from_matrix(found.transformation_.rotation) * turn.inv()
        off.append(np.degrees(turned.as_rotvec()) / found.uncertainty_.rotation)
        off.append((found.transformation_.translation - shift) / found.uncertainty_.translation)
    size = np.sqrt(np.mean(np.square(off)))  # of 120 numbers, that are nearly independent: 1 +- 0.07
    note(error_over_standard_error=size)
    promise("errors beyond two standard errors", np.sum(np.abs(off) > 2), np.size(off), norm.sf(2) * 2)
    assert 0.65 < size < 1.4
