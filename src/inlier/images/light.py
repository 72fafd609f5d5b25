"""How the colours of one photo follow from those of the other when only the light has changed.

Colours are logarithms, log(c + value): other light adds a constant, a cast shadow adds another. First one map for the
whole photo, a polynomial in the three colours; then, around each pixel, an affine map of what is left, fitted to the
pixels nearby. Both are fitted with weights that drop the pixels which do not follow, so that a new object does not
explain itself. What remains, the residual, is what light does not explain.
"""

from __future__ import annotations

import numpy as np

from inlier._typing import FloatArray
from inlier.images.filters import Field, gaussian, resample

DARKNESS = 0.1  # c: values below it are mostly noise
_SAMPLE = 8000
_GLOBAL_ROUNDS = 15
_GLOBAL_TOLERANCE = 1.5  # residuals, in robust standard deviations, that still count
_RIDGE = 1e-4
_LOCAL_ROUNDS = 3
_LOCAL_TOLERANCE = 4.0
_LOCAL_RIDGE = 0.003  # variance of log colour below which a window does not bend the map
_LOCAL_STEP = 4  # local maps are smooth: they are computed on every fourth pixel
_LEAST_SPREAD = 1e-3
_PRODUCTS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def log_colour(photo: Field) -> Field:
    """log(c + value) of values in 0 .. 1."""
    return np.log(photo + DARKNESS)


def global_prediction(x: Field, y: Field, valid: Field, rng: np.random.Generator) -> Field:
    """Predict log colours y from x by a quadratic polynomial, fitted to a sample with falling weights."""
    places = np.flatnonzero(valid.ravel() > 0)
    chosen = rng.choice(places, min(_SAMPLE, places.size), replace=False)
    terms, target = _quadratic(x.reshape(-1, 3)[chosen].astype(np.float64)), y.reshape(-1, 3)[chosen]
    weights: FloatArray = np.ones(len(chosen))
    ridge = _RIDGE * len(chosen) * np.eye(terms.shape[1])
    for _ in range(_GLOBAL_ROUNDS):
        weighted = terms * weights[:, None]
        coefficients = np.linalg.solve(terms.T @ weighted + ridge, weighted.T @ target)
        distance = np.abs(target - terms @ coefficients).sum(axis=1)
        weights = _falling(distance, _GLOBAL_TOLERANCE * _spread(distance))
    return (_quadratic(x.reshape(-1, 3)) @ coefficients.astype(np.float32)).reshape(x.shape)


def local_residual(x: Field, y: Field, prediction: Field, valid: Field, sigma: float) -> Field:
    """What is left of y - prediction after an affine map of x around each pixel (Gaussian window, ``sigma``)."""
    height, width = x.shape[:2]
    step = _LOCAL_STEP if min(height, width) >= 16 * _LOCAL_STEP else 1
    size = height // step, width // step
    x_coarse, rest, seen = (resample(field, *size) for field in (x, y - prediction, valid))
    fitted = np.zeros_like(rest)
    for _ in range(_LOCAL_ROUNDS + 1):
        distance = np.sqrt(((rest - fitted) ** 2).sum(axis=-1))
        weights = _falling(distance, _LOCAL_TOLERANCE * _spread(distance)).astype(np.float32) * seen
        slope, offset = _affine_around(x_coarse, rest, weights, sigma / step)
        fitted = np.einsum("hwi,hwio->hwo", x_coarse, slope) + offset
    slope, offset = resample(slope, height, width), resample(offset, height, width)
    return (y - prediction - np.einsum("hwi,hwio->hwo", x, slope) - offset) * valid[..., None]


def _affine_around(x: Field, y: Field, weights: Field, sigma: float) -> tuple[Field, Field]:
    """Weighted least squares in a window around each pixel, from smoothed moments."""
    total = gaussian(weights, sigma)[..., None] + 1e-4
    weighted = weights[..., None]
    mean_x, mean_y = gaussian(x * weighted, sigma) / total, gaussian(y * weighted, sigma) / total
    products = np.stack([x[..., i] * x[..., j] for i, j in _PRODUCTS], axis=-1) * weighted
    second = gaussian(products, sigma) / total
    covariance = np.empty((*x.shape, 3), dtype=np.float32)
    for place, (i, j) in enumerate(_PRODUCTS):
        covariance[..., i, j] = covariance[..., j, i] = second[..., place] - mean_x[..., i] * mean_x[..., j]
    covariance += _LOCAL_RIDGE * np.eye(3, dtype=np.float32)
    outer = (x[..., :, None] * y[..., None, :]).reshape(*x.shape[:2], 9) * weighted
    cross = (gaussian(outer, sigma) / total).reshape(*x.shape, 3) - mean_x[..., :, None] * mean_y[..., None, :]
    slope = np.linalg.solve(covariance, cross)
    return slope, mean_y - np.einsum("hwi,hwio->hwo", mean_x, slope)


def _quadratic(colours: FloatArray | Field) -> FloatArray:
    red, green, blue = colours.T
    ones = np.ones_like(red)
    squares = (red * red, green * green, blue * blue, red * green, red * blue, green * blue)
    return np.stack([ones, red, green, blue, *squares], axis=1)


def _spread(distance: FloatArray | Field) -> float:
    return 1.4826 * float(np.median(distance)) + _LEAST_SPREAD


def _falling(distance: FloatArray | Field, scale: float) -> FloatArray:
    """Weights 1 / (1 + (d / scale)^2)^2: far residuals do not count."""
    return 1 / (1 + (distance / scale) ** 2) ** 2
