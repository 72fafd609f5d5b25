from __future__ import annotations

import numpy as np
import pytest

from inlier.consensus.pairs import ColumnPairs, every_kth
from inlier.transforms.least_squares import MapModel, Maps, fit_maps

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
ROTATIONS = [MapModel("rigid", 3), MapModel("rotation", 3), MapModel("rigid", 3, reflection=True)]


def drawn(model: MapModel, n: int = 700, d_y: int | None = None):
    """Pairs half of which lie near a map, their weights, and that map."""
    rng = np.random.default_rng([model.dimension, len(model.name)])
    d_x = model.dimension
    d_y = d_x if d_y is None else d_y
    linear = np.linalg.qr(rng.normal(size=(max(d_x, d_y),) * 2))[0][:d_y, :d_x]
    if not model.may_mirror:
        linear[0] *= np.sign(np.linalg.det(linear))
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


@pytest.fixture(params=[(2, 2, 300), (3, 3, 1001), (5, 2, 77)])
def points(request):
    d_x, d_y, n = request.param
    rng = np.random.default_rng(n)
    return rng.normal(2.0, 1.0, size=(d_x, n)), rng.normal(-1.0, 3.0, size=(d_y, n)), rng.uniform(size=n)


@pytest.mark.parametrize("centred", [False, True])
def test_row_sums_are_those_of_the_overlap(points, centred):
    x, y, weights = points
    if centred:
        x, y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
    expected = ((x.T @ x) * (y.T @ y)) @ weights
    np.testing.assert_allclose(ColumnPairs(*points).row_sums(centred), expected, atol=1e-9 * np.abs(expected).max())


def test_row_sums_of_wide_pairs():
    x, y = np.random.default_rng(0).normal(size=(2, 12, 60))
    off_x, off_y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
    expected = ((off_x.T @ off_x) * (off_y.T @ off_y)).sum(axis=1)
    np.testing.assert_allclose(ColumnPairs(x, y, np.ones(60)).row_sums(True), expected)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("n", [300, 70_000])
def test_rows_become_columns_about_their_means(centred, dtype, n):
    rng = np.random.default_rng(0)
    X, Y = (100 * rng.normal(size=(n, d)) + 50 for d in (3, 2))
    X, Y = X.astype(dtype), np.asfortranarray(Y.astype(dtype))
    pairs, (x_bar, y_bar) = ColumnPairs.from_rows(X, Y, np.ones(n), centred)
    for columns, mean, table in ((pairs.x, x_bar, X), (pairs.y, y_bar, Y)):
        expected = table.mean(axis=0, dtype=np.float64) if centred else np.zeros(table.shape[1])
        np.testing.assert_allclose(mean, expected, rtol=1e-12)
        np.testing.assert_array_equal(columns, table.T - mean[:, None])
        assert columns.flags.c_contiguous


def test_some_pairs_are_taken(points):
    which = np.array([5, 0, 76, 5])
    some = ColumnPairs(*points).take(which)
    for part, whole in zip((some.x, some.y, some.weights), points, strict=True):
        np.testing.assert_array_equal(part, whole[..., which])
    assert some.take(which[:0]).n_pairs == 0


@pytest.mark.parametrize("model", ROTATIONS, ids=lambda model: f"{model.name}-{model.reflection}")
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


@pytest.mark.parametrize("model", ["rigid", "rotation", "orthogonal", "similarity", "affine"])
@pytest.mark.parametrize("d", [2, 3])
def test_moments_are_weighted_means_of_products(model, d):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, d, 700))
    pairs, start = ColumnPairs(x, y, rng.uniform(size=700)), Maps(np.eye(d)[None], np.zeros((1, d)))
    _, moments = pairs.fit_and_moments(MapModel(model, d), start, 2.0, 0.3)
    squared = ((y - x) ** 2).sum(axis=0)
    share = pairs.weights * np.where(squared <= 4.0, (1 + 0.3 * squared) ** -2.0, 0.0)
    share /= share.sum()
    moved = model not in ("rotation", "orthogonal")
    x_bar, y_bar = (x @ share, y @ share) if moved else (np.zeros(d), np.zeros(d))
    np.testing.assert_allclose(moments.cross[0], (y * share) @ x.T - np.outer(y_bar, x_bar), atol=1e-13)
    off = x - x_bar[:, None]
    scatter = (off * share) @ off.T
    np.testing.assert_allclose(moments.scatter[0].diagonal(), scatter.diagonal(), atol=1e-13)
    if model == "affine":  # others need no more than its trace
        np.testing.assert_allclose(moments.scatter[0], scatter, atol=1e-13)


def listed(n, d=3):
    rng = np.random.default_rng(n)
    return *rng.normal(size=(2, d, n)), rng.random(n)


def any_repeats(x, y, residuals, bound, n_within):
    return ColumnPairs(x, y, np.ones(x.shape[1])).any_repeats(residuals, bound, n_within)


@pytest.mark.parametrize("n", [2, 200, 5000, 50_000])
@pytest.mark.parametrize("repeated", [np.tile, lambda part, times: np.repeat(part, times, axis=-1)])
def test_lists_that_are_listed_twice(n, repeated):
    x, y, residuals = listed(n)
    assert not any_repeats(x, y, residuals, 1.0, n)
    assert any_repeats(repeated(x, 2), repeated(y, 2), repeated(residuals, 2), 1.0, 2 * n)


@pytest.mark.parametrize("n", [200, 5000, 50_000])
def test_one_pair_that_stands_for_a_tenth(n):
    x, y, residuals = listed(n)
    x[:, ::10], y[:, ::10] = 0.0, -0.0
    y[:, ::20] = 0.0  # the same number
    assert any_repeats(x, y, residuals, 1.0, n)


def test_few_are_all_looked_at():
    x, y, residuals = listed(200)
    x[:, 7], y[:, 7] = x[:, 190], y[:, 190]
    assert any_repeats(x, y, residuals, 1.0, 200)


def test_only_those_within_the_bound_count():
    x, y, residuals = listed(300)
    far = residuals > 0.5
    x[:, far], y[:, far] = 0.0, 0.0
    assert not any_repeats(x, y, residuals, 0.5, int((~far).sum()))
    assert any_repeats(x, y, residuals, np.inf, 300)


def test_one_point_with_many_partners_is_no_repeat():
    x, y, residuals = listed(500)
    assert not any_repeats(np.zeros_like(x), y, residuals, 1.0, 500)
    assert not any_repeats(x, np.zeros_like(y), residuals, 1.0, 500)


@pytest.mark.parametrize(("n", "share", "enough"), [(10, 1.0, 3), (100_000, 0.3, 1000), (70_000, 1.0, 999), (9, 0, 5)])
def test_every_kth_of_the_chosen_is_that_of_a_list_of_all(n, share, enough):
    chosen = np.random.default_rng(n).random(n) < share
    rows, count = every_kth(chosen, enough)
    listed = np.flatnonzero(chosen)
    assert count == listed.size
    np.testing.assert_array_equal(rows, listed[:: max(1, listed.size // enough)])
