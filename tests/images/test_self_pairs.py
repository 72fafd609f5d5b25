"""Twins of photos: as noisy as the pair, in other light, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.images.self_pairs import noise_between, unchanged_pairs


def test_noise_is_read_off_plain_places_and_changes_do_not_count():
    rng = np.random.default_rng(0)
    scene = np.full((200, 300, 3), 0.4, np.float32)
    scene[:, ::7] = 0.9  # stripes
    before, after = (scene + 0.02 * rng.standard_normal(scene.shape).astype(np.float32) for _ in range(2))
    assert noise_between(before, after) == pytest.approx(0.02 * np.sqrt(2), rel=0.1)
    after[50:90, 50:120] = 0.1
    assert noise_between(before, after) == pytest.approx(0.02 * np.sqrt(2), rel=0.1)


def test_a_twin_differs_from_its_photo_by_as_much_light_as_was_seen(camera):
    before, after = (camera(seed).astype(np.float32) / 255 for seed in (0, 1))
    strong = np.full_like(before, 0.3)
    for rest, least, most in ((np.zeros_like(before), 0.0, 0.06), (strong, 0.1, 0.6)):
        pairs = list(unchanged_pairs(before, after, rest, np.random.default_rng(0)))
        assert [photo is given for (photo, _), given in zip(pairs, (before, after), strict=True)] == [True, True]
        for photo, twin in pairs:
            assert twin.shape == photo.shape
            assert 0 <= twin.min() <= twin.max() <= 1
            ratio = np.log((twin.mean(axis=-1) + 0.1) / (photo.mean(axis=-1) + 0.1))
            assert least < np.median(np.abs(ratio)) < most
