"""Three photos of one scene, to which objects are added: the case study of section 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from inlier._typing import Mask, Photo
from inlier.datasets.sky import load_sky

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
