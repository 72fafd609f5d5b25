from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import special_ortho_group
from sklearn.exceptions import NotFittedError

from inlier import NoConsensusError, Registration, SplitMatcher
from inlier.datasets import load_brain, make_gaussian_pairs, make_mispaired
from inlier.exceptions import ParameterError
from inlier.metrics import error_rates

REAL = Path(__file__).parents[3] / "shared" / "data"


def scan(n, wrong, seed=0, d=3, noise=0.01, placement="uniform", scale=1.0, mirrored=False):
    """A closed surface in the unit cube, moved; ``wrong`` of the pairs lead elsewhere."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=(n, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    X = 0.5 + direction * (0.35 + 0.1 * np.sin(3 * direction[:, :1]))
    rotation = special_ortho_group.rvs(d, random_state=rng)
    if mirrored:
        rotation[:, 0] *= -1
    shift = rng.uniform(-1, 1, d)
    real_y = scale * X @ rotation.T + shift
    Y = real_y + noise * rng.normal(size=(n, d))
    bad = rng.permutation(n)[: round(wrong * n)]
    centre = Y.mean(axis=0)
    if placement == "uniform":
        Y[bad] = centre + scale * rng.uniform(-0.5, 0.5, (bad.size, d))
    elif placement == "aside":
        Y[bad] = centre + 1 + 0.5 * rng.normal(size=(bad.size, d))
    else:
        Y[bad] = real_y[rng.permutation(n)[: bad.size]]
    mask = np.ones(n, dtype=bool)
    mask[bad] = False
    return X, Y, scale * rotation, shift, mask


def degrees(linear, truth):
    a, b = (m / np.linalg.norm(m, 2) for m in (linear, truth))
    return np.degrees(np.linalg.norm(a.T @ b - np.eye(len(a)), 2))


def is_right(registration, X, linear, shift):
    centre = X.mean(axis=0)
    moved = registration.transform(centre[None])[0]
    off = np.linalg.norm(moved - linear @ centre - shift)
    return degrees(registration.transformation_.linear, linear) < 5 and off < 0.05


@pytest.mark.parametrize(
    ("n", "wrong", "placement"),
    [
        (100, 0.8, "uniform"),
        (1000, 0.0, "uniform"),
        (1000, 0.5, "aside"),
        (1000, 0.95, "re-paired"),
        (1000, 0.98, "aside"),
        (1000, 0.99, "uniform"),
        (10_000, 0.99, "uniform"),
        (10_000, 0.995, "uniform"),
        (10_000, 0.98, "re-paired"),
        (100_000, 0.995, "uniform"),
    ],
)
def test_the_transformation_is_found_among_wrong_pairs(n, wrong, placement):
    X, Y, linear, shift, mask = scan(n, wrong, seed=n, placement=placement)
    registration = Registration(random_state=0).fit(X, Y)
    assert registration.success_
    assert is_right(registration, X, linear, shift)
    accepted = registration.inlier_mask_
    wrong_share = (accepted & ~mask).sum() / max(accepted.sum(), 1)
    assert wrong_share <= registration.false_discovery_rate_ + 3 * np.sqrt(0.05 / max(accepted.sum(), 1))
    assert (accepted & mask).sum() >= 0.4 * mask.sum()
    assert 0.015 < registration.noise_bound_ < 0.06


@pytest.mark.parametrize(("n", "draws"), [(20, 40), (100, 40), (1000, 10)])
@pytest.mark.parametrize("placement", ["uniform", "re-paired"])
def test_nothing_is_found_where_nothing_is(n, draws, placement):
    found = [
        Registration(random_state=seed, raise_on_failure=False).fit(*scan(n, 1.0, seed, placement=placement)[:2])
        for seed in range(draws)
    ]
    assert not any(registration.success_ for registration in found)
    failed = next(registration for registration in found if not registration.success_)
    assert failed.transformation_ is None
    assert not failed.inlier_mask_.any()
    assert failed.scores_.max() < failed.threshold_
    assert failed.detection_p_value_ > 3e-4
    assert np.isnan(failed.transform(np.zeros((2, 3)))).all()  # never the identity


def test_too_few_pairs_are_called_too_few():
    X, Y = np.random.default_rng(0).normal(size=(2, 4, 3))
    with pytest.raises(NoConsensusError, match="4 pairs are too few to tell: any 3 fit some rigid"):
        Registration(random_state=0).fit(X, Y)


def test_where_the_nearest_are_as_near_as_wrong_pairs_no_number_of_them_is_told():
    X, Y = np.random.default_rng(0).normal(size=(2, 30, 3))
    with pytest.raises(NoConsensusError, match="None that was found brings more of them together than") as caught:
        Registration(random_state=0).fit(X, Y)
    assert caught.value.evidence.by_chance > 0.3


def test_failure_is_an_error_with_the_evidence():
    X, Y = np.random.default_rng(0).normal(size=(2, 200, 3))
    with pytest.raises(NoConsensusError, match=r"200 pairs do not agree on any rigid .* of them within") as caught:
        Registration(random_state=0).fit(X, Y)
    assert isinstance(caught.value, ValueError)
    assert caught.value.evidence.n_pairs == 200
    assert caught.value.evidence.log_false_alarms > np.log(1e-3)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize(
    ("model", "problem", "parameters"),
    [
        ("rigid", {"mirrored": True}, {"reflection": True}),
        ("similarity", {"scale": 7.0}, {}),
        ("similarity", {"scale": 0.1, "mirrored": True}, {"reflection": True}),
        ("affine", {"scale": 1.5}, {}),
    ],
)
def test_models(d, model, problem, parameters):
    scale = problem.get("scale", 1.0)
    X, Y, linear, shift, mask = scan(1000, 0.9, seed=d, d=d, noise=0.005 * scale, **problem)
    registration = Registration(model, random_state=0, **parameters).fit(X, Y)
    assert np.abs(registration.transformation_.linear - linear).max() < 0.06 * scale
    assert np.abs(registration.transform(X[mask]) - X[mask] @ linear.T - shift).max() < 0.05 * scale
    assert (registration.inlier_mask_ == mask).mean() > 0.94  # in the plane half of the 100 right ones may stay unsure


@pytest.mark.parametrize(("model", "mirrored"), [("rotation", False), ("orthogonal", True)])
def test_models_without_translation(model, mirrored):
    X, Y, linear, shift, mask = scan(600, 0.8, seed=1, mirrored=mirrored)
    registration = Registration(model, random_state=0).fit(X, Y - shift)
    assert degrees(registration.transformation_.rotation, linear) < 1.5
    assert not registration.transformation_.translation.any()
    assert (registration.inlier_mask_ == mask).mean() > 0.98


def test_an_affine_map_that_shears_between_spaces_of_different_width():
    rng = np.random.default_rng(0)
    linear = rng.normal(size=(2, 3))
    X = rng.normal(size=(800, 3))
    Y = X @ linear.T + [5, -5] + 0.02 * rng.normal(size=(800, 2))
    Y[:400] = rng.permutation(Y[:400])
    registration = Registration("affine", random_state=0).fit(X, Y)
    assert np.abs(registration.transformation_.linear - linear).max() < 0.02


def test_one_dimension_is_a_shift():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    Y = X[:, 0] + 4 + 0.001 * rng.normal(size=300)
    Y[:150] = rng.normal(size=150) + 4
    assert Registration(random_state=0).fit(X, Y).transformation_.translation[0] == pytest.approx(4, abs=0.001)


class TestManyDimensions:
    @pytest.mark.parametrize(
        ("n", "d", "fraction", "noise"), [(2000, 6, 0.05, 0.02), (1000, 20, 0.1, 0.1), (1000, 50, 0.3, 0.3)]
    )
    def test_rotation_and_pairs_are_found(self, n, d, fraction, noise):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(2, n, d))
        rotation = special_ortho_group.rvs(d, random_state=0)
        real = rng.random(n) < fraction
        Y[real] = X[real] @ rotation.T + noise * Y[real]
        registration = Registration(random_state=0).fit(X, 3 + Y)
        np.testing.assert_allclose(registration.transformation_.rotation, rotation, atol=0.3)
        assert (registration.inlier_mask_ == real).mean() > 0.99

    def test_fewer_real_pairs_than_dimensions(self):
        data = make_gaussian_pairs(600, 200, 0.25, noise=0.05, rng=0)
        with pytest.warns(UserWarning, match="do not determine all of a rigid transformation in 200 dimensions"):
            registration = Registration(random_state=0, reflection=True).fit(data.X, data.Y)
        assert not registration.transformation_.determined
        assert (registration.inlier_mask_ == data.inlier_mask).mean() > 0.98
        of_real = registration.residuals_[data.inlier_mask]
        assert of_real.max() < 0.5 * registration.residuals_[~data.inlier_mask].min()
        share, error = registration.inlier_fraction_, registration.inlier_fraction_error_
        assert abs(share - data.inlier_mask.mean()) < 2 * error < 0.15

    def test_wrong_pairs_that_spread_wider_are_searched_by_distances(self):
        rng = np.random.default_rng(3)
        X, Y = rng.normal(size=(2, 1000, 20))
        Y *= 3
        real = rng.random(1000) < 0.1
        Y[real] = X[real] + 0.1 * rng.normal(size=(real.sum(), 20))
        registration = Registration(random_state=0).fit(X, Y)
        assert (registration.inlier_mask_ == real).mean() > 0.99
        assert registration.scores_ == pytest.approx(-registration.residuals_)

    def test_nothing_to_find(self):
        X, Y = np.random.default_rng(0).normal(size=(2, 300, 12))
        with pytest.raises(NoConsensusError):
            Registration(random_state=0).fit(X, Y)


@pytest.mark.parametrize("fraction", [0.8, 0.3])
def test_the_brain_is_solved_where_the_paper_errs(fraction):
    data = make_mispaired(load_brain().features, 12_000, fraction, rng=0)
    registration = Registration("orthogonal", random_state=0).fit(data.X, data.Y)
    assert error_rates(data.inlier_mask, registration.inlier_mask_).overall < 0.001


@pytest.mark.skipif(not REAL.is_dir(), reason="the real putative matches are not beside this checkout")
@pytest.mark.parametrize(
    "path",
    sorted(REAL.glob("reg3d/*.npz")) + sorted(REAL.glob("match2d/*.npz")),
    ids=lambda path: getattr(path, "stem", None),
)
def test_real_putative_matches(path):
    problem = np.load(path)
    X, Y, truth = problem["X"], problem["Y"], problem["R"]
    turn = special_ortho_group.rvs(X.shape[1], random_state=0)  # a small motion shall help nobody
    for bound in (None, float(problem["tau"])):
        registration = Registration(noise_bound=bound, random_state=0).fit(X @ turn.T, Y)
        assert degrees(registration.transformation_.rotation, truth @ turn.T) < (5 if X.shape[1] == 3 else 2)


class TestNoiseBound:
    def test_a_bound_decides_who_is_accepted(self):
        X, Y, linear, shift, _ = scan(1000, 0.9)
        registration = Registration(noise_bound=0.05, random_state=0).fit(X, Y)
        assert is_right(registration, X, linear, shift)
        assert registration.noise_bound_ == 0.05
        np.testing.assert_array_equal(registration.inlier_mask_, registration.residuals_ <= 0.05)

    def test_the_bound_that_is_found_follows_the_noise(self):
        bounds = [Registration(random_state=0).fit(*scan(2000, 0.5, noise=s)[:2]).noise_bound_ for s in (0.002, 0.02)]
        assert bounds[1] / bounds[0] == pytest.approx(10, rel=0.4)

    def test_exact_pairs_have_hardly_any_noise(self):
        X, Y, linear, _, mask = scan(500, 0.6, noise=0.0)
        registration = Registration(random_state=0).fit(X, Y)
        assert registration.noise_bound_ < 1e-8
        np.testing.assert_allclose(registration.transformation_.rotation, linear, atol=1e-9)
        np.testing.assert_array_equal(registration.inlier_mask_, mask)


class TestWeights:
    def test_pairs_of_weight_0_do_not_help(self):
        X, Y, _, _, mask = scan(400, 0.5)
        with pytest.raises(NoConsensusError):
            Registration(random_state=0).fit(X, Y, sample_weight=~mask)

    def test_they_are_judged_all_the_same(self):
        X, Y, _, _, mask = scan(400, 0.2)
        weights = np.ones(400)
        weights[:100] = 0
        registration = Registration(random_state=0).fit(X, Y, sample_weight=weights)
        assert (registration.inlier_mask_[:100] == mask[:100]).mean() > 0.97

    def test_prior_similarity_finds_what_is_hidden_otherwise(self):
        """Forty real pairs of 20,000, hinted at by a similarity that many wrong ones share."""
        X, Y, linear, shift, mask = scan(20_000, 0.998, seed=1)
        hint = np.where(mask | (np.arange(20_000) % 20 == 0), 50.0, 1.0)
        registration = Registration(random_state=0).fit(X, Y, sample_weight=hint)
        assert is_right(registration, X, linear, shift)

    def test_small_weights_for_noisy_pairs_sharpen_the_fit(self):
        rng = np.random.default_rng(0)
        X, _, linear, shift, _ = scan(1000, 0.0)
        noise = np.where(np.arange(1000) < 900, 0.05, 0.001)[:, None]
        Y = X @ linear.T + shift + noise * rng.normal(size=X.shape)
        plain, weighted = (
            Registration(noise_bound=0.2, random_state=0).fit(X, Y, sample_weight=w) for w in (None, noise[:, 0] ** -2)
        )
        errors = [degrees(r.transformation_.rotation, linear) for r in (plain, weighted)]
        assert errors[1] < errors[0] / 3

    @pytest.mark.parametrize("weights", [[1, 2], [-1] * 50, [np.nan] * 50])
    def test_bad_weights(self, weights):
        X, Y = np.random.default_rng(0).normal(size=(2, 50, 3))
        with pytest.raises(ValueError, match="weight"):
            Registration().fit(X, Y, sample_weight=weights)


class TestInvariance:
    @settings(max_examples=10, deadline=None)
    @given(seed=st.integers(0, 1000), scale=st.sampled_from([1e-6, 1.0, 1e5]), shift=st.sampled_from([0.0, 1e4]))
    def test_motion_and_units_of_either_side(self, seed, scale, shift):
        X, Y, linear, _, mask = scan(400, 0.8, seed=5)
        turn = special_ortho_group.rvs(3, random_state=seed)
        registration = Registration(random_state=seed).fit(scale * X @ turn.T + scale * shift, scale * Y)
        assert degrees(registration.transformation_.rotation, linear @ turn.T) < 2
        assert (registration.inlier_mask_ == mask).mean() > 0.98

    def test_order_of_the_pairs(self):
        X, Y, _, _, _ = scan(500, 0.9)
        order = np.random.default_rng(0).permutation(500)
        first, second = Registration(random_state=0).fit(X, Y), Registration(random_state=0).fit(X[order], Y[order])
        assert (first.inlier_mask_[order] == second.inlier_mask_).mean() > 0.99
        assert degrees(first.transformation_.rotation, second.transformation_.rotation) < 0.5

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_types(self, dtype):
        X, Y, linear, shift, _ = scan(500, 0.9)
        registration = Registration(random_state=0).fit(X.astype(dtype), Y.astype(dtype))
        assert is_right(registration, X, linear, shift)

    def test_the_seed_decides(self):
        X, Y, *_ = scan(500, 0.9)
        first, second = (Registration(random_state=7).fit(X, Y) for _ in range(2))
        np.testing.assert_array_equal(first.transformation_.matrix, second.transformation_.matrix)
        np.testing.assert_array_equal(first.q_values_, second.q_values_)


def test_the_parts_of_the_answer_fit_together():
    X, Y, *_ = scan(800, 0.7)
    registration = Registration(random_state=0).fit(X, Y)
    np.testing.assert_allclose(registration.residuals_, np.linalg.norm(Y - registration.transform(X), axis=1))
    np.testing.assert_array_equal(registration.scores_, -registration.residuals_)
    np.testing.assert_array_equal(registration.inlier_mask_, registration.scores_ >= registration.threshold_)
    assert (registration.q_values_[registration.inlier_mask_] <= 0.01).all()
    assert registration.inlier_fraction_ == pytest.approx(0.3, abs=0.03)
    assert registration.result_.n_inliers == registration.inlier_mask_.sum()
    assert registration.result_.q_values is not None


def test_wrong_pairs_have_uniform_p_values():
    p = []
    for seed in range(5):
        X, Y, _, _, mask = scan(2000, 0.7, seed, placement="re-paired")
        p.append(Registration(random_state=seed).fit(X, Y).p_values_[~mask])
    p = np.concatenate(p)
    for level in (0.001, 0.01, 0.1, 0.5):
        assert (p <= level).mean() == pytest.approx(level, abs=5 * np.sqrt(level * (1 - level) / p.size))


@pytest.mark.parametrize(
    ("d", "model", "scale"), [(2, "rigid", 1.0), (3, "rigid", 1.0), (3, "similarity", 2.0), (2, "rotation", 1.0)]
)
def test_standard_errors_are_those_of_repeated_draws(d, model, scale):
    """The same scene with fresh noise and fresh wrong pairs, 60 times."""
    X, _, linear, shift, _ = scan(300, 0.0, seed=1, d=d, scale=scale)
    shift = shift if model != "rotation" else 0 * shift
    turns, shifts, scales, claimed, refused = [], [], [], [], 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 1])  # not the numbers that X is made of: errors would follow the points
        Y = X @ linear.T + shift + 0.01 * rng.normal(size=X.shape)
        Y[200:] = Y.mean(axis=0) + rng.uniform(-0.5, 0.5, (100, d))
        found = Registration(model, raise_on_failure=False, random_state=seed).fit(X, Y)
        if not found.success_:  # now and then pairs with a noise of a third of the spacing look chosen by nearness
            refused += 1
            continue
        turn = found.transformation_.rotation @ linear.T / scale
        turns.append(np.degrees([turn[1, 0]] if d == 2 else [turn[2, 1], turn[0, 2], turn[1, 0]]))
        shifts.append(found.transformation_.translation)
        scales.append(found.transformation_.scale)
        claimed.append(found.uncertainty_)
    assert refused <= 2
    for name, seen in (("rotation", turns), ("translation", shifts), ("scale", scales)):
        spread = np.std(seen, axis=0)
        expected = np.median([getattr(uncertainty, name) for uncertainty in claimed], axis=0)
        np.testing.assert_allclose(spread, expected, rtol=0.35, atol=1e-12)
    assert claimed[0].covariance.shape == 2 * ({2: 1, 3: 3}[d] + d + (model == "similarity"),)


def test_standard_errors_hold_where_only_a_part_of_the_pairs_was_polished_on():
    ratios = []
    for seed in range(16):
        X, Y, linear, _, _ = scan(40_000, 0.3, seed)
        found = Registration(random_state=seed).fit(X, Y)
        turn = found.transformation_.rotation @ linear.T
        ratios.append(np.degrees([turn[2, 1], turn[0, 2], turn[1, 0]]) / found.uncertainty_.rotation)
    assert 0.7 < np.sqrt(np.mean(np.square(ratios))) < 1.4


def test_standard_errors_are_worked_out_when_asked_for_from_what_was_fitted():
    X, Y, *_ = scan(500, 0.2)
    expected = Registration(random_state=0).fit(X, Y).uncertainty_
    registration = Registration(random_state=0)
    with pytest.raises(NotFittedError):
        _ = registration.uncertainty_
    assert not hasattr(registration, "uncertainty_")
    x, y = X.copy(), Y.copy()
    registration.fit(x, y)
    x[:], y[:] = 0.0, 1.0  # the caller may do that
    for copy in (pickle.loads(pickle.dumps(registration)), registration):
        np.testing.assert_array_equal(copy.uncertainty_.covariance, expected.covariance)
        assert copy.uncertainty_ is copy.uncertainty_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(registration)).uncertainty_.scale, expected.scale)
    assert registration.set_params(model="affine").fit(X, Y).uncertainty_ is None
    assert (registration.set_params(model="rigid").fit(X, Y).uncertainty_.covariance == expected.covariance).all()
    registration.set_params(raise_on_failure=False).fit(X, np.random.default_rng(99).normal(size=X.shape))
    assert registration.uncertainty_ is None


def test_names_of_columns_are_those_of_the_last_fit():
    pandas = pytest.importorskip("pandas", reason="frames are the user's to bring")
    X, Y, *_ = scan(200, 0.2, seed=1)
    registration = Registration(random_state=0).fit(pandas.DataFrame(X, columns=["x", "y", "z"]), Y)
    assert list(registration.feature_names_in_) == ["x", "y", "z"]
    registration.fit(X, Y)
    assert not hasattr(registration, "feature_names_in_")
    assert registration.n_features_in_ == 3


@pytest.mark.parametrize("noise", [1e-5, 0.01, 0.04])
@pytest.mark.parametrize("model", ["rigid", "orthogonal", "rotation"])
def test_a_first_look_settles_what_most_pairs_agree_on(noise, model):
    X, Y, linear, shift, mask = scan(5000, 0.4, noise=noise)
    if model != "rigid":
        Y -= shift
    registration = Registration(model, random_state=0).fit(X, Y)
    np.testing.assert_allclose(registration.transformation_.rotation, linear, atol=0.3 * noise)
    assert 2 * noise < registration.noise_bound_ < 5.5 * noise  # of 16 draws, 4.0 to 5.1 at 1e-5
    assert registration.inlier_mask_[mask].mean() > 0.8  # of 16 draws, 0.85 to 0.96 at 0.04
    assert (registration.inlier_mask_ & ~mask).sum() < 0.02 * mask.sum()


def test_an_alpha_out_of_reach_is_said():
    """Wrong partners on the same surface: some are near by chance, and 2 % real pairs do not outweigh them."""
    X, Y, linear, shift, mask = scan(5000, 0.98, placement="re-paired")
    registration = Registration(random_state=0).fit(X, Y)
    assert is_right(registration, X, linear, shift)
    accepted = registration.inlier_mask_
    np.testing.assert_array_equal(accepted, registration.residuals_ <= registration.noise_bound_)
    assert (accepted & mask).sum() > 0.8 * mask.sum()
    assert (accepted & ~mask).sum() / accepted.sum() == pytest.approx(registration.false_discovery_rate_, abs=0.06)


def test_a_line_of_points_leaves_the_turn_about_it_open():
    X, Y, linear, shift, mask = scan(200, 0.5)
    X[:, 1:] *= 1e-12
    Y[mask] = X[mask] @ linear.T + shift
    with pytest.warns(UserWarning, match="do not determine all"):
        registration = Registration(random_state=0).fit(X, Y)
    assert not registration.transformation_.determined
    assert (registration.inlier_mask_ == mask).mean() > 0.98


def test_a_mirror_image_is_pointed_out():
    X, Y, linear, shift, mask = scan(500, 0.2, mirrored=True)
    X = (X - X.mean(axis=0)) * [1, 1, 0.1]  # flat: a rotation fits it coarsely
    Y[mask] = X[mask] @ linear.T + shift
    with pytest.warns(UserWarning, match="mirror image"):
        Registration(random_state=0).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Registration(random_state=0, reflection=True).fit(X, Y)


def test_two_motions_the_larger_wins_and_the_rest_holds_the_other():
    X, Y, linear, _, _ = scan(1000, 0.0, seed=1)
    _, Y_other, other, _, _ = scan(1000, 0.0, seed=1)
    turn = special_ortho_group.rvs(3, random_state=4)
    Y[850:] = Y_other[850:] @ turn.T + 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there is another one
        first = Registration(random_state=0).fit(X, Y)
        rest = ~first.inlier_mask_
        second = Registration(random_state=0).fit(X[rest], Y[rest])
    assert degrees(first.transformation_.rotation, linear) < 2
    assert degrees(second.transformation_.rotation, turn @ other) < 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "projective"}, "model"),
        ({"alpha": 2}, "alpha"),
        ({"noise_bound": 0}, "must be positive"),
        ({"noise_bound": -1}, "noise_bound"),
        ({"noise_bound": 1e-100}, "noise_bound is 1e-100, .* told from zero"),
        ({"noise_bound": 1e100}, "noise_bound is 1e.100, .* told from infinity"),
        ({"noise_bound": np.nan}, "noise_bound"),
        ({"reflection": "yes"}, "reflection"),
        ({"raise_on_failure": 1}, "raise_on_failure"),
        ({"model": "rotation", "reflection": True}, "never reflects"),
    ],
)
def test_bad_parameters(parameters, message):
    X, Y = np.random.default_rng(0).normal(size=(2, 50, 3))
    with pytest.raises(ValueError, match=message):
        Registration(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X, Y[:, :2]), "keeps the dimension, but X has shape"),
        (lambda X, Y: (X, Y[:-1]), "X has 50 rows and y has 49"),
        (lambda X, Y: (np.where(X > 2, np.nan, X), Y), r"^X contains NaN .*the first \(nan\)"),
        (lambda X, Y: (X, np.where(Y > 2, np.inf, Y)), r"^y contains .*the first \(inf\)"),
        (lambda X, Y: (np.ones_like(X), Y), "^X is constant: all 50 rows"),
        (lambda X, Y: (X[:1], Y[:1]), "At least 2 pairs are needed to compare, but there is 1 "),
    ],
)
def test_bad_tables(change, message):
    X, Y = change(*np.random.default_rng(0).normal(size=(2, 50, 3)))
    with pytest.raises(ValueError, match=message):
        Registration().fit(X, Y)


def test_it_is_not_split():
    X, Y, *_ = scan(100, 0.2)
    with pytest.raises(ValueError, match="one transformation for all pairs"):
        SplitMatcher(Registration()).fit(X, Y)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_very_few_pairs_are_answered(n):
    X, Y, *_ = scan(n, 0.0)
    registration = Registration(random_state=0, raise_on_failure=False).fit(X, Y)
    assert registration.success_ == (n >= 8)


@pytest.mark.filterwarnings("ignore::UserWarning")  # single values in columns, a motion that is not determined
@pytest.mark.parametrize("along", [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
def test_points_on_a_line_are_matched(along):
    t = np.random.default_rng(0).uniform(-1, 1, 60)
    X, Y = np.outer(t, [1.0, 0.0, 0.0]), np.outer(t, along)
    Y[30:] = np.random.default_rng(1).permutation(Y[30:])
    registration = Registration(random_state=0).fit(X, Y)
    assert registration.inlier_mask_[:30].all()


@pytest.mark.parametrize("units", [1e-60, 1e40])
def test_points_in_extreme_units_are_matched(units):
    X = np.random.default_rng(0).normal(size=(100, 3))
    registration = Registration("orthogonal", random_state=0).fit(units * X, -units * X)
    assert registration.inlier_mask_.all()
    np.testing.assert_allclose(registration.transformation_.rotation, -np.eye(3), atol=1e-9)


def test_an_absurdly_small_noise_bound_is_refused_with_the_cure():
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ParameterError, match=r"noise_bound is 1e-200.*Divide X and y, and it"):
        Registration(noise_bound=1e-200).fit(X, X)


@pytest.mark.parametrize("order", ["C", "F"])  # by one compiled look, and by a summary of the columns
def test_coordinates_whose_powers_overflow_are_refused_even_if_only_one_is_so_large(order):
    X, Y = (np.asarray(side, order=order) for side in np.random.default_rng(0).normal(size=(2, 1000, 3)))
    with pytest.raises(ValueError, match=r"largest value of y is .*e-90, .* zero. Divide X and y by .* first\.$"):
        Registration().fit(X, 1e-90 * Y)
    X[321, 1] = 1e80
    with pytest.raises(ValueError, match=r"largest value of X is 1e\+80, .* infinity. .* leave out the rows"):
        Registration().fit(X, Y)
