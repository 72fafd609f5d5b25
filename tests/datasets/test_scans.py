from __future__ import annotations

import numpy as np
import pytest

from inlier.datasets import make_scans


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
