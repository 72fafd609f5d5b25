"""Write a table that is never there as a whole: block after block, to a file of any kind that holds columns."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from inlier._typing import Array
from inlier.io.atomic import written_beside
from inlier.io.extras import load
from inlier.io.table import UnusableFileError
from inlier.io.text import create_text, write_delimited

Columns = Mapping[str, "np.dtype[Any]"]
ReadBlocks = Callable[..., Iterator[Mapping[str, Array]]]  # given names of columns, their blocks from the start on


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
    write = _WRITERS.get(_kind(path))
    if write is None or (write is _write_npy and len(columns) != 1):
        raise UnusableFileError(
            f"{path} cannot hold the {len(columns)} column(s) {', '.join(columns)} in blocks. "
            f"Write csv, tsv, parquet, feather, hdf5, zarr or npz."
        )
    with written_beside(path) as beside:
        write(beside, columns, n_rows, read_blocks)


def csv_blocks(stream: IO[bytes], columns: Columns, read_blocks: ReadBlocks, delimiter: str = ",") -> None:
    """Write comma-separated values to an open stream."""
    for number, block in enumerate(read_blocks(*columns)):
        write_delimited(stream, block, delimiter, header=number == 0)


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def _write_text(path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
    with create_text(path) as stream:
        csv_blocks(stream, columns, read_blocks, "\t" if _kind(path) == ".tsv" else ",")


def _write_npy(path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
    ((name, dtype),) = columns.items()
    with path.open("wb") as stream:
        _write_column(stream, name, dtype, n_rows, read_blocks)


def _write_npz(path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, dtype in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write_column(member, name, dtype, n_rows, read_blocks)


def _write_column(stream: IO[bytes], name: str, dtype: np.dtype[Any], n_rows: int, read_blocks: ReadBlocks) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n_rows,)}
    np.lib.format.write_array_header_1_0(stream, header)
    for block in read_blocks(name):
        stream.write(np.ascontiguousarray(block[name], dtype=dtype).tobytes())


def _write_parquet(path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
    arrow, parquet = load("pyarrow", "parquet"), load("pyarrow.parquet", "parquet")
    with parquet.ParquetWriter(path, _schema(arrow, columns)) as writer:
        for block in read_blocks(*columns):
            writer.write_table(arrow.table(dict(block)))


def _write_feather(path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
    arrow, ipc = load("pyarrow", "feather"), load("pyarrow.ipc", "feather")
    options = ipc.IpcWriteOptions(compression="lz4")
    with arrow.OSFile(str(path), "wb") as sink, ipc.new_file(sink, _schema(arrow, columns), options=options) as writer:
        for block in read_blocks(*columns):
            writer.write_table(arrow.table(dict(block)))


def _schema(arrow: Any, columns: Columns) -> Any:
    return arrow.schema([(name, arrow.from_numpy_dtype(dtype)) for name, dtype in columns.items()])


def _write_hdf5(path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
    with load("h5py", "hdf5").File(path, "w") as file:
        stores = {name: file.create_dataset(name, (n_rows,), dtype) for name, dtype in columns.items()}
        _fill(stores, columns, read_blocks)


def _write_zarr(path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
    group = load("zarr", "zarr").open_group(str(path), mode="w")
    stores = {name: group.create_array(name, shape=(n_rows,), dtype=dtype) for name, dtype in columns.items()}
    _fill(stores, columns, read_blocks)


def _fill(stores: Mapping[str, Any], columns: Columns, read_blocks: ReadBlocks) -> None:
    start = 0
    for block in read_blocks(*columns):
        stop = start + len(next(iter(block.values())))
        for name, store in stores.items():
            store[start:stop] = block[name]
        start = stop


_WRITERS = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".csv": _write_text,
    ".tsv": _write_text,
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
    ".feather": _write_feather,
    ".arrow": _write_feather,
    ".h5": _write_hdf5,
    ".hdf5": _write_hdf5,
    ".zarr": _write_zarr,
}
