"""What evidence looks like where nothing has changed, and how sure that makes us of the rest.

Each photo is compared with a twin of itself. The twin stands in other light, as much other as the light of the two
photos differs; it is moved by a fraction of a pixel, as far as photos are never aligned; and it has the noise that the
two photos have between them. Every step of the comparison is then the same as for the two photos, so that whatever the
steps do to the evidence (saturation, textures, borders) is in the twins' evidence too.

A photo holds about as many independent places as its evidence has local maxima, the peaks. The highest fifth of the
twins' peaks is fitted by a generalised Pareto distribution whose scale is its shape times its start, that is
P(peak > z) = share (z / start)^(-1 / shape). If the photos' own lower peaks are higher than those of the twins, as they
are where photos differ in ways that twins do not, the tail is stretched by as much. A peak's p-value is that tail;
q-values over all peaks of the photo (Benjamini and Hochberg) bound the share of accidents among what is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import ndimage
from scipy.stats import false_discovery_control, genpareto

from inlier._typing import FloatArray
from inlier.images.rasters import Field, gaussian, gradient_power, resample

# the twins
_MISALIGNED = 0.25  # working pixels, standard deviation: what alignment leaves
_LIGHT_RANK = 0.8  # of the places: light differs by more than its strength in a fifth of the photo
_LEAST_LIGHT = 0.02  # no two photos are lit alike
_CLOUDS = 0.12  # of the longer side: how far shades and smooth light extend; what varies over a sixth of it is noise
_SOFTNESS = (2.0, 25.0)  # working pixels over which a shade ends

# the tail
_PLACE = 0.05  # of the longer side: the highest evidence within such a square is a peak
_TAIL_SHARE = 0.2  # of the peaks, to which the tail is fitted
_LOWER_PEAKS = 0.35  # quantile that is compared: untouched while less than two thirds of the peaks are of changes
_SHAPE = 0.25  # of the tail. Twins alone have about 0.2; real photos differ in more ways than twins do
_NO_NOISE = 0.05  # evidence where there is nothing, not even noise


def unchanged_pairs(
    before: Field, after: Field, rest: Field, rng: np.random.Generator
) -> Iterator[tuple[Field, Field]]:
    """Yield each photo with its twin, in values of 0 .. 1.

    ``rest`` is the difference of the photos' log colours that one map of the colours leaves.
    """
    size = max(before.shape[:2])
    noise = noise_between(before, after)
    varies = np.abs(gaussian(rest.mean(axis=-1), _CLOUDS / 6 * size))
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
    lit = photo * np.exp(light * (smooth + shade))[..., None]
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


@dataclass(frozen=True, eq=False)
class AccidentTail:
    """How high peaks are where nothing has changed: a fifth of them above ``start``, generalised Pareto."""

    start: float
    shape: float

    def p_values(self, peaks: FloatArray) -> FloatArray:
        """Chance that a peak is as high by accident; below ``start`` no better than the share above it."""
        above = np.maximum(peaks - self.start, 0)
        return np.asarray(_TAIL_SHARE * genpareto.sf(above, self.shape, scale=self.shape * self.start))


def find_peaks(evidence: Field, valid: Field) -> FloatArray:
    """Return the evidence of the places that have the highest around them.

    About every second square holds a peak. Where the evidence is level, as in photos without noise, there are fewer;
    such places count with the least evidence there is.
    """
    width = max(3, round(_PLACE * max(evidence.shape)))
    highest = ndimage.maximum_filter(evidence, width)
    peaks = evidence[(evidence == highest) & (evidence > _NO_NOISE) & (valid > 0)].astype(np.float64)
    level = round(float((valid > 0).sum()) / width**2 / 4) - peaks.size
    return np.append(peaks, np.full(max(1, level), _NO_NOISE))


def fit_tail(by_accident: FloatArray, peaks: FloatArray) -> AccidentTail:
    """Fit where the tail starts to peaks of unchanged pairs, stretched to the photos' own lower peaks."""
    stretch = float(np.quantile(peaks, _LOWER_PEAKS) / np.quantile(by_accident, _LOWER_PEAKS))
    start = max(1.0, stretch) * float(np.quantile(by_accident, 1 - _TAIL_SHARE))
    return AccidentTail(start, _SHAPE)


def q_values(p_values: FloatArray) -> FloatArray:
    """Benjamini and Hochberg's, over all peaks of the photo."""
    return np.asarray(false_discovery_control(p_values))
