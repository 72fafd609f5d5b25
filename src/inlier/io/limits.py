"""How much memory this process may use, and how much a small file may unpack to."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import Any, BinaryIO

from inlier.exceptions import UnusableFileError

VARIABLE = "INLIER_MAX_UNPACKED"  # gibibytes
GIB = 1024**3
_STEP = 1024**2  # bytes that are unpacked at a time
_BYTES_A_FIELD = 64  # of a short text in a list; in a file it takes two
_LINE_ENDS = (b"\n", b"\r")
_UNKNOWN_MEMORY = 8 * GIB  # of a machine that does not say: that of a small laptop
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def memory_allowed() -> int:
    """The memory of the machine, or what the process is limited to (by ulimit, a container) if that is less."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on every system
        machine = _UNKNOWN_MEMORY
    return min([machine, *_limits_of_process(), *_limits_of_group()])


def _limits_of_process() -> list[int]:
    try:
        import resource
    except ImportError:  # not on Windows
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
        self._bytes_a_row = bytes_a_row
        self._length, self._n_ends = 0, [0, 0]  # of the line that has begun; ends of lines of either kind

    def _pass(self, data: bytes) -> None:
        super()._pass(data)
        self._n_ends = [n + data.count(end) for n, end in zip(self._n_ends, _LINE_ENDS, strict=True)]
        check_unpacked_size(self._path, max(self._n_ends) * self._bytes_a_row, "choose fewer columns")
        last = max(map(data.rfind, _LINE_ENDS))
        self._length = len(data) - last - 1 if last >= 0 else self._length + len(data)
        check_unpacked_size(self._path, self._length * _BYTES_A_FIELD // 2, "break its longest line")


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
