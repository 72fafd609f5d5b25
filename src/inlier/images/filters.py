"""Smoothing, resampling and gradients of images with one or more channels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from inlier._typing import Photo

Field = NDArray[np.float32]  # (height, width) or (height, width, channels)

WORKING_SIZE = 480  # pixels of the longer side at which photos are compared: objects, not pixels, change
_TRUNCATE = 3.0  # standard deviations that a Gaussian reaches


def gaussian(field: Field, sigma: float) -> Field:
    """Smooth along rows and columns, not across channels."""
    if sigma <= 0:
        return field
    across = (0.0,) * (field.ndim - 2)
    smooth: Field = ndimage.gaussian_filter(field, (sigma, sigma, *across), mode="reflect", truncate=_TRUNCATE)
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
