"""The parts of the judgement: the map of light, the noise, the tail."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.images.change_evidence import (
    global_prediction,
    local_residual,
    log_colour,
    standardised_power,
    with_gaps_filled,
    within_range,
)
from inlier.images.filters import gradient_power, resample
from inlier.images.regions import describe, noise_tail, significant_peaks, without_specks


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_change_of_light_leaves_no_residual_and_an_object_does(camera, rng):
    before = camera.scene.astype(np.float32) / 255
    light = np.array([0.7, 0.9, 0.8], np.float32) * np.linspace(0.8, 1.1, before.shape[1], dtype=np.float32)[:, None]
    after = before * light
    after[150:180, 300:330] = (0.7, 0.1, 0.1)
    x, y, seen = log_colour(before), log_colour(after), np.ones(before.shape[:2], np.float32)
    prediction = global_prediction(x, y, seen, rng)
    residual = np.abs(local_residual(x, y, prediction, seen, sigma=30)).max(axis=-1)
    assert np.median(residual) < 0.02
    assert np.median(residual[150:180, 300:330]) > 0.3


def test_noise_that_grows_with_texture_is_evened_out(rng):
    texture = np.repeat(np.linspace(0, 4, 200, dtype=np.float32)[None], 150, axis=0)
    residual = (rng.standard_normal((150, 200, 3)) * np.sqrt(0.1 + texture)[..., None]).astype(np.float32)
    power = standardised_power(residual, texture, np.ones_like(texture), rng)
    by_column = np.median(power, axis=0)
    assert by_column[:20].mean() == pytest.approx(by_column[-20:].mean(), rel=0.25)
    assert np.median(power) == pytest.approx(0.9, abs=0.25)


def test_the_power_of_a_gradient():
    ramp = np.tile(np.arange(10, dtype=np.float32) * 3, (8, 1))
    assert np.allclose(gradient_power(ramp), 9)


def test_resampling_averages_down_and_keeps_channels():
    field = np.arange(4 * 6 * 2, dtype=np.float32).reshape(4, 6, 2)
    small = resample(field, 2, 3)
    assert small.shape == (2, 3, 2)
    assert small[0, 0, 0] == pytest.approx(field[:2, :2, 0].mean())
    assert resample(small, 4, 6).shape == field.shape


def test_the_tail_is_exponential_noise_finds_no_peak_and_a_peak_is_cut_half_way_down(rng):
    evidence = rng.exponential(1.0, (320, 480)).astype(np.float32)
    tail = noise_tail(evidence, np.ones_like(evidence))
    assert tail.median == pytest.approx(np.log(2), rel=0.03)
    assert tail.rate == pytest.approx(1.15, rel=0.05)  # the rate of the noise, and the caution
    assert tail.p_value(tail.level(1e-6)) == pytest.approx(1e-6 * tail.places)
    y, x = np.mgrid[:320, :480]
    hill = (60 * np.exp(-((y - 100) ** 2 + (x - 200) ** 2) / (2 * 15**2))).astype(np.float32)
    level, peak = significant_peaks(hill + 0.7, tail, alpha=0.01)
    labels = without_specks(hill + 0.7 >= level, 1)
    (region,) = describe(labels, peak, tail)
    assert region.score == pytest.approx(60.7)
    assert (region.right - region.left) / 2 == pytest.approx(15 * np.sqrt(2 * np.log(2)), abs=1.5)


def test_specks_are_left_out():
    mask = np.zeros((20, 20), bool)
    mask[2:8, 2:8] = True
    mask[15, 15] = True
    assert without_specks(mask, 5).max() == 1
    assert without_specks(mask, 1).max() == 2


def test_gaps_between_strong_places_are_half_filled():
    evidence = np.zeros((320, 480), np.float32)
    evidence[100:160, 100:130] = evidence[100:160, 150:180] = 10
    filled = with_gaps_filled(evidence)
    assert filled[130, 140] == pytest.approx(5)
    assert filled[130, 115] == pytest.approx(10)
    assert filled[300, 400] == 0
    assert (filled >= evidence).all()


def test_overexposure_explains_a_white_pixel():
    before, after = np.full((1, 4, 3), 0.5, np.float32), np.full((1, 4, 3), 0.5, np.float32)
    after[0, :2], before[0, 2] = 1.0, 1.0
    residual = np.array([-0.4, 0.4, 0.4, -0.4], np.float32)[None, :, None] * np.ones(3, np.float32)
    assert within_range(residual, before, after)[0, :, 0].tolist() == pytest.approx([0, 0.4, 0, -0.4])
