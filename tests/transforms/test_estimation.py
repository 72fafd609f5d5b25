from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from inlier import DegenerateConfigurationError, estimate_transformation
from tests.transformations import FREE, MODELS, fewest_pairs, random_map, random_rotation, same, seeds

dimensions = st.sampled_from([1, 2, 3, 4, 5, 6, 50])


# Exact recovery


@pytest.mark.parametrize("model", MODELS)
@given(seed=seeds, d=dimensions, reflection=st.booleans(), spare=st.integers(0, 20), d_y=st.integers(1, 5))
def test_exact_pairs_give_back_their_map_whatever_pairs_of_no_weight_say(model, seed, d, reflection, spare, d_y):
    rng = np.random.default_rng(seed)
    reflection = reflection and model != "rotation"
    truth = random_map(model, d, rng, reflection, d_y)
    n = fewest_pairs(model, d, reflection) + 3 + spare
    X = rng.standard_normal((n + 7, d))
    Y = truth(X)
    weights = np.concatenate([rng.uniform(0.1, 5, size=n), np.zeros(7)])
    Y[n:] = 1e3 * rng.standard_normal((7, Y.shape[1]))
    order = rng.permutation(n + 7)
    T = estimate_transformation(model, X[order], Y[order], weights[order], reflection=reflection)
    assert T.determined
    assert T.model == model
    same(T, truth, 1e-9)
    assert T.residuals(X[:n], Y[:n]).max() < 1e-9 * np.abs(Y[:n]).max()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 50])
def test_the_fewest_pairs_suffice_and_one_less_does_not(model, d):
    rng = np.random.default_rng(d)
    truth = random_map(model, d, rng)
    X = rng.standard_normal((fewest_pairs(model, d, False), d))
    same(estimate_transformation(model, X, truth(X)), truth, 1e-7)
    if len(X) > 1:
        with pytest.raises(DegenerateConfigurationError):
            estimate_transformation(model, X[:-1], truth(X[:-1]))


@given(seeds, st.sampled_from(MODELS), st.integers(1, 4), st.floats(1e-3, 1e3))
def test_weights_are_repetitions_and_their_unit_does_not_matter(seed, model, d, unit):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((12, d)), rng.standard_normal((12, d))
    Y += 3 * random_map(model, d, rng)(X) if model == "affine" else 3 * X
    counts = rng.integers(0, 4, size=12)
    counts[: d + 3] += 1
    repeated = estimate_transformation(model, np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    same(estimate_transformation(model, X, Y, unit * counts), repeated, 1e-9)


def test_a_mask_and_a_line_of_numbers_will_do():
    x = np.arange(6.0)
    y = 2 * x + 1
    y[5] = 100
    T = estimate_transformation("similarity", x, y, np.arange(6) < 5)
    assert T.scale == pytest.approx(2)
    np.testing.assert_allclose(T(x[:3]), [[1], [3], [5]])


# Slow references


@given(seeds, st.integers(3, 30))
def test_rotation_is_that_of_scipy(seed, n):
    rng = np.random.default_rng(seed)
    X, Y, weights = rng.standard_normal((n, 3)), rng.standard_normal((n, 3)), rng.uniform(0.1, 1, size=n)
    expected, _ = Rotation.align_vectors(Y, X, weights)
    T = estimate_transformation("rotation", X, Y, weights)
    np.testing.assert_allclose(T.rotation, expected.as_matrix(), atol=1e-6)
    np.testing.assert_allclose(T.as_scipy_rotation().as_matrix(), T.rotation, atol=1e-12)
    assert T.angle == pytest.approx(np.degrees(expected.magnitude()), abs=1e-4)


@given(seeds, st.integers(1, 7), st.integers(0, 20))
def test_orthogonal_is_that_of_scipy(seed, d, spare):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d + spare, d))
    Y = X @ random_rotation(rng, d, reflect=bool(seed % 2)).T + 0.3 * rng.standard_normal(X.shape)
    expected, _ = orthogonal_procrustes(X, Y)
    np.testing.assert_allclose(estimate_transformation("orthogonal", X, Y).rotation, expected.T, atol=1e-7)


@given(seeds, st.integers(1, 5), st.integers(1, 5), st.integers(2, 20))
def test_affine_is_that_of_lstsq(seed, d_x, d_y, spare):
    rng = np.random.default_rng(seed)
    n = d_x + spare
    X, Y, weights = rng.standard_normal((n, d_x)), rng.standard_normal((n, d_y)), rng.uniform(0.1, 1, size=n)
    root = np.sqrt(weights)[:, None]
    expected = np.linalg.lstsq(root * np.column_stack([X, np.ones(n)]), root * Y, rcond=None)[0].T
    T = estimate_transformation("affine", X, Y, weights)
    np.testing.assert_allclose(T.matrix[:-1], expected, atol=1e-7 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("model", ["rigid", "similarity"])
@pytest.mark.parametrize("reflection", [False, True])
@pytest.mark.parametrize("d", [2, 3])
def test_no_search_finds_a_better_rigid_map_or_similarity(model, reflection, d):
    rng = np.random.default_rng(10 * d + reflection)
    X, weights = rng.standard_normal((8, d)), rng.uniform(0.1, 1, size=8)
    Y = random_map(model, d, rng, reflection)(X) + 0.2 * rng.standard_normal((8, d))
    mirror = np.diag([-1.0 if reflection else 1.0] + [1.0] * (d - 1))

    def unpack(p):
        turn = Rotation.from_rotvec(np.r_[0, 0, p[0]] if d == 2 else p[:3]).as_matrix()[:d, :d]
        return np.exp(p[-1]) * (model == "similarity") + (model == "rigid"), turn @ mirror, p[-1 - d : -1]

    def loss(p):
        scale, R, t = unpack(p)
        return weights @ ((Y - scale * X @ R.T - t) ** 2).sum(axis=1)

    size = (1 if d == 2 else 3) + d + 1
    starts = [np.r_[rng.uniform(-2, 2, size - d - 1), np.zeros(d + 1)] for _ in range(8)]
    best = min((minimize(loss, p, options={"gtol": 1e-9}) for p in starts), key=lambda found: found.fun)
    T = estimate_transformation(model, X, Y, weights, reflection=reflection)
    assert weights @ T.residuals(X, Y) ** 2 == pytest.approx(best.fun, rel=1e-7)
    scale, R, t = unpack(best.x)
    np.testing.assert_allclose(T.rotation, R, atol=1e-4)
    np.testing.assert_allclose(T.translation, t, atol=1e-4)
    assert T.scale == pytest.approx(scale, abs=1e-4)


# Reflections


@given(seeds, st.integers(2, 6), st.sampled_from(FREE))
def test_reflection_only_where_asked_for(seed, d, model):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d + 5, d)) * np.arange(1, d + 1)
    truth = random_map(model, d, rng, reflect=True)
    Y = truth(X)
    plain, mirrored = estimate_transformation(model, X, Y), estimate_transformation(model, X, Y, reflection=True)
    assert not plain.is_reflection
    assert mirrored.is_reflection
    same(mirrored, truth, 1e-8)
    assert "mirrors" in repr(mirrored)
    with pytest.raises(AttributeError, match="this is a reflection"):
        _ = mirrored.angle
    with pytest.raises(ValueError, match="this is a reflection"):
        mirrored.as_scipy_rotation()


def test_rotation_refuses_to_reflect():
    with pytest.raises(ValueError, match=r"never reflects. Use model='orthogonal'"):
        estimate_transformation("rotation", np.eye(3), np.eye(3), reflection=True)


# Numbers of every kind


@pytest.mark.parametrize("model", MODELS)
def test_float32_pairs_are_summed_in_float64(model):
    rng = np.random.default_rng(0)
    truth = random_map(model, 3, rng)
    X = rng.standard_normal((100_000, 3)).astype(np.float32)
    Y = truth(X)
    assert Y.dtype == np.float32
    same(estimate_transformation(model, X, Y), truth, 1e-7)
    assert truth(X.astype(np.float64)).dtype == truth((X * 10).astype(np.int32)).dtype == np.float64


@pytest.mark.parametrize("model", FREE)
@pytest.mark.parametrize("d", [2, 3, 6])
def test_far_from_the_origin(model, d):
    rng = np.random.default_rng(d)
    R, scale = random_rotation(rng, d), 2.0 if model == "similarity" else 1.0
    near = rng.standard_normal((500, d))
    X, Y = near + 1e6, scale * near @ R.T - 1e6
    T = estimate_transformation(model, X, Y)
    assert T.residuals(X, Y).max() < 1e-8
    np.testing.assert_allclose(T.rotation, R, atol=1e-9)
    assert T.scale == pytest.approx(scale, abs=1e-9)


def test_affine_far_from_the_origin_with_columns_of_different_size():
    rng = np.random.default_rng(0)
    near, A = rng.standard_normal((500, 3)), rng.standard_normal((2, 3))
    X, Y = 1e6 + near * [1e-2, 1, 1e3], near @ A.T + 1e6
    T = estimate_transformation("affine", X, Y)
    assert T.residuals(X, Y).max() < 1e-6
    np.testing.assert_allclose(T.linear * [1e-2, 1, 1e3], A, atol=1e-6)


@pytest.mark.parametrize("model", ["similarity", "affine"])
@pytest.mark.parametrize(("of_x", "of_y"), [(1e-150, 1e-150), (1e150, 1e150), (1e-100, 1e100)])
def test_neither_huge_nor_tiny_numbers_break_it(model, of_x, of_y):
    rng = np.random.default_rng(0)
    R, X = random_rotation(rng, 3), rng.standard_normal((20, 3))
    T = estimate_transformation(model, of_x * X, of_y * X @ R.T)
    np.testing.assert_allclose(T.linear / (of_y / of_x), R, atol=1e-12)


@given(seeds, st.sampled_from(MODELS))
@example(0, "affine")
def test_blocks_do_not_matter(seed, model):
    rng = np.random.default_rng(seed)
    X, Y, weights = rng.standard_normal((50, 3)), rng.standard_normal((50, 3)), rng.uniform(size=50)
    weights[20:35] = 0  # whole blocks of no weight
    Y += X
    whole = estimate_transformation(model, X, Y, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inlier.rows.threads.rows_per_block", lambda width: 7)
        blocks = estimate_transformation(model, X, Y, weights)
        np.testing.assert_allclose(whole.residuals(X, Y), blocks.residuals(X, Y), atol=1e-9)
        np.testing.assert_allclose(blocks(X), whole(X), atol=1e-9)
    same(blocks, whole, 1e-9)


# Degenerate configurations


def flat_points(rank, d, n=40, seed=0, offset=0.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)) + offset * rng.standard_normal(d)
    return points.astype(dtype)


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize(
    ("rank", "d", "words"),
    [(0, 3, "all coincide"), (1, 3, "collinear"), (0, 2, "all coincide"), (2, 5, "coplanar"), (3, 5, "3-dim")],
)
def test_flat_points_are_named_wherever_they_lie(rank, d, words, offset, dtype, noise):
    if dtype == np.float32 and offset == 1e6:
        offset = 1e3
    X = flat_points(rank, d, offset=offset, dtype=dtype)
    Y = (X @ random_rotation(np.random.default_rng(1), d).T).astype(dtype)
    Y += (noise * np.random.default_rng(2).standard_normal(Y.shape)).astype(dtype)
    for model in FREE:
        with pytest.raises(DegenerateConfigurationError, match=words) as caught:
            estimate_transformation(model, X, Y)
        assert (caught.value.rank, caught.value.rank_needed) == (rank, d - 1)
        T = estimate_transformation(model, X, Y, allow_undetermined=True)
        assert not T.determined
        assert np.linalg.det(T.rotation) == pytest.approx(1)
        if not noise:
            assert T.residuals(X, Y).max() < 1e2 * np.finfo(dtype).eps * max(1, offset) * d


@pytest.mark.parametrize("n", [10, 1_000_000])
@pytest.mark.parametrize("aspect", [1e-3, 1e-6])
def test_thin_is_not_flat(n, aspect):
    rng = np.random.default_rng(0)
    R = random_rotation(rng, 3)
    X = rng.standard_normal((n, 3)) * [1, aspect, aspect]
    T = estimate_transformation("rigid", X, X @ R.T)
    np.testing.assert_allclose(T.rotation, R, atol=1e-9 / aspect)
    with pytest.raises(DegenerateConfigurationError, match="collinear"):
        estimate_transformation("rigid", X[:, :1] * [[1.0, 2.0, 3.0]], X @ R.T)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_one_missing_direction_leaves_a_rotation_but_not_a_reflection(d):
    X = flat_points(d - 1, d)
    truth = random_map("rigid", d, np.random.default_rng(1))
    same(estimate_transformation("rigid", X, truth(X)), truth, 1e-9)
    with pytest.raises(
        DegenerateConfigurationError, match=f"fix {d - 1} independent direction.s. where {d} are needed"
    ):
        estimate_transformation("rigid", X, truth(X), reflection=True)
    with pytest.raises(DegenerateConfigurationError, match=r"through the origin|span 5 dimensions from the origin"):
        estimate_transformation("orthogonal", X, X)
    free = estimate_transformation("rigid", X, truth(X), reflection=True, allow_undetermined=True)
    assert free.residuals(X, truth(X)).max() < 1e-9


def test_the_smallest_rotation_completes_what_a_line_determines():
    u, v = np.array([1.0, 0, 0]), np.array([np.cos(0.5), np.sin(0.5), 0])
    line = np.linspace(-1, 1, 7)[:, None]
    T = estimate_transformation("rigid", line * u, line * v + [1, 2, 3], allow_undetermined=True)
    assert not T.determined
    assert T.angle == pytest.approx(np.degrees(0.5))
    np.testing.assert_allclose(T.rotation[:, 2], [0, 0, 1], atol=1e-12)
    point = estimate_transformation("similarity", np.ones((4, 3)), np.zeros((4, 3)), allow_undetermined=True)
    np.testing.assert_allclose(point.matrix, [[1, 0, 0, -1], [0, 1, 0, -1], [0, 0, 1, -1], [0, 0, 0, 1]], atol=1e-12)
    assert not point.determined
    assert not (point @ T).determined
    assert not point.inverse.determined


@given(seeds, st.integers(2, 8), st.data())
def test_any_rank_can_be_completed(seed, d, data):
    rank = data.draw(st.integers(0, d - 1))
    rng = np.random.default_rng(seed)
    X = flat_points(rank, d, seed=seed)
    R = random_rotation(rng, d)
    for model in ("orthogonal", "rotation"):
        T = estimate_transformation(model, X, X @ R.T, allow_undetermined=True)
        assert T.residuals(X, X @ R.T).max() < 1e-6
        assert T.determined == (model == "rotation" and rank == d - 1)
        if not T.determined:  # no other completion is nearer to the identity than the smallest rotation
            assert np.trace(T.rotation) >= np.trace(R) - 1e-6


def test_unrelated_directions_are_not_called_flat():
    X = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    Y = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    with pytest.raises(DegenerateConfigurationError, match="fill all 2 dimension"):
        estimate_transformation("rigid", X, Y, reflection=True)


@pytest.mark.parametrize("d", [2, 3])
def test_a_mirrored_round_cloud_is_equally_near_to_many_rotations(d):
    X = np.vstack([np.eye(d), -np.eye(d)])
    Y = X * np.array([-1.0] + [1.0] * (d - 1))
    with pytest.raises(DegenerateConfigurationError, match="mirror images, and many rotations"):
        estimate_transformation("rigid", X, Y)
    assert not estimate_transformation("rigid", X, Y, allow_undetermined=True).determined
    assert estimate_transformation("rigid", X, Y, reflection=True).is_reflection


def test_scale_that_no_pair_tells():
    with pytest.raises(DegenerateConfigurationError, match="scale is undetermined: all 3 points of X that count"):
        estimate_transformation("similarity", np.full((4, 1), 0.1), np.arange(4.0), [1, 1, 0, 1])
    free = estimate_transformation("similarity", np.ones((4, 1)), np.arange(4.0), allow_undetermined=True)
    assert (free.scale, free.determined) == (1.0, False)
    x = np.arange(4.0)
    for allow in (False, True):
        with pytest.raises(DegenerateConfigurationError, match=r"No positive scale fits the 4 pairs.*mirrors it"):
            estimate_transformation("similarity", x, -x, allow_undetermined=allow)
        with pytest.raises(DegenerateConfigurationError, match="all points of Y coincide"):
            estimate_transformation("similarity", x, 0 * x + 0.1, allow_undetermined=allow)
    assert estimate_transformation("similarity", x, -3 * x, reflection=True).linear.item() == pytest.approx(-3)


def test_affine_of_flat_points():
    X = flat_points(2, 3, offset=5)
    Y = X @ np.array([[1.0, 2], [3, 4], [5, 6]]) + 1
    with pytest.raises(DegenerateConfigurationError, match="points of X are coplanar") as caught:
        estimate_transformation("affine", X, Y)
    assert (caught.value.rank, caught.value.rank_needed) == (2, 3)
    T = estimate_transformation("affine", X, Y, allow_undetermined=True)
    assert not T.determined
    assert T.residuals(X, Y).max() < 1e-9
    normal = np.linalg.svd(X - X.mean(axis=0))[2][2]
    np.testing.assert_allclose(T.linear @ normal, 0, atol=1e-9)
    constant_column = np.column_stack([X[:, :2], np.full(len(X), 0.1)])
    with pytest.raises(DegenerateConfigurationError, match="coplanar"):
        estimate_transformation("affine", constant_column, Y)
    point = estimate_transformation("affine", np.ones((3, 2)), np.zeros((3, 2)), allow_undetermined=True)
    assert not point.linear.any()


def test_too_few_pairs_are_counted_by_weight():
    X = np.random.default_rng(0).standard_normal((10, 3))
    with pytest.raises(
        DegenerateConfigurationError, match="needs at least 3 pairs of positive weight, but there are 2"
    ):
        estimate_transformation("rigid", X, X, np.arange(10) < 2)
    with pytest.raises(DegenerateConfigurationError, match=r"An affine .* needs at least 4 pairs"):
        estimate_transformation("affine", X[:3], X[:3])
    error = pickle.loads(pickle.dumps(DegenerateConfigurationError("words", 1, 2)))
    assert (str(error), error.rank, error.rank_needed) == ("words", 1, 2)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(4), "All 4 weights are 0"),
        ([1, -1, 1, -2], "2 of 4 are, the least is -2"),
        ([1, np.nan, 1, 1], "NaN or infinity, first in row 1"),
        ([1, 1], r"4 in all; got shape \(2,\)"),
        (np.ones((4, 1)), r"got shape \(4, 1\)"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        estimate_transformation("rigid", np.eye(4), np.eye(4), weights)


@pytest.mark.parametrize(
    ("model", "X", "Y", "message"),
    [
        ("projective", np.eye(3), np.eye(3), "model must be one of 'orthogonal'"),
        ("rigid", np.eye(3), np.ones((3, 2)), r"keeps the dimension, but X has shape \(3, 3\) and Y \(3, 2\)"),
        ("rigid", np.eye(3), np.ones((4, 3)), "X has 3 rows and y has 4"),
        ("rigid", np.eye(3) * [[1], [np.nan], [1]], np.eye(3), "X contains NaN or infinity: 3 value"),
        ("rigid", np.eye(3), np.eye(3) + np.array([[0], [np.inf], [0]]), "Y contains NaN or infinity: 3 value"),
        ("rigid", np.ones((0, 3)), np.ones((0, 3)), "At least 1 pair is needed"),
        ("rigid", np.ones((3, 0)), np.ones((3, 0)), "X has no columns"),
        ("rigid", np.ones((3, 2, 2)), np.ones((3, 2)), "X must be a table"),
    ],
)
def test_bad_tables(model, X, Y, message):
    with pytest.raises(ValueError, match=message):
        estimate_transformation(model, X, Y)
