"""What may a zarr folder make us do? Its metadata is looked through before zarr opens it or reads a chunk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inlier.exceptions import UnusableFileError
from inlier.io.limits import BLOCK_RATIO, announced_size, check_unpacked_size, deflated_size, most_unpacked_bytes

_CURE = "save the part you need as npy"
_METADATA = ("zarr.json", ".zarray", ".zgroup", ".zmetadata")
_MOST_METADATA = 64 * 1024**2  # bytes of one file
_PACKING = {"blosc", "zstd", "gzip", "zlib", "bz2", "lzma", "lz4"}
_PLAIN = {
    "bytes", "transpose", "sharding_indexed", "crc32c", "crc32", "adler32", "fletcher32", "shuffle", "delta",
    "fixedscaleoffset", "quantize", "packbits", "bitround", "astype", "vlen-utf8", "vlen-bytes",
}  # fmt: skip
_PLACES = ("codecs", "index_codecs", "filters", "compressor")  # of codecs in metadata, one or a list of them


def is_node(folder: Path) -> bool:
    """Whether a folder is an array or a group: it has metadata."""
    return any((folder / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))


def check_store(folder: Path) -> None:
    """Refuse a store with codecs that are not known to do nothing but pack numbers, with links, or with bombs."""
    most, packing, large = most_unpacked_bytes(), set(), []
    for path in _files(folder):
        if path.name == ".zattrs":
            continue
        if path.name in _METADATA:
            packing |= _check_metadata(path, folder)
        elif path.stat().st_size * BLOCK_RATIO > most:
            large.append(path)
    for path in large:
        for kind in packing:
            check_unpacked_size(folder, _chunk_size(kind, path, most), _CURE)


def _files(folder: Path) -> Iterator[Path]:
    """All files; a link could lead to any file of the machine."""
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            if Path(place, name).is_symlink():
                raise UnusableFileError(f"{folder} has a link in it, {name}, which is not followed. Copy the data in.")
        yield from (Path(place, name) for name in names)


def _check_metadata(path: Path, folder: Path) -> set[str]:
    """Refuse what is not on the list; return which ways of packing are in use."""
    if path.stat().st_size > _MOST_METADATA:
        raise UnusableFileError(f"{folder} could not be read as zarr: {path.name} in it is far too large.")
    names = [name.removeprefix("numcodecs.") for name in _codecs(json.loads(path.read_bytes()))]
    for name in names:
        if name not in _PACKING | _PLAIN:
            raise UnusableFileError(
                f"{folder} is packed by the codec {name[:40]!r}, which is not on the list of those that do nothing "
                f"else. Save it again with zstd or gzip."
            )
    return set(names) & _PACKING


def _codecs(metadata: Any, is_list: bool = False) -> Iterator[str]:
    """Names of all codecs, however deep."""
    if isinstance(metadata, list):
        for item in metadata:
            yield from _codecs(item, is_list)
    elif isinstance(metadata, dict):
        if is_list:
            yield str(metadata.get("id", metadata.get("name")))
        for key, value in metadata.items():
            if key != "attributes" and not key.endswith(".zattrs"):  # the user's own words
                yield from _codecs(value, key in _PLACES)
    elif is_list and metadata is not None:  # a name alone
        yield str(metadata)


def _chunk_size(kind: str, path: Path, most: int) -> int:
    """What a chunk unpacks to, if it is packed in this way."""
    with path.open("rb") as stream:
        if kind in ("gzip", "zlib"):
            return deflated_size(stream, most)
        return announced_size(kind, stream.read(18)) if kind in ("blosc", "zstd") else 0
