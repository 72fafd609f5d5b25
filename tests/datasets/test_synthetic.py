from __future__ import annotations

import numpy as np
import pytest

from inlier.datasets import make_gaussian_pairs, make_mispaired, make_scans


def partner_residual(data):
    return np.linalg.norm(data.Y - data.translation - data.X @ data.rotation.T, axis=1)


def test_gaussian_pairs_follow_assumption_one():
    data = make_gaussian_pairs(20_000, 4, 0.3, rng=0)
    assert data.inlier_mask.sum() == 6000
    np.testing.assert_allclose(data.rotation @ data.rotation.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(partner_residual(data)[data.inlier_mask], 0, atol=1e-12)
    outliers = ~data.inlier_mask
    correlation = data.X[outliers].T @ data.Y[outliers] / outliers.sum()
    np.testing.assert_allclose(correlation, 0, atol=0.05)  # standard error 0.0085
    for table in (data.X, data.Y):
        np.testing.assert_allclose(np.cov(table.T), np.eye(4), atol=0.05)


def test_noise_and_translation():
    data = make_gaussian_pairs(20_000, 3, 1.0, noise=0.5, translation=7.0, rng=0)
    assert np.linalg.norm(data.translation) == pytest.approx(7)
    residual = data.Y - data.translation - data.X @ data.rotation.T
    assert residual.std() == pytest.approx(0.5, rel=0.02)


def test_one_dimension():
    data = make_gaussian_pairs(10, 1, 0.5, rng=0)
    assert abs(data.rotation[0, 0]) == 1


@pytest.mark.parametrize("fraction", [0.0, 0.25, 1.0])
def test_mispaired_rows_are_the_same_observations_with_no_outlier_left_in_place(fraction):
    table = np.random.default_rng(0).standard_normal((500, 3))
    data = make_mispaired(table, 400, fraction, rng=1)
    assert data.inlier_mask.sum() == round(400 * fraction)
    residual = partner_residual(data)
    assert np.all(residual[data.inlier_mask] < 1e-12)
    assert np.all(residual[~data.inlier_mask] > 1e-9)
    turned_back = data.Y @ data.rotation  # the same set of rows, in another order
    np.testing.assert_allclose(np.sort(turned_back, axis=0), np.sort(data.X, axis=0), atol=1e-12)
    assert all((row == table).all(axis=1).any() for row in data.X[:20])


def test_all_rows_by_default():
    assert make_mispaired(np.arange(30.0).reshape(10, 3), rng=0).X.shape == (10, 3)


def test_the_seed_decides():
    first, again, other = (make_gaussian_pairs(50, 3, 0.5, rng=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.Y, again.Y)
    assert (first.Y != other.Y).any()
    generator = np.random.default_rng(1)
    np.testing.assert_array_equal(make_gaussian_pairs(50, 3, 0.5, rng=generator).Y, first.Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_gaussian_pairs(1, 3, 0.5), "n must be a whole number of at least 2"),
        (lambda: make_gaussian_pairs(10, 0, 0.5), "d must be a whole number of at least 1"),
        (lambda: make_gaussian_pairs(10, 3, 1.5), "inlier_fraction must lie between 0 and 1"),
        (lambda: make_gaussian_pairs(10, 3, 0.5, noise=-1), "noise must lie between 0"),
        (lambda: make_mispaired(np.eye(5), 6), "n = 6 pairs were asked for, but the table has only 5"),
        (lambda: make_mispaired(np.eye(10), 10, 0.9), "leaves one outlier"),
        (lambda: make_mispaired(np.ones((1, 3))), "n must be a whole number of at least 2"),
        (lambda: make_mispaired(np.full((5, 2), np.nan)), "table contains NaN"),
    ],
)
def test_bad_requests(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_real_pairs_differ_by_the_motion_and_the_others_do_not():
    scans = make_scans(3000, 500, 0.4, noise=0.1, rng=0)
    moved = scans.source[scans.pairs[:, 0]] @ scans.rotation.T + scans.translation
    apart = np.linalg.norm(moved - scans.target[scans.pairs[:, 1]], axis=1)
    assert scans.inlier_mask.sum() == 200
    assert apart[scans.inlier_mask].max() < 1
    assert np.median(apart[~scans.inlier_mask]) > 20
    assert scans.pairs.min() >= 0
    assert scans.pairs.max() < 3000


def test_the_scans_overlap_in_part():
    scans = make_scans(29_000, 2, 1.0, noise=0.0, rng=0)
    moved = np.round(scans.source @ scans.rotation.T + scans.translation, 6)
    shared = {tuple(point) for point in moved} & {tuple(point) for point in np.round(scans.target, 6)}
    assert 0.4 < len(shared) / len(scans.source) < 0.95


def test_a_seed_repeats_them():
    first, second, other = (make_scans(100, 20, 0.5, rng=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.target, second.target)
    np.testing.assert_array_equal(first.pairs, second.pairs)
    assert not np.array_equal(first.target, other.target)


def test_too_many_real_pairs():
    with pytest.raises(ValueError, match=r"share \d+ points, so there cannot be 500 real matches"):
        make_scans(100, 500, 1.0, rng=0)
