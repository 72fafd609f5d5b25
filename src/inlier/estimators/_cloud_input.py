"""What is given to `CloudRegistration`: clouds in whatever holds points, and motions that are claimed."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from inlier._checks import warn
from inlier._typing import Array, FloatArray
from inlier.exceptions import ParameterError
from inlier.rows import as_table
from inlier.transforms import SimilarityTransformation, Transformation

_FEWEST_POINTS = 100  # of a cloud
_MOST_POINTS = 4_000_000  # of a cloud that are kept as they are; of more, every so many
_ROUNDED = 1e-3  # what R^T R of a written matrix may differ from a multiple of I


def as_motion(given: Any, model: str) -> SimilarityTransformation:
    """A claimed motion, from an object or a 4 x 4 matrix that may be rounded; the nearest one of the model."""
    if isinstance(given, Transformation):
        matrix = given.matrix
    else:
        try:
            matrix = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError("transformation", "must be a matrix of 4 x 4 numbers, or a transformation.") from None
    if matrix.shape == (3, 4):  # without the last row, as some tools write it
        matrix = np.vstack([matrix, [0.0, 0.0, 0.0, 1.0]])
    if matrix.shape != (4, 4) or not np.isfinite(matrix).all() or not np.allclose(matrix[3], [0, 0, 0, 1], atol=1e-9):
        raise ParameterError(
            "transformation",
            f"must be a 4 x 4 matrix [[R, t], [0, 0, 0, 1]] of finite numbers, target = R source + t; its shape is "
            f"{matrix.shape}" + (f" and its last row {matrix[3].tolist()}." if matrix.shape == (4, 4) else "."),
        )
    linear = matrix[:3, :3]
    left, stretch, right = np.linalg.svd(linear)
    scale = float(stretch.mean())
    if scale == 0 or np.abs(stretch / scale - 1).max() > _ROUNDED:
        raise ParameterError(
            "transformation",
            f"must turn and move, but stretches by {stretch[-1]:.4g} to {stretch[0]:.4g}. Is it the motion itself, "
            f"written with enough digits?",
        )
    if np.linalg.det(linear) < 0:
        raise ParameterError("transformation", "mirrors, which no motion of a scan does. Is a sign or an axis wrong?")
    if model == "rigid" and abs(scale - 1) > _ROUNDED:
        raise ParameterError(
            "transformation",
            f"scales by {scale:.4g}, which a rigid motion does not; the model that scales is similarity.",
        )
    return SimilarityTransformation(left @ right, matrix[:3, 3], 1.0 if model == "rigid" else scale, model=model)


def points_of(data: Any, name: str) -> Any:
    """The points of a cloud or a surface of another library, of a camera's grid, or of an array with fields."""
    if isinstance(data, (str, bytes, PathLike)):
        raise ParameterError(
            name, f"is the name of a file, {data!r}. Read it first: inlier.io.read_table({data!r}).values."
        )
    if not hasattr(data, "columns") and not isinstance(data, np.ndarray):  # a frame may have a column of that name
        data = next((getattr(data, part) for part in ("points", "vertices") if hasattr(data, part)), data)
        positions: Any = getattr(data, "point", ())  # of tensors, by name
        if "positions" in positions:
            data = np.asarray(positions["positions"].numpy())
    fields = getattr(getattr(data, "dtype", None), "names", None)
    if fields is not None:
        if not set("xyz") <= set(fields):
            raise ParameterError(name, f"has the fields {', '.join(fields)}, and x, y and z are needed.")
        return np.stack([data[axis].reshape(-1) for axis in "xyz"], axis=1)
    if getattr(data, "ndim", 2) == 3 and data.shape[2] == 3:  # a grid of points, as depth cameras give it
        return data.reshape(-1, 3)
    return data


def read_cloud(data: Any, name: str) -> FloatArray:
    """Return the points as float64, without those that have no place."""
    table: Array = as_table(points_of(data, name), name)
    if table.shape[1] != 3:
        raise ParameterError(
            name, f"must have three columns, x, y and z, but has shape {table.shape}. Leave other columns out."
        )
    points = np.asarray(table[:: max(1, len(table) // _MOST_POINTS)], dtype=np.float64)
    if not np.isfinite(points).all():
        is_finite = np.isfinite(points).all(axis=1)
        points = points[is_finite]
        warn(f"{np.count_nonzero(~is_finite):,} points of the {name} have NaN or infinity, and are left out.")
    if len(points) < _FEWEST_POINTS:
        raise ParameterError(
            name,
            f"has {len(points)} point{'' if len(points) == 1 else 's'}; it takes {_FEWEST_POINTS} or more to see what "
            f"surfaces look like.",
        )
    if float(np.abs(points).max()) > 1e100:
        raise ParameterError(name, "has coordinates above 1e100, whose squares are too large. Use another unit.")
    if not any(np.ptp(column) > 0 for column in points.T):
        raise ParameterError(name, f"has {len(points)} points, all of which are the same one.")
    return points
