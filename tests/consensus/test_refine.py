from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from inlier import Registration, estimate_transformation
from inlier.consensus.candidates import Scales
from inlier.consensus.evidence import Chance, Evidence
from inlier.consensus.find import find_consensus
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.refine import (
    Candidate,
    Consensus,
    NearPairs,
    Refiner,
    better_of,
    closeness,
    closeness_slope,
    fall_off,
    narrowed,
)
from inlier.transforms import MapModel
from inlier.transforms.least_squares import Maps, Moments


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
    return find_consensus(MapModel(model, X.shape[1]), X, Y, weights, None, 0.01, 0)


@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("model", ["rigid", "similarity", "rotation", "orthogonal"])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_motion_is_the_weighted_least_squares_fit(model, d, offset):
    X, Y, _ = pairs_of(model, d, offset=offset if model in ("rigid", "similarity") else 0.0)
    weights = np.random.default_rng(1).uniform(0.5, 1.0, size=len(X))
    found = searched(model, X, Y, weights)
    motion, residuals = found.motion
    expected = estimate_transformation(model, X, Y, weights * found.nearness())
    np.testing.assert_allclose(motion.rotation, expected.rotation, atol=1e-11)
    assert motion.scale == pytest.approx(expected.scale, rel=1e-11)
    np.testing.assert_allclose(motion.translation, expected.translation, atol=1e-10 * max(offset, 1.0))
    np.testing.assert_allclose(residuals, expected.residuals(X, Y), atol=1e-9)
    assert (motion.model, motion.determined) == (model, True)


def test_what_is_in_doubt_is_left_to_a_closer_look():
    X, Y, _ = pairs_of("rigid", 3)
    assert searched("rigid", X, Y).motion is not None
    X[:, 1:] = Y[:, 1:] = 0.0  # a line
    Y[1::2, 0] = X[1::2, 0]
    assert searched("rigid", X, Y).motion is None


def test_single_precision_far_away_is_in_doubt_sooner():
    X, Y, _ = pairs_of("rigid", 3)
    X[:, 2] *= 1e-3  # nearly flat
    Y[1::2] = X[1::2]
    assert searched("rigid", X, Y).motion is not None
    far = (X + 1e5).astype(np.float32)  # no trace of the third dimension is left
    assert searched("rigid", far, Y).motion is None


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


def refiner_and_pairs(n: int = 1500, noise_bound: float | None = None):
    X, Y, real = pairs_of("rigid", 3, n=n)
    order = np.random.default_rng(0).permutation(n)
    pairs, _ = ColumnPairs.from_rows(X[order], Y[order], np.ones(n), centred=False)
    scales = Scales(MapModel("rigid", 3), pairs, noise_bound, np.random.default_rng(0))
    chance = Chance(MapModel("rigid", 3), lambda: scales.disagreements, pairs, 20_000)
    truth = estimate_transformation("rigid", X[real], Y[real])
    return Refiner(MapModel("rigid", 3), chance, noise_bound, 20_000), pairs, truth


def off(maps: Maps, truth) -> float:
    return float(np.abs(maps.linear[0] - truth.rotation).max() + np.abs(maps.shift[0] - truth.translation).max())


def test_narrowing_refining_and_polishing_each_come_nearer_to_the_truth():
    refiner, pairs, truth = refiner_and_pairs()
    start = pairs.fit(MapModel("rigid", 3))
    near = narrowed(refiner.model, pairs, start)
    refined = refiner.refine(pairs, near)
    polished = refiner.polish(pairs, refined)
    assert off(start, truth) > 0.03 > 0.01 > off(near, truth)
    assert off(refined.map, truth) < 0.005
    assert off(polished, truth) < 0.003
    assert refined.evidence.score >= refiner.weigh(pairs, near).evidence.score
    assert refined.has_clear_majority
    assert refined.is_beyond_doubt


def test_polishing_many_pairs_ends_where_polishing_all_of_them_does():
    refiner, pairs, truth = refiner_and_pairs(n=30_000)
    found = refiner.refine(pairs, Maps(truth.rotation[None], truth.translation[None]))
    reach, sharpness = fall_off(found.evidence.bound)
    expected = pairs.refit(MapModel("rigid", 3), found.map, reach, np.full(50, sharpness), 1e-12)
    polished = refiner.polish(pairs, found)
    np.testing.assert_allclose(polished.linear, expected.linear, atol=2e-5)
    np.testing.assert_allclose(polished.shift, expected.shift, atol=2e-5)


def test_a_known_bound_limits_the_support():
    refiner, pairs, truth = refiner_and_pairs(noise_bound=0.012)
    found = refiner.weigh(pairs, Maps(truth.rotation[None], truth.translation[None]))
    assert found.evidence.bound <= 0.0121
    assert found.evidence.n_supporting < 0.3 * pairs.n_pairs


def test_more_places_are_better_than_a_higher_score():
    refiner, pairs, truth = refiner_and_pairs()
    found = refiner.weigh(pairs, Maps(truth.rotation[None], truth.translation[None]))
    nothing = refiner.weigh(pairs, Maps(-truth.rotation[None], truth.translation[None]))
    assert better_of(found, nothing) is better_of(nothing, found) is found
    places = Candidate(nothing.map, nothing.evidence, place_score=1.0)
    assert better_of(found, places) is better_of(places, found) is places
    twin = Candidate(found.map, found.evidence)
    assert better_of(found, twin) is found
    assert refiner.place_score(pairs, found) > 100 > 1 > refiner.place_score(pairs, nothing)


def test_closeness_falls_to_a_quarter_at_half_the_bound_and_ends_at_three():
    squared = np.array([0.0, 0.5, 2.9, 3.1]) ** 2
    weights = closeness(squared, 1.0)
    np.testing.assert_allclose(weights[:2], [1.0, 0.25])
    assert weights[2] > weights[3] == 0
    slope = (closeness(squared[:3] + 1e-6, 1.0) - weights[:3]) / 1e-6
    np.testing.assert_allclose(closeness_slope(squared[:3], 1.0), slope, rtol=1e-4)


class TestFlat:
    """Pairs that lie in a plane but for their noise: thinner than a quarter of the bound, wider than twice."""

    @staticmethod
    def is_flat(deviations, weights=None, model="rigid", stretch=1.0, reflection=False, bound=0.1, fitted=True):
        d, weights = len(deviations), np.ones(50) if weights is None else np.asarray(weights, dtype=float)
        cross = np.diag(np.square(deviations) * bound**2 * stretch)  # y is stretched as well
        last = (
            Maps(stretch * np.eye(d)[None], np.zeros((1, d))),
            Moments(*np.zeros((2, 1, d)), cross[None], cross[None]),
        )
        evidence = Evidence(-200.0, 50.0, bound * stretch, 60, 0.005, 100)
        pairs = SimpleNamespace(weights=weights)
        origin = (np.zeros(d), np.zeros(d))
        found = Consensus(
            MapModel(model, d, reflection), evidence, last[0], pairs, origin, (0.0, 0.0), np.ones(3), None, False
        )
        if fitted:
            object.__setattr__(found, "last_fit", last)
        return found.is_flat

    @pytest.mark.parametrize(
        ("deviations", "flat"),
        [
            ((9.0, 5.0, 0.24), True),
            ((9.0, 5.0, 0.26), False),
            ((9.0, 2.1, 0.1), True),
            ((9.0, 1.9, 0.1), False),  # a line, rather
            ((5.0, 0.2), True),
            ((5.0, 0.3), False),
            ((5.0,), False),
            ((9.0, 8.0, 5.0, 0.1), False),  # only in two and three dimensions
        ],
    )
    @pytest.mark.parametrize("stretch", [1.0, 3.0])
    def test_by_its_deviations(self, deviations, flat, stretch):
        model = "rigid" if stretch == 1 else "similarity"
        assert self.is_flat(deviations, model=model, stretch=stretch) == flat

    def test_what_may_mirror_needs_no_word(self):
        assert not self.is_flat((9.0, 5.0, 0.1), model="orthogonal")
        assert not self.is_flat((9.0, 5.0, 0.1), reflection=True)
        assert not self.is_flat((9.0, 5.0, 0.1), fitted=False)

    @pytest.mark.parametrize(
        ("weights", "flat"), [(np.ones(10), True), (np.ones(9), False), ([5.0] * 12, True), ([1e6] + [1.0] * 99, False)]
    )
    def test_few_points_always_do(self, weights, flat):
        assert self.is_flat((9.0, 5.0, 0.1), weights) == flat


class TestNearPairs:
    """Of those within three bounds, every k-th of more than a thousand; of unequal weights, all the heavy ones."""

    X = np.arange(5000.0)[:, None]

    def among(self, weights, residuals, n=5000, side=0.0):
        near = NearPairs.among(self.X[:n], -self.X[:n], np.asarray(weights, dtype=float), residuals, 0.1, side)
        np.testing.assert_array_equal(near.Y, -near.X)
        return near.X[:, 0].astype(int), near

    def test_within_three_bounds(self):
        residuals = np.tile([0.05, 0.3, 0.31], 100)
        rows, near = self.among(np.ones(300), residuals, 300, side=0.7)
        np.testing.assert_array_equal(rows, np.flatnonzero(residuals < 0.305))
        assert (near.stands_for == 1).all()
        assert (near.bound, near.cluster_side) == (0.1, 0.7)

    def test_of_no_weight_are_none(self):
        weights = np.arange(300) % 3.0
        rows, near = self.among(weights, np.zeros(300), 300)
        np.testing.assert_array_equal(rows, np.flatnonzero(weights))
        np.testing.assert_array_equal(near.weights, weights[rows])

    @pytest.mark.parametrize(("n", "step"), [(999, 1), (1999, 1), (2000, 2), (5000, 5)])
    def test_every_so_many(self, n, step):
        rows, near = self.among(np.ones(n), np.zeros(n), n)
        np.testing.assert_array_equal(rows, np.arange(0, n, step))
        np.testing.assert_allclose(near.stands_for, n / rows.size)

    def test_all_that_hold_more_than_a_thousandth_of_the_weight(self):
        weights = np.ones(5000)
        weights[[7, 4000]] = 1e4
        rows, near = self.among(weights, np.zeros(5000))
        light = np.delete(np.arange(5000), [7, 4000])[::4]
        np.testing.assert_array_equal(rows, [7, 4000, *light])
        np.testing.assert_allclose(near.stands_for, [1, 1, *[4998 / light.size] * light.size])
        assert near.stands_for.sum() == pytest.approx(5000)

    def test_none_at_all(self):
        rows, near = self.among(np.ones(5000), np.ones(5000))
        assert rows.size == near.stands_for.size == 0
