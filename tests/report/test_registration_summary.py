from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import special_ortho_group

from inlier import Registration
from inlier.datasets import make_gaussian_pairs, make_scans
from inlier.report import summarise_registration
from inlier.report.registration_summary import errors_in_words

SCANS = make_scans(600, 200, 0.5, rng=0)
X, Y = SCANS.source[SCANS.pairs[:, 0]], SCANS.target[SCANS.pairs[:, 1]]


@pytest.fixture(scope="module")
def fitted():
    return Registration(random_state=0).fit(X, Y)


def test_columns_in_order(fitted):
    summary = summarise_registration(fitted, keys=[f"s{row}" for row in range(200)], ends=tuple(SCANS.pairs.T))
    names = ["row", "key", "source", "target", "residual", "p_value", "q_value", "inlier", "near_miss"]
    assert list(summary.columns()) == names
    np.testing.assert_array_equal(summary.columns()["residual"], fitted.residuals_)
    assert summary.worst(1)[0]["residual"] == fitted.residuals_.max()


def test_a_bound_that_was_given_decides():
    with pytest.warns(UserWarning, match="not sure in a turn about an axis"):  # so wide a bound leaves it open
        registration = Registration(noise_bound=0.8, random_state=0).fit(X, Y)
    summary = summarise_registration(registration)
    assert "Pairs agree if they come within 0.8, the bound that was given." in summary.details
    assert not any("expected to be wrong" in sentence for sentence in summary.details)


def test_pairs_that_were_accepted_beyond_alpha_are_not_promised(fitted):
    registration = Registration(random_state=0).fit(X, Y)
    registration.false_discovery_rate_ = 0.124
    sentences = summarise_registration(registration).details
    assert any(sentence.startswith("Some 12.4 % of them are expected to be wrong") for sentence in sentences)
    assert any("At most 1 % of them" in sentence for sentence in summarise_registration(fitted).details)


@pytest.mark.parametrize(("n", "words"), [(2, "2 pairs are near misses: up to"), (1, "1 pair is a near miss: up to")])
def test_near_misses_are_counted(fitted, n, words):
    assert not any("near miss" in sentence for sentence in summarise_registration(fitted).details)
    registration = Registration(random_state=0).fit(X, Y)
    registration.near_miss_mask_ = np.arange(200) < n
    summary = summarise_registration(registration)
    assert sum(sentence.startswith(words) for sentence in summary.details) == 1
    assert summary.to_dict()["transformation"]["n_near_misses"] == n
    assert summary.columns()["near_miss"].sum() == n


def test_standard_errors_where_they_are_stated(fitted):
    registration = Registration(random_state=0).fit(X, Y)
    registration.uncertainty_ = None
    assert summarise_registration(registration).to_dict()["transformation"]["standard_errors"] is None
    registration.uncertainty_ = SimpleNamespace(rotation=np.full(3, 0.1), translation=np.ones(3), scale=0.0)
    summary = summarise_registration(registration)
    assert summary.details[1] == "Standard errors: 0.1 degrees, (1, 1, 1) in the translation."
    assert summary.to_dict()["transformation"]["standard_errors"]["degrees"] == [0.1] * 3


def test_no_single_pair(fitted):
    registration = Registration(random_state=0).fit(X, Y)
    registration.inlier_mask_ = np.zeros(200, dtype=bool)
    registration.q_values_ = np.ones(200)
    assert summarise_registration(registration).answer == (
        "The 200 pairs agree on one rigid motion, but no single one of them can be called real."
    )


def test_where_nothing_was_found():
    noise = np.random.default_rng(3).normal(size=X.shape)
    summary = summarise_registration(Registration(random_state=0, raise_on_failure=False).fit(X, noise))
    assert summary.answer == "The 200 pairs do not agree on any rigid motion."
    assert summary.details == []
    content = json.loads(summary.json())
    assert content["transformation"] is None
    assert "residual" not in content["pairs"]


def test_null_scores_are_kept_in_small(fitted):
    apart = 1e-6 * np.random.default_rng(0).normal(size=(3 * len(X), 3))  # copies would count once
    registration = Registration(random_state=0).fit(np.tile(X, (3, 1)) + apart, np.tile(Y, (3, 1)))
    assert registration.null_scores_.size == 10_000 < registration.n_re_pairings_
    assert (np.diff(registration.null_scores_) >= 0).all()
    assert np.median(-fitted.null_scores_) > 10 * fitted.noise_bound_
    noise = np.random.default_rng(3).normal(size=X.shape)
    nothing = Registration(random_state=0, raise_on_failure=False).fit(X, noise)
    assert (nothing.null_scores_.size, nothing.n_re_pairings_) == (0, 0)


def test_null_scores_are_of_the_kind_of_the_scores():
    wide = make_gaussian_pairs(600, 20, 0.5, noise=0.05, rng=0)
    for bound in (None, 1.0):  # scores of a linear map; residuals
        found = Registration("affine", noise_bound=bound, random_state=0).fit(wide.X, wide.Y)
        real, wrong = found.scores_[wide.inlier_mask], found.scores_[~wide.inlier_mask]
        assert np.median(real) > np.median(found.null_scores_)
        assert np.median(found.null_scores_) == pytest.approx(np.median(wrong), rel=0.2)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("rigid", "Standard errors: 0.2 degrees, (0.01, 0.02, 0.5) in the translation."),
        ("similarity", "Standard errors: 0.2 degrees, (0.01, 0.02, 0.5) in the translation, 0.003 in the scale."),
        ("rotation", "Standard errors: 0.2 degrees."),
    ],
)
def test_errors(model, words):
    errors = SimpleNamespace(rotation=np.array([0.1, 0.2, 0.05]), translation=np.array([0.01, 0.02, 0.5]), scale=0.003)
    assert errors_in_words(errors, model) == words


def test_the_picture_is_of_some_of_the_pairs_that_were_fitted():
    """Of 5,000 pairs 3,000 are drawn: two thirds of them accepted, one third not, evenly over the table."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(5000, 3))
    moved = points @ special_ortho_group.rvs(3, random_state=1).T + 2
    moved[::5] = rng.normal(size=(1000, 3))
    registration = Registration(random_state=0).fit(points, moved)
    rows, source, target = summarise_registration(registration, points, moved).drawn
    assert rows.size == 3000
    assert (np.diff(rows) > 0).all()
    assert np.bincount(rows // 1000, minlength=5).min() > 500
    assert registration.inlier_mask_[rows].sum() == 2000
    np.testing.assert_array_equal(source, points[rows])
    np.testing.assert_array_equal(target, moved[rows])
    few = summarise_registration(Registration(random_state=0).fit(X, Y), X, Y)
    np.testing.assert_array_equal(few.drawn[0], np.arange(200))
    assert few.overlay.existing == (200, 200)


def test_a_later_fit_does_not_change_what_was_found():
    registration = Registration(random_state=0).fit(X, Y)
    summary = summarise_registration(registration)
    before = summary.json()
    registration.fit(X[:150] + 1.0, Y[:150])
    assert summary.json() == before
