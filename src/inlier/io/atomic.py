"""Write beside, then rename: a reader never sees half a file, and a failed write leaves the old one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EIO
from pathlib import Path


def write_file(path: Path, content: bytes | str) -> None:
    """Write ``content`` to ``path`` at once; folders on the way are made."""
    with written_beside(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Yield a place of the same name to write to; when the block ends well, it takes the place of ``path``.

    For libraries that write files or folders themselves. Whatever goes wrong, Ctrl-C included, leaves nothing behind.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from inlier.io import written_beside
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_beside(Path(folder) / "words.txt") as beside:
    ...         _ = beside.write_text("all of it, or nothing")
    ...     (Path(folder) / "words.txt").read_text()
    'all of it, or nothing'
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotADirectoryError(error.errno, "a file stands where a folder is needed", str(path.parent)) from error
    folder: Path | None = None
    try:
        folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=".inlier-"))
        yield folder / path.name
        _put_in_place(folder / path.name, path)
    except OSError as error:  # name the file that was asked for, not the one beside it
        raise OSError(error.errno or EIO, error.strerror or str(error), str(path)) from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _put_in_place(beside: Path, path: Path) -> None:
    if beside.is_dir() and path.is_dir():  # a folder cannot be renamed over another: the old one goes first
        path.replace(beside.with_name("old"))
    beside.replace(path)
