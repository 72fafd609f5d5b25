"""Pairs of photos in which nothing has changed, made from the photos themselves: what evidence looks like by accident.

Each photo is compared with a twin of itself. The twin stands in other light, as much other as the light of the two
photos differs; it is moved by a fraction of a pixel, as far as photos are never aligned; and it has the noise that the
two photos have between them. Every step of the comparison is then the same as for the two photos, so that whatever the
steps do to the evidence (saturation, textures, borders) is in the twins' evidence too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import ndimage

from inlier.images.filters import Field, gaussian, gradient_power, resample

_MISALIGNED = 0.25  # working pixels, standard deviation: what alignment leaves
_LIGHT_WINDOW = 0.02  # of the longer side: light that varies over less is noise
_LIGHT_RANK = 0.8  # of the places: light differs by more than its strength in a fifth of the photo
_LEAST_LIGHT = 0.02  # no two photos are lit alike
_CLOUDS = 0.12  # of the longer side: how far shades and smooth light extend
_SOFTNESS = (2.0, 25.0)  # working pixels over which a shade ends
_HUE = 0.1  # of the strength of light, by which it differs between the colours


def unchanged_pairs(
    before: Field, after: Field, rest: Field, rng: np.random.Generator
) -> Iterator[tuple[Field, Field]]:
    """Yield each photo with its twin, in values of 0 .. 1.

    ``rest`` is the difference of the photos' log colours that one map of the colours leaves.
    """
    size = max(before.shape[:2])
    noise = noise_between(before, after)
    varies = np.abs(gaussian(rest.mean(axis=-1), _LIGHT_WINDOW * size))
    light = max(_LEAST_LIGHT, float(np.quantile(varies, _LIGHT_RANK)))
    for photo in (before, after):
        yield photo, _twin(photo, noise, light, rng)


def noise_between(before: Field, after: Field) -> float:
    """Standard deviation of the noise of the difference, read off its fine grain where the photos are plain."""
    grain = (after - before) - gaussian(after - before, 1.0)
    kept = np.sqrt((1 - _CENTRE) ** 2 + _CENTRE_POWER - _CENTRE**2)  # of white noise, by the filter above
    texture = gradient_power(gaussian(before, 1.0)) + gradient_power(gaussian(after, 1.0))
    plain = texture <= np.median(texture)
    return _spread(grain[plain]) / kept


_IMPULSE = np.zeros((15, 15), np.float32)
_IMPULSE[7, 7] = 1
_CENTRE = float(gaussian(_IMPULSE, 1.0)[7, 7])
_CENTRE_POWER = float(np.square(gaussian(_IMPULSE, 1.0)).sum())


def _twin(photo: Field, noise: float, light: float, rng: np.random.Generator) -> Field:
    height, width = photo.shape[:2]
    reach = _CLOUDS * max(height, width)
    smooth, shape = (_cloud(height, width, reach, rng) for _ in range(2))
    shade = np.tanh(shape / (np.sqrt(gradient_power(shape).mean()) * rng.uniform(*_SOFTNESS)))
    hue = 1 + _HUE * rng.standard_normal(3)
    lit = photo * np.exp(light * (smooth + shade)[..., None] * hue)
    moved = ndimage.shift(lit, (*(_MISALIGNED * rng.standard_normal(2)), 0), order=1, mode="nearest")
    noisy = moved + noise * rng.standard_normal(photo.shape)
    return np.clip(noisy, 0, 1).astype(np.float32)


def _cloud(height: int, width: int, reach: float, rng: np.random.Generator) -> Field:
    """A smooth random field of spread 1."""
    coarse = (max(2, round(side / reach * 4)) for side in (height, width))
    field = resample(gaussian(rng.standard_normal(tuple(coarse)).astype(np.float32), 4.0), height, width)
    return gaussian((field - field.mean()) / (field.std() + np.float32(1e-6)), 2.0)


def _spread(values: Field) -> float:
    """Standard deviation, by the median: changed places do not count."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))
