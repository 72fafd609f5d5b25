"""png, jpg and tiff, 8 or 16 bits: as arrays of pixels, or as tables with a row per pixel."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from inlier._checks import warn
from inlier._typing import Array
from inlier.io.deep_png import is_deep_png, read_deep_png, write_deep_png
from inlier.io.extras import load
from inlier.io.limits import check_unpacked_size
from inlier.io.table import Content, Request, UnusableFileError

COLOURS = ("red", "green", "blue")
_CHANNELS = {1: ("grey",), 2: ("grey", "alpha"), 3: COLOURS, 4: (*COLOURS, "alpha")}
_CURE = "make it smaller"


def read_picture(request: Request) -> Content:
    """Read a picture as a table: a row per pixel, row by row, a column per channel."""
    pixels = read_pixels(request.path)
    if request.columns is None and pixels.shape[2] in (2, 4):  # how opaque a pixel is, is no colour
        pixels = pixels[:, :, :-1]
    names = _CHANNELS.get(pixels.shape[2], tuple(map(str, range(pixels.shape[2]))))
    return {name: pixels[:, :, number].reshape(-1) for number, name in enumerate(names)}


def read_pixels(path: Path) -> Array:
    """Return the pixels as they are stored, shape (height, width, channels); photos are turned as their EXIF says."""
    read = _read_tiff if _is_tiff(path) else read_deep_png if is_deep_png(path) else _read_with_pillow
    pixels = read(path)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.dtype.kind not in "buif":
        raise UnusableFileError(
            f"{path} holds an array of shape {pixels.shape} of {pixels.dtype}, not one flat picture."
        )
    return pixels


def write_picture(path: Path, content: Content) -> None:
    """Write pixels of shape (height, width) or (height, width, channels); 16 bits as tiff or png."""
    if not isinstance(content, np.ndarray):
        raise UnusableFileError(f"{path} is a picture; a table cannot be written to it.")
    pixels = content[:, :, 0] if content.ndim == 3 and content.shape[2] == 1 else content
    if _is_tiff(path):
        load("tifffile", "tiff").imwrite(path, pixels, compression="zlib", photometric=_photometric(pixels))
        return
    is_deep = pixels.dtype == np.uint16 and path.suffix.lower() == ".png"
    if is_deep and pixels.ndim == 3 and pixels.shape[2] in (3, 4):
        write_deep_png(path, pixels)
        return
    if pixels.dtype != np.uint8 and not (is_deep and pixels.ndim == 2):
        raise UnusableFileError(
            f"{path} cannot hold {pixels.dtype} pixels of shape {pixels.shape}; write tiff instead."
        )
    from PIL import Image

    Image.fromarray(pixels).save(path)


def _is_tiff(path: Path) -> bool:
    return path.suffix.lower() in (".tif", ".tiff")


def _photometric(pixels: Array) -> str:
    return "rgb" if pixels.ndim == 3 and pixels.shape[2] in (3, 4) else "minisblack"


def _read_tiff(path: Path) -> Array:
    with load("tifffile", "tiff").TiffFile(path) as file:
        page = file.pages[0]
        check_unpacked_size(path, int(page.size) * page.dtype.itemsize, _CURE)
        if len(file.pages) > 1:
            warn(f"{path} has {len(file.pages)} pages; the first is read.")
        return np.asarray(page.asarray())


def _read_with_pillow(path: Path) -> Array:
    from PIL import Image, ImageOps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the size is checked below
        try:
            picture = Image.open(path)
        except Image.DecompressionBombError as error:
            raise UnusableFileError(
                f"{path} announces more pixels than a photo has ({error}). If you trust it, save it as tiff."
            ) from error
    with picture:
        check_unpacked_size(path, picture.width * picture.height * 4 * len(picture.getbands()), _CURE)
        if picture.mode in ("P", "CMYK", "YCbCr", "LAB", "HSV"):
            picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")  # type: ignore[assignment]
        return np.asarray(ImageOps.exif_transpose(picture))
