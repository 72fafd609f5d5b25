"""How large residuals are where nothing has changed: read off the residuals themselves.

At each scale the residual of an unchanged pixel has a covariance (light that varies makes brightness less sure than
hue), and it is larger where there is texture (photos never match to a fraction of a pixel) and in the dark (logarithms
amplify noise there). The model is var = k0 + k1 |gradient|^2 + k2 / (c + value)^2 with k >= 0, fitted so that far
residuals count little.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from inlier._typing import FloatArray
from inlier.images.filters import Field

_SAMPLE = 4000
_ROUNDS = 6
_DEGREES = 3.0  # of freedom of the Student t that stands for residuals with some changed pixels among them
_MEDIAN_OF_MEAN_SQUARE = 0.789  # of three standard normal numbers
_FLOOR = 0.1  # share of the mean variance that is added to every direction
_TINY = 1e-9


def standardised_power(residual: Field, texture: Field, darkness: Field, rng: np.random.Generator) -> Field:
    """Mean square of the residual's three coordinates, near 1 where nothing has changed.

    Parameters
    ----------
    residual : ndarray of shape (height, width, 3)
        Smoothed to one scale.
    texture, darkness : ndarray of shape (height, width)
        What the noise may grow with: the squared gradient, and 1 / (c + value)^2.
    rng : Generator
        Draws the pixels that the noise is read off.
    """
    height, width = residual.shape[:2]
    sample = rng.choice(height * width, min(_SAMPLE, height * width), replace=False)
    rows = residual.reshape(-1, 3)
    power = _mahalanobis(rows, _robust_covariance(rows[sample])) / np.float32(3)
    causes = np.stack([np.ones(height * width, np.float32), texture.ravel(), darkness.ravel()], axis=1)
    variance = causes @ _causes_of_variance(power[sample], causes[sample]).astype(np.float32) + np.float32(_TINY)
    even = rows / np.sqrt(variance)[:, None]
    standardised: Field = _mahalanobis(even, _robust_covariance(even[sample])) / np.float32(3)
    return standardised.reshape(height, width)


def _robust_covariance(rows: Field) -> FloatArray:
    """Scatter about 0 of a Student t with few degrees of freedom, by its fixed-point iteration."""
    x = rows.astype(np.float64)
    d = x.shape[1]
    covariance: FloatArray = np.diag((1.4826 * np.median(np.abs(x), axis=0)) ** 2 + 1e-8)
    for _ in range(_ROUNDS):
        weights = (d + _DEGREES) / (_mahalanobis(x, covariance) + _DEGREES)
        covariance = (x * weights[:, None]).T @ x / len(x) + 1e-8 * np.eye(d)
    return covariance + _FLOOR * np.trace(covariance) / d * np.eye(d)


def _mahalanobis(rows: Field | FloatArray, covariance: FloatArray) -> Field:
    half = np.linalg.cholesky(np.linalg.inv(covariance)).astype(rows.dtype)
    distance: Field = np.square(rows @ half).sum(axis=1)
    return distance


def _causes_of_variance(power: Field, causes: Field) -> FloatArray:
    """Non-negative coefficients of the causes, so that half of the pixels lie under the model's median."""
    y, x = power.astype(np.float64), causes.astype(np.float64)
    unit = x.mean(axis=0) + _TINY
    x = x / unit
    predicted = np.full(len(y), 1.3 * np.median(y) + _TINY)
    for _ in range(_ROUNDS):
        weights = np.sqrt((1 + _DEGREES) / (y / predicted + _DEGREES)) / predicted
        coefficients, _ = nnls(x * weights[:, None], y * weights)
        predicted = x @ coefficients + _TINY
        coefficients *= np.median(y / predicted) / _MEDIAN_OF_MEAN_SQUARE
        predicted = x @ coefficients + _TINY
    return coefficients / unit
