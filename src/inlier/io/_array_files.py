"""npy, npz, hdf5 and zarr: arrays, by name or alone. A pickle inside is never loaded: it could run code."""

from __future__ import annotations

import os
import re
import zipfile
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io.formats import BlockCodec, Columns, ReadBlocks, load
from inlier.io.limits import (
    DEFLATE_RATIO,
    check_store,
    check_unpacked_size,
    deflated_size,
    is_node,
    most_unpacked_bytes,
    survives,
)
from inlier.io.table import Content, Request, check_numeric, listed

_CURE = "save the part you need as npy"
_HDF5_FILTERS = {1, 2, 3, 32000}  # deflate, shuffle, fletcher32, and h5py's lzf
_CHECKSUM, _MOST_ADDED = 4, 65536  # bytes of fletcher32, and that packing may add to a chunk that it cannot pack
_PATIENCE, _SLOWEST = 3, 30 * 1024**2  # seconds of work, and bytes a second, that a sound file may take
_HDF5_OVERHEAD = 16_384  # bytes of a file beside its numbers, a few columns at most
_MAPPED_FROM = 64 * 1024**2  # bytes from which an npy file is mapped rather than read


class Npy(BlockCodec):
    """One array; a large one stays on disk and is read as it is used."""

    def read(self, request: Request) -> Content:
        from inlier.rows.files import NpyFile

        is_mapped = request.path.stat().st_size >= _MAPPED_FROM
        try:
            NpyFile(request.path)  # refuses objects, and a header that announces more than there is
        except ValueError as error:
            raise UnusableFileError(str(error)) if str(request.path) in str(error) else error from error
        return np.load(request.path, "r" if is_mapped else None, allow_pickle=False)

    def open(self, request: Request) -> Mapping[str, Any]:
        from inlier.rows.files import NpyFile

        return {"": NpyFile(request.path)}

    def write(self, path: Path, content: Content) -> None:
        if not isinstance(content, np.ndarray):
            raise UnusableFileError(
                f"{path} can hold one array only, not the columns {', '.join(content)}; write npz instead."
            )
        np.save(path, content, allow_pickle=False)

    def write_blocks(self, path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
        ((name, dtype),) = columns.items()
        with path.open("wb") as stream:
            _write_column(stream, dtype, n_rows, (block[name] for block in read_blocks(name)))


class Npz(BlockCodec):
    """Arrays by name in a zip archive."""

    def names(self, path: Path) -> list[str]:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]

    def read(self, request: Request) -> Content:
        path = request.path
        with zipfile.ZipFile(path) as archive:
            declared = sum(entry.file_size for entry in archive.infolist())
        check_unpacked_size(path, declared, "load it with numpy and save the array you need as npy")
        with _refusing_pickles(path), np.load(path, allow_pickle=False) as content:
            # An array of objects is a pickle: it is named among the others and refused when it is asked for.
            wanted = [name for name in content.files if request.inside in (None, name) or name == request.key]
            return _choose_array(request, {name: np.asarray(content[name]) for name in wanted}, content.files)

    def write(self, path: Path, content: Content) -> None:
        """Write an array per column, or one called ``values``."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:  # savez takes names as keywords, "file" too
            for name, array in _named(content).items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)

    def write_blocks(self, path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
        """Write column after column."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, dtype in columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    _write_column(member, dtype, n_rows, (block[name] for block in read_blocks(name)))


class _Store(BlockCodec):
    """Arrays by name that are read by slices: opened, then read."""

    def names(self, path: Path) -> list[str]:
        return list(self.open(Request(path)))

    def open(self, request: Request) -> Mapping[str, Any]:
        """The arrays, unread, once it is known that the file only holds numbers, in chunks that there is room for."""
        found = self._arrays(request)
        for item in found.values():
            chunk = getattr(item, "shards", None) or item.chunks or ()
            check_unpacked_size(request.path, prod(chunk) * item.dtype.itemsize, _CURE)
        return found

    @abstractmethod
    def _arrays(self, request: Request) -> Mapping[str, Any]: ...

    def read(self, request: Request) -> Content:
        """Read the arrays that may be meant, once it is known that there is room for them."""
        found = self.open(request)
        wanted = {name: item for name, item in found.items() if request.inside in (None, name) or name == request.key}
        n_bytes = sum(prod(item.shape) * item.dtype.itemsize for item in wanted.values())
        check_unpacked_size(request.path, n_bytes, _CURE)
        arrays = {name: _as_array(item, name, request.path) for name, item in wanted.items()}
        return _choose_array(request, arrays, list(found))


class Hdf5(_Store):
    """Arrays by name; groups are parts of their names, as in ``group/array``."""

    def _arrays(self, request: Request) -> Mapping[str, Any]:
        """The file stays open as long as one of its arrays is in use; those that hold nothing are not among them."""
        h5py = load("h5py", "hdf5")
        check_is_sound(request.path)
        found: dict[str, Any] = {}
        file = h5py.File(request.path, "r")
        _check_is_plain(file, request)
        file.visititems(lambda name, item: found.__setitem__(name, item) if isinstance(item, h5py.Dataset) else None)
        found = {name: item for name, item in found.items() if item.shape is not None}
        for name, item in found.items():
            if item.external or item.is_virtual:  # its bytes may lie in any other file of the machine
                raise UnusableFileError(
                    f"{name} in {request.path} keeps its data in other files, which are not followed. Copy it in."
                )
            check_filters(item, name, request.path)
        return found

    def write(self, path: Path, content: Content) -> None:
        """Write an array per column, or one called ``values``."""
        _check_room(path, sum(array.nbytes for array in _named(content).values()))
        with load("h5py", "hdf5").File(path, "w") as file:
            for name, array in _named(content).items():
                file[name] = np.char.encode(array, "utf-8") if array.dtype.kind == "U" else array

    def write_blocks(self, path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
        _check_room(path, n_rows * sum(dtype.itemsize for dtype in columns.values()))
        with load("h5py", "hdf5").File(path, "w") as file:
            stores = {name: file.create_dataset(name, (n_rows,), dtype) for name, dtype in columns.items()}
            _fill(stores, read_blocks(*columns))


class Zarr(_Store):
    """One array, or a group of arrays by name."""

    def _arrays(self, request: Request) -> Mapping[str, Any]:
        """One array alone has no name, and is the one that was asked for."""
        zarr = load("zarr", "zarr")
        check_store(request.path)
        node = zarr.open(str(request.path), mode="r")
        return {request.inside or "": node} if isinstance(node, zarr.Array) else _arrays_of_group(node, request.path)

    def write(self, path: Path, content: Content) -> None:
        zarr = load("zarr", "zarr")
        if isinstance(content, np.ndarray):
            zarr.save_array(str(path), np.ascontiguousarray(content))
            return
        group = zarr.open_group(str(path), mode="w")
        for name, values in content.items():
            if values.dtype.kind == "U":  # zarr has no settled way to hold text of fixed length: bytes of UTF-8 do
                encoded = np.char.encode(values, "utf-8").view(np.uint8).reshape(len(values), -1)
                group.create_array(name, data=encoded).attrs["text"] = "utf-8"
            else:
                group.create_array(name, data=values)

    def write_blocks(self, path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
        group = load("zarr", "zarr").open_group(str(path), mode="w")
        stores = {name: group.create_array(name, shape=(n_rows,), dtype=dtype) for name, dtype in columns.items()}
        _fill(stores, read_blocks(*columns))


def _check_room(path: Path, n_bytes: int) -> None:
    """Refuse to begin a file that the disk has no room for: HDF5 ends the process where it cannot finish one."""
    if not hasattr(os, "posix_fallocate"):  # not on every system
        return
    with path.open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, n_bytes + _HDF5_OVERHEAD)
    path.unlink()


def _arrays_of_group(group: Any, folder: Path, prefix: str = "") -> dict[str, Any]:
    """Arrays by name, those of inner groups last, opened one by one: zarr opens all at once, and prints what fails."""
    arrays, inner = {}, {}
    for part in sorted(path for path in folder.iterdir() if path.is_dir() and is_node(path)):
        node = group[part.name]
        if hasattr(node, "shape"):
            arrays[f"{prefix}{part.name}"] = node
        else:
            inner[part] = node
    for part, node in inner.items():
        arrays |= _arrays_of_group(node, part, f"{prefix}{part.name}/")
    return arrays


def _check_is_plain(file: Any, request: Request) -> None:
    """Say what a file of single cells is, unless an array in it was named that is there."""
    from inlier.io._single_cell_files import KINDS, kind_of

    kind = kind_of(file)
    is_there = request.inside is not None and hasattr(file.get(request.inside), "shape")
    if kind is not None and not is_there:
        name, suffix = KINDS[kind]
        table = "rna:X_pca" if kind == "MuData" else "X_pca"
        raise UnusableFileError(
            f"{request.path} holds {name}. Rename it to end in {suffix}, and say which table of it is meant after a "
            f"colon, as in {request.path.with_suffix(suffix)}:{table}"
        )


def check_is_sound(path: Path) -> None:
    """Refuse a file on which HDF5 crashes, or goes round in a circle."""
    about = path.stat()
    if not _is_sound_hdf5(path, about.st_size, about.st_mtime_ns):
        raise UnusableFileError(
            f"{path} is damaged: the library for HDF5 does not come to an end with it. Copy or save it again."
        )


@lru_cache(maxsize=64)
def _is_sound_hdf5(path: Path, size: int, changed: int) -> bool:
    """Whether HDF5 gets through a file, tried in a copy of this process: on some damaged ones it crashes or goes round.

    Small files are read as a whole; of larger ones, where a reading takes long, all is looked up and the ends are read.
    """
    h5py = load("h5py", "hdf5")

    def look(name: str, item: Any) -> None:
        with suppress(Exception):  # attributes that cannot be read are not needed, or refused where they are
            list(item.attrs.items())
        if isinstance(item, h5py.Dataset) and item.shape is not None and not (item.external or item.is_virtual):
            try:
                check_filters(item, name, path)
                check_unpacked_size(path, prod(item.shape) * item.dtype.itemsize, _CURE)
            except UnusableFileError:  # it will be refused
                return
            if item.ndim == 0 or size <= _MAPPED_FROM:
                item[()]
            else:
                item[:1], item[-1:]

    def read() -> None:
        with h5py.File(path, "r") as file:
            look("", file)
            file.visititems(look)

    return survives(read, _PATIENCE + size / _SLOWEST)


def check_filters(item: Any, name: str, path: Path) -> None:
    """Refuse filters that HDF5 would look for among its plugins, and chunks that unpack to more than they should."""
    if item.chunks is None:
        return
    settings = item.id.get_create_plist()
    used = [settings.get_filter(number)[0] for number in range(settings.get_nfilters())]
    foreign = [number for number in used if number not in _HDF5_FILTERS]
    if foreign:
        raise UnusableFileError(
            f"{name} in {path} is packed with filter {foreign[0]}, which is no part of HDF5 itself. Save it with gzip."
        )
    chunks: list[Any] = []
    item.id.chunk_iter(chunks.append)
    most, size, n_plain = most_unpacked_bytes(), path.stat().st_size, prod(item.chunks) * item.dtype.itemsize
    for chunk in chunks:
        is_whole = chunk.size == n_plain if not used else _CHECKSUM < chunk.size <= n_plain + _MOST_ADDED
        if not is_whole or chunk.byte_offset + chunk.size > size:
            raise UnusableFileError(f"{name} in {path} has a chunk that cannot be whole. Copy or save it again.")
        if 1 in used and chunk.size * DEFLATE_RATIO > most:
            packed = item.id.read_direct_chunk(chunk.chunk_offset)[1]
            check_unpacked_size(path, deflated_size(BytesIO(packed), most), _CURE)


def _as_array(item: Any, name: str, path: Path) -> Array:
    if hasattr(item, "asstr") and item.dtype.metadata and item.dtype.metadata.get("vlen") is str:
        return texts_of(item, path)
    if getattr(item, "attrs", {}).get("text") == "utf-8":
        raw = np.ascontiguousarray(item[...])
        return np.char.decode(raw.view(f"S{raw.shape[1]}").reshape(-1), "utf-8")
    if item.dtype.kind == "O":
        raise UnusableFileError(
            f"{name} in {path} holds objects, which are not read. Save it as numbers, or choose another array as "
            f"{path}:NAME"
        )
    return np.asarray(item[...])


def texts_of(item: Any, path: Path) -> Array:
    """Texts, a few at a time: many rows may share one long text in the file, and each becomes a copy."""
    if item.ndim != 1:
        raise UnusableFileError(f"{path} holds text of shape {item.shape}, which is no list of names.")
    step = max(1, most_unpacked_bytes() // (4 * path.stat().st_size))
    texts: list[str] = []
    longest = 0
    for start in range(0, len(item), step):
        texts.extend(item.asstr()[start : start + step].tolist())
        longest = max(longest, *map(len, texts[start:]))
        check_unpacked_size(path, 4 * longest * len(item), _CURE)
    return np.array(texts, dtype=np.str_)


def _named(content: Content) -> Mapping[str, Array]:
    return {"values": content} if isinstance(content, np.ndarray) else content


def _write_column(stream: IO[bytes], dtype: np.dtype[Any], n_rows: int, blocks: Iterable[Array]) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n_rows,)}
    np.lib.format.write_array_header_1_0(stream, header)
    for block in blocks:
        stream.write(np.ascontiguousarray(block, dtype=dtype).tobytes())


def _fill(stores: Mapping[str, Any], blocks: Iterable[Mapping[str, Array]]) -> None:
    start = 0
    for block in blocks:
        stop = start + len(next(iter(block.values())))
        for name, store in stores.items():
            store[start:stop] = block[name]
        start = stop


def _choose_array(request: Request, arrays: Mapping[str, Array], all_names: list[str]) -> Content:
    """Return the array that was asked for, the only one there is, or equally long lists as columns.

    With a key, the rows' names are a further array of the file.
    """
    path, inside = request.path, request.inside
    if inside is not None:
        if inside not in arrays:
            raise UnusableFileError(f"{path} has no array named {inside!r}; it has {listed(all_names)}.")
        return _with_key(arrays[inside], inside, arrays, request)
    candidates = {name: array for name, array in arrays.items() if name != request.key and array.ndim > 0}
    if not candidates:
        raise UnusableFileError(f"{path} holds no array to read.")
    if len(candidates) == 1:
        ((name, array),) = candidates.items()
        return _with_key(array, name, arrays, request)
    if all(array.ndim == 1 for array in arrays.values()) and len({len(array) for array in arrays.values()}) == 1:
        return arrays  # a column each
    shapes = [f"{name} {array.shape}" for name, array in candidates.items()]
    first = next(iter(candidates))
    raise UnusableFileError(
        f"{path} holds {len(shapes)} arrays: {listed(shapes)}. Choose one, for example {path}:{first}"
    )


def _with_key(array: Array, name: str, arrays: Mapping[str, Array], request: Request) -> Content:
    if request.key is None or array.dtype.names is not None:
        return array
    if request.key not in arrays:
        raise UnusableFileError(f"{request.path} has no array named {request.key!r} beside {name}.")
    keys = arrays[request.key]
    if keys.ndim != 1 or array.ndim not in (1, 2) or len(keys) != len(array):
        raise UnusableFileError(
            f"in {request.path} the key {request.key} has shape {keys.shape} and {name} has {array.shape}: "
            f"there must be one name per row."
        )
    check_numeric(array, request.path)
    columns = array.reshape(len(array), -1)
    return {**{str(number): column for number, column in enumerate(columns.T)}, request.key: keys}


@contextmanager
def _refusing_pickles(path: Path) -> Iterator[None]:
    """Say in words what NumPy does where it meets Python objects."""
    try:
        yield
    except ValueError as error:
        if not re.search("allow_pickle|pickled|Object arrays", str(error)):
            raise
        raise UnusableFileError(
            f"{path} holds Python objects (a pickle), which are never loaded because loading can run code. "
            f"Save numbers instead: numpy.save(file, array.astype(float))."
        ) from error
