"""Put new coordinates into a copy of a file, and keep the rest of it: faces, colours, times, intensities."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.io.atomic import written_beside
from inlier.io.extras import load
from inlier.io.formats import format_of, write_table
from inlier.io.point_clouds import XYZ, las_scaling
from inlier.io.table import Table, UnusableFileError

Rewriter = Callable[[Path, Path, FloatArray, FloatArray | None], None]


def write_like(table: Table, path: str | Path, values: Array, rotation: Any = None) -> None:
    """Write new values for a table that was read; a point cloud keeps whatever else its file holds.

    Parameters
    ----------
    table : Table
        As `read_table` returned it.
    path : str or Path
        Where to write. With the suffix of the table's own file the rest of that file is kept: faces and colours of
        ply, every field of pcd, las and laz, the triangles of gifti. Otherwise only the values are written.
    values : ndarray of shape (n, d)
        In place of ``table.values``.
    rotation : ndarray of shape (3, 3), optional
        Turns the normals of ply and pcd, which would otherwise point where they did before.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from inlier.io import read_table, write_like, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     here, there = Path(folder) / "here.ply", Path(folder) / "there.ply"
    ...     write_table(here, {"x": [0.0], "y": [0.0], "z": [1.0], "red": [255]})
    ...     cloud = read_table(here)
    ...     write_like(cloud, there, cloud.values + 10)
    ...     read_table(there, columns=["x", "y", "z", "red"]).values.tolist()
    [[10.0, 10.0, 11.0, 255.0]]
    """
    path, values = Path(path), np.asarray(values)
    if values.ndim != 2 or len(values) != len(table):
        raise UnusableFileError(
            f"{path} was to get {len(table):,} rows like {table.source}, but the values have shape {values.shape}."
        )
    rewrite = _REWRITERS.get(format_of(path).name) if format_of(path) is format_of(table.source) else None
    if rewrite is not None and table.columns == XYZ and values.shape[1] == 3:
        with written_beside(path) as beside:
            rewrite(table.source, beside, values, None if rotation is None else np.asarray(rotation))
    elif table.columns is not None and len(table.columns) == values.shape[1]:
        write_table(path, dict(zip(table.columns, values.T, strict=True)))
    else:
        write_table(path, values)


def _rewrite_ply(source: Path, path: Path, points: FloatArray, rotation: FloatArray | None) -> None:
    ply = load("plyfile", "ply").PlyData.read(str(source), mmap=False)
    _replace(ply["vertex"].data, points, ("nx", "ny", "nz"), rotation)
    ply.write(str(path))


def _rewrite_pcd(source: Path, path: Path, points: FloatArray, rotation: FloatArray | None) -> None:
    cloud = load("pypcd4", "pcd").PointCloud.from_path(source)
    cloud.pc_data = np.atleast_1d(cloud.pc_data).copy()
    _replace(cloud.pc_data, points, ("normal_x", "normal_y", "normal_z"), rotation)
    cloud.save(path, cloud.metadata.data)


def _rewrite_las(source: Path, path: Path, points: FloatArray, rotation: FloatArray | None) -> None:
    cloud = load("laspy", "las").read(str(source))
    scales, offsets = las_scaling(points)
    # Not change_scaling: it would also convert the old coordinates, which need not fit the new steps.
    cloud.points.scales = cloud.header.scales = np.maximum(scales, cloud.header.scales)
    cloud.points.offsets = cloud.header.offsets = offsets
    cloud.x, cloud.y, cloud.z = points.T
    cloud.write(str(path))


def _rewrite_gifti(source: Path, path: Path, points: FloatArray, rotation: FloatArray | None) -> None:
    image = load("nibabel", "gifti").load(source)
    image.get_arrays_from_intent("NIFTI_INTENT_POINTSET")[0].data = np.ascontiguousarray(points, dtype=np.float32)
    image.to_filename(path)


_REWRITERS: dict[str, Rewriter] = {
    "ply": _rewrite_ply,
    "pcd": _rewrite_pcd,
    "las": _rewrite_las,
    "gifti": _rewrite_gifti,
}


def _replace(rows: Array, points: FloatArray, normals: tuple[str, ...], rotation: FloatArray | None) -> None:
    for name, column in zip(XYZ, points.T, strict=True):
        rows[name] = column
    if rotation is not None and set(normals) <= set(rows.dtype.names or ()):
        turned = np.stack([rows[name] for name in normals], axis=1) @ rotation.T
        for name, column in zip(normals, turned.T, strict=True):
            rows[name] = column
