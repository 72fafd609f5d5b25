"""CalibratedMatcher on tables as people have them: groups, strata and gaps."""

import warnings

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.exceptions import ParameterError


@pytest.fixture(scope="module")
def data():
    return make_gaussian_pairs(n=300, d=8, inlier_fraction=0.7, noise=0.1, rng=0)


def test_one_stratum_and_groups_of_one_change_nothing_that_matters(data):
    plain = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    labelled = CalibratedMatcher(random_state=0).fit(data.X, data.Y, groups=np.arange(300), strata=["a"] * 300)
    assert (plain.inlier_mask_ != labelled.inlier_mask_).mean() < 0.02
    assert labelled.inlier_fraction_ == pytest.approx(plain.inlier_fraction_, abs=0.05)


def test_labels_of_any_kind_are_taken(data):
    names = np.array([f"plate {k % 5}" for k in range(300)], dtype=object)
    by_name = CalibratedMatcher(random_state=0).fit(data.X, data.Y, strata=names)
    by_number = CalibratedMatcher(random_state=0).fit(data.X, data.Y, strata=[k % 5 for k in range(300)])
    assert (by_name.q_values_ == by_number.q_values_).all()


@pytest.mark.parametrize(
    ("labels", "facts"),
    [
        ({"strata": range(300)}, "different for every pair"),
        ({"strata": [1, 2]}, r"\(2,\)"),
        ({"groups": np.repeat([0, 1, 2], 100)}, "3 group"),
        ({"groups": [*[1.0] * 299, np.nan]}, "row 299"),
        ({"groups": np.array([*"ab" * 149, "c", None], dtype=object)}, "row 299"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(data, labels, facts):
    with pytest.raises(ParameterError, match=facts):
        CalibratedMatcher().fit(data.X, data.Y, **labels)


def test_gaps_cost_some_power_and_not_the_promise():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(400, 5))
    X = latent @ rng.normal(size=(5, 15)) + 0.3 * rng.normal(size=(400, 15))
    Y = latent @ rng.normal(size=(5, 20)) + 0.3 * rng.normal(size=(400, 20))
    partner = np.arange(400)
    wrong = rng.permutation(400)[:80]
    partner[wrong] = np.roll(wrong, 1)
    real, Y = partner == np.arange(400), Y[partner]
    whole = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, Y)
    for table in (X, Y):
        table[rng.uniform(size=table.shape) < 0.2] = np.nan
    X[3] = np.nan
    with pytest.warns(UserWarning, match="without any value"):
        gaps = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, Y)
    assert (gaps.inlier_mask_ & real).sum() >= 0.9 * (whole.inlier_mask_ & real).sum()
    assert (gaps.inlier_mask_ & ~real).sum() <= 0.08 * gaps.inlier_mask_.sum()
    assert gaps.q_values_[3] == 1
    assert not gaps.inlier_mask_[3]


def test_infinity_is_still_refused(data):
    X = data.X.copy()
    X[2, 1] = np.inf
    with pytest.raises(ParameterError, match="row 2, column 1"):
        CalibratedMatcher().fit(X, data.Y)


def test_a_code_or_one_absurd_row_does_not_hide_the_others(data):
    X, Y = data.X.copy(), data.Y.copy()
    real = data.inlier_mask
    X[np.random.default_rng(0).uniform(size=X.shape) < 0.01] = -9999
    Y[5] = 1e9
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matcher = CalibratedMatcher(random_state=0).fit(X, Y)
    said = " ".join(str(warning.message) for warning in caught)
    assert "-9999" in said
    assert "1e+09" in said
    assert "without any value" in said
    assert (matcher.inlier_mask_ & real).sum() > 0.8 * real.sum()
    assert not matcher.inlier_mask_[5]
