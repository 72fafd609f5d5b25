"""Write beside, then rename: a reader never sees half a file, and a failed write leaves the old one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_file(path: Path, content: bytes | str) -> None:
    """Write ``content`` to ``path`` at once; folders on the way are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotADirectoryError(error.errno, "a file stands where a folder is needed", str(path.parent)) from error
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        beside.chmod(0o666 & ~_current_umask())
        beside.replace(path)
    except BaseException:  # Ctrl-C included: leave nothing behind
        beside.unlink(missing_ok=True)
        raise


def _current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
