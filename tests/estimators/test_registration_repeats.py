"""A pair that is listed more than once is one witness."""

from __future__ import annotations

import numpy as np
import pytest

from inlier import NoConsensusError, Registration
from inlier.rows.null_pairs import distinct_pairs
from tests.estimators.test_registration import degrees, is_right, scan

PER_PAIR = ("residuals_", "scores_", "p_values_", "q_values_", "inlier_mask_")


def listed_twice(rng, d=3):
    return np.tile(rng.normal(size=(2, 100, d)), (1, 2, 1))


def in_many_columns(rng):
    return listed_twice(rng, d=12)


def listed_three_times(rng):
    return np.tile(rng.normal(size=(2, 100, 3)), (1, 3, 1))


def some_listed_twice(rng):
    return rng.normal(size=(2, 160, 3))[:, np.r_[:160, rng.permutation(160)[:40]]]


def placeholders(rng, n, share):
    pairs = rng.normal(size=(2, n, 3))
    pairs[:, rng.random(n) < share] = 0.0
    return pairs


@pytest.mark.parametrize(
    ("noise", "model"),
    [
        (listed_twice, "rigid"),
        (listed_three_times, "rigid"),
        (some_listed_twice, "rigid"),
        (lambda rng: listed_twice(rng, d=2), "rigid"),
        (in_many_columns, "rigid"),
        (listed_twice, "similarity"),
        (listed_twice, "rotation"),
        (lambda rng: placeholders(rng, 200, 0.5), "rigid"),
        (lambda rng: placeholders(rng, 200, 0.9), "rigid"),
        (lambda rng: placeholders(rng, 2000, 0.5), "rigid"),
    ],
)
def test_copies_of_wrong_pairs_are_no_consensus(noise, model):
    for seed in range(3 if noise is in_many_columns else 10):
        X, Y = noise(np.random.default_rng(seed))
        registration = Registration(model, random_state=seed, raise_on_failure=False).fit(X, Y)
        assert not registration.success_
        assert all(getattr(registration, name).shape == (len(X),) for name in PER_PAIR)


@pytest.mark.parametrize("d", [3, 12])
@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("model", ["rigid", "similarity", "affine"])
def test_few_pairs_that_are_listed_often(d, n, model):
    X, Y = np.tile(np.random.default_rng(3).normal(size=(2, n, d)), (1, 20, 1))
    with pytest.raises(NoConsensusError, match=f"Of the {20 * n} pairs, {n} differ"):
        Registration(model, random_state=0).fit(X, Y)


def test_the_error_tells_how_many_pairs_differ():
    X, Y = listed_twice(np.random.default_rng(0))
    with pytest.raises(NoConsensusError, match=r"The 100 pairs do not agree .* Of the 200 pairs, 100 differ") as caught:
        Registration(random_state=0).fit(X, Y)
    assert caught.value.evidence.n_pairs == 100


@pytest.mark.parametrize("wrong", [0.5, 0.9])
@pytest.mark.parametrize("repeated", [np.tile, lambda table, times: np.repeat(table, times[0], axis=0)])
def test_a_list_that_is_listed_twice_is_answered_as_if_it_were_once(wrong, repeated):
    X, Y, *_ = scan(1000, wrong)
    once = Registration(random_state=0).fit(X, Y)
    twice = Registration(random_state=0).fit(repeated(X, (2, 1)), repeated(Y, (2, 1)))
    np.testing.assert_array_equal(twice.transformation_.matrix, once.transformation_.matrix)
    np.testing.assert_array_equal(twice.uncertainty_.covariance, once.uncertainty_.covariance)
    for name in PER_PAIR:
        np.testing.assert_array_equal(getattr(twice, name), repeated(getattr(once, name)[:, None], (2, 1))[:, 0])
    for name in ("noise_bound_", "threshold_", "inlier_fraction_", "detection_p_value_", "false_discovery_rate_"):
        assert getattr(twice, name) == getattr(once, name)
    assert twice.result_.n_pairs == 2000


def test_real_pairs_are_found_beside_placeholders():
    X, Y, linear, shift, mask = scan(2000, 0.3)
    X[:1400], Y[:1400], mask[:1400] = 0.0, 0.0, False
    registration = Registration(random_state=0).fit(X, Y)
    assert is_right(registration, X[1400:], linear, shift)
    assert (registration.inlier_mask_ == mask).mean() > 0.99


def test_one_point_with_several_partners_stays_as_it_is():
    X, Y, linear, shift, _ = scan(400, 0.0)
    rng = np.random.default_rng(1)
    others = rng.permutation(Y)
    registration = Registration(random_state=0).fit(np.tile(X, (2, 1)), np.concatenate([Y, others]))
    assert is_right(registration, X, linear, shift)
    assert registration.inlier_fraction_ == pytest.approx(0.5, abs=0.03)


class TestWeights:
    def test_copies_count_with_the_mean_of_their_weights(self):
        X, Y, *_ = scan(300, 0.5)
        weights = np.random.default_rng(0).uniform(0.5, 1.5, 300)
        once = Registration(random_state=0).fit(X, Y, sample_weight=weights)
        both = np.concatenate([0.5 * weights, 1.5 * weights])
        twice = Registration(random_state=0).fit(np.tile(X, (2, 1)), np.tile(Y, (2, 1)), sample_weight=both)
        np.testing.assert_allclose(twice.transformation_.matrix, once.transformation_.matrix, atol=1e-9)

    def test_a_copy_of_weight_0_takes_nothing_away(self):
        X, Y, *_ = scan(300, 0.5)
        once = Registration(random_state=0).fit(X, Y)
        masked = Registration(random_state=0).fit(np.tile(X, (2, 1)), np.tile(Y, (2, 1)), np.repeat([1.0, 0.0], 300))
        np.testing.assert_array_equal(masked.transformation_.matrix, once.transformation_.matrix)

    @pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e300, 1e308])
    def test_their_unit_does_not_matter(self, weight):
        X, Y, *_ = scan(300, 0.5)
        expected, found = (Registration(random_state=0).fit(X, Y, sample_weight=np.full(300, w)) for w in (1.0, weight))
        np.testing.assert_array_equal(found.transformation_.matrix, expected.transformation_.matrix)
        np.testing.assert_array_equal(found.uncertainty_.covariance, expected.uncertainty_.covariance)


class TestUnits:
    @pytest.mark.parametrize(("unit", "what"), [(1e160, "infinity"), (1e-160, "zero")])
    @pytest.mark.parametrize("side", [0, 1])
    def test_what_is_too_large_or_too_small_is_said(self, unit, what, side):
        pair = list(scan(200, 0.0)[:2])
        pair[side] = unit * pair[side]
        with pytest.raises(ValueError, match=f"The largest value of {'Xy'[side]} is .* told from {what}. Divide"):
            Registration("similarity", random_state=0).fit(*pair)

    @pytest.mark.parametrize("side", [0, 1])
    def test_numbers_that_are_kept_with_fewer_digits_are_said(self, side):
        pair = list(scan(200, 0.0)[:2])
        pair[side] = 1e-300 * pair[side]
        with pytest.raises(ValueError, match=f"{'Xy'[side]} holds numbers as small as .* Multiply them by 1e300 first"):
            Registration("similarity", random_state=0).fit(*pair)

    @pytest.mark.filterwarnings("ignore:overflow|invalid value:RuntimeWarning")
    def test_a_single_one_is_to_blame(self):
        X, Y, *_ = scan(2000, 0.0)
        X[77, 1] = 1e200
        with pytest.raises(ValueError, match="The largest value of X is 1e\\+200"):
            Registration(random_state=0).fit(X, Y)

    @pytest.mark.parametrize("unit", [1e-70, 1e-30, 1e30, 1e70])
    def test_what_is_merely_large_or_small_is_registered(self, unit):
        X, Y, linear, _, mask = scan(400, 0.5)
        registration = Registration(random_state=0).fit(unit * X, unit * Y)
        assert degrees(registration.transformation_.rotation, linear) < 1
        assert (registration.inlier_mask_ == mask).mean() > 0.98

    def test_rows_of_zeros_at_regular_places_do_not_make_it_small(self):
        X, Y, linear, shift, _ = scan(6400, 0.0)
        step = 6400 // 64 + 1
        X[::step], Y[::step] = 0.0, 0.0
        assert is_right(Registration(random_state=0).fit(X, Y), X, linear, shift)


def test_distinct_pairs_in_the_order_of_the_list():
    X = np.array([[3.0], [1.0], [3.0], [0.0], [-0.0]])
    Y = np.array([[1.0], [3.0], [1.0], [2.0], [2.0]])
    rows, numbers = distinct_pairs(X, Y)
    assert rows.tolist() == [0, 1, 3]
    assert numbers.tolist() == [0, 1, 0, 2, 2]
