"""Read photos of any common kind as red, green and blue, and make two of them comparable."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from PIL import Image

from inlier._typing import Photo as Photo
from inlier.io import eight_bits
from inlier.io import read_photo as read_photo

SMALLEST_SIDE = 32
_ASPECT_TOLERANCE = 0.02


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
