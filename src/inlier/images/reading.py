"""Read photos of any common kind as red, green and blue, and make two of them comparable."""

from __future__ import annotations

import warnings
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

Photo = NDArray[np.uint8]

MOST_PIXELS = 200_000_000  # a file that claims more is taken for a decompression bomb
SMALLEST_SIDE = 32
_ASPECT_TOLERANCE = 0.02
_GREY_MODES = {"1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N"}


def read_photo(path: str | PathLike[str]) -> Photo:
    """Read an image file as it should be looked at.

    The EXIF orientation is applied, transparency is laid on white, 16 bits are brought to 8, of several frames
    the first is taken. A grey image stays grey: one channel.

    Parameters
    ----------
    path : path
        Any image file that Pillow reads.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3), or (height, width) if grey

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from inlier.images import read_photo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGBA", (64, 48), (255, 0, 0, 0)).save(Path(folder) / "clear.png")
    ...     read_photo(Path(folder) / "clear.png")[0, 0].tolist()
    [255, 255, 255]
    """
    file = Path(path)
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name an image file in it.")
    if not file.exists():
        raise FileNotFoundError(f"There is no photo at {file}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns below our limit, and about odd metadata
            with Image.open(file) as image:
                _check_size(image.size, file)
                return _upright(image)
    except Image.DecompressionBombError as error:
        raise ValueError(f"{file} is too large: it claims more than {MOST_PIXELS:,} pixels.") from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
        if isinstance(error, ValueError) and str(file) in str(error):
            raise
        reason = "it is no image of a known kind" if isinstance(error, UnidentifiedImageError) else str(error)
        raise ValueError(f"{file} could not be read as an image: {reason}. Save it again as PNG or JPEG.") from error


def _check_size(size: tuple[int, int], file: Path) -> None:
    width, height = size
    if width * height > MOST_PIXELS:
        raise ValueError(f"{file} is too large: {width} x {height} pixels, the limit is {MOST_PIXELS:,} in all.")


def _upright(image: Image.Image) -> Photo:
    grey = image.mode in _GREY_MODES
    if image.mode.startswith("I") or image.mode == "F":
        return _eight_bits(np.asarray(ImageOps.exif_transpose(image)))
    if "A" in image.getbands() or "a" in image.getbands() or "transparency" in image.info:
        clear = image.convert("RGBA")
        white = Image.new("RGBA", clear.size, (255, 255, 255, 255))
        flat = Image.alpha_composite(white, clear).convert("RGB")
        flat.info.update(image.info)
        image = _with_orientation(flat, image)
    return np.asarray(ImageOps.exif_transpose(image).convert("L" if grey else "RGB"))


def _with_orientation(flat: Image.Image, original: Image.Image) -> Image.Image:
    flat.getexif().update(original.getexif())
    return flat


def _eight_bits(values: NDArray[Any]) -> Photo:
    """Bring 16-bit and floating point values to 0 .. 255."""
    numbers = np.nan_to_num(values.astype(np.float32))
    top = float(numbers.max(initial=0.0))
    full = 1.0 if top <= 1.0 and values.dtype.kind == "f" else 255.0 if top <= 255 else max(top, 65535.0)
    return np.round(np.clip(numbers / full, 0, 1) * 255).astype(np.uint8)


def read_photos(before: str | PathLike[str], after: str | PathLike[str]) -> tuple[Photo, Photo]:
    """Read two photos and make them comparable, see `comparable`."""
    return comparable(read_photo(before), read_photo(after))


def comparable(before: Any, after: Any) -> tuple[Photo, Photo]:
    """Bring two photos to one size, that of ``after``, and to three channels; grey if either is.

    Photos of one shape but another number of pixels are resampled. Other shapes are refused.
    """
    first, second = _as_photo(before, "before"), _as_photo(after, "after")
    if first.ndim == 2 or second.ndim == 2:
        first, second = _grey(first), _grey(second)
    return _resampled(first, second), second


def _as_photo(values: Any, name: str) -> Photo:
    array = np.asarray(values)
    if array.dtype == np.bool_ or array.dtype.kind not in "uif":
        raise ValueError(f"{name} must hold numbers; got dtype {array.dtype}.")
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3):
        raise ValueError(
            f"{name} must have shape (height, width) or (height, width, 3); got {array.shape}. Drop an alpha channel."
        )
    if min(array.shape[:2]) < SMALLEST_SIDE:
        raise ValueError(
            f"{name} has {array.shape[1]} x {array.shape[0]} pixels; "
            f"at least {SMALLEST_SIDE} x {SMALLEST_SIDE} are needed to tell noise from change."
        )
    if array.dtype == np.uint8:
        return array
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity in {int((~np.isfinite(array)).sum())} place(s).")
    return _eight_bits(array)


def _grey(photo: Photo) -> Photo:
    single = photo if photo.ndim == 2 else np.asarray(Image.fromarray(photo).convert("L"))
    return np.repeat(single[..., None], 3, axis=2)


def _resampled(photo: Photo, like: Photo) -> Photo:
    if photo.shape == like.shape:
        return photo
    (height, width), (wanted_height, wanted_width) = photo.shape[:2], like.shape[:2]
    if abs(width * wanted_height / (height * wanted_width) - 1) > _ASPECT_TOLERANCE:
        raise ValueError(
            f"The photos have different shapes, {width} x {height} and {wanted_width} x {wanted_height} pixels: "
            f"crop them to the same view."
        )
    return np.asarray(Image.fromarray(photo).resize((wanted_width, wanted_height), Image.Resampling.LANCZOS))
