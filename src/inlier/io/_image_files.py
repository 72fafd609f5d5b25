"""png, jpg and tiff, 8 or 16 bits, as pixels or as tables with a row per pixel; photos as they should be looked at."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from inlier._checks import warn
from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io.formats import Codec, load
from inlier.io.limits import DEFLATE_RATIO, check_unpacked_size, deflated_size, most_unpacked_bytes
from inlier.io.read import eight_bits
from inlier.io.table import Content, Request

_COLOURS = ("red", "green", "blue")
_CHANNELS = {1: ("grey",), 2: ("grey", "alpha"), 3: _COLOURS, 4: (*_COLOURS, "alpha")}
_CURE = "make it smaller"
_KINDS = ("PNG", "JPEG", "TIFF", "GIF", "BMP", "WEBP", "PPM", "TGA")  # of Pillow's, those that start no programs
_DEFLATE = (8, 32946)  # tiff's numbers for it
_GREY_MODES = {"1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N"}
_PNG_KINDS = {3: 2, 4: 6}  # the format's numbers for colours, and for colours with alpha


class Picture(Codec):
    """png and jpg, by Pillow."""

    def read(self, request: Request) -> Content:
        """Read a row per pixel, row by row, and a column per channel."""
        pixels = self.pixels(request.path)
        if request.columns is None and pixels.shape[2] in (2, 4):  # how opaque a pixel is, is no colour
            pixels = pixels[:, :, :-1]
        names = _CHANNELS.get(pixels.shape[2], tuple(map(str, range(pixels.shape[2]))))
        return {name: pixels[:, :, number].reshape(-1) for number, name in enumerate(names)}

    def pixels(self, path: Path) -> Array:
        """The pixels as they are stored, shape (height, width, channels); photos are turned as their EXIF says."""
        pixels = self._pixels(path)
        if pixels.ndim == 2:
            pixels = pixels[:, :, None]
        if pixels.ndim != 3 or pixels.dtype.kind not in "buif":
            raise UnusableFileError(
                f"{path} holds an array of shape {pixels.shape} of {pixels.dtype}, not one flat picture."
            )
        return pixels

    def _pixels(self, path: Path) -> Array:
        with _opened(path) as picture:
            if picture.format == "PNG" and picture.tile and picture.tile[0][3] in ("RGB;16B", "RGBA;16B"):
                return _sixteen_bits(picture, path)
            upright = ImageOps.exif_transpose(picture)
            if picture.mode in ("P", "CMYK", "YCbCr", "LAB", "HSV"):
                upright = upright.convert("RGBA" if "transparency" in picture.info else "RGB")
            return np.asarray(upright)

    def write(self, path: Path, content: Content) -> None:
        """Write pixels of shape (height, width) or (height, width, channels); 16 bits as png."""
        pixels = _flat_picture(path, content)
        is_deep = pixels.dtype == np.uint16 and path.suffix.lower() == ".png"
        if is_deep and pixels.ndim == 3 and pixels.shape[2] in _PNG_KINDS:
            _write_sixteen_bits(path, pixels)
        elif pixels.dtype == np.uint8 or (is_deep and pixels.ndim == 2):
            Image.fromarray(pixels).save(path)
        else:
            raise UnusableFileError(
                f"{path} cannot hold {pixels.dtype} pixels of shape {pixels.shape}; write tiff instead."
            )


class Tiff(Picture):
    """tiff, whose pixels may be of any type."""

    def _pixels(self, path: Path) -> Array:
        with load("tifffile", "tiff").TiffFile(path) as file:
            page = file.pages[0]
            check_unpacked_size(path, int(page.size) * page.dtype.itemsize, _CURE)
            _check_strips(path, page)
            if len(file.pages) > 1:
                warn(f"{path} has {len(file.pages)} pages; the first is read.")
            return np.asarray(page.asarray())

    def write(self, path: Path, content: Content) -> None:
        pixels = _flat_picture(path, content)
        photometric = "rgb" if pixels.ndim == 3 and pixels.shape[2] in (3, 4) else "minisblack"
        load("tifffile", "tiff").imwrite(path, pixels, compression="zlib", photometric=photometric)


def _check_strips(path: Path, page: Any) -> None:
    """Refuse strips or tiles that are not there, which would be read as zeros, or that unpack to more than they should.

    Those of no length are left out on purpose.
    """
    most, there = most_unpacked_bytes(), path.stat().st_size
    strips = list(zip(page.dataoffsets, page.databytecounts, strict=True))
    if len(strips) != prod(page.chunked) or any(length and start + length > there for start, length in strips):
        raise UnusableFileError(
            f"{path} was cut short, or its header is wrong: some of its {prod(page.chunked):,} strips or tiles are not "
            f"there. Copy or save it again."
        )
    for start, length in strips:
        if int(page.compression) in _DEFLATE and length * DEFLATE_RATIO > most:
            with path.open("rb") as stream:
                stream.seek(start)
                check_unpacked_size(path, deflated_size(BytesIO(stream.read(length)), most), _CURE)


def _flat_picture(path: Path, content: Content) -> Array:
    if not isinstance(content, np.ndarray):
        raise UnusableFileError(f"{path} is a picture; a table cannot be written to it.")
    return content[:, :, 0] if content.ndim == 3 and content.shape[2] == 1 else content


@contextmanager
def _opened(path: Path) -> Iterator[ImageFile.ImageFile]:
    """Open a picture with Pillow; what it announces is checked before anything is unpacked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns below our limits, and about odd metadata
        try:
            picture = Image.open(path, formats=_KINDS)
        except Image.DecompressionBombError as error:
            raise UnusableFileError(
                f"{path} is too large: it announces more pixels than a photo has ({error}). If you trust it, save it "
                f"as tiff."
            ) from error
        with picture:
            check_unpacked_size(path, picture.width * picture.height * 4 * len(picture.getbands()), _CURE)
            yield picture


def _sixteen_bits(picture: ImageFile.ImageFile, path: Path) -> Array:
    """Colours of 16 bits, of which Pillow keeps the upper byte: read as little-endian, that is the lower one."""
    check_unpacked_size(path, picture.width * picture.height * 6 * len(picture.getbands()), _CURE)
    upper = np.asarray(ImageOps.exif_transpose(picture))
    with _opened(path) as again:
        codec, box, offset, _ = again.tile[0]
        again.tile = [(codec, box, offset, f"{again.mode};16L")]  # type: ignore[list-item]
        lower = np.asarray(ImageOps.exif_transpose(again))
    return upper.astype(np.uint16) << 8 | lower


def _write_sixteen_bits(path: Path, pixels: Array) -> None:
    """Write a png with colours of 16 bits, which Pillow cannot: header, rows without a filter, end."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + 2 * channels * width), dtype=np.uint8)  # each starts with its filter's number
    rows[:, 1:] = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    header = struct.pack(">IIBBBBB", width, height, 16, _PNG_KINDS[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    framed = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(framed))


def as_looked_at(path: Path) -> NDArray[np.uint8]:
    """Read a photo of any kind that Pillow knows; see `inlier.io.read_photo`."""
    if path.is_dir():
        raise UnusableFileError(f"{path} is a folder; name an image file in it.")
    if not path.exists():
        raise FileNotFoundError(f"There is no photo at {path}.")
    try:
        with _opened(path) as image:
            return _on_white(image)
    except UnusableFileError:
        raise
    except Exception as error:  # Pillow raises many kinds on damaged files
        reason = "it is no image of a known kind" if isinstance(error, UnidentifiedImageError) else str(error)
        reason = " ".join(reason.split()) or type(error).__name__
        raise UnusableFileError(
            f"{path} could not be read as an image: {reason}. Save it again as PNG or JPEG."
        ) from error


def _on_white(image: Image.Image) -> NDArray[np.uint8]:
    """The image upright, in 8 bits, with white where it is transparent."""
    is_grey = image.mode in _GREY_MODES
    upright = ImageOps.exif_transpose(image)
    if image.mode.startswith("I") or image.mode == "F":
        return eight_bits(np.asarray(upright))
    if {"A", "a"} & set(image.getbands()) or "transparency" in image.info:
        clear = upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", clear.size, (255, 255, 255, 255)), clear)
    return np.asarray(upright.convert("L" if is_grey else "RGB"))
