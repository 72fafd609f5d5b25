"""Write tables, pictures and clouds at once or not at all; the suffix says how.

A file or folder is written beside its place, then takes it at once: the old one whole or the new one, never half. What
is written lies in a workspace, a folder ``.inlier-unfinished-...`` beside the place, locked as long as its process
lives. A process that was killed leaves it behind unlocked, and the next of the same user that writes there clears it
away; what only looks like one (a link, another's folder, another name) stays.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io.formats import XYZ, BlockCodec, CloudCodec, Columns, Kind, ReadBlocks, format_of, load
from inlier.io.limits import is_node
from inlier.io.table import Content, Table

try:
    import fcntl
except ImportError:  # not on Windows, where nothing is cleared away
    fcntl = None  # type: ignore[assignment]

_PREFIX, _OLD = ".inlier-unfinished-", ".old-"
_SPACE = re.compile(rf"{re.escape(_PREFIX)}[a-z0-9_]{{8}}")  # as tempfile names them
_FROM_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_STORE_FILES = re.compile(r"zarr\.json|\.zarray|\.zgroup|\.zattrs|\.zmetadata")
_CHUNK = re.compile(r"c|\d+([./]\d+)*")  # a chunk's file or a folder of chunks, in either version of zarr


def write_file(path: Path, content: bytes | str) -> None:
    """Write ``content`` to ``path`` at once; folders on the way are made."""
    with written_beside(path) as beside:
        # names of files need not be UTF-8: what cannot be written as it is, is written as \xNN
        beside.write_bytes(content.encode(errors="backslashreplace") if isinstance(content, str) else content)


def write_table(path: str | Path, content: Content) -> None:
    """Write an array, or columns by name, to a file; its suffix says how. A failed write leaves nothing behind.

    Parameters
    ----------
    path : str or Path
        The file; folders on the way are made.
    content : ndarray or mapping of str to ndarray
        A table, the pixels of a picture, or equally long columns.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from inlier.io import read_table, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "points.ply"
    ...     write_table(path, {"x": [0.0, 1.0], "y": [2.0, 3.0], "z": [4.0, 5.0]})
    ...     read_table(path).values.tolist()
    [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
    """
    path = Path(path)
    codec = format_of(path).codec
    if not isinstance(content, np.ndarray):
        content = {name: np.asarray(column) for name, column in content.items()}
    with written_beside(path) as beside:
        try:
            codec.write(beside, content)
        except UnusableFileError as error:
            raise UnusableFileError(str(error).replace(str(beside), str(path))) from error


def write_blocks(path: str | Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
    """Write columns that come in blocks; the suffix says how. A failed write leaves nothing behind.

    Parameters
    ----------
    path : str or Path
        The file: csv, tsv (.gz too), parquet, feather, hdf5, zarr, npz; npy for a single column.
    columns : mapping of str to dtype
        Names and types.
    n_rows : int
        How many rows there will be.
    read_blocks : callable
        Given names of columns, an iterator over dictionaries of equally long arrays, all rows in order. npz is written
        column after column, and so calls it once for each; the others call it once.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from inlier.io import write_blocks
    >>> def squares(*names):
    ...     for start in (0, 3):
    ...         n = np.arange(start, start + 3)
    ...         yield {name: column for name, column in {"n": n, "square": n**2}.items() if name in names}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "squares.npz"
    ...     write_blocks(path, {"n": np.dtype(int), "square": np.dtype(int)}, 6, squares)
    ...     with np.load(path) as content:
    ...         content["square"].tolist()
    [0, 1, 4, 9, 16, 25]
    """
    path = Path(path)
    format = format_of(path)
    codec = format.codec
    if not isinstance(codec, BlockCodec) or (format.kind is Kind.ARRAY and len(columns) != 1):
        raise UnusableFileError(
            f"{path} cannot hold the {len(columns)} column(s) {', '.join(columns)} in blocks. "
            f"Write csv, tsv, parquet, feather, hdf5, zarr or npz."
        )
    if any(np.dtype(dtype).hasobject for dtype in columns.values()):
        raise UnusableFileError(f"{path} is written in blocks of numbers or text, not of Python objects.")
    with written_beside(path) as beside:
        codec.write_blocks(beside, columns, n_rows, read_blocks)


def write_csv(stream: IO[bytes], blocks: Iterable[Content]) -> None:
    """Write comma-separated values to an open stream, block after block, with a header if the columns have names."""
    from inlier.io._text_files import write_delimited

    write_delimited(stream, blocks, ",")


def write_like(table: Table, path: str | Path, values: Array, rotation: Any = None) -> None:
    """Write new values for a table that was read; a point cloud keeps whatever else its file holds.

    Parameters
    ----------
    table : Table
        As `read_table` returned it.
    path : str or Path
        Where to write. With the suffix of the table's own file the rest of that file is kept: faces and colours of
        ply, every field of pcd, las and laz, the triangles of gifti. Otherwise only the values are written.
    values : ndarray of shape (n, d)
        In place of ``table.values``.
    rotation : ndarray of shape (3, 3), optional
        Turns the normals of ply and pcd, which would otherwise point where they did before.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from inlier.io import read_table, write_like, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     here, there = Path(folder) / "here.ply", Path(folder) / "there.ply"
    ...     write_table(here, {"x": [0.0], "y": [0.0], "z": [1.0], "red": [255]})
    ...     cloud = read_table(here)
    ...     write_like(cloud, there, cloud.values + 10)
    ...     read_table(there, columns=["x", "y", "z", "red"]).values.tolist()
    [[10.0, 10.0, 11.0, 255.0]]
    """
    path, values = Path(path), np.asarray(values)
    if values.ndim != 2 or len(values) != len(table):
        raise UnusableFileError(
            f"{path} was to get {len(table):,} rows like {table.source}, but the values have shape {values.shape}."
        )
    format, names = format_of(path), table.columns
    codec = format.codec
    is_same = format is format_of(table.source) and names == XYZ and values.shape[1] == 3
    if is_same and isinstance(codec, CloudCodec):
        with written_beside(path) as beside:
            codec.rewrite(table.source, beside, values, None if rotation is None else np.asarray(rotation))
    elif names is not None and len(names) == values.shape[1]:
        write_table(path, dict(zip(names, values.T, strict=True)))
    else:
        write_table(path, values)


def check_can_hold_columns(path: Path) -> None:
    """Refuse a file that a table of text and numbers could not be written to, before the table is there."""
    format = format_of(path)
    if not format.is_written:
        raise UnusableFileError(f"{path} ({format.name}) would be of a format that is read only. Write csv or parquet.")
    if format.kind not in (Kind.COLUMNS, Kind.ARRAYS):
        raise UnusableFileError(
            f"{path} ({format.name}) would hold {format.kind.value}, not a table with names. Write csv, parquet or npz."
        )
    if format.library is not None:
        load(format.library, format.name)


# ---- at once or not at all


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Yield a place of the same name to write to; when the block ends well, it takes the place of ``path``.

    For libraries that write files or folders themselves. Whatever goes wrong, Ctrl-C included, leaves nothing behind.
    A link is followed: what it points to is replaced. Devices, pipes and folders that are no stores are refused.
    """
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    _check_replaceable(place, path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotADirectoryError(error.errno, "a file stands where a folder is needed", str(path.parent)) from error
    try:
        with workspace_in(place.parent) as folder:
            beside = folder / place.name
            yield beside
            _check_replaceable(place, path)  # it may have appeared meanwhile
            _take_the_place(beside, place, folder / f"{_OLD}{place.name}")
    except (OSError, RuntimeError) as error:  # name the file that was asked for, not the one beside it
        raise _about(error, path) from error


def _about(error: OSError | RuntimeError, path: Path) -> OSError:
    """The system's own error, also where a library hides it in a text of its own, as HDF5 does."""
    code = getattr(error, "errno", None)
    hidden = re.search(r"errno = (\d+)", str(error))
    if code is None and hidden:
        code = int(hidden[1])
        return OSError(code, os.strerror(code), str(path))
    said = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    return OSError(code or errno.EIO, re.sub(rf"\S*{re.escape(_PREFIX)}\S*", str(path), said), str(path))


def _check_replaceable(place: Path, path: Path) -> None:
    """Refuse to replace a device, a pipe, or a folder that holds anything but a store's own files."""
    if place.is_dir():
        if place.suffix.lower() != ".zarr":
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        foreign = first_foreign(place)
        if foreign is not None:
            said = f"it is a folder with something in it that is no part of a zarr store, {foreign}"
            raise OSError(errno.EEXIST, said, str(path))
    elif place.exists() and not place.is_file():
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", str(path))


def first_foreign(folder: Path) -> Path | None:
    """What lies in a folder and is no part of a zarr store there; None where all is."""
    return next(folder.iterdir() if not is_node(folder) else _foreign_in(folder), None)


def _foreign_in(folder: Path) -> Iterator[Path]:
    may_hold_others = is_node(folder)
    for item in folder.iterdir():
        is_part = bool(_CHUNK.fullmatch(item.name) or _STORE_FILES.fullmatch(item.name))
        if item.is_symlink() or not (is_part or (may_hold_others and item.is_dir() and is_node(item))):
            yield item
        elif item.is_dir():
            yield from _foreign_in(item)


def _take_the_place(beside: Path, place: Path, old: Path) -> None:
    """Rename; a folder cannot be renamed over another, so the two change places, at once where the system can."""
    if not (beside.is_dir() and place.is_dir()):
        try:
            beside.replace(place)
            return
        except OSError as error:  # another run may just have put its folder there
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not beside.is_dir():
                raise
    if _exchanged(beside, place):
        return
    place.replace(old)
    try:
        beside.replace(place)
    except BaseException:
        old.replace(place)
        raise


def _exchanged(one: Path, other: Path) -> bool:
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not on every system
        return False
    return rename(_FROM_HERE, os.fsencode(one), _FROM_HERE, os.fsencode(other), _EXCHANGE) == 0


@contextmanager
def workspace_in(folder: Path) -> Iterator[Path]:
    """Yield a locked folder inside of ``folder``; what killed runs left there is cleared away."""
    _clear_leftovers(folder)
    space, lock = _new_space(folder)
    try:
        yield space
    finally:
        shutil.rmtree(space, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _new_space(folder: Path) -> tuple[Path, int | None]:
    while True:
        space = Path(tempfile.mkdtemp(dir=folder, prefix=_PREFIX))
        if fcntl is None:
            return space, None
        try:
            lock = os.open(space, os.O_RDONLY)
        except FileNotFoundError:  # cleared away by another run before it was locked
            continue
        except BaseException:
            shutil.rmtree(space, ignore_errors=True)
            raise
        with suppress(OSError):  # some network folders know no locks; there nobody gets one to clear away
            fcntl.flock(lock, fcntl.LOCK_EX)
        if space.exists():
            return space, lock
        os.close(lock)


def _clear_leftovers(folder: Path) -> None:
    """Remove the workspaces whose process is gone; an old output that was lost half-way goes back to its place."""
    if fcntl is None:
        return
    for space in folder.glob(f"{_PREFIX}*/"):
        try:
            lock = os.open(space, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:  # gone meanwhile, a link, or somebody else's
            continue
        try:
            if not _SPACE.fullmatch(space.name) or os.fstat(lock).st_uid != os.geteuid():
                continue
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for old in space.glob(f"{_OLD}*"):
                if not os.path.lexists(folder / old.name.removeprefix(_OLD)):
                    old.replace(folder / old.name.removeprefix(_OLD))
            shutil.rmtree(space, ignore_errors=True)
        except OSError:
            pass  # in use
        finally:
            os.close(lock)
