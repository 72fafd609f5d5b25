"""What a registration decides, each line beside its definition, with searches and matchers of which all is known."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from inlier import CalibratedMatcher, NoConsensusError, Registration
from inlier.calibration.p_values import calibrate_distances
from inlier.consensus.evidence import find_near_misses
from inlier.consensus.refine import Certainty
from inlier.estimators import registration as module
from inlier.estimators._verdict import Verdict
from inlier.exceptions import DependenceWarning
from inlier.transforms import SimilarityTransformation

IDENTITY = SimilarityTransformation(np.eye(3), np.zeros(3))


def evidence(n_supporting=50, is_significant=True, bound=0.1, by_chance=0.001, n_pairs=100, is_coarse=False):
    return SimpleNamespace(
        n_supporting=n_supporting,
        is_significant=is_significant,
        bound=bound,
        by_chance=by_chance,
        n_pairs=n_pairs,
        is_coarse=is_coarse,
        inlier_fraction=(n_supporting / n_pairs - by_chance) / (1 - by_chance),
    )


class Chooser(Registration):
    """A registration whose search and matcher say what they were told to."""

    def told(self, searched, accepted):
        self.searched, self.accepted, self.asked = searched, accepted, []
        return self

    def _search(self, X, Y, weights):
        self.asked.append("search")
        return SimpleNamespace(evidence=self.searched)

    def _matched(self, matcher, X, Y):
        self.asked.append("match")
        assert isinstance(matcher, CalibratedMatcher)
        assert (matcher.alpha, matcher.random_state) == (self.alpha, self.random_state)
        matcher.inlier_mask_ = np.arange(len(X)) < self.accepted
        return matcher


class TestWhoLooks:
    """Search by distances, match by a linear map, or both: by the number of columns and what was found."""

    @staticmethod
    def chosen(d, searched, accepted=0, model="rigid", n=300, weights=None):
        chooser = Chooser(model, alpha=0.02, random_state=3).told(searched, accepted)
        found = chooser._find(np.zeros((n, d)), np.zeros((n, d)), np.ones(n) if weights is None else weights)
        return "match" if isinstance(found, CalibratedMatcher) else "search", chooser.asked

    @pytest.mark.parametrize(
        ("d", "model", "n", "asked"),
        [
            (3, "rigid", 300, ["search"]),
            (8, "rigid", 300, ["search"]),
            (8, "affine", 300, ["search"]),
            (9, "rigid", 3, ["search"]),  # too few to be dealt into folds
            (9, "rigid", 4, ["search", "match"]),
            (9, "rigid", 300, ["search", "match"]),
            (100, "rigid", 300, ["search", "match"]),
            (101, "rigid", 300, ["match"]),
            (9, "affine", 300, ["match"]),
        ],
    )
    def test_by_the_number_of_columns(self, d, model, n, asked):
        assert self.chosen(d, evidence(1), accepted=n, model=model, n=n)[1] == asked

    @pytest.mark.parametrize(("n_supporting", "asked"), [(40, ["search"]), (39, ["search", "match"])])
    def test_two_pairs_a_column_leave_no_doubt(self, n_supporting, asked):
        assert self.chosen(20, evidence(n_supporting), accepted=1)[1] == asked
        assert self.chosen(20, evidence(n_supporting, is_significant=False), accepted=1)[1] == ["search", "match"]

    @pytest.mark.parametrize(("accepted", "who"), [(0, "search"), (29, "search"), (30, "match"), (31, "match")])
    def test_more_pairs_win(self, accepted, who):
        assert self.chosen(20, evidence(30), accepted)[0] == who

    @pytest.mark.parametrize(("accepted", "who"), [(0, "search"), (1, "match")])
    def test_what_a_search_did_not_surely_find_does_not_count(self, accepted, who):
        assert self.chosen(20, evidence(30, is_significant=False), accepted)[0] == who

    def test_a_search_is_not_made_twice_and_the_last_resort_of_wide_tables(self):
        assert self.chosen(20, evidence(30), 0)[1] == ["search", "match"]
        assert self.chosen(200, evidence(30), 0) == ("search", ["match", "search"])

    def test_pairs_of_weight_0_do_not_count_among_the_accepted(self):
        weights = np.ones(300)
        weights[:20] = 0
        assert self.chosen(20, evidence(30), 49, weights=weights)[0] == "search"
        assert self.chosen(20, evidence(30), 50, weights=weights)[0] == "match"


def test_only_an_affine_search_is_given_a_start(monkeypatch):
    asked = []
    monkeypatch.setattr(module, "find_consensus", lambda *given: asked.append(given))
    monkeypatch.setattr(Registration, "_linear_start", lambda *_: "a start")
    X = np.zeros((20, 3))
    for model in ("rigid", "affine"):
        registration = Registration(model, noise_bound=0.3, alpha=0.02, random_state=0)
        registration.n_features_in_ = 3
        registration._search(X, X + 1, np.ones(20))
    assert [given[-1] for given in asked] == [None, "a start"]
    assert [given[0].name for given in asked] == ["rigid", "affine"]
    assert asked[0][4:6] == (0.3, 0.02)


@pytest.mark.parametrize(("n", "n_looked_at"), [(4, 4), (50, 50), (2000, 2000), (2500, 2000)])
def test_an_affine_search_starts_from_what_is_more_likely_real_than_not(n, n_looked_at):
    looked_at = []

    class Start(Registration):
        def _matched(self, matcher, X, Y):
            assert matcher.alpha == 0.05
            looked_at.append(X[:, 0].astype(int))
            np.testing.assert_array_equal(Y, -X)
            matcher.q_values_ = np.where(looked_at[-1] % 2, 0.5, 0.51)
            return matcher

    X = np.arange(float(n))[:, None]
    found = Start("affine")._linear_start(X, -X, np.random.default_rng(0))
    assert looked_at[0].size == np.unique(looked_at[0]).size == n_looked_at
    np.testing.assert_array_equal(np.sort(found), np.sort(looked_at[0][looked_at[0] % 2 == 1]))
    assert sorted(Start("affine")._linear_start(X[:3], -X[:3], np.random.default_rng(0))) == [0, 1, 2]
    assert len(looked_at) == 1  # three are too few to be matched


def test_what_a_matcher_says_of_dependent_rows_is_not_passed_on():
    class Talker(CalibratedMatcher):
        def fit(self, X, y):
            warnings.warn("rows depend on each other", DependenceWarning, stacklevel=1)
            warnings.warn("something else", UserWarning, stacklevel=1)
            return self

    with pytest.warns(UserWarning, match="something else") as said:
        Registration._matched(Talker(), np.zeros(3), np.zeros(3))
    assert len(said) == 1


class TestBySearch:
    """Residuals of 300 pairs, of which 100 are right, beside those of re-pairings."""

    rng = np.random.default_rng(0)
    RESIDUALS = np.concatenate([np.abs(rng.normal(scale=0.02, size=100)), 0.05 + rng.random(200)])
    RE_PAIRED = 0.05 + rng.random(3000)
    X = rng.normal(size=(300, 3))

    def consensus(self, residuals=None, **about):
        residuals = self.RESIDUALS if residuals is None else residuals
        step = residuals[:, None] * np.array([1.0, 0.0, 0.0])
        found = SimpleNamespace(
            evidence=evidence(**{"n_pairs": 300, "n_supporting": 100, **about}),
            motion=(IDENTITY, residuals),
            re_paired_residuals=self.RE_PAIRED,
            model=SimpleNamespace(name="rigid", fewest_pairs=3),
            better_mirrored=False,
            is_flat=False,
            pairs=SimpleNamespace(is_wide=True),
            as_transformation=lambda maps: ("transformation of", maps),
        )
        return found, self.X, self.X + step

    def judged(self, certainty=None, residuals=None, spy=None, monkeypatch=None, about=None, **parameters):
        found, X, Y = self.consensus(residuals, **(about or {}))
        if spy is not None:
            decided = Verdict.decided
            monkeypatch.setattr(
                Verdict, "decided", lambda verdict, *given: spy.append(given) or decided(verdict, *given)
            )
        return Registration(**parameters)._by_search(found, certainty or Certainty(-50.0, 80.0), X, Y, np.ones(300))

    def test_what_is_not_sure_is_a_failure(self):
        assert not self.judged(Certainty(np.log(1.1e-3), 80.0)).success_
        assert self.judged(Certainty(np.log(0.9e-3), 80.0)).success_

    def test_residuals_are_judged_by_those_of_re_pairings(self):
        verdict = self.judged(Certainty(-50.0, 80.0, 0.3))
        expected, null_scores = calibrate_distances(self.RESIDUALS, self.RE_PAIRED, 10_000)
        np.testing.assert_array_equal(verdict.p_values_, expected.p_values)
        np.testing.assert_array_equal(verdict.q_values_, np.maximum(expected.q_values, np.exp(-50)))
        np.testing.assert_array_equal(verdict.scores_, -self.RESIDUALS)
        np.testing.assert_array_equal(verdict.null_scores_, null_scores)
        assert verdict.transformation_ is IDENTITY
        assert verdict.noise_bound_ == 0.1
        share = self.judged(about={"by_chance": 0.01}, certainty=Certainty(-50.0, 80.0, 0.3)).inlier_fraction_
        assert share == pytest.approx((100 / 300 - 0.01) / 0.99)  # in clumps, of the pairs within the bound
        independent = self.judged(Certainty(-50.0, 80.0))
        assert independent.inlier_fraction_ == expected.inlier_fraction
        assert independent.inlier_fraction_error_ == expected.inlier_fraction_error
        assert (verdict.n_places_, verdict.clump_length_, verdict.n_re_pairings_) == (80.0, 0.3, 3000)
        assert verdict.detection_p_value_ == np.exp(-50)
        assert verdict.runner_up_ is None

    def test_no_pair_is_surer_than_the_transformation(self):
        verdict = self.judged(Certainty(np.log(9.999e-4), 80.0))
        assert verdict.q_values_.min() == pytest.approx(9.999e-4)
        assert self.judged().q_values_.min() < 9.998e-4

    def test_what_is_expected_is_the_support_beyond_chance(self, monkeypatch):
        spy = []
        self.judged(spy=spy, monkeypatch=monkeypatch, about={"n_supporting": 100, "by_chance": 0.02}, alpha=0.03)
        assert spy == [(0.03, None, 100 - 0.02 * 300, 0.0)]

    def test_a_given_bound_decides(self, monkeypatch):
        spy = []
        verdict = self.judged(spy=spy, monkeypatch=monkeypatch, noise_bound=0.03)
        assert verdict.noise_bound_ == 0.03
        assert spy[0][1] == 0.03
        np.testing.assert_array_equal(verdict.inlier_mask_, self.RESIDUALS <= 0.03)

    def test_near_misses_are_told_from_the_rest_unless_a_bound_was_given(self, monkeypatch):
        rng = np.random.default_rng(1)
        near = np.concatenate(
            [
                np.linalg.norm(0.01 * rng.normal(size=(150, 3)), axis=1),
                np.linalg.norm(0.06 * rng.normal(size=(100, 3)), axis=1),
                0.3 + rng.random(50),
            ]
        )
        misses = find_near_misses(near, self.RE_PAIRED, 0.1, 3)
        assert misses is not None
        spy = []
        verdict = self.judged(residuals=near, spy=spy, monkeypatch=monkeypatch)
        core, *others = misses.expected_within(verdict.noise_bound_)
        assert verdict.noise_bound_ == min(0.1, misses.bound)
        np.testing.assert_array_equal(verdict.near_miss_mask_, misses.among(near, misses.bound))
        assert spy[0][2] == pytest.approx(core)
        assert spy[0][3] == pytest.approx(sum(others) / (core + sum(others)))
        given = self.judged(residuals=near, noise_bound=0.07)
        assert given.noise_bound_ == 0.07
        np.testing.assert_array_equal(given.near_miss_mask_, misses.among(near, 0.07))
        coarse = self.judged(residuals=near, about={"is_coarse": True})
        assert not coarse.near_miss_mask_.any()

    def test_at_a_coarse_bound_nothing_is_expected_and_too_few_are_a_failure(self, monkeypatch):
        spy = []
        assert self.judged(spy=spy, monkeypatch=monkeypatch, about={"is_coarse": True}).success_
        assert spy[0][2] == 0.0
        for n_right, success in ((2, False), (3, True)):
            residuals = np.concatenate([np.full(n_right, 1e-6), 0.06 + np.linspace(0, 1, 300 - n_right)])
            found = self.judged(residuals=residuals, about={"is_coarse": True, "bound": 0.01}, alpha=0.2)
            assert np.count_nonzero(found.inlier_mask_) == (n_right if success else 0)
            assert found.success_ == success

    def test_a_runner_up_is_named(self):
        certainty = Certainty(-50.0, 80.0, 0.3, ("maps", 42.0))
        with pytest.warns(UserWarning, match=r"Another rigid .* in about 42 places, the one that was found in 80:"):
            verdict = self.judged(certainty)
        assert verdict.runner_up_.transformation == ("transformation of", "maps")
        assert verdict.runner_up_.n_places == 42.0


class TestByMatching:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(101, 12))
    Y = X[:, ::-1] + 0.01 * rng.normal(size=X.shape)
    Y[60:] = rng.normal(size=(41, 12))

    def judged(self, **parameters):
        matcher = SimpleNamespace(
            inlier_mask_=np.arange(101) < 60,
            scores_=np.where(np.arange(101) < 60, 2.0, -1.0),
            null_scores_=np.linspace(-3, 0, 50),
            p_values_=np.linspace(0.001, 1, 101),
            q_values_=np.where(np.arange(101) < 60, 0.001, 0.9),
            inlier_fraction_=0.6,
            inlier_fraction_at_least_=0.6 - 1.645 * 0.05,
            detection_p_value_=1e-7,
            n_re_pairings_=999,
        )
        registration = Registration("orthogonal", **parameters)
        registration.n_features_in_ = 12
        return registration, matcher, registration._by_matching(matcher, self.X, self.Y, np.ones(101))

    def test_the_matcher_decides(self):
        registration, matcher, verdict = self.judged()
        np.testing.assert_allclose(verdict.transformation_.rotation, np.eye(12)[::-1], atol=0.02)
        np.testing.assert_array_equal(verdict.inlier_mask_, matcher.inlier_mask_)
        assert verdict.noise_bound_ == verdict.residuals_[:60].max()
        for name in ("p_values_", "q_values_", "scores_", "null_scores_"):
            np.testing.assert_array_equal(getattr(verdict, name), getattr(matcher, name))
        for name in ("inlier_fraction_", "detection_p_value_", "n_re_pairings_"):
            assert getattr(verdict, name) == getattr(matcher, name)
        assert verdict.inlier_fraction_error_ == pytest.approx(0.05, rel=1e-3)
        assert verdict.success_
        assert not verdict.near_miss_mask_.any()
        others = np.roll(self.Y, 50, axis=0)  # half the table away
        expected = np.sort(-verdict.transformation_.residuals(self.X, others))
        np.testing.assert_allclose(registration._kept_null(), expected)

    def test_a_given_bound_decides_and_residuals_are_the_scores(self):
        registration, _, verdict = self.judged(noise_bound=0.03)
        np.testing.assert_array_equal(verdict.inlier_mask_, verdict.residuals_ <= 0.03)
        np.testing.assert_array_equal(verdict.scores_, -verdict.residuals_)
        np.testing.assert_array_equal(verdict.null_scores_, registration._null_residuals)
        assert verdict.noise_bound_ == 0.03


def plane(n=40, d=3, seed=0, noise=0.01):
    """Pairs that a shift by one relates, a quarter of them wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = X + 1 + noise * rng.normal(size=X.shape)
    Y[: n // 4] = rng.normal(size=(n // 4, d))
    return X, Y


class TestFit:
    def test_where_nothing_is_found_nothing_is_scored(self):
        X, Y = np.random.default_rng(0).normal(size=(2, 30, 3))
        failed = Registration(random_state=0, raise_on_failure=False).fit(X, Y)
        assert failed.transformation_ is None
        np.testing.assert_array_equal(failed._score_new(X, Y), np.zeros(30))
        np.testing.assert_array_equal(failed._kept_null(), [0.0])
        assert failed.transform(X).shape == (30, 3)
        assert failed.uncertainty_ is None
        with pytest.raises(NoConsensusError):
            Registration(random_state=0).fit(X, Y)

    def test_new_pairs_are_scored_by_their_residuals(self):
        X, Y = plane()
        found = Registration(random_state=0).fit(X, Y)
        np.testing.assert_allclose(found._score_new(X, Y), -found.residuals_, rtol=1e-9)
        np.testing.assert_array_equal(found._kept_null(), found.null_scores_)
        np.testing.assert_array_equal(found.predict(X), found.transform(X))

    @pytest.mark.parametrize(
        ("d", "model", "has_errors"),
        [(1, "rigid", False), (2, "rigid", True), (3, "rigid", True), (4, "rigid", False), (3, "affine", False)],
    )
    def test_standard_errors_where_they_are_known(self, d, model, has_errors):
        found = Registration(model, random_state=0).fit(*plane(80, d))
        assert (found.uncertainty_ is not None) == has_errors
        if has_errors:
            expected = module.NearPairs.among(
                *plane(80, d), np.ones(80), found.residuals_, found.noise_bound_, found.clump_length_
            )
            np.testing.assert_array_equal(found._near_pairs.X, expected.X)
            assert (found._near_pairs.bound, found._near_pairs.cluster_side) == (found.noise_bound_, 0.0)

    def test_copies_count_once_with_the_mean_weight_of_those_that_have_one(self, monkeypatch):
        seen = []
        find = Registration._find
        monkeypatch.setattr(
            Registration, "_find", lambda self, X, Y, weights: seen.append((X, weights)) or find(self, X, Y, weights)
        )
        X, Y = plane()
        weights = np.concatenate([np.full(40, 2.0), np.full(40, 1.0), np.zeros(40)])
        found = Registration(random_state=0).fit(np.tile(X, (3, 1)), np.tile(Y, (3, 1)), sample_weight=weights)
        assert [len(given[0]) for given in seen] == [120, 40]
        np.testing.assert_array_equal(seen[1][0], X)
        np.testing.assert_array_equal(seen[0][1], weights / 2)  # so that their unit does not matter
        np.testing.assert_allclose(seen[1][1], np.full(40, 0.75))
        assert found.inlier_mask_.size == 120
        np.testing.assert_array_equal(found.inlier_mask_.reshape(3, 40), np.tile(found.inlier_mask_[:40], (3, 1)))

    def test_far_points_do_not_count(self, monkeypatch):
        seen = []
        find = Registration._find
        monkeypatch.setattr(
            Registration, "_find", lambda self, X, Y, weights: seen.append((X, weights)) or find(self, X, Y, weights)
        )
        X, Y = plane(200)
        X[7] = 1e7
        with pytest.warns(UserWarning, match="the first in row 7"):
            found = Registration(random_state=0).fit(X, Y, sample_weight=np.arange(1.0, 201.0))
        np.testing.assert_array_equal(seen[0][0], np.delete(X, 7, axis=0))
        np.testing.assert_array_equal(seen[0][1], np.delete(np.arange(1.0, 201.0), 7) / 200)
        assert found.residuals_[7] > 1e6
        assert not found.inlier_mask_[7]

    def test_all_weights_zero_are_refused(self):
        with pytest.raises(ValueError, match="All 40 entries of sample_weight are zero"):
            Registration().fit(*plane(), sample_weight=np.zeros(40))

    def test_alpha_may_be_a_half_and_no_more(self):
        Registration(alpha=0.5, random_state=0).fit(*plane())
        with pytest.raises(ValueError, match="alpha"):
            Registration(alpha=0.51).fit(*plane())

    def test_defaults(self):
        assert Registration().get_params() == {
            "model": "rigid",
            "alpha": 0.01,
            "noise_bound": None,
            "reflection": False,
            "raise_on_failure": True,
            "random_state": None,
        }

    def test_a_fit_forgets_the_errors_of_the_one_before(self):
        registration = Registration(random_state=0).fit(*plane(80))
        first = registration.uncertainty_
        assert registration.fit(*plane(80, noise=0.1)).uncertainty_.translation[0] > 3 * first.translation[0]

    def test_pairs_that_do_not_determine_the_motion_are_said_to(self):
        X, Y = plane()
        X[:, 1:] *= 1e-12
        Y = X + 1
        Y[:10] = np.random.default_rng(1).normal(size=(10, 3))
        with pytest.warns(UserWarning, match=r"The \d+ pairs that agree do not determine all of a rigid .* in 3 dim"):
            assert not Registration(random_state=0).fit(X, Y).transformation_.determined
