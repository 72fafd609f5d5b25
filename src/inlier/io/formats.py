"""The table of formats: the suffix decides which one a file has. A new format is a codec and a line in this table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inlier.exceptions import UnusableFileError

if TYPE_CHECKING:  # the help of commands, which names the formats, does without NumPy
    import numpy as np

    from inlier._typing import Array, FloatArray
    from inlier.io.add_columns import BlocksInTurn
    from inlier.io.table import Content, Request, Table

XYZ = ("x", "y", "z")

Columns = Mapping[str, "np.dtype[Any]"]
ReadBlocks = Callable[..., Iterator[Mapping[str, "Array"]]]  # given names of columns, their blocks from the start on


class Kind(Enum):
    """What a file can hold."""

    ARRAY = "one array of numbers"
    ARRAYS = "several arrays by name"
    COLUMNS = "columns by name, text among them"
    POINTS = "points with x, y and z"
    PICTURE = "a picture"


class Codec(ABC):
    """How files of one format are read and written."""

    family = ""  # formats between which rows can be copied as they are

    @abstractmethod
    def read(self, request: Request) -> Content | Table:
        """Read what is wanted of a file, as one array, as columns by name, or with the names of its rows."""

    @abstractmethod
    def write(self, path: Path, content: Content) -> None:
        """Write an array or columns to a file that is not there yet."""

    def names(self, path: Path) -> list[str]:
        """Names of the columns or arrays in a file, unread; none where they have none."""
        return []

    def open(self, request: Request) -> Mapping[str, Any]:
        """Arrays by name whose rows can be read a slice at a time; none where a file is only read as a whole."""
        return {}

    def write_rows_with(self, other: Any, source: Path, path: Path, further: BlocksInTurn) -> None:
        """Write the rows of a file of the same family, which ``other`` reads, with further columns."""
        raise NotImplementedError


class BlockCodec(Codec):
    """A format whose files can be written block after block."""

    @abstractmethod
    def write_blocks(self, path: Path, columns: Columns, n_rows: int, read_blocks: ReadBlocks) -> None:
        """Write columns of which there is never more than a block; see `inlier.io.write_blocks`."""


class ReadOnly(Codec):
    """A format that is read and not written."""

    def write(self, path: Path, content: Content) -> None:
        """Refuse to."""
        raise UnusableFileError(f"{path} is of a format that is read, not written. Write h5, npz, csv or ply instead.")


class CloudCodec(Codec):
    """A format whose files hold more than their points: faces, colours, times."""

    @abstractmethod
    def rewrite(self, source: Path, path: Path, points: FloatArray, rotation: FloatArray | None) -> None:
        """Write a copy of ``source`` with other points, whose normals (if any) are turned by ``rotation``."""


@dataclass(frozen=True)
class Format:
    """A line of the table of formats."""

    name: str
    suffixes: tuple[str, ...]  # in lower case
    kind: Kind
    codec_name: str  # module of this package and class that read and write it, loaded when they are needed
    library: str | None = None  # the module of the ``io`` extra that it cannot do without
    starts: tuple[bytes, ...] = ()  # how its content starts; empty where that may be anything
    is_folder: bool = False
    has_parts: bool = False  # sheets, of which one is named after a colon, as arrays are
    is_written: bool = True
    may_start_later: bool = False  # at 512, 1024, 2048, ... bytes, behind somebody else's

    @property
    def is_divided(self) -> bool:
        """Whether one of several arrays or sheets in a file can be asked for."""
        return self.has_parts or self.kind is Kind.ARRAYS

    @property
    def codec(self) -> Codec:
        """What reads and writes it."""
        module, name = self.codec_name.split(".")
        return getattr(import_module(f"inlier.io.{module}"), name)()


_CELLS, _HDF = "_single_cell_files.SingleCells", (b"\x89HDF",)
_GZ = (b"\x1f\x8b",)
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_ARRAY, _ARRAYS, _COLUMNS, _POINTS, _PICTURE = Kind

FORMATS = (
    Format("npy", (".npy",), _ARRAY, "_array_files.Npy", starts=(b"\x93NUMPY",)),
    Format("npz", (".npz",), _ARRAYS, "_array_files.Npz", starts=(b"PK\x03\x04", b"PK\x05\x06")),
    Format("csv", (".csv",), _COLUMNS, "_text_files.Delimited"),
    Format("gzipped csv", (".csv.gz",), _COLUMNS, "_text_files.Delimited", starts=_GZ),
    Format("tsv", (".tsv",), _COLUMNS, "_text_files.Delimited"),
    Format("gzipped tsv", (".tsv.gz",), _COLUMNS, "_text_files.Delimited", starts=_GZ),
    Format("jsonl", (".jsonl", ".ndjson"), _COLUMNS, "_json_files.JsonLines"),
    Format("gzipped jsonl", (".jsonl.gz",), _COLUMNS, "_json_files.JsonLines", starts=_GZ),
    Format("txt", (".txt",), _ARRAY, "_text_files.BlankSeparated"),
    Format("gzipped txt", (".txt.gz",), _ARRAY, "_text_files.BlankSeparated", starts=_GZ),
    Format("xyz", (".xyz",), _POINTS, "_text_files.BlankSeparated"),
    Format("vec", (".vec",), _ARRAY, "_word_files.WordVectors"),
    Format("gzipped vec", (".vec.gz",), _ARRAY, "_word_files.WordVectors", starts=_GZ),
    Format("xlsx", (".xlsx",), _COLUMNS, "_sheet_files.Sheet", starts=(b"PK\x03\x04",), has_parts=True),
    Format("parquet", (".parquet", ".pq"), _COLUMNS, "_arrow_files.Parquet", "pyarrow", (b"PAR1",)),
    Format("feather", (".feather", ".arrow"), _COLUMNS, "_arrow_files.Feather", "pyarrow", (b"ARROW1",)),
    Format("hdf5", (".h5", ".hdf5"), _ARRAYS, "_array_files.Hdf5", "h5py", _HDF, may_start_later=True),
    Format("h5ad", (".h5ad",), _ARRAYS, _CELLS, "h5py", _HDF, is_written=False, may_start_later=True),
    Format("h5mu", (".h5mu",), _ARRAYS, _CELLS, "h5py", _HDF, is_written=False, may_start_later=True),
    Format("zarr", (".zarr",), _ARRAYS, "_array_files.Zarr", "zarr", is_folder=True),
    Format("ply", (".ply",), _POINTS, "_cloud_files.Ply", starts=(b"ply",)),
    Format("pcd", (".pcd",), _POINTS, "_cloud_files.Pcd", starts=(b"#", b"VERSION")),
    Format("las", (".las", ".laz"), _POINTS, "_cloud_files.Las", "laspy", (b"LASF",)),
    Format("kitti", (".bin",), _POINTS, "_scan_files.Kitti", is_written=False),
    Format("pts", (".pts",), _POINTS, "_scan_files.Pts", is_written=False),
    Format("obj", (".obj",), _POINTS, "_scan_files.Obj", is_written=False),
    Format("stl", (".stl",), _POINTS, "_scan_files.Stl", is_written=False),
    Format("e57", (".e57",), _POINTS, "_scan_files.E57", "pye57", (b"ASTM-E57",), is_written=False),
    Format("gifti", (".gii",), _POINTS, "_brain_files.Gifti", "nibabel", (b"<?xml", b"<GIFTI")),
    Format("nifti", (".nii",), _ARRAY, "_brain_files.Nifti", "nibabel"),
    Format("gzipped nifti", (".nii.gz",), _ARRAY, "_brain_files.Nifti", "nibabel", _GZ),
    Format("png", (".png",), _PICTURE, "_image_files.Picture", starts=(b"\x89PNG",)),
    Format("jpeg", (".jpg", ".jpeg"), _PICTURE, "_image_files.Picture", starts=(b"\xff\xd8",)),
    Format("tiff", (".tif", ".tiff"), _PICTURE, "_image_files.Tiff", "tifffile", _TIFF),
)
_SHEET, _PICKLE = (
    "Save the sheet as csv or xlsx.",
    "Pickles are never loaded, since that can run code; save the array as npy.",
)
_CURES = {
    **dict.fromkeys((".xls", ".ods"), _SHEET),
    **dict.fromkeys((".pkl", ".pickle", ".joblib", ".pt", ".pth"), _PICKLE),
    ".ptx": "Export the points as ply, las or xyz.",
    ".mat": "Save the array as npy, for example with scipy.io.loadmat and numpy.save.",
    ".gz": "Name it after what is inside, as in .csv.gz.",
}
_PACKAGES = {"laspy": "laspy[lazrs]"}  # where pip knows a module by another name
BY_SUFFIX = {suffix: format for format in FORMATS for suffix in format.suffixes}


def format_of(path: Path) -> Format:
    """Return the format that the suffix stands for."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    for suffix in ("".join(suffixes[-2:]), "".join(suffixes[-1:])):
        if suffix in BY_SUFFIX:
            return BY_SUFFIX[suffix]
    known = " ".join(sorted(BY_SUFFIX))
    ending = f"ends in {suffixes[-1]!r}, which is not a format that is known here" if suffixes else "has no suffix"
    cure = "".join(f" {_CURES[suffix]}" for suffix in suffixes[-1:] if suffix in _CURES)
    if path.is_dir() and not suffixes:
        raise UnusableFileError(f"{path} is a folder. Give the name of a file in it.")
    raise UnusableFileError(f"{path} {ending}.{cure} Known are: {known}")


def load(module: str, what: str) -> Any:
    """Import a module of the ``io`` extra; where it is missing, name the command that brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.split(".")[0]
        package = _PACKAGES.get(library, library)
        raise ImportError(f"{what} files need {library}; install it with: pip install '{package}'") from error
