"""The parts of the evidence: the map of light, the noise, edges and surfaces, the gaps."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.images.change_evidence import (
    compare,
    edge_evidence,
    exposed_alike,
    global_prediction,
    local_residual,
    log_colour,
    standardised_power,
    surface_evidence,
    with_gaps_filled,
    within_range,
    without_shadows,
)
from inlier.images.rasters import gaussian

from .conftest import view


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_change_of_light_leaves_no_residual_and_an_object_does(camera, rng):
    before = camera.scene.astype(np.float32) / 255
    light = np.array([0.7, 0.9, 0.8], np.float32) * np.linspace(0.8, 1.1, before.shape[1], dtype=np.float32)[:, None]
    after = before * light
    after[150:180, 300:330] = (0.7, 0.1, 0.1)
    x, y, seen = log_colour(before), log_colour(after), np.ones(before.shape[:2], np.float32)
    clipped = (np.zeros_like(x), np.zeros_like(x))
    prediction = global_prediction(x, y, seen, *clipped, rng)
    residual = np.abs(local_residual(x, y - prediction, seen, *clipped, sigma=30)).max(axis=-1)
    assert np.median(residual) < 0.02
    assert np.median(residual[150:180, 300:330]) > 0.3


def test_noise_that_grows_with_texture_is_evened_out(rng):
    texture = np.repeat(np.linspace(0, 4, 200, dtype=np.float32)[None], 150, axis=0)
    residual = (rng.standard_normal((150, 200, 3)) * np.sqrt(0.1 + texture)[..., None]).astype(np.float32)
    level = np.ones_like(texture)
    power = standardised_power(residual, texture, level, level, (1e-9, 0.0), rng)
    by_column = np.median(power, axis=0)
    assert by_column[:20].mean() == pytest.approx(by_column[-20:].mean(), rel=0.25)
    assert np.median(power) == pytest.approx(0.9, abs=0.25)


def test_gaps_between_strong_places_are_raised_half_way():
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
    assert within_range(residual, view(before).clipped, view(after).clipped)[0, :, 0].tolist() == pytest.approx(
        [0, 0.4, 0, -0.4]
    )


def test_a_soft_shade_has_no_edges_and_an_object_has(camera, rng):
    before, after = (camera(seed).astype(np.float32) / 255 for seed in (0, 1))
    y, x = np.mgrid[: before.shape[0], : before.shape[1]]
    shade = 1 - 0.4 / (1 + np.exp((np.hypot(y - 60, x - 400) - 50) / 8))
    after = after * shade[..., None].astype(np.float32)
    after[200:240, 60:100] = (0.6, 0.2, 0.1)
    pair = compare(view(before), view(after), np.ones(before.shape[:2], np.float32), rng)
    edges, surfaces = gaussian(edge_evidence(pair, rng), 5.0), surface_evidence(pair, rng)
    around_shade, around_object = np.s_[0:130, 330:470], np.s_[195:245, 55:105]
    assert edges[around_object].max() > 2 * edges[around_shade].max()
    assert surfaces[210:230, 70:90].min() > 3 * np.median(surfaces)


def test_a_sharp_shadow_is_taken_off_and_textures_hues_and_what_is_darker_than_shadows_are_left():
    y, x = np.mgrid[:200, :300]
    shadow = np.where(x + y / 3 < 150, -0.5, 0.0).astype(np.float32)[..., None] * np.ones(3, np.float32)
    inside = np.s_[20:-20, 20:-20]
    assert np.abs(without_shadows(shadow, 10, 1.0)[inside]).max() == 0
    np.testing.assert_allclose(without_shadows(shadow, 10, 0.1)[inside], (shadow * 0.8)[inside], atol=1e-6)
    stripes = (0.3 * np.sign(np.sin(x))).astype(np.float32)[..., None] * np.ones(3, np.float32)
    assert without_shadows(shadow + stripes, 10, 1.0)[inside].std() > 0.25
    hue = shadow * np.array([1, 0, -1], np.float32)
    np.testing.assert_allclose(without_shadows(hue, 10, 1.0), hue, atol=1e-6)


def test_light_that_varies_is_measured_and_a_thing_is_not(camera, rng):
    before = camera(0).astype(np.float32) / 255
    seen = np.ones(before.shape[:2], np.float32)
    thing = camera(1, thing=(200, 40, 30)).astype(np.float32) / 255
    assert compare(view(before), view(thing), seen, rng).light < 0.02
    lit = camera(1, field=0.3).astype(np.float32) / 255
    assert 0.1 < compare(view(before), view(lit), seen, rng).light < 0.3


def test_what_rounding_explains_is_no_evidence(rng):
    ramp = np.repeat(np.linspace(0.2, 0.6, 200)[None, :, None], 150, axis=0) * np.ones(3)
    rounded = [view(np.round(values * 255) / 255) for values in (ramp, 0.9 * ramp)]
    seen = np.ones((150, 200), np.float32)
    evidence = edge_evidence(compare(*rounded, seen, rng), rng)
    finer = edge_evidence(compare(*(view(one.values, bits=16) for one in rounded), seen, rng), rng)
    assert evidence.max() < 0.1 < 1.5 < finer.max()


def test_clipped_values_bend_no_map_and_a_dark_thing_on_white_is_seen(rng):
    before = np.clip(rng.uniform(0.3, 1.1, (150, 200, 1)) * np.ones(3), 0, 1)
    after = np.clip(1.2 * before, 0, 1)
    before[40:80, 40:80] = after[40:80, 40:80] = 1.0
    dark = after.copy()
    dark[50:70, 50:70] = 0.5
    seen = np.ones((150, 200), np.float32)
    same, other = (compare(view(before), view(values), seen, rng).residual(0.1) for values in (after, dark))
    assert np.abs(same[45:75, 45:75]).max() == 0
    assert other[55:65, 55:65].max() < -0.3


@pytest.mark.parametrize("gain", [0.9, 1.1, 0.5])
def test_a_gain_leaves_hardly_anything_in_colours_that_few_pixels_have(rng, gain):
    """Most of the photo has one grey, which says nothing of how light and dark follow; and whites clip."""
    levels = np.full((150, 200), 110) + rng.integers(-2, 3, (150, 200))
    for level in (3, 30, 60, 180, 225, 250):
        row, column = rng.integers(10, 130), rng.integers(10, 180)
        levels[row : row + 8, column : column + 8] = level
    before = view(levels[..., None] * np.ones(3) / 255)
    after = view(np.clip(np.round(gain * before.values * 255), 0, 255) / 255)
    seen = np.ones(levels.shape, np.float32)
    pair = compare(exposed_alike(before, after, seen), after, seen, rng)
    steps = np.abs(pair.residual(0.1)) * (pair.after.values + 0.1) * 255
    assert steps.max() < 6  # of 255; 50 and more if the map of light is drawn to nothing where no pixel tells
