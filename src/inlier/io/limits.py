"""A small file may unpack to more than the machine holds: how much is let through, and the sentence if it is more."""

from __future__ import annotations

import os
from pathlib import Path

from inlier.io.table import UnusableFileError

VARIABLE = "INLIER_MAX_UNPACKED"  # gibibytes
_GIB = 1024**3
_UNKNOWN_MEMORY = 8 * _GIB


def most_unpacked_bytes() -> int:
    """Half of the machine's memory, or what the environment says."""
    setting = os.environ.get(VARIABLE)
    if setting is None:
        return _memory() // 2
    try:
        return int(float(setting) * _GIB)
    except (ValueError, OverflowError):
        raise UnusableFileError(f"{VARIABLE} must be a number of GiB; it is {setting!r}.") from None


def check_unpacked_size(path: Path, n_bytes: int, cure: str) -> None:
    """Refuse a file that says (or turns out) to unpack to more than is let through."""
    most = most_unpacked_bytes()
    if n_bytes > most:
        raise too_large(path, cure, f"to {_as_text(n_bytes)}")


def too_large(path: Path, cure: str, size: str = "to more") -> UnusableFileError:
    """The sentence for a file that unpacks to too much."""
    return UnusableFileError(
        f"{path} ({_as_text(path.stat().st_size)} on disk) unpacks {size}, over the limit of "
        f"{_as_text(most_unpacked_bytes())}. If you trust it, {cure}, or raise the limit with the environment "
        f"variable {VARIABLE}, in GiB."
    )


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on every system
        return _UNKNOWN_MEMORY


def _as_text(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
