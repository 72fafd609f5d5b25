"""Photos as arrays: read, made comparable, shrunk, smoothed and resampled."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from inlier._typing import Photo as Photo
from inlier.io import eight_bits
from inlier.io import read_photo as read_photo

Field = NDArray[np.float32]  # (height, width) or (height, width, channels)

WORKING_SIZE = 480  # pixels of the longer side at which photos are compared: objects, not pixels, change
GRID = 4  # working pixels: what is smooth is computed on every fourth
SMALLEST_SIDE = 32  # pixels: in fewer, noise is not told from change
_ASPECT_TOLERANCE = 0.02  # a pixel row or two more or less, of small photos


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
    return eight_bits(array)


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


def gaussian(field: Field, sigma: float) -> Field:
    """Smooth along rows and columns, not across channels."""
    if sigma <= 0:
        return field
    across = (0.0,) * (field.ndim - 2)
    smooth: Field = ndimage.gaussian_filter(field, (sigma, sigma, *across), mode="reflect")
    return smooth


def resample(field: Field, height: int, width: int) -> Field:
    """Average down, or interpolate linearly up, to another size."""
    if field.shape[:2] == (height, width):
        return field
    kind = Image.Resampling.BOX if height < field.shape[0] else Image.Resampling.BILINEAR
    channels = field.reshape(*field.shape[:2], -1)
    planes = [
        np.asarray(Image.fromarray(np.ascontiguousarray(channels[..., c])).resize((width, height), kind))
        for c in range(channels.shape[2])
    ]
    return np.stack(planes, axis=-1).reshape(height, width, *field.shape[2:])


def shrunk(photo: Photo, longest: int = WORKING_SIZE) -> Field:
    """Return the photo with at most so many pixels along its longer side, and values in 0 .. 1."""
    height, width = photo.shape[:2]
    factor = max(height, width) / longest
    if factor > 1:
        size = round(width / factor), round(height / factor)
        photo = np.asarray(Image.fromarray(photo).resize(size, Image.Resampling.BOX, reducing_gap=2.0))
    return photo.astype(np.float32) / np.float32(255)


def gradient_power(field: Field) -> Field:
    """Mean over channels of the squared length of the gradient, per pixel."""
    along_rows, along_columns = np.gradient(field, axis=(0, 1))
    power: Field = (along_rows**2 + along_columns**2).reshape(*field.shape[:2], -1).mean(axis=-1)
    return power.astype(np.float32)
