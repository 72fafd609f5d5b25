from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from scipy.stats import special_ortho_group

from inlier import AffineTransformation, SimilarityTransformation, Transformation
from tests.transformations import MODELS, random_map, same, seeds


@given(seeds, st.sampled_from(MODELS), st.sampled_from(MODELS), st.integers(1, 6))
def test_inverse_and_composition_laws(seed, first, second, d):
    rng = np.random.default_rng(seed)
    T1, T2, X = random_map(first, d, rng, first != "rotation"), random_map(second, d, rng), rng.standard_normal((9, d))
    joint = T2 @ T1
    size = np.abs(joint.matrix).max()
    np.testing.assert_allclose(joint(X), T2(T1(X)), atol=1e-10 * size)
    np.testing.assert_allclose(joint.matrix, T2.matrix @ T1.matrix, atol=1e-10 * size)
    slack = 1e-10 * (np.linalg.cond(T1.matrix) * np.linalg.cond(T2.matrix)) ** 2
    same(T1.inverse @ T1, SimilarityTransformation(np.eye(d)), slack)
    same(joint.inverse, T1.inverse @ T2.inverse, slack)
    if "affine" in (first, second):
        assert joint.model == "affine"
    elif first == second:
        assert joint.model == first


@pytest.mark.parametrize(
    ("second", "first", "joint"),
    [
        ("rotation", "orthogonal", "orthogonal"),
        ("rotation", "rigid", "rigid"),
        ("similarity", "orthogonal", "similarity"),
    ],
)
def test_the_joint_model_is_the_smallest_that_holds_both(second, first, joint):
    rng = np.random.default_rng(0)
    assert (random_map(second, 3, rng) @ random_map(first, 3, rng)).model == joint


def test_composition_of_maps_that_do_not_fit():
    down = AffineTransformation(np.ones((2, 3)), np.zeros(2))
    with pytest.raises(ValueError, match="the first gives points of 2 dimension"):
        down @ down
    with pytest.raises(TypeError):
        down @ 3
    assert (SimilarityTransformation(np.eye(2)) @ down).matrix.shape == (3, 4)


@pytest.mark.parametrize("model", MODELS)
def test_json_pickle_and_copies(model):
    T = random_map(model, 4, np.random.default_rng(0))
    for twin in (
        Transformation.from_dict(json.loads(json.dumps(T.to_dict(), allow_nan=False))),
        pickle.loads(pickle.dumps(T)),
        copy.deepcopy(T),
    ):
        assert type(twin) is type(T)
        assert twin.model == model
        assert np.array_equal(twin.matrix, T.matrix)
        assert not twin.translation.flags.writeable


def test_frozen_and_apart_from_what_it_was_made_of():
    R = np.eye(2)
    T = SimilarityTransformation(R)
    R[0, 0] = 7
    assert T.rotation[0, 0] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        T.scale = 2.0
    with pytest.raises(ValueError, match="read-only"):
        T.rotation[0, 0] = 2


@pytest.mark.parametrize("degrees", [-179.0, -30.0, 0.0, 1e-7, 90.0, 180.0])
def test_angle(degrees):
    turn = Rotation.from_euler("z", degrees, degrees=True).as_matrix()
    assert SimilarityTransformation(turn[:2, :2]).angle == pytest.approx(degrees, rel=1e-9, abs=1e-12)
    assert SimilarityTransformation(turn).angle == pytest.approx(abs(degrees), rel=1e-9, abs=1e-12)
    with pytest.raises(AttributeError, match="this is a rotation in 4 dimensions"):
        _ = SimilarityTransformation(np.eye(4)).angle


QUARTER = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("transformation", "words"),
    [
        (
            SimilarityTransformation(QUARTER, [5, 0, -1], model="rigid"),
            "turns by 90 degrees about the axis (0.000, 0.000, 1.000) and moves by (5, 0, -1)",
        ),
        (
            SimilarityTransformation(QUARTER, [5, 0, 0], 2.0),
            "scales by 2, turns by 90 degrees about the axis (0.000, 0.000, 1.000) and moves by (5, 0, 0)",
        ),
        (SimilarityTransformation([[0, -1], [1, 0]], model="rotation"), "turns by 90 degrees counter-clockwise"),
        (SimilarityTransformation([[0, 1], [-1, 0]], model="rotation"), "turns by 90 degrees clockwise"),
        (SimilarityTransformation(np.eye(3), model="rigid"), "does not turn and moves by (0, 0, 0)"),
        (SimilarityTransformation(np.diag([-1, 1, 1]), model="orthogonal"), "mirrors"),
        (SimilarityTransformation([[1]], [3], model="rigid"), "moves by (3)"),
        (
            SimilarityTransformation(special_ortho_group.rvs(5, random_state=0), [3, 4, 0, 0, 0], model="rigid"),
            "turns in 5 dimensions and moves by 5",
        ),
        (SimilarityTransformation([[1]], model="rotation"), "does not turn"),
        (AffineTransformation([[2, 0], [0, 1]], [1, 2]), "stretches by 1 to 2 and moves by (1, 2)"),
    ],
)
def test_words_for_what_it_does(transformation, words):
    assert transformation.describe() == words


@pytest.mark.parametrize(
    ("T", "text"),
    [
        (
            SimilarityTransformation(np.eye(1), [2]),
            "<similarity transformation in 1 dimension: scales by 1 and",
        ),
        (SimilarityTransformation(np.eye(2), determined=False), "; the pairs did not determine all of it>"),
        (AffineTransformation([[3, 0, 4]], [0]), "from 3 to 1 dimension: stretches by 5 to 5 and moves by (0)>"),
    ],
)
def test_repr_is_a_sentence(T, text):
    assert text in repr(T)


def test_affine_has_no_rotation_scale_or_inverse_where_there_is_none():
    T = AffineTransformation([[1, 0, 0], [0, 1, 0]], [0, 0])
    assert not hasattr(T, "rotation")
    with pytest.raises(AttributeError, match=r"no rotation of its own; use .linear"):
        _ = T.rotation
    with pytest.raises(AttributeError, match="no single scale"):
        _ = T.scale
    with pytest.raises(ValueError, match=r"from 3 to 2 dimensions has no inverse. Fit one from Y to X"):
        _ = T.inverse
    with pytest.raises(ValueError, match="flattens some direction"):
        _ = AffineTransformation([[1, 1], [1, 1]], [0, 0]).inverse


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rotation": np.ones((2, 3))}, r"must be square; got shape \(2, 3\)"),
        ({"rotation": 2 * np.eye(2)}, r"R\^T R differs from I by 3"),
        ({"rotation": [1, 0]}, "finite numbers with 2 axes"),
        ({"rotation": np.full((2, 2), np.nan)}, "finite numbers"),
        ({"rotation": np.eye(2), "translation": [1, 2, 3]}, "translation needs 2 numbers, not 3"),
        ({"rotation": np.eye(2), "scale": 0}, "scale must be positive"),
        ({"rotation": np.eye(2), "scale": -1}, "scale must lie between"),
        ({"rotation": np.eye(2), "scale": 2, "model": "rigid"}, "scale must be 1 for model 'rigid'"),
        ({"rotation": np.eye(2), "translation": [1, 0], "model": "rotation"}, "has no translation"),
        ({"rotation": np.diag([1, -1]), "model": "rotation"}, "it is a reflection"),
        ({"rotation": np.eye(2), "model": "affine"}, "model must be one of"),
    ],
)
def test_impossible_similarities(arguments, message):
    with pytest.raises(ValueError, match=message):
        SimilarityTransformation(**arguments)


def test_calls_with_the_wrong_shape():
    T = SimilarityTransformation(np.eye(3))
    with pytest.raises(ValueError, match=r"X has shape \(5, 2\), so its points have 2 dimension"):
        T(np.zeros((5, 2)))
    with pytest.raises(ValueError, match=r"Y has shape \(5, 2\)"):
        T.residuals(np.zeros((5, 3)), np.zeros((5, 2)))
    with pytest.raises(ValueError, match="X has 5 rows and y has 4"):
        T.residuals(np.zeros((5, 3)), np.zeros((4, 3)))
    with pytest.raises(ValueError, match="translation needs 2 numbers"):
        AffineTransformation(np.eye(2), [1])
    assert T(np.zeros((0, 3))).shape == (0, 3)
