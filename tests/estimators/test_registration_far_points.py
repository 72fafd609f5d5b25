"""One absurd row (a code for a missing number, a slip of a decimal point) does not hide the other pairs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import special_ortho_group

from inlier import Registration
from inlier.exceptions import NoConsensusError

NOTE = "over a thousand times as far from the others as is typical, the first in row 17"


def moved(seed=0, wrong=0.0, n=1000):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X @ special_ortho_group.rvs(3, random_state=seed).T + 0.5 + 0.01 * rng.normal(size=X.shape)
    rows = rng.permutation(np.r_[:17, 18:n])[: round(wrong * n)]
    y[rows] = y[np.roll(rows, 1)]
    return X, y


@pytest.mark.parametrize("value", [1e5, 1e9, -9999.0, 1e12])
@pytest.mark.parametrize("sides", ["x", "y", "xy"])
def test_all_other_pairs_are_found(value, sides):
    X, y = moved()
    for side, table in (("x", X), ("y", y)):
        if side in sides:
            table[17] = value
    with pytest.warns(UserWarning, match=NOTE) as said:
        registration = Registration(random_state=0).fit(X, y)
    assert len(said) == 1
    assert np.flatnonzero(~registration.inlier_mask_).tolist() == [17]
    assert registration.q_values_[17] == registration.p_values_[17] == 1
    assert registration.residuals_[17] == pytest.approx(
        np.linalg.norm(registration.transformation_(X[17:18]) - y[17:18]), rel=1e-9
    )
    np.testing.assert_array_equal(registration.scores_ >= registration.threshold_, registration.inlier_mask_)


@pytest.mark.parametrize("model", ["rigid", "similarity", "affine"])
def test_the_answer_is_that_without_the_row(model):
    X, y = moved(1, wrong=0.6)
    others = np.arange(1000) != 17
    there = Registration(model, random_state=0).fit(X[others], y[others])
    y[17] = 1e9
    with pytest.warns(UserWarning, match=NOTE):
        here = Registration(model, random_state=0).fit(X, y)
    for name in ("inlier_mask_", "q_values_", "p_values_", "residuals_", "near_miss_mask_", "scores_"):
        np.testing.assert_array_equal(getattr(here, name)[others], getattr(there, name), err_msg=name)
    if model == "affine":  # for which none is stated
        assert here.uncertainty_ is None
    else:
        np.testing.assert_allclose(here.uncertainty_.covariance, there.uncertainty_.covariance, rtol=1e-6)
    assert not here.inlier_mask_[17]


def test_where_nothing_is_found_the_row_is_no_exception():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2, 200, 3))
    X[17] = 1e9
    with pytest.warns(UserWarning, match=NOTE):
        registration = Registration(raise_on_failure=False, random_state=0).fit(X, y)
    assert not registration.success_
    assert registration.inlier_mask_.shape == registration.q_values_.shape == (200,)
    assert np.isnan(registration.residuals_).all()
    assert (registration.scores_ < registration.threshold_).all()
    with pytest.warns(UserWarning, match=NOTE), pytest.raises(NoConsensusError, match="The 199 pairs"):
        Registration(random_state=0).fit(X, y)


def test_pairs_that_are_listed_twice_beside_it():
    X, y = moved(2, wrong=0.3, n=300)
    X, y = np.vstack([X, X[:40]]), np.vstack([y, y[:40]])
    X[17], y[317] = 1e9, 1e9
    with pytest.warns(UserWarning, match="2 of the 340 pairs have a point " + NOTE):
        registration = Registration(random_state=0).fit(X, y)
    np.testing.assert_array_equal(registration.inlier_mask_[300:317], registration.inlier_mask_[:17])
    assert not registration.inlier_mask_[[17, 317]].any()


def test_where_only_the_far_pair_has_weight_it_stays():
    X, y = moved(n=50)
    X[17] = 1e9
    weights = np.zeros(50)
    weights[17] = 1
    registration = Registration(raise_on_failure=False, random_state=0).fit(X, y, sample_weight=weights)
    assert not registration.success_


def test_sound_points_get_no_note():
    X, y = moved()
    Registration(random_state=0).fit(1e6 * X, 1e6 * y)
