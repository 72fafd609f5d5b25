from __future__ import annotations

import json

import numpy as np
import pytest

from inlier import CalibratedMatcher, SplitMatcher
from inlier.calibration.models.learner import Learner, re_paired_scores
from inlier.calibration.models.linear_map import LinearMap, learn_map
from inlier.calibration.models.significance import Significance
from inlier.datasets import load_brain, make_gaussian_pairs, make_mispaired
from inlier.estimators._base import prepare_model_pairs
from inlier.metrics import error_rates
from inlier.rows.null_pairs import point_numbers

UNUSED = Significance(np.ones(1), 0.0, 1.0, 0.0)  # for maps of which it does not matter how they were learned


def judged(data, **parameters):
    matcher = CalibratedMatcher(random_state=0, **parameters).fit(data.X, data.Y)
    accepted = matcher.inlier_mask_
    recall = (accepted & data.inlier_mask).sum() / max(data.inlier_mask.sum(), 1)
    return matcher, recall, (accepted & ~data.inlier_mask).sum() / max(accepted.sum(), 1)


@pytest.mark.parametrize(
    ("n", "d", "fraction", "noise"),
    [
        (5000, 50, 0.05, 0.0),
        (1000, 50, 0.1, 0.0),
        (1000, 300, 0.1, 0.0),
        (2000, 50, 0.05, 0.3),
        (2000, 300, 0.05, 0.3),
        (1000, 6, 0.2, 0.05),
        (1000, 3, 0.5, 0.0),
        (200, 300, 0.5, 0.05),
        (1000, 50, 1.0, 0.3),
        (200, 3, 1.0, 0.0),
    ],
)
def test_real_pairs_are_found_and_counted(n, d, fraction, noise):
    matcher, recall, false = judged(make_gaussian_pairs(n, d, fraction, noise=noise, rng=1))
    assert recall >= 0.97
    assert false <= 0.03
    assert matcher.inlier_fraction_ == pytest.approx(fraction, abs=0.03 if n >= 1000 else 0.1)
    assert matcher.detection_p_value_ <= 0.01


@pytest.mark.parametrize(("fraction", "least_found"), [(1.0, 0.99), (0.5, 0.8)])
def test_heavy_tails_in_far_more_dimensions_than_pairs(fraction, least_found):
    """There rows of unit length are compared: a few long rows would otherwise drown the others."""
    rng = np.random.default_rng(0)
    X, others = rng.standard_t(3, size=(2, 200, 300))
    real = np.arange(200) < 200 * fraction
    Y = np.where(real[:, None], X, others) + 0.3 * rng.standard_normal(X.shape)
    accepted = CalibratedMatcher(random_state=0).fit(X, Y).inlier_mask_
    assert accepted[real].mean() >= least_found
    assert (accepted & ~real).sum() <= 3


def test_rows_keep_their_lengths_where_few_directions_matter():
    X, Y = np.random.default_rng(0).standard_normal((2, 100, 200)) / np.arange(1, 201)
    assert prepare_model_pairs(X, Y, whiten=True).X is X
    assert prepare_model_pairs(X * np.arange(1, 201), Y, whiten=True).X is not X


def test_the_rate_of_false_discoveries_over_many_draws():
    """A weak case, where real and wrong pairs overlap and the rate is really used up."""
    proportions, recalls = [], []
    for seed in range(40):
        data = make_gaussian_pairs(600, 3, 0.5, noise=0.3, rng=seed)
        _, recall, false = judged(data, alpha=0.05)
        proportions.append(false)
        recalls.append(recall)
    assert 0.02 <= np.mean(proportions) <= 0.06
    assert np.mean(recalls) > 0.8


def test_wrong_pairs_have_uniform_p_values():
    p = np.concatenate(
        [
            judged(data)[0].p_values_[~data.inlier_mask]
            for data in (make_gaussian_pairs(1000, 6, 0.3, noise=0.2, rng=seed) for seed in range(15))
        ]
    )
    for level in (0.01, 0.1, 0.5, 0.9):
        assert (p <= level).mean() == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / p.size))


def test_nothing_matches_when_nothing_does():
    found = [judged(make_gaussian_pairs(300, 10, 0.0, rng=seed), alpha=0.05)[0] for seed in range(40)]
    assert sum(matcher.inlier_mask_.any() for matcher in found) <= 6
    silent = next(matcher for matcher in found if not matcher.inlier_mask_.any())
    assert silent.threshold_ > silent.scores_.max()
    assert silent.result_.n_inliers == 0


def test_brain_is_solved_where_k_means_errs():
    for fraction in (0.3, 0.8, 1.0):
        data = make_mispaired(load_brain().features, 4000, fraction, rng=0)
        matcher, _, _ = judged(data)
        assert error_rates(data.inlier_mask, matcher.inlier_mask_).overall < 0.005


def test_the_threshold_and_the_mask_agree():
    data = make_gaussian_pairs(500, 10, 0.4, noise=0.2, rng=0)
    matcher, _, _ = judged(data, alpha=0.05)
    np.testing.assert_array_equal(matcher.inlier_mask_, matcher.scores_ >= matcher.threshold_)
    np.testing.assert_array_equal(matcher.inlier_mask_, matcher.q_values_ <= 0.05)


def test_a_linear_map_between_spaces_of_different_width():
    rng = np.random.default_rng(0)
    data = make_gaussian_pairs(2000, 8, 0.4, noise=0.05, rng=0)
    Y = data.Y @ (rng.standard_normal((8, 20)) * 10.0 ** rng.uniform(-3, 3, 20))
    accepted = CalibratedMatcher(random_state=0).fit(data.X, Y).inlier_mask_
    assert (accepted & data.inlier_mask).sum() > 0.97 * data.inlier_mask.sum()
    assert (accepted & ~data.inlier_mask).sum() < 0.03 * accepted.sum()


def test_without_whitening():
    _, recall, false = judged(make_gaussian_pairs(1000, 30, 0.3, noise=0.1, rng=0), whiten=False)
    assert recall > 0.97
    assert false < 0.03


def test_one_column_on_each_side():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(2000)
    y = np.where(rng.uniform(size=2000) < 0.5, 2 * x + 1, rng.normal(1, 2, 2000))
    accepted = CalibratedMatcher(alpha=0.05, random_state=0).fit(x.reshape(-1, 1), y).inlier_mask_
    assert accepted[y == 2 * x + 1].mean() > 0.95
    assert accepted[y != 2 * x + 1].mean() < 0.1


def test_the_seed_decides_and_the_answer_hardly_depends_on_it():
    data = make_gaussian_pairs(400, 6, 0.4, noise=0.2, rng=0)
    masks = [CalibratedMatcher(random_state=seed).fit(data.X, data.Y).inlier_mask_ for seed in (0, 0, 1, 2)]
    np.testing.assert_array_equal(masks[0], masks[1])
    assert max((masks[0] != mask).mean() for mask in masks[2:]) < 0.05


def test_works_in_parts():
    data = make_gaussian_pairs(3000, 20, 0.3, noise=0.1, rng=0)
    split = SplitMatcher(CalibratedMatcher(), n_splits=3, random_state=0).fit(data.X, data.Y)
    assert error_rates(data.inlier_mask, split.inlier_mask_).overall < 0.01
    np.testing.assert_array_equal(split.result_.q_values <= 0.01, split.inlier_mask_)
    assert split.inlier_fraction_ == pytest.approx(0.3, abs=0.02)
    with pytest.raises(ValueError, match=r"fewer than 4 of the n_samples = 10 pairs; use 2 or less"):
        SplitMatcher(CalibratedMatcher(), n_splits=3).fit(data.X[:10], data.Y[:10])


def test_result_has_the_p_and_q_values():
    data = make_gaussian_pairs(100, 5, 0.5, rng=0)
    result = CalibratedMatcher(random_state=0).fit(data.X, data.Y).result_
    columns = ["score", "p_value", "q_value", "inlier", "certain_q_value", "certain", "n_rivals"]
    assert list(result.to_frame().columns) == columns
    assert json.loads(result.to_json())["q_value"] == result.q_values.tolist()


class TestRepeatedPoints:
    def test_equal_rows_get_equal_numbers(self):
        table = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [2.0, 1.0]])
        numbers = point_numbers(table)
        assert numbers[0] == numbers[2]
        assert len(set(numbers.tolist())) == 3

    @pytest.mark.parametrize("side", [0, 1])
    @pytest.mark.parametrize("per_pair", [10, 1000])
    def test_a_point_is_never_re_paired_with_itself(self, per_pair, side):
        rng = np.random.default_rng(0)
        points = np.stack([np.arange(300), np.arange(300)])
        points[side] = rng.integers(0, 40, 300)
        x, y = points[0][:, None].astype(float), points[1][:, None].astype(float)
        scores = re_paired_scores(
            _NameThePair(np.ones((1, 1)), np.zeros(1), np.ones(1), 0.0, UNUSED),
            x,
            y,
            points,
            per_pair,
            np.random.RandomState(0),
        )
        paired = {(int(code) // 1000, int(code) % 1000) for code in scores}
        own = set(zip(points[0].tolist(), points[1].tolist(), strict=True))
        assert scores.size > 300
        assert not paired & own
        repeated = set(points[side].tolist())
        partners = {number: {pair[1 - side] for pair in own if pair[side] == number} for number in repeated}
        assert all(pair[1 - side] not in partners[pair[side]] for pair in paired)

    @pytest.mark.parametrize("shares", [(0.9, 0.1), (0.8, 0.1, 0.05, 0.03, 0.02)])
    def test_a_point_that_most_pairs_share_makes_no_wrong_pair_convincing(self, shares):
        found = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X, y = rng.standard_normal((1000, 3)), np.eye(len(shares))[rng.choice(len(shares), 1000, p=shares)]
            matcher = CalibratedMatcher(random_state=seed).fit(X, y)
            found.append([matcher.inlier_fraction_, matcher.inlier_mask_.any(), (matcher.p_values_ <= 0.1).mean()])
        share, accepting, low = np.mean(found, axis=0)
        assert share < 0.2  # 0.2 to 0.4 if such points are met less; an estimate, whose lower bound is 0 in all
        assert accepting <= 0.2  # of the draws; alpha is 0.01, and 4 in 160 of them accept some
        assert low < 0.1  # 0.13 to 0.15

    def test_many_to_one_pairs_keep_their_p_values(self, monkeypatch):
        # 25 sources per target. A re-pairing that met the same target again would be a true pair in disguise:
        # one in forty, too many for alpha = 0.02 with half of the pairs wrong.
        rng = np.random.default_rng(0)
        targets = rng.standard_normal((40, 5))
        which = np.repeat(np.arange(40), 25)
        X = targets[which] + 0.02 * rng.standard_normal((1000, 5))
        wrong = rng.permutation(1000)[:500]
        which[wrong] = (which[wrong] + rng.integers(1, 40, 500)) % 40
        real = np.setdiff1d(np.arange(1000), wrong)
        accepted = CalibratedMatcher(alpha=0.02, random_state=0).fit(X, targets[which]).inlier_mask_
        assert accepted[real].mean() > 0.97
        assert accepted[wrong].mean() < 0.03
        monkeypatch.setattr("inlier.rows.null_pairs.point_numbers", lambda table: np.arange(len(table)))
        naive = CalibratedMatcher(alpha=0.02, random_state=0).fit(X, targets[which]).inlier_mask_
        assert naive[real].mean() < 0.5


class _NameThePair(LinearMap):
    """A map whose score says which x it was given with which y."""

    def scores(self, x, y):
        return x[:, 0] * 1000 + y[:, 0]

    def pairings(self, x, y):
        return lambda i, j: self.scores(x[i], y[j])

    def scores_of_all_pairings(self, x, y):
        return x[:, :1] * 1000 + y[:, 0]


def test_large_tables_are_learned_from_a_part(monkeypatch):
    monkeypatch.setattr("inlier.calibration.models.learner._PILOT", 300)
    monkeypatch.setattr("inlier.calibration.cross_fit.RE_PAIRINGS", 5000)
    data = make_gaussian_pairs(3000, 5, 0.4, noise=0.05, rng=0)
    _, recall, false = judged(data)
    assert recall > 0.95
    assert false < 0.03


def test_more_pairs_are_used_when_a_part_finds_nothing(monkeypatch):
    monkeypatch.setattr("inlier.calibration.models.learner._PILOT", 50)
    monkeypatch.setattr("inlier.calibration.models.learner._PILOT_PER_DIMENSION", 1)
    recalls = [judged(make_gaussian_pairs(4000, 20, 0.05, rng=draw))[1] for draw in range(7)]
    assert np.median(recalls) > 0.9  # now and then even the largest part finds nothing (draw 2)


@pytest.mark.parametrize("n", [2000, 300])  # dealt once, and several times
def test_a_fold_that_finds_nothing_says_nothing(monkeypatch, n):
    data = make_gaussian_pairs(n, 5, 0.5, rng=0)
    honest, calls = Learner.learn, []

    def every_fifth_fails(*arguments, **options):
        calls.append(1)
        return None if len(calls) % 5 == 1 else honest(*arguments, **options)

    monkeypatch.setattr(Learner, "learn", every_fifth_fails)
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    assert abs(matcher.inlier_fraction_ - 0.5) < 0.04  # a fifth is not scored: that is no reason to call it wrong
    if n == 2000:
        bottom = matcher.scores_ == matcher.scores_.min()
        assert bottom.sum() == n // 5
        assert (matcher.p_values_[bottom] == 1).all()
        assert not matcher.inlier_mask_[bottom].any()


def test_where_no_fold_finds_anything_nothing_is_found(monkeypatch):
    monkeypatch.setattr(Learner, "learn", lambda *_, **__: None)
    data = make_gaussian_pairs(200, 5, 0.5, rng=0)
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    assert (matcher.p_values_ == 1).all()
    assert not matcher.inlier_mask_.any()
    assert matcher.inlier_fraction_ == 0


def test_tables_with_hardly_any_distinct_pair_are_answered():
    for X, y in (
        ([[0.0]] * 10 + [[1.0]] * 10, [0.0] * 10 + [1.0] * 10),
        ([[0.0], [0.0], [0.0], [1.0]], [0.0, 0.0, 0.0, 1.0]),
    ):
        matcher = CalibratedMatcher(random_state=0).fit(X, y)
        assert not matcher.inlier_mask_.any()
        assert (matcher.p_values_ == 1).all()


@pytest.mark.filterwarnings("ignore:.*columns of X holds? a single value")
def test_a_large_constant_column_hides_nothing():
    data = make_gaussian_pairs(400, 5, 0.7, rng=0)
    X = np.column_stack([data.X * 1e-3, np.full(400, 1.7e18)])
    assert CalibratedMatcher(random_state=0).fit(X, data.Y).inlier_mask_[data.inlier_mask].mean() > 0.97


@pytest.mark.parametrize("units", [1e170, 1e200, 1e-170])
@pytest.mark.parametrize(("n", "d", "whiten"), [(300, 3, False), (60, 20, True), (300, 3, True)])
def test_extreme_units_change_nothing(units, n, d, whiten):
    data = make_gaussian_pairs(n, d, 0.7, rng=0)
    plain, scaled = (
        CalibratedMatcher(alpha=0.05, whiten=whiten, random_state=0).fit(data.X * factor, data.Y).inlier_mask_
        for factor in (1.0, units)
    )
    assert (plain != scaled).mean() < 0.02
    assert plain.any()


def test_looking_for_nothing_among_many_pairs_ends(monkeypatch):
    monkeypatch.setattr("inlier.calibration.models.learner._PILOT", 100)
    monkeypatch.setattr("inlier.calibration.models.learner._PILOT_PER_DIMENSION", 1)
    sizes = []
    honest = learn_map

    def record(x, *arguments):
        sizes.append(len(x))
        return honest(x, *arguments)

    monkeypatch.setattr("inlier.calibration.models.learner.learn_map", record)
    matcher, _, _ = judged(make_gaussian_pairs(5000, 4, 0.0, rng=0))
    assert not matcher.inlier_mask_.any()
    assert sizes.count(1600) <= 1  # the pilot looks hard, and the folds do not have to
    assert max(sizes) <= 1600


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.9}, "alpha must lie between 0 and 0.5"),
        ({"alpha": "low"}, "alpha must be a finite number"),
        ({"n_folds": 1}, "n_folds must be a whole number of at least 2"),
    ],
)
def test_bad_parameters(parameters, message):
    data = make_gaussian_pairs(50, 3, 0.5, rng=0)
    with pytest.raises(ValueError, match=message):
        CalibratedMatcher(**parameters).fit(data.X, data.Y)


def test_too_few_pairs():
    with pytest.raises(ValueError, match=r"At least 4 pairs are needed.*there are 3 .*: give more rows"):
        CalibratedMatcher().fit(np.eye(3), np.eye(3))


@pytest.mark.parametrize("n", [4, 5, 7, 20])
def test_small_tables_are_answered(n):
    data = make_gaussian_pairs(n, 2, 1.0, rng=0)
    matcher = CalibratedMatcher(alpha=0.2, random_state=0).fit(data.X, data.Y)
    lowest = 1 / (1 + matcher.n_re_pairings_)
    assert ((matcher.p_values_ >= lowest) & (matcher.p_values_ <= 1)).all()
    assert (matcher.q_values_ >= matcher.detection_p_value_).all()
    np.testing.assert_array_equal(matcher.inlier_mask_, matcher.q_values_ <= 0.2)
    np.testing.assert_array_equal(matcher.inlier_mask_, matcher.scores_ >= matcher.threshold_)
    if n == 20:
        assert matcher.inlier_mask_.all()
    if n == 4:  # two folds of two: four re-pairings, too few to be sure of anything
        assert not matcher.inlier_mask_.any()
