from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from inlier import Registration

N_REAL, N_NEAR, N_WRONG = 600, 400, 1000


def problem(seed=0):
    """Points on a sphere; real partners 0.01 off, near misses some 0.06 and more beside them, others anywhere."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N_REAL + N_NEAR + N_WRONG, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    off = 0.01 * rng.normal(size=x.shape)
    off[N_REAL:] = 0.06 * rng.normal(size=(N_NEAR + N_WRONG, 3)) / np.abs(rng.normal(size=(N_NEAR + N_WRONG, 1)))
    y = Rotation.random(random_state=seed).apply(x + off)
    y[N_REAL + N_NEAR :] = rng.permutation(y[N_REAL + N_NEAR :])
    return x, y


REAL = np.arange(N_REAL + N_NEAR + N_WRONG) < N_REAL


@pytest.mark.parametrize("seed", range(3))
def test_tight_pairs_are_real_and_near_misses_are_not(seed):
    found = Registration(random_state=seed).fit(*problem(seed))
    residuals, near = found.residuals_, found.near_miss_mask_
    assert found.noise_bound_ < 0.06
    assert residuals[found.inlier_mask_].max() < 0.06
    assert found.inlier_mask_[REAL].mean() > 0.95
    assert not (near & found.inlier_mask_).any()
    assert near[N_REAL : N_REAL + N_NEAR].mean() > 0.5
    assert near[REAL].mean() < 0.05
    assert (found.q_values_[near] >= 1 / 4).all()
    assert found.inlier_fraction_ == pytest.approx(found.inlier_mask_.mean(), abs=0.03)
    assert found.inlier_fraction_ == pytest.approx(REAL.mean(), abs=3 * found.inlier_fraction_error_)


def test_a_given_bound_is_kept():
    x, y = problem()
    found = Registration(noise_bound=0.1, random_state=0).fit(x, y)
    assert found.noise_bound_ == 0.1
    np.testing.assert_array_equal(found.inlier_mask_, found.residuals_ <= 0.1)
    assert found.near_miss_mask_.any()
    assert found.residuals_[found.near_miss_mask_].min() > 0.1
    assert found.false_discovery_rate_ < 0.5


def test_copies_get_the_same_answer():
    x, y = problem()
    twice = np.repeat(np.arange(len(x)), 2)
    found = Registration(random_state=0).fit(x[twice], y[twice])
    assert found.near_miss_mask_.any()
    np.testing.assert_array_equal(found.near_miss_mask_[::2], found.near_miss_mask_[1::2])


def test_none_where_nothing_is_found_or_all_is_plain():
    x, y = problem()
    nothing = Registration(raise_on_failure=False, random_state=0).fit(
        x, np.random.default_rng(99).normal(size=x.shape)
    )
    assert nothing.near_miss_mask_.shape == (len(x),)
    assert not nothing.near_miss_mask_.any()
    plain = np.r_[0:N_REAL, N_REAL + N_NEAR : len(x)]
    assert not Registration(random_state=0).fit(x[plain], y[plain]).near_miss_mask_.any()
