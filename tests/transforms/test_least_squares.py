from __future__ import annotations

import numpy as np
import pytest

from inlier import estimate_transformation
from inlier.transforms.least_squares import MapModel, fit_maps, rank_and_uniqueness


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("name", ["orthogonal", "rotation", "rigid", "similarity", "affine"])
@pytest.mark.parametrize("reflection", [False, True])
def test_many_small_fits_are_the_careful_ones(name, d, reflection):
    if name == "rotation" and reflection:
        pytest.skip("a rotation never reflects")
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(2, 4, 12, d))
    weights = rng.random((4, 12))
    maps = fit_maps(MapModel(name, d, reflection), x, y, weights)
    for s in range(4):
        try:
            careful = estimate_transformation(name, x[s], y[s], weights[s], reflection=reflection)
        except ValueError:  # no positive scale fits
            assert name == "similarity"
            continue
        np.testing.assert_allclose(maps.linear[s], careful.linear, atol=1e-9)
        np.testing.assert_allclose(maps.shift[s], careful.translation, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "fewest", "constraints", "freedom"),
    [
        (MapModel("rigid", 3), 3, 3, 6),
        (MapModel("rigid", 2), 2, 1, 3),
        (MapModel("similarity", 3), 3, 2, 7),
        (MapModel("rotation", 3), 2, 3, 3),
        (MapModel("affine", 3), 4, 0, 12),
        (MapModel("rigid", 1), 1, 0, 1),
    ],
)
def test_what_it_takes_to_fix_a_map(model, fewest, constraints, freedom):
    assert (model.fewest_pairs, model.constraints, model.freedom) == (fewest, constraints, freedom)
    # equations of so many pairs = constraints they fulfil + parameters they fix
    if model.dimension > 1:
        assert model.fewest_pairs * model.dimension == constraints + freedom


def test_weights_of_nothing_give_some_map():
    maps = fit_maps(MapModel("similarity", 3), np.ones((1, 5, 3)), np.ones((1, 5, 3)), np.zeros((1, 5)))
    assert np.isfinite(maps.linear).all()
    assert np.isfinite(maps.shift).all()


@pytest.mark.parametrize(
    ("s", "handedness", "rotation", "mirroring"),
    [
        ([3.0, 2.0, 1.0], 1.0, (3, True), (3, True)),
        ([3.0, 2.0, 0.0], 1.0, (2, True), (2, False)),  # a plane, which a mirror image would fit as well
        ([3.0, 0.0, 0.0], 1.0, (1, False), (1, False)),  # a line
        ([3.0, 1.0, 1.0], -1.0, (3, False), (3, True)),  # many rotations are as near to this reflection
    ],
)
def test_moments_determine_a_rotation_or_not(s, handedness, rotation, mirroring):
    assert rank_and_uniqueness(MapModel("rigid", 3), np.array(s), handedness, 1e-6) == rotation
    assert rank_and_uniqueness(MapModel("rigid", 3, reflection=True), np.array(s), handedness, 1e-6) == mirroring
    assert rank_and_uniqueness(MapModel("rigid", 3), np.array(s), handedness, 10.0) == (0, False)
