from __future__ import annotations

import numpy as np
import pytest

from inlier.consensus._kernels_space import rotation_in_space, rotations_in_space, singular_values_in_space
from inlier.consensus.models import MapModel, Maps, _conformal, determines
from inlier.consensus.pairs import ColumnPairs

MODELS = [MapModel("rigid", 3), MapModel("rotation", 3), MapModel("rigid", 3, reflection=True)]


def matrices():
    rng = np.random.default_rng(0)
    for _ in range(50):
        cross = rng.normal(size=(3, 3))
        yield cross
        yield cross * 10.0 ** rng.uniform(-6, 6, size=3)  # singular values far apart
        yield np.linalg.qr(cross)[0] + 1e-9 * rng.normal(size=(3, 3))  # and all alike
        yield cross[:, :2] @ rng.normal(size=(2, 3))  # points on a plane
        yield np.outer(cross[0], cross[1])  # on a line
        yield cross * 1e120
        yield cross * 1e-120
    for axis in np.eye(3):
        yield np.outer([-2.0, 0.0, 0.0], axis)


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_rotation_is_that_of_the_singular_vectors(mirrored):
    model = MapModel("rigid", 3, reflection=mirrored)
    for cross in matrices():
        expected = _conformal(model, cross[None], np.ones(1))[0]
        rotation = rotation_in_space(cross, mirrored)
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-13)
        assert mirrored or np.linalg.det(rotation) > 0
        # Not always the same, but as good: U D V^T maximises tr(R^T cross).
        assert np.vdot(rotation, cross) == pytest.approx(np.vdot(expected, cross), rel=1e-12)


def test_rotations_of_several_are_those_of_each():
    crosses = np.stack(list(matrices()))
    np.testing.assert_array_equal(rotations_in_space(crosses, False), [rotation_in_space(c, False) for c in crosses])


def test_where_nothing_determines_it_the_rotation_is_none():
    np.testing.assert_array_equal(rotation_in_space(np.zeros((3, 3)), False), np.eye(3))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.name}-{model.reflection}")
def test_fits_one_after_the_other_are_those_of_single_steps(model):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 3, 700))
    y[:, ::3] = x[[1, 0, 2]][:, ::3] * [[1.0], [-1.0], [-1.0 if model.reflection else 1.0]] + 0.05
    pairs = ColumnPairs(x, y, rng.uniform(0.5, 2.0, size=700))
    start = pairs.fit(model)
    sharpnesses = np.geomspace(0.1, 50.0, 7)
    expected = start
    for sharpness in sharpnesses:
        expected, _ = pairs.fit_near(model, expected, 2.0, sharpness)
    fitted = pairs.refit(model, start, 2.0, sharpnesses)
    np.testing.assert_allclose(fitted.linear, expected.linear, atol=1e-12)
    np.testing.assert_allclose(fitted.shift, expected.shift, atol=1e-12)


@pytest.mark.parametrize("d", [2, 3])
def test_fits_end_once_they_are_steady(d):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(d, 300))
    pairs = ColumnPairs(x, x + 0.01 * rng.normal(size=x.shape), np.ones(300))
    start = Maps(np.eye(d)[None], np.full((1, d), 0.02))
    one, many = (pairs.refit(MapModel("rigid", d), start, 1.0, np.full(k, 1.0), steady=1.0) for k in (1, 9))
    np.testing.assert_array_equal(one.linear, many.linear)
    np.testing.assert_array_equal(one.shift, many.shift)


@pytest.mark.parametrize(
    ("cross", "rotation", "mirroring"),
    [
        (np.diag([3.0, 2.0, 1.0]), True, True),
        (np.diag([3.0, 2.0, 0.0]), True, False),  # a plane, which a mirror image would fit as well
        (np.diag([3.0, 0.0, 0.0]), False, False),  # a line
        (np.diag([3.0, 1.0, -1.0]), False, True),  # many rotations are as near to this reflection
    ],
)
def test_moments_determine_a_motion_or_not(cross, rotation, mirroring):
    assert determines(MapModel("rigid", 3), cross, 1e-6) is rotation
    assert determines(MapModel("rigid", 3, reflection=True), cross, 1e-6) is mirroring
    assert not determines(MapModel("rigid", 3), cross, 10.0)


@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e120])
def test_singular_values_and_the_sign_of_the_determinant(scale):
    rng = np.random.default_rng(0)
    for rank in (0, 1, 2, 3):
        cross = scale * rng.normal(size=(3, rank)) @ rng.normal(size=(rank, 3))
        values, sign = singular_values_in_space(cross)
        expected = np.linalg.svd(cross, compute_uv=False)
        np.testing.assert_allclose(values, expected, atol=1e-14 * max(expected[0], scale))
        assert rank < 3 or sign == np.sign(np.linalg.det(cross / scale))


@pytest.mark.parametrize("model", ["rigid", "rotation", "orthogonal", "similarity"])
@pytest.mark.parametrize("d", [2, 3])
def test_a_fit_comes_with_the_cross_covariance_that_it_rests_on(model, d):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, d, 700))
    pairs, start = ColumnPairs(x, y, rng.uniform(size=700)), Maps(np.eye(d)[None], np.zeros((1, d)))
    maps, cross = pairs.fit_and_cross(MapModel(model, d), start, 2.0, 0.3)
    squared = ((y - x) ** 2).sum(axis=0)
    share = pairs.weights * np.where(squared <= 4.0, (1 + 0.3 * squared) ** -2.0, 0.0)
    share /= share.sum()
    moved = model in ("rigid", "similarity")
    x_bar, y_bar = (x @ share, y @ share) if moved else (np.zeros(d), np.zeros(d))
    np.testing.assert_allclose(cross, (y * share) @ x.T - np.outer(y_bar, x_bar), atol=1e-13)
    expected, _ = pairs.fit_near(MapModel(model, d), start, 2.0, 0.3)
    np.testing.assert_array_equal(maps.linear, expected.linear)
    np.testing.assert_array_equal(maps.shift, expected.shift)
