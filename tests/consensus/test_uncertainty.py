from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import f

from inlier import Registration, SimilarityTransformation, estimate_transformation
from inlier.consensus import uncertainty
from inlier.consensus.refine import NearPairs
from inlier.consensus.uncertainty import _movements, motion_uncertainty, widened
from inlier.exceptions import ParameterError

# Some hundred draws: of right pairs one in a hundred is said to be chosen, perhaps (benchmarks/near_ties.py).
pytestmark = pytest.mark.filterwarnings("ignore:The pairs may have been chosen")

X = Rotation.random(5000, random_state=0).apply([0.4, 0.0, 0.0])
TURN, SHIFT = Rotation.from_euler("xyz", [70, -30, 110], degrees=True), np.array([0.3, -0.5, 0.1])


def jacobian(arm, has_shift, has_scale):
    """Movement of one point by small turns, shifts and a stretch, one after the other."""
    turns = [[[0, -1], [1, 0]]]
    if arm.size == 3:
        turns = [
            [[0, 0, 0], [0, 0, -1], [0, 1, 0]],
            [[0, 0, 1], [0, 0, 0], [-1, 0, 0]],
            [[0, -1, 0], [1, 0, 0], [0] * 3],
        ]
    moves = [np.array(turn) @ arm for turn in turns]
    moves += list(np.eye(arm.size)) if has_shift else []
    moves += [arm] if has_scale else []
    return np.array(moves).T


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize(("has_shift", "has_scale"), [(True, False), (True, True), (False, False)])
def test_movements_of_points(d, has_shift, has_scale):
    arms = np.random.default_rng(d).normal(size=(40, d))
    expected = [jacobian(arm, has_shift, has_scale) for arm in arms]
    np.testing.assert_allclose(_movements(arms, has_shift, has_scale), expected, atol=1e-12)


def errors_in_claimed_ones(n_real, n, weights=None, draws=60):
    """Errors of turns and shifts over their standard errors, in draws of fresh noise; and how many had none."""
    ratios, without = [], 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        x = X[:n]
        y = TURN.apply(x) + SHIFT + 0.01 * rng.normal(size=x.shape)
        y[n_real:] = SHIFT + rng.uniform(-0.5, 0.5, (n - n_real, 3))
        found = Registration(random_state=seed).fit(x, y, sample_weight=weights)
        if found.uncertainty_ is None:
            without += 1
            continue
        turned = Rotation.from_matrix(found.transformation_.rotation) * TURN.inv()
        ratios.append(np.degrees(turned.as_rotvec()) / found.uncertainty_.rotation)
        ratios.append((found.transformation_.translation - SHIFT) / found.uncertainty_.translation)
    return float(np.sqrt(np.mean(np.square(ratios)))), without


@pytest.mark.parametrize(("n_real", "n"), [(120, 300), (12, 40), (10, 10)])
def test_standard_errors_of_few_pairs_are_not_too_small(n_real, n):
    ratio, without = errors_in_claimed_ones(n_real, n)
    assert 0.75 < ratio < 1.35
    assert without <= 6


@pytest.mark.parametrize("n", [100, 5000])
def test_a_few_pairs_that_outweigh_all_others_decide_on_the_errors(n):
    weights = np.where(np.arange(n) % (n // 20) == 3, 1e6, 1.0)
    ratio, without = errors_in_claimed_ones(n, n, weights, draws=20)
    assert 0.75 < ratio < 1.35
    assert without == 0


@pytest.mark.parametrize(("n_heavy", "light"), [(3, 0.0), (4, 0.0), (4, 1e-6)])
def test_where_hardly_more_pairs_count_than_fix_the_motion_there_are_no_errors(n_heavy, light):
    weights = np.where(np.arange(100) < n_heavy, 1.0, light)
    y = TURN.apply(X[:100]) + SHIFT + 0.01 * np.random.default_rng(0).normal(size=(100, 3))
    assert Registration(random_state=0).fit(X[:100], y, sample_weight=weights).uncertainty_ is None


@pytest.mark.parametrize("unit", [2.0**-150, 2.0**40, 2.0**150])
def test_units_do_not_matter(unit):
    y = TURN.apply(X[:300]) + SHIFT + 0.01 * np.random.default_rng(0).normal(size=(300, 3))
    expected = Registration(random_state=0).fit(X[:300], y).uncertainty_
    found = Registration(random_state=0).fit(unit * X[:300], unit * y).uncertainty_
    np.testing.assert_allclose(found.rotation, expected.rotation)
    np.testing.assert_allclose(found.translation, unit * expected.translation)


def rigid(rotation=TURN, translation=SHIFT):
    return SimilarityTransformation(rotation.as_matrix(), translation, model="rigid")


def change(motion, other, centre):
    """Turn, shift at the centre and stretch that make one motion of the other."""
    turn = other.rotation @ motion.rotation.T
    turn = Rotation.from_matrix(turn).as_rotvec() if len(turn) == 3 else [np.arctan2(turn[1, 0], turn[0, 0])]
    shift = (other(centre[None]) - motion(centre[None]))[0] if motion.model != "rotation" else []
    return np.concatenate([turn, shift, [other.scale / motion.scale - 1] * (motion.model == "similarity")])


@pytest.mark.parametrize(
    ("model", "d"), [("rigid", 3), ("rigid", 2), ("similarity", 3), ("similarity", 2), ("rotation", 3)]
)
@pytest.mark.parametrize("in_cells", [False, True])
def test_covariance_is_that_of_fits_that_leave_out_one_cluster_after_the_other(model, d, in_cells, monkeypatch):
    """With a bound so wide that all weights are 1, and noise so small that motions are as good as linear."""
    rng = np.random.default_rng(0)
    n = 40
    x = rng.normal(size=(n, d)) + (5.0 if model != "rotation" else 0.0)
    cell = np.arange(n) // 5 if in_cells else np.arange(n)
    y = x + 1e-6 * (rng.normal(size=(n, d)) + rng.normal(size=(n, d))[cell])
    motion = estimate_transformation(model, x, y)
    monkeypatch.setattr(uncertainty, "cell_side", lambda *_: float(in_cells))
    monkeypatch.setattr(uncertainty, "cells", lambda *_: cell)
    found = motion_uncertainty(motion, NearPairs(x, y, np.ones(n), np.ones(n), bound=10.0))
    centre = x.mean(axis=0) if model != "rotation" else np.zeros(d)
    np.testing.assert_allclose(found.centre, centre)
    refits = [estimate_transformation(model, x[cell != one], y[cell != one]) for one in range(cell.max() + 1)]
    changes = np.array([change(motion, refit, centre) for refit in refits])
    moves = _movements((x - centre) @ motion.linear.T, model != "rotation", model == "similarity")
    squares = np.einsum("nap,naq->pq", moves, moves)
    expected, p, nu = changes.T @ changes, len(squares), (cell.max() + 1) / 2
    kappa = p * (p + 1) / 2
    mean = np.trace(squares @ expected) / p * np.linalg.inv(squares)
    expected = (nu * expected + kappa * mean) / (nu + kappa)
    np.testing.assert_allclose(found.covariance_at_centre, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).min())
    assert found.degrees_of_freedom == pytest.approx(nu + kappa)


def patches(seed, n_patches=40, size=10):
    """Points in patches; those of one patch share most of their error."""
    rng = np.random.default_rng(seed)
    x = np.repeat(X[:n_patches], size, axis=0) + 0.01 * rng.normal(size=(n_patches * size, 3))
    shared = np.repeat(rng.normal(size=(n_patches, 3)), size, axis=0)
    return x, TURN.apply(x) + SHIFT + 0.01 * shared + 0.002 * rng.normal(size=x.shape)


def test_pairs_that_err_alike_count_as_one(monkeypatch):
    ratios, by_pairs, covered = [], [], 0
    for seed in range(30):
        x, y = patches(seed)
        found = Registration(random_state=seed).fit(x, y)
        errors = found.uncertainty_
        off = change(found.transformation_, rigid(), errors.centre)
        ratios.append(off / np.sqrt(np.diag(errors.covariance_at_centre)))
        covered += errors.covers(rigid())
        with monkeypatch.context() as patch:
            patch.setattr(uncertainty, "cell_side", lambda *_: 0.0)
            alone = motion_uncertainty(found.transformation_, found._near_pairs)
        by_pairs.append(off / np.sqrt(np.diag(alone.covariance_at_centre)))
    assert np.sqrt(np.mean(np.square(by_pairs))) > 2
    assert 0.6 < np.sqrt(np.mean(np.square(ratios))) < 1.5
    assert covered >= 25


@pytest.mark.parametrize(("n_real", "n"), [(10, 50), (100, 300)])
def test_the_region_holds_the_truth_about_as_often_as_it_says(n_real, n):
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = X[rng.choice(len(X), n)]
        y = TURN.apply(x) + SHIFT + 0.01 * rng.normal(size=x.shape)
        y[n_real:] = SHIFT + rng.uniform(-0.5, 0.5, (n - n_real, 3))
        errors = Registration(random_state=seed).fit(x, y).uncertainty_
        if errors is not None:
            covered.append([errors.covers(rigid(), level) for level in (0.5, 0.95)])
    assert len(covered) >= 57
    half, most = np.mean(covered, axis=0)
    assert 0.3 < half < 0.85
    assert most > 0.87


def test_the_region_holds_the_truth_far_from_the_origin_too():
    covered = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = X[:100] + 1000.0
        y = rigid()(x) + 0.01 * rng.normal(size=x.shape)
        covered += Registration(random_state=seed).fit(x, y).uncertainty_.covers(rigid())
    assert covered >= 16


@pytest.fixture(scope="module")
def errors():
    y = TURN.apply(X[:50]) + SHIFT + 0.01 * np.random.default_rng(0).normal(size=(50, 3))
    return Registration(random_state=0).fit(X[:50], y).uncertainty_


def test_the_region_is_hotellings(errors):
    nu = errors.degrees_of_freedom
    for level in (0.0, 0.5, 0.95, 0.999):
        assert errors.region(level) == pytest.approx(6 * nu / (nu - 5) * f.ppf(level, 6, nu - 5))
    assert errors.region(1) == np.inf
    assert errors.region() == errors.region(0.95)


def test_distance_of_motions(errors):
    assert errors.distance(errors.motion) == 0
    off = change(errors.motion, rigid(), errors.centre)
    expected = off @ np.linalg.solve(errors.covariance_at_centre, off)
    assert errors.distance(rigid()) == pytest.approx(expected)
    assert errors.covers(rigid())
    assert not errors.covers(rigid(translation=SHIFT + 0.05))
    mirrored = SimilarityTransformation(errors.motion.rotation @ np.diag([1, 1, -1]), SHIFT, model="rigid")
    larger = SimilarityTransformation(errors.motion.rotation, errors.motion.translation, 1.01)
    assert errors.distance(mirrored) == errors.distance(larger) == np.inf
    assert not errors.covers(larger, level=0.999)


def test_another_estimate_that_is_farther_away_than_expected_widens_the_errors(errors):
    found = errors.motion
    near, far = (
        SimilarityTransformation(found.rotation, found.translation + shift, model="rigid") for shift in (1e-4, 0.02)
    )
    assert errors.distance(near) < 6 < errors.distance(far)
    assert widened(errors, near) is errors
    wider, off = widened(errors, far), np.concatenate([np.zeros(3), np.full(3, 0.02)])
    common = (1 - 6 / errors.distance(far)) * np.outer(off, off)
    np.testing.assert_allclose(wider.covariance_at_centre, errors.covariance_at_centre + common, rtol=1e-9, atol=1e-12)
    assert wider.distance(far) < 6
    assert not errors.covers(far)
    assert wider.covers(far)
    mirrored = SimilarityTransformation(errors.motion.rotation @ np.diag([1, 1, -1]), SHIFT, model="rigid")
    assert widened(errors, mirrored) is errors


def test_what_all_pairs_err_alike_is_seen_where_the_points_lie_on_a_surface():
    rng, axes = np.random.default_rng(0), np.array([1.0, 0.8, 0.6])
    x = X[:1000] * axes
    side = np.array([0.02, 0.0, 0.0])  # features slide along the surface, to one side, here more and there less
    y = x + side * (1 + np.sin(20 * x[:, :1])) + 0.02 * rng.normal(size=x.shape)
    y *= 0.4 / np.linalg.norm(y / axes, axis=1, keepdims=True)
    found = Registration(random_state=0).fit(x, y)
    still = SimilarityTransformation(np.eye(3), model="rigid")
    alone = motion_uncertainty(found.transformation_, found._near_pairs)
    assert alone.cluster_side > 0
    assert alone.distance(still) > 2 * 6  # 6 is what to expect
    assert found.uncertainty_.distance(still) < 6


@pytest.mark.parametrize("level", [-0.1, 1.1, np.nan, "much"])
def test_levels_that_are_none(errors, level):
    with pytest.raises(ParameterError, match="level must"):
        errors.covers(errors.motion, level)


@pytest.mark.parametrize("other", [np.eye(4), SimilarityTransformation(np.eye(2)), None])
def test_what_is_no_motion_of_as_many_dimensions(errors, other):
    with pytest.raises(ParameterError, match="SimilarityTransformation in 3 dimensions"):
        errors.covers(other)


def test_rotations_have_no_shift_and_no_scale():
    y = TURN.apply(X[:50]) + 0.01 * np.random.default_rng(0).normal(size=(50, 3))
    found = Registration("rotation", random_state=0).fit(X[:50], y).uncertainty_
    assert found.covers(SimilarityTransformation(TURN.as_matrix(), model="rotation"))
    assert found.covers(rigid(translation=np.zeros(3)))
    assert not found.covers(rigid(translation=np.full(3, 1e-9)))


def test_without_noise_there_is_no_doubt():
    motion = SimilarityTransformation(np.eye(3), model="rigid")
    near = NearPairs(X[:50], X[:50], np.ones(50), np.ones(50), bound=1e-3)
    found = motion_uncertainty(motion, near)
    assert not found.covariance.any()
    assert found.covers(motion)
    assert not found.covers(rigid())


def test_a_length_that_is_handed_in_makes_cells_of_it():
    y = X[:200] + 0.01 * np.random.default_rng(0).normal(size=(200, 3))
    motion = SimilarityTransformation(np.eye(3), model="rigid")
    weights = np.ones(200)
    residuals = np.linalg.norm(y - X[:200], axis=1)
    alone, in_cells, in_one, fine = (
        motion_uncertainty(motion, NearPairs.among(X[:200], y, weights, residuals, 0.03, side))
        for side in (0.0, 0.3, 9.0, 1e-9)
    )
    assert (alone.cluster_side, in_cells.cluster_side) == (0.0, 0.3)
    assert in_cells.degrees_of_freedom < alone.degrees_of_freedom - 50
    assert in_one is None  # nothing is left to tell how far it is off
    np.testing.assert_allclose(fine.covariance, alone.covariance)


def seen_by(convention, matrix):
    """How a program measures a small motion: worked out from its own definition, not by ours."""
    turn = Rotation.from_matrix(matrix[:3, :3])
    if convention == "g2o":  # translation, then the vector part of the quaternion
        return np.r_[matrix[:3, 3], turn.as_quat()[:3]]
    if convention == "open3d":  # halves of differences of the entries of the rotation, then translation
        R = matrix[:3, :3]
        return np.r_[np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2, matrix[:3, 3]]
    return np.r_[turn.as_rotvec(), matrix[:3, 3]]  # gtsam: rotation vector, translation


@pytest.mark.parametrize("convention", ["gtsam", "g2o", "open3d"])
@pytest.mark.parametrize("about", ["origin", "centre"])
def test_information_is_that_of_the_error_a_pose_graph_sees(convention, about):
    rng = np.random.default_rng(1)
    x = X[:200] * [3, 1, 2] + [4, -2, 7]
    errors = Registration(random_state=0).fit(x, TURN.apply(x) + SHIFT + 0.01 * rng.normal(size=x.shape)).uncertainty_
    found, centre = errors.motion.matrix, np.eye(4)
    centre[:3, 3] = errors.centre * (about == "centre")
    image = errors.motion(errors.centre[None])[0]

    def error(change):
        """What the program sees if the motion is changed as `covariance_at_centre` counts changes."""
        true, turn = np.eye(4), Rotation.from_rotvec(change[:3]).as_matrix()
        true[:3, :3] = turn @ found[:3, :3]
        true[:3, 3] = turn @ (found[:3, 3] - image) + image + change[3:]
        return seen_by(convention, np.linalg.inv(found @ centre) @ true @ centre)

    step = 1e-6
    slope = np.stack([(error(step * e) - error(-step * e)) / (2 * step) for e in np.eye(6)], axis=1)
    expected = np.linalg.inv(slope @ errors.covariance_at_centre @ slope.T)
    information = errors.information(convention, about)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(information / scale, expected / scale, atol=1e-6)
    np.testing.assert_array_equal(information, information.T)


def test_information_is_of_rigid_motions_and_of_known_programs():
    noise = 0.01 * np.random.default_rng(0).normal(size=(100, 3))
    errors = Registration("similarity", random_state=0).fit(X[:100], 2 * X[:100] + noise).uncertainty_
    with pytest.raises(ParameterError, match="rigid motions in space"):
        errors.information()
    errors = Registration(random_state=0).fit(X[:100], X[:100] + noise).uncertainty_
    with pytest.raises(ParameterError, match="must be one of 'gtsam', 'g2o', 'open3d'"):
        errors.information("ceres")
    expected = np.sqrt(np.diag(errors.covariance_at_centre)[3:])
    np.testing.assert_allclose(errors.shift_at_centre, expected)
