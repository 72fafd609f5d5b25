"""One cloud of many, thinned evenly: a point for each occupied cell, the mean of all that lie in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.scans.graph import Pose
from inlier.scans.scan import COLOURS, NORMALS

Columns = Mapping[str, FloatArray]


def merged(clouds: Iterable[tuple[Columns, Pose]], side: float) -> dict[str, Array]:
    """Thin one cloud after the other, so that no more than one is in memory, and then what is left of all.

    Colours and normals are kept where all clouds have them.
    """
    thinned = [thin_columns(_moved(columns, pose), side) for columns, pose in clouds]
    names = [name for name in thinned[0] if all(name in one for one in thinned)]
    together = thin_columns({name: np.concatenate([one[name] for one in thinned]) for name in names}, side)
    whole = {name: np.rint(together[name]) for name in COLOURS if name in together}
    types = {name: np.uint8 if column.max() <= 255 else np.uint16 for name, column in whole.items()}
    normals = {name: together[name].astype(np.float32) for name in NORMALS if name in together}
    return {**together, **normals, **{name: column.astype(types[name]) for name, column in whole.items()}}


def _moved(columns: Columns, pose: Pose) -> dict[str, FloatArray]:
    points = (np.stack([columns[axis] for axis in "xyz"], axis=1) - pose.origin) @ pose.rotation.T + pose.place
    moved = {**columns, **dict(zip("xyz", points.T, strict=True))}
    if set(columns).issuperset(NORMALS):
        normals = np.stack([columns[name] for name in NORMALS], axis=1) @ pose.rotation.T
        moved |= dict(zip(NORMALS, normals.T, strict=True))
    return moved


def thin_columns(columns: Columns, side: float) -> dict[str, FloatArray]:
    """The mean of each column over each occupied cell; normals, whose sign may differ, as axes of unit length."""
    numbers = np.zeros(len(columns["x"]), dtype=np.int64)
    for axis in "xyz":  # cells begin at the same places however often a cloud is thinned
        cells = np.floor(columns[axis] / side).astype(np.int64)
        cells -= cells.min()
        numbers = numbers * (cells.max() + 1) + cells
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    counts = np.diff(np.append(starts, numbers.size))
    sorted_ones = {name: np.asarray(column, dtype=np.float64)[order] for name, column in columns.items()}
    if set(columns).issuperset(NORMALS):
        normals = np.stack([sorted_ones[name] for name in NORMALS])
        normals *= np.where((normals * np.repeat(normals[:, starts], counts, axis=1)).sum(axis=0) < 0, -1.0, 1.0)
        sums = np.add.reduceat(normals, starts, axis=1)
        sums *= counts / np.maximum(np.linalg.norm(sums, axis=0), 1e-30)
    means: dict[str, FloatArray] = {
        name: np.add.reduceat(column, starts) / counts for name, column in sorted_ones.items()
    }
    if set(columns).issuperset(NORMALS):
        means |= dict(zip(NORMALS, sums / counts, strict=True))
    return means
