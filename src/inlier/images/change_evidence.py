"""The evidence that a pixel has changed: residuals to the change of light, in units of their noise, at several scales.

One photo's colours are first multiplied as the other's are exposed. Then they are logarithms, log(c + value): other
light adds a constant, a cast shadow adds another. First one map for the whole photo, a polynomial in the three colours;
then, around each pixel, an affine map of what is left, fitted to the pixels nearby. Both are fitted with weights that
drop the pixels which do not follow, so that a new object does not explain itself; where hardly a pixel tells, the map
changes nothing. What remains, the residual, is what light does not explain.

At each scale the residual of an unchanged pixel has a covariance (light that varies makes brightness less sure than
hue), and it is larger where there is texture (photos never match to a fraction of a pixel) and in the dark (logarithms
amplify noise there). The model is var = k0 + k1 |gradient|^2 + k2 / (c + value)^2 with k >= 0, fitted so that far
residuals count little.

There are two kinds of evidence. Edges: what the residual has at fine scales beyond its own mean nearby. Things have
outlines and textures, and light seldom has, so that this decides whether anything has changed. Shadows have outlines
too, but within them and around them brightness differs evenly: its median nearby, which follows a step, is taken off
first, as far as light varies in the photo. Surfaces: the residual itself, at all scales, which also fills plain things
and tells how far they reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import ndimage
from scipy.optimize import nnls
from scipy.stats import chi2

from inlier._typing import FloatArray
from inlier.images.rasters import GRID, WORKING_SIZE, Field, gaussian, gradient_power, resample

_WINDOWS = (0.04, 0.1)  # of the local colour maps, as shares of the longer side
_SCALES = ((1.0, 1), (2.0, 1), (4.0, 2), (8.0, 4))  # Gaussian in working pixels, and the step it allows
_EDGE_SCALES = _SCALES[:2]  # those at which things have outlines and light has none
_EDGE_REACH = _SCALES[2][0]  # what varies over more is no edge
_SHADOW_WIDTH = 10  # working pixels: what is wider, and differs in brightness alone, may be a sharp shadow
_SHADOW_DEPTH = 2.0  # times as much as light varies in the photo
_LIGHT_RANK = 0.8  # of the places: light differs by more than its strength in a fifth of the photo
_GRAIN = 0.02  # of the longer side: what varies over less is noise
_ANTIALIAS = 0.7  # Gaussian over the photos, in working pixels: edges never match to a fraction of a pixel
_BORDER = 5  # working pixels around the edge of the frame that the other photo does not show cleanly
_SHAPE_SCALES = (3.0, 6.0)  # Gaussian windows, in working pixels, in which two photos have a shape in common
_GAP = 0.15  # widest gap that is filled, as a share of the longer side
_FILLED = 0.5  # how far: half way; with 0.25 real rooms lose .018 of average precision, and thin traces gain .006
_CLIPPED = 0.02  # of a working pixel: more may not be overexposed, or its mean is wrong by as much
_TRUST_IN_SHAPE = 0.7  # largest share of the evidence that a common shape takes away

# how colours follow from light
DARKNESS = 0.1  # c: values below it are mostly noise
_SAMPLE = 8000  # pixels for the ten coefficients of a colour, and for a covariance
_ROUNDS = 6  # weights and covariances have settled
_GLOBAL_TOLERANCE = 1.5  # residuals, in robust standard deviations, that still count
_RIDGE = 1e-4  # share of the sample that holds at 0 a coefficient which no colour in the photo determines
_LOCAL_ROUNDS = 3  # as above; the maps start from the global one
_LOCAL_TOLERANCE = 4.0  # wider: the global map has dropped what is far off
_LOCAL_RIDGE = 0.003  # variance of log colour below which a window does not bend the map
_LEAST_SPREAD = 1e-3  # of residuals in log colour: photos without noise

# how large residuals are where nothing has changed
_DEGREES = 3.0  # of freedom of the Student t that stands for residuals with some changed pixels among them
_MEDIAN_OF_MEAN_SQUARE = float(chi2.median(3)) / 3  # of three standard normal numbers
_FLOOR = 0.1  # share of the mean variance that is added to every direction
_TINY = 1e-9  # against division by zero


class View(NamedTuple):
    """A photo at working size: values in 0 .. 1, the share that is clipped, and what values are rounded to."""

    values: Field
    clipped: Field
    step: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two aligned photos at working size, in log colours, and how the second follows from the first by light.

    ``valid`` is 1 where both show the scene, 0 elsewhere; ``seen`` also is 0 where a channel of either is clipped.
    ``noise`` is the standard deviation of their difference where nothing else differs.
    """

    before: View
    after: View
    valid: Field
    seen: Field
    x: Field
    y: Field
    prediction: Field
    noise: float

    @property
    def step(self) -> float:
        """By how much rounding may make two values differ."""
        return (self.before.step + self.after.step) / 2

    @property
    def shared(self) -> float:
        """How much of that neighbours share: of values with noise of n steps, besides rounding, exp(-2 pi^2 n^2)."""
        return float(np.exp(-(np.pi**2) * max(self.noise**2 / self.step**2 - 1 / 6, 0)))

    @property
    def unit(self) -> float:
        """Pixels per working pixel: less than 1 for small photos."""
        return max(self.valid.shape) / WORKING_SIZE

    @cached_property
    def light(self) -> float:
        """How much light varies: what brightness differs by beyond one map of the colours; a fifth is higher."""
        unexplained = (self.y - self.prediction).mean(axis=-1) * self.seen
        nearby = _GRAIN * max(self.valid.shape)
        varies = np.abs(gaussian(unexplained, nearby)) / np.maximum(gaussian(self.seen, nearby), np.float32(_TINY))
        return float(np.quantile(varies[self.seen > 0], _LIGHT_RANK))

    @cached_property
    def shape_in_common(self) -> Field:
        """How far the photos have a shape in common around each pixel, 0 .. 1."""
        return common_shape(self.x.mean(axis=-1), self.y.mean(axis=-1), self.unit)

    @cached_property
    def widely(self) -> Field:
        """The residual of the wide window, which edges and surfaces are both read off."""
        return self.residual(_WINDOWS[-1])

    def residual(self, window: float) -> Field:
        """Differences that light does not explain, even if it varies from window to window."""
        x, rest = self.x, self.y - self.prediction
        rest = local_residual(x, rest, self.valid, self.before.clipped, self.after.clipped, window * max(x.shape))
        return within_range(rest * self.valid[..., None], self.before.clipped, self.after.clipped)


def exposed_alike(before: View, after: View, seen: Field) -> View:
    """Multiply each channel of ``before`` as ``after`` is exposed: by the median ratio, of light, not of pixels."""
    known = (seen[..., None] > 0) & (np.maximum(before.clipped, after.clipped) < _CLIPPED) & (before.values > 0)
    gains = [
        _weighted_median(after.values[..., c][places] / before.values[..., c][places], before.values[..., c][places])
        for c, places in enumerate(np.moveaxis(known, -1, 0))
    ]
    return View(before.values * np.array(gains, np.float32), before.clipped, before.step * float(np.mean(gains)))


def _weighted_median(values: Field, weights: Field) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    middle = float(values[order[np.searchsorted(total, total[-1] / 2)]]) if total.size else 0.0
    return middle or 1.0


def compare(before: View, after: View, valid: Field, rng: np.random.Generator) -> Comparison:
    """Find how one photo's colours follow from the other's; ``rng`` draws the pixels that the map is fitted to."""
    smoothing = _ANTIALIAS * max(valid.shape) / WORKING_SIZE
    raw = before.values, after.values
    before, after = (
        View(gaussian(view.values, smoothing), gaussian(view.clipped, smoothing), view.step) for view in (before, after)
    )
    valid = ndimage.minimum_filter(valid, _BORDER, mode="constant")  # nor is the edge of either frame clean
    x, y = log_colour(before.values), log_colour(after.values)
    seen = valid * (np.maximum(before.clipped, after.clipped).max(axis=-1) < _CLIPPED)
    prediction = global_prediction(x, y, valid, before.clipped, after.clipped, rng)
    seen = seen if seen.any() else valid
    return Comparison(before, after, valid, seen, x, y, prediction, noise_between(*raw, seen))


def noise_between(before: Field, after: Field, seen: Field) -> float:
    """Standard deviation of the noise of the difference, read off its fine grain where the seen photos are plain."""
    grain = (after - before) - gaussian(after - before, 1.0)
    impulse = np.pad(np.ones((1, 1), np.float32), 7)
    kept = float(np.linalg.norm(impulse - gaussian(impulse, 1.0)))  # of white noise, by the same filter
    texture = gradient_power(gaussian(before, 1.0)) + gradient_power(gaussian(after, 1.0))
    texture = np.where(seen > 0, texture, np.inf)
    plain = texture <= np.median(texture[seen > 0])
    return _spread(grain[plain]) / kept


def _spread(values: Field) -> float:
    """Standard deviation, by the median: changed places do not count."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def edge_evidence(pair: Comparison, rng: np.random.Generator) -> Field:
    """Evidence per pixel of outlines and textures that only one of the photos has."""
    residual = pair.widely
    evenly_lit = without_shadows(residual, _SHADOW_WIDTH * pair.unit, _SHADOW_DEPTH * pair.light)
    beyond = evenly_lit - gaussian(evenly_lit, _EDGE_REACH * pair.unit)
    return _lowered(over_scales(beyond, pair.y - residual, pair, _EDGE_SCALES, rng), pair)


def without_shadows(residual: Field, width: float, depth: float) -> Field:
    """Take off the median brightness nearby, which ends as sharply as a shadow does; textures and hues are left.

    At most ``depth`` is taken off: where light hardly varies, a thing that is brighter or darker is no shadow.
    """
    side = 2 * round(width / 2) + 1
    along_rows = ndimage.median_filter(residual.mean(axis=-1), (1, side))
    return residual - np.clip(ndimage.median_filter(along_rows, (side, 1)), -depth, depth)[..., None]


def surface_evidence(pair: Comparison, rng: np.random.Generator) -> Field:
    """Evidence per pixel that something other than light has changed."""
    evidence = np.zeros(pair.valid.shape, np.float32)
    for window in _WINDOWS:
        residual = pair.widely if window == _WINDOWS[-1] else pair.residual(window)
        evidence += over_scales(residual, pair.y - residual, pair, _SCALES, rng) / len(_WINDOWS)
    return _lowered(evidence, pair)


def _lowered(evidence: Field, pair: Comparison) -> Field:
    """Where the photos have a shape in common it is lowered, and where one of them shows nothing there is none."""
    return evidence * (1 - np.float32(_TRUST_IN_SHAPE) * pair.shape_in_common) * pair.valid


def with_gaps_filled(evidence: Field) -> Field:
    """Raise the evidence in gaps between strong places: parts of one thing, or its plain interior."""
    height, width = evidence.shape
    reach = _GAP * max(height, width) / 2 / GRID
    away = np.arange(-round(reach), round(reach) + 1)
    disc = away[:, None] ** 2 + away[None, :] ** 2 <= reach**2
    coarse = resample(evidence, max(1, height // GRID), max(1, width // GRID))
    closed = resample(ndimage.grey_closing(coarse, footprint=disc), height, width)
    return evidence + np.float32(_FILLED) * np.maximum(closed - evidence, 0)


def over_scales(
    residual: Field, predicted: Field, pair: Comparison, scales: Sequence[tuple[float, int]], rng: np.random.Generator
) -> Field:
    """Sum over scales of log(1 + power of the standardised residual); large scales on coarser grids."""
    brightness = np.maximum(pair.before.values.mean(axis=-1), pair.after.values.mean(axis=-1))
    height, width = brightness.shape
    total = np.zeros((height, width), np.float32)
    for scale, step in scales:
        grid = height // step, width // step
        sigma = scale * pair.unit / step
        fields = (residual, predicted, brightness)
        smooth, expected, light = (gaussian(resample(field, *grid), sigma) for field in fields)
        texture = gradient_power(expected) / np.float32(step**2)
        darkness = np.square(1 / (light + np.float32(DARKNESS)))
        seen = resample(pair.seen, *grid)
        power = standardised_power(smooth, texture, darkness, seen, (pair.step, pair.shared), rng)
        total += resample(np.log1p(power), height, width)
    return total


def within_range(residual: Field, clipped_before: Field, clipped_after: Field) -> Field:
    """Take away residuals that overexposure explains: a clipped value may have been any amount brighter."""
    cut_after = (clipped_after >= _CLIPPED) & (residual < 0)
    cut_before = (clipped_before >= _CLIPPED) & (residual > 0)
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


def log_colour(photo: Field) -> Field:
    """log(c + value) of values in 0 .. 1."""
    return np.log(photo + DARKNESS)


def global_prediction(
    x: Field, y: Field, valid: Field, clipped_before: Field, clipped_after: Field, rng: np.random.Generator
) -> Field:
    """Predict log colours y from x: add a quadratic polynomial to x, fitted to a sample with falling weights.

    Clipped values count as far as they contradict the map: what overexposure explains is taken to follow it.
    """
    places = np.flatnonzero(valid.ravel() > 0)
    chosen = rng.choice(places, min(_SAMPLE, places.size), replace=False)
    terms, target = _quadratic(x.reshape(-1, 3)[chosen].astype(np.float64)), (y - x).reshape(-1, 3)[chosen]
    clipped = [share.reshape(-1, 3)[chosen] for share in (clipped_before, clipped_after)]
    weights: FloatArray = np.ones(len(chosen))
    ridge = _RIDGE * len(chosen) * np.eye(terms.shape[1])
    followed = within_range(target, *clipped)
    for _ in range(_ROUNDS):
        weighted = terms * weights[:, None]
        coefficients = np.linalg.solve(terms.T @ weighted + ridge, weighted.T @ followed)
        rest = within_range(target - terms @ coefficients, *clipped)
        followed = terms @ coefficients + rest
        weights = _falling(np.abs(rest).sum(axis=1), _GLOBAL_TOLERANCE)
    change: Field = (_quadratic(x.reshape(-1, 3)) @ coefficients.astype(np.float32)).reshape(x.shape)
    return x + change


def local_residual(
    x: Field, rest: Field, valid: Field, clipped_before: Field, clipped_after: Field, sigma: float
) -> Field:
    """What is left of ``rest`` after an affine map of x around each pixel (Gaussian window, ``sigma``)."""
    height, width = x.shape[:2]
    step = GRID if min(height, width) >= 16 * GRID else 1
    size = height // step, width // step
    x_coarse, target, counted = (resample(field, *size) for field in (x, rest, valid))
    clipped = [resample(share, *size) for share in (clipped_before, clipped_after)]
    fitted = np.zeros_like(target)
    for _ in range(_LOCAL_ROUNDS + 1):
        left = within_range(target - fitted, *clipped)
        weights = _falling(np.sqrt((left**2).sum(axis=-1)), _LOCAL_TOLERANCE).astype(np.float32) * counted
        slope, offset = _affine_around(x_coarse, fitted + left, weights, sigma / step)
        fitted = np.einsum("hwi,hwio->hwo", x_coarse, slope) + offset
    slope, offset = resample(slope, height, width), resample(offset, height, width)
    return np.asarray(rest - np.einsum("hwi,hwio->hwo", x, slope) - offset)


def _affine_around(x: Field, y: Field, weights: Field, sigma: float) -> tuple[Field, Field]:
    """Weighted least squares in a window around each pixel, from smoothed moments."""
    total = gaussian(weights, sigma)[..., None] + 1e-4
    both = np.concatenate([x, y], axis=-1)
    outer = (x[..., :, None] * both[..., None, :]).reshape(*x.shape[:2], 18)
    means, moments = (gaussian(field * weights[..., None], sigma) / total for field in (both, outer))
    mean_x, mean_y = means[..., :3], means[..., 3:]
    centred = moments.reshape(*x.shape, 6) - mean_x[..., :, None] * means[..., None, :]
    slope = np.linalg.solve(centred[..., :3] + _LOCAL_RIDGE * np.eye(3, dtype=np.float32), centred[..., 3:])
    return slope, mean_y - np.einsum("hwi,hwio->hwo", mean_x, slope)


def _quadratic(colours: FloatArray | Field) -> FloatArray:
    red, green, blue = colours.T
    ones = np.ones_like(red)
    squares = (red * red, green * green, blue * blue, red * green, red * blue, green * blue)
    return np.stack([ones, red, green, blue, *squares], axis=1)


def _falling(distance: FloatArray | Field, tolerance: float) -> FloatArray:
    """Weights 1 / (1 + (d / scale)^2)^2, scaled by the robust spread: far residuals do not count."""
    scale = tolerance * (1.4826 * float(np.median(distance)) + _LEAST_SPREAD)
    return 1 / (1 + (distance / scale) ** 2) ** 2


def standardised_power(
    residual: Field,
    texture: Field,
    darkness: Field,
    seen: Field,
    rounding: tuple[float, float],
    rng: np.random.Generator,
) -> Field:
    """Mean square of the residual's three coordinates, near 1 where nothing has changed.

    ``residual`` is smoothed to one scale. The noise, read off a sample of pixels that are ``seen``, may grow with
    ``texture``, the squared gradient, and with ``darkness``, 1 / (c + value)^2. The variance of ``rounding`` is added
    to it, a sixth of a step squared, which photos without noise have; the share of a step that neighbours share is no
    evidence.
    """
    height, width = residual.shape[:2]
    places = np.flatnonzero(seen.ravel() > 0)
    sample = rng.choice(places, min(_SAMPLE, places.size), replace=False)
    rows = residual.reshape(-1, 3)
    power = _mahalanobis(rows, _robust_covariance(rows[sample])) / np.float32(3)
    causes = np.stack([np.ones(height * width, np.float32), texture.ravel(), darkness.ravel()], axis=1)
    variance = causes @ _causes_of_variance(power[sample], causes[sample]).astype(np.float32) + np.float32(_TINY)
    even = rows / np.sqrt(variance)[:, None]
    standardised: Field = _mahalanobis(even, _robust_covariance(even[sample])) / np.float32(3)
    step, shared = (np.float32(number) for number in rounding)
    steps = np.abs(rows) / (step * np.sqrt(darkness.ravel()))[:, None]
    in_steps = 6 * np.square(np.maximum(steps - shared, 0)).mean(axis=1)
    both: Field = standardised * in_steps / (standardised + in_steps + np.float32(_TINY))
    return both.reshape(height, width)


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
    """Square of the distance from 0; term by term, because products with matrices as small as 3 x 3 are slow."""
    a, b, c = np.ascontiguousarray(rows.T)
    ((aa, ab, ac), (_, bb, bc), (_, _, cc)) = np.linalg.inv(covariance).astype(rows.dtype)
    distance: Field = a * (aa * a + 2 * ab * b + 2 * ac * c) + b * (bb * b + 2 * bc * c) + cc * c * c
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
