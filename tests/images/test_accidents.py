"""Twins of photos, as noisy as the pair, in other light, and nothing else; and the tail of their peaks."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.images.accidents import find_peaks, fit_tail, q_values, unchanged_pairs
from inlier.images.change_evidence import compare, noise_between

from .conftest import view


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_noise_is_read_off_plain_places_and_changes_do_not_count():
    rng = np.random.default_rng(0)
    scene = np.full((200, 300, 3), 0.4, np.float32)
    scene[:, ::7] = 0.9  # stripes
    seen = np.ones(scene.shape[:2], np.float32)
    before, after = (scene + 0.02 * rng.standard_normal(scene.shape).astype(np.float32) for _ in range(2))
    assert noise_between(before, after, seen) == pytest.approx(0.02 * np.sqrt(2), rel=0.1)
    after[50:90, 50:120] = 0.1
    assert noise_between(before, after, seen) == pytest.approx(0.02 * np.sqrt(2), rel=0.1)


@pytest.mark.parametrize(("field", "least", "most"), [(0.0, 0.0, 0.06), (0.5, 0.05, 0.6)])
def test_a_twin_differs_from_its_photo_by_as_much_light_as_was_seen(camera, rng, field, least, most):
    before, after = view(camera(0) / 255), view(camera(1, field=field) / 255)
    pair = compare(before, after, np.ones(before.values.shape[:2], np.float32), rng)
    twins = list(unchanged_pairs(before, after, pair, rng))
    assert [photo is given for (photo, _), given in zip(twins, (before, after), strict=True)] == [True, True]
    for photo, twin in twins:
        assert twin.values.shape == photo.values.shape
        assert 0 <= twin.values.min() <= twin.values.max() <= 1
        assert np.abs(twin.values * 255 - np.round(twin.values * 255)).max() < 1e-3  # rounded as its photo is
        ratio = np.log((twin.values.mean(axis=-1) + 0.1) / (photo.values.mean(axis=-1) + 0.1))
        assert least < np.median(np.abs(ratio)) < most


def test_peaks_are_the_highest_around_and_level_places_count_as_nothing():
    evidence = np.zeros((200, 300), np.float32)
    evidence[50, 60], evidence[52, 63], evidence[150, 250] = 3, 2, 5
    valid = np.ones_like(evidence)
    peaks = find_peaks(evidence, valid)
    assert np.sort(peaks)[-3:].tolist() == pytest.approx([0, 3, 5])  # the 2 is too near to the 3
    assert peaks.size == round(200 * 300 / 15**2 / 4)
    valid[:100] = 0
    assert np.sort(find_peaks(evidence, valid))[-2:].tolist() == pytest.approx([0, 5])


def test_the_tail_is_exponential_and_starts_where_the_photos_own_lower_peaks_say():
    rng = np.random.default_rng(0)
    null, peaks = rng.gamma(4, 0.25, 400), rng.gamma(4, 0.25, 200)
    tail = fit_tail(null, peaks)
    assert tail.start == pytest.approx(np.quantile(null, 0.8), abs=0.15)
    p_values = tail.p_values(tail.start + np.array([0, 1, 2, 4]))
    assert p_values[0] == pytest.approx(0.2)
    assert p_values[1:] / 0.2 == pytest.approx((p_values[1] / 0.2) ** np.array([1, 2, 4]))
    assert tail.p_values(np.array([0.0])) == pytest.approx(0.2)
    assert fit_tail(null, peaks + 3).start == pytest.approx(tail.start + 3, abs=0.1)
    assert fit_tail(null, peaks - 0.5).start == pytest.approx(tail.start - 0.5, abs=0.1)
    faint = fit_tail(null / 1.8, peaks / 1.8)
    assert 0 < faint.start < tail.start
    chances = faint.p_values(faint.start + np.array([1.0])), tail.p_values(tail.start + np.array([1.0]))
    assert chances[0] < chances[1]  # little evidence is power, not its logarithm


def test_a_few_high_peaks_of_twins_among_many_that_are_nothing_are_believed():
    drawing = np.append(np.zeros(180), np.linspace(0.5, 2, 20))
    tail = fit_tail(drawing, np.zeros(100))
    assert tail.start == pytest.approx(np.log(2))  # no more than noise
    assert tail.p_values(np.array([2.0])) > 1 / 200  # one of them is as high
    assert tail.p_values(np.array([9.0])) < 1e-5


def test_changes_in_half_of_the_photo_are_found_and_those_in_none_are_not():
    rng = np.random.default_rng(0)
    null, peaks = rng.gamma(4, 0.25, 400), rng.gamma(4, 0.25, 200)
    changed = np.where(np.arange(200) < 100, 8.0, peaks)
    tail = fit_tail(null, changed)
    assert tail.start < np.quantile(null, 0.8) + 0.6
    assert q_values(tail.p_values(changed))[:100].max() < 0.05
    assert q_values(fit_tail(null, peaks).p_values(peaks)).min() > 0.05
