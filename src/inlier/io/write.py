"""Write tables, pictures and clouds at once or not at all; the suffix says how."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io.formats import XYZ, BlockCodec, CloudCodec, Columns, Kind, ReadBlocks, format_of, load
from inlier.io.replacing import written_beside
from inlier.io.table import Content, Table


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
    if format.kind not in (Kind.COLUMNS, Kind.ARRAYS):
        raise UnusableFileError(
            f"{path} ({format.name}) would hold {format.kind.value}, not a table with names. "
            f"Write csv, parquet, npz or json."
        )
    if format.library is not None:
        load(format.library, format.name)
