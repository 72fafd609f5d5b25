"""Two tables as pairs: row by row, or joined on an id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from inlier._typing import Array, Mask
from inlier.exceptions import UnusableFileError
from inlier.io.table import Table

_NAMED = 3  # ids that are named in a sentence


@dataclass(frozen=True, eq=False)
class Pairing:
    """Rows that belong together, and what was left out on the way.

    Attributes
    ----------
    X, Y : ndarray of shape (n, d_x), (n, d_y)
        Partners, row by row.
    rows : ndarray of int, shape (n,)
        Row of each pair in the first file, counted from 0 without the header.
    rows_y : ndarray of int, shape (n,), optional
        Row in the second file, where the tables were joined.
    keys : ndarray of str, shape (n,), optional
        The id of each pair, where the tables were joined.
    notes : list of str
        What was left out, in sentences.
    """

    X: Array
    Y: Array
    rows: Array
    keys: Array | None = None
    notes: list[str] = field(default_factory=list)
    rows_y: Array | None = None

    def __len__(self) -> int:
        return len(self.rows)


def pair_tables(X: Table, Y: Table) -> Pairing:
    """Pair two tables by position, or by id where both were read with a key.

    An id that occurs twice in a file does not say which row is meant: such rows are left out, as are ids without a
    partner and rows without an id, and the notes say so.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from inlier.io import Table, pair_tables
    >>> X = Table(np.array([[1.0], [2.0], [3.0]]), None, np.array(["ada", "bob", "cyd"]), Path("x.csv"))
    >>> Y = Table(np.array([[9.0], [8.0]]), None, np.array(["cyd", "ada"]), Path("y.csv"))
    >>> pairing = pair_tables(X, Y)
    >>> pairing.keys.tolist(), pairing.Y.tolist(), pairing.notes
    (['ada', 'cyd'], [[8.0], [9.0]], ['1 id of x.csv is not in y.csv: bob.'])
    """
    if X.keys is not None and Y.keys is not None:
        return _join(X, Y, X.keys, Y.keys)
    if len(X) != len(Y):
        raise UnusableFileError(
            f"{X.source} has {len(X):,} rows and {Y.source} has {len(Y):,}, but row i of one belongs with row i of the "
            f"other. Join them on an id with --key COLUMN (key=), or drop the rows without a partner."
        )
    return Pairing(X.values, Y.values, np.arange(len(X)))


def _join(X: Table, Y: Table, keys_x: Array, keys_y: Array) -> Pairing:
    notes: list[str] = []
    usable_x, usable_y = _usable(keys_x, X.source, notes), _usable(keys_y, Y.source, notes)
    place_x, place_y = np.flatnonzero(usable_x), np.flatnonzero(usable_y)
    shared, of_x, of_y = np.intersect1d(keys_x[place_x], keys_y[place_y], assume_unique=True, return_indices=True)
    if shared.size == 0:
        raise UnusableFileError(
            f"{X.source} and {Y.source} share no id that occurs once in each: the first has {_some(keys_x.tolist())}, "
            f"the second {_some(keys_y.tolist())}. Check that --key names the same kind of id in both."
        )
    _note_unmatched(keys_x, keys_y, X.source, Y.source, notes)
    _note_unmatched(keys_y, keys_x, Y.source, X.source, notes)
    order = np.argsort(place_x[of_x])  # as in the first file
    rows_x, rows_y = place_x[of_x][order], place_y[of_y][order]
    return Pairing(X.values[rows_x], Y.values[rows_y], rows_x, keys_x[rows_x], notes, rows_y)


def _usable(keys: Array, source: Path, notes: list[str]) -> Mask:
    """Rows whose id is there and unique."""
    _, inverse, count = np.unique(keys, return_inverse=True, return_counts=True)
    unnamed = keys == ""
    repeated = (count[inverse] > 1) & ~unnamed
    if unnamed.any():
        n = int(unnamed.sum())
        notes.append(f"{n:,} {'row' if n == 1 else 'rows'} of {source} without an id left out.")
    if repeated.any():
        again = list(dict.fromkeys(keys[repeated].tolist()))
        n_ids = f"{len(again):,} {'id occurs' if len(again) == 1 else 'ids occur'}"
        notes.append(
            f"{n_ids} more than once in {source}, so that nobody knows which row is meant; the "
            f"{int(repeated.sum()):,} rows were left out: {_some(again)}."
        )
    return ~unnamed & ~repeated


def _note_unmatched(keys: Array, others: Array, source: Path, other: Path, notes: list[str]) -> None:
    alone = list(dict.fromkeys(keys[~np.isin(keys, others) & (keys != "")].tolist()))
    if alone:
        n_ids, are = (f"{len(alone):,} ids", "are") if len(alone) > 1 else ("1 id", "is")
        notes.append(f"{n_ids} of {source} {are} not in {other}: {_some(alone)}.")


def _some(keys: Sequence[str]) -> str:
    shown = ", ".join(key if len(key) <= 30 else f"{key[:30]}..." for key in keys[:_NAMED])
    return f"{shown}, ..." if len(keys) > _NAMED else shown
