"""What decides, each line beside its definition: evidence, candidates, votes, folds. Quick, and plain loops."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from inlier.consensus import find
from inlier.consensus.evidence import Chance, Evidence, log_likelihood_ratio
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.refine import (
    NARROWEST,
    Candidate,
    Certainty,
    Consensus,
    Refiner,
    better_of,
    closeness,
    closeness_slope,
    narrowed,
    support_and_places,
)
from inlier.consensus.search import Setting
from inlier.transforms.least_squares import MapModel, Maps

IDENTITY = Maps(np.eye(3)[None], np.zeros((1, 3)))
SHIFT = Maps(np.eye(3)[None], np.full((1, 3), 0.5))
STRONG = Evidence(-200.0, 50.0, 0.1, 60, 0.005, 100)


def columns(X, Y, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    return ColumnPairs(np.ascontiguousarray(X.T), np.ascontiguousarray(Y.T), weights)


def spots(seed=0, n=300, n_right=90):
    """Mistakes that join spots to spots, and some pairs that a shift by a half relates, in random order."""
    rng = np.random.default_rng(seed)
    spot = rng.integers(15, size=n)
    X, Y = (3 * rng.random((15, 3))[spot] + 0.05 * rng.normal(size=(n, 3)) for _ in range(2))
    X[:n_right] = 3 * rng.random((n_right, 3))
    Y[:n_right] = X[:n_right] + 0.5 + 0.01 * rng.normal(size=(n_right, 3))
    order = rng.permutation(n)
    return X[order], Y[order]


class TestEvidence:
    @pytest.mark.parametrize(
        ("alarms", "p_value", "counts"), [(1e-9, 1e-9, True), (1e-3, 1e-3, True), (2e-3, 2e-3, False)]
    )
    def test_false_alarms_bound_the_chance(self, alarms, p_value, counts):
        evidence = replace(STRONG, log_false_alarms=math.log(alarms))
        assert evidence.p_value == pytest.approx(p_value)
        assert evidence.is_significant == counts
        assert replace(STRONG, log_false_alarms=5.0).p_value == 1.0

    @pytest.mark.parametrize(("by_chance", "coarse"), [(0.05, False), (0.0501, True), (0.9, True)])
    def test_a_bound_is_coarse_where_a_twentieth_of_the_wrong_pairs_lie_within(self, by_chance, coarse):
        assert replace(STRONG, by_chance=by_chance).is_coarse == coarse

    @pytest.mark.parametrize("by_chance", [0.0, 0.2, 0.5])
    def test_the_share_is_that_which_with_the_others_makes_up_the_support(self, by_chance):
        share = replace(STRONG, by_chance=by_chance).inlier_fraction
        assert share + (1 - share) * by_chance == pytest.approx(60 / 100)
        assert replace(STRONG, by_chance=0.7).inlier_fraction == 0.0
        assert replace(STRONG, by_chance=1.0).inlier_fraction == 0.0

    def test_it_cannot_be_changed_afterwards(self):
        with pytest.raises(FrozenInstanceError):
            STRONG.bound = 3.0
        with pytest.raises(FrozenInstanceError):
            Candidate(IDENTITY, STRONG).place_score = 3.0

    @pytest.mark.parametrize(
        ("found", "n", "p"), [(30, 100, 0.1), (3, 5, 0.5), (100, 100, 0.2), (5, 100, 0.1), (-2, 9, 0.1)]
    )
    def test_the_likelihood_ratio_is_that_of_the_binomial_law(self, found, n, p):
        share = found / n
        expected = 0.0
        if share > p:
            expected = binom.logpmf(found, n, share) - binom.logpmf(found, n, p)
        assert log_likelihood_ratio(found, n, p) == pytest.approx(expected, abs=1e-9)

    def test_sides_that_differ_in_dimension_have_no_bound_by_chance(self):
        rng = np.random.default_rng(0)
        for of_x, of_y in ((2, 3), (3, 2)):
            pairs = columns(rng.normal(size=(200, of_x)), rng.normal(size=(200, of_y)))
            chance = Chance(MapModel("affine", of_x), lambda: np.linspace(0, 1, 100), pairs, 1000)
            assert (chance.most_by_chance(np.array([0.1, 9.0]), 1.0) == 0).all()

    def test_places_are_judged_by_what_any_map_may_bring_together(self):
        rng = np.random.default_rng(0)
        pairs = columns(*rng.normal(size=(2, 500, 3)))
        chance = Chance(MapModel("rigid", 3), lambda: np.linspace(0, 1, 1000), pairs, 20_000)
        by_chance = float(chance.most_by_chance(np.array(0.3), 1.0))
        expected = log_likelihood_ratio(40 - 3, 500 - 3, by_chance)
        assert expected > 10
        assert chance.place_score(40, 500, IDENTITY, 0.3) == pytest.approx(float(expected), rel=1e-9)


class TestCandidates:
    @pytest.mark.parametrize(
        ("alarms", "by_chance", "found", "sure"),
        [(-1e-9, 0.01, True, True), (0.0, 0.01, False, False), (-1e-9, 0.0101, True, False)],
    )
    def test_found_and_sure(self, alarms, by_chance, found, sure):
        candidate = Candidate(IDENTITY, replace(STRONG, log_false_alarms=alarms, by_chance=by_chance))
        assert (candidate.is_found, candidate.is_sure) == (found, sure)

    @pytest.mark.parametrize(("supporting", "majority"), [(41, True), (40, False)])
    def test_a_clear_majority_is_two_fifths_beyond_chance(self, supporting, majority):
        candidate = Candidate(IDENTITY, replace(STRONG, n_supporting=supporting))
        assert candidate.has_clear_majority == majority
        assert not Candidate(IDENTITY, replace(STRONG, by_chance=0.02)).has_clear_majority

    @pytest.mark.parametrize(("alarms", "beyond"), [(-100.1, True), (-100.0, False)])
    def test_beyond_doubt(self, alarms, beyond):
        assert Candidate(IDENTITY, replace(STRONG, log_false_alarms=alarms)).is_beyond_doubt == beyond

    def test_places_first_then_scores_then_whoever_came_first(self):
        low, high = Candidate(IDENTITY, replace(STRONG, score=1.0)), Candidate(IDENTITY, replace(STRONG, score=2.0))
        assert better_of(low, high) is better_of(high, low) is high
        placed = replace(low, place_score=0.5)
        assert better_of(placed, high) is better_of(high, placed) is placed
        assert better_of(low, replace(low)) is low

    @pytest.mark.parametrize(
        ("log_p", "sure", "p"), [(math.log(1e-3), True, 1e-3), (-6.9, False, math.exp(-6.9)), (4.0, False, 1)]
    )
    def test_certainty(self, log_p, sure, p):
        assert Certainty(log_p, 1.0).is_sure == sure
        assert Certainty(log_p, 1.0).p_value == pytest.approx(p)

    @pytest.mark.parametrize("bound", [0.3, 2.0])
    def test_weights_and_their_slope(self, bound):
        squared = np.linspace(0, 12 * bound**2, 1000)
        expected = [1 / (1 + q / (bound / 2) ** 2) ** 2 if q <= 9 * bound**2 else 0.0 for q in squared]
        np.testing.assert_allclose(closeness(squared, bound), expected)
        step = 1e-6 * bound**2
        inside = np.abs(squared - 9 * bound**2) > 2 * step
        slope = (closeness(squared + step, bound) - closeness(squared - step, bound)) / (2 * step)
        np.testing.assert_allclose(closeness_slope(squared, bound)[inside], slope[inside], rtol=1e-4, atol=1e-9)

    @pytest.mark.parametrize("stretch", [1.0, 2.0, 0.5])
    def test_support_and_places_are_those_of_the_side_with_fewer(self, stretch):
        X, _ = spots()
        Y = stretch * X
        Y[::3] += 5
        Y[1::6] = Y[1]  # many on one spot there
        X[1::6] = X[1] + np.random.default_rng(0).uniform(-0.05, 0.05, size=X[1::6].shape) / stretch
        maps = Maps(stretch * np.eye(3)[None], np.zeros((1, 3)))
        found = Candidate(maps, replace(STRONG, bound=0.2))
        near = np.linalg.norm(Y - stretch * X, axis=1) <= 0.2
        places = [
            len({tuple(cube) for cube in np.floor((side[near] - side[near].min(axis=0)) / cell).astype(int)})
            for side, cell in ((X, 0.4 / stretch), (Y, 0.4))
        ]
        assert support_and_places(columns(X, Y), found) == (near.sum(), min(places))


class Steps:
    """Stands for the chance that maps are weighed by: scores as they are told, one after the other."""

    def __init__(self, scores, bound=0.3):
        self.scores, self.bound, self.weighed = list(scores), bound, 0

    def weigh(self, counts, maps, most_by_chance=1.0):
        self.weighed += 1
        return replace(STRONG, score=self.scores[min(self.weighed, len(self.scores)) - 1], bound=self.bound)


class TestRefinement:
    @pytest.mark.parametrize(
        ("scores", "best", "rounds"),
        [
            ([10.0, 12.0, 15.0, 15.0], 15.0, 4),  # until there is no gain
            ([10.0, 9.0, 99.0], 10.0, 2),  # a loss is not taken
            ([10.0, 10.005, 99.0], 10.005, 2),  # a thousandth is taken, and is the last
            ([10.0, 10.1, 10.2, 10.2001, 99.0], 10.2001, 4),
        ],
    )
    def test_for_as_long_as_the_evidence_grows(self, scores, best, rounds):
        X, Y = spots()
        chance = Steps(scores)
        found = Refiner(MapModel("rigid", 3), chance, None, 1000).refine(columns(X, Y), SHIFT)
        assert (found.evidence.score, chance.weighed) == (best, rounds)

    def test_no_more_than_twenty_rounds(self):
        X, Y = spots()
        chance = Steps(range(1, 100))
        found = Refiner(MapModel("rigid", 3), chance, None, 1000).refine(columns(X, Y), SHIFT)
        assert (found.evidence.score, chance.weighed) == (21, 21)

    def test_fewer_pairs_than_fix_a_map_are_not_fitted_to(self):
        X, Y = spots()
        chance = Steps([10.0, 99.0], bound=1e-9)
        found = Refiner(MapModel("rigid", 3), chance, None, 1000).refine(columns(X, Y), SHIFT)
        assert (found.evidence.score, chance.weighed) == (10.0, 1)
        assert found.map is SHIFT


class TestFind:
    def test_pairs_of_a_clump_weigh_as_much_as_one(self, monkeypatch):
        X = np.array([[0.0, 0, 0], [0.1, 0, 0], [5, 0, 0], [9, 0, 0]])
        weights = np.array([1.0, 2.0, 3.0, 4.0])
        everyone, some = np.ones(4, dtype=bool), np.array([True, True, True, False])
        weighed = find._one_vote_a_clump(columns(X, X, weights), everyone, 0.15).weights
        np.testing.assert_allclose(weighed, weights * [0.5, 0.5, 1, 1])
        weighed = find._one_vote_a_clump(columns(X, X, weights), some, 0.15).weights
        np.testing.assert_allclose(weighed, weights * [0.5, 0.5, 1, 2 / 3])  # far ones: as the near on average
        weighed = find._one_vote_a_clump(columns(X, X, weights), ~everyone, 0.15).weights
        np.testing.assert_allclose(weighed, weights)
        all_in_clumps = columns(X[:2], X[:2], weights[:2])
        np.testing.assert_allclose(find._one_vote_a_clump(all_in_clumps, everyone[:2], 0.15).weights, weights[:2])
        monkeypatch.setattr(find, "_MOST_WEIGHED", 3)
        np.testing.assert_array_equal(find._one_vote_a_clump(columns(X, X, weights), everyone, 0.15).weights, weights)

    @pytest.mark.parametrize(("alpha", "supporting"), [(0.01, 60), (0.2, 2), (1e-4, 60)])
    def test_re_pairings_that_judge_are_as_many_as_the_rate_asks_for_and_as_short_as_the_fit_makes_them(
        self, alpha, supporting
    ):
        X, Y = spots()
        pairs, counts = columns(X, Y), []

        class Drawn(Setting):
            def re_paired_residuals(self, stage, maps, count):
                counts.append(count)
                return np.ones(5)

        setting = Drawn(MapModel("rigid", 3), pairs, None, np.random.default_rng(0))
        evidence = replace(STRONG, n_supporting=supporting, n_pairs=300, by_chance=0.0)
        found = find._finished(
            setting, setting.stage(), Candidate(SHIFT, evidence), alpha, (np.zeros(3), np.zeros(3)), (0.0, 0.0)
        )
        wanted = 30 / (alpha * max(supporting / 300, 1 / 300))
        assert counts == [int(min(max(wanted, 10_000), 1_000_000))]
        freedom = 6 / (3 * supporting)  # of three turns and three shifts, beside all coordinates
        np.testing.assert_allclose(found.re_paired_residuals, math.sqrt(max(1 - freedom, 0.1)))
        assert found.map is SHIFT
        assert not found.better_mirrored

    def test_affine_maps_are_judged_by_false_alarms_alone(self):
        X, Y = spots()
        setting = Setting(MapModel("affine", 3), columns(X, Y), None, np.random.default_rng(0))
        certainty, best = find.how_sure(setting, Candidate(IDENTITY, STRONG))
        assert (certainty.log_p_value, certainty.n_places, best) == (-200.0, 60.0, None)


class TestPolish:
    """Which pairs a polish works on: all, or where most are far or there are very many, a part of those near."""

    @pytest.mark.parametrize(
        ("n", "share", "taken"),
        [
            (200, 1.0, None),  # as many as may be
            (201, 1.0, 101),  # every second
            (180, 0.5, None),  # few enough in vain
            (180, 0.4, 72),  # more than a hundred in vain: those near, all of them
            (600, 0.4, 120),  # every second of those near
        ],
    )
    def test_which_pairs(self, n, share, taken, monkeypatch):
        monkeypatch.setattr("inlier.consensus.refine._POLISHED_ON", 100)
        rng = np.random.default_rng(0)
        X = rng.random((n, 3))
        n_near = round(share * n)
        Y = X + 0.5
        Y[n_near:] += 50
        sizes, take = [], ColumnPairs.take
        monkeypatch.setattr(ColumnPairs, "take", lambda self, which: sizes.append(len(which)) or take(self, which))
        evidence = replace(STRONG, by_chance=0.0, n_supporting=n_near, n_pairs=n)
        Refiner(MapModel("rigid", 3), Steps([1.0]), None, 1000).polish(columns(X, Y), Candidate(SHIFT, evidence))
        assert sizes == ([] if taken is None else [taken])


class TestConsensus:
    def consensus(self, evidence, motion):
        asked = []
        pairs = SimpleNamespace(
            n_pairs=1000,
            squared_residuals=lambda maps: np.array([4.0, 9.0]),
            any_repeats=lambda residuals, bound, n: asked.append((residuals.tolist(), bound, n)) or True,
        )
        ends = (np.zeros(3), np.zeros(3))
        found = Consensus(MapModel("rigid", 3), evidence, IDENTITY, pairs, ends, (0.0, 0.0), np.ones(3), None, False)
        vars(found)["motion"] = motion
        assert found.has_repeats
        return asked[0]

    def test_repeats_are_looked_for_among_the_supporters(self):
        evidence = replace(STRONG, n_supporting=500, n_pairs=1000, by_chance=0.0, bound=0.1)
        assert self.consensus(evidence, (None, np.array([1.0, 5.0]))) == ([1.0, 5.0], 0.1, 500)
        assert self.consensus(evidence, None) == ([2.0, 3.0], 0.1, 500)

    def test_repeats_are_looked_for_everywhere_where_nothing_was_found(self):
        evidence = replace(STRONG, log_false_alarms=0.0)
        assert self.consensus(evidence, (None, np.array([1.0, 5.0]))) == ([2.0, 3.0], np.inf, 1000)

    def test_narrowing_starts_with_the_spread_and_ends_at_a_fifteenth_of_it(self):
        asked = []
        pairs = SimpleNamespace(is_wide=False, spread=2.0, refit=lambda *given: asked.append(given) or "narrowed")
        assert narrowed(MapModel("rigid", 3), pairs, IDENTITY) == "narrowed"
        model, maps, reach, sharpness = asked[0]
        assert (model.name, maps, reach) == ("rigid", IDENTITY, np.inf)
        np.testing.assert_allclose(sharpness, [1 / (2.0 / 1.4**k) ** 2 for k in range(9)])
        assert pytest.approx(1.4**-9) == NARROWEST
        for name, is_wide in (("rigid", True), ("similarity", False)):
            pairs.is_wide = is_wide
            assert narrowed(MapModel(name, 3), pairs, IDENTITY) is IDENTITY
        assert len(asked) == 1

    @pytest.mark.parametrize("noise_bound", [None, 0.3])
    def test_a_map_is_weighed_at_fine_bounds_or_up_to_the_known_one(self, noise_bound):
        X, Y = spots()
        given = []

        class Asked:
            def weigh(self, counts, maps, most_by_chance=1.0):
                given.append((counts.bounds.max(), most_by_chance, counts.n_re_pairings))
                return STRONG

        refiner = Refiner(MapModel("rigid", 3), Asked(), noise_bound, 1000)
        found = refiner.weigh(columns(X, Y), SHIFT)
        refiner.weigh(columns(X, Y), SHIFT, 50_000)
        assert (found.map, found.evidence) == (SHIFT, STRONG)
        (largest, most, few), (_, _, many) = given
        assert most == (0.01 if noise_bound is None else 1.0)
        assert largest <= 0.31 if noise_bound else largest > 1
        assert 1000 <= few < 50_000 <= many
