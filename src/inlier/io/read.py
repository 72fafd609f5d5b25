"""Read a table, a picture or a photo; or open a table without reading it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from inlier._checks import warn
from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io.formats import BY_SUFFIX, FORMATS, XYZ, Format, Kind, format_of
from inlier.io.table import (
    Content,
    NoNumbersError,
    NoSuchColumnError,
    Request,
    Table,
    TextColumnError,
    are_labels,
    are_words,
    as_table,
    by_column,
    check_numeric_column,
    column_places,
    keys_in,
)

if TYPE_CHECKING:
    from inlier.rows.files import StoredRows

_HEAD, _FIRST_LATER = 16, 512  # bytes


def read_table(source: str | Path, *, columns: Sequence[str] | None = None, key: str | None = None) -> Table:
    """Read a table of numbers from a file; its suffix says how.

    Parameters
    ----------
    source : str or Path
        The file. One of several arrays inside it is named after a colon: ``data.npz:x``.
    columns : sequence of str, optional
        Names of the columns (numbers from 0 where they have none); with ``^`` before each, of those to leave out. By
        default all of them but those of words, of which a warning tells (without a key only those of words that repeat,
        such as a plate: others may be ids); x, y and z of a point cloud, the colours of a picture.
    key : str, optional
        Column that names the rows; it is no part of the values.

    Returns
    -------
    Table

    Raises
    ------
    UnusableFileError
        A ValueError whose sentence names the file, what is wrong with it, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from inlier.io import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "samples.csv"
    ...     _ = path.write_text("id,height,weight\\nada,1.7,61\\nbob,1.8,75\\n")
    ...     table = read_table(path, key="id")
    >>> table.values.tolist(), table.columns, table.keys.tolist()
    ([[1.7, 61.0], [1.8, 75.0]], ('height', 'weight'), ['ada', 'bob'])
    """
    are_left_out = are_words if key is not None else are_labels
    table = read_beside_words(source, columns, key, lambda texts: columns is None and are_left_out(texts))
    if table.words and not table.values.shape[1]:
        raise NoNumbersError(f"{table.source} has no column of numbers.")
    if table.words:
        labels = list(table.words)
        named = f"column{'' if len(labels) == 1 else 's'} {', '.join(map(repr, labels))}"
        warn(f"{named} of {table.source} {'holds' if len(labels) == 1 else 'hold'} words, not numbers: left out.")
    return replace(table, words={})


def read_beside_words(
    source: str | Path, columns: Sequence[str] | None, key: str | None, are_texts: Callable[[Array], bool]
) -> Table:
    """Read a table, with the columns that are no numbers, but texts, apart from the others; refuse any others."""
    request, words = _request(source, columns, key), dict[str, Array]()
    while True:
        try:
            return replace(_read(request), words=words)
        except TextColumnError as refused:
            words[refused.column] = _texts_of(source, refused, are_texts)
            request = request.without(refused.column)
        except NoNumbersError:
            if not words:
                raise
            n_rows, keys = len(next(iter(words.values()))), None if key is None else read_labels(source, key)
            return Table(np.empty((n_rows, 0)), (), keys, request.path, words=words)


def _texts_of(source: str | Path, refused: TextColumnError, are_texts: Callable[[Array], bool]) -> Array:
    try:
        texts = read_labels(source, refused.column)
    except UnusableFileError:  # lists and the like, which are no text either
        raise refused from None
    if texts is None or not are_texts(texts):
        raise refused
    return texts


def _read(request: Request) -> Table:
    content, format = _content(request), format_of(request.path)
    with _errors_in_words(request.path, format):
        # columns that were to be left out of these were left out while reading
        rest = replace(request, left_out=()) if format.kind is Kind.COLUMNS else request
        return as_table(content, rest, XYZ if format.kind is Kind.POINTS else ())


def _content(request: Request) -> Content | Table:
    path, inside = request.path, request.inside
    format = format_of(path)
    if inside is not None and not format.is_divided:
        raise UnusableFileError(f"{path} ({format.name}) holds {format.kind.value}; leave out :{inside}")
    _check_readable(path, format)
    with _errors_in_words(path, format):
        return format.codec.read(request)


def read_labels(source: str | Path, column: str) -> Array | None:
    """Read one column of a table as text, a label per row; None where the file has no column of that name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from inlier.io import read_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "x.csv"
    ...     _ = path.write_text("plate,a\\nP1,0.5\\nP2,0.7\\n")
    ...     read_labels(path, "plate").tolist(), read_labels(path, "tissue")
    (['P1', 'P2'], None)
    """
    request = replace(_request(source, None), columns=(column,), key=column)
    format = format_of(request.path)
    _check_readable(request.path, format)
    with _errors_in_words(request.path, format):
        try:
            content = format.codec.read(request)
        except NoSuchColumnError:
            return None
    if not isinstance(content, Mapping) or column not in content:
        return None
    return keys_in(content, column, request.path)


def read_columns(source: str | Path, names: Sequence[str]) -> dict[str, Array]:
    """Read some columns of a table as they are: numbers where they hold numbers, otherwise text.

    Vectors are a table, a row for each; columns that hold none of these, such as lists of words, are left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from inlier.io import read_columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "x.csv"
    ...     _ = path.write_text("plate,a\\nP1,0.5\\nP2,0.7\\n")
    ...     {name: column.tolist() for name, column in read_columns(path, ["plate", "a"]).items()}
    {'plate': ['P1', 'P2'], 'a': [0.5, 0.7]}
    """
    numbers, found = list(names), dict[str, Array]()
    while numbers:
        request = _request(source, numbers)
        try:
            content = _content(request)
            values = by_column(content) if isinstance(content, Mapping) else by_column(_read(request).values)
            for name in numbers:
                check_numeric_column(values[name], name, request)
        except TextColumnError as error:
            numbers.remove(error.column)
            with suppress(UnusableFileError):
                texts = read_labels(source, error.column)
                found |= {} if texts is None else {error.column: texts}
            continue
        found |= {name: values[name] for name in numbers}
        break
    return {name: found[name] for name in names if name in found}


def read_points(source: str | Path) -> dict[str, Array]:
    """Read all columns of a file of points: x, y, z and what else was measured; empty where they have no names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from inlier.io import read_points, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "points.ply"
    ...     write_table(path, {"x": [0.0], "y": [2.0], "z": [4.0], "red": [7]})
    ...     {name: column.tolist() for name, column in read_points(path).items()}
    {'x': [0.0], 'y': [2.0], 'z': [4.0], 'red': [7]}
    """
    content = _content(_request(source, None))
    return by_column(content) if isinstance(content, Mapping) else {}


def read_image(path: str | Path) -> Array:
    """Read a picture's pixels, shape (height, width, channels), as they are stored (8 or 16 bits).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from inlier.io import read_image, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "grey.png", np.zeros((4, 5), dtype=np.uint16))
    ...     pixels = read_image(Path(folder) / "grey.png")
    >>> pixels.shape, str(pixels.dtype)
    ((4, 5, 1), 'uint16')
    """
    path = Path(path)
    format = format_of(path)
    if format.kind is not Kind.PICTURE:
        raise UnusableFileError(f"{path} is not a picture but {format.name}; png, jpg and tiff are read as pictures.")
    from inlier.io._image_files import Picture

    _check_readable(path, format)
    codec = format.codec
    assert isinstance(codec, Picture)
    with _errors_in_words(path, format):
        return codec.pixels(path)


def read_photo(path: str | PathLike[str]) -> Array:
    """Read an image file upright, with the numbers that are stored in it.

    Of several pages or frames the first is taken, of more than three planes the first three, with a warning. A grey
    image stays grey: one channel. Where anything is transparent, a last channel says how opaque each pixel is.

    Parameters
    ----------
    path : path
        Any image file that Pillow reads, and any tiff; its content says of which kind, not its suffix.

    Returns
    -------
    ndarray of shape (height, width), (height, width, 2), (height, width, 3) or (height, width, 4)
        In 8 or 16 bits or floating point, as stored; grey or red, green and blue, and opacity if there are 2 or 4.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from inlier.io import read_photo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGBA", (64, 48), (255, 0, 0, 0)).save(Path(folder) / "clear.png")
    ...     read_photo(Path(folder) / "clear.png")[0, 0].tolist()
    [255, 0, 0, 0]
    """
    from inlier.io._image_files import as_looked_at

    return as_looked_at(Path(path))


def eight_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Bring 16-bit and floating point values to 0 .. 255."""
    numbers = np.nan_to_num(values.astype(np.float32))
    top = float(numbers.max(initial=0.0))
    full = 1.0 if top <= 1.0 and values.dtype.kind == "f" else 255.0 if top <= 255 else max(top, 65535.0)
    return np.round(np.clip(numbers / full, 0, 1) * 255).astype(np.uint8)


def open_stored(source: str | Path, *, columns: Sequence[str] | None = None) -> StoredRows | None:
    """Open the table that `read_table` would read; None where that is not one array of numbers, kept by rows.

    A matcher takes what is opened in place of an array, and reads it in stretches.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from inlier.io import open_stored
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "x.npy", np.ones((1000, 3)))
    ...     table = open_stored(Path(folder) / "x.npy", columns=["2"])
    ...     table.shape, table.n_bytes
    ((1000, 1), 24000)
    """
    from inlier.rows.files import StoredRows

    request = _request(source, columns)
    format = format_of(request.path)
    if request.inside is not None and not format.is_divided:
        return None
    _check_readable(request.path, format)
    try:
        arrays = format.codec.open(request)
        meant = [name for name, array in arrays.items() if request.inside in (None, name) and len(array.shape) > 0]
        values = _InWords(arrays[meant[0]], request.path, format) if len(meant) == 1 else None
        if values is None or np.dtype(values.dtype).kind not in "biuf" or len(values.shape) not in (1, 2):
            return None
        if min(values.shape) < 1:
            return None
    except Exception:  # a library may raise anything; `read_table` says what is wrong with the file
        return None
    is_list = len(values.shape) == 1
    if format.kind is Kind.COLUMNS:  # named, and found by its name
        return StoredRows(values, keep_vectors=False)
    places = column_places(request, 1 if is_list else int(values.shape[1]))
    return StoredRows(values, keep_vectors=False, columns=[0] if is_list and places is None else places)


class _InWords:
    """An array in a file, of which a part may turn out to be damaged when it is read."""

    def __init__(self, array: Any, path: Path, format: Format) -> None:
        self._array, self._path, self._format = array, path, format

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)

    def __getitem__(self, rows: Any) -> Array:
        with _errors_in_words(self._path, self._format):
            return np.asarray(self._array[rows])


def column_names(path: str | Path) -> list[str]:
    """Names of the columns, or of the arrays, in a file; none where they have none."""
    path = Path(path)
    format = format_of(path)
    _check_readable(path, format)
    with _errors_in_words(path, format):
        return format.codec.names(path)


def _request(source: str | Path, columns: Sequence[str] | None, key: str | None = None) -> Request:
    """What is wanted of which file, from what the user wrote."""
    path, inside = split_source(source)
    left_out = tuple(name[1:] for name in columns or () if name.startswith("^"))
    if left_out and len(left_out) < len(columns or ()):
        raise UnusableFileError(
            f"columns of {path} are either named or left out with ^, not both: {', '.join(columns or ())}."
        )
    return Request(path, inside, None if columns is None or left_out else tuple(columns), key, left_out)


def split_source(source: str | Path) -> tuple[Path, str | None]:
    """``data.npz:x`` is the array x inside data.npz, unless a file has that very name."""
    path = Path(source)
    is_there = os.path.lexists(path)  # unlike Path.exists, answers for a name that is too long
    if path.suffix.lower() in BY_SUFFIX or is_there:
        return path, None
    parts = str(source).split(":")
    for number in range(1, len(parts)):
        left, inside = Path(":".join(parts[:number])), ":".join(parts[number:])
        if left.suffix.lower() in BY_SUFFIX and inside:
            return left, inside
    return path, None


def _check_readable(path: Path, format: Format) -> None:
    """Answer the usual mistakes before any parser sees the file."""
    try:
        if path.is_dir() != format.is_folder and path.exists():
            kind = ("a folder, not a file", "a file, not a folder")[format.is_folder]
            raise UnusableFileError(f"{path} is {kind}, which {format.name} is kept in.")
        if path.exists() and not path.is_dir() and not path.is_file():
            raise UnusableFileError(f"{path} is a device or a pipe, not a file. Copy what it holds to a file first.")
        size = path.stat().st_size
        head = b"" if format.is_folder else _head(path, format)
    except FileNotFoundError:
        raise UnusableFileError(f"there is no file {path}. Check the name and the folder.") from None
    except OSError as error:
        is_loop = error.errno == errno.ELOOP
        reason = "its symbolic links go round in a circle" if is_loop else str(error.strerror).lower()
        raise UnusableFileError(f"{path} could not be opened: {reason}.") from error
    if not format.is_folder and size == 0:
        raise UnusableFileError(f"{path} is empty (0 bytes). Write it again.")
    if format.starts and not head.startswith(format.starts):
        marks = [(other, mark) for other in FORMATS for mark in other.starts if len(mark) > 1]
        looks = next((other for other, mark in marks if head.startswith(mark)), None)
        cure = f"It looks like {looks.name}: rename it to end in {looks.suffixes[0]}" if looks else "Check its origin"
        raise UnusableFileError(f"{path} is no {format.name} file: its content does not start like one. {cure}.")


def _head(path: Path, format: Format) -> bytes:
    """How the content starts: at the beginning, or at the first later place at which it starts as it should."""
    with path.open("rb") as stream:
        first = head = stream.read(_HEAD)
        place = _FIRST_LATER
        while format.may_start_later and head and not head.startswith(format.starts):
            stream.seek(place)
            head, place = stream.read(_HEAD), 2 * place
        return head or first


@contextmanager
def _errors_in_words(path: Path, format: Format) -> Iterator[None]:
    """Turn whatever a parser raises on a broken file into a sentence."""
    try:
        yield
    except (UnusableFileError, ImportError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError as error:
        raise UnusableFileError(f"{path} does not fit into memory. Choose fewer columns or rows.") from error
    except BaseException as error:  # a parser may raise anything; those in Rust, what is no Exception
        reason = (" ".join(str(error).split()) or type(error).__name__)[:160].rstrip(". ")
        raise UnusableFileError(
            f"{path} could not be read as {format.name}: {reason}. It may be damaged or cut short; copy or save it "
            f"again."
        ) from error
