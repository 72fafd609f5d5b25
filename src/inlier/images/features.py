"""Where a photo is turned or moved by a lot: SIFT features of both, of which `Registration` says which are real."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from inlier._typing import FloatArray
from inlier.estimators.registration import Registration
from inlier.images.rasters import Photo

_MOST_FEATURES = 4000  # of a photo: seconds, not minutes
_CLEARER_THAN_NEXT = 0.85  # Lowe's ratio
_FEWEST_MATCHES = 12  # twice as many as the six numbers of the map need


class NoFeaturesError(ValueError):
    """The photos cannot be matched by features."""


def map_by_features(before: Photo, after: Photo, longest: int, random_state: int) -> FloatArray:
    """Map places (column, row) in ``after`` to places in ``before``, as a homogeneous matrix.

    Features are looked for in copies with at most ``longest`` pixels along the longer side.
    """
    try:
        import cv2
    except ImportError as error:
        raise ImportError(
            "The photos look shifted or turned by a lot, or do not show one scene; to tell needs OpenCV. Install it "
            "with: pip install opencv-python-headless. Or pass --no-align (align=False) to compare them as they are."
        ) from error
    (places, vectors), (other_places, other_vectors) = (_features(cv2, photo, longest) for photo in (after, before))
    if vectors is None or other_vectors is None or min(len(vectors), len(other_vectors)) < _FEWEST_MATCHES:
        raise NoFeaturesError("The photos show too few features to be aligned.")
    nearest = cv2.BFMatcher(cv2.NORM_L2).knnMatch(vectors, other_vectors, k=2)
    kept = [pair[0] for pair in nearest if len(pair) == 2 and pair[0].distance < _CLEARER_THAN_NEXT * pair[1].distance]
    if len(kept) < _FEWEST_MATCHES:
        raise NoFeaturesError(f"Only {len(kept)} features of the two photos match.")
    rows, partners = [match.queryIdx for match in kept], [match.trainIdx for match in kept]
    return _fit_map(places[rows], other_places[partners], random_state)


def _features(cv2: Any, photo: Photo, longest: int) -> tuple[FloatArray, Any]:
    factor = min(1.0, longest / max(photo.shape[:2]))
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
    if np.linalg.det(np.asarray(found.transformation_.matrix)[:2, :2]) <= 0:
        raise NoFeaturesError("The matched features are mirrored, and no camera sees a scene so.")
    if not found.transformation_.determined:
        raise NoFeaturesError("The matched features lie on a line.")
    return np.asarray(found.transformation_.matrix)
