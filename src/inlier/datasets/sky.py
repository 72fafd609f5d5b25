"""A photograph with much sky, whose pixels are the points of section 6.3, and squares of it that change places."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_sample_image

from inlier._checks import check_count
from inlier._typing import Mask, Photo
from inlier.io import read_photo

Indices = NDArray[np.intp]

_PAPER_PIXELS = 2080 * 3120
_SWAPPED_SHARE = 2 * 900**2 / _PAPER_PIXELS  # scenario 1: two squares, "25 %"
_PERMUTED_SHARE = 30 * 200**2 / _PAPER_PIXELS  # scenario 2: thirty squares, "18.5 %"


def load_sky(photo: str | PathLike[str] | None = None) -> Photo:
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
    pixels = read_photo(photo)
    return pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)


@dataclass(frozen=True, eq=False)
class MovableSquares:
    """Squares of one size in a photo that can change places.

    Pixels are counted along the rows: pixel ``row * width + column``.

    Attributes
    ----------
    height, width : int
        Size of the photo.
    side : int
        Side of every square, in pixels.
    corners : ndarray of int, shape (k, 2)
        Row and column of each square's upper left pixel.
    """

    height: int
    width: int
    side: int
    corners: Indices

    @cached_property
    def square_of_pixel(self) -> NDArray[np.int16]:
        """Which square each pixel lies in; -1 outside of all."""
        squares = np.full((self.height, self.width), -1, dtype=np.int16)
        for number, (row, column) in enumerate(self.corners):
            squares[row : row + self.side, column : column + self.side] = number
        return squares.ravel()

    @property
    def share(self) -> float:
        """Share of the photo's pixels that lie in a square."""
        return len(self.corners) * self.side**2 / (self.height * self.width)

    def rearrange(self, origin: Indices, pixels: Indices | None = None) -> tuple[Indices, Mask]:
        """Say where pixels come from once square k shows what was in square ``origin[k]``.

        Parameters
        ----------
        origin : ndarray of int, shape (k,)
            A permutation of the squares.
        pixels : ndarray of int, optional
            Which pixels to answer for; all by default.

        Returns
        -------
        source : ndarray of int
            The pixel whose colour each pixel shows now.
        unmoved : ndarray of bool
            True where that is the pixel itself: the pairs (pixel, source) that are real. A square that
            stays in place is unmoved. A moved pixel counts as moved even if its new colour is the same.
        """
        if pixels is None:
            pixels = np.arange(self.height * self.width)
        first_pixel = self.corners @ np.array([self.width, 1])
        shift = np.append(first_pixel[origin] - first_pixel, 0)  # the last entry serves the pixels outside: -1
        source = pixels + shift[self.square_of_pixel[pixels]]
        return source, source == pixels


def squares_on_grid(height: int, width: int, side: int, rows: int, columns: int) -> MovableSquares:
    """Place ``rows x columns`` squares, each in the middle of a cell of an even grid, so that none overlap.

    Examples
    --------
    >>> from inlier.datasets import squares_on_grid
    >>> squares_on_grid(2080, 3120, 900, 1, 2).corners.tolist()
    [[590, 330], [590, 1890]]
    """
    height, width, side = check_count(height, "height"), check_count(width, "width"), check_count(side, "side")
    if rows * side > height or columns * side > width:
        raise ValueError(
            f"{rows} x {columns} squares of {side} x {side} pixels do not fit into a photo of "
            f"{height} x {width} pixels without overlap; give a larger photo."
        )
    tops = np.round((np.arange(rows) + 0.5) * height / rows - side / 2).astype(np.intp)
    lefts = np.round((np.arange(columns) + 0.5) * width / columns - side / 2).astype(np.intp)
    corners = np.stack(np.meshgrid(tops, lefts, indexing="ij"), axis=-1).reshape(-1, 2)
    return MovableSquares(height, width, side, corners)


def swapped_squares(height: int, width: int) -> MovableSquares:
    """Two squares of 25 % of the pixels: scenario 1. In a photo of 2080 x 3120 they are 900 x 900.

    Examples
    --------
    >>> from inlier.datasets import swapped_squares
    >>> round(swapped_squares(427, 640).share, 3)
    0.25
    """
    return _squares_of_share(_SWAPPED_SHARE, height, width, 1, 2)


def permuted_squares(height: int, width: int) -> MovableSquares:
    """Thirty squares of 18.5 % of the pixels: scenario 2. In a photo of 2080 x 3120 they are 200 x 200.

    Examples
    --------
    >>> from inlier.datasets import permuted_squares
    >>> permuted_squares(2080, 3120).side
    200
    """
    return _squares_of_share(_PERMUTED_SHARE, height, width, 5, 6)


def random_cycle(k: int, random: np.random.Generator) -> Indices:
    """Draw a permutation of k things that is one cycle, so that none stays in place.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.datasets import random_cycle
    >>> random_cycle(2, np.random.default_rng(0)).tolist()
    [1, 0]
    """
    order = random.permutation(check_count(k, "k", low=2))
    origin = np.empty(k, dtype=np.intp)
    origin[order] = np.roll(order, 1)
    return origin


def _squares_of_share(share: float, height: int, width: int, rows: int, columns: int) -> MovableSquares:
    side = max(1, round((share * height * width / (rows * columns)) ** 0.5))
    return squares_on_grid(height, width, side, rows, columns)
