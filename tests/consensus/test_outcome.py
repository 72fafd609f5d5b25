from __future__ import annotations

import numpy as np
import pytest

from inlier import Registration, estimate_transformation
from inlier.consensus import MapModel, find_consensus
from inlier.consensus.draws import Draws


def pairs_of(model: str, d: int, n: int = 600, offset: float = 0.0, seed: int = 0):
    """Half of the pairs real, and which."""
    rng = np.random.default_rng([seed, d])
    X = rng.normal(size=(n, d))
    linear = np.linalg.qr(rng.normal(size=(d, d)))[0]
    linear[0] *= np.sign(np.linalg.det(linear))
    scale = 2.0 if model == "similarity" else 1.0
    shift = rng.normal(size=d) if model in ("rigid", "similarity") else np.zeros(d)
    Y = scale * X @ linear.T + shift + 0.01 * rng.normal(size=X.shape)
    Y[::2] = scale * rng.normal(size=(len(Y[::2]), d)) + shift
    return X + offset, Y, np.arange(n) % 2 == 1


def searched(model: str, X, Y, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    return find_consensus(MapModel(model, X.shape[1]), X, Y, weights, None, 0.01, Draws(0))


@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("model", ["rigid", "similarity", "rotation", "orthogonal"])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_motion_is_the_weighted_least_squares_fit(model, d, offset):
    X, Y, _ = pairs_of(model, d, offset=offset if model in ("rigid", "similarity") else 0.0)
    weights = np.random.default_rng(1).uniform(0.5, 1.0, size=len(X))
    found = searched(model, X, Y, weights)
    motion, residuals = found.motion()
    expected = estimate_transformation(model, X, Y, weights * found.nearness())
    np.testing.assert_allclose(motion.rotation, expected.rotation, atol=1e-11)
    assert motion.scale == pytest.approx(expected.scale, rel=1e-11)
    np.testing.assert_allclose(motion.translation, expected.translation, atol=1e-10 * max(offset, 1.0))
    np.testing.assert_allclose(residuals, expected.residuals(X, Y), atol=1e-9)
    assert (motion.model, motion.determined) == (model, True)


def test_what_is_in_doubt_is_left_to_a_closer_look():
    X, Y, _ = pairs_of("rigid", 3)
    assert searched("rigid", X, Y).motion() is not None
    X[:, 1:] = Y[:, 1:] = 0.0  # a line
    Y[1::2, 0] = X[1::2, 0]
    assert searched("rigid", X, Y).motion() is None


def test_single_precision_far_away_is_in_doubt_sooner():
    X, Y, _ = pairs_of("rigid", 3)
    X[:, 2] *= 1e-3  # nearly flat
    Y[1::2] = X[1::2]
    assert searched("rigid", X, Y).motion() is not None
    far = (X + 1e5).astype(np.float32)  # no trace of the third dimension is left
    assert searched("rigid", far, Y).motion() is None


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_neighbours_in_the_table_may_be_neighbours_in_space(order):
    """Rows sorted by a coordinate, more of them than the search looks at closely."""
    X, Y, real = pairs_of("rigid", 3, n=6000)
    rows = np.argsort(X[:, 0]) if order == "sorted" else np.random.default_rng(0).permutation(len(X))
    found = Registration(random_state=0).fit(X[rows], Y[rows])
    assert found.inlier_mask_[real[rows]].mean() > 0.99
    assert found.inlier_mask_[~real[rows]].mean() < 0.01
    assert found.inlier_fraction_ == pytest.approx(0.5, abs=0.02)


def test_sorted_tables_of_wrong_pairs_find_nothing():
    X, Y = np.random.default_rng(0).normal(size=(2, 6000, 3))
    found = Registration(random_state=0, raise_on_failure=False).fit(X[np.argsort(X[:, 0])], Y)
    assert not found.success_
