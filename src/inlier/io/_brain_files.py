"""gifti, cifti and nifti: vertices and values on them, a row per vertex or voxel."""

from __future__ import annotations

import base64
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from inlier._typing import FloatArray
from inlier.exceptions import UnusableFileError
from inlier.io.formats import XYZ, CloudCodec, Codec, load
from inlier.io.limits import DEFLATE_RATIO, check_unpacked_size, deflated_size, most_unpacked_bytes, too_large, unpacked
from inlier.io.table import Content, Request, as_array, by_column

_CURE = "save the part you need as npy"
_STEP = 1024**2  # bytes that are unpacked at a time, to see how many there are
_MOST_AXES = 6  # of an array in gifti
_MOST_NIFTI_1 = 2**15 - 1  # voxels along an axis; the second version of the format has no such limit


class Gifti(CloudCodec):
    """A surface's vertices as x, y, z, or the maps of a metric file as columns."""

    def read(self, request: Request) -> Content:
        _check_gifti(request.path)
        image = load("nibabel", "gifti").load(request.path)
        surfaces = image.agg_data("pointset")
        if isinstance(surfaces, np.ndarray):
            return dict(zip(XYZ, surfaces.T, strict=True))
        columns: dict[str, Any] = {}
        for number, array in enumerate(image.darrays):
            name = array.meta.get("Name") or str(number)
            columns[name if name not in columns else f"{name} {number}"] = np.asarray(array.data)
        if not columns:
            raise UnusableFileError(f"{request.path} holds no data arrays.")
        return columns

    def write(self, path: Path, content: Content) -> None:
        """Write three columns of an array, or x, y, z, as vertices, others as a map each; in single precision."""
        gifti = load("nibabel.gifti", "gifti")
        if isinstance(content, np.ndarray) and content.ndim != 2:
            raise UnusableFileError(f"{path} holds a table, but the array has shape {content.shape}.")
        columns = by_column(content)
        intent, maps = "NIFTI_INTENT_SHAPE", columns
        if tuple(columns) == XYZ or (isinstance(content, np.ndarray) and content.shape[1] == 3):
            intent, maps = "NIFTI_INTENT_POINTSET", {"": as_array(columns)}
        image = gifti.GiftiImage()
        for name, values in maps.items():
            single = np.ascontiguousarray(values, dtype=np.float32)
            meta = {"Name": name} if name else None
            image.add_gifti_data_array(gifti.GiftiDataArray(single, intent, "NIFTI_TYPE_FLOAT32", meta=meta))
        image.to_filename(path)

    def rewrite(self, source: Path, path: Path, points: FloatArray, rotation: FloatArray | None) -> None:
        """Keep the triangles and all else."""
        image = load("nibabel", "gifti").load(source)
        image.get_arrays_from_intent("NIFTI_INTENT_POINTSET")[0].data = np.ascontiguousarray(points, dtype=np.float32)
        image.to_filename(path)


class Nifti(Codec):
    """nifti (a row per voxel, a column per volume), or cifti (a row per grayordinate, a column per map)."""

    def read(self, request: Request) -> Content:
        path = request.path
        if path.suffix.lower() == ".gz" and _may_unpack_to_much(path):
            with unpacked(path) as stream:  # once without keeping anything, to see how much there is
                while stream.read(_STEP):
                    pass
        image = load("nibabel", "nifti").load(path)
        n_values = int(np.prod(image.shape, dtype=np.float64))
        check_unpacked_size(path, 8 * n_values, _CURE)
        values = np.asarray(image.dataobj)
        if hasattr(image.header, "get_axis"):
            return _cifti_columns(image, values, path)
        return values.reshape(-1, values.shape[3] if values.ndim > 3 else 1)

    def write(self, path: Path, content: Content) -> None:
        """Write a voxel per row and a volume per column."""
        values = as_array(content)
        volume = np.asarray(values, dtype=np.float64).reshape(len(values), 1, 1, -1)
        nibabel = load("nibabel", "nifti")
        Image = nibabel.Nifti1Image if len(values) <= _MOST_NIFTI_1 else nibabel.Nifti2Image
        Image(volume, np.eye(4)).to_filename(path)


def _cifti_columns(image: Any, values: Any, path: Path) -> Content:
    if values.ndim != 2:
        raise UnusableFileError(f"{path} is a cifti file of shape {values.shape}; one of maps or series is needed.")
    names = getattr(image.header.get_axis(0), "name", None)
    if names is None or len(set(names)) < len(names):
        return values.T
    return {str(name): column for name, column in zip(names, values, strict=True)}


def _may_unpack_to_much(path: Path) -> bool:
    return path.stat().st_size * DEFLATE_RATIO > most_unpacked_bytes()


def _check_gifti(path: Path) -> None:
    """Refuse entities, data in other files, and arrays that unpack to much; nothing is kept."""
    most, counts = most_unpacked_bytes(), _may_unpack_to_much(path)
    texts: list[str] = []
    encoding, produced = "", 0

    def no_entities(*_: Any) -> None:
        raise UnusableFileError(f"{path} declares entities of XML, which no gifti file needs. Save it again.")

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal encoding
        if name == "DataArray":
            encoding = attributes.get("Encoding", "")
            if encoding.startswith("External") or attributes.get("ExternalFileName"):
                raise UnusableFileError(f"{path} keeps its data in other files, which are not followed. Copy it in.")
            n_axes = int(attributes.get("Dimensionality", 0))
            if n_axes > _MOST_AXES:
                raise UnusableFileError(f"{path} announces arrays of {n_axes} dimensions. Save it again.")
            sizes = [int(attributes.get(f"Dim{axis}", 0)) for axis in range(n_axes)]
            check_unpacked_size(path, 4 * prod(sizes), _CURE)
        texts.clear()

    def end(name: str) -> None:
        nonlocal produced
        if name == "Data" and counts and "GZip" in encoding:
            produced += deflated_size(BytesIO(base64.b64decode("".join(texts))), most)
            if produced > most:
                raise too_large(path, _CURE)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.EntityDeclHandler = no_entities
    parser.StartElementHandler, parser.EndElementHandler = start, end
    if counts:
        parser.CharacterDataHandler = texts.append
    with path.open("rb") as stream:
        parser.ParseFile(stream)
