"""ply, pcd, las and laz: points with x, y, z and whatever else was measured."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.io.extras import load
from inlier.io.limits import check_unpacked_size
from inlier.io.table import Content, Request, UnusableFileError

XYZ = ("x", "y", "z")
_HEAD_BYTES = 8192
_LAS_STEPS = 2**30  # a coordinate is a whole number of steps in 32 bits; half of them leave room


def read_ply(request: Request) -> Content:
    """Read the properties of the vertices."""
    ply = load("plyfile", "ply").PlyData.read(str(request.path), mmap=False)
    names = [element.name for element in ply.elements]
    if "vertex" not in names:
        raise UnusableFileError(f"{request.path} has no vertices; it has {', '.join(names) or 'no elements'}.")
    data = ply["vertex"].data
    return {name: np.asarray(data[name]) for name in data.dtype.names}


def write_ply(path: Path, content: Content) -> None:
    """Write points as the vertices of a binary ply file."""
    plyfile = load("plyfile", "ply")
    rows = _structured(path, content)
    plyfile.PlyData([plyfile.PlyElement.describe(rows, "vertex")]).write(str(path))


def read_pcd(request: Request) -> Content:
    """Read a pcd file, ascii, binary or compressed."""
    path = request.path
    check_unpacked_size(path, _declared_pcd_bytes(path), "convert it to binary pcd")
    cloud = load("pypcd4", "pcd").PointCloud.from_path(path)
    rows = np.atleast_1d(cloud.pc_data)
    if len(rows) != cloud.metadata.points:
        raise UnusableFileError(
            f"{path} was cut short: it announces {cloud.metadata.points:,} points and holds {len(rows):,}. "
            f"Copy or save it again."
        )
    return {name: np.asarray(rows[name]) for name in rows.dtype.names or ()}


def write_pcd(path: Path, content: Content) -> None:
    """Write points as a binary pcd file."""
    rows = _structured(path, content)
    names = list(rows.dtype.names or ())
    types = [rows.dtype[name].type for name in names]
    load("pypcd4", "pcd").PointCloud.from_points([rows[name] for name in names], names, types).save(path)


def read_las(request: Request) -> Content:
    """Read a las or laz file; x, y, z are in its units, with scale and offset applied."""
    laspy = load("laspy", "las")
    with laspy.open(request.path) as reader:
        header = reader.header
        check_unpacked_size(request.path, header.point_count * header.point_format.size, "thin it")
        cloud = reader.read()
    if len(cloud.points) != header.point_count:
        raise UnusableFileError(
            f"{request.path} was cut short: it announces {header.point_count:,} points and holds "
            f"{len(cloud.points):,}. Copy or save it again."
        )
    others = [name for name in cloud.point_format.dimension_names if name not in ("X", "Y", "Z")]
    wanted = [name for name in (*XYZ, *others) if request.columns is None or name in request.columns]
    return {name: np.asarray(cloud[name]) for name in wanted or XYZ}


def write_las(path: Path, content: Content) -> None:
    """Write points as las or laz; coordinates are rounded to a billionth of their range."""
    laspy = load("laspy", "las")
    columns = _columns(path, content)
    header = laspy.LasHeader(point_format=6, version="1.4")
    points = np.stack([np.asarray(columns[name], dtype=np.float64) for name in XYZ], axis=1)
    header.scales, header.offsets = las_scaling(points)
    standard = set(header.point_format.dimension_names)
    for name in columns:
        if name not in (*XYZ, *standard):
            header.add_extra_dim(laspy.ExtraBytesParams(name=name, type=np.asarray(columns[name]).dtype))
    cloud = laspy.LasData(header)
    cloud.x, cloud.y, cloud.z = points.T
    for name in columns:
        if name not in XYZ:
            cloud[name] = columns[name]
    cloud.write(str(path))


def las_scaling(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Finest steps that hold these coordinates in 32 bits, and the offsets to count them from."""
    steps = np.maximum(np.ptp(points, axis=0) / 2, np.finfo(np.float32).tiny) / _LAS_STEPS
    return steps, (points.min(axis=0) + points.max(axis=0)) / 2


def _declared_pcd_bytes(path: Path) -> int:
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    mark = b"DATA binary_compressed"
    start = head.find(b"\n", head.find(mark)) + 1 if mark in head else 0
    return int(struct.unpack("<II", head[start : start + 8])[1]) if start and len(head) >= start + 8 else 0


def _columns(path: Path, content: Content) -> dict[str, Array]:
    if not isinstance(content, np.ndarray):
        columns = {name: np.asarray(column) for name, column in content.items()}
        if not set(XYZ) <= set(columns):
            raise UnusableFileError(f"{path} needs columns x, y and z; there are {', '.join(columns)}.")
        return columns
    if content.ndim != 2 or content.shape[1] != 3:
        raise UnusableFileError(f"{path} holds points of three coordinates, but the array has shape {content.shape}.")
    return dict(zip(XYZ, content.T, strict=True))


def _structured(path: Path, content: Content) -> Array:
    """Columns side by side in one record a point."""
    columns = _columns(path, content)
    types = [(name, _portable_type(column)) for name, column in columns.items()]
    rows = np.empty(len(columns["x"]), dtype=types)
    for name, column in columns.items():
        rows[name] = column
    return rows


def _portable_type(column: Array) -> Any:
    """A type that ply and pcd know: no whole numbers of 64 bits, no truth values."""
    if column.dtype.kind == "b":
        return np.uint8
    if column.dtype.kind in "iu" and column.dtype.itemsize == 8:
        limits = np.iinfo(np.int32)
        fits = column.size == 0 or (limits.min <= column.min() and column.max() <= limits.max)
        return np.int32 if fits else np.float64
    return column.dtype if column.dtype.kind in "iu" or column.dtype.itemsize in (4, 8) else np.float32
