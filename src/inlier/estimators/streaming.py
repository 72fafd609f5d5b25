"""Match files that are larger than memory: rows are read in stretches, and the mask is written as it is decided."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from inlier._typing import Array
from inlier.estimators._base import PairMatcher
from inlier.estimators.paper import EigenvectorMatcher
from inlier.io import write_blocks
from inlier.overlap.gram import choose_eigen_solver
from inlier.rows.files import NpyFile, StoredRows, blocks_of
from inlier.rows.threads import row_ranges

_LANCZOS_PASSES = 22  # of the eigenvector where d_x d_y is large; how many it takes depends on the data
_COLUMNS = {
    "score": "scores_",
    "p_value": "p_values_",
    "q_value": "q_values_",
    "inlier": "inlier_mask_",
    "certain_q_value": "certain_q_values_",
    "certain": "certain_mask_",
    "n_rivals": "n_rivals_",
}


@dataclass(frozen=True)
class StreamedMatch:
    """What was found; the mask itself is in the file."""

    # the fitted matcher. Its ``scores_`` and ``inlier_mask_`` are computed from the files when they are read
    matcher: PairMatcher
    n_pairs: int  # number of pairs, and of those called real
    n_inliers: int  # number of pairs, and of those called real
    mask_path: Path  # the ``.npy`` file that holds the mask


@dataclass(frozen=True, eq=False)
class FittedFiles:
    """A matcher that was fitted to rows in files; what it says of each pair is computed as it is read."""

    matcher: PairMatcher
    n_pairs: int

    @property
    def columns(self) -> dict[str, np.dtype[Any]]:
        """What there is per pair, and its type."""
        return {"row": np.dtype(np.int64)} | {name: np.dtype(values.dtype) for name, values in self._values().items()}

    def blocks(self, *names: str) -> Iterator[dict[str, Array]]:
        """Read the files once; yield some columns (all by default), a stretch of pairs at a time."""
        names = names or tuple(self.columns)
        values = {name: column for name, column in self._values().items() if name in names}
        stretches = blocks_of(*values.values()) if values else ((rows, []) for rows in row_ranges(self.n_pairs))
        for rows, parts in stretches:
            block = {"row": np.arange(rows.start, rows.stop), **dict(zip(values, parts, strict=True))}
            yield {name: block[name] for name in names}

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self.matcher, of) for name, of in _COLUMNS.items() if hasattr(self.matcher, of)}


def fit_files(matcher: PairMatcher, X: Any, y: Any, *, on_read: Callable[[int], None] | None = None) -> FittedFiles:
    """Fit a clone of ``matcher`` to rows that stay in their files; see `stream_mask` for the parameters.

    Examples
    --------
    Two files, or anything else that is read by slices of rows:

    >>> from inlier import RowSumMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> from inlier.estimators.streaming import fit_files
    >>> data = make_gaussian_pairs(n=1000, d=50, inlier_fraction=0.6, rng=0)
    >>> fitted = fit_files(RowSumMatcher(), data.X, data.Y)
    >>> list(fitted.columns), sum(int(block["inlier"].sum()) for block in fitted.blocks("inlier"))
    (['row', 'score', 'inlier'], 600)
    """
    tables = [_opened(table, on_read) for table in (X, y)]
    return FittedFiles(clone(matcher).fit(*tables), len(tables[0]))


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

    Notes
    -----
    The answer is that of the same rows in memory. `CalibratedMatcher` brings up to 200,000 pairs into memory: all of
    them where there are no more, otherwise a sample to learn from.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from inlier import RowSumMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> from inlier.estimators.streaming import stream_mask
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
    fitted, mask_path, counts = fit_files(matcher, X, y, on_read=on_read), Path(mask_path), [0]

    def counted(*names: str) -> Iterator[dict[str, Array]]:
        for block in fitted.blocks(*names):
            counts.append(int(block["inlier"].sum()))
            yield block

    write_blocks(mask_path, {"inlier": fitted.columns["inlier"]}, fitted.n_pairs, counted)
    return StreamedMatch(fitted.matcher, fitted.n_pairs, sum(counts), mask_path)


def bytes_to_read(matcher: PairMatcher, X: Any, y: Any) -> int:
    """About how many bytes `stream_mask` will read: the size of both tables times the number of passes."""
    tables = [_opened(table) for table in (X, y)]
    return sum(table.n_bytes for table in tables) * _passes(matcher, *tables)


def _passes(matcher: PairMatcher, X: StoredRows, y: StoredRows) -> int:
    """How often both files are read: their columns, the moments, the scores, the scores near the cut, the mask."""
    settings = matcher.get_params(deep=False)
    if matcher.is_calibrated:  # columns, whitening, the sample, the bins, the mask
        from inlier.estimators.calibrated import MOST_ONE_BY_ONE

        return 5 if len(X) > MOST_ONE_BY_ONE else 1
    passes = 5 + bool(settings["whiten"]) - (settings["threshold"] != "kmeans")
    if not isinstance(matcher, EigenvectorMatcher):
        return passes
    solver = settings["solver"]
    if solver == "auto":
        solver = choose_eigen_solver(len(X), X.shape[-1], y.shape[-1], in_memory=False)
    return passes + _LANCZOS_PASSES if solver == "operator" else passes


def _opened(table: Any, on_read: Callable[[int], None] | None = None) -> StoredRows:
    if isinstance(table, StoredRows):
        return table.reporting_to(on_read)
    source = NpyFile(table) if isinstance(table, (str, os.PathLike)) else table
    return StoredRows(source, keep_vectors=False, on_read=on_read)
