"""hdf5 and zarr: arrays by name, compressed or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.io.containers import choose_array
from inlier.io.extras import load
from inlier.io.limits import check_unpacked_size
from inlier.io.table import Content, Request, UnusableFileError

_CURE = "save the part you need as npy"


def read_hdf5(request: Request) -> Content:
    """Read the arrays of an hdf5 file; groups are parts of their names, as in ``group/array``."""
    h5py = load("h5py", "hdf5")
    found: dict[str, Any] = {}
    with h5py.File(request.path, "r") as file:
        file.visititems(lambda name, item: found.__setitem__(name, item) if isinstance(item, h5py.Dataset) else None)
        for name, item in found.items():
            _refuse_outside(item, name, request)
        return _chosen(found, request)


def read_zarr(request: Request) -> Content:
    """Read a zarr array, or the arrays of a zarr group."""
    zarr = load("zarr", "zarr")
    node = zarr.open(str(request.path), mode="r")
    if isinstance(node, zarr.Array):
        return _chosen({request.inside or "": node}, request)
    return _chosen(dict(_zarr_arrays(node)), request)


def stored_in_hdf5(request: Request) -> dict[str, Any]:
    """The datasets of an hdf5 file, unread; the file stays open as long as one of them is in use."""
    h5py = load("h5py", "hdf5")
    found: dict[str, Any] = {}
    file = h5py.File(request.path, "r")
    file.visititems(lambda name, item: found.__setitem__(name, item) if isinstance(item, h5py.Dataset) else None)
    for name, item in found.items():
        _refuse_outside(item, name, request)
    return found


def stored_in_zarr(request: Request) -> dict[str, Any]:
    """The arrays of a zarr folder, unread."""
    zarr = load("zarr", "zarr")
    node = zarr.open(str(request.path), mode="r")
    return {"": node} if isinstance(node, zarr.Array) else dict(_zarr_arrays(node))


def write_hdf5(path: Path, content: Content) -> None:
    """Write an array per column, or one called ``values``."""
    h5py = load("h5py", "hdf5")
    with h5py.File(path, "w") as file:
        for name, array in _named(content).items():
            is_text = np.asarray(array).dtype.kind == "U"
            file[name] = np.char.encode(array, "utf-8") if is_text else array


def write_zarr(path: Path, content: Content) -> None:
    """Write one array, or a group of one per column."""
    zarr = load("zarr", "zarr")
    if isinstance(content, np.ndarray):
        zarr.save_array(str(path), np.ascontiguousarray(content))
        return
    group = zarr.open_group(str(path), mode="w")
    for name, array in content.items():
        values = np.asarray(array)
        if values.dtype.kind == "U":  # zarr has no settled way to hold text of fixed length: bytes of UTF-8 do
            values = np.char.encode(values, "utf-8").view(np.uint8).reshape(len(values), -1)
            group.create_array(name, data=values).attrs["text"] = "utf-8"
        else:
            group.create_array(name, data=values)


def _named(content: Content) -> dict[str, Array]:
    return {"values": content} if isinstance(content, np.ndarray) else dict(content)


def _chosen(found: dict[str, Any], request: Request) -> Content:
    wanted = {name: item for name, item in found.items() if request.inside in (None, name) or name == request.key}
    check_unpacked_size(request.path, sum(item.size * item.dtype.itemsize for item in wanted.values()), _CURE)
    return choose_array(request, {name: _as_array(item, name, request) for name, item in wanted.items()}, list(found))


def _as_array(item: Any, name: str, request: Request) -> Array:
    if hasattr(item, "asstr") and item.dtype.metadata and item.dtype.metadata.get("vlen") is str:
        return np.asarray(item.asstr()[...], dtype=np.str_)
    if getattr(item, "attrs", {}).get("text") == "utf-8":
        raw = np.ascontiguousarray(item[...])
        return np.char.decode(raw.view(f"S{raw.shape[1]}").reshape(-1), "utf-8")
    if item.dtype.kind == "O":
        raise UnusableFileError(
            f"{name} in {request.path} holds objects, which are not read. Save it as numbers, or choose another "
            f"array as {request.path}:NAME"
        )
    return np.asarray(item[...])


def _refuse_outside(item: Any, name: str, request: Request) -> None:
    """An hdf5 array may say that its bytes lie in any other file of the machine; those are not followed."""
    if item.external or item.is_virtual:
        raise UnusableFileError(
            f"{name} in {request.path} keeps its data in other files, which are not followed. Copy it in."
        )


def _zarr_arrays(group: Any, prefix: str = "") -> list[tuple[str, Any]]:
    arrays = [(f"{prefix}{name}", array) for name, array in sorted(group.arrays())]
    for name, inner in sorted(group.groups()):
        arrays += _zarr_arrays(inner, f"{prefix}{name}/")
    return arrays
