"""ply, pcd, las and laz: points with x, y, z and whatever else was measured."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import partial
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.exceptions import UnusableFileError
from inlier.io.formats import XYZ, CloudCodec, load
from inlier.io.limits import check_unpacked_size, most_unpacked_bytes, survives
from inlier.io.table import Content, Request

_SPLAT = {"scale_0", "rot_0", "opacity"}  # columns of a file of Gaussian splats
_HEAD_BYTES = 65536
_MOST_FIELDS = 65536  # numbers of a point
_PER_LIST = 128  # bytes that a row with a list takes once it is read
_PATIENCE, _SLOWEST = 3, 2 * 1024**2  # seconds of work, and bytes a second, that a sound laz file may take
_SPARE = 512 * 1024**2  # bytes of memory that libraries may take for themselves
_UNPACK_PCD, _UNPACK_LAS = "convert it to binary pcd", "thin it"
_PLY_TYPES = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4"},
    **{"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4", "float32": "f4"},
    **{"double": "f8", "float64": "f8"},
}
_PLY_NAMES = {code: name for name, code in reversed(_PLY_TYPES.items()) if not name[-1].isdigit()}
_LAS_STEPS = 2**30  # a coordinate is a whole number of steps in 32 bits; half of them leave room


class Ply(CloudCodec):
    """Points as the vertices of a ply file, text or binary."""

    def read(self, request: Request) -> Content:
        """Read the vertices; where lists stand before or among them, by plyfile."""
        path = request.path
        _check_ply(path)
        elements, kind, start = _ply_header(path)
        if "vertex" not in elements:
            raise UnusableFileError(f"{path} has no vertices; it has {', '.join(elements) or 'no elements'}.")
        before = list(elements)[: list(elements).index("vertex") + 1]
        if any(elements[name][1] is None for name in before):
            data = load("plyfile", "ply").PlyData.read(str(path), mmap=False)["vertex"].data
        else:
            data = _ply_vertices(path, kind, start, [elements[name] for name in before])
        return {name: np.asarray(data[name]) for name in data.dtype.names}

    def write(self, path: Path, content: Content) -> None:
        rows = _records(path, content)
        names = rows.dtype.names or ()
        lines = [f"property {_PLY_NAMES[rows.dtype[name].str[1:]]} {name}" for name in names]
        head = ["ply", "format binary_little_endian 1.0", f"element vertex {len(rows)}", *lines, "end_header", ""]
        little = rows.dtype.newbyteorder("<")
        path.write_bytes("\n".join(head).encode() + np.ascontiguousarray(rows.astype(little)).tobytes())

    def rewrite(self, source: Path, path: Path, points: FloatArray, rotation: FloatArray | None) -> None:
        """Keep faces, colours and comments."""
        ply = load("plyfile", "ply").PlyData.read(str(source), mmap=False)
        check_no_splats(source, ply["vertex"].data.dtype.names)
        _replace(ply["vertex"].data, points, ("nx", "ny", "nz"), rotation)
        ply.write(str(path))


class Pcd(CloudCodec):
    """A pcd file, ascii, binary or compressed."""

    def read(self, request: Request) -> Content:
        """Read ascii and binary; compressed ones by pypcd4."""
        path = request.path
        _check_pcd(path)
        words, start = _pcd_header(path)
        if "compressed" in words.get("DATA", [""])[0]:
            cloud = load("pypcd4", "compressed pcd").PointCloud.from_path(path)
            rows, announced = np.atleast_1d(cloud.pc_data), cloud.metadata.points
        else:
            rows, announced = _pcd_points(path, words, start)
        _check_whole(path, announced, len(rows))
        return {name: np.asarray(rows[name]) for name in rows.dtype.names or ()}

    def write(self, path: Path, content: Content) -> None:
        rows = _records(path, content)
        names = rows.dtype.names or ()
        types = [rows.dtype[name] for name in names]
        head = [
            "# .PCD v0.7 - Point Cloud Data file format",
            "VERSION 0.7",
            f"FIELDS {' '.join(names)}",
            f"SIZE {' '.join(str(kind.itemsize) for kind in types)}",
            f"TYPE {' '.join(kind.kind.upper() for kind in types)}",
            f"COUNT {' '.join('1' for _ in types)}",
            f"WIDTH {len(rows)}",
            "HEIGHT 1",
            "VIEWPOINT 0 0 0 1 0 0 0",
            f"POINTS {len(rows)}",
            "DATA binary",
            "",
        ]
        little = rows.dtype.newbyteorder("<")
        path.write_bytes("\n".join(head).encode() + np.ascontiguousarray(rows.astype(little)).tobytes())

    def rewrite(self, source: Path, path: Path, points: FloatArray, rotation: FloatArray | None) -> None:
        """Keep every field, and the encoding."""
        cloud = load("pypcd4", "pcd").PointCloud.from_path(source)
        cloud.pc_data = np.atleast_1d(cloud.pc_data).copy()
        _replace(cloud.pc_data, points, ("normal_x", "normal_y", "normal_z"), rotation)
        cloud.save(path, cloud.metadata.data)


class Las(CloudCodec):
    """A las or laz file; x, y, z are in its units, with scale and offset applied."""

    def read(self, request: Request) -> Content:
        _check_las(request.path)
        laspy = load("laspy", "las")
        with laspy.open(request.path, laz_backend=_laz_backend(laspy)) as reader:
            header = reader.header
            check_unpacked_size(request.path, header.point_count * header.point_format.size, "thin it")
            cloud = reader.read()
        _check_whole(request.path, header.point_count, len(cloud.points))
        others = [name for name in cloud.point_format.dimension_names if name not in ("X", "Y", "Z")]
        wanted = [name for name in (*XYZ, *others) if request.columns is None or name in request.columns]
        return {name: np.asarray(cloud[name]) for name in wanted or XYZ}

    def write(self, path: Path, content: Content) -> None:
        """Write points; coordinates are rounded to a billionth of their range."""
        laspy = load("laspy", "las")
        columns = _columns(path, content)
        header = laspy.LasHeader(point_format=6, version="1.4")
        points = np.stack([np.asarray(columns[name], dtype=np.float64) for name in XYZ], axis=1)
        header.scales, header.offsets = _las_scaling(points)
        others = [name for name in columns if name not in XYZ]
        standard = set(header.point_format.dimension_names)
        for name in others:
            if name not in standard:
                header.add_extra_dim(laspy.ExtraBytesParams(name=name, type=columns[name].dtype))
        cloud = laspy.LasData(header)
        cloud.x, cloud.y, cloud.z = points.T
        for name in others:
            cloud[name] = columns[name]
        cloud.write(str(path))

    def rewrite(self, source: Path, path: Path, points: FloatArray, rotation: FloatArray | None) -> None:
        """Keep every dimension; the steps of the coordinates grow if the points need it."""
        laspy = load("laspy", "las")
        cloud = laspy.read(str(source), laz_backend=_laz_backend(laspy))
        scales, offsets = _las_scaling(points)
        # Not change_scaling: it would also convert the old coordinates, which need not fit the new steps.
        cloud.points.scales = cloud.header.scales = np.maximum(scales, cloud.header.scales)
        cloud.points.offsets = cloud.header.offsets = offsets
        cloud.x, cloud.y, cloud.z = points.T
        cloud.write(str(path))


def check_no_splats(path: Path, names: Iterable[str]) -> None:
    """Refuse points that have a shape of their own, which nobody turns here."""
    if set(names) >= _SPLAT:
        raise UnusableFileError(
            f"{path} holds Gaussian splats, whose shapes would have to be turned as well. Export their centres as "
            f"points (ply with x, y and z)."
        )


def _check_whole(path: Path, announced: int, there: int) -> None:
    if there != announced:
        raise UnusableFileError(
            f"{path} was cut short: it announces {announced:,} points and holds {there:,}. Copy or save it again."
        )


def _replace(rows: Array, points: FloatArray, normals: tuple[str, ...], rotation: FloatArray | None) -> None:
    for name, column in zip(XYZ, points.T, strict=True):
        rows[name] = column
    if rotation is not None and set(normals) <= set(rows.dtype.names or ()):
        turned = np.stack([rows[name] for name in normals], axis=1) @ rotation.T
        for name, column in zip(normals, turned.T, strict=True):
            rows[name] = column


def _las_scaling(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Finest steps that hold these coordinates in 32 bits, and the offsets to count them from."""
    steps = np.maximum(np.ptp(points, axis=0) / 2, np.finfo(np.float32).tiny) / _LAS_STEPS
    return steps, (points.min(axis=0) + points.max(axis=0)) / 2


_Element = tuple[int, "np.dtype[Any] | None"]  # how many rows, and what each holds; None where lists are among it


def _ply_header(path: Path) -> tuple[dict[str, _Element], str, int]:
    """Elements by name, the kind of file, and where the data starts."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    end = head.find(b"end_header")
    start = head.find(b"\n", end) + 1 if b"\n" in head[:end] else head.find(b"\r", end) + 1
    if end < 0 or start == 0:
        raise UnusableFileError(f"{path} has no end_header. It may be damaged or cut short; copy or save it again.")
    kind, elements, fields = "ascii", dict[str, _Element](), list[tuple[str, str]]()
    name, count, has_lists = "", 0, False
    for line in [*head[:end].decode("ascii", "replace").splitlines(), "element"]:
        words = line.split()
        if words[:1] == ["format"] and len(words) > 1:
            kind = words[1]
        elif words[:1] == ["element"]:
            if name:
                elements[name] = count, None if has_lists else np.dtype(fields)
            fields, has_lists = [], False
            name, count = (words[1], int(words[2])) if len(words) == 3 else ("", 0)
        elif words[:2] == ["property", "list"]:
            has_lists = True
        elif words[:1] == ["property"]:
            fields.append((words[2], _PLY_TYPES[words[1]]))
    if kind not in ("ascii", "binary_little_endian", "binary_big_endian"):
        raise UnusableFileError(f"{path} is of the format {kind[:40]!r}, which ply does not have. Save it again.")
    return elements, kind, start


def _ply_vertices(path: Path, kind: str, start: int, elements: list[_Element]) -> Array:
    """Rows of the last of these elements, which follow each other."""
    *before, (count, dtype) = elements
    assert dtype is not None
    with path.open("rb") as stream:
        stream.seek(start)
        if kind == "ascii":
            for _ in range(sum(number for number, _ in before)):
                stream.readline()
            return _text_rows(stream, count, dtype, path)
        here = dtype.newbyteorder("<" if "little" in kind else ">")
        stream.seek(start + sum(number * kind_of.itemsize for number, kind_of in before if kind_of is not None))
        return _binary_rows(stream.read(count * dtype.itemsize), count, here, path)


def _binary_rows(data: bytes, count: int, dtype: np.dtype[Any], path: Path) -> Array:
    _check_whole(path, count, len(data) // dtype.itemsize if dtype.itemsize else 0)
    rows = np.frombuffer(data, dtype, count)
    return rows.astype(dtype.newbyteorder("="))


def _text_rows(stream: BinaryIO, count: int, dtype: np.dtype[Any], path: Path) -> Array:
    """Rows of numbers between blanks, each number as exact as a float64 holds it, in the types that were announced."""
    columns = [np.empty(count, dtype=np.float64) for _ in dtype.names or ()]
    n_read = 0
    for line in islice(stream, count):
        fields = line.split()
        if len(fields) != len(columns):
            break
        for column, field in zip(columns, fields, strict=True):
            column[n_read] = float(field)
        n_read += 1
    _check_whole(path, count, n_read)
    with np.errstate(invalid="ignore"):
        converted = [column.astype(dtype[place]) for place, column in enumerate(columns)]
    return np.rec.fromarrays(converted, dtype=dtype)


def _pcd_header(path: Path) -> tuple[dict[str, list[str]], int]:
    """Lines of the header by their first word, and where the data starts."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    start = head.find(b"\n", head.find(b"\nDATA") + 1) + 1
    lines = [line.split() for line in head[:start].decode("utf-8", "replace").splitlines()]
    return {line[0]: line[1:] for line in lines if line}, start


def _pcd_points(path: Path, words: dict[str, list[str]], start: int) -> tuple[Array, int]:
    """Points of an ascii or binary pcd, and how many are announced; fields of several numbers are numbered."""
    counts = words.get("COUNT", ["1"] * len(words["FIELDS"]))
    fields: list[tuple[str, str]] = []
    for name, kind, size, count in zip(words["FIELDS"], words["TYPE"], words["SIZE"], counts, strict=True):
        code = f"<{kind.lower()}{size}"
        several = [f"{name}_{k:04d}" for k in range(int(count))] if int(count) != 1 else [name]
        fields += [(one if one != "_" else f"_{len(fields) + k}", code) for k, one in enumerate(several)]
    dtype, announced = np.dtype(fields), int(words.get("POINTS", words["WIDTH"])[0])
    with path.open("rb") as stream:
        stream.seek(start)
        if words.get("DATA", [""])[0] == "ascii":
            return _text_rows(stream, announced, dtype, path), announced
        return _binary_rows(stream.read(announced * dtype.itemsize), announced, dtype, path), announced


def _check_ply(path: Path) -> None:
    """Refuse a header that announces more than the file can hold: each number takes a byte or more, two in a text.

    Rows without any number would take nothing in a binary file, and for ever to read: they count as a byte each.
    """
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES).partition(b"end_header")[0]
    is_text, size, per_row, count, has_lists = b"ascii" in head, 0, 0, 0, False
    for line in [*head.splitlines(), b"element end 0"]:
        words = line.split()
        if words[:1] == [b"element"]:
            size += count * max(per_row, 1)
            check_unpacked_size(path, _PER_LIST * count * has_lists, "save its points alone")
            count, per_row, has_lists = (int(words[2]) if len(words) == 3 else 0), 0, False
        elif words[:1] == [b"property"]:
            has_lists |= words[1:2] == [b"list"]
            per_row += 2 if is_text else 1
        _check_announced(path, size + count * per_row)


def _check_announced(path: Path, n_bytes: int) -> None:
    """Refuse a file that would have to be longer than it is to hold what its header announces."""
    there = path.stat().st_size
    if n_bytes > there + 1:  # the last number of a text may end with the file
        raise UnusableFileError(
            f"{path} was cut short, or its header is wrong: it announces at least {n_bytes:,} bytes and has {there:,}. "
            f"Copy or save it again."
        )


def _check_pcd(path: Path) -> None:
    """Refuse a header that announces more than the file holds, or than is let through once it is unpacked."""
    words, start = _pcd_header(path)
    counts = [int(count) for count in words.get("COUNT", ["1"] * len(words.get("FIELDS", ())))]
    sizes = [int(size) for size in words.get("SIZE", ())]
    width = sum(count * size for count, size in zip(counts, sizes, strict=True))
    n_points = int(words.get("POINTS", ["0"])[0])
    n_points = max(n_points, prod(int(words.get(side, ["0"])[0]) for side in ("WIDTH", "HEIGHT")), 1)
    if min([n_points, *counts, *sizes], default=0) < 0 or sum(counts) > _MOST_FIELDS:
        raise UnusableFileError(f"{path} has a header with a number that cannot be. Save it again.")
    kind = " ".join(words.get("DATA", ["nothing"]))
    if kind not in ("ascii", "binary", "binary_compressed", "binaryscompressed"):  # the last is what pypcd4 writes
        raise UnusableFileError(f"{path} has a header that calls its data {kind[:40]!r}, which is no kind of pcd.")
    if "compressed" in kind:
        check_unpacked_size(path, n_points * width, _UNPACK_PCD)
        with path.open("rb") as stream:
            stream.seek(start)
            announced = struct.unpack("<II", stream.read(8).ljust(8, b"\0"))[1]
        check_unpacked_size(path, announced, _UNPACK_PCD)
    else:
        _check_announced(path, n_points * (2 * sum(counts) if kind == "ascii" else width))


def _check_las(path: Path) -> None:
    """Refuse a header whose counts cannot be: records, points and where they start lie within the file."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(375).ljust(375, b"\0")
    header_size, start, n_records = struct.unpack_from("<HII", head, 94)
    minor, form, length, few = head[25], head[104], *struct.unpack_from("<HI", head, 105)
    n_late, n_points = struct.unpack_from("<IQ", head, 243) if minor >= 4 else (0, few)
    is_packed = bool(form & 0xC0)
    _check_announced(path, max(start, header_size + 54 * n_records + 60 * n_late))
    if is_packed:
        check_unpacked_size(path, max(few, n_points) * length, _UNPACK_LAS)
        _check_laz_chunks(path, start, size)
        laspy = load("laspy", "las")
        read = partial(laspy.read, str(path), laz_backend=_laz_backend(laspy))
        if not survives(read, _PATIENCE + size / _SLOWEST, most_unpacked_bytes() + _SPARE):
            raise UnusableFileError(
                f"{path} is damaged: the library for laz does not come to an end with it. Copy or save it again."
            )
    else:
        _check_announced(path, start + max(few, n_points) * length)


def _laz_backend(laspy: Any) -> Any:
    """The one that starts no threads, so that it can be tried in a copy; what was tried is what reads."""
    return laspy.LazBackend.Lazrs


def _check_laz_chunks(path: Path, start: int, size: int) -> None:
    """Refuse a table of chunks that is not there, or has more entries than there is room for."""
    with path.open("rb") as stream:
        stream.seek(start)
        (table,) = struct.unpack("<q", stream.read(8).ljust(8, b"\0"))
        if table == -1:  # written to a stream, the place of the table comes last
            stream.seek(size - 8)
            (table,) = struct.unpack("<q", stream.read(8))
        if not start + 8 <= table <= size - 8:
            raise UnusableFileError(f"{path} was cut short: its table of chunks is missing. Copy or save it again.")
        stream.seek(table)
        _, n_chunks = struct.unpack("<II", stream.read(8))
    _check_announced(path, start + n_chunks)


def _columns(path: Path, content: Content) -> dict[str, Array]:
    if not isinstance(content, np.ndarray):
        if not set(XYZ) <= set(content):
            raise UnusableFileError(f"{path} needs columns x, y and z; there are {', '.join(content)}.")
        return dict(content)
    if content.ndim != 2 or content.shape[1] != 3:
        raise UnusableFileError(f"{path} holds points of three coordinates, but the array has shape {content.shape}.")
    return dict(zip(XYZ, content.T, strict=True))


def _records(path: Path, content: Content) -> Array:
    """Columns side by side in one record a point."""
    columns = _columns(path, content)
    types = np.dtype([(name, _portable_type(column)) for name, column in columns.items()])
    return np.rec.fromarrays(list(columns.values()), dtype=types)


def _portable_type(column: Array) -> Any:
    """A type that ply and pcd know: no whole numbers of 64 bits, no truth values."""
    if column.dtype.kind == "b":
        return np.uint8
    if column.dtype.kind in "iu" and column.dtype.itemsize == 8:
        limits = np.iinfo(np.int32)
        fits = column.size == 0 or (limits.min <= column.min() and column.max() <= limits.max)
        return np.int32 if fits else np.float64
    return column.dtype if column.dtype.kind in "iu" or column.dtype.itemsize in (4, 8) else np.float32
