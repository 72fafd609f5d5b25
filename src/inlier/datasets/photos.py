"""Photos: one with much sky, whose pixels are the points of section 6.3, and squares of it that change places.

And three photos of one scene, to which objects are added: the case study of section 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter
from sklearn.datasets import load_sample_image

from inlier._checks import check_count
from inlier._typing import Mask, Photo
from inlier.io import eight_bits, read_photo

Indices = NDArray[np.intp]

_PAPER_PIXELS = 2080 * 3120
_SWAPPED_SHARE = 2 * 900**2 / _PAPER_PIXELS  # scenario 1: two squares, "25 %"
_PERMUTED_SHARE = 30 * 200**2 / _PAPER_PIXELS  # scenario 2: thirty squares, "18.5 %"
Layer = tuple[list[tuple[float, float]], tuple[int, int, int]]  # corners as (column, row), and a colour

_BOX: list[Layer] = [  # front, side and lid, all yellow
    ([(356, 238), (416, 246), (416, 300), (356, 288)], (222, 184, 30)),
    ([(416, 246), (448, 234), (448, 282), (416, 300)], (170, 136, 16)),
    ([(356, 238), (390, 228), (448, 234), (416, 246)], (250, 222, 84)),
]
_BOX_SHADOW, _CUSHION_SHADOW = (348, 276, 462, 312), (451, 280, 563, 314)  # left, top, right, bottom
_SHADOW_BRIGHTNESS = 0.8
_LIGHT = ((1.0, 1.0, 1.0), (1.015, 1.01, 1.0), (0.985, 0.985, 0.99))  # gain of red, green, blue in each photo
_SENSOR_NOISE = 2.0  # standard deviation, in grey levels of 255


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
    pixels = eight_bits(np.atleast_3d(read_photo(photo)))
    return pixels[:, :, :3] if pixels.shape[2] > 2 else np.repeat(pixels[:, :, :1], 3, axis=2)


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


@dataclass(frozen=True, eq=False)
class Scenes:
    """Three photos of one scene, each with more in it than the one before.

    Attributes
    ----------
    photos : tuple of three ndarrays of uint8, shape (height, width, 3)
        The scene; with an object; with two.
    objects : tuple of two boolean ndarrays of shape (height, width), or None
        Where each object is, if that is known.
    """

    photos: tuple[Photo, Photo, Photo]
    objects: tuple[Mask, Mask] | None = None

    def changed(self, first: int, second: int) -> Mask | None:
        """Return where photos ``first`` < ``second`` differ by an object, if that is known."""
        if self.objects is None:
            return None
        return np.logical_or.reduce(self.objects[first:second])


def load_scenes(paths: Sequence[str | PathLike[str]]) -> Scenes:
    """Load three photos of one size, taken from one place.

    Parameters
    ----------
    paths : sequence of three paths
        Any image files: the scene, and the scene with one and with two things more.

    Returns
    -------
    Scenes

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from inlier.datasets import load_scenes, make_scenes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [Path(folder, f"{number}.png") for number in range(3)]
    ...     for path, photo in zip(paths, make_scenes().photos):
    ...         Image.fromarray(photo).save(path)
    ...     scenes = load_scenes(paths)
    >>> [photo.shape for photo in scenes.photos]
    [(427, 640, 3), (427, 640, 3), (427, 640, 3)]
    """
    if len(paths) != 3:
        raise ValueError(f"The case study compares three photos of one scene; {len(paths)} were given.")
    first, second, third = (load_sky(path) for path in paths)
    if not first.shape == second.shape == third.shape:
        sizes = ", ".join(f"{photo.shape[0]} x {photo.shape[1]}" for photo in (first, second, third))
        raise ValueError(f"The three photos must have one size and be taken from one place; they are {sizes}.")
    return Scenes((first, second, third))


def make_scenes(seed: int = 0) -> Scenes:
    """Make three photos of one scene from scikit-learn's ``china.jpg``, where the objects are known to the pixel.

    The scene; the scene with a drawn yellow box; the scene with the box and a drawn orange cushion, both in front of
    the lake. Each object darkens what is just below it; each photo has slightly other light, and its own sensor noise.

    Parameters
    ----------
    seed : int, default=0
        Decides the sensor noise.

    Returns
    -------
    Scenes

    Examples
    --------
    >>> from inlier.datasets import make_scenes
    >>> scenes = make_scenes()
    >>> [photo.shape for photo in scenes.photos] == [(427, 640, 3)] * 3
    True
    """
    random = np.random.default_rng(seed)
    scene = load_sky()
    with_box, box = _add(scene, _BOX, _BOX_SHADOW)
    with_both, cushion = _add(with_box, _cushion_layers(), _CUSHION_SHADOW)
    first, second, third = (
        _photograph(view, gain, random) for view, gain in zip((scene, with_box, with_both), _LIGHT, strict=True)
    )
    return Scenes((first, second, third), (box, cushion))


def _add(scene: Photo, layers: list[Layer], shadow: tuple[int, int, int, int]) -> tuple[Photo, Mask]:
    """Draw an object's layers over a soft shadow; return the picture and where the object is."""
    height, width, _ = scene.shape
    dark = Image.new("L", (width, height), 255)
    ImageDraw.Draw(dark).ellipse(shadow, fill=round(255 * _SHADOW_BRIGHTNESS))
    brightness = np.asarray(dark.filter(ImageFilter.GaussianBlur(4))) / 255
    picture = Image.fromarray(np.round(scene * brightness[..., None]).astype(np.uint8))
    outline = Image.new("1", (width, height))
    for corners, colour in layers:
        ImageDraw.Draw(picture).polygon(corners, fill=colour)
        ImageDraw.Draw(outline).polygon(corners, fill=1)
    return np.array(picture), np.array(outline)


def _cushion_layers() -> list[Layer]:
    """An orange cushion, lighter towards its upper middle: ever smaller rounded squares on top of each other."""
    angle = np.linspace(0, 2 * np.pi, 90, endpoint=False)
    column = 46 * np.sign(np.cos(angle)) * np.abs(np.cos(angle)) ** 0.6
    row = 32 * np.sign(np.sin(angle)) * np.abs(np.sin(angle)) ** 0.6
    layers = []
    for step in np.linspace(0, 1, 24):
        size, light = 1 - 0.8 * step, 0.8 + 0.35 * step
        corners = [(505 + size * c, 272 - 8 * step + size * r) for c, r in zip(column, row, strict=True)]
        layers.append((corners, (round(205 * light), round(92 * light), round(24 * light))))
    return layers


def _photograph(view: Photo, gain: tuple[float, float, float], random: np.random.Generator) -> Photo:
    """Return the view in other light and with sensor noise."""
    light = view * np.array(gain) + _SENSOR_NOISE * random.standard_normal(view.shape)
    return np.clip(np.round(light), 0, 255).astype(np.uint8)
