"""A scan as it is given: a file, or whatever holds points; with colours and normals where it has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import FloatArray
from inlier.estimators._cloud_input import points_of, read_cloud
from inlier.exceptions import ParameterError, UnusableFileError
from inlier.io import Kind, column_names, format_of, read_columns, read_table
from inlier.rows import as_table

COLOURS, NORMALS = ("red", "green", "blue"), ("nx", "ny", "nz")
_ALSO = (*COLOURS, "intensity")
_OTHER_NAMES = dict(zip(("normal_x", "normal_y", "normal_z"), NORMALS, strict=True))
_SPLAT = {"scale_0", "rot_0", "opacity"}  # columns of a file of Gaussian splats


@dataclass(frozen=True, eq=False)
class Scan:
    """One scan; what is in a file is read when it is needed, and not kept."""

    name: str
    given: Any

    @property
    def is_file(self) -> bool:
        """Whether it is the name of a file."""
        return isinstance(self.given, (str, PathLike))

    def points(self) -> FloatArray:
        """The points that have a place."""
        if not self.is_file:
            return read_cloud(self.given, self.name)
        return read_cloud(self._of_file(), self.name)

    def _of_file(self) -> FloatArray:
        path = Path(self.given)
        if path.suffix.lower() == ".ply" and set(column_names(path)) >= _SPLAT:
            raise UnusableFileError(
                f"{path} holds Gaussian splats, whose shapes would have to be turned as well. Export their centres as "
                f"points (ply with x, y and z)."
            )
        values: FloatArray = read_table(self.given).values
        return values

    def columns(self) -> dict[str, FloatArray]:
        """The points with a place as x, y and z, and what else a merged cloud keeps, by name."""
        if self.is_file:
            points, also = self._of_file(), self._also_in_file()
        else:
            points, also = np.asarray(as_table(points_of(self.given, self.name), self.name)), _also_in(self.given)
        is_there = np.isfinite(points).all(axis=1)
        columns = dict(zip("xyz", points.astype(np.float64).T, strict=True))
        columns |= {name: column for name, column in also.items() if len(column) == len(points)}
        return {name: np.asarray(column, dtype=np.float64)[is_there] for name, column in columns.items()}

    def _also_in_file(self) -> dict[str, FloatArray]:
        """Colours and normals of files that name their columns."""
        path = Path(self.given)
        if format_of(path).kind not in (Kind.POINTS, Kind.COLUMNS) or path.suffix.lower() in (".gii", ".xyz"):
            return {}
        names = {name: _OTHER_NAMES.get(name, name) for name in column_names(path)}
        wanted = {name: plain for name, plain in names.items() if plain in (*_ALSO, *NORMALS)}
        found = read_columns(path, list(wanted)) if wanted else {}
        return {wanted[name]: column for name, column in found.items() if column.dtype.kind in "fiub"}


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


def scans_of(given: Any, names: Sequence[str] | None = None) -> list[Scan]:
    """The scans that are given: things that hold points or name files, or one folder or pattern of files."""
    if isinstance(given, (str, PathLike)):
        given = files_of([given])
    elif not isinstance(given, Iterable) or hasattr(given, "points") or hasattr(given, "vertices"):
        raise ParameterError("scans", "must be a list of scans, or the name of a folder of them.")
    given = list(given)
    if names is not None and len(names) != len(given):
        raise ParameterError("names", f"must be one for each of the {len(given)} scans, but there are {len(names)}.")
    usual = [str(one) if isinstance(one, (str, PathLike)) else f"scan {k}" for k, one in enumerate(given)]
    return [Scan(name, one) for name, one in zip(names or usual, given, strict=True)]


def files_of(given: Sequence[str | PathLike[str]]) -> list[str]:
    """The files that names, folders and patterns stand for; of a folder those that hold points."""
    files: list[str] = []
    for one in map(Path, given):
        if one.is_dir() and one.suffix.lower() != ".zarr":
            found = [path for path in sorted(one.iterdir()) if path.is_file() and _holds_points(path)]
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


def _holds_points(path: Path) -> bool:
    try:
        return format_of(path).kind is Kind.POINTS and not path.name.startswith(".")
    except UnusableFileError:
        return False
