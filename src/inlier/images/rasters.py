"""Photos as arrays: what their numbers mean, made comparable, shrunk, smoothed and resampled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from inlier._typing import Array, Mask
from inlier._typing import Photo as Photo
from inlier.io import read_photo as read_photo

Field = NDArray[np.float32]  # (height, width) or (height, width, channels)

WORKING_SIZE = 480  # pixels of the longer side at which photos are compared: objects, not pixels, change
GRID = 4  # working pixels: what is smooth is computed on every fourth
SMALLEST_SIDE = 32  # pixels: in fewer, noise is not told from change
_ASPECT_TOLERANCE = 0.02  # a pixel row or two more or less, of small photos
_GREY = (0.299, 0.587, 0.114)  # of red, green and blue


@dataclass(frozen=True)
class Levels:
    """What the numbers in a photo mean: from black, ``low``, to white, ``top``, in steps."""

    low: float
    top: float
    step: float
    said: str

    @property
    def relative_step(self) -> float:
        """The step as a share of the range."""
        return self.step / (self.top - self.low)


@dataclass(frozen=True, eq=False)
class Frame:
    """A photo as it is compared.

    ``colours`` has three channels, of 8 bits, or of shares of the range if there are more; ``there`` is False where it
    is transparent; ``step`` is what its values are rounded to, as a share of the range.
    """

    colours: Array
    there: Mask
    step: float

    @property
    def picture(self) -> Photo:
        """The photo in 8 bits, to look at."""
        return self.colours if self.colours.dtype == np.uint8 else np.round(255 * self.colours).astype(np.uint8)

    @property
    def clipped(self) -> NDArray[np.uint8]:
        """255 where a channel is as bright as it can be, and may have been brighter; 0 elsewhere."""
        if self.colours.dtype == np.uint8:
            return np.asarray(Image.fromarray(self.colours).point([0] * 255 + [255] + ([0] * 255 + [255]) * 2))
        return (self.colours >= 1 - self.step / 2) * np.uint8(255)


class Frames(NamedTuple):
    """Two photos of one size, and what was done to bring them there."""

    before: Frame
    after: Frame
    notes: tuple[str, ...]


def comparable(before: Any, after: Any, bits: int | None = None) -> Frames:
    """Bring two photos to one size, that of ``after``, one range, and three channels; grey if either is.

    Photos of one shape but another number of pixels are resampled. Other shapes are refused.
    """
    arrays = [_as_photo(before, "before"), _as_photo(after, "after")]
    colours, there = zip(*(_opacity_apart(array) for array in arrays), strict=True)
    if any(array.ndim == 2 for array in colours):
        colours = tuple(map(_grey, colours))
    one_kind = colours[0].dtype == colours[1].dtype
    levels = [_levels(colours if one_kind else (array,), bits) for array in colours]
    first, second = (_frame(*parts) for parts in zip(colours, there, levels, strict=True))
    notes = dict.fromkeys(level.said for level in levels if level.said)
    moved = _resampled(first, second)
    if moved is not first:
        factor = second.colours.shape[1] / first.colours.shape[1]
        notes[f"BEFORE was resampled to the size of AFTER, {factor:.2g} times as wide."] = None
    return Frames(moved, second, tuple(notes))


def _as_photo(values: Any, name: str) -> Array:
    array = np.asarray(values)
    if array.dtype == np.bool_ or array.dtype.kind not in "uif":
        raise ValueError(f"{name} must hold numbers; got dtype {array.dtype}.")
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (2, 3, 4)):
        raise ValueError(
            f"{name} must have shape (height, width), or (height, width, 3), or one more channel that says how opaque "
            f"it is; got {array.shape}."
        )
    if min(array.shape[:2]) < SMALLEST_SIDE:
        raise ValueError(
            f"{name} has {array.shape[1]} x {array.shape[0]} pixels; "
            f"at least {SMALLEST_SIDE} x {SMALLEST_SIDE} are needed to tell noise from change."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).any():
        raise ValueError(f"{name} holds NaN or infinity in all {array.size} place(s).")
    return array


def _opacity_apart(array: Array) -> tuple[Array, Mask]:
    """The colours, and where there are any: at least half as opaque as the rest, and a number."""
    there = np.ones(array.shape[:2], bool)
    if array.ndim == 3 and array.shape[2] in (2, 4):
        opacity = array[..., -1]
        there, array = (
            opacity > float(np.nanmax(opacity)) / 2,
            array[..., :-1] if array.shape[2] == 4 else array[..., 0],
        )
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        there = there & (finite if array.ndim == 2 else finite.all(axis=2))
        array = np.where(finite, array, array[finite].min())
    return array, there


def _grey(photo: Array) -> Array:
    if photo.ndim == 2:
        return photo
    if photo.dtype == np.uint8:
        return np.asarray(Image.fromarray(photo).convert("L"))
    grey = photo @ np.array(_GREY)
    return (np.round(grey) if photo.dtype.kind in "ui" else grey).astype(photo.dtype)


def _levels(arrays: tuple[Array, ...], bits: int | None) -> Levels:
    """Find what the numbers mean: whole numbers have as many bits as the largest needs, others their own range."""
    low = min(0.0, *(float(array.min()) for array in arrays))
    top = max(float(array.max()) for array in arrays)
    if arrays[0].dtype.kind == "f" and not all((array == np.floor(array)).all() for array in arrays):
        if bits is not None:
            raise ValueError("--bits (bits=) is for whole numbers; these photos hold fractions. Leave it out.")
        top = 1.0 if low == 0 and top <= 1 else max(top, low + 1e-12)
        is_of_eight = top == 1 and all(np.abs(255 * array - np.round(255 * array)).max() < 1e-3 for array in arrays)
        said = "" if top == 1 and low == 0 else f"Values from {low:.4g} to {top:.4g} are taken for black and white."
        return Levels(low, top, 1 / 255 if is_of_eight else (top - low) / 2**16, said)
    found = max(8, int(top).bit_length())
    if bits is not None and not found <= bits:
        raise ValueError(
            f"Values of up to {top:,.0f} have {found} bits at least, not {bits}. Leave --bits (bits=) out, or raise it."
        )
    step = _common_step(arrays, found) if bits is None else 1
    said = ""
    if bits is not None or (arrays[0].dtype != np.uint8 and found != 16):
        said = f"Values have {bits or found} bits"
        said += " as asked for." if bits else f", as the largest, {top:,.0f}, needs; --bits (bits=) says otherwise."
    return Levels(low, 2.0 ** (bits or found) - step if step != 257 else 65535.0, float(step), said)


def _common_step(arrays: tuple[Array, ...], bits: int) -> int:
    """Files of 16 bits may hold fewer: shifted up, so that the lowest bits are never set, or 8 bits times 257."""
    if arrays[0].dtype == np.uint8 or arrays[0].dtype.kind == "f":
        return 1
    if bits == 16 and all((array % 257 == 0).all() for array in arrays):
        return 257
    every = int(np.bitwise_or.reduce([int(np.bitwise_or.reduce(array, axis=None)) for array in arrays]))
    return min(every & -every, 2 ** (bits - 8)) if every else 1


def _frame(colours: Array, there: Mask, levels: Levels) -> Frame:
    if colours.ndim == 2:
        colours = np.repeat(colours[..., None], 3, axis=2)
    if colours.dtype != np.uint8 or levels.top != 255:
        scaled = (colours - np.float32(levels.low)) / np.float32(levels.top - levels.low)
        colours = np.clip(scaled, 0, 1).astype(np.float32)
    return Frame(np.ascontiguousarray(colours), there, levels.relative_step)


def _resampled(frame: Frame, like: Frame) -> Frame:
    (height, width), (wanted_height, wanted_width) = frame.there.shape, like.there.shape
    if (height, width) == (wanted_height, wanted_width):
        return frame
    if abs(width * wanted_height / (height * wanted_width) - 1) > _ASPECT_TOLERANCE:
        raise ValueError(
            f"The photos have different shapes, {width} x {height} and {wanted_width} x {wanted_height} pixels: "
            f"crop them to the same view."
        )
    size, kind = (wanted_width, wanted_height), Image.Resampling.LANCZOS
    planes = by_channel(frame.colours, lambda image: image.resize(size, kind))
    there = Image.fromarray(frame.there).resize(size, Image.Resampling.NEAREST)
    return replace(
        frame, colours=np.clip(planes, 0, 1) if planes.dtype != np.uint8 else planes, there=np.asarray(there)
    )


def by_channel(values: Array, change: Any) -> Array:
    """Apply what Pillow does to a picture: of 8 bits all channels at once, of floating point each by itself."""
    if values.dtype == np.uint8:
        return np.asarray(change(Image.fromarray(values)))
    channels = values.reshape(*values.shape[:2], -1)
    planes = [
        np.asarray(change(Image.fromarray(np.ascontiguousarray(channels[..., c], np.float32))))
        for c in range(channels.shape[2])
    ]
    return np.stack(planes, axis=-1).reshape(*planes[0].shape, *values.shape[2:])


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
    return by_channel(np.asarray(field, np.float32), lambda image: image.resize((width, height), kind))


def shrunk(photo: Array, longest: int) -> Field:
    """Return the photo with at most so many pixels along its longer side, and values in 0 .. 1."""
    height, width = photo.shape[:2]
    factor = max(height, width) / longest
    if factor > 1:
        size = round(width / factor), round(height / factor)
        photo = by_channel(photo, lambda image: image.resize(size, Image.Resampling.BOX, reducing_gap=2.0))
    return photo.astype(np.float32) / np.float32(255) if photo.dtype == np.uint8 else np.asarray(photo, np.float32)


def gradient_power(field: Field) -> Field:
    """Mean over channels of the squared length of the gradient, per pixel."""
    along_rows, along_columns = np.gradient(field, axis=(0, 1))
    power: Field = (along_rows**2 + along_columns**2).reshape(*field.shape[:2], -1).mean(axis=-1)
    return power.astype(np.float32)
