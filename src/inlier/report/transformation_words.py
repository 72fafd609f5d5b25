"""A transformation in words, and how precisely the pairs determine it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier.engine.blocks import FloatArray
from inlier.transforms import SimilarityTransformation, Transformation

_NO_TURN = 1e-7  # degrees


def in_words(transformation: Transformation) -> str:
    """What it does to the source, as the rest of a sentence: "turns by 90 degrees about ... and moves by ..."."""
    deeds = _linear_deeds(transformation)
    if transformation.model not in ("orthogonal", "rotation"):
        size = float(np.linalg.norm(transformation.translation))
        deeds.append(f"moves by {_vector(transformation.translation, size)}")
    return deeds[0] if len(deeds) == 1 else f"{', '.join(deeds[:-1])} and {deeds[-1]}"


def _linear_deeds(transformation: Transformation) -> list[str]:
    if not isinstance(transformation, SimilarityTransformation):
        stretch = np.linalg.svd(transformation.linear, compute_uv=False)
        return [f"stretches by {stretch[-1]:.4g} to {stretch[0]:.4g}"]
    deeds = [f"scales by {transformation.scale:.6g}"] if transformation.model == "similarity" else []
    d = len(transformation.rotation)
    if transformation.is_reflection:
        return [*deeds, "mirrors"]
    if d not in (2, 3):
        return [*deeds, f"turns in {d} dimensions"] if d > 1 else deeds
    angle = transformation.angle
    if abs(angle) < _NO_TURN:
        return [*deeds, "does not turn"]
    if d == 2:
        return [*deeds, f"turns by {abs(angle):.4g} degrees {'counter-clockwise' if angle > 0 else 'clockwise'}"]
    axis = transformation.as_scipy_rotation().as_rotvec()
    axis /= np.linalg.norm(axis)
    return [*deeds, f"turns by {angle:.4g} degrees about the axis {_vector(axis, 1.0, '.3f')}"]


def _vector(values: FloatArray, size: float, form: str = ".4g") -> str:
    """Numbers in brackets, few enough to be read; what is nothing beside the others is 0."""
    if values.size > 3:
        return f"{size:.4g}"
    shown = np.where(np.abs(values) < 1e-9 * size, 0.0, values)
    return f"({', '.join(format(float(value), form) for value in shown)})"


@dataclass(frozen=True)
class Precision:
    """Standard errors of a transformation, were the noise the same everywhere and independent.

    Attributes
    ----------
    degrees : float
        Of the rotation, in the plane in which it is known worst.
    distance : float, optional
        Of where the middle of the points goes, as a length; none for maps without a translation.
    """

    degrees: float
    distance: float | None

    @property
    def sentence(self) -> str:
        """For people."""
        shift = "" if self.distance is None else f" and, in where the middle of the points goes, {self.distance:.2g}"
        return f"Its standard error is {self.degrees:.2g} degrees{shift}."

    def to_dict(self) -> dict[str, float | None]:
        """For programs."""
        return {"degrees": self.degrees, "distance": self.distance}


def precision_of(transformation: Transformation, X: FloatArray, residuals: FloatArray) -> Precision | None:
    """Standard errors from the accepted pairs: a sample of their points X, and the residuals of all of them.

    Rotating the images z_i = s R x_i in the plane of two principal axes by a small angle moves them by angle * |z_i|
    in that plane, so least squares knows the angle to sigma / sqrt(sum of |z_i|^2 in the plane).
    """
    d, k = transformation.linear.shape[1], residuals.size
    unknown = d * (d + 1) / 2 + 1
    if not isinstance(transformation, SimilarityTransformation) or not transformation.determined:
        return None
    if not (2 <= d < len(X) and k * d > 2 * unknown):
        return None
    sigma = np.sqrt(np.sum(residuals**2) / (k * d - unknown))
    shifts = transformation.model not in ("orthogonal", "rotation")
    images = transformation.scale * (X - X.mean(axis=0) * shifts)
    spread = np.sort(np.linalg.eigvalsh(images.T @ images / len(images)))
    in_plane = spread[0] + spread[1]
    if in_plane <= 0:
        return None
    degrees = float(np.degrees(sigma / np.sqrt(k * in_plane)))
    return Precision(degrees, float(sigma * np.sqrt(d / k)) if shifts else None)
