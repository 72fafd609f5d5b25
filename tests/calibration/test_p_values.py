from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import false_discovery_control

from inlier.calibration.p_values import (
    _evenly_spaced_among,
    calibrate,
    calibrate_distances,
    estimate_null_fraction,
    evenly_spaced,
    on_their_way,
    p_value_density,
    p_values,
    tells_wrong,
)
from tests import calibration_reference as reference

numbers = st.floats(-50, 50, width=16)
score_lists = arrays(np.float64, st.integers(1, 40), elements=numbers)


@given(score_lists, score_lists)
def test_p_values_are_ranks_among_the_null(scores, null):
    expected = [(1 + (null >= score).sum()) / (1 + null.size) for score in scores]
    np.testing.assert_allclose(p_values(scores, null), expected)


@given(score_lists, score_lists, st.integers(1, 3))
def test_the_step_up_is_that_of_benjamini_and_hochberg(scores, null, times):
    found = calibrate(scores, null, null_fraction=(1.0, 0.0), counts=np.full(scores.size, times))
    expected = false_discovery_control(np.repeat(found.p_values, times))[::times]
    assert found.detection_p_value == pytest.approx(min(expected.min(), 1.0))
    assert (found.q_values >= expected - 1e-12).all()
    sure = found.q_values < 0.5  # beyond, a pair may be more likely wrong than real
    np.testing.assert_allclose(found.q_values[sure], expected[sure])


@given(arrays(np.float64, st.integers(1, 60), elements=st.sampled_from(np.linspace(0.02, 1, 50))))
def test_density_is_the_slope_of_the_least_concave_majorant(p):
    density = p_value_density(p)
    order = np.argsort(p)
    assert (np.diff(density[order]) <= 1e-9).all()
    # The majorant: at each point the largest chord above it, by trying all pairs of knots.
    knots = np.concatenate([[0.0], np.unique(p)])
    height = np.array([(p <= knot).mean() for knot in knots])
    for point, value in zip(p, density, strict=True):
        k = int(np.searchsorted(knots, point))
        slope = min(
            max((height[b] - height[a]) / (knots[b] - knots[a]) for b in range(k, knots.size)) for a in range(k)
        )
        assert value == pytest.approx(slope)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("weak", [False, True])
def test_share_of_wrong_pairs(share, weak):
    rng = np.random.default_rng(0)
    estimates = []
    for _ in range(50):
        wrong = rng.uniform(size=round(2000 * share))
        real = rng.beta(0.3, 6, size=2000 - wrong.size) if weak else np.full(2000 - wrong.size, 1e-4)
        estimates.append(estimate_null_fraction(np.concatenate([wrong, real])))
    estimate, error, _ = np.mean(estimates, axis=0)
    assert estimate == pytest.approx(share, abs=0.02)
    spread = np.std([value for value, _, _ in estimates])
    assert 0.8 * spread <= error <= 6 * spread + 0.01  # on the safe side
    if not weak:  # where real pairs have large p-values too, there is a bias that the error does not know of
        assert np.mean([abs(value - share) <= 2 * s for value, s, _ in estimates]) >= 0.94


@pytest.mark.parametrize("seed", range(40))
def test_scores_are_judged_as_the_definitions_say_one_by_one_and_as_a_histogram(seed):
    rng = np.random.default_rng(seed)
    digits = rng.integers(0, 3)  # few digits make many equal scores and p-values
    n, n_real, m = rng.integers(1, 400), rng.integers(0, 200), rng.integers(1, 3000)
    scores = np.concatenate([rng.normal(size=n), rng.normal(rng.uniform(0, 6), 1, n_real)]).round(digits)
    null = rng.normal(size=m).round(digits)
    p, q, share, error, detection = reference.calibrate(scores, null)
    values, which, counts = np.unique(scores, return_inverse=True, return_counts=True)
    for found in (calibrate(scores, null), calibrate(values, null, counts=counts).at(which)):
        np.testing.assert_allclose(found.p_values, p)
        np.testing.assert_allclose(found.q_values, q, rtol=1e-9)
        assert found.inlier_fraction == pytest.approx(1 - share)
        assert found.inlier_fraction_error == pytest.approx(error)
        assert found.detection_p_value == pytest.approx(detection)
    np.testing.assert_allclose(p_value_density(p), reference.falling_density(p))
    taken = min(share + error, reference.right_boundary(p))
    assert estimate_null_fraction(p) == pytest.approx((share, error, taken))


@pytest.mark.parametrize(("n", "n_wrong"), [(40, 8), (40, 30), (100, 20), (300, 60)])
def test_few_pairs_keep_the_rate_although_the_share_is_noisy(n, n_wrong):
    rng, share_wrong = np.random.default_rng(n), []
    for _ in range(1000):
        p = np.concatenate([rng.uniform(size=n_wrong), rng.beta(0.1, 6, size=n - n_wrong)])
        accepted = estimate_null_fraction(p).taken * false_discovery_control(p) <= 0.1
        share_wrong.append(accepted[:n_wrong].sum() / max(accepted.sum(), 1))
    assert np.mean(share_wrong) <= 0.1 + 2 * np.std(share_wrong) / 1000**0.5


def test_p_values_that_stand_or_fall_together_are_one_witness():
    p = np.concatenate([np.random.default_rng(0).uniform(size=8), np.full(32, 1e-3)])
    alone, together, as_if_more = (
        estimate_null_fraction(p),
        estimate_null_fraction(np.repeat(p, 5), alike=5),
        estimate_null_fraction(np.repeat(p, 5)),
    )
    assert together.error == pytest.approx(as_if_more.error * 5**0.5)
    assert alone.taken == pytest.approx(together.taken, rel=0.15)
    assert as_if_more.taken < 0.9 * together.taken


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_null_scores_added_above_all_pairs_never_make_one_surer(seed, n_added):
    rng = np.random.default_rng(seed)
    scores, _ = mixture(rng, 60, 0.4, 4)
    null = rng.standard_normal(400)
    more = np.append(null, scores.max() + rng.exponential(size=n_added))
    before, after = (calibrate(scores, some, (0.6, 0.05)) for some in (null, more))
    assert (after.p_values >= before.p_values).all()
    by_rank = before.q_values <= 0.5  # beyond, q-values also follow densities, which such scores may lower
    assert (after.q_values >= before.q_values)[by_rank].all()
    assert after.detection_p_value >= before.detection_p_value


@pytest.mark.parametrize("most", [1, 2, 30, 500])
def test_evenly_spaced_values_are_the_first_the_last_and_as_many_as_asked(most):
    values = np.sort(np.random.default_rng(0).standard_normal(200))
    kept = evenly_spaced(values, most)
    assert kept.size == min(most, 200)
    assert kept[0] == values[0]
    ranks = np.searchsorted(values, kept)
    np.testing.assert_array_equal(values[ranks], kept)
    if 1 < most < 200:
        assert ranks[-1] == 199
        assert np.ptp(np.diff(ranks)) <= 1


@given(arrays(np.int64, st.integers(1, 30), elements=st.integers(1, 9)), st.integers(1, 60))
def test_of_values_that_occur_many_times_the_same_are_kept(counts, most):
    values = np.arange(float(counts.size))
    kept = _evenly_spaced_among(values, counts, most)
    np.testing.assert_array_equal(kept, evenly_spaced(np.repeat(values, counts), most))


def mixture(rng, n, share_real, distance):
    real = rng.uniform(size=n) < share_real
    return np.where(real, rng.normal(distance, 1, n), rng.standard_normal(n)), real


@pytest.mark.parametrize(("share_real", "distance"), [(0.3, 3.0), (0.1, 4.0), (0.5, 2.5), (0.05, 8.0), (1.0, 4.0)])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_false_discovery_rate_is_held(share_real, distance, alpha):
    rng = np.random.default_rng(1)
    null = rng.standard_normal(200_000)
    proportions = []
    for _ in range(100):
        scores, real = mixture(rng, 1000, share_real, distance)
        accepted = calibrate(scores, null).accepted(alpha)
        proportions.append((accepted & ~real).sum() / max(accepted.sum(), 1))
    standard_error = np.std(proportions) / 10
    assert np.mean(proportions) <= alpha + 3 * standard_error + 1e-3


def test_pairs_that_are_more_likely_wrong_are_not_accepted():
    # Ten real pairs far out, and wrong ones of which the best is merely lucky: alpha = 0.2 would have room for two.
    rng = np.random.default_rng(3)
    false = 0
    for _ in range(50):
        scores = np.concatenate([rng.normal(40, 2, 10), rng.standard_normal(190)])
        accepted = calibrate(scores, rng.standard_normal(20_000)).accepted(0.2)
        assert accepted[:10].all()
        false += accepted[10:].sum()
    assert false <= 10  # 0.2 of 500 discoveries would be 125


def test_nothing_is_found_where_nothing_is():
    rng = np.random.default_rng(2)
    found = [calibrate(rng.standard_normal(500), rng.standard_normal(50_000)) for _ in range(400)]
    assert np.mean([f.accepted(0.05).any() for f in found]) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    detection = np.array([f.detection_p_value for f in found])
    assert (detection <= 0.1).mean() <= 0.1 + 3 * np.sqrt(0.09 / 400)
    assert np.mean([f.inlier_fraction for f in found]) < 0.03


def test_everything_is_kept_where_everything_is_real():
    rng = np.random.default_rng(2)
    found = calibrate(rng.normal(3, 1, 1000), rng.standard_normal(100_000))
    assert found.accepted(0.01).mean() > 0.99
    assert found.inlier_fraction > 0.97


@given(score_lists, score_lists)
def test_answers_are_consistent(scores, null):
    found = calibrate(scores, null)
    for values in (found.p_values, found.q_values):
        assert ((values > 0) & (values <= 1)).all()
        assert (np.diff(values[np.argsort(-scores, kind="stable")]) >= 0).all()  # a better score never fares worse
    assert (found.q_values >= found.detection_p_value - 1e-12).all()
    assert 0 <= found.inlier_fraction <= 1


def test_a_given_share_is_used():
    rng = np.random.default_rng(0)
    scores, _ = mixture(rng, 500, 0.3, 3)
    null = rng.standard_normal(10_000)
    assert calibrate(scores, null, (0.7, 0.01)).inlier_fraction == pytest.approx(0.3)


def test_bad_p_values():
    with pytest.raises(ValueError, match="p holds NaN or infinity in 1 place"):
        estimate_null_fraction([np.nan, 0.1])
    with pytest.raises(ValueError, match=r"between 0 and 1, but these go from -0.1 to 3"):
        estimate_null_fraction([3.0, -0.1])
    with pytest.raises(ValueError, match="null_fraction must lie between 0 and 1"):
        calibrate([1.0, 2.0], [0.0, 1.0], (7.0, 0.1))


@pytest.mark.parametrize(
    ("scores", "null", "message"),
    [
        ([], [1.0], r"scores must be a list of at least one number; got shape \(0,\)"),
        ([[1.0]], [1.0], r"scores must be .* got shape \(1, 1\)"),
        ([1.0], [np.nan, 1.0], r"null_scores holds NaN or infinity in 1 place"),
    ],
)
def test_bad_scores(scores, null, message):
    with pytest.raises(ValueError, match=message):
        calibrate(scores, null)


@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e150])
def test_distances_in_bins_are_judged_as_one_by_one(share, unit):
    rng = np.random.default_rng(0)
    real = rng.uniform(size=3000) < share
    distances = unit * np.where(
        real, np.linalg.norm(0.01 * rng.normal(size=(3, 3000)), axis=0), rng.uniform(0.0, 2.0, 3000)
    )
    null = unit * rng.uniform(0.0, 2.0, size=20_000)
    distances[:3] = 0.0
    exact = calibrate(-distances / unit, -null / unit)
    binned, null_scores = calibrate_distances(distances, null)
    assert (binned.p_values >= exact.p_values).all()
    assert (binned.p_values <= 1.02 * exact.p_values + 1e-4).all()
    np.testing.assert_array_equal(binned.accepted(0.01)[real], exact.accepted(0.01)[real])
    assert np.abs(binned.accepted(0.05).mean() - exact.accepted(0.05).mean()) < 0.002
    assert binned.inlier_fraction == pytest.approx(exact.inlier_fraction, abs=0.01)
    assert (np.diff(null_scores) >= 0).all()
    np.testing.assert_allclose(-null_scores[::-1], np.sort(null), rtol=1 / 256, atol=1e-9 * unit)
    order = np.argsort(distances)
    assert (np.diff(binned.p_values[order]) >= 0).all()
    assert (np.diff(binned.q_values[order]) >= 0).all()


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
def test_distances_are_judged_as_scores_that_were_rounded_and_sorted(share):
    rng = np.random.default_rng(1)
    distances, null = rng.uniform(0.0, 2.0, size=3000), rng.uniform(0.0, 2.0, size=20_000)
    distances[: int(share * 3000)] *= 0.01
    rounded = ((distances.view(np.int64) >> 44) + 1 << 44).view(np.float64)  # up to one of 256 in an octave
    found, null_scores = calibrate_distances(distances, null)
    expected = calibrate(-rounded, rng.permutation(null_scores))
    np.testing.assert_array_equal(found.p_values, expected.p_values)
    np.testing.assert_allclose(found.q_values, expected.q_values, rtol=1e-12)
    assert found.inlier_fraction == pytest.approx(expected.inlier_fraction, abs=1e-12)
    assert found.inlier_fraction_error == pytest.approx(expected.inlier_fraction_error)
    assert found.detection_p_value == pytest.approx(expected.detection_p_value)


def test_equal_distances_are_worth_the_same():
    found, null_scores = calibrate_distances(np.zeros(20), np.zeros(30))
    assert (found.p_values == 1).all()
    assert null_scores.size == 30
    found, _ = calibrate_distances(np.zeros(20), np.ones(30))
    assert (found.p_values == 1 / 31).all()


def test_distances_of_any_precision_and_stride_are_judged_and_none_is_an_error():
    rng = np.random.default_rng(0)
    distances, null = np.abs(rng.normal(size=300)).astype(np.float32), np.abs(rng.normal(size=2000))
    expected, _ = calibrate_distances(distances.astype(np.float64), null)
    for same in (distances, np.repeat(distances, 2)[::2], distances.tolist()):
        np.testing.assert_array_equal(calibrate_distances(same, null)[0].p_values, expected.p_values)
    with pytest.raises(ValueError, match="null_distances must be a list of at least one number"):
        calibrate_distances(distances, [])


@pytest.mark.parametrize("n_real", [200, 2000, 3800])
@pytest.mark.parametrize(("spread", "tells"), [(0.001, True), (0.5, False)])
def test_wrong_pairs_are_told_where_real_ones_stand_apart(n_real, spread, tells):
    """Real pairs have p-values up to a spread: where it is large, what looks wrong may be real."""
    n_wrong = 4000 - n_real
    p = np.concatenate([spread * (np.arange(n_real) + 0.5) / n_real, (np.arange(n_wrong) + 0.5) / n_wrong])
    assert tells_wrong(int(on_their_way(p).sum()), 4000, n_real / 4000) == tells


def test_luck_alone_is_no_reason_to_call_nobody_wrong():
    """Of a million wrong pairs beside ten thousand real ones, some hundred more than expected may lie anywhere."""
    assert tells_wrong(int(0.49 * 990_000) + 700, 1_000_000, 0.01)
    assert not tells_wrong(int(0.49 * 990_000) + 7000, 1_000_000, 0.01)
