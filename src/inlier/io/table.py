"""What a file holds once it is read: numbers, and names for their rows and columns; and two of them as pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from inlier._checks import warn
from inlier._typing import Array, Mask
from inlier.exceptions import UnusableFileError
from inlier.io.ids import plain_ids, spelled_alike

_LIKE_IDS = {"id", "ids", "index", "key", "sample", "subject", "name", "uid", "uuid"}
_MOST_LISTED = 12  # names in a sentence
_NAMED = 3  # ids that are named in a sentence
# what a repair says of each row, beside the columns of the table that it puts right: no part of that table
REPAIR_COLUMNS = ("inlier_row", "inlier_verdict", "inlier_partner", "inlier_q_value")
# what a match adds to the rows of a file that holds both sides of each pair: no part of that table either
MATCH_COLUMNS = (
    "inlier",
    *(f"inlier_{name}" for name in ("score", "p_value", "q_value", "certain_q_value", "certain", "n_rivals")),
)


Content = Array | Mapping[str, Array]  # one array, or columns by name


@dataclass(frozen=True)
class Request:
    """What is wanted of a file."""

    path: Path
    inside: str | None = None  # which of the arrays in it
    columns: tuple[str, ...] | None = None  # all numeric ones by default
    key: str | None = None  # column that names the rows
    left_out: tuple[str, ...] = ()  # columns that are not wanted, instead of a list of those that are

    def without(self, column: str) -> Request:
        """The same without a column."""
        if self.columns is not None:
            return replace(self, columns=tuple(name for name in self.columns if name != column))
        return replace(self, left_out=(*self.left_out, column))


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers from a file, a row per point.

    Attributes
    ----------
    values : ndarray of shape (n, d)
        The numbers; a memory map where the file is large and allows it.
    columns : tuple of str, optional
        Names of the columns.
    keys : ndarray of str, shape (n,), optional
        Names of the rows, where a key column was asked for; empty where the file has none.
    source : Path
        The file.
    turned : str, optional
        Where the file has a column per point and was turned over: the heading of the names of its rows.
    words : dict of str to ndarray of str
        Columns of texts, beside the numbers, where they were asked for.
    """

    values: Array
    columns: tuple[str, ...] | None
    keys: Array | None
    source: Path
    turned: str | None = None
    words: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)


class NoSuchColumnError(UnusableFileError):
    """A file without a column that was asked for."""


class NoNumbersError(UnusableFileError):
    """A file without any column of numbers among those that are wanted."""


class TextColumnError(UnusableFileError):
    """A column of something else than numbers."""

    def __init__(self, said: str, column: str) -> None:
        super().__init__(said)
        self.column = column


def by_column(content: Content) -> dict[str, Array]:
    """Columns by name; those of an array are numbered from 0."""
    if isinstance(content, np.ndarray):
        return {str(number): column for number, column in enumerate(content.T)}
    return dict(content)


def as_array(content: Content) -> Array:
    """One array, with the columns side by side."""
    return content if isinstance(content, np.ndarray) else np.stack(list(content.values()), axis=1)


def as_table(content: Content | Table, request: Request, usual: tuple[str, ...] = ()) -> Table:
    """Choose the columns and the key, and refuse what is not numbers.

    ``usual`` are the columns that are taken when none is asked for, if the file has them all: x, y, z of a cloud.
    """
    if isinstance(content, Table):
        return content
    if isinstance(content, np.ndarray):
        if content.dtype.names is None:
            return _from_array(content, request)
        content = {name: content[name] for name in content.dtype.names}
    return _from_columns(content, request, usual)


def _from_array(array: Array, request: Request) -> Table:
    path = request.path
    if request.key is not None:
        raise UnusableFileError(
            f"{path} has no column named {request.key!r}: it holds one array without names. Give both files in the "
            f"same order, or use a format with columns (csv, parquet)."
        )
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if array.size == 0 and array.ndim in (1, 2):
        raise UnusableFileError(f"{path} holds an empty array, of shape {array.shape}. Save it again with its numbers.")
    if array.ndim != 2:
        raise UnusableFileError(
            f"{path} holds an array of shape {array.shape}, but a table of shape (rows, columns) is needed. "
            f"Reshape it first, for example with array.reshape(len(array), -1)."
        )
    check_numeric(array, path)
    places = column_places(request, array.shape[1])
    if places is None:
        return Table(array, None, None, path)
    return Table(np.ascontiguousarray(array[:, places]), tuple(map(str, places)), None, path)


def column_places(request: Request, n_columns: int) -> list[int] | None:
    """Numbers of the columns that are wanted of an array without names; None for all of them."""
    if request.columns is None and not request.left_out:
        return None
    named = request.columns or request.left_out
    unknown = next((name for name in named if not name.isdecimal() or int(name) >= n_columns), None)
    if unknown is not None:
        raise UnusableFileError(
            f"{request.path} has no column {unknown!r}: its {n_columns} columns have no names and are counted 0 to "
            f"{n_columns - 1}."
        )
    places = [int(name) for name in named]
    return [place for place in range(n_columns) if place not in places] if request.left_out else places


def _from_columns(content: Mapping[str, Array], request: Request, usual: tuple[str, ...]) -> Table:
    path, chosen = request.path, request.columns
    names = wanted_columns(request, list(content))
    if chosen is None:
        is_usual = usual and not request.left_out and set(usual) <= set(names)
        chosen = tuple(name for name in (usual if is_usual else names) if name != request.key)
    if not chosen:
        beside = "" if request.key is None else f" beside the key {request.key!r}"
        raise NoNumbersError(f"{path} has no column of numbers{beside}.")
    for name in chosen:
        check_numeric_column(content[name], name, request)
    if request.columns is None:
        _point_out_ids(chosen, request)
    keys = None if request.key is None else keys_in(content, request.key, path)
    lengths = sorted({len(content[name]) for name in chosen})
    if len(lengths) > 1:
        raise UnusableFileError(f"{path} has columns of different lengths, {lengths[0]} and {lengths[-1]} rows.")
    if all(content[name].ndim == 1 for name in chosen):
        return Table(np.stack([content[name] for name in chosen], axis=1), chosen, keys, path)
    values = content[chosen[0]] if len(chosen) == 1 else np.column_stack([content[name] for name in chosen])
    return Table(values, tuple(name for column in chosen for name in _names_in(column, content[column])), keys, path)


def _names_in(column: str, values: Array) -> list[str]:
    return [column] if values.ndim == 1 else [f"{column}[{place}]" for place in range(values.shape[1])]


def wanted_columns(request: Request, names: list[str]) -> list[str]:
    """Names of the columns to read, the key with them; refuse those that the file has not."""
    key = [] if request.key is None else [request.key]
    for name in (*(request.columns or ()), *request.left_out, *key):
        if name not in names:
            nameless = " Its first column has no name, as R writes row names: that is --key ''." if "" in names else ""
            has = listed([other for other in names if other])
            raise NoSuchColumnError(f"{request.path} has no column named {name!r}; it has {has}.{nameless}")
    if request.columns is not None:
        wanted = list(dict.fromkeys([*request.columns, *key]))
    else:
        wanted = [name for name in _named(names, request) if name in key or name not in request.left_out]
    if not wanted:
        raise NoNumbersError(f"{request.path} has no column of numbers.")
    return wanted


def vectors_alone(names: list[str], vectors: list[str], request: Request) -> list[str]:
    """Of columns of which one holds vectors, that one and the key: what stands beside it are texts, ids and scores."""
    vectors = [name for name in vectors if name in names]
    if not vectors or request.columns is not None:
        return names
    if len(vectors) > 1:
        raise UnusableFileError(
            f"{request.path} has {len(vectors)} columns of vectors: {listed(vectors)}. Choose one, for example with "
            f"--columns {vectors[0]} (columns=)."
        )
    others = [name for name in names if name not in (vectors[0], request.key)]
    if others:
        warn(
            f"column {vectors[0]!r} of {request.path} holds vectors and is compared; {listed(others)} beside it "
            f"{'is' if len(others) == 1 else 'are'} left out. To compare others, name them with --columns (columns=)."
        )
    return [name for name in names if name in (vectors[0], request.key)]


def _named(names: list[str], request: Request) -> list[str]:
    """Leave out what a repair wrote, and the nameless column that data frames write first, unless it is the key."""
    if set(REPAIR_COLUMNS) < set(names):
        warn(f"columns of {request.path} that a repair wrote (inlier_...) were left out.")
        names = [name for name in names if name not in REPAIR_COLUMNS]
    if {"inlier", "inlier_score"} < set(names):
        warn(f"columns of {request.path} that a match wrote (inlier, inlier_...) were left out.")
        names = [name for name in names if name not in MATCH_COLUMNS]
    nameless = [name for name in names if name == "" or name.startswith("__index_level_")]
    rest = [name for name in names if name not in nameless or name == request.key]
    if nameless and rest and request.key not in nameless:
        warn(
            f"a column of {request.path} without a name was left out: it looks like the row names of a data frame. "
            f"To join on it, give --key '{nameless[0]}' (key=)."
        )
    return rest or names


def _point_out_ids(names: tuple[str, ...], request: Request) -> None:
    ids = [name for name in names if name.lower() in _LIKE_IDS or name.lower().endswith("_id")]
    if ids and request.key is None and len(names) > 1:
        warn(
            f"column {ids[0]!r} of {request.path} is compared like any other number. If it names the rows, join on it "
            f"with --key {ids[0]} (key=)."
        )


def keys_in(content: Mapping[str, Array], name: str, path: Path) -> Array:
    """A column as ids or labels."""
    if content[name].ndim > 1:
        raise UnusableFileError(f"column {name!r} of {path} holds vectors, which name nothing. Choose another column.")
    return as_keys(content[name])


def as_keys(values: Array) -> Array:
    """Ids as text without blanks around them, so that 7 in one file is "7" in the other; a missing one is empty."""
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    elif values.dtype.kind == "f":  # whole numbers that some tool stored as floats
        missing = np.isnan(values)
        whole = (values == np.trunc(values)) & (np.abs(values) < 2**53)
        texts = [
            "" if gone else str(int(value)) if is_whole else repr(float(value))
            for value, gone, is_whole in zip(values, missing, whole, strict=True)
        ]
        values = np.array(texts, dtype=np.str_)
    return np.char.strip(plain_ids(np.char.strip(values.astype(np.str_))))


def check_numeric(array: Array, path: Path) -> None:
    """Refuse what is not real numbers."""
    if array.dtype.kind not in "biuf":
        kind = {"O": "Python objects", "S": "text", "U": "text", "c": "complex numbers"}.get(
            array.dtype.kind, f"values of type {array.dtype}"
        )
        raise UnusableFileError(f"{path} holds {kind}, but numbers are needed. Save it as an array of floats.")


def check_numeric_column(column: Array, name: str, request: Request) -> None:
    """Refuse what is neither numbers nor vectors of them."""
    if column.ndim > 2:
        raise UnusableFileError(
            f"column {name!r} of {request.path} holds an array of shape {column.shape[1:]} in each row."
        )
    if column.dtype.kind not in "biuf":
        example = next((str(value) for value in column if str(value).strip()), "nothing")
        raise not_a_number(name, example, request)


def not_a_number(name: str, example: str, request: Request) -> TextColumnError:
    """What to say of a column that holds something else than numbers."""
    shown = example if len(example) <= 40 else f"{example[:40]}..."
    cure = f"leave it out with --columns ^{name} (columns=)"
    if request.key is None:
        cure = f"if it names the rows, join on it with --key {name} (key=); else {cure}"
    cure = cure[0].upper() + cure[1:]
    return TextColumnError(
        f"column {name!r} of {request.path} does not hold numbers (for example {shown!r}). {cure}.", name
    )


def no_vectors(name: str, path: Path, error: Exception) -> TextColumnError:
    """What to say of a column of lists that are no vectors of one length."""
    return TextColumnError(f"column {name!r} of {path} {error}.", name)


def are_words(texts: Array) -> bool:
    """Whether there are words, and none of them is a number."""
    words = np.unique(texts[texts != ""])
    return words.size > 0 and not any(map(_is_number, words.tolist()))


def are_labels(texts: Array) -> bool:
    """Whether words stand for kinds of rows, such as a plate: they repeat, as ids do not."""
    words = texts[texts != ""]
    return are_words(texts) and bool(np.unique(words).size <= words.size / 2)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def listed(names: list[str]) -> str:
    """Names in words, not too many."""
    shown = ", ".join(names[:_MOST_LISTED])
    return f"{shown} and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else shown or "none"


# ---- two tables as pairs: row by row, or joined on an id


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
    ends : tuple of two ndarrays of shape (n,), optional
        What a table of pairs calls the two ends: ids, or rows.
    lines : ndarray of int, shape (n,), optional
        Where each pair stands in that table.
    """

    X: Array
    Y: Array
    rows: Array
    keys: Array | None = None
    notes: list[str] = field(default_factory=list)
    rows_y: Array | None = None
    ends: tuple[Array, Array] | None = None
    lines: Array | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def rows_of_y(self) -> Array:
        """Row of each pair in the second file, joined or not."""
        return self.rows if self.rows_y is None else self.rows_y


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
        n_columns = X.values.shape[1]
        if n_columns == Y.values.shape[1] > max(len(X), len(Y)):
            raise UnusableFileError(
                f"{X.source} has {len(X):,} rows and {Y.source} has {len(Y):,}, but both have {n_columns:,} columns. "
                f"If each column belongs with the same one of the other file, turn both over with --transpose; else "
                f"join the rows on an id with --key COLUMN (key=)."
            )
        raise UnusableFileError(
            f"{X.source} has {len(X):,} rows and {Y.source} has {len(Y):,}, but row i of one belongs with row i of the "
            f"other. Join them on an id with --key COLUMN (key=), drop the rows without a partner, or let --repair "
            f"look for where lines are missing."
        )
    return Pairing(X.values, Y.values, np.arange(len(X)))


def _join(X: Table, Y: Table, keys_x: Array, keys_y: Array) -> Pairing:
    keys_y, note = spelled_alike(keys_x, keys_y, X.source, Y.source)
    notes: list[str] = [] if note is None else [note]
    usable_x, usable_y = _usable(keys_x, X.source, notes), _usable(keys_y, Y.source, notes)
    place_x, place_y = np.flatnonzero(usable_x), np.flatnonzero(usable_y)
    shared, of_x, of_y = np.intersect1d(keys_x[place_x], keys_y[place_y], assume_unique=True, return_indices=True)
    if shared.size == 0:
        raise UnusableFileError(
            f"{X.source} and {Y.source} share no id that occurs once in each: the first has {_some(keys_x.tolist())}, "
            f"the second {_some(keys_y.tolist())}. Check that --key names the same kind of id in both, "
            f"or name the pairs in a table, with --pairs."
        )
    # two sheets of one file have the same name
    first, second = (X.source, Y.source) if X.source != Y.source else ("the first table", "the second")
    _note_unmatched(keys_x, keys_y, f"{first}", f"{second}", notes)
    _note_unmatched(keys_y, keys_x, f"{second}", f"{first}", notes)
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


def _note_unmatched(keys: Array, others: Array, source: str, other: str, notes: list[str]) -> None:
    alone = list(dict.fromkeys(keys[~np.isin(keys, others) & (keys != "")].tolist()))
    if alone:
        n_ids, are = (f"{len(alone):,} ids", "are") if len(alone) > 1 else ("1 id", "is")
        notes.append(f"{n_ids} of {source} {are} not in {other}: {_some(alone)}.")


def _some(keys: Sequence[str]) -> str:
    shown = ", ".join(key if len(key) <= 30 else f"{key[:30]}..." for key in keys[:_NAMED])
    return f"{shown}, ..." if len(keys) > _NAMED else shown
