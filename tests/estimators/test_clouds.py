"""CloudRegistration: the same answer in any unit and place, and a no where there is nothing to find."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from sklearn.base import clone

from inlier import CloudRegistration, NoConsensusError, SimilarityTransformation
from inlier.datasets import make_scans
from inlier.exceptions import ParameterError


@pytest.fixture(scope="module")
def scans():
    return make_scans(rng=0)


@pytest.fixture(scope="module")
def found(scans):
    return CloudRegistration(random_state=0).fit(scans.source, scans.target)


def degrees(a, b):
    return np.degrees(Rotation.from_matrix(a @ b.T).magnitude())


def test_the_motion_is_found_and_sure(scans, found):
    assert found.success_
    assert found.detection_p_value_ < 1e-4
    assert degrees(found.transformation_.rotation, scans.rotation) < 0.1
    centre = scans.source.mean(axis=0)
    there = scans.rotation @ centre + scans.translation
    assert np.linalg.norm(found.transformation_(centre[None])[0] - there) < 0.2
    assert all(0.5 < share < 0.9 for share in found.overlap_)
    assert found.evidence_[0]["n_supporting"] > 300
    assert found.why_not_ is None
    assert found.undetermined_ is None
    assert set(found.seconds_) == {"thin", "describe and match", "search", "judge", "refine"}


def test_the_truth_is_within_a_few_standard_errors(scans, found):
    errors = found.uncertainty_
    assert errors.rotation.max() < 0.1
    turn = np.degrees(Rotation.from_matrix(scans.rotation @ found.transformation_.rotation.T).as_rotvec())
    assert (np.abs(turn) < 5 * errors.rotation).all()
    assert errors.covers(found.transformation_)


@pytest.mark.parametrize(("factor", "shift"), [(1e-3, 0.0), (1e3, 0.0), (1.0, 1e6)])
def test_units_and_places_do_not_matter(scans, found, factor, shift):
    again = CloudRegistration(random_state=0).fit(factor * scans.source + shift, factor * scans.target - shift)
    assert degrees(again.transformation_.rotation, found.transformation_.rotation) < 1e-3
    centre = scans.source.mean(axis=0)
    there = factor * found.transformation_(centre[None])[0] - shift
    assert np.linalg.norm(again.transformation_((factor * centre + shift)[None])[0] - there) < 1e-2 * factor
    assert again.detection_p_value_ == pytest.approx(found.detection_p_value_, rel=0.2)


def test_nothing_is_found_between_two_different_things(scans):
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 8_000))
    waves = 60 * np.column_stack([x, y, 0.1 * np.sin(15 * x) + 0.1 * np.cos(11 * y + 5 * x)])
    with pytest.raises(NoConsensusError, match="No motion is sure"):
        CloudRegistration(random_state=0).fit(scans.source, waves)
    answer = CloudRegistration(random_state=0, raise_on_failure=False).fit(scans.source, waves)
    assert not answer.success_
    assert answer.transformation_ is None
    assert answer.best_guess_ is not None
    assert np.isnan(answer.overlap_).all()
    assert np.isnan(answer.transform(scans.source[:3])).all()


def test_flat_and_round_things_leave_a_freedom():
    rng = np.random.default_rng(1)
    plane = np.column_stack([rng.random((4_000, 2)), np.zeros(4_000)])
    ball = rng.normal(size=(4_000, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    # A plane leaves three freedoms alike: two shifts along it, and the turn about its normal.
    for cloud, words in ((plane, ("shift along", "turn about (0.00, 0.00, ")), (ball, ("turn about",))):
        answer = CloudRegistration(random_state=0, raise_on_failure=False).fit(cloud, cloud[::-1])
        assert not answer.success_
        assert any(word in (answer.undetermined_ or "") for word in words)
        assert "do not determine" in answer.why_not_


def test_two_motions_that_fit_as_well_are_not_sure(scans):
    part = scans.source - scans.source.mean(axis=0) + [25, 0, 0]
    symmetric = np.vstack([part, part * [-1, -1, 1]])  # the same after half a turn about z
    half = np.random.default_rng(0).random(len(symmetric)) < 0.5
    turn = Rotation.from_euler("xyz", [30, 40, 50], degrees=True).as_matrix()
    with pytest.raises(NoConsensusError, match="Two different motions fit about as well"):
        CloudRegistration(random_state=0).fit(symmetric[half], symmetric[~half] @ turn.T)
    answer = CloudRegistration(random_state=0, raise_on_failure=False).fit(symmetric[half], symmetric[~half] @ turn.T)
    assert not answer.success_
    assert answer.transformation_ is None
    half_a_turn = turn @ np.diag([-1, -1, 1])
    both = [answer.best_guess_.rotation, answer.runner_up_.transformation.rotation]
    for truth in (turn, half_a_turn):
        assert min(degrees(one, truth) for one in both) < 2


def test_another_unit_is_named(scans):
    with pytest.raises(NoConsensusError, match="A scale of 1000 would fit"):
        CloudRegistration(random_state=0).fit(scans.source, 1e-3 * scans.target)


@pytest.mark.parametrize("factor", [1e-3, 2.7])
def test_a_similarity_finds_the_scale(scans, factor):
    found = CloudRegistration(random_state=0, model="similarity").fit(scans.source, factor * scans.target)
    motion, errors = found.transformation_, found.uncertainty_
    assert motion.model == "similarity"
    assert motion.scale == pytest.approx(factor, rel=0.005)
    assert degrees(motion.rotation, scans.rotation) < 0.2
    truth = SimilarityTransformation(scans.rotation, factor * scans.translation, factor)
    assert 0 < errors.scale < 0.005 * factor
    assert errors.distance(truth) < 5 * errors.region()
    assert abs(motion.scale - factor) < 5 * errors.scale
    assert all(0.5 < share < 0.9 for share in found.overlap_)
    assert "scales" in found.seconds_
    x, y = found.matches_
    assert np.count_nonzero(motion.residuals(x, y) < 2 * found.spacing_) > 300


def test_with_a_free_scale_nothing_is_found_between_two_different_things(scans):
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 8_000))
    waves = np.column_stack([x, y, 0.1 * np.sin(15 * x) + 0.1 * np.cos(11 * y + 5 * x)])
    answer = CloudRegistration(random_state=0, raise_on_failure=False, model="similarity").fit(scans.source, waves)
    assert not answer.success_
    assert answer.transformation_ is None


def test_the_scale_of_a_corner_is_not_determined():
    rng = np.random.default_rng(2)
    walls = [np.insert(rng.random((4_000, 2)), k, 0.0, axis=1) for k in range(3)]
    corner = np.vstack(walls) + 0.001 * rng.normal(size=(12_000, 3))
    answer = CloudRegistration(random_state=0, raise_on_failure=False, model="similarity").fit(
        corner[::2], 5 * corner[1::2]
    )
    assert not answer.success_


def test_a_refusal_names_the_unit_where_sizes_differ(scans):
    answer = CloudRegistration(random_state=0, raise_on_failure=False).fit(scans.source, 2.7 * scans.target)
    assert not answer.success_
    assert "let model='similarity' find the scale" in answer.why_not_
    with pytest.raises(ParameterError, match="must be one of 'rigid', 'similarity'"):
        CloudRegistration(model="affine").fit(scans.source, scans.target)


@pytest.mark.parametrize(
    ("cloud", "message"),
    [
        (np.empty((0, 3)), "source has 0 points"),
        (np.zeros((2, 3)), "source has 2 points"),
        (np.zeros((1, 3)), "source has 1 point;"),
        (np.ones((500, 3)), "all of which are the same one"),
        (np.full((500, 3), np.nan), "source has 0 points"),
        (np.zeros((500, 2)), "must have three columns"),
        (np.full((500, 3), 1e200) * np.arange(500)[:, None], "above 1e100"),
    ],
)
@pytest.mark.filterwarnings("ignore:500 points of the source have NaN")
def test_what_cannot_be_used_is_refused(scans, cloud, message):
    with pytest.raises(ParameterError, match=message):
        CloudRegistration().fit(cloud, scans.target)


def test_points_without_a_place_are_left_out(scans, found):
    cloud = np.vstack([scans.source, np.full((10, 3), np.nan)])
    with pytest.warns(UserWarning, match="10 points of the source"):
        answer = CloudRegistration(random_state=0).fit(cloud, scans.target)
    assert degrees(answer.transformation_.rotation, found.transformation_.rotation) < 0.05


def test_it_is_an_estimator(scans, found):
    assert clone(found).get_params() == {"random_state": 0, "raise_on_failure": True, "model": "rigid"}
    np.testing.assert_allclose(found.transform(scans.source[:5]), found.transformation_(scans.source[:5]))
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.transformation_.matrix, found.transformation_.matrix)
    same = CloudRegistration(random_state=0).fit(scans.source, scans.target)
    np.testing.assert_array_equal(same.transformation_.matrix, found.transformation_.matrix)


def test_the_matches_alone_are_registered_when_asked_for(scans, found):
    assert len(found.matches_[0]) == len(found.matches_[1]) > 1_000
    assert found.registration_.success_
    assert degrees(found.registration_.transformation_.rotation, scans.rotation) < 3
