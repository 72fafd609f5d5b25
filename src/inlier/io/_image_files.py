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
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from inlier._checks import warn
from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io.formats import Codec, load
from inlier.io.limits import DEFLATE_RATIO, check_unpacked_size, deflated_size, most_unpacked_bytes
from inlier.io.table import Content, Request

_COLOURS = ("red", "green", "blue")
_CHANNELS = {1: ("grey",), 2: ("grey", "alpha"), 3: _COLOURS, 4: (*_COLOURS, "alpha")}
_CURE = "make it smaller"
_KINDS = ("PNG", "JPEG", "TIFF", "GIF", "BMP", "WEBP", "PPM", "TGA")  # of Pillow's, those that start no programs
_DEFLATE = (8, 32946)  # tiff's numbers for it
_PLANES_APART, _PALETTE = 2, 3  # and for these
_WHITE_IS_ZERO = 0
_SAMPLES, _BITS, _EXTRA, _FORMAT, _PHOTOMETRIC = 277, 258, 338, 339, 262  # and for tags
_GREY_MODES = {"1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N"}
_TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_HEIC = (b"ftyphei", b"ftyphev", b"ftypmif1", b"ftypavif")
_UPRIGHT = {2: (0, True), 3: (2, False), 4: (2, True), 5: (3, True), 6: (3, False), 7: (1, True), 8: (1, False)}
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
            _warn_of_pages(path, len(file.pages))
            return _as_pixels(page)

    def write(self, path: Path, content: Content) -> None:
        pixels = _flat_picture(path, content)
        photometric = "rgb" if pixels.ndim == 3 and pixels.shape[2] in (3, 4) else "minisblack"
        load("tifffile", "tiff").imwrite(path, pixels, compression="zlib", photometric=photometric)


def _as_pixels(page: Any) -> Array:
    """The page with its planes last, colours in place of a palette's numbers, upright as its tag says."""
    pixels = np.asarray(page.asarray())
    if pixels.ndim == 3 and int(page.planarconfig) == _PLANES_APART:
        pixels = np.moveaxis(pixels, 0, -1)
    if int(page.photometric) == _PALETTE and page.colormap is not None:
        pixels = np.moveaxis(np.asarray(page.colormap)[:, pixels] >> 8, 0, -1).astype(np.uint8)
    if "Orientation" in page.tags:
        turned, flipped = _UPRIGHT.get(int(page.tags["Orientation"].value), (0, False))
        pixels = np.rot90(pixels, turned)
        pixels = pixels[:, ::-1] if flipped else pixels
    return np.ascontiguousarray(pixels)


def _warn_of_pages(path: Path, count: int) -> None:
    if count > 1:
        warn(f"{path} has {count} pages; the first is read.")


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


def as_looked_at(path: Path) -> Array:
    """Read a photo of any kind that Pillow knows, or tifffile; see `inlier.io.read_photo`."""
    if path.is_dir():
        raise UnusableFileError(f"{path} is a folder; name an image file in it.")
    if not path.exists():
        raise FileNotFoundError(f"There is no photo at {path}.")
    try:
        return _colours(path)
    except (UnusableFileError, ImportError):
        raise
    except Exception as error:  # Pillow raises many kinds on damaged files
        reason = _no_image(path) if isinstance(error, UnidentifiedImageError) else str(error)
        reason = " ".join(reason.split()).rstrip(". ") or type(error).__name__
        raise UnusableFileError(
            f"{path} could not be read as an image: {reason}. Save it again as PNG or JPEG."
        ) from error


def _no_image(path: Path) -> str:
    with path.open("rb") as stream:
        is_heic = stream.read(16)[4:].startswith(_HEIC)
    return "it is a HEIC or AVIF file, which is not read here" if is_heic else "it is no image of a known kind"


def _colours(path: Path) -> Array:
    """Pixels of a photo, upright, grey or red, green and blue; with their opacity where anything is transparent."""
    n_frames, pixels = 1, None
    try:
        with _opened(path) as image:
            if not _is_beyond_pillow(image):
                n_frames = 1 if image.format in ("JPEG", "MPO") else getattr(image, "n_frames", 1)
                pixels, is_opaque = _by_pillow(image, path)
                n_opacity = 0 if is_opaque else 1
    except UnidentifiedImageError:
        with path.open("rb") as stream:
            if not stream.read(4).startswith(_TIFF_STARTS):
                raise
    if pixels is None:
        pixels, n_opacity = _by_tifffile(path)
    _warn_of_pages(path, n_frames)
    return _without_full_opacity(pixels, n_opacity)


def _is_beyond_pillow(image: ImageFile.ImageFile) -> bool:
    """Whether Pillow would scramble a tiff, or drop planes without a word: it knows grey of 16 bits, colours of 8."""
    tags = getattr(image, "tag_v2", None)
    if tags is None:
        return False
    bits, is_unsigned = max(tags.get(_BITS, (1,))), tags.get(_FORMAT, (1,))[0] == 1
    most_planes = 4 if bits <= 8 else 1 if bits <= 16 else 0
    is_negative = bits > 8 and tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO
    return is_negative or not is_unsigned or tags.get(_SAMPLES, 1) > most_planes or 0 in tags.get(_EXTRA, ())


def _by_pillow(image: ImageFile.ImageFile, path: Path) -> tuple[Array, bool]:
    if image.format == "PNG" and image.tile and image.tile[0][3] in ("RGB;16B", "RGBA;16B", "LA;16B"):
        deep = _sixteen_bits(image, path)
        return deep, deep.shape[2] == 3
    codec, _, start, kind = image.tile[0] if image.tile else ("", None, 0, None)
    if codec == "ppm" and isinstance(kind, tuple) and kind[1] > 255:
        return _deep_ppm(image, path, start), True
    upright = ImageOps.exif_transpose(image)
    if image.mode.startswith("I") or image.mode == "F":
        return np.asarray(upright), True
    is_opaque = not ({"A", "a"} & set(image.getbands()) or "transparency" in image.info)
    is_grey = image.mode in _GREY_MODES
    if is_opaque:
        return np.asarray(upright.convert("L" if is_grey else "RGB")), True
    clear = np.asarray(upright.convert("RGBA"))
    return (clear[..., [0, 3]] if is_grey else clear), False


def _deep_ppm(image: ImageFile.ImageFile, path: Path, start: int) -> Array:
    """Numbers of a ppm or pgm as stored, in 16 bits, of which Pillow keeps 8, or which it scales to 65535."""
    shape = (image.height, image.width, 3 if image.mode == "RGB" else 1)
    numbers: Array = np.fromfile(path, ">u2", prod(shape), offset=start)
    return numbers.astype(np.uint16).reshape(shape)


def _by_tifffile(path: Path) -> tuple[Array, int]:
    """The first page, and how many of its planes are opacity; of more than three planes the first three."""
    pixels = Tiff().pixels(path)
    with load("tifffile", "tiff").TiffFile(path) as file:
        extra, photometric = file.pages[0].tags.get(_EXTRA), int(file.pages[0].photometric)
    if photometric == _WHITE_IS_ZERO and pixels.dtype.kind == "u":
        pixels = np.iinfo(pixels.dtype).max - pixels
    kinds = () if extra is None else np.atleast_1d(extra.value)
    n_opacity = int(any(int(kind) in (1, 2) for kind in kinds[-1:]))
    colours = pixels[..., : pixels.shape[2] - n_opacity]
    if colours.shape[2] not in (1, 3):
        kept = 3 if colours.shape[2] > 3 else 1
        warn(f"{path} has {colours.shape[2]} planes; the first {'three are' if kept == 3 else 'is'} read as colours.")
        colours = colours[..., :kept]
    return np.concatenate([colours, pixels[..., pixels.shape[2] - n_opacity :]], axis=2), n_opacity


def _without_full_opacity(pixels: Array, n_opacity: int) -> Array:
    if n_opacity:
        opacity = pixels[..., -1]
        if opacity.min() == opacity.max() != 0:
            pixels = pixels[..., :-1]
    return pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
