"""A transformation, and how far it may be off, in words."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from inlier._typing import FloatArray
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


class MotionErrors(Protocol):
    """Standard errors of a motion, as a registration may state them."""

    @property
    def rotation(self) -> FloatArray:
        """In degrees, about each axis."""

    @property
    def translation(self) -> FloatArray:
        """In the units of the target."""

    @property
    def scale(self) -> float:
        """0 where the scale is fixed."""


def errors_in_words(errors: MotionErrors, model: str) -> str:
    """A sentence: how far the transformation may be off."""
    parts = [f"{float(np.max(errors.rotation)):.2g} degrees"]
    if model not in ("orthogonal", "rotation"):
        shift = np.asarray(errors.translation)
        parts.append(f"{_vector(shift, float(np.linalg.norm(shift)), '.2g')} in the translation")
    if model == "similarity":
        parts.append(f"{errors.scale:.2g} in the scale")
    return f"Standard errors: {', '.join(parts)}."


def errors_as_dict(errors: MotionErrors) -> dict[str, Any]:
    """The same for programs."""
    return {
        "degrees": np.asarray(errors.rotation).tolist(),
        "translation": np.asarray(errors.translation).tolist(),
        "scale": float(errors.scale),
    }
