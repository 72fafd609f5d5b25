"""What a file may cost: how much memory it may unpack to, and whether a library survives it.

How much a compressed stream unpacks to is read off its header, or counted without keeping anything. What may crash, or
not come to an end on a damaged file, is tried in a copy of this process first.

A zarr folder says in its metadata what it may make us do: that is looked through before zarr opens it or reads a chunk.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import signal
import struct
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from inlier.exceptions import UnusableFileError

_CURE = "save the part you need as npy"
_METADATA = ("zarr.json", ".zarray", ".zgroup", ".zmetadata")
_MOST_METADATA = 64 * 1024**2  # bytes of one file
_PACKING = {"blosc", "zstd", "gzip", "zlib", "bz2", "lzma", "lz4"}
_PLAIN = {
    "bytes", "transpose", "sharding_indexed", "crc32c", "crc32", "adler32", "fletcher32", "shuffle", "delta",
    "fixedscaleoffset", "quantize", "packbits", "bitround", "astype", "vlen-utf8", "vlen-bytes",
}  # fmt: skip
_PLACES = ("codecs", "index_codecs", "filters", "compressor")  # of codecs in metadata, one or a list of them


try:
    import resource
except ImportError:  # not on Windows, where nothing can be copied either
    resource = None  # type: ignore[assignment]

VARIABLE = "INLIER_MAX_UNPACKED"  # gibibytes
GIB = 1024**3
_STEP = 1024**2  # bytes that are unpacked at a time
_BYTES_A_FIELD = 64  # of a short text in a list; in a file it takes two
_LINE_ENDS = (b"\n", b"\r")
_UNKNOWN_MEMORY = 8 * GIB  # of a machine that does not say: that of a small laptop
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
# What one byte can become at most: deflate's longest copies; zstd's blocks of 128 KiB that are four bytes long.
DEFLATE_RATIO, BLOCK_RATIO = 1100, 32768
_ZSTD = b"\x28\xb5\x2f\xfd"
_STATM = Path("/proc/self/statm")  # on Linux: its first number is the pages in use
_NAP = 0.002  # seconds between two looks at the copy
_WAITING = 10  # times the seconds of work


def memory_allowed() -> int:
    """The memory of the machine, or what the process is limited to (by ulimit, a container) if that is less."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on every system
        machine = _UNKNOWN_MEMORY
    return min([machine, *_limits_of_process(), *_limits_of_group()])


def _limits_of_process() -> list[int]:
    if resource is None:
        return []
    kinds = (getattr(resource, name, None) for name in ("RLIMIT_AS", "RLIMIT_DATA"))
    limits = [resource.getrlimit(kind)[0] for kind in kinds if kind is not None]
    return [limit for limit in limits if limit != resource.RLIM_INFINITY]


def _limits_of_group() -> list[int]:
    """Limits of the control group that a container or a scheduler put the process in (Linux, both versions)."""
    places = [_CONTROL_GROUPS / "memory.max", _CONTROL_GROUPS / "memory" / "memory.limit_in_bytes"]
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            places.append(_CONTROL_GROUPS / path.lstrip("/") / "memory.max")
        elif "memory" in controllers.split(","):
            places.append(_CONTROL_GROUPS / "memory" / path.lstrip("/") / "memory.limit_in_bytes")
    texts = (_text(place).strip() for place in places)
    return [int(text) for text in texts if text.isdecimal()]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def bytes_set_by(variable: str, usual: int) -> int:
    """What the environment variable says, in GiB, or ``usual``."""
    setting = os.environ.get(variable)
    if setting is None:
        return usual
    try:
        return int(float(setting) * GIB)
    except (ValueError, OverflowError):
        raise UnusableFileError(f"{variable} must be a number of GiB; it is {setting!r}.") from None


def most_unpacked_bytes() -> int:
    """Half of the memory, or what the environment says."""
    return bytes_set_by(VARIABLE, memory_allowed() // 2)


def check_unpacked_size(path: Path, n_bytes: int, cure: str) -> None:
    """Refuse a file that says (or turns out) to unpack to more than is let through."""
    if n_bytes > most_unpacked_bytes():
        raise too_large(path, cure, f"to {_as_text(n_bytes)}")


def too_large(path: Path, cure: str, size: str = "to more") -> UnusableFileError:
    """The sentence for a file that unpacks to too much."""
    return UnusableFileError(
        f"{path} ({_as_text(path.stat().st_size)} on disk) unpacks {size}, over the limit of "
        f"{_as_text(most_unpacked_bytes())}. If you trust it, {cure}, or raise the limit with the environment "
        f"variable {VARIABLE}, in GiB."
    )


class _Limited(io.RawIOBase):
    """A stream that stops when a compressed file has produced too much."""

    def __init__(self, path: Path, stream: gzip.GzipFile) -> None:
        self._path, self._stream, self._left = path, stream, most_unpacked_bytes()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._pass(data)
        buffer[: len(data)] = data
        return len(data)

    def _pass(self, data: bytes) -> None:
        """Count what goes by."""
        self._left -= len(data)
        if self._left < 0:
            raise too_large(self._path, "unpack it first (gunzip)")

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Lines(_Limited):
    """The same for text, which becomes far more than itself: lines of short fields, and many short lines."""

    def __init__(self, path: Path, stream: gzip.GzipFile, bytes_a_row: int) -> None:
        super().__init__(path, stream)
        self._bytes_a_row, self._most = bytes_a_row, most_unpacked_bytes()
        self._length, self._n_ends = 0, [0, 0]  # of the line that has begun; ends of lines of either kind

    def _pass(self, data: bytes) -> None:
        super()._pass(data)
        self._n_ends = [n + data.count(end) for n, end in zip(self._n_ends, _LINE_ENDS, strict=True)]
        if max(self._n_ends) * self._bytes_a_row > self._most:
            raise too_large(self._path, "choose fewer columns")
        last = max(map(data.rfind, _LINE_ENDS))
        self._length = len(data) - last - 1 if last >= 0 else self._length + len(data)
        if self._length * _BYTES_A_FIELD // 2 > self._most:
            raise too_large(self._path, "break its longest line")


def text_lines(path: Path, bytes_a_row: int = 0) -> BinaryIO:
    """Open a text file, unpacked as it is read if it is gzipped, as far as what comes of it is let through."""
    if path.suffix.lower() != ".gz":
        return path.open("rb")
    return io.BufferedReader(_Lines(path, gzip.GzipFile(path), bytes_a_row), _STEP)


def unpacked(path: Path) -> BinaryIO:
    """Open a gzipped file, which is unpacked as it is read, as far as that is let through."""
    return io.BufferedReader(_Limited(path, gzip.open(path)), _STEP)


def _as_text(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"


def deflated_size(stream: BinaryIO, most: int) -> int:
    """Bytes that zlib or gzip streams unpack to; counting stops when there are more than ``most``."""
    produced = 0
    unpacker = zlib.decompressobj(wbits=47)  # the header says which of the two
    while data := unpacker.unconsumed_tail or unpacker.unused_data or stream.read(_STEP):
        if unpacker.eof:  # several streams one after the other count as one file
            unpacker = zlib.decompressobj(wbits=47)
        try:
            produced += len(unpacker.decompress(data, _STEP))
        except zlib.error:  # damaged: the reader will say so
            return produced
        if produced > most:
            break
    return produced


def announced_size(kind: str, head: bytes) -> int:
    """Bytes that a blosc or zstd stream announces in its first 18; 0 where it does not say, as zstd need not."""
    if kind == "blosc":
        return int(struct.unpack_from("<I", head, 4)[0]) if len(head) >= 16 and head[0] in (1, 2) else 0
    if not head.startswith(_ZSTD) or len(head) < 6:
        return 0
    flags = head[4]
    is_single, width = bool(flags & 32), (1, 2, 4, 8)[flags >> 6]
    if flags >> 6 == 0 and not is_single:
        return 0
    start = 5 + (not is_single) + (0, 1, 2, 4)[flags & 3]
    field = head[start : start + width]
    return int.from_bytes(field, "little") + (256 if width == 2 else 0)


def survives(act: Callable[[], object], seconds: float, n_bytes: int | None = None) -> bool:
    """Whether ``act`` comes to an end in a copy of this process, within so many seconds of work, also by an exception.

    With ``n_bytes`` it may take no more memory than that in addition. True where no copy can be made.

    Examples
    --------
    >>> import os
    >>> from inlier.io.limits import survives
    >>> survives(lambda: 1 / 0, 5), survives(lambda: os.kill(os.getpid(), 9), 5)
    (True, False)
    """
    if not hasattr(os, "fork"):
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # on threads: the copy uses none, and ends soon
        copy = os.fork()
    if copy == 0:
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)  # what a library says as it dies
            os.dup2(nowhere, 2)
            _limit(resource.RLIMIT_CPU, math.ceil(seconds))
            _limit(resource.RLIMIT_CORE, 0)
            if n_bytes is not None and _STATM.exists():
                _limit(resource.RLIMIT_AS, int(_STATM.read_text().split()[0]) * resource.getpagesize() + n_bytes)
            act()
            os._exit(0)
        except BaseException as error:  # a panic of Rust is no Exception
            os._exit(0 if isinstance(error, Exception) and not isinstance(error, MemoryError) else 1)
    until = time.monotonic() + _WAITING * seconds  # the machine may be busy; and what waits for ever does not work
    while True:
        ended, status = os.waitpid(copy, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        if time.monotonic() > until:
            os.kill(copy, signal.SIGKILL)
            os.waitpid(copy, 0)
            return False
        time.sleep(_NAP)


def _limit(what: int, most: int) -> None:
    """Allow this process no more than that; what it was allowed before may be less, and cannot be raised."""
    allowed = [limit for limit in resource.getrlimit(what) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(what, (min([most, *allowed]), resource.getrlimit(what)[1]))


# ---- zarr folders


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
