"""Match features of two photos and fit the map between them; OpenCV finds the features."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from inlier.calibrated import CalibratedMatcher
from inlier.engine.blocks import FloatArray
from inlier.images.reading import Photo
from inlier.transforms import DegenerateConfigurationError, estimate_transformation

_MOST_FEATURES = 4000
_LONGEST_SIDE = 1200
_CLEARER_THAN_NEXT = 0.85  # Lowe's ratio
_FEWEST_MATCHES = 12
_ROUNDS = 10
_WITHIN = 3.0  # robust standard deviations


class NoFeaturesError(ValueError):
    """The photos cannot be matched by features."""


def match_features(before: Photo, after: Photo, random_state: int) -> FloatArray:
    """Map places (column, row) in ``after`` to places in ``before``, as a (2, 3) matrix."""
    x, y = putative_matches(after, before)
    return fit_map(x, y, random_state)


def putative_matches(first: Photo, second: Photo) -> tuple[FloatArray, FloatArray]:
    """Places of features of the first photo, and of their nearest of the second; many are wrong."""
    cv2 = _opencv()
    (places, vectors), (other_places, other_vectors) = (_features(cv2, photo) for photo in (first, second))
    if vectors is None or other_vectors is None or min(len(vectors), len(other_vectors)) < _FEWEST_MATCHES:
        raise NoFeaturesError("The photos show too few features to be aligned.")
    nearest = cv2.BFMatcher(cv2.NORM_L2).knnMatch(vectors, other_vectors, k=2)
    kept = [pair[0] for pair in nearest if len(pair) == 2 and pair[0].distance < _CLEARER_THAN_NEXT * pair[1].distance]
    if len(kept) < _FEWEST_MATCHES:
        raise NoFeaturesError(f"Only {len(kept)} features of the two photos match.")
    rows, partners = [match.queryIdx for match in kept], [match.trainIdx for match in kept]
    return places[rows], other_places[partners]


def _features(cv2: Any, photo: Photo) -> tuple[FloatArray, Any]:
    factor = min(1.0, _LONGEST_SIDE / max(photo.shape[:2]))
    grey = cv2.cvtColor(photo, cv2.COLOR_RGB2GRAY)
    if factor < 1:
        grey = cv2.resize(grey, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    points, vectors = cv2.SIFT_create(nfeatures=_MOST_FEATURES).detectAndCompute(grey, None)
    places = np.array([point.pt for point in points], float).reshape(-1, 2)
    return (places + 0.5) / factor - 0.5, vectors


def fit_map(x: FloatArray, y: FloatArray, random_state: int) -> FloatArray:
    """Fit an affine map to matches of which many are wrong: the matcher says which count, then least squares."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        real = CalibratedMatcher(alpha=0.05, random_state=random_state).fit(x, y).inlier_mask_
    if real.sum() < _FEWEST_MATCHES:
        raise NoFeaturesError(f"Of {len(x)} matched features only {int(real.sum())} agree on one movement.")
    try:
        for _ in range(_ROUNDS):
            found: Any = estimate_transformation("affine", x[real], y[real])
            distance = found.residuals(x, y)
            real = distance <= max(1.0, _WITHIN * 1.4826 * float(np.median(distance[real])))
    except DegenerateConfigurationError as error:
        raise NoFeaturesError("The matched features lie on a line.") from error
    return np.asarray(found.matrix)[:2]


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise ImportError(
            "The photos look shifted or turned by a lot; aligning them needs OpenCV. Install it with: "
            "pip install 'inlier[images]', or pass --no-align (align=False) to compare them as they are."
        ) from error
    return cv2
