"""What is said about n pairs, each line of it from its definition."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from inlier.consensus.evidence import Evidence
from inlier.consensus.refine import Certainty
from inlier.estimators._verdict import Verdict, why_not
from inlier.transforms import MapModel, SimilarityTransformation

N = 8
RESIDUALS = np.linspace(0.1, 3.0, N)


def verdict(**others):
    no_pair = np.zeros(N, dtype=bool)
    values = {
        "scores_": -RESIDUALS,
        "residuals_": RESIDUALS,
        "p_values_": np.linspace(0.01, 0.9, N),
        "q_values_": np.linspace(0.02, 0.95, N),
        "inlier_mask_": RESIDUALS < 1,
        "near_miss_mask_": no_pair,
        "detection_p_value_": 1e-9,
        "noise_bound_": 1.0,
        "threshold_": -1.0,
        "transformation_": SimilarityTransformation(np.eye(2), np.array([1.0, 0.0])),
        "success_": True,
    }
    return Verdict(**{**values, **others})


def test_a_failure_accepts_nothing_and_keeps_what_was_seen():
    found = Verdict.of_failure(5, SimpleNamespace(), Certainty(np.log(0.3), 7.5, 0.25))
    assert (found.scores_ == 0).all()
    assert found.scores_.size == 5
    assert (found.scores_ < found.threshold_).all()
    assert found.threshold_ < 1e-300
    assert np.isnan(found.residuals_).all()
    assert (found.p_values_ == 1).all()
    assert (found.q_values_ == 1).all()
    assert not found.inlier_mask_.any()
    assert not found.near_miss_mask_.any()
    assert found.inlier_mask_.dtype == bool
    assert found.detection_p_value_ == pytest.approx(0.3)
    assert (found.n_places_, found.clump_length_) == (7.5, 0.25)
    assert not found.success_
    assert found.transformation_ is None
    assert found.runner_up_ is None
    assert np.isnan(found.noise_bound_)
    assert (found.false_discovery_rate_, found.inlier_fraction_, found.inlier_fraction_error_) == (0, 0, 0)
    assert (found.null_scores_.size, found.n_re_pairings_) == (0, 0)
    assert (
        Verdict.of_failure(5, SimpleNamespace(), Certainty(-1.0, 1.0)).n_places_,
        Certainty(-1.0, 1.0).clump_length,
    ) == (1.0, 0.0)


class Misses:
    """Near misses of which everything is known: a tenth of the core, of the misses and of the others per unit."""

    def __init__(self, bound):
        self.bound = bound

    def expected_within(self, limit):
        return limit * np.array([2.0, 1.0, 0.5])

    def doubt(self, residuals):
        return np.where(residuals > self.bound, 0.7, 0.0)

    def among(self, residuals, bound):
        return residuals > bound


@pytest.mark.parametrize("noise_bound", [1.0, 2.0])
@pytest.mark.parametrize("bound", [0.8, 1.2, 2.6, 3.5])
def test_told_from_near_misses(bound, noise_bound):
    before = verdict(noise_bound_=noise_bound)
    found = before.told_from(Misses(bound))
    limit = min(1.5 * noise_bound, bound)
    core, misses = 2.0 * limit / N, 1.0 * limit / N
    assert found.noise_bound_ == min(noise_bound, bound)
    np.testing.assert_array_equal(found.q_values_, np.maximum(before.q_values_, np.where(bound < RESIDUALS, 0.7, 0)))
    np.testing.assert_array_equal(found.near_miss_mask_, bound < RESIDUALS)
    assert found.inlier_fraction_ == pytest.approx(core)
    assert found.inlier_fraction_error_ == pytest.approx(np.hypot(np.sqrt(core * (1 - core) / N), misses / 2))
    np.testing.assert_array_equal(found.p_values_, before.p_values_)


def test_copies_get_the_same_answer():
    numbers = np.array([0, 3, 3, 7, 0])
    found = verdict(near_miss_mask_=RESIDUALS > 2).of_copies(numbers)
    for name in ("scores_", "residuals_", "p_values_", "q_values_", "inlier_mask_", "near_miss_mask_"):
        original = getattr(verdict(near_miss_mask_=RESIDUALS > 2), name)
        np.testing.assert_array_equal(getattr(found, name), original[numbers], err_msg=name)
    assert found.noise_bound_ == 1.0


@pytest.mark.parametrize("threshold", [-1.0, -4e3])
def test_far_points_stand_where_they_stood(threshold):
    far = np.zeros(N + 2, dtype=bool)
    far[[2, 9]] = True
    X = np.zeros((N + 2, 2))
    X[2], X[9] = [999, 0], [0, 0]
    Y = np.zeros((N + 2, 2))
    Y[9] = [1, 2000]
    before = verdict(threshold_=threshold)
    found = before.with_far_points(far, X, Y)
    for name in ("scores_", "residuals_", "p_values_", "q_values_", "inlier_mask_", "near_miss_mask_"):
        np.testing.assert_array_equal(getattr(found, name)[~far], getattr(before, name), err_msg=name)
        assert getattr(found, name).dtype == getattr(before, name).dtype
    assert found.residuals_[far].tolist() == [1000.0, 2000.0]
    assert (found.scores_[far] < threshold).all()
    assert threshold < -2000 or found.scores_[far].tolist() == [-1000.0, -2000.0]
    assert found.p_values_[far].tolist() == found.q_values_[far].tolist() == [1.0, 1.0]
    assert not found.inlier_mask_[far].any()
    assert not found.near_miss_mask_[far].any()


def test_the_share_of_pairs_within_the_bound_and_its_error():
    found = verdict().within_bound(0.2)
    assert (found.inlier_fraction_, found.inlier_fraction_error_) == (0.2, pytest.approx(np.sqrt(0.2 * 0.8 / N)))


def test_far_points_where_nothing_was_found():
    far = np.array([True, *[False] * 5])
    found = Verdict.of_failure(5, SimpleNamespace(), Certainty(0.0, 0.0)).with_far_points(
        far, np.zeros((6, 2)), np.zeros((6, 2))
    )
    assert np.isnan(found.residuals_).all()
    assert (found.scores_ < found.threshold_).all()
    assert found.scores_.shape == (6,)


def said(
    n=100, by_chance=0.1, clump_length=0.0, copies=None, log_false_alarms=3.688879, name="rigid", d=3, is_flat=False
):
    evidence = Evidence(log_false_alarms, 1.0, 0.123456, 12, by_chance, n)
    found = SimpleNamespace(model=MapModel(name, d), evidence=evidence, is_flat=is_flat)
    return why_not(found, Certainty(0.0, 6.6, clump_length), n, copies)


def test_why_not_names_the_best_that_was_found():
    words = said()
    assert words.startswith("The 100 pairs do not agree on any rigid transformation. The best one found brings 12 of")
    assert "within 0.123; among wrong pairs one would expect 40 transformations with as much support." in words
    assert words.endswith("if one side may be a mirror image, reflection=True.")
    assert "similarity transformation" in said(name="similarity")


def test_why_not_stays_finite():
    assert "one would expect 5.2e+21 transformations" in said(log_false_alarms=1e6)


@pytest.mark.parametrize(("by_chance", "is_told"), [(0.3, True), (0.300001, False), (0.9, False)])
def test_why_not_where_wrong_pairs_are_near_anyway(by_chance, is_told):
    assert ("The best one found brings" in said(by_chance=by_chance)) == is_told
    assert ("None that was found brings more of them together" in said(by_chance=by_chance)) != is_told


def test_why_not_where_mistakes_come_together():
    words = said(clump_length=0.25)
    assert "beyond what clumps of mistakes explain" in words
    assert "up to 0.25 apart" in words
    assert "supported in 7 places" in words
    assert "reflection=True" in words


@pytest.mark.parametrize("clump_length", [0.0, 0.25])
def test_why_not_where_the_points_that_agree_are_flat(clump_length):
    words = "lie in a plane: the motion within it is not determined."
    assert words in said(is_flat=True, clump_length=clump_length)
    assert words not in said(clump_length=clump_length)
    assert "lie on a line: the motion along it is not determined." in said(is_flat=True, d=2, clump_length=clump_length)


def test_why_not_of_few_pairs():
    fewest = MapModel("rigid", 3).fewest_pairs
    assert f"{fewest + 1} pairs are too few to tell: any {fewest} fit some rigid" in said(n=fewest + 1)
    assert "of 3-dimensional points" in said(n=fewest + 1)
    assert "2 pairs are too few to tell" in said(n=2)
    assert "too few" not in said(n=fewest + 2)


@pytest.mark.parametrize("options", [{}, {"clump_length": 0.2}, {"n": 3}])
def test_why_not_counts_pairs_that_are_listed_twice_once(options):
    words = said(copies=np.zeros(250), **options)
    n = options.get("n", 100)
    assert words.endswith(f" Of the 250 pairs, {n} differ; one that is listed more than once counts once.")
