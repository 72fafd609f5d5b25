"""Match files that are larger than memory: rows are read in stretches, and the mask is written as it is decided."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.base import clone

from inlier.engine.blocks import Array
from inlier.engine.in_files import NpyFile, StoredRows, stretches
from inlier.matching import PairMatcher

PASSES = {"RowSumMatcher": 5, "EigenvectorMatcher": 5, "CalibratedMatcher": 7}


@dataclass(frozen=True)
class StreamedMatch:
    """What was found; the mask itself is in the file.

    Attributes
    ----------
    matcher : PairMatcher
        The fitted matcher. Its ``scores_`` and ``inlier_mask_`` are computed from the files when they are read.
    n_pairs, n_inliers : int
        Number of pairs, and of those called real.
    mask_path : Path
        The ``.npy`` file that holds the mask.
    """

    matcher: PairMatcher
    n_pairs: int
    n_inliers: int
    mask_path: Path


def stream_mask(
    matcher: PairMatcher, X: Any, y: Any, mask_path: str | Path, *, on_read: Callable[[int], None] | None = None
) -> StreamedMatch:
    """Match rows that are kept in files, and write the mask to an ``.npy`` file, in memory that does not grow with n.

    Parameters
    ----------
    matcher : PairMatcher
        A matcher as it would be fitted to arrays; a clone of it is.
    X, y : path of an ``.npy`` file, or an array that is read by slices of rows
        Zarr arrays, HDF5 datasets and memory maps are such arrays. A path is read without mapping it into memory.
    mask_path : path
        Where the mask goes; it is written beside and renamed, so that half a mask is never seen.
    on_read : callable, optional
        Called with the number of bytes after each stretch that was read, for a progress bar. Altogether about
        `bytes_to_read` are.

    Returns
    -------
    StreamedMatch

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from inlier import RowSumMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> from inlier.streaming import stream_mask
    >>> data = make_gaussian_pairs(n=1000, d=50, inlier_fraction=0.6, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = Path(folder)
    ...     np.save(folder / "X.npy", data.X)
    ...     np.save(folder / "Y.npy", data.Y)
    ...     found = stream_mask(RowSumMatcher(), folder / "X.npy", folder / "Y.npy", folder / "mask.npy")
    ...     mask = np.load(folder / "mask.npy")
    >>> found.n_inliers, bool((mask == data.inlier_mask).all())
    (600, True)
    """
    tables = tuple(StoredRows(_opened(table), keep_vectors=False, on_read=on_read) for table in (X, y))
    fitted = clone(matcher).fit(*tables)
    mask_path, n_inliers = Path(mask_path), 0
    with _beside(mask_path) as stream:
        header = {"descr": "|b1", "fortran_order": False, "shape": (len(tables[0]),)}
        np.lib.format.write_array_header_1_0(stream, header)
        for rows in stretches(tables):
            block: Array = np.asarray(fitted.inlier_mask_[rows])
            n_inliers += int(block.sum())
            stream.write(block.tobytes())
    return StreamedMatch(fitted, len(tables[0]), n_inliers, mask_path)


def bytes_to_read(matcher: PairMatcher, X: Any, y: Any) -> int:
    """About how many bytes `stream_mask` will read: the size of both tables times the number of passes."""
    tables = (_opened(table) for table in (X, y))
    size = sum(int(np.prod(table.shape, dtype=np.int64)) * np.dtype(table.dtype).itemsize for table in tables)
    return size * PASSES.get(type(matcher).__name__, 5)


def _opened(table: Any) -> Any:
    return NpyFile(table) if isinstance(table, (str, os.PathLike)) else table


@contextmanager
def _beside(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write to that takes the place of ``path`` when all went well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        Path(name).replace(path)
    except BaseException:  # Ctrl-C included: leave nothing behind
        Path(name).unlink(missing_ok=True)
        raise
