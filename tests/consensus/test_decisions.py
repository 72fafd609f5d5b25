"""What decides, each line beside its definition: evidence, candidates, votes, folds. Quick, and plain loops."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, poisson

from inlier.consensus import find
from inlier.consensus.evidence import Chance, Evidence, log_likelihood_ratio
from inlier.consensus.find import HoldOutTest, log_poisson_tail
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
    def test_pairs_beyond_two_bounds_are_no_witnesses(self):
        X = np.zeros((4, 3))
        Y = np.array([[0.0, 0, 0], [0.19, 0, 0], [0.21, 0, 0], [9, 0, 0]])
        found = Candidate(IDENTITY, STRONG)
        assert find._is_far(columns(X, Y), found).tolist() == [False, False, True, True]
        nothing = Candidate(IDENTITY, replace(STRONG, log_false_alarms=0.0))
        assert find._is_far(columns(X, Y), nothing).all()

    @pytest.mark.parametrize(("n_places", "few"), [(7, True), (8, False)])
    def test_few_places_are_fewer_than_twice_the_dimension_and_two(self, n_places, few):
        X = np.repeat(np.arange(n_places), 20)[:, None] * [1.0, 0, 0]
        assert find._is_in_few_places(columns(X, X), Candidate(IDENTITY, STRONG)) == few

    def test_pairs_of_a_clump_weigh_as_much_as_one(self, monkeypatch):
        X = np.array([[0.0, 0, 0], [0.1, 0, 0], [5, 0, 0], [9, 0, 0]])
        weights = np.array([1.0, 2.0, 3.0, 4.0])
        weighed = find._one_vote_a_clump(columns(X, X, weights), 0.15).weights
        np.testing.assert_allclose(weighed, weights * [0.5, 0.5, 1, 1])
        all_in_clumps = columns(X[:2], X[:2], weights[:2])
        np.testing.assert_allclose(find._one_vote_a_clump(all_in_clumps, 0.15).weights, weights[:2])
        monkeypatch.setattr(find, "_MOST_WEIGHED", 3)
        np.testing.assert_array_equal(find._one_vote_a_clump(columns(X, X, weights), 0.15).weights, weights)

    @pytest.mark.parametrize("n_far", [49, 90])
    def test_few_that_do_not_follow_or_a_clear_majority_are_beyond_suspicion(self, n_far):
        X = 3 * np.random.default_rng(0).random((200, 3))
        Y = X.copy()
        Y[:n_far, 0] += 5.0  # all of them together
        setting = Setting(MapModel("rigid", 3), columns(X, Y), None, np.random.default_rng(0))
        evidence = replace(STRONG, n_supporting=200 - n_far, n_pairs=200)
        certainty, best = find.how_sure(setting, Candidate(IDENTITY, evidence))
        assert (certainty.log_p_value, certainty.n_places, best) == (-200.0, 200 - n_far, None)

    @pytest.mark.parametrize("times", [1.0, 1.7, 400.0])
    @pytest.mark.parametrize("alarms", [-30.0, -12.0])
    def test_beside_repeats(self, times, alarms, monkeypatch):
        """Chance supports the map so many times as often; no more than all is explained."""
        X, Y = 3 * np.random.default_rng(0).random((2, 60, 3))
        asked = []
        monkeypatch.setattr(find, "repetition", lambda *given: asked.append(given) or times)
        evidence = replace(STRONG, log_false_alarms=alarms, n_supporting=12, n_pairs=400, by_chance=0.002, bound=0.01)
        log_p = find._beside_repeats(Candidate(SHIFT, evidence), columns(X, Y), np.random.default_rng(0))

        def unlikely(p):
            share = 12 / 400
            gain = share * math.log(share / p) + (1 - share) * math.log((1 - share) / (1 - p))
            return 400 * gain if p < share else 0.0

        assert log_p == pytest.approx(min(alarms + unlikely(0.002) - unlikely(min(0.002 * times, 1 - 1e-9)), 0.0))
        ((images, partners, votes, reach, clear, apart, _),) = asked
        np.testing.assert_allclose(images, X + 0.5)
        np.testing.assert_allclose(partners, Y)
        np.testing.assert_array_equal(votes, 1.0)
        assert (reach, clear, apart) == (0.01, 0.0, pytest.approx(0.04))

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

    @pytest.mark.parametrize(
        ("by_votes", "scarce", "flat", "known", "repeats", "sure"),
        [
            (-50.0, False, False, False, -2.0, True),
            (-2.0, True, True, False, -50.0, False),
            (-50.0, True, False, False, -30.0, True),  # where little speaks for it, repeats are asked about
            (-50.0, True, False, False, -2.0, False),
            (-50.0, True, False, True, -2.0, True),  # unless much speaks for it as it was found at first
            (-50.0, False, True, True, -2.0, False),  # in a plane any patch fits any other
        ],
    )
    def test_by_places_the_best_map_is_judged_with_the_length_of_those_that_do_not_follow_it(
        self, by_votes, scarce, flat, known, repeats, sure, monkeypatch
    ):
        X, Y = spots()
        tests, lengths = [], []

        class Judge:
            def __init__(self, pairs, length, noise_bound, look, rng):
                self.length, self.look = length, look
                tests.append(self)

            def best(self, known):
                self.known = known
                return SHIFT, 0.02

            def judge(self, maps, bound):
                return Certainty(by_votes, 9.0, self.length)

            def is_flat(self, maps, bound):
                return flat

            def are_same(self, maps, bound, other):
                assert (maps, other) == (SHIFT, IDENTITY)
                return known

            def log_p_value_beside_repeats(self, maps, bound):
                asked.append((maps, bound))
                return repeats

            def runner_up(self, maps, bound):
                return IDENTITY, 5.0

        asked = []
        after = replace(STRONG, log_false_alarms=-39.9 if scarce else -40.1)
        monkeypatch.setattr(find, "start_from", lambda setting, maps: (None, Candidate(maps, after)))
        monkeypatch.setattr(find, "HoldOutTest", Judge)
        monkeypatch.setattr(find, "clump_length", lambda x, y, rng: lengths.append(len(x)) or 0.7)
        setting = Setting(MapModel("rigid", 3), columns(X, Y), None, np.random.default_rng(0))
        certainty, best = find._by_places(setting, Candidate(IDENTITY, STRONG), columns(X, Y), 0.4)
        assert tests[0].known is IDENTITY
        assert lengths == [np.count_nonzero(np.linalg.norm(Y - X - 0.5, axis=1) > 0.04)]
        assert certainty.clump_length == 0.7
        assert best is (SHIFT if sure else None)
        assert certainty.runner_up == ((IDENTITY, 5.0) if sure else None)
        assert asked == ([(SHIFT, 0.02)] if (flat or (scarce and not known)) and by_votes == -50.0 else [])
        assert certainty.log_p_value == (repeats if asked else by_votes)
        few = columns(X[:4], Y[:4])  # as many as fix a map, and one: these are not searched
        assert tests[0].look(few) is None
        nothing = Candidate(IDENTITY, replace(STRONG, log_false_alarms=0.0))
        find._by_places(setting, nothing, columns(X, Y), 0.4)
        assert tests[2].known is None

    def test_by_places_without_any_map_nothing_is_sure(self, monkeypatch):
        X, Y = spots()
        monkeypatch.setattr(HoldOutTest, "best", lambda self, known: None)
        setting = Setting(MapModel("rigid", 3), columns(X, Y), None, np.random.default_rng(0))
        certainty, best = find._by_places(setting, Candidate(IDENTITY, STRONG), columns(X, Y), 0.4)
        assert (certainty.log_p_value, certainty.n_places, certainty.clump_length, best) == (0.0, 0.0, 0.4, None)

    @pytest.mark.parametrize("alarms", [-30.0, -500.0])
    def test_independent_mistakes_are_judged_by_false_alarms(self, alarms):
        rng = np.random.default_rng(0)
        X = 3 * rng.random((400, 3))
        Y = np.where(np.arange(400)[:, None] < 120, X, 3 * rng.random((400, 3)))
        evidence = replace(STRONG, log_false_alarms=alarms, n_supporting=120, n_pairs=400, bound=0.05)
        setting = Setting(MapModel("rigid", 3), columns(X, Y), None, np.random.default_rng(0))
        certainty, best = find.how_sure(setting, Candidate(IDENTITY, evidence))
        assert best is None
        assert certainty.n_places == 120
        assert certainty.clump_length == 0
        if alarms < -40:
            assert certainty.log_p_value == alarms
        else:  # where little speaks for it, repeated structure is asked about too
            assert alarms <= certainty.log_p_value <= 0

    def test_affine_maps_are_judged_by_false_alarms_alone(self):
        X, Y = spots()
        setting = Setting(MapModel("affine", 3), columns(X, Y), None, np.random.default_rng(0))
        certainty, best = find.how_sure(setting, Candidate(IDENTITY, STRONG))
        assert (certainty.log_p_value, certainty.n_places, best) == (-200.0, 60.0, None)


def votes_by_definition(X, Y, chosen, reach):
    """1 / (1 + number of chosen joint neighbours), pair by pair."""
    votes = np.zeros(len(X))
    for i in np.flatnonzero(chosen):
        apart = np.maximum(np.linalg.norm(X - X[i], axis=1), np.linalg.norm(Y - Y[i], axis=1))
        votes[i] = 1 / np.count_nonzero(chosen & (apart <= reach))
    return votes


class HeldOut:
    """The test on some pairs, and what it counts, counted plainly."""

    LENGTH = 0.3

    def held_out(self, X, Y, look=lambda some: SHIFT, noise_bound=None, seed=0):
        return HoldOutTest(columns(X, Y), self.LENGTH, noise_bound, look, np.random.default_rng(seed))

    def residuals(self, X, Y):
        return np.linalg.norm(Y - X - 0.5, axis=1)

    def rate(self, X, Y, rows, bound):
        """Share of all x of these rows with any y that the shift brings within the bound."""
        return np.mean(np.linalg.norm(Y[None] - X[rows][:, None] - 0.5, axis=2) <= bound)


class TestHoldOut(HeldOut):
    @pytest.mark.parametrize(("count", "expected"), [(3, 1.0), (10, 2.5), (40, 8.0), (1, 0.5)])
    def test_the_tail(self, count, expected):
        assert log_poisson_tail(count, expected) == pytest.approx(poisson.logsf(count - 1, expected), rel=1e-9)
        assert log_poisson_tail(expected, expected) == 0.0

    def test_the_tail_where_it_is_too_small_for_a_number(self):
        expected = -(5000 * math.log(5000) - 5000 + 1)
        assert log_poisson_tail(5000.0, 1.0) == pytest.approx(expected)
        assert log_poisson_tail(5000.0, 2.0) == pytest.approx(-(5000 * math.log(2500) - 5000 + 2))

    def test_places_are_votes_of_the_supporters(self):
        X, Y = spots()
        everyone = np.ones(len(X), dtype=bool)
        votes = votes_by_definition(X, Y, everyone, 0.5 * self.LENGTH)
        expected = votes[self.residuals(X, Y) <= 0.05].sum()
        assert self.held_out(X, Y)._n_places(SHIFT, 0.05) == pytest.approx(expected)
        assert 20 < expected < 95

    def test_the_best_bound_is_that_of_the_least_likely_votes(self):
        X, Y = spots()
        test, everyone = self.held_out(X, Y), np.ones(len(X), dtype=bool)
        maps, bound = test.best(SHIFT)
        assert maps is SHIFT
        votes, residuals = votes_by_definition(X, Y, everyone, 0.5 * self.LENGTH), self.residuals(X, Y)
        tails = {}
        for candidate in self.LENGTH * 2.0 ** np.arange(-3, 0.01, 0.5):
            rate = self.rate(X, Y, everyone, candidate)
            if rate <= 0.03:
                tails[candidate] = log_poisson_tail(votes[residuals <= candidate].sum(), votes.sum() * rate)
        assert bound == pytest.approx(min(tails, key=tails.get))
        assert len(tails) > 3

    def test_a_map_without_votes_is_none(self):
        X, Y = spots()
        elsewhere = Maps(np.eye(3)[None], np.full((1, 3), 50.0))
        assert self.held_out(X, Y, look=lambda some: elsewhere).best(None) is None
        assert self.held_out(X, Y, look=lambda some: None).best(None) is None
        assert self.held_out(X, Y, look=lambda some: None).best(SHIFT)[0] is SHIFT

    def test_votes_of_a_fold_count_no_neighbours_of_supporters_elsewhere(self):
        X, Y = spots()
        fold = X[:, 0] > np.median(X[:, 0])
        residuals, bound = self.residuals(X, Y), 0.05
        elsewhere = ~fold & (residuals <= 2 * bound)
        counted = fold.copy()
        for i in np.flatnonzero(fold):
            apart = np.maximum(np.linalg.norm(X - X[i], axis=1), np.linalg.norm(Y - Y[i], axis=1))
            counted[i] = not (elsewhere & (apart <= 0.25 * self.LENGTH)).any()
        votes = votes_by_definition(X, Y, counted, 0.4 * self.LENGTH)
        here, expected = self.held_out(X, Y)._votes_of(fold, SHIFT, bound)
        assert here == pytest.approx(votes[counted & (residuals <= bound)].sum())
        assert expected == pytest.approx(votes.sum() * self.rate(X, Y, counted, bound), rel=0.25)
        nobody = np.zeros(len(X), dtype=bool)
        assert self.held_out(X, Y)._votes_of(nobody, SHIFT, bound) == (0.0, 0.0)

    def test_rates_are_those_of_all_re_pairings(self):
        X, Y = spots()
        rows, bounds = np.arange(100), np.array([0.1, 0.3, 1.0])
        found = self.held_out(X, Y)._rates(rows, SHIFT, bounds)
        expected = [self.rate(X, Y, rows, bound) for bound in bounds]
        assert (np.abs(found - expected) <= 4 * np.sqrt(np.array(expected) / 40_000) + 1e-4).all()
        assert self.held_out(X + 90, Y)._rates(rows, SHIFT, bounds)[0] == pytest.approx(1 / 40_001)

    def test_the_gap_is_the_root_mean_square_distance_of_images(self):
        X, _ = spots()
        turned = Maps(np.array([[[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]]), np.array([[1.0, 2.0, 3.0]]))
        images = X @ turned.linear[0].T + turned.shift[0] - X - 0.5
        assert find._gap(X, SHIFT, turned) == pytest.approx(np.sqrt(np.mean(np.sum(images**2, axis=1))))
        assert find._gap(X[:0], SHIFT, turned) == np.inf

    def test_a_map_that_is_found_in_thirteen_folds_of_sixteen_is_not_sure(self):
        """Three folds without it are too many, however clear it is in the others; two are not."""
        X, Y = spots(n=600, n_right=300)
        for missing, sure in ((2, True), (3, False)):
            asked = []

            def look(some, missing=missing, asked=asked):
                fold = len(asked) // 3 if len(asked) < 3 * missing else None  # each asks thrice before it gives up
                asked.append(fold)
                return None if fold is not None else SHIFT

            certainty = self.held_out(X, Y, look).judge(SHIFT, 0.05)
            assert (certainty.log_p_value < -7) == sure
            assert sure or certainty.log_p_value == 0.0

    @pytest.mark.parametrize(
        ("missing", "sure"),
        [
            ((0, 9), True),
            ((0, 1, 16), True),
            ((0, 8, 16, 24), True),
            ((0, 8, 16, 17), False),
            ((7, 15, 23, 30, 31), False),
        ],
    )
    def test_each_further_deal_may_miss_it_once(self, missing, sure, monkeypatch):
        monkeypatch.setattr(find, "_CLEAR", -np.inf)  # all four deals
        X, Y = spots(n=600, n_right=300)
        test, asked = self.held_out(X, Y), []
        test._first_found = lambda chosen: asked.append(0) or ([] if len(asked) - 1 in missing else [SHIFT])
        certainty = test.judge(SHIFT, 0.05)
        assert (certainty.log_p_value < -7) == sure
        assert len(asked) == (32 if sure else max(missing) + 1)

    def test_folds_that_find_another_map_do_not_count(self):
        X, Y = spots(n=600, n_right=300)
        beside = Maps(np.eye(3)[None], np.full((1, 3), 0.5 + 2.01 * self.LENGTH / np.sqrt(3)))
        assert self.held_out(X, Y, lambda some: beside).judge(SHIFT, 0.05).log_p_value == 0.0
        near = Maps(np.eye(3)[None], np.full((1, 3), 0.5 + 0.005))
        assert self.held_out(X, Y, lambda some: near).judge(SHIFT, 0.05).log_p_value < -7

    def test_votes_are_those_of_all_folds_by_deal(self):
        X, Y = spots(n=300, n_right=40)
        test, seen = self.held_out(X, Y), []
        of_fold = test._votes_of
        test._votes_of = lambda *given: seen.append(of_fold(*given)) or seen[-1]
        certainty = test.judge(SHIFT, 0.05)
        n_deals = len(seen) / 8
        assert n_deals in (1, 2, 3, 4)
        votes, expected = (sum(part) / n_deals for part in zip(*seen, strict=True))
        assert certainty.log_p_value == pytest.approx(log_poisson_tail(votes, max(expected, 1.0)))
        assert certainty.clump_length == self.LENGTH
        assert certainty.n_places == pytest.approx(test._n_places(SHIFT, 0.05))

    def test_repeats_multiply_what_chance_gives(self, monkeypatch):
        """Asked about with votes of the test itself, and by steps beyond what is the same map."""
        X, Y = spots(n=300, n_right=40)
        test, asked = self.held_out(X, Y), []
        before = test.judge(SHIFT, 0.05).log_p_value
        monkeypatch.setattr(find, "repetition", lambda *given: asked.append(given) or 300.0)
        beside = test.log_p_value_beside_repeats(SHIFT, 0.05)
        votes, expected = test._tally
        assert before == pytest.approx(log_poisson_tail(votes, max(expected, 1.0)))
        assert beside == pytest.approx(log_poisson_tail(votes, max(300 * expected, 1.0)))
        assert before < beside < 0
        ((images, partners, weights, reach, clear, apart, _),) = asked
        np.testing.assert_allclose(images - partners, X + 0.5 - Y)
        np.testing.assert_allclose(weights, votes_by_definition(X, Y, np.ones(300, dtype=bool), 0.4 * self.LENGTH))
        assert (reach, clear, apart) == (0.05, 2 * self.LENGTH, self.LENGTH)

    @pytest.mark.parametrize(("thickness", "flat"), [(0.015, True), (0.025, False)])
    def test_supporters_are_flat_up_to_half_a_bound(self, thickness, flat):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(2000, 3)) * [1, 1, thickness] @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
        Y = X + 0.5
        Y[:100] = rng.normal(size=(100, 3))  # what does not support the map does not count
        assert self.held_out(X, Y).is_flat(SHIFT, 0.04) == flat

    @pytest.mark.parametrize(("off", "same"), [(0.59, True), (0.61, False)])
    def test_maps_are_the_same_up_to_two_lengths(self, off, same):
        X = np.random.default_rng(0).normal(size=(50, 3))
        other = Maps(np.eye(3)[None], np.array([[0.5 + off, 0.5, 0.5]]))
        assert self.held_out(X, X + 0.5).are_same(SHIFT, 0.04, other) == same

    def test_another_map_of_the_same_order_is_named(self):
        X, Y = spots(n=600, n_right=300)
        second = Maps(np.eye(3)[None], np.full((1, 3), -1.5))
        rows = np.flatnonzero(self.residuals(X, Y) < 0.1)
        for n_second, named in ((130, True), (60, False)):
            Z = Y.copy()
            Z[rows[:n_second]] = X[rows[:n_second]] - 1.5
            found = self.held_out(X, Z, lambda some: second).runner_up(SHIFT, 0.05)
            assert (found is not None) == named
            if named:
                assert found[0] is second
                assert found[1] == pytest.approx(self.held_out(X, Z)._n_places(second, 0.05))
        assert self.held_out(X, Y, lambda some: SHIFT).runner_up(SHIFT, 0.05) is None
        assert self.held_out(X, Y, lambda some: None).runner_up(SHIFT, 0.05) is None


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


class TestHoldOutMore(HeldOut):
    """The same on pairs of which supporters have companions."""

    def companions(self, apart):
        """Forty right pairs, and beside each another, so far apart; the companions are a fold."""
        rng = np.random.default_rng(0)
        X = 3 * rng.random((200, 3))
        Y = 3 * rng.random((200, 3))
        X[40:80] = X[:40]
        X[40:80, 0] += apart
        Y[:80] = X[:80] + 0.5
        fold = np.zeros(200, dtype=bool)
        fold[40:120] = True
        return X, Y, fold

    @pytest.mark.parametrize(("apart", "counted"), [(0.07, 0), (0.08, 40)])
    def test_companions_within_a_quarter_of_the_length_do_not_count(self, apart, counted):
        X, Y, fold = self.companions(apart)
        assert self.held_out(X, Y)._votes_of(fold, SHIFT, 0.05)[0] == pytest.approx(counted, abs=2)

    @pytest.mark.parametrize(("apart", "votes"), [(0.11, 40), (0.13, 80)])
    def test_companions_within_two_fifths_share_a_vote(self, apart, votes):
        X, Y, _ = self.companions(apart)
        everyone = np.ones(200, dtype=bool)
        assert self.held_out(X, Y)._votes_of(everyone, SHIFT, 0.05)[0] == pytest.approx(votes, abs=3)

    @pytest.mark.parametrize(("off", "counted"), [(0.09, 0), (0.11, 40)])
    def test_who_lies_within_two_bounds_supports_elsewhere(self, off, counted):
        X, Y, fold = self.companions(0.05)
        Y[:40, 1] += off  # those that are not of the fold
        Y[40:80, 1] += 0.04
        found = self.held_out(X, Y)._votes_of(fold, SHIFT, 0.05)[0]
        assert found == pytest.approx(counted, abs=3)

    def test_votes_within_a_bound_and_how_unlikely_they_are(self):
        X, Y = spots()
        votes = votes_by_definition(X, Y, np.ones(len(X), dtype=bool), 0.5 * self.LENGTH)
        here = votes[self.residuals(X, Y) <= 0.2].sum()
        rate = self.rate(X, Y, np.arange(len(X)), 0.2)
        found, log_p = self.held_out(X, Y)._votes_within(SHIFT, 0.2)
        assert found == pytest.approx(here)
        assert log_p == pytest.approx(log_poisson_tail(here, votes.sum() * rate), rel=0.1)

    @pytest.mark.parametrize(("n_right", "n_deals"), [(300, 1), (12, 4), (0, 1)])
    def test_further_deals_where_the_first_leaves_it_open(self, n_right, n_deals):
        X, Y = spots(n=600, n_right=n_right)
        test, dealt = self.held_out(X, Y), []
        deal = test._deal
        test._deal = lambda: dealt.append(0) or deal()
        log_p = test.judge(SHIFT, 0.05).log_p_value
        assert len(dealt) == n_deals
        assert log_p < -30 if n_right == 300 else -30 < log_p < -0.7 if n_right == 12 else log_p >= -0.7

    @pytest.mark.parametrize(("distance", "named"), [(0.58, False), (0.7, True)])
    def test_another_map_is_looked_for_beyond_two_lengths(self, distance, named):
        X, Y = spots(n=600, n_right=300)
        rows = np.flatnonzero(self.residuals(X, Y) < 0.1)[:150]
        Y[rows] = X[rows] + 0.5 + [[distance, 0, 0]]
        second, asked = Maps(np.eye(3)[None], np.array([[0.5 + distance, 0.5, 0.5]])), []

        def look(some):
            asked.append(np.linalg.norm(some.y - some.x - 0.5, axis=0).min())
            return second

        found = self.held_out(X, Y, look).runner_up(SHIFT, 0.05)
        assert min(asked) > 2 * self.LENGTH
        assert (found is not None) == named

    def test_first_among_pairs_that_are_no_neighbours_and_last_among_all(self):
        rng = np.random.default_rng(0)
        X = Y = 0.6 * rng.random((300, 3))  # so that there are neighbours at all distances
        sizes = []
        self.held_out(X, Y, lambda some: sizes.append(some.n_pairs)).best(None)
        neighbours = [0.2, 0.35, 0.0, 0.1, 0.25]  # of the length, that no two of them are within
        assert len(sizes) == len(neighbours)
        assert [size == len(X) for size in sizes] == [separation == 0 for separation in neighbours]
        assert sizes[1] < sizes[4] < sizes[0] < sizes[3] < len(X)


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


class TestDoubt:
    """Each turn that `how_sure` can take, with what it asks replaced by answers."""

    @pytest.fixture
    def ask(self, monkeypatch):
        def ask(
            n_far=60,
            alarms=-200.0,
            suspicious=True,
            clumped=False,
            few_places=False,
            by_places=-80.0,
            repeats=-1.0,
        ):
            X = 3 * np.random.default_rng(0).random((200, 3))
            Y = X + 0.5
            Y[:n_far, 0] += 5.0
            said = []
            best = SHIFT if by_places < -10 else None
            answers = {
                "_is_beyond_suspicion": lambda setting, found: not suspicious,
                "looks_clumped": lambda x, y, rng: said.append(("clumped", len(x))) or clumped,
                "clump_length": lambda x, y, rng: said.append(("length", len(x))) or 0.7,
                "_is_in_few_places": lambda pairs, found: few_places,
                "_by_places": lambda setting, found, some, length: (
                    said.append(("places", length)) or (Certainty(by_places, 5.0, length), best)
                ),
                "_beside_repeats": lambda found, far, rng: said.append(("repeats", far.n_pairs)) or repeats,
            }
            for name, answer in answers.items():
                monkeypatch.setattr(find, name, answer)
            setting = Setting(MapModel("rigid", 3), columns(X, Y), None, np.random.default_rng(0))
            found = Candidate(SHIFT, replace(STRONG, log_false_alarms=alarms, bound=0.1))
            certainty, again = find.how_sure(setting, found)
            return certainty.log_p_value, certainty.n_places, again, said

        return ask

    def test_beyond_suspicion_nothing_more_is_asked(self, ask):
        assert ask(suspicious=False, clumped=True) == (-200.0, 60.0, None, [])

    def test_mistakes_that_are_not_clumped_are_judged_by_false_alarms(self, ask):
        assert ask() == (-200.0, 60.0, None, [("clumped", 60)])

    @pytest.mark.parametrize(("n_far", "asked"), [(49, []), (50, [("clumped", 50)])])
    def test_fifty_mistakes_are_needed_to_see_clumps(self, ask, n_far, asked):
        assert ask(n_far=n_far)[3] == asked

    def test_clumped_ones_by_places(self, ask):
        asked = [("clumped", 60), ("length", 60), ("places", 0.7)]
        assert ask(clumped=True) == (-80.0, 5.0, SHIFT, asked)
        assert ask(clumped=True, by_places=-3.0) == (-3.0, 5.0, None, asked)

    def test_support_in_few_places_too_with_four_bounds_for_a_length(self, ask):
        assert ask(few_places=True)[3] == [("clumped", 60), ("places", pytest.approx(0.4))]
        assert ask(few_places=True, alarms=0.0)[3] == [("clumped", 200)]  # where no map is, all are mistakes

    @pytest.mark.parametrize(("alarms", "asked"), [(-39.9, True), (-40.1, False)])
    def test_where_little_speaks_for_it_repeats_are_asked_about(self, ask, alarms, asked):
        log_p, _, _, said = ask(alarms=alarms, repeats=-8.0)
        assert (("repeats", 60) in said) == asked
        assert log_p == (-8.0 if asked else alarms)
        assert ("repeats", 60) not in ask(alarms=-6.0, repeats=-8.0)[3]  # where no map is, none is doubted
        assert ("repeats", 49) not in ask(alarms=-30.0, n_far=49)[3]

    @pytest.mark.parametrize(
        ("n_far", "few_places", "alike", "alarms", "clumped", "beyond"),
        [
            (49, False, True, -30.0, True, True),  # hardly any mistakes
            (49, True, False, -30.0, True, True),
            (49, True, True, -200.0, False, False),  # but the places are few, and each is one witness
            (50, True, False, -200.0, False, False),
            (50, False, True, -39.0, False, False),  # scarce
            (50, False, True, -200.0, True, True),  # a clear majority
            (150, False, True, -200.0, True, False),
            (150, False, True, -200.0, False, True),
        ],
    )
    def test_suspicion(self, n_far, few_places, alike, alarms, clumped, beyond, monkeypatch):
        X = 3 * np.random.default_rng(0).random((200, 3))
        Y = X + 0.5
        Y[:n_far, 0] += 5.0
        monkeypatch.setattr(find, "_is_in_few_places", lambda pairs, found: few_places)
        monkeypatch.setattr(find, "_neighbours_miss_alike", lambda pairs, found: alike)
        monkeypatch.setattr(find, "looks_clumped", lambda x, y, rng: clumped)
        evidence = replace(STRONG, log_false_alarms=alarms, n_supporting=200 - n_far, n_pairs=200)
        setting = Setting(MapModel("rigid", 3), columns(X, Y), None, np.random.default_rng(0))
        assert find._is_beyond_suspicion(setting, Candidate(SHIFT, evidence)) == beyond

    @pytest.mark.parametrize(("n", "looked_at"), [(1000, 1000), (1001, 1000), (999, 999)])
    def test_a_glance_is_at_a_thousand(self, n, looked_at, monkeypatch):
        X = 3 * np.random.default_rng(0).random((n, 3))
        seen = []
        monkeypatch.setattr(find, "_is_in_few_places", lambda pairs, found: bool(seen.append(pairs.n_pairs)))
        setting = Setting(MapModel("rigid", 3), columns(X, X), None, np.random.default_rng(0))
        find._is_beyond_suspicion(setting, Candidate(IDENTITY, STRONG))
        assert seen == [looked_at]

    @pytest.mark.parametrize(("n", "shared", "alike"), [(120, 0.9, True), (120, 0.2, False), (49, 0.9, False)])
    def test_errors_of_neighbours(self, n, shared, alike):
        """Companions side by side, whose errors are mostly one error."""
        rng = np.random.default_rng(0)
        X = 30 * rng.random((n, 3))
        errors = 0.01 * rng.normal(size=(n, 3))
        half = n // 2
        X[half : 2 * half] = X[:half] + 0.001
        errors[half : 2 * half] = shared * errors[:half] + np.sqrt(1 - shared**2) * errors[half : 2 * half]
        errors += 0.02  # which all have in common, and is no error of neighbours
        assert find._neighbours_miss_alike(columns(X, X + errors), Candidate(IDENTITY, STRONG)) == alike
