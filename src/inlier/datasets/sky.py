"""A photograph with much sky, whose pixels are the points of section 6.3."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from sklearn.datasets import load_sample_image


def load_sky(photo: str | PathLike[str] | None = None) -> NDArray[np.uint8]:
    """Load a photo as red, green and blue values.

    Parameters
    ----------
    photo : path, optional
        Any image file. By default ``china.jpg``, which scikit-learn ships: 427 x 640 pixels, much sky.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)

    Examples
    --------
    >>> from inlier.datasets import load_sky
    >>> load_sky().shape
    (427, 640, 3)
    """
    if photo is None:
        return np.array(load_sample_image("china.jpg"))
    path = Path(photo)
    if not path.is_file():
        raise FileNotFoundError(f"There is no photo at {path}.")
    try:
        with Image.open(path) as image:
            return np.array(image.convert("RGB"))
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} could not be read as an image: {error}") from error
