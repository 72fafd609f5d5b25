"""npy and npz. A pickle inside is never loaded: it could run code."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from inlier._typing import Array
from inlier.io.containers import choose_array
from inlier.io.limits import check_unpacked_size
from inlier.io.table import Content, Request, UnusableFileError

_MAPPED_FROM = 64 * 1024**2  # bytes from which an npy file is mapped rather than read


def read_npy(request: Request) -> Content:
    """Read an npy file; a large one stays on disk and is read as it is used."""
    return _load(request.path, mapped=request.path.stat().st_size >= _MAPPED_FROM)


def read_npz(request: Request) -> Content:
    """Read the arrays of an npz file."""
    path = request.path
    with zipfile.ZipFile(path) as archive:
        declared = sum(entry.file_size for entry in archive.infolist())
    check_unpacked_size(path, declared, "load it with numpy and save the array you need as npy")
    with _load(path) as content:
        names = list(content.files)
        # An array of objects is a pickle: it is named among the others and refused when it is asked for.
        return choose_array(request, {name: _member(content, name, path) for name in _wanted(names, request)}, names)


def write_npy(path: Path, content: Content) -> None:
    """Write one array."""
    if not isinstance(content, np.ndarray):
        raise UnusableFileError(
            f"{path} can hold one array only, not the columns {', '.join(content)}; write npz instead."
        )
    np.save(path, content, allow_pickle=False)


def write_npz(path: Path, content: Content) -> None:
    """Write an array per column, or one array called ``values``."""
    arrays = {"values": content} if isinstance(content, np.ndarray) else dict(content)
    with path.open("wb") as stream:  # savez takes columns by name, and one may be called "file"
        _save_arrays(stream, arrays)


def _save_arrays(stream: IO[bytes], arrays: dict[str, Array]) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _wanted(names: list[str], request: Request) -> list[str]:
    if request.inside is None:
        return names
    return [name for name in names if name in (request.inside, request.key)]


def _member(content: Any, name: str, path: Path) -> Array:
    try:
        return np.asarray(content[name])
    except ValueError as error:
        raise _in_words(error, path) from error


def _load(path: Path, *, mapped: bool = False) -> Any:
    try:
        return np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except ValueError as error:
        raise _in_words(error, path) from error


def _in_words(error: ValueError, path: Path) -> UnusableFileError:
    if "allow_pickle" in str(error) or "pickled" in str(error) or "Object arrays" in str(error):
        return UnusableFileError(
            f"{path} holds Python objects (a pickle), which are never loaded because loading can run code. "
            f"Save numbers instead: numpy.save(file, array.astype(float))."
        )
    return UnusableFileError(f"{path} is damaged or was cut short: {error}. Copy or save it again.")
