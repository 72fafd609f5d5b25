"""Lay one photo over the other: a small affine movement by least squares, a large one by features.

The movement is found on brightness that is made even around each pixel, so that light does not pull on it. It is a
map from places in ``after`` to places in ``before``: place' = matrix @ (column, row, 1).
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PIL import Image
from scipy import fft, ndimage

from inlier._typing import FloatArray
from inlier.estimators.registration import Registration
from inlier.images.filters import Field, gaussian, resample, shrunk
from inlier.images.reading import Photo, comparable

_STEPS, _MOST_ROUNDS = (4, 2, 1), 12  # of the grid, from coarse to fine; and on each of them
_EVENING = 6.0  # pixels over which brightness is made even
_LEAST_CONTRAST = 0.03  # spread of brightness, in 0 .. 1, below which there is only noise to even out
_DAMPING = np.array([1e-3, 1e-2, 1e-2] * 2)  # share of its own curvature that holds a shift, and a slope, where it is
_SETTLED = 0.01  # pixels that a round moves the photo by when it may be the last
_SAME_VIEW = 0.35  # correlation of evened brightness above which two photos show the same view
_GAIN_WORTH_TAKING = 0.02  # of the agreement that is missing: for less the photo is left where it is
_MOST_FEATURES, _LONGEST_SIDE = 4000, 1200  # of a photo; and its pixels where they are looked for: seconds, not minutes
_CLEARER_THAN_NEXT = 0.85  # Lowe's ratio
_FEWEST_MATCHES = 12  # twice as many as the six numbers of the map need


@dataclass(frozen=True, eq=False)
class Alignment:
    """How ``before`` was moved onto ``after``.

    Attributes
    ----------
    matrix : ndarray of shape (2, 3)
        Place in ``before`` of a place (column, row) in ``after``: ``matrix @ (column, row, 1)``.
    agreement : float
        Correlation of the two photos' evened brightness after the movement: 1 for equal photos, 0 for strangers.
    method : str
        "none", "small shift" or "features".
    """

    matrix: FloatArray
    agreement: float
    method: str

    @property
    def moved(self) -> bool:
        """Whether the photo has to be moved at all."""
        return self.method != "none"

    @property
    def trustworthy(self) -> bool:
        """Whether the photos agree enough to be of one view."""
        return self.agreement >= _SAME_VIEW

    def shift(self, height: int, width: int) -> float:
        """Largest movement of a corner, in pixels."""
        corners = np.array([[0, 0, 1], [width, 0, 1], [0, height, 1], [width, height, 1]], float)
        return float(np.linalg.norm(corners @ self.matrix.T - corners[:, :2], axis=1).max())

    def apply(self, before: Photo) -> Photo:
        """Move ``before`` onto ``after``; what lies outside of it is black."""
        if not self.moved:
            return before
        height, width = before.shape[:2]
        # Pillow counts from pixel corners and samples at centres.
        a, b, c, d, e, f = self.matrix.ravel()
        half = (a, b, c - 0.5 * (a + b) + 0.5, d, e, f - 0.5 * (d + e) + 0.5)
        bilinear = Image.Resampling.BILINEAR
        return np.asarray(Image.fromarray(before).transform((width, height), Image.Transform.AFFINE, half, bilinear))

    def inside(self, height: int, width: int) -> Field:
        """1 where ``before`` has something to show, 0 outside of its frame."""
        if not self.moved:
            return np.ones((height, width), np.float32)
        (a, b, c), (d, e, f) = self.matrix
        across, down = np.arange(width)[None, :], np.arange(height)[:, None]
        column, row = a * across + (b * down + c), d * across + (e * down + f)
        return ((column >= 0) & (column <= width - 1) & (row >= 0) & (row <= height - 1)).astype(np.float32)

    def scaled(self, factor: float) -> Alignment:
        """Return the same movement for photos ``factor`` times as large."""
        return replace(self, matrix=_scaled(self.matrix, factor))


_STAY = np.eye(2, 3)


def align_photos(before: Photo, after: Photo, random_state: int = 0) -> Alignment:
    """Find the movement of the camera between two photos.

    Small shifts and turns need nothing else; photos that are far shifted or turned need OpenCV
    (``pip install 'inlier[images]'``).

    Parameters
    ----------
    before, after : ndarray of uint8, shape (height, width, 3)
        The photos.
    random_state : int, default=0
        Deals the folds of the robust fit to matched features.

    Returns
    -------
    Alignment

    Examples
    --------
    >>> from inlier.datasets import load_sky
    >>> from inlier.images import align_photos
    >>> photo = load_sky()
    >>> align_photos(photo[3:403, 2:602], photo[:400, :600]).matrix.round(1)[:, 2].tolist()
    [-2.0, -3.0]
    """
    before, after = comparable(before, after)
    x, y = (_even_brightness(shrunk(photo)) for photo in (before, after))
    scale = after.shape[0] / y.shape[0]
    best = _refine(x, y, _STAY)
    if not best.trustworthy:
        best = max(best, _refine(x, y, _translation(x, y)), key=lambda found: found.agreement)
    if not best.trustworthy:
        with suppress(NoFeaturesError):
            start = _scaled(_match_features(before, after, random_state), 1 / scale)
            turned = replace(_refine(x, y, start), method="features")
            best = max(best, turned, key=lambda found: found.agreement)
    return best.scaled(scale)


def as_they_are(before: Photo, after: Photo) -> Alignment:
    """No movement, and how well the photos agree without one."""
    x, y = (gaussian(_even_brightness(shrunk(photo)), 1.0) for photo in (before, after))
    return Alignment(_STAY, _agreement(x, y, _STAY), "none")


def _even_brightness(photo: Field) -> Field:
    """Brightness with mean 0 and spread 1 around each pixel."""
    grey: Field = photo.mean(axis=-1)
    centred = grey - gaussian(grey, _EVENING)
    spread = np.sqrt(gaussian(centred * centred, _EVENING))
    return (centred / (spread + np.float32(_LEAST_CONTRAST))).astype(np.float32)


def _refine(x: Field, y: Field, start: FloatArray) -> Alignment:
    """Gauss-Newton on the six numbers of an affine map, from coarse to fine, with weights against changed pixels."""
    matrix = start.copy()
    for step in _STEPS:
        size = x.shape[0] // step, x.shape[1] // step
        coarse_x, coarse_y = (gaussian(resample(field, *size), 1.0) for field in (x, y))
        matrix = _scaled(matrix, 1 / step)
        for _ in range(_MOST_ROUNDS):
            update = _newton_step(coarse_x, coarse_y, matrix)
            matrix = (np.vstack([matrix, [0, 0, 1]]) @ update)[:2]
            if np.abs(update[:2, 2]).max() < _SETTLED:
                break
        matrix = _scaled(matrix, step)
    x, y = gaussian(x, 1.0), gaussian(y, 1.0)
    before, after = _agreement(x, y, _STAY), _agreement(x, y, matrix)
    if after <= before + _GAIN_WORTH_TAKING * (1 - before):
        return Alignment(_STAY, before, "none")
    return Alignment(matrix, after, "small shift")


def _scaled(matrix: FloatArray, factor: float) -> FloatArray:
    """Return the map for photos ``factor`` times as large; pixel centres move: x' = factor (x + 1/2) - 1/2."""
    linear, offset = matrix[:, :2], matrix[:, 2]
    moved = factor * offset + (factor - 1) * (0.5 - linear @ np.full(2, 0.5))
    return np.column_stack([linear, moved])


def _newton_step(x: Field, y: Field, matrix: FloatArray) -> FloatArray:
    moved = _warp(x, matrix)
    height, width = y.shape
    by_row, by_column = np.gradient(moved)
    rows, columns = np.mgrid[:height, :width]
    u, v = columns / width - 0.5, rows / height - 0.5
    jacobian = np.stack([by_column, by_column * u, by_column * v, by_row, by_row * u, by_row * v], -1).reshape(-1, 6)
    rest = (y - moved).ravel()
    spread = 1.4826 * float(np.median(np.abs(rest))) + 1e-3
    weighted = jacobian * (1 / (1 + (rest / spread) ** 2) ** 2)[:, None]
    normal = jacobian.T @ weighted
    damping = np.diag(normal.diagonal() * _DAMPING + 1e-6)
    across, across_u, across_v, down, down_u, down_v = np.linalg.solve(normal + damping, weighted.T @ rest)
    return np.array(
        [
            [1 + across_u / width, across_v / height, across - 0.5 * (across_u + across_v)],
            [down_u / width, 1 + down_v / height, down - 0.5 * (down_u + down_v)],
            [0, 0, 1],
        ]
    )


def _warp(x: Field, matrix: FloatArray) -> Field:
    (a, b, c), (d, e, f) = matrix
    linear, offset = [[e, d], [b, a]], [f, c]  # rows first
    moved: Field = ndimage.affine_transform(x, linear, offset, order=1, mode="nearest")
    return moved


def _agreement(x: Field, y: Field, matrix: FloatArray) -> float:
    inside = Alignment(matrix, 0.0, "moved").inside(*y.shape) > 0
    if inside.mean() < 0.1:
        return 0.0
    a, b = _warp(x, matrix)[inside], y[inside]
    spread = float(a.std() * b.std())
    return float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread > 0 else 0.0


def _translation(x: Field, y: Field) -> FloatArray:
    """Shift at which the phases of the two photos agree best."""
    size = [fft.next_fast_len(2 * n) for n in y.shape]
    product = fft.rfft2(x, size) * np.conj(fft.rfft2(y, size))
    peak = fft.irfft2(product / (np.abs(product) + 1e-6), size)
    row, column = np.unravel_index(int(peak.argmax()), peak.shape)
    signed = [int(place) - n if place > n // 2 else int(place) for place, n in zip((row, column), size, strict=True)]
    return np.array([[1.0, 0.0, signed[1]], [0.0, 1.0, signed[0]]])


class NoFeaturesError(ValueError):
    """The photos cannot be matched by features."""


def _match_features(before: Photo, after: Photo, random_state: int) -> FloatArray:
    """Map places (column, row) in ``after`` to places in ``before``, as a (2, 3) matrix."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError(
            "The photos look shifted or turned by a lot; aligning them needs OpenCV. Install it with: "
            "pip install 'inlier[images]', or pass --no-align (align=False) to compare them as they are."
        ) from error
    (places, vectors), (other_places, other_vectors) = (_features(cv2, photo) for photo in (after, before))
    if vectors is None or other_vectors is None or min(len(vectors), len(other_vectors)) < _FEWEST_MATCHES:
        raise NoFeaturesError("The photos show too few features to be aligned.")
    nearest = cv2.BFMatcher(cv2.NORM_L2).knnMatch(vectors, other_vectors, k=2)
    kept = [pair[0] for pair in nearest if len(pair) == 2 and pair[0].distance < _CLEARER_THAN_NEXT * pair[1].distance]
    if len(kept) < _FEWEST_MATCHES:
        raise NoFeaturesError(f"Only {len(kept)} features of the two photos match.")
    rows, partners = [match.queryIdx for match in kept], [match.trainIdx for match in kept]
    return _fit_map(places[rows], other_places[partners], random_state)


def _features(cv2: Any, photo: Photo) -> tuple[FloatArray, Any]:
    factor = min(1.0, _LONGEST_SIDE / max(photo.shape[:2]))
    grey = cv2.cvtColor(photo, cv2.COLOR_RGB2GRAY)
    if factor < 1:
        grey = cv2.resize(grey, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    points, vectors = cv2.SIFT_create(nfeatures=_MOST_FEATURES).detectAndCompute(grey, None)
    places = np.array([point.pt for point in points], float).reshape(-1, 2)
    return (places + 0.5) / factor - 0.5, vectors


def _fit_map(x: FloatArray, y: FloatArray, random_state: int) -> FloatArray:
    """Fit an affine map to matches of which many are wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how sure each single match is does not matter here
        found = Registration("affine", random_state=random_state, raise_on_failure=False).fit(x, y)
    if found.transformation_ is None or found.inlier_mask_.sum() < _FEWEST_MATCHES:
        raise NoFeaturesError(f"The {len(x)} matched features of the two photos do not agree on one movement.")
    if not found.transformation_.determined:
        raise NoFeaturesError("The matched features lie on a line.")
    return np.asarray(found.transformation_.matrix)[:2]
