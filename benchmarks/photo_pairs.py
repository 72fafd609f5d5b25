"""Pairs of photos with known changes: real ones kept beside the project, and made ones.

Made pairs take a photo, paste objects into it (crops of other photos, or drawn in one colour, with a cast shadow that
is not part of the truth), change the light (exposure, gamma, white balance, a smooth field, a soft shadow), move and
blur the camera, add noise, and compress. The truth is the object's shape, or its box.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from scipy import ndimage
from sklearn.datasets import load_sample_image

DATA = Path(__file__).parents[2] / "shared" / "data"
_SIZE = (400, 560)


@dataclass(frozen=True, eq=False)
class PhotoPair:
    """Two photos and where they differ."""

    name: str
    before: np.ndarray
    after: np.ndarray
    truth: np.ndarray


def real_pairs() -> list[PhotoPair]:
    """Return the pairs of ``../shared/data/change`` with their masks; empty where that is absent."""
    composite, rooms = DATA / "change" / "composite", DATA / "change" / "rooms"
    if not composite.is_dir():
        return []
    original = _read(composite / "0_original.png")
    bowl, both = _mask(composite / "1_bowl_mask.png"), _mask(composite / "2_bowl_cup_mask.png")
    pairs = [
        PhotoPair("composite: bowl", original, _read(composite / "1_bowl.png"), bowl),
        PhotoPair("composite: bowl, cup", original, _read(composite / "2_bowl_cup.png"), both),
        PhotoPair("composite: bowl, cup, light", original, _read(composite / "3_bowl_cup_light.png"), both),
    ]
    reference = _read(rooms / "cuisine_reference.jpg")
    for mask in sorted(rooms.glob("*_mask.png")):
        photo = _read(mask.with_name(mask.name.replace("_mask.png", "_B.jpg")))
        pairs.append(PhotoPair(f"rooms: {mask.name[8:12]}", reference, photo, _mask(mask)))
    return pairs


def real_light_pairs(count: int, seed: int = 1) -> Iterator[PhotoPair]:
    """Objects pasted into photos of one real scene in really other light; none where the photos are absent."""
    rooms = DATA / "change" / "rooms"
    if not rooms.is_dir():
        return
    photos = [_read(rooms / f"cuisine_{name}_B.jpg", longest=700) for name in (6563, 6564, 6565)]
    donors = list(_scenes().values())
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        first, second = rng.permutation(3)[:2]
        changed, truth = _with_objects(photos[second].astype(np.float32), donors, rng)
        noise = rng.uniform(0, 4)
        before = _photographed(photos[first].astype(np.float32), noise, rng)
        yield PhotoPair(f"real light {number}", before, _photographed(changed, noise, rng), truth)


def made_pairs(count: int, seed: int = 0, changed: bool = True, relit: bool = True) -> Iterator[PhotoPair]:
    """Made pairs; without objects or without other light on request."""
    scenes = _scenes()
    names = list(scenes)
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        name = names[number % len(names)]
        scene = _crop(scenes[name], rng)
        donors = [photo for other, photo in scenes.items() if other != name]
        view, truth = _with_objects(scene, donors, rng) if changed else (scene, np.zeros(_SIZE, bool))
        noise = rng.uniform(1, 7)
        before = _photographed(scene, noise, rng)
        after = _relit(view, rng) if relit else view
        if rng.random() < 0.6:
            after, truth = _moved(after, truth, rng)
        yield PhotoPair(f"{name} {number}", before, _photographed(after, noise, rng), truth)


def _read(path: Path, longest: int | None = None) -> np.ndarray:
    with Image.open(path) as image:
        photo = image.convert("RGB")
    if longest:
        photo.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return np.asarray(photo)


def _mask(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("L")) > 127


def _scenes() -> dict[str, np.ndarray]:
    scenes = {name: load_sample_image(f"{name}.jpg").astype(np.float32) for name in ("china", "flower")}
    paths = [*sorted((DATA / "sky").glob("*.jpg")), DATA / "change/rooms/cuisine_reference.jpg"]
    paths.append(DATA / "change/composite/0_original.png")
    return scenes | {path.stem[:12]: _read(path, 900).astype(np.float32) for path in paths if path.is_file()}


def _crop(photo: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    height, width = _SIZE
    factor = max(height / photo.shape[0], width / photo.shape[1])
    size = (max(width, round(photo.shape[1] * factor)), max(height, round(photo.shape[0] * factor)))
    photo = np.asarray(Image.fromarray(photo.astype(np.uint8)).resize(size, Image.Resampling.LANCZOS), np.float32)
    top, left = rng.integers(size[1] - height + 1), rng.integers(size[0] - width + 1)
    return photo[top : top + height, left : left + width]


def _with_objects(scene: np.ndarray, donors: list[np.ndarray], rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    height, width = scene.shape[:2]
    view, truth, as_boxes = scene.copy(), np.zeros((height, width), bool), rng.random() < 0.5
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
        truth[place] |= True if as_boxes else shape
    return np.clip(view, 0, 255), truth


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
