"""Could it be an accident? Twins of the photos, in which nothing has changed, and the tail of their evidence.

What evidence looks like where nothing has changed says how sure we may be of the rest. Each photo is
compared with a twin of itself. The twin stands in other light, as much other as the light of the two photos differs; it
is moved by a fraction of a pixel, as far as photos are never aligned; and it has the noise that the two photos have
between them. Every step of the comparison is then the same as for the two photos, so that whatever the steps do to the
evidence (saturation, textures, borders) is in the twins' evidence too.

A photo holds about as many independent places as its evidence has local maxima, the peaks. The tail of accident starts
where the highest fifth of the twins' peaks does. Evidence is a logarithm of power in units of the noise: if the photos
are some times as noisy as the twins, as they are where they differ in ways that twins do not, the evidence is higher by
a number. So the start moves by as much as the photos' own lower peaks are above those of the twins, or below. And if
power has a Pareto tail, evidence has an exponential one, P(peak > z) = share exp(-(z - start) / scale), that is a
generalised Pareto distribution of shape 0. Of little power the logarithm, log(1 + power), is that power itself: the
scale falls with the start, but to no less than what the twins' own highest fifth has beyond it, in the mean: a drawing
on an empty page has few high peaks among many that are nothing. What is no more than noise at one scale, power 1, is no
evidence: the tail starts no lower. A peak's p-value is that tail; q-values over all peaks
of the photo (Benjamini and Hochberg) bound the share of accidents among what is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import ndimage
from scipy.stats import false_discovery_control

from inlier._typing import FloatArray, Mask
from inlier.images.change_evidence import Comparison, View
from inlier.images.rasters import Field, gaussian, gradient_power, resample

# the twins
_MISALIGNED = 0.25  # working pixels, standard deviation: what alignment leaves
_CLOUDS = 0.12  # of the longer side: how far shades and smooth light extend
_SOFTNESS = (2.0, 25.0)  # working pixels over which a shade ends

# the tail
_PLACE = 0.05  # of the longer side: the highest evidence within such a square is a peak
_TAIL_SHARE = 0.2  # of the peaks: the tail is of the highest, and hardly any of the lowest are of changes
_SCALE = 0.6  # of the tail at most, in units of the evidence: a photo's own twins are too few to tell it
_SCALE_OF_START = 0.7  # the scale where there is little evidence, as a share of the start
_OF_NOISE = float(np.log(2))  # log(1 + power) where one scale differs by as much as noise
_TINY = 1e-9  # against division by zero


def unchanged_pairs(
    before: View, after: View, pair: Comparison, rng: np.random.Generator
) -> Iterator[tuple[View, View]]:
    """Yield each photo with its twin, in light that varies as much as between the photos."""
    for photo in (before, after):
        yield photo, _twin(photo, pair.noise, pair.light, rng)


def _twin(photo: View, noise: float, light: float, rng: np.random.Generator) -> View:
    height, width = photo.values.shape[:2]
    reach = _CLOUDS * max(height, width)
    smooth, shape = (_cloud(height, width, reach, rng) for _ in range(2))
    shade = np.tanh(shape / (np.sqrt(gradient_power(shape).mean()) * rng.uniform(*_SOFTNESS)))
    lit = photo.values * np.exp(light * (smooth + shade))[..., None]
    moved = ndimage.shift(lit, (*(_MISALIGNED * rng.standard_normal(2)), 0), order=1, mode="nearest")
    noisy = moved + noise * rng.standard_normal(moved.shape)
    rounded = np.clip(np.round(noisy / photo.step) * photo.step, 0, 1).astype(np.float32)
    return View(rounded, np.maximum(photo.clipped, rounded >= 1), photo.step)


def _cloud(height: int, width: int, reach: float, rng: np.random.Generator) -> Field:
    """A smooth random field of spread 1."""
    coarse = (max(2, round(side / reach * 4)) for side in (height, width))
    field = resample(gaussian(rng.standard_normal(tuple(coarse)).astype(np.float32), 4.0), height, width)
    return gaussian((field - field.mean()) / (field.std() + np.float32(1e-6)), 2.0)


@dataclass(frozen=True, eq=False)
class AccidentTail:
    """How high peaks are where nothing has changed: a fifth of them above ``start``, exponential from there."""

    start: float
    scale: float

    def p_values(self, peaks: FloatArray) -> FloatArray:
        """Chance that a peak is as high by accident; below ``start`` no better than the share above it."""
        return np.asarray(_TAIL_SHARE * np.exp(-np.maximum(peaks - self.start, 0) / self.scale))


def is_peak(evidence: Field) -> Mask:
    """Which places have the highest evidence around them."""
    return np.asarray((evidence == ndimage.maximum_filter(evidence, _width_of_a_place(evidence))) & (evidence > 0))


def _width_of_a_place(evidence: Field) -> int:
    return max(3, round(_PLACE * max(evidence.shape)))


def find_peaks(evidence: Field, valid: Field) -> FloatArray:
    """Return the evidence of the peaks.

    About every second square holds a peak. Where the evidence is level, as in photos without noise, there are fewer;
    such places count without any.
    """
    peaks = evidence[is_peak(evidence) & (valid > 0)].astype(np.float64)
    level = round(float((valid > 0).sum()) / _width_of_a_place(evidence) ** 2 / 4) - peaks.size
    return np.append(peaks, np.zeros(max(1, level)))


def fit_tail(by_accident: FloatArray, peaks: FloatArray) -> AccidentTail:
    """Fit the tail to peaks of unchanged pairs; its start is moved as the photos' own lower peaks are."""
    moved = float(np.quantile(peaks, _TAIL_SHARE) - np.quantile(by_accident, _TAIL_SHARE))
    high = float(np.quantile(by_accident, 1 - _TAIL_SHARE))
    start = max(high + moved, 0.0)
    beyond = float(np.maximum(by_accident - high, 0).mean()) / _TAIL_SHARE
    return AccidentTail(max(start, _OF_NOISE), min(_SCALE, max(_SCALE_OF_START * start, beyond, _TINY)))


def q_values(p_values: FloatArray) -> FloatArray:
    """Benjamini and Hochberg's, over all peaks of the photo."""
    return np.asarray(false_discovery_control(p_values))
