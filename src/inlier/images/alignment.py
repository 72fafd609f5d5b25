"""Lay one photo over the other: a homography and the lens by least squares, and the small bends that they leave.

The movement is found on brightness that is made even around each pixel, so that light does not pull on it. It is a
map from places in ``after`` to places in ``before``: place' = H(L(place)) + bend(place). H is a homography, what a
camera that turns, or moves before a plane, sees; L(c) = c + lens (c . c) c, with c from the centre in units of half the
longer side, is how the distortion of the lens differs. Both start from no movement and from the shift at which the
phases of the photos agree; where neither fits, from matched features. The bend, a smooth field of small shifts, is
what depth leaves over.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from PIL import Image
from scipy import fft, ndimage

from inlier._typing import Array, FloatArray
from inlier.images.features import NoFeaturesError, map_by_features
from inlier.images.rasters import (
    GRID,
    WORKING_SIZE,
    Field,
    Frame,
    by_channel,
    comparable,
    gaussian,
    gradient_power,
    resample,
    shrunk,
)

_STEPS, _MOST_ROUNDS = (4, 2, 1), 12  # of the grid, from coarse to fine; and on each of them
_FINE_SIZE = 1024  # pixels of the longer side where phases and features are compared: thin lines are still there
_EVENING = 6.0  # pixels over which brightness is made even
_LEAST_CONTRAST = 0.03  # spread of brightness, in 0 .. 1, below which there is only noise to even out
_SETTLED = 0.02  # pixels that a round moves a corner by when it may be the last
_BENDS = (0.25, 0.1, 0.04)  # windows in which the bend is fitted on these grids, as shares of the longer side
_BEND_ROUNDS = 6  # on each grid; a round moves by one of its pixels at most
_SAME_VIEW = 0.35  # correlation of evened brightness that only two photos of one view reach
_PLAIN = 0.5  # spread of evened brightness, 1 where there is structure, of a photo that shows hardly anything
_OVER_DECOYS, _BY_CHANCE = 2.0, 0.05  # below that: how many times that of mirrored photos it must be; at least theirs
_GAIN_WORTH_TAKING = 0.02  # of the agreement that is missing: for less the photo is left where it is
_GAIN_WORTH_BENDING = 0.25  # the same for a bend, which has so many more ways to agree

STAY = np.eye(3)


def _straight() -> FloatArray:
    return np.zeros((2, 2, 2))


@dataclass(frozen=True, eq=False)
class Alignment:
    """How ``before`` was moved onto ``after``.

    Attributes
    ----------
    matrix : ndarray of shape (3, 3)
        Homography: place in ``before`` of a place (column, row) in ``after``, ``matrix @ (column, row, 1)`` over its
        last number, plus the bend.
    agreement : float
        Correlation of the two photos' evened brightness after the movement: 1 for equal photos, 0 for strangers.
    method : str
        What the movement was found by: "brightness" or "features"; "none" where nothing was moved.
    same_scene : bool
        Whether the photos agree as only photos of one scene do.
    bend : ndarray of shape (rows, columns, 2)
        Further shifts (across, down) in pixels, at nodes that are spread evenly from corner to corner of the frame.
    lens : float
        Distortion before the homography: c + lens (c . c) c, from the centre in units of half the longer side.
    """

    matrix: FloatArray
    agreement: float
    method: str
    same_scene: bool = True
    bend: FloatArray = field(default_factory=_straight)
    lens: float = 0.0

    @property
    def moved(self) -> bool:
        """Whether the photo has to be moved at all."""
        return self.method != "none"

    @property
    def agrees_little(self) -> bool:
        """Whether the photos may as well show two scenes."""
        return self.agreement < _SAME_VIEW

    def shift(self, height: int, width: int) -> float:
        """Largest movement of a node, in pixels."""
        nodes = self._nodes(height, width)
        return float(np.linalg.norm(self.places(nodes, height, width) - nodes, axis=-1).max())

    def places(self, nodes: FloatArray, height: int, width: int) -> FloatArray:
        """Where the nodes of a frame of that size lie in ``before``."""
        return _mapped(nodes, (height, width), self.matrix, self.lens) + self.bend

    def apply(self, before: Array) -> Array:
        """Move ``before`` onto ``after``; what lies outside of it is black."""
        return by_channel(before, self._transformed) if self.moved else before

    def inside(self, height: int, width: int) -> Field:
        """1 where ``before`` has something to show, 0 outside of its frame."""
        return (self.apply(np.full((height, width), 255, np.uint8)) > 0).astype(np.float32)

    def scaled(self, factor: float) -> Alignment:
        """Return the same movement for photos ``factor`` times as large."""
        return replace(self, matrix=_scaled(self.matrix, factor), bend=self.bend * factor)

    def _transformed(self, image: Image.Image) -> Image.Image:
        """Between the nodes the map is bilinear. Pillow counts from pixel corners, we from centres."""
        corners = np.round(self._nodes(image.height, image.width) + 0.5).astype(int)
        places = self.places(corners - 0.5, image.height, image.width) + 0.5
        mesh = []
        for row in range(len(corners) - 1):
            for column in range(corners.shape[1] - 1):
                box = (*corners[row, column], *corners[row + 1, column + 1])
                turn = [
                    places[row, column],
                    places[row + 1, column],
                    places[row + 1, column + 1],
                    places[row, column + 1],
                ]
                mesh.append((tuple(int(edge) for edge in box), tuple(float(value) for value in np.ravel(turn))))
        return image.transform(image.size, Image.Transform.MESH, mesh, Image.Resampling.BILINEAR)

    def _nodes(self, height: int, width: int) -> FloatArray:
        rows, columns = self.bend.shape[:2]
        across, down = np.linspace(-0.5, width - 0.5, columns), np.linspace(-0.5, height - 0.5, rows)
        return np.stack(np.meshgrid(across, down), axis=-1)


def align_photos(before: Any, after: Any, random_state: int = 0) -> Alignment:
    """Find the movement of the camera between two photos.

    Shifts, small turns and small bends need nothing else; photos that are far turned need OpenCV
    (``pip install opencv-python-headless``).

    Parameters
    ----------
    before, after : array-like of shape (height, width, 3) or (height, width)
        The photos.
    random_state : int, default=0
        Deals the folds of the robust fit to matched features.

    Returns
    -------
    Alignment

    Examples
    --------
    >>> from inlier.datasets import load_sky
    >>> from inlier.images import align_photos
    >>> photo = load_sky()
    >>> align_photos(photo[3:403, 2:602], photo[:400, :600]).matrix.round(1)[:2, 2].tolist()
    [-2.0, -3.0]
    """
    return aligned(*comparable(before, after)[:2], random_state)


def aligned(before: Frame, after: Frame, random_state: int) -> Alignment:
    """The same for photos that were made comparable."""
    x, y = (_even_brightness(photo, WORKING_SIZE) for photo in (before, after))
    scale = after.there.shape[0] / y.shape[0]
    larger_x, larger_y = (_even_brightness(photo, _FINE_SIZE) for photo in (before, after))
    shift = _scaled(_translation(larger_x, larger_y), y.shape[0] / larger_y.shape[0])
    best = max((_refine(x, y, start) for start in (STAY, shift)), key=_by_agreement)
    if best.agreement < _SAME_VIEW:
        with suppress(NoFeaturesError):
            start = _scaled(map_by_features(before.picture, after.picture, _FINE_SIZE, random_state), 1 / scale)
            best = max(best, replace(_refine(x, y, start), method="features"), key=_by_agreement)
    if not _agree(best.agreement, x, y, lambda decoy: _refine(decoy, y, _translation(decoy, y)).agreement):
        return Alignment(STAY, best.agreement, "none", _are_plain(x, y))  # a movement would mean nothing
    if best.moved and larger_y.shape > y.shape:
        finer = larger_y.shape[0] / y.shape[0]
        best = _settled(larger_x, larger_y, best.scaled(finer)).scaled(1 / finer)
    return _bent(x, y, best).scaled(scale)


def as_they_are(before: Frame, after: Frame) -> Alignment:
    """No movement, and how well the photos agree without one."""
    x, y = (_even_brightness(photo, WORKING_SIZE) for photo in (before, after))
    agreement = _agreement(x, y)
    agree = _agree(agreement, x, y, lambda decoy: _agreement(decoy, y))
    return Alignment(STAY, agreement, "none", agree or _are_plain(x, y))


def _by_agreement(found: Alignment) -> float:
    return found.agreement


def _are_plain(x: Field, y: Field) -> bool:
    """Whether nobody can tell if the photos show one scene."""
    return bool(min(x.std(), y.std()) < _PLAIN)


def _agree(agreement: float, x: Field, y: Field, agreement_of: Callable[[Field], float]) -> bool:
    """Compare the agreement with that of decoys: no camera sees a scene mirrored."""
    if agreement >= _SAME_VIEW:
        return True
    decoys = (x[:, ::-1], x[::-1], x[::-1, ::-1])
    highest = max(_BY_CHANCE, *(agreement_of(np.ascontiguousarray(decoy)) for decoy in decoys))
    return agreement > _OVER_DECOYS * highest


def _even_brightness(photo: Frame, longest: int) -> Field:
    """Brightness with mean 0 and spread 1 around each pixel; 0 where the photo is transparent."""
    grey: Field = shrunk(photo.colours, longest).mean(axis=-1)
    there, nearby = np.ones_like(grey), np.ones_like(grey)
    if not photo.there.all():
        there = np.floor(resample(photo.there.astype(np.float32), *grey.shape) + np.float32(1e-3))
        nearby = np.maximum(gaussian(there, _EVENING), np.float32(1e-3))
    centred = (grey - gaussian(grey * there, _EVENING) / nearby) * there
    spread = np.sqrt(gaussian(centred * centred, _EVENING) / nearby)
    return (centred / (spread + np.float32(_LEAST_CONTRAST))).astype(np.float32)


def _refine(x: Field, y: Field, start: FloatArray) -> Alignment:
    """Gauss-Newton on homography and lens, from coarse to fine."""
    found = Alignment(start, 0.0, "brightness")
    for step in _STEPS:
        size = x.shape[0] // step, x.shape[1] // step
        coarse_x, coarse_y = (gaussian(resample(field, *size), 1.0) for field in (x, y))
        found = _settled(coarse_x, coarse_y, found.scaled(1 / step)).scaled(step)
    x, y = gaussian(x, 1.0), gaussian(y, 1.0)
    before, after = _agreement(x, y), _agreement(_warp(x, found), y)
    if after <= before + _GAIN_WORTH_TAKING * (1 - before):
        return Alignment(STAY, before, "none")
    return replace(found, agreement=after)


def _settled(x: Field, y: Field, found: Alignment) -> Alignment:
    """Gauss-Newton on one grid, with weights against changed pixels, until it hardly moves."""
    for _ in range(_MOST_ROUNDS):
        update = _newton_step(_warp(x, found), y)
        matrix = found.matrix @ update.matrix
        found = replace(found, matrix=matrix / matrix[2, 2], lens=found.lens + update.lens)
        if update.shift(*y.shape) < _SETTLED:
            break
    return found


def _bent(x: Field, y: Field, stiff: Alignment) -> Alignment:
    """Lucas and Kanade's shifts in Gaussian windows around each place, from stiff to soft, where that is worth it."""
    height, width = y.shape
    x, y = gaussian(x, 1.0), gaussian(y, 1.0)
    bend = np.zeros((height, width, 2), np.float32)
    for step, window in zip(_STEPS, _BENDS, strict=True):
        size = height // step, width // step
        coarse_x, coarse_y = (gaussian(resample(field, *size), 1.0) for field in (x, y))
        moved, coarse = stiff.scaled(1 / step), resample(bend, *size) / np.float32(step)
        for _ in range(_BEND_ROUNDS):
            coarse = coarse + _local_shifts(_warp(coarse_x, moved, coarse), coarse_y, window * max(size))
        bend = resample(coarse, height, width) * np.float32(step)
    agreement = _agreement(_warp(x, stiff, bend), y)
    worth_it = agreement > stiff.agreement + _GAIN_WORTH_BENDING * (1 - stiff.agreement)
    if not (worth_it or stiff.moved):
        return stiff
    nodes = [max(2, round(side / (_BENDS[-1] * WORKING_SIZE)) + 1) for side in (height, width)]
    if not worth_it:
        return replace(stiff, bend=np.zeros((*nodes, 2)))
    places = np.meshgrid(*(np.linspace(0, side - 1, n) for side, n in zip(y.shape, nodes, strict=True)), indexing="ij")
    at_nodes = np.stack([ndimage.map_coordinates(bend[..., c], places, order=1) for c in range(2)], axis=-1)
    method = stiff.method if stiff.moved else "brightness"
    return replace(stiff, bend=at_nodes.astype(np.float64), agreement=agreement, method=method)


def _agreement(moved: Field, y: Field) -> float:
    inside = ~np.isnan(moved)
    if inside.mean() < 0.1:
        return 0.0
    a, b = moved[inside], y[inside]
    spread = float(a.std() * b.std())
    return float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread > 0 else 0.0


def _local_shifts(moved: Field, y: Field, sigma: float) -> Field:
    """Least squares for a shift (across, down) around each place; nothing is moved where there is nothing to see."""
    height, width = y.shape
    moved = np.where(np.isnan(moved), y, moved)
    by_row, by_column = np.gradient(moved)
    rest = y - moved
    weights = _falling(rest)
    terms = (by_column * by_column, by_column * by_row, by_row * by_row, by_column * rest, by_row * rest)
    products = np.stack([weights * term for term in terms], axis=-1)
    coarse = resample(products, max(1, height // GRID), max(1, width // GRID))
    xx, xy, yy, xr, yr = np.moveaxis(gaussian(coarse, sigma / GRID), -1, 0)
    shifts = (
        np.stack([yy * xr - xy * yr, xx * yr - xy * xr], axis=-1)
        / (np.maximum(xx * yy - xy * xy, 0) + 1e-12)[..., None]
    )
    return resample(np.clip(shifts, -1, 1).astype(np.float32), height, width)


def _scaled(matrix: FloatArray, factor: float) -> FloatArray:
    """Return the map for photos ``factor`` times as large; pixel centres move: x' = factor (x + 1/2) - 1/2."""
    moved = (factor - 1) / 2
    larger = np.array([[factor, 0, moved], [0, factor, moved], [0, 0, 1]])
    return np.asarray(larger @ matrix @ np.linalg.inv(larger))


def _centred(height: int, width: int) -> FloatArray:
    """Pixels to coordinates from the centre of the frame, in units of half its longer side."""
    half = max(height, width) / 2
    return np.array([[1 / half, 0, -(width - 1) / 2 / half], [0, 1 / half, -(height - 1) / 2 / half], [0, 0, 1]])


def _mapped(places: FloatArray, frame: tuple[int, int], matrix: FloatArray, lens: float) -> FloatArray:
    """H(L(place)) of places (column, row) in a frame of (height, width)."""
    across, down = np.moveaxis(places, -1, 0)
    if lens:
        (unit, _, column), (_, _, row), _ = _centred(*frame)
        u, v = unit * across + column, unit * down + row
        outward = lens * (u * u + v * v)
        across, down = across + outward * u / unit, down + outward * v / unit
    (a, b, c), (d, e, f), (g, h, i) = matrix
    depth = g * across + h * down + i
    return np.stack([(a * across + b * down + c) / depth, (d * across + e * down + f) / depth], axis=-1)


def _newton_step(moved: Field, y: Field) -> Alignment:
    """Homography and lens, to be applied before those so far, that bring the moved photo closer to ``y``."""
    moved = np.where(np.isnan(moved), y, moved)
    height, width = y.shape
    centred = _centred(height, width)
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    u, v = centred[0, 0] * columns + centred[0, 2], centred[1, 1] * rows + centred[1, 2]
    down, across = (np.asarray(slope / centred[0, 0], np.float32) for slope in np.gradient(moved))
    outward = across * u + down * v
    terms = (across, down, across * u, across * v, down * u, down * v, -outward * u, -outward * v)
    jacobian = np.stack([*terms, outward * (u * u + v * v)], axis=-1, dtype=np.float32).reshape(-1, 9)
    rest = y - moved
    one_pixel = np.sqrt(gradient_power(moved))  # what a shift by a pixel explains is no outlier: edges of thin lines
    weighted = jacobian * _falling(rest, one_pixel).reshape(-1, 1)
    normal = (jacobian.T @ weighted).astype(np.float64)
    held = 1e-6 * np.eye(9)  # of photos without structure
    right, below, a, b, d, e, g, h, lens = np.linalg.solve(normal + held, weighted.T @ rest.ravel())
    update = np.array([[1 + a, b, right], [d, 1 + e, below], [g, h, 1]])
    return Alignment(np.linalg.inv(centred) @ update @ centred, 0.0, "update", lens=float(lens))


def _falling(rest: Field, expected: Field | float = 0.0) -> Field:
    """Weights that drop what does not follow the map by a robust standard deviation, and what is expected."""
    spread = 1.4826 * float(np.median(np.abs(rest))) + 1e-3
    return np.asarray(1 / (1 + rest**2 / (spread**2 + expected**2)) ** 2, np.float32)


def _warp(x: Field, by: Alignment, bend: Field | None = None) -> Field:
    """Return the moved photo; NaN where it shows nothing."""
    rows, columns = np.mgrid[: x.shape[0], : x.shape[1]].astype(np.float32)
    places = _mapped(np.stack([columns, rows], axis=-1), x.shape[:2], by.matrix, by.lens)
    if bend is not None:
        places = places + bend
    moved: Field = ndimage.map_coordinates(x, [places[..., 1], places[..., 0]], order=1, mode="constant", cval=np.nan)
    return moved


def _translation(x: Field, y: Field) -> FloatArray:
    """Shift at which the phases of the two photos agree best."""
    size = [fft.next_fast_len(2 * n) for n in y.shape]
    product = fft.rfft2(x, size) * np.conj(fft.rfft2(y, size))
    peak = fft.irfft2(product / (np.abs(product) + 1e-6), size)
    row, column = np.unravel_index(int(peak.argmax()), peak.shape)
    signed = [int(place) - n if place > n // 2 else int(place) for place, n in zip((row, column), size, strict=True)]
    return np.array([[1.0, 0.0, signed[1]], [0.0, 1.0, signed[0]], [0.0, 0.0, 1.0]])
