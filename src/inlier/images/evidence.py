"""The evidence that a pixel has changed: residuals to the change of light, at several scales."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from inlier.images.filters import Field, gaussian, gradient_power, resample
from inlier.images.light import DARKNESS, global_prediction, local_residual, log_colour
from inlier.images.noise import standardised_power

WORKING_SIZE = 480  # pixels of the longer side at which change is judged: objects, not pixels, change
_WINDOWS = (0.04, 0.1)  # of the local colour maps, as shares of the longer side
_SCALES = ((1.0, 1), (2.0, 1), (4.0, 2), (8.0, 4))  # Gaussian in working pixels, and the step it allows
_OUTPUT_SMOOTHING = 0.012
_ANTIALIAS = 0.7
_BORDER = 5  # working pixels around the edge of the frame that the other photo does not show cleanly
_SHAPE_SCALES = (3.0, 6.0)
_GAP, _GAP_STEP = 0.15, 4  # widest gap that is filled, as a share of the longer side; grid it is done on
_WHITE = 0.97  # values above it are overexposed
_TRUST_IN_SHAPE = 0.7  # largest share of the evidence that a common shape takes away


def change_evidence(before: Field, after: Field, valid: Field, rng: np.random.Generator) -> Field:
    """Evidence per pixel that something other than light has changed.

    Parameters
    ----------
    before, after : ndarray of shape (height, width, 3)
        Aligned photos at working size, values in 0 .. 1.
    valid : ndarray of shape (height, width)
        1 where both photos show the scene, 0 elsewhere.
    rng : Generator
        Draws the pixels that maps and noise are fitted to.
    """
    size = max(before.shape[:2])
    unit = size / WORKING_SIZE
    before = np.where(valid[..., None] > 0, before, after)  # outside of the frame nothing is to be compared
    valid = ndimage.minimum_filter(valid, _BORDER)
    before, after = gaussian(before, _ANTIALIAS * unit), gaussian(after, _ANTIALIAS * unit)
    x, y = log_colour(before), log_colour(after)
    prediction = global_prediction(x, y, valid, rng)
    brightness = np.maximum(before.mean(axis=-1), after.mean(axis=-1))
    evidence = np.zeros(before.shape[:2], np.float32)
    for window in _WINDOWS:
        residual = local_residual(x, y, prediction, valid, window * size)
        residual = within_range(residual, before, after)
        evidence += over_scales(residual, y - residual, brightness, unit, rng) / len(_WINDOWS)
    evidence *= 1 - _TRUST_IN_SHAPE * common_shape(x.mean(axis=-1), y.mean(axis=-1), unit)
    return gaussian(evidence * valid, _OUTPUT_SMOOTHING * size)


def with_gaps_filled(evidence: Field) -> Field:
    """Raise the evidence half way in gaps between strong places: parts of one thing, or its plain interior."""
    height, width = evidence.shape
    reach = _GAP * max(height, width) / 2 / _GAP_STEP
    away = np.arange(-round(reach), round(reach) + 1)
    disc = away[:, None] ** 2 + away[None, :] ** 2 <= reach**2
    coarse = resample(evidence, max(1, height // _GAP_STEP), max(1, width // _GAP_STEP))
    closed = resample(ndimage.grey_closing(coarse, footprint=disc), height, width)
    return (evidence + np.maximum(evidence, closed)) / np.float32(2)


def over_scales(residual: Field, predicted: Field, brightness: Field, unit: float, rng: np.random.Generator) -> Field:
    """Sum over scales of log(1 + power of the standardised residual); large scales on coarser grids."""
    height, width = brightness.shape
    total = np.zeros((height, width), np.float32)
    for scale, step in _SCALES:
        grid = height // step, width // step
        sigma = scale * unit / step
        smooth, expected, light = (
            gaussian(resample(field, *grid), sigma) for field in (residual, predicted, brightness)
        )
        texture, darkness = (
            gradient_power(expected) / np.float32(step**2),
            np.square(1 / (light + np.float32(DARKNESS))),
        )
        power = standardised_power(smooth, texture, darkness, rng)
        total += resample(np.log1p(power), height, width)
    return total


def within_range(residual: Field, before: Field, after: Field) -> Field:
    """Take away residuals that overexposure explains: a white pixel may have been any amount brighter."""
    cut_after = (after > _WHITE) & (residual < 0)
    cut_before = (before > _WHITE) & (residual > 0)
    return np.where(cut_after | cut_before, np.float32(0), residual)


def common_shape(x: Field, y: Field, unit: float) -> Field:
    """Correlation of the two photos' brightness around each pixel, damped where there is only noise; 0 .. 1."""
    shape = np.zeros_like(x)
    for scale in _SHAPE_SCALES:
        moments = gaussian(np.stack([x, y, x * x, y * y, x * y], axis=-1), scale * unit)
        mean_x, mean_y, xx, yy, xy = np.moveaxis(moments, -1, 0)
        var_x, var_y, covariance = xx - mean_x**2, yy - mean_y**2, xy - mean_x * mean_y
        noise = float(np.median(var_x + var_y - 2 * covariance)) + 1e-4
        spread = np.sqrt(np.maximum((var_x + noise) * (var_y + noise), 1e-12))
        shape += covariance / spread / len(_SHAPE_SCALES)
    return np.clip(shape, 0, 1)
