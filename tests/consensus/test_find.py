"""Mistakes that come in clumps, as attackers and real scans make them: what is called sure must be right."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from inlier import NoConsensusError, Registration
from inlier.transforms.least_squares import Maps


def rotation(rng):
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return turn * np.sign(np.linalg.det(turn))


def spots(rng, n=400, n_spots=10):
    spot = rng.integers(n_spots, size=n)
    return tuple(rng.random((n_spots, 3))[spot] + 0.02 * rng.normal(size=(n, 3)) for _ in range(2))


def parts(rng, n=400):
    part, offset = rng.integers(8, size=n), 0.1 * rng.normal(size=(n, 3))
    turns = np.stack([rotation(rng) for _ in range(8)])
    X, Y = rng.random((8, 3))[part] + offset, rng.random((8, 3))[part] + np.einsum("nij,nj->ni", turns[part], offset)
    return X, Y + 0.002 * rng.normal(size=(n, 3))


def trajectories(rng, n=400):
    time = np.linspace(0, 2 * np.pi, n)[:, None]
    waves = [(np.cos(k * time), np.sin(k * time)) for k in range(1, 6)]
    return tuple(
        sum((c * rng.normal(size=3) + s * rng.normal(size=3)) / k for k, (c, s) in enumerate(waves, 1))
        for _ in range(2)
    )


def walks(rng, n=400):
    return tuple(np.cumsum(rng.normal(size=(n, 3)), axis=0) for _ in range(2))


@pytest.mark.parametrize("mistakes", [spots, parts, trajectories, walks])
def test_clumps_are_not_called_sure(mistakes):
    claims = []
    for seed in range(8):
        X, Y = mistakes(np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            claims.append(Registration(random_state=seed, raise_on_failure=False).fit(X, Y).success_)
    assert sum(claims) <= 1


def test_a_motion_among_clumps_is_found_and_said_to_be_sure():
    rng = np.random.default_rng(0)
    X, Y = spots(rng, 1500)
    turn = rotation(rng)
    X[:400] = rng.random((400, 3))
    Y[:400] = X[:400] @ turn.T + 0.003 * rng.normal(size=(400, 3))
    found = Registration(random_state=0).fit(X, Y)
    np.testing.assert_allclose(found.transformation_.rotation, turn, atol=0.02)
    assert found.detection_p_value_ < 1e-3
    assert found.clump_length_ > 0
    assert 20 < found.n_places_ <= 410


def test_independent_mistakes_are_judged_pair_by_pair():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    Y = rng.permutation(X)
    Y[:150] = X[:150] + 0.01 * rng.normal(size=(150, 3))
    found = Registration(random_state=0).fit(X, Y)
    assert found.clump_length_ == 0.0
    assert found.n_places_ >= 140


def test_the_refusal_says_what_the_mistakes_look_like():
    X, Y = spots(np.random.default_rng(3))
    with pytest.raises(NoConsensusError, match="neighbours here matched to neighbours there"):
        Registration(random_state=0).fit(X, Y)


def test_a_second_motion_among_clumps_is_named():
    rng = np.random.default_rng(0)
    X, Y = spots(rng, 2400)
    turns = [rotation(rng), rotation(rng)]
    X[:900] = rng.random((900, 3))
    for turn, rows in zip(turns, (slice(0, 500), slice(500, 900)), strict=True):
        Y[rows] = X[rows] @ turn.T + 0.003 * rng.normal(size=X[rows].shape)
    with pytest.warns(UserWarning, match="Another rigid transformation"):
        found = Registration(random_state=0).fit(X, Y)
    np.testing.assert_allclose(found.transformation_.rotation, turns[0], atol=0.02)
    np.testing.assert_allclose(found.runner_up_.transformation.rotation, turns[1], atol=0.02)
    assert found.runner_up_.n_places < found.n_places_


@pytest.mark.parametrize("seed", [20161, 20371, 20394])
def test_few_places_whose_errors_are_alike_are_few_witnesses(seed):
    # Unlucky ones of 400 draws: the four spots lie about as the others do, so that a coarse motion carries most pairs.
    X, Y = spots(np.random.default_rng(seed), n_spots=4)
    found = Registration(random_state=0, raise_on_failure=False).fit(X, Y)
    assert not found.success_
    assert found.detection_p_value_ > 1e-3


@pytest.mark.parametrize("n_patches", [8, 20])
def test_patches_of_a_wall_that_are_slid_along_it_are_refused_and_said_to_be_flat(n_patches):
    rng = np.random.default_rng(n_patches)
    patch, offset = rng.integers(n_patches, size=400), 0.05 * rng.normal(size=(400, 2))
    X, Y = (np.hstack([rng.random((n_patches, 2))[patch] + offset, np.zeros((400, 1))]) for _ in range(2))
    X, Y = (side + 0.002 * rng.normal(size=(400, 3)) for side in (X, Y))
    with pytest.raises(NoConsensusError, match="lie in a plane: the motion within it is not determined"):
        Registration(random_state=0).fit(X, Y @ rotation(rng).T)


@pytest.mark.parametrize("seed", [1023, 1060, 1099])
def test_patches_of_a_wall_that_happen_to_slide_alike_prove_nothing(seed):
    # Unlucky ones of 100 draws: two or three patches slide alike, and are as wide as several places.
    rng = np.random.default_rng(seed)
    patch, offset = rng.integers(20, size=400), 0.05 * rng.normal(size=(400, 2))
    X, Y = (np.hstack([rng.random((20, 2))[patch] + offset, np.zeros((400, 1))]) for _ in range(2))
    turn = rotation(rng)
    X = X + 0.002 * rng.normal(size=(400, 3))
    found = Registration(random_state=seed - 1000, raise_on_failure=False)
    assert not found.fit(X, Y @ turn.T + 0.002 * rng.normal(size=(400, 3))).success_


def test_a_motion_along_a_wall_is_found_among_patches_that_slide():
    rng = np.random.default_rng(0)
    patch, offset = rng.integers(20, size=800), 0.05 * rng.normal(size=(800, 2))
    X, Y = (np.hstack([rng.random((20, 2))[patch] + offset, np.zeros((800, 1))]) for _ in range(2))
    X[:160, :2] = rng.random((160, 2))
    Y[:160] = X[:160] + np.array([0.2, 0.1, 0.0])
    X, Y, turn = X + 0.002 * rng.normal(size=X.shape), Y + 0.002 * rng.normal(size=Y.shape), rotation(rng)
    with pytest.warns(UserWarning, match="lie in a plane"):
        found = Registration(random_state=0).fit(X, Y @ turn.T)
    np.testing.assert_allclose(found.transformation_.rotation[:, :2], turn[:, :2], atol=0.05)


@pytest.mark.parametrize(("thickness", "says_so"), [(0.002, True), (0.5, False)])
def test_points_that_agree_in_a_plane_are_said_to(thickness, says_so):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1, 1, thickness]
    Y = X @ rotation(rng).T + 0.01 * rng.normal(size=(300, 3))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Registration(random_state=0).fit(X, Y)
    assert any("lie in a plane" in str(warning.message) for warning in said) == says_so


SHIFT = Maps(np.eye(3)[None], np.full((1, 3), 0.5))
