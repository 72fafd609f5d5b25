"""A scan as it is given: a file, or whatever holds points; with colours and normals where it has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.estimators._cloud_input import points_of, read_cloud
from inlier.exceptions import ParameterError, UnusableFileError
from inlier.io import Kind, format_of, read_image, read_points, read_table
from inlier.io._cloud_files import check_no_splats
from inlier.rows import as_table

COLOURS, NORMALS = ("red", "green", "blue"), ("nx", "ny", "nz")
_ALSO = (*COLOURS, "intensity")
_OTHER_NAMES = dict(zip(("normal_x", "normal_y", "normal_z"), NORMALS, strict=True))
_MILLIMETRES = 1_000.0  # in a metre: what depth cameras count in


@dataclass(frozen=True, eq=False)
class Scan:
    """One scan; what is in a file is read when it is needed, and not kept."""

    name: str
    given: Any
    depth: tuple[float, ...] | None = None  # fx, fy, cx, cy and units in a metre, of images of depth

    @property
    def is_file(self) -> bool:
        """Whether it is the name of a file."""
        return isinstance(self.given, (str, PathLike))

    def points(self) -> FloatArray:
        """The points that have a place."""
        return read_cloud(self._of_file() if self.is_file else self._in_memory(), self.name)

    def _in_memory(self) -> Any:
        shape: tuple[int, ...] = getattr(self.given, "shape", ())
        is_image = (len(shape) == 2 and shape[1] > 3) or (len(shape) == 3 and shape[2] == 1)
        return seen_at(np.asarray(self.given), self.depth) if is_image and self.depth is not None else self.given

    def _of_file(self) -> FloatArray:
        path = Path(self.given)
        if format_of(path).kind is Kind.PICTURE:
            if self.depth is None:
                raise UnusableFileError(
                    f"{path} is a picture. If it holds depth, say how the camera saw: --depth fx,fy,cx,cy (in pixels), "
                    f"depth=(fx, fy, cx, cy) in Python."
                )
            return seen_at(read_image(path), self.depth)
        values: FloatArray = read_table(self.given).values
        if path.suffix.lower() == ".ply":
            check_no_splats(path, read_points(path))
        return values

    def columns(self) -> dict[str, FloatArray]:
        """The points with a place as x, y and z, and what else a merged cloud keeps, by name."""
        if self.is_file:
            points, also = self._of_file(), self._also_in_file()
        else:
            given = self._in_memory()
            points, also = np.asarray(as_table(points_of(given, self.name), self.name)), _also_in(self.given)
        is_there = np.isfinite(points).all(axis=1)
        columns = dict(zip("xyz", points.astype(np.float64).T, strict=True))
        columns |= {name: column for name, column in also.items() if len(column) == len(points)}
        return {name: np.asarray(column, dtype=np.float64)[is_there] for name, column in columns.items()}

    def _also_in_file(self) -> dict[str, FloatArray]:
        """Colours and normals of files that name their columns."""
        if format_of(Path(self.given)).kind is not Kind.POINTS:
            return {}
        found = {_OTHER_NAMES.get(name, name): column for name, column in read_points(self.given).items()}
        return {name: column for name, column in found.items() if name in (*_ALSO, *NORMALS)}


def _also_in(data: Any) -> dict[str, FloatArray]:
    """Colours and normals of an object, or of an array with fields."""
    fields = getattr(getattr(data, "dtype", None), "names", None) or ()
    found = {_OTHER_NAMES.get(name, name): data[name].reshape(-1) for name in fields}
    found = {name: column for name, column in found.items() if name in (*_ALSO, *NORMALS)}
    for part, names in (("colors", COLOURS), ("normals", NORMALS)):
        values = None if fields or isinstance(data, np.ndarray) else getattr(data, part, None)
        values = np.empty(0) if values is None or callable(values) else np.asarray(values)
        if values.ndim == 2 and values.shape[1] >= 3 and len(values):
            unit = 255.0 if part == "colors" and values.dtype.kind == "f" and values.max() <= 1 else 1.0
            found |= dict(zip(names, unit * values[:, :3].T, strict=True))
    return found


def seen_at(image: Array, depth: tuple[float, ...]) -> FloatArray:
    """The points that a pinhole camera saw, in metres; depth 0 is none.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.scans.scan import seen_at
    >>> seen_at(np.array([[0, 2000]]), (500, 500, 0.5, 0))
    array([[0.002, 0.   , 2.   ]])
    """
    fx, fy, cx, cy, *unit = depth
    z = np.asarray(image, dtype=np.float64).reshape(image.shape[:2])
    v, u = np.nonzero(np.isfinite(z) & (z > 0))
    far = z[v, u] / (unit[0] if unit else _MILLIMETRES if image.dtype.kind in "ui" else 1.0)
    return np.stack([(u - cx) / fx * far, (v - cy) / fy * far, far], axis=1)


def scans_of(given: Any, names: Sequence[str] | None = None, depth: Sequence[float] | None = None) -> list[Scan]:
    """The scans that are given: things that hold points or name files, or one folder or pattern of files."""
    if isinstance(given, (str, PathLike)):
        given = files_of([given], has_depth=depth is not None)
    elif not isinstance(given, Iterable) or hasattr(given, "points") or hasattr(given, "vertices"):
        raise ParameterError("scans", "must be a list of scans, or the name of a folder of them.")
    given = list(given)
    if depth is not None and (len(depth) not in (4, 5) or not all(np.isfinite(depth)) or 0 in (*depth[:2], *depth[4:])):
        raise ParameterError("depth", "must be fx, fy, cx and cy in pixels and, if it is not 1000, units in a metre.")
    if names is not None and len(names) != len(given):
        raise ParameterError("names", f"must be one for each of the {len(given)} scans, but there are {len(names)}.")
    usual = [str(one) if isinstance(one, (str, PathLike)) else f"scan {k}" for k, one in enumerate(given)]
    return [
        Scan(name, one, None if depth is None else tuple(depth))
        for name, one in zip(names or usual, given, strict=True)
    ]


def files_of(given: Sequence[str | PathLike[str]], *, has_depth: bool = False) -> list[str]:
    """The files that names, folders and patterns stand for; of a folder those that hold points, or depth."""
    files: list[str] = []
    for one in map(Path, given):
        if one.is_dir() and one.suffix.lower() != ".zarr":
            found = [path for path in sorted(one.iterdir()) if path.is_file() and _holds_points(path, has_depth)]
            if not found:
                raise UnusableFileError(f"{one} is a folder without a file of points (ply, pcd, las, bin, xyz, ...).")
        elif not one.exists() and any(sign in str(one) for sign in "*?["):
            root = Path(one.anchor) if one.anchor else Path()
            found = sorted(root.glob(str(one.relative_to(one.anchor) if one.anchor else one)))
            if not found:
                raise UnusableFileError(f"{one}: no file is named like that.")
        else:
            found = [one]
        files += [str(path) for path in found]
    return list(dict.fromkeys(files))


def _holds_points(path: Path, has_depth: bool) -> bool:
    try:
        kind = format_of(path).kind
        return kind is (Kind.PICTURE if has_depth else Kind.POINTS) and not path.name.startswith(".")
    except UnusableFileError:
        return False
