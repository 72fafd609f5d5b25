from __future__ import annotations

import numpy as np
import pytest

from inlier.consensus.models import MapModel, Maps, fit_maps
from inlier.consensus.pairs import ColumnPairs

MODELS = [
    MapModel("rigid", 3),
    MapModel("rigid", 2),
    MapModel("similarity", 3),
    MapModel("similarity", 5, reflection=True),
    MapModel("orthogonal", 3),
    MapModel("rotation", 2),
    MapModel("affine", 3),
    MapModel("rigid", 12),
    MapModel("affine", 12),
]


def drawn(model: MapModel, n: int = 700, d_y: int | None = None):
    """Pairs half of which lie near a map, their weights, and that map."""
    rng = np.random.default_rng([model.dimension, len(model.name)])
    d_x = model.dimension
    d_y = d_x if d_y is None else d_y
    linear = np.linalg.qr(rng.normal(size=(max(d_x, d_y),) * 2))[0][:d_y, :d_x]
    shift = rng.normal(size=d_y) if model.has_shift else np.zeros(d_y)
    x, y = rng.normal(size=(d_x, n)), rng.normal(size=(d_y, n))
    y[:, ::2] = linear @ x[:, ::2] + shift[:, None] + 0.1 * rng.normal(size=(d_y, len(x[0, ::2])))
    return ColumnPairs(x, y, rng.uniform(0.5, 2.0, size=n)), Maps(linear[None], shift[None])


def residuals(pairs: ColumnPairs, maps: Maps):
    return np.linalg.norm(pairs.y - maps.linear[0] @ pairs.x - maps.shift[0][:, None], axis=0)


@pytest.mark.parametrize("sharpness", [0.0, 3.0])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.name}-{model.dimension}")
def test_a_fit_to_near_pairs_is_least_squares_on_them(model, sharpness):
    pairs, maps = drawn(model)
    reach = 0.2 * np.sqrt(model.dimension)
    distance = residuals(pairs, maps)
    near = distance <= reach
    assert 200 < near.sum() < 500
    weights = pairs.weights[near] / (1 + sharpness * distance[near] ** 2) ** 2
    expected = fit_maps(model, pairs.x.T[None, near], pairs.y.T[None, near], weights[None])
    fitted, count = pairs.fit_near(model, maps, reach, sharpness)
    assert count == near.sum()
    np.testing.assert_allclose(fitted.linear, expected.linear, atol=1e-12)
    np.testing.assert_allclose(fitted.shift, expected.shift, atol=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.name}-{model.dimension}")
def test_a_fit_to_all_pairs_takes_every_one_by_its_weight(model):
    pairs, _ = drawn(model)
    factor = np.linspace(0, 1, pairs.n_pairs)
    expected = fit_maps(model, pairs.x.T[None], pairs.y.T[None], (pairs.weights * factor)[None])
    fitted = pairs.fit(model, factor)
    np.testing.assert_allclose(fitted.linear, expected.linear, atol=1e-12)
    np.testing.assert_allclose(fitted.shift, expected.shift, atol=1e-12)


def test_an_affine_fit_may_change_the_dimension():
    model = MapModel("affine", 3)
    pairs, maps = drawn(model, d_y=2)
    near = residuals(pairs, maps) <= 0.3
    expected = fit_maps(model, pairs.x.T[None, near], pairs.y.T[None, near], pairs.weights[None, near])
    fitted, _ = pairs.fit_near(model, maps, 0.3)
    np.testing.assert_allclose(fitted.linear, expected.linear, atol=1e-12)


def test_pairs_in_several_threads_give_the_same_fit_as_in_one_piece():
    model = MapModel("similarity", 3)
    pairs, maps = drawn(model, n=150_000)  # more than one range of rows
    near = residuals(pairs, maps) <= 0.3
    expected = fit_maps(model, pairs.x.T[None, near], pairs.y.T[None, near], pairs.weights[None, near])
    fitted, count = pairs.fit_near(model, maps, 0.3)
    assert count == near.sum()
    np.testing.assert_allclose(fitted.linear, expected.linear, atol=1e-10)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_common_support_is_a_share_of_the_first_ones(d):
    model = MapModel("rigid", d)
    pairs, maps = drawn(model)
    other = Maps(maps.linear, maps.shift + 0.2)
    first, second = residuals(pairs, maps) <= 0.4, residuals(pairs, other) <= 0.5
    assert pairs.common_support(maps, 0.4, other, 0.5) == (first & second).sum() / first.sum()
    assert pairs.common_support(other, 0.5, maps, 0.4) == (first & second).sum() / second.sum()
