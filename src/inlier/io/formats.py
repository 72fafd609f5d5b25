"""Which file is read by whom: the suffix decides."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import numpy as np

from inlier._typing import Array
from inlier.io import (
    array_stores,
    arrow_files,
    neuroimaging,
    numpy_files,
    pictures,
    point_clouds,
    text,
)
from inlier.io.atomic import written_beside
from inlier.io.extras import load
from inlier.io.table import Content, Request, Table, UnusableFileError, as_table

Reader = Callable[[Request], Content]
Writer = Callable[[Path, Content], None]


class Kind(Enum):
    """What a file can hold."""

    ARRAY = "one array of numbers"
    ARRAYS = "several arrays by name"
    COLUMNS = "columns by name, text among them"
    POINTS = "points with x, y and z"
    PICTURE = "a picture"


@dataclass(frozen=True)
class Format:
    """How one kind of file is read and written.

    Attributes
    ----------
    name : str
        What people call it.
    suffixes : tuple of str
        How its files' names end, in lower case.
    kind : Kind
        What it can hold.
    read : callable
        From a `Request` to an array, or to columns by name.
    write : callable
        From a path and an array or columns to a file.
    library : str, optional
        The module of the ``io`` extra that it takes.
    starts : tuple of bytes
        How its content starts; empty where that may be anything.
    is_folder : bool
        Whether it is a folder rather than a file.
    """

    name: str
    suffixes: tuple[str, ...]
    kind: Kind
    read: Reader
    write: Writer
    library: str | None = None
    starts: tuple[bytes, ...] = ()
    is_folder: bool = False

    @property
    def usual_columns(self) -> tuple[str, ...]:
        """What is read when no columns are asked for, if the file has them."""
        return point_clouds.XYZ if self.kind is Kind.POINTS else ()


def _text(suffix: str, kind: Kind, read: Reader, write: Writer, library: str | None = None) -> tuple[Format, Format]:
    """A format of text, plain and gzipped."""
    name = suffix.removeprefix(".")
    return (
        Format(name, (suffix,), kind, read, write, library),
        Format(f"gzipped {name}", (f"{suffix}.gz",), kind, read, write, library, (_GZ,)),
    )


_GZ = b"\x1f\x8b"
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_ARRAY, _ARRAYS, _COLUMNS, _POINTS, _PICTURE = Kind
_npy, _npz = numpy_files.read_npy, numpy_files.read_npz
_numbers, _write_numbers = text.read_blank_separated, text.write_blank_separated
_picture, _write_picture = pictures.read_picture, pictures.write_picture
_nifti, _write_nifti = neuroimaging.read_nifti, neuroimaging.write_nifti

FORMATS = (
    Format("npy", (".npy",), _ARRAY, _npy, numpy_files.write_npy, starts=(b"\x93NUMPY",)),
    Format("npz", (".npz",), _ARRAYS, _npz, numpy_files.write_npz, starts=(b"PK\x03\x04", b"PK\x05\x06")),
    *_text(".csv", _COLUMNS, text.read_delimited, text.write_csv, "pyarrow"),
    *_text(".tsv", _COLUMNS, text.read_delimited, text.write_tsv, "pyarrow"),
    *_text(".txt", _ARRAY, _numbers, _write_numbers),
    Format("xyz", (".xyz",), _POINTS, _numbers, _write_numbers),
    Format(
        "parquet",
        (".parquet", ".pq"),
        _COLUMNS,
        arrow_files.read_parquet,
        arrow_files.write_parquet,
        "pyarrow",
        (b"PAR1",),
    ),
    Format(
        "feather",
        (".feather", ".arrow"),
        _COLUMNS,
        arrow_files.read_feather,
        arrow_files.write_feather,
        "pyarrow",
        (b"ARROW1",),
    ),
    Format("hdf5", (".h5", ".hdf5"), _ARRAYS, array_stores.read_hdf5, array_stores.write_hdf5, "h5py", (b"\x89HDF",)),
    Format("zarr", (".zarr",), _ARRAYS, array_stores.read_zarr, array_stores.write_zarr, "zarr", is_folder=True),
    Format("ply", (".ply",), _POINTS, point_clouds.read_ply, point_clouds.write_ply, "plyfile", (b"ply",)),
    Format("pcd", (".pcd",), _POINTS, point_clouds.read_pcd, point_clouds.write_pcd, "pypcd4", (b"#", b"VERSION")),
    Format("las", (".las", ".laz"), _POINTS, point_clouds.read_las, point_clouds.write_las, "laspy", (b"LASF",)),
    Format(
        "gifti",
        (".gii",),
        _POINTS,
        neuroimaging.read_gifti,
        neuroimaging.write_gifti,
        "nibabel",
        (b"<?xml", b"<GIFTI"),
    ),
    Format("nifti", (".nii",), _ARRAY, _nifti, _write_nifti, "nibabel"),
    Format("gzipped nifti", (".nii.gz",), _ARRAY, _nifti, _write_nifti, "nibabel", (_GZ,)),
    Format("png", (".png",), _PICTURE, _picture, _write_picture, starts=(b"\x89PNG",)),
    Format("jpeg", (".jpg", ".jpeg"), _PICTURE, _picture, _write_picture, starts=(b"\xff\xd8",)),
    Format("tiff", (".tif", ".tiff"), _PICTURE, _picture, _write_picture, "tifffile", _TIFF),
)
_SHEET, _PICKLE = "Save the sheet as csv.", "Pickles are never loaded, since that can run code; save the array as npy."
_CURES = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), _SHEET),
    **dict.fromkeys((".pkl", ".pickle", ".joblib", ".pt", ".pth"), _PICKLE),
    ".mat": "Save the array as npy, for example with scipy.io.loadmat and numpy.save.",
    ".gz": "Name it after what is inside, as in .csv.gz.",
}
_BY_SUFFIX = {suffix: format for format in FORMATS for suffix in format.suffixes}


def read_table(source: str | Path, *, columns: Sequence[str] | None = None, key: str | None = None) -> Table:
    """Read a table of numbers from a file; its suffix says how.

    Parameters
    ----------
    source : str or Path
        The file. One of several arrays inside it is named after a colon: ``data.npz:x``.
    columns : sequence of str, optional
        Names of the columns (numbers from 0 where they have none); with ``^`` before each, of those to leave out. By
        default all of them, x, y and z of a point cloud, the colours of a picture.
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
    request = request_of(source, columns=columns, key=key)
    path, inside = request.path, request.inside
    format = format_of(path)
    if inside is not None and format.kind is not Kind.ARRAYS:
        raise UnusableFileError(f"{path} ({format.name}) holds {format.kind.value}; leave out :{inside}")
    check_readable(path, format)
    try:
        content = format.read(request)
        if format.kind is Kind.COLUMNS:  # these were left out while reading
            request = replace(request, left_out=())
        return as_table(content, request, format.usual_columns)
    except (UnusableFileError, ImportError):
        raise
    except MemoryError as error:
        raise UnusableFileError(f"{path} does not fit into memory. Choose fewer columns or rows.") from error
    except Exception as error:  # a parser of a foreign format may raise anything on a broken file
        raise UnusableFileError(
            f"{path} could not be read as {format.name}: {_in_short(error)}. It may be damaged or cut short; copy or "
            f"save it again."
        ) from error


def request_of(source: str | Path, *, columns: Sequence[str] | None = None, key: str | None = None) -> Request:
    """What is wanted of which file, from what the user wrote."""
    path, inside = _split_source(source)
    return Request(path, inside, *_wanted_and_left_out(columns, key, path))


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
    format = format_of(path)
    columns: Content = (
        content if isinstance(content, np.ndarray) else {name: np.asarray(column) for name, column in content.items()}
    )
    with written_beside(path) as beside:
        try:
            format.write(beside, columns)
        except UnusableFileError as error:
            raise UnusableFileError(str(error).replace(str(beside), str(path))) from error


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
    check_readable(path, format)
    try:
        return pictures.read_pixels(path)
    except (UnusableFileError, ImportError):
        raise
    except Exception as error:  # as above
        raise UnusableFileError(
            f"{path} could not be read as {format.name}: {_in_short(error)}. Save it again."
        ) from error


def format_of(path: Path) -> Format:
    """Return the format that the suffix stands for."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    for suffix in ("".join(suffixes[-2:]), "".join(suffixes[-1:])):
        if suffix in _BY_SUFFIX:
            return _BY_SUFFIX[suffix]
    known = " ".join(sorted(_BY_SUFFIX))
    ending = f"ends in {suffixes[-1]!r}, which is not a format that is known here" if suffixes else "has no suffix"
    cure = "".join(f" {_CURES[suffix]}" for suffix in suffixes[-1:] if suffix in _CURES)
    if path.is_dir() and not suffixes:
        raise UnusableFileError(f"{path} is a folder. Give the name of a file in it.")
    raise UnusableFileError(f"{path} {ending}.{cure} Known are: {known}")


def _wanted_and_left_out(
    columns: Sequence[str] | None, key: str | None, path: Path
) -> tuple[tuple[str, ...] | None, str | None, tuple[str, ...]]:
    if columns is None:
        return None, key, ()
    left_out = tuple(name[1:] for name in columns if name.startswith("^"))
    if left_out and len(left_out) < len(columns):
        raise UnusableFileError(
            f"columns of {path} are either named or left out with ^, not both: {', '.join(columns)}."
        )
    return (None, key, left_out) if left_out else (tuple(columns), key, ())


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


def _split_source(source: str | Path) -> tuple[Path, str | None]:
    """``data.npz:x`` is the array x inside data.npz, unless a file has that very name."""
    path = Path(source)
    left, colon, inside = str(source).rpartition(":")
    if not colon or not inside or path.suffix.lower() in _BY_SUFFIX or _exists(path):
        return path, None
    return (Path(left), inside) if Path(left).suffix.lower() in _BY_SUFFIX else (path, None)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True


def check_readable(path: Path, format: Format) -> None:
    """Answer the usual mistakes before any parser sees the file."""
    try:
        if path.is_dir() != format.is_folder and path.exists():
            kind = ("a folder, not a file", "a file, not a folder")[format.is_folder]
            raise UnusableFileError(f"{path} is {kind}, which {format.name} is kept in.")
        size = path.stat().st_size
        head = b"" if format.is_folder else _head(path)
    except FileNotFoundError:
        raise UnusableFileError(f"there is no file {path}. Check the name and the folder.") from None
    except OSError as error:
        reason = (
            "its symbolic links go round in a circle" if error.errno == errno.ELOOP else str(error.strerror).lower()
        )
        raise UnusableFileError(f"{path} could not be opened: {reason}.") from error
    if not format.is_folder and size == 0:
        raise UnusableFileError(f"{path} is empty (0 bytes). Write it again.")
    if format.starts and not head.startswith(format.starts):
        raise UnusableFileError(_wrong_start(path, format, head))


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(16)


def _wrong_start(path: Path, format: Format, head: bytes) -> str:
    marks = [(other, mark) for other in FORMATS for mark in other.starts if len(mark) > 1]
    looks = next((other for other, mark in marks if head.startswith(mark)), None)
    cure = (
        f"It looks like {looks.name}: rename it to end in {looks.suffixes[0]}" if looks else "Check where it came from"
    )
    return f"{path} is not a {format.name} file: its content does not start like one. {cure}."


def _in_short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:160].rstrip(". ")
