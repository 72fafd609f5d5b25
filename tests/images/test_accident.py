"""Twins of photos, as noisy as the pair, in other light, and nothing else; and the tail of their peaks."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.images.accident import find_peaks, fit_tail, noise_between, q_values, unchanged_pairs


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


def test_peaks_are_the_highest_around_and_level_places_count_as_nothing():
    evidence = np.zeros((200, 300), np.float32)
    evidence[50, 60], evidence[52, 63], evidence[150, 250] = 3, 2, 5
    valid = np.ones_like(evidence)
    peaks = find_peaks(evidence, valid)
    assert np.sort(peaks)[-3:].tolist() == pytest.approx([0.05, 3, 5])  # the 2 is too near to the 3
    assert peaks.size == round(200 * 300 / 15**2 / 4)
    valid[:100] = 0
    assert np.sort(find_peaks(evidence, valid))[-2:].tolist() == pytest.approx([0.05, 5])


def test_the_tail_is_a_generalised_pareto_and_stretched_to_the_photos_own_peaks():
    rng = np.random.default_rng(0)
    null, peaks = rng.gamma(4, 0.25, 400), rng.gamma(4, 0.25, 200)
    tail = fit_tail(null, peaks)
    assert tail.start == pytest.approx(np.quantile(null, 0.8), rel=0.15)
    high = np.array([tail.start, 2 * tail.start, 4 * tail.start])
    assert tail.p_values(high) == pytest.approx(0.2 * np.array([1, 2, 4]) ** (-1 / tail.shape))
    assert tail.p_values(np.array([0.0])) == pytest.approx(0.2)
    assert fit_tail(null, 3 * peaks).start == pytest.approx(3 * tail.start, rel=0.1)
    assert fit_tail(null, peaks / 3).start == pytest.approx(np.quantile(null, 0.8))
    changed = np.where(np.arange(200) < 100, 20.0, peaks)  # half of the places in the photo
    assert fit_tail(null, changed).start < 2 * tail.start
    assert q_values(tail.p_values(changed))[:100].max() < 0.05
    assert q_values(tail.p_values(peaks)).min() > 0.05
