"""Clouds and surfaces as scanners and modellers write them: KITTI's bin, pts, obj, stl and e57. Read, not written."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.exceptions import UnusableFileError
from inlier.io.formats import XYZ, ReadOnly, load
from inlier.io.limits import check_unpacked_size
from inlier.io.table import Content, Request

_BYTES_A_POINT = 16  # of KITTI: x, y, z and intensity as float32
_FARTHEST = 1e4  # metres that a laser sees, by a wide margin
_STL_HEAD, _STL_TRIANGLE = 84, 50  # bytes
_E57_NAMES = {
    **{f"cartesian{axis.upper()}": axis for axis in XYZ},
    **{"intensity": "intensity", "colorRed": "red", "colorGreen": "green", "colorBlue": "blue"},
}
_LINES_AT_A_TIME = 4096
_CURE = "save the points as npy"
_AS_NPY = "If it is something else, save it as npy."


class Kitti(ReadOnly):
    """Points of a laser as KITTI has them: x, y, z and intensity in turn, float32, and nothing else."""

    def names(self, path: Path) -> list[str]:
        return [*XYZ, "intensity"]

    def read(self, request: Request) -> Content:
        size = request.path.stat().st_size
        if size % _BYTES_A_POINT:
            raise UnusableFileError(
                f"{request.path} is {size:,} bytes long, no multiple of 16, as KITTI's points are. {_AS_NPY}"
            )
        check_unpacked_size(request.path, size, _CURE)
        points = np.fromfile(request.path, dtype="<f4").reshape(-1, 4)
        if not np.isfinite(points).all() or np.abs(points[:, :3]).max() > _FARTHEST:
            raise UnusableFileError(
                f"{request.path} holds numbers that are no points of a laser in metres (x, y, z, intensity). {_AS_NPY}"
            )
        return dict(zip(self.names(request.path), points.T, strict=True))


class Pts(ReadOnly):
    """A point in each line, x, y, z and what else there is; in the first, or not, how many there are."""

    def read(self, request: Request) -> Content:
        rows: list[FloatArray] = []
        announced = None
        for number, fields in _lines(request.path):
            if number == 1 and len(fields) == 1 and fields[0].isdigit():
                announced = int(fields[0])
                continue
            rows.append(_numbers(fields, number, request.path))
            if rows[-1].size < 3 or rows[-1].size != rows[0].size:
                raise UnusableFileError(
                    f"line {number} of {request.path} has {rows[-1].size} numbers, the first point has {rows[0].size}; "
                    f"each needs x, y and z. Mend it, or copy the file again."
                )
            _check_room(request.path, len(rows), rows[0].size)
        if not rows or announced not in (None, len(rows)):
            raise UnusableFileError(
                f"{request.path} announces {announced or 0:,} points and holds {len(rows):,}. Copy it again, or write "
                f"it without the number in its first line."
            )
        names = [*XYZ, *("intensity", "red", "green", "blue")][: rows[0].size]
        names += map(str, range(len(names), rows[0].size))
        return dict(zip(names, np.array(rows).T, strict=True))


class Obj(ReadOnly):
    """The vertices of a surface: the lines that begin with v."""

    def read(self, request: Request) -> Content:
        vertices: list[FloatArray] = []
        for number, fields in _lines(request.path):
            if fields[0] == b"v":
                vertices.append(_numbers(fields[1:4], number, request.path))
                if vertices[-1].size != 3:
                    raise UnusableFileError(f"line {number} of {request.path} is a vertex without x, y and z. Mend it.")
                _check_room(request.path, len(vertices), 3)
        if not vertices:
            raise UnusableFileError(f"{request.path} holds no vertex (no line that begins with v). {_AS_NPY}")
        return dict(zip(XYZ, np.array(vertices).T, strict=True))


class Stl(ReadOnly):
    """The corners of triangles, binary or text, each place once."""

    def read(self, request: Request) -> Content:
        size = request.path.stat().st_size
        check_unpacked_size(request.path, size, _CURE)
        with request.path.open("rb") as stream:
            head = stream.read(_STL_HEAD)
        n = struct.unpack_from("<I", head, 80)[0] if len(head) == _STL_HEAD else -1
        is_text = head.lstrip().startswith(b"solid") and size != _STL_HEAD + _STL_TRIANGLE * n
        corners = self._of_text(request.path) if is_text else self._of_bytes(request.path, n, size)
        if not len(corners):
            raise UnusableFileError(f"{request.path} holds no triangle. Write it again.")
        places, first = np.unique(corners, axis=0, return_index=True)
        return dict(zip(XYZ, places[np.argsort(first)].T, strict=True))

    @staticmethod
    def _of_bytes(path: Path, n: int, size: int) -> Array:
        if n < 0 or size != _STL_HEAD + _STL_TRIANGLE * n:
            raise UnusableFileError(
                f"{path} announces {max(n, 0):,} triangles and is {size:,} bytes long. Copy it again."
            )
        triangle = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
        return np.fromfile(path, dtype=triangle, offset=_STL_HEAD)["corners"].reshape(-1, 3)

    @staticmethod
    def _of_text(path: Path) -> Array:
        corners = [_numbers(fields[1:4], number, path) for number, fields in _lines(path) if fields[0] == b"vertex"]
        if any(corner.size != 3 for corner in corners):
            raise UnusableFileError(f"{path} has a vertex without x, y and z. Mend it, or copy the file again.")
        return np.array(corners).reshape(-1, 3)


class E57(ReadOnly):
    """The points of a laser scanner's file; of several scans in one, all, where the file says that they lie."""

    def read(self, request: Request) -> Content:
        check_unpacked_size(request.path, request.path.stat().st_size, _CURE)
        try:
            file = load("pye57", "e57").E57(str(request.path))
            asked = {"ignore_missing_fields": True, "colors": True, "intensity": True}
            scans = [file.read_scan(k, **asked) for k in range(file.scan_count)]
        except (RuntimeError, ValueError, KeyError) as error:
            raise UnusableFileError(f"{request.path} could not be read as e57: {error}. Copy it again.") from error
        if not scans:
            raise UnusableFileError(f"{request.path} holds no scan. Write it again.")
        there = [name for name in _E57_NAMES if all(name in scan for scan in scans)]
        return {_E57_NAMES[name]: np.concatenate([scan[name] for scan in scans]) for name in there}


def _lines(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Numbers and fields of the lines that are not blank."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            fields = line.split()
            if fields and not fields[0].startswith(b"#"):
                yield number, fields


def _numbers(fields: list[bytes], number: int, path: Path) -> FloatArray:
    try:
        return np.array([float(field) for field in fields])
    except ValueError:
        raise UnusableFileError(f"line {number} of {path} holds something else than numbers. Mend it.") from None


def _check_room(path: Path, n_rows: int, width: int) -> None:
    if n_rows % _LINES_AT_A_TIME == 0:
        check_unpacked_size(path, n_rows * (128 + 8 * width), _CURE)
