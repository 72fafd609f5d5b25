"""How much memory this process may use, and from which size on files are read in stretches."""

from __future__ import annotations

import os
from pathlib import Path

from inlier.cli._answers import BadInput

VARIABLE = "INLIER_STREAM_FROM"  # gibibytes
GIB = 1024**3
_USUAL = GIB
_SHARE = 8  # files of this part of the memory are read in stretches, if that is less
_UNKNOWN = 8 * GIB
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def stream_from() -> int:
    """Bytes of both tables together from which on they are read in stretches."""
    setting = os.environ.get(VARIABLE)
    if setting is None:
        return min(_USUAL, memory_allowed() // _SHARE)
    try:
        return int(float(setting) * GIB)
    except (ValueError, OverflowError):
        raise BadInput(f"{VARIABLE} must be a number of GiB; it is {setting!r}.") from None


def memory_allowed() -> int:
    """The memory of the machine, or what the process is limited to if that is less."""
    return min([_of_machine(), *_limits_of_process(), *_limits_of_group()])


def _of_machine() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on every system
        return _UNKNOWN


def _limits_of_process() -> list[int]:
    try:
        import resource
    except ImportError:  # not on Windows
        return []
    kinds = (getattr(resource, name, None) for name in ("RLIMIT_AS", "RLIMIT_DATA"))
    limits = [resource.getrlimit(kind)[0] for kind in kinds if kind is not None]
    return [limit for limit in limits if limit != resource.RLIM_INFINITY]


def _limits_of_group() -> list[int]:
    """Limits of the control group that a container or a scheduler put the process in (Linux)."""
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
