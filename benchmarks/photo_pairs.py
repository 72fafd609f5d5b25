"""Pairs of photos with known changes, and pairs without any: real ones kept beside the project, and made ones.

Made pairs take a photo, paste objects into it (crops of other photos, or drawn in one colour, with a cast shadow that
is not part of the truth), change the light (exposure, gamma, white balance, a smooth field, a soft shadow), move and
blur the camera, add noise, and compress. The truth is the object's shape, or its box. Unchanged pairs are made in the
same way without the objects. Circuit boards are drawn: traces with and without faults, shifted by whole pixels.

The photos are split in two halves: methods and constants are chosen on the development half with even seeds, and tested
on the photos held aside with odd seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw
from scipy import ndimage
from sklearn.datasets import load_sample_image

DATA = Path(__file__).parents[2] / "shared" / "data"
DEVELOPMENT, ASIDE = "development", "held aside"
_HALVES = {
    DEVELOPMENT: ("china", "popos_kait-herzog-8242", "cuisine_reference"),
    ASIDE: ("flower", "lomiri_sunset_by_Aitzol_Berasategi", "0_original"),
}
_ROOMS_ASIDE = ("6564", "6565")  # of the four later photos of the kitchen
_SIZE = (400, 560)
_LEAST_SHARE = 0.002  # of the pixels: objects together cover at least so much
_VISIBLE = 12.0  # grey levels by which an object differs from what it covers, in the mean


@dataclass(frozen=True, eq=False)
class PhotoPair:
    """Two photos and where they differ."""

    name: str
    before: np.ndarray
    after: np.ndarray
    truth: np.ndarray

    @property
    def changed(self) -> bool:
        """Whether anything has changed."""
        return bool(self.truth.any())


def real_pairs(half: str | None = None) -> list[PhotoPair]:
    """Return the pairs of ``../shared/data/change`` with their masks; empty where that is absent."""
    composite, rooms = DATA / "change" / "composite", DATA / "change" / "rooms"
    if not composite.is_dir():
        return []
    pairs = []
    if half != DEVELOPMENT:
        original = _read(composite / "0_original.png")
        bowl, both = _mask(composite / "1_bowl_mask.png"), _mask(composite / "2_bowl_cup_mask.png")
        pairs += [
            PhotoPair("composite: bowl", original, _read(composite / "1_bowl.png"), bowl),
            PhotoPair("composite: bowl, cup", original, _read(composite / "2_bowl_cup.png"), both),
            PhotoPair("composite: bowl, cup, light", original, _read(composite / "3_bowl_cup_light.png"), both),
        ]
    reference = _read(rooms / "cuisine_reference.jpg")
    for mask in sorted(rooms.glob("*_mask.png")):
        name = mask.name[8:12]
        if half is None or (name in _ROOMS_ASIDE) == (half == ASIDE):
            photo = _read(mask.with_name(mask.name.replace("_mask.png", "_B.jpg")))
            pairs.append(PhotoPair(f"rooms: {name}", reference, photo, _mask(mask)))
    return pairs


def real_unchanged_pairs() -> list[PhotoPair]:
    """Return photos of one state in other light: three of the kitchen with the same things, and the composition."""
    if not (DATA / "change").is_dir():
        return []
    composite = [_read(DATA / "change" / "composite" / f"{name}.png") for name in ("2_bowl_cup", "3_bowl_cup_light")]
    rooms = {name: _read(DATA / "change" / "rooms" / f"cuisine_{name}_B.jpg") for name in (6563, 6564, 6565)}
    pairs = [("composite: light", *composite)]
    pairs += [(f"rooms: {a} and {b}", rooms[a], rooms[b]) for a, b in ((6563, 6564), (6564, 6565), (6565, 6563))]
    return [PhotoPair(name, before, after, np.zeros(after.shape[:2], bool)) for name, before, after in pairs]


def real_light_pairs(count: int, seed: int = 1) -> Iterator[PhotoPair]:
    """Objects pasted into photos of one real scene in really other light; none where the photos are absent."""
    rooms = DATA / "change" / "rooms"
    if not rooms.is_dir():
        return
    photos = [_read(rooms / f"cuisine_{name}_B.jpg", longest=700) for name in (6563, 6564, 6565)]
    donors = list(photos_of(None).values())
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        first, second = rng.permutation(3)[:2]
        changed, truth = _with_objects(photos[second].astype(np.float32), donors, rng)
        noise = rng.uniform(0, 4)
        before = _photographed(photos[first].astype(np.float32), noise, rng)
        yield PhotoPair(f"real light {number}", before, _photographed(changed, noise, rng), truth)


class _Scene(NamedTuple):
    """A piece of a photo, other photos to take things from, and what decides about it by chance."""

    name: str
    number: int
    photo: np.ndarray
    donors: list[np.ndarray]
    rng: np.random.Generator


def _scenes(photos: dict[str, np.ndarray], count: int, *seed: int) -> Iterator[_Scene]:
    """Pieces of the photos in turn."""
    names = list(photos)
    for number in range(count):
        rng = np.random.default_rng([*seed, number])
        name = names[number % len(names)]
        donors = [photo for other, photo in photos.items() if other != name]
        yield _Scene(name[:12], number, _crop(photos[name], rng), donors, rng)


_NOTHING = np.zeros(_SIZE, bool)


Retake = Callable[[_Scene, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def _taken_twice(
    scenes: Iterable[_Scene], paste: Callable[..., tuple[np.ndarray, ...]] | None, most_noise: float, retake: Retake
) -> Iterator[PhotoPair]:
    """Photograph each scene, put things into it where there is a way to, and photograph it as ``retake`` does."""
    for scene in scenes:
        rng = scene.rng
        view, truth = paste(scene.photo, scene.donors, rng) if paste else (scene.photo, _NOTHING)
        noise = rng.uniform(1, most_noise)
        before = _photographed(scene.photo, noise, rng)
        after, truth = retake(scene, view, truth)
        yield PhotoPair(f"{scene.name} {scene.number}", before, _photographed(after, noise, rng), truth)


def made_pairs(photos: dict[str, np.ndarray], count: int, seed: int = 0, changed: bool = True) -> Iterator[PhotoPair]:
    """Made pairs, the photos in turn; without objects on request. Every third is held in the hand."""

    def retake(scene: _Scene, view: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        after = _relit(view, scene.rng) if scene.rng.random() < 0.7 else view
        if scene.number % 3 == 2:
            return _held_in_hand(after, truth, scene.rng)
        return _moved(after, truth, scene.rng) if scene.rng.random() < 0.6 else (after, truth)

    return _taken_twice(_scenes(photos, count, seed), _with_objects if changed else None, 7, retake)


def held_pairs(photos: dict[str, np.ndarray], count: int, seed: int = 0, changed: bool = True) -> Iterator[PhotoPair]:
    """Made pairs that are all held in the hand, three times as far from each other as those of `made_pairs`."""

    def retake(scene: _Scene, view: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _held_in_hand(_relit(view, scene.rng), truth, scene.rng, 3.0)

    return _taken_twice(_scenes(photos, count, seed, 5), _with_objects if changed else None, 7, retake)


def hard_pairs(photos: dict[str, np.ndarray], count: int, seed: int = 0, changed: bool = True) -> Iterator[PhotoPair]:
    """Large changes, 2 to 35 % of the pixels, under sharp shadows, with depth that no plane follows, out of focus."""

    def retake(scene: _Scene, view: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        after = _relit(view, scene.rng)
        if scene.rng.random() < 0.7:
            after = _sharply_shaded(after, scene.rng)
        after, truth = _with_depth(after, truth, scene.rng)
        return (ndimage.gaussian_filter(after, (1.5, 1.5, 0)) if scene.rng.random() < 0.4 else after), truth

    return _taken_twice(_scenes(photos, count, seed, 9), _with_large_objects if changed else None, 6, retake)


def satellite_pairs(
    photos: dict[str, np.ndarray], count: int, seed: int = 0, changed: bool = True, seasons: bool = False
) -> Iterator[PhotoPair]:
    """Registered, as two instruments see a place: other colours, haze, blur and noise; in two seasons on request."""

    def retake(scene: _Scene, view: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if seasons:
            view = np.where(ndimage.binary_dilation(truth)[..., None], view, _in_another_season(view, scene.rng))
        mixed = view @ scene.rng.dirichlet([1, 1, 1], 3).T
        hazy = 255 * (mixed / 255) ** scene.rng.uniform(0.6, 1.6, 3) * scene.rng.uniform(0.6, 0.9) + 20
        return ndimage.gaussian_filter(hazy, (1.5, 1.5, 0)), truth

    return _taken_twice(_scenes(photos, count, seed, 15), _with_objects if changed else None, 6, retake)


def _in_another_season(view: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Pixels of like brightness are one kind of ground, with a colour by chance; an eighth of the old one is left."""
    grey = ndimage.gaussian_filter(view.mean(axis=-1), 1.5)
    kinds = np.digitize(grey, np.quantile(grey, np.linspace(0, 1, 17)[1:-1]))
    return view / 8 + rng.uniform(0, 255, (16, 3))[kinds] * 7 / 8


def board_pairs(count: int, seed: int = 0, changed: bool = True) -> Iterator[PhotoPair]:
    """Drawn circuit boards with faults, or without: thin traces, shifted by up to three pixels."""
    for number in range(count):
        rng = np.random.default_rng([seed, 77, number])
        board = _board(rng)
        faulty, truth = _with_faults(board, rng) if changed else (board, np.zeros(board.shape, bool))
        shift = rng.integers(-3, 4, 2)
        faulty, truth = (np.roll(field, shift, (0, 1)) for field in (faulty, truth))
        dark, bright = rng.uniform(0, 60), rng.uniform(160, 250)
        photos = []
        for field in (board, faulty):
            light = dark + (bright - dark) * ndimage.gaussian_filter(field.astype(np.float32), rng.uniform(0.4, 0.9))
            photos.append(_photographed(np.repeat(light[..., None], 3, 2), rng.uniform(0, 5), rng))
        yield PhotoPair(f"board {number}", *photos, truth)


def photos_of(half: str | None) -> dict[str, np.ndarray]:
    """Return the photos of one half, or all, as far as they are there; 900 pixels at most."""
    names = _HALVES[DEVELOPMENT] + _HALVES[ASIDE] if half is None else _HALVES[half]
    photos = {n: load_sample_image(f"{n}.jpg").astype(np.float32) for n in ("china", "flower") if n in names}
    paths = [path for path in DATA.glob("**/*.*") if path.stem in names]
    return photos | {path.stem: _read(path, 900).astype(np.float32) for path in sorted(paths)}


def photos_in(folder: Path) -> dict[str, np.ndarray]:
    """Return the photos of any folder."""
    kinds = (".png", ".jpg", ".tif")
    return {p.stem: _read(p, 900).astype(np.float32) for p in sorted(folder.iterdir()) if p.suffix in kinds}


def _board(rng: np.random.Generator, side: int = 640) -> np.ndarray:
    """Traces that run straight and at 45 degrees between round pads."""
    image = Image.new("1", (side, side))
    draw = ImageDraw.Draw(image)
    for _ in range(rng.integers(45, 90)):
        width = int(rng.integers(4, 11))
        place, heading = rng.integers(0, side, 2), rng.integers(8)
        draw.ellipse((*(place - width - 3), *(place + width + 3)), fill=1)
        for _ in range(rng.integers(2, 6)):
            angle = heading * np.pi / 4
            end = place + rng.integers(30, 200) * np.round([np.cos(angle), np.sin(angle)])
            draw.line((*place, *end), fill=1, width=width)
            place, heading = end, heading + rng.choice([-1, 1])
        draw.ellipse((*(place - width - 3), *(place + width + 3)), fill=1)
    return np.asarray(image).astype(np.uint8)


def _with_faults(board: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Interrupted traces, bites, holes, spurs, bridges, spilt copper; the truth are boxes around them."""
    faulty, truth = board.copy(), np.zeros(board.shape, bool)
    edge = board ^ ndimage.binary_erosion(board)
    for _ in range(rng.integers(3, 9)):
        while True:
            row, column = rng.permutation(np.argwhere(edge))[0]
            tall, wide = rng.integers(6, 22, 2)
            place = np.s_[
                max(0, row - tall // 2) : row + tall // 2 + 1, max(0, column - wide // 2) : column + wide // 2 + 1
            ]
            value = rng.integers(2)
            if (faulty[place] != value).sum() > 25:
                break
        faulty[place] = value
        truth[
            max(0, row - tall // 2 - 6) : row + tall // 2 + 7, max(0, column - wide // 2 - 6) : column + wide // 2 + 7
        ] = True
    return faulty, truth


def _read(path: Path, longest: int | None = None) -> np.ndarray:
    with Image.open(path) as image:
        photo = image.convert("RGB")
    if longest:
        photo.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return np.asarray(photo)


def _mask(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("L")) > 127


def _crop(photo: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    height, width = _SIZE
    factor = max(height / photo.shape[0], width / photo.shape[1])
    size = (max(width, round(photo.shape[1] * factor)), max(height, round(photo.shape[0] * factor)))
    photo = np.asarray(Image.fromarray(photo.astype(np.uint8)).resize(size, Image.Resampling.LANCZOS), np.float32)
    top, left = rng.integers(size[1] - height + 1), rng.integers(size[0] - width + 1)
    return photo[top : top + height, left : left + width]


def _with_objects(scene: np.ndarray, donors: list[np.ndarray], rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Paste one to three objects; all again until enough of them can be seen."""
    while True:
        view, shape, boxes = _pasted(scene, donors, rng)
        differs = np.abs(view - scene).mean(axis=-1)
        if shape.mean() >= _LEAST_SHARE and differs[shape].mean() >= _VISIBLE:
            return view, boxes if rng.random() < 0.5 else shape


def _pasted(scene: np.ndarray, donors: list[np.ndarray], rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    height, width = scene.shape[:2]
    view, shapes, boxes = scene.copy(), np.zeros((height, width), bool), np.zeros((height, width), bool)
    for _ in range(rng.integers(1, 4)):
        side = np.exp(rng.uniform(np.log(0.05), np.log(0.28))) * min(height, width)
        tall, wide = (max(8, int(side * rng.uniform(0.7, 1.4))) for _ in range(2))
        top, left = rng.integers(0, height - tall), rng.integers(0, width - wide)
        place = np.s_[top : top + tall, left : left + wide]
        if rng.random() < 0.7:
            view *= _cast_shadow((height, width), top + 0.9 * tall, left + wide / 2, tall, wide, rng)[..., None]
        shape = _shape(tall, wide, rng)
        soft = ndimage.gaussian_filter(shape.astype(np.float32), 0.7)[..., None]
        view[place] = soft * _surface(tall, wide, donors, rng) + (1 - soft) * view[place]
        shapes[place] |= shape
        boxes[place] = True
    return np.clip(view, 0, 255), shapes, boxes


def _with_large_objects(
    scene: np.ndarray, donors: list[np.ndarray], rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Paste large objects until they cover the share that was drawn; all again if they can hardly be seen."""
    height, width = scene.shape[:2]
    while True:
        view, shapes, share = scene.copy(), np.zeros((height, width), bool), np.exp(rng.uniform(*np.log([0.02, 0.3])))
        while shapes.mean() < share:
            side = rng.uniform(0.12, 0.5) * height
            tall, wide = (min(height - 2, int(side * rng.uniform(0.7, 1.4))) for _ in range(2))
            top, left = rng.integers(0, height - tall), rng.integers(0, width - wide)
            place, shape = np.s_[top : top + tall, left : left + wide], _shape(tall, wide, rng)
            soft = ndimage.gaussian_filter(shape.astype(np.float32), 0.8)[..., None]
            view[place] = soft * _surface(tall, wide, donors, rng) + (1 - soft) * view[place]
            shapes[place] |= shape
        if np.abs(view - scene).mean(axis=-1)[shapes].mean() >= _VISIBLE and shapes.mean() < 0.35:
            return view, shapes


def _sharply_shaded(view: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    height, width = view.shape[:2]
    shade = Image.new("L", (width, height))
    for _ in range(rng.integers(1, 4)):
        angles, (x, y), reach = np.sort(rng.uniform(0, 2 * np.pi, 5)), rng.uniform(0, 1, 2), rng.uniform(0.25, 0.6)
        corners = [(width * (x + reach * np.cos(a)), height * (y + reach * np.sin(a))) for a in angles]
        ImageDraw.Draw(shade).polygon(corners, fill=255)
    soft = ndimage.gaussian_filter(np.asarray(shade, np.float32) / 255, rng.uniform(0.7, 3))
    return view * (1 - soft[..., None] * (1 - rng.uniform(0.4, 0.75) + rng.normal(0, 0.03, 3)))


def _with_depth(view: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Shift by up to 6 pixels, and each place by a pixel or so of its own."""
    bends = [ndimage.gaussian_filter(rng.standard_normal(truth.shape), rng.uniform(8, 50)) for _ in range(2)]
    bends = [rng.uniform(0.3, 1.8) * bend / bend.std() + rng.uniform(-6, 6) for bend in bends]
    places = np.mgrid[: truth.shape[0], : truth.shape[1]] + np.array(bends)
    channels = [ndimage.map_coordinates(view[..., c], places, order=3, mode="reflect") for c in range(3)]
    return np.stack(channels, -1), ndimage.map_coordinates(truth.astype(np.uint8), places, order=0) > 0


def _shape(tall: int, wide: int, rng: np.random.Generator) -> np.ndarray:
    """Ellipse, rounded box, three-lobed blob or polygon, filling its box."""
    y, x = np.meshgrid(np.linspace(-1, 1, tall), np.linspace(-1, 1, wide), indexing="ij")
    kind = rng.integers(4)
    if kind < 2:
        power = (2, 5)[kind]
        return np.abs(x) ** power + np.abs(y) ** power < 1
    if kind == 2:
        return np.hypot(x, y) < 0.8 + 0.2 * np.sin(3 * np.arctan2(y, x) + rng.uniform(0, 6))
    outline = Image.new("1", (wide, tall))
    angles = np.sort(rng.uniform(0, 2 * np.pi, 6))
    corners = [(wide / 2 * (1 + np.cos(angle)), tall / 2 * (1 + np.sin(angle))) for angle in angles]
    ImageDraw.Draw(outline).polygon(corners, fill=1)
    return np.asarray(outline)


def _surface(tall: int, wide: int, donors: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """A piece of another photo, or one colour with shading."""
    if rng.random() < 0.67:
        donor = donors[rng.integers(len(donors))]
        top, left = (rng.integers(max(1, have - need)) for have, need in zip(donor.shape, (tall, wide), strict=False))
        piece = Image.fromarray(donor[top : top + tall, left : left + wide].astype(np.uint8)).resize((wide, tall))
        return np.asarray(piece, np.float32) * rng.uniform(0.6, 1.2)
    colour = rng.uniform(10, 245, 3) if rng.random() < 0.6 else rng.uniform(10, 245) + rng.normal(0, 8, 3)
    slope = np.linspace(-1, 1, wide)[None, :] * rng.uniform(-0.25, 0.25)
    slope = slope + np.linspace(-1, 1, tall)[:, None] * rng.uniform(-0.25, 0.25)
    return (colour * (1 + slope[..., None])).astype(np.float32)


def _cast_shadow(size, row, column, tall, wide, rng) -> np.ndarray:
    y, x = np.mgrid[: size[0], : size[1]]
    ellipse = ((y - row) / (0.25 * tall)) ** 2 + ((x - column) / (0.6 * wide)) ** 2 < 1
    soft = ndimage.gaussian_filter(ellipse.astype(np.float32), rng.uniform(1.5, 8))
    return 1 - (1 - rng.uniform(0.55, 0.92)) * soft


def _relit(view: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Other exposure, gamma and white balance; often a smooth field of light, often a large soft shadow."""
    height, width = view.shape[:2]
    light = np.clip(view / 255, 1e-4, 1) ** np.exp(rng.normal(0, 0.12))
    light = light * np.exp(rng.normal(0, 0.2) + rng.normal(0, 0.07, 3))
    if rng.random() < 0.6:
        field = ndimage.zoom(rng.normal(0, 1, (3, 3)), (height / 3, width / 3), order=3, mode="nearest", grid_mode=True)
        light = light * np.exp(0.2 * field[:height, :width, None])
    if rng.random() < 0.5:
        shade = Image.new("L", (width, height))
        angles = np.sort(rng.uniform(0, 2 * np.pi, 4))
        corners = [(width * (0.5 + 0.7 * np.cos(a)), height * (0.5 + 0.7 * np.sin(a))) for a in angles]
        ImageDraw.Draw(shade).polygon(corners, fill=255)
        soft = ndimage.gaussian_filter(np.asarray(shade, np.float32) / 255, rng.uniform(2, 25))
        light = light * (1 - soft[..., None] * (1 - rng.uniform(0.6, 0.9) + rng.normal(0, 0.02, 3)))
    return light * 255


def _moved(view: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Shift by up to 3 pixels and turn a little; the truth moves along."""
    turn, shift = np.deg2rad(rng.normal(0, 0.12)), rng.uniform(-3, 3, 2)
    linear = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    centre = np.array(truth.shape) / 2
    offset = centre - linear @ centre + shift
    channels = [ndimage.affine_transform(view[..., c], linear, offset, order=3, mode="reflect") for c in range(3)]
    return np.stack(channels, -1), ndimage.affine_transform(truth.astype(np.uint8), linear, offset, order=0) > 0


def _held_in_hand(
    view: np.ndarray, truth: np.ndarray, rng: np.random.Generator, far: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Seen from slightly elsewhere: shift, turn, size, perspective, and a little lens distortion."""
    height, width = truth.shape
    y, x = np.mgrid[:height, :width].astype(np.float64)
    u, v = (x - width / 2) / width, (y - height / 2) / width
    bulge = 1 + far * rng.normal(0, 0.004) * (u * u + v * v)
    u, v = u * bulge, v * bulge
    turn, size = rng.normal(0, 0.012), np.exp(far * rng.normal(0, 0.008))
    (p, q), (right, down) = far * rng.normal(0, 0.01, 2), rng.normal(0, 0.01, 2)
    depth = 1 + p * u + q * v
    u, v = size * (u - turn * v) / depth + right, size * (v + turn * u) / depth + down
    places = np.array([v * width + height / 2, u * width + width / 2])
    channels = [ndimage.map_coordinates(view[..., c], places, order=3, mode="reflect") for c in range(3)]
    return np.stack(channels, -1), ndimage.map_coordinates(truth.astype(np.uint8), places, order=0) > 0


def _photographed(view: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Blur sometimes, sensor noise, eight bits, JPEG."""
    if rng.random() < 0.5:
        sigma = rng.uniform(0.3, 1.1)
        view = ndimage.gaussian_filter(view, (sigma, sigma, 0))
    view = view + noise * rng.standard_normal(view.shape) * np.sqrt(np.clip(view, 10, 255) / 128)
    buffer = BytesIO()
    image = Image.fromarray(np.clip(np.round(view), 0, 255).astype(np.uint8))
    image.save(buffer, "JPEG", quality=int(rng.integers(55, 97)))
    return np.asarray(Image.open(buffer))
