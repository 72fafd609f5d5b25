"""Draw the pictures of docs/photos.md.

python docs/make_photo_figures.py
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from inlier.datasets import make_scenes
from inlier.images import detect_changes
from inlier.images.pictures import overlay_png

HERE = Path(__file__).parent
_WIDTH, _GAP, _CAPTION = 640, 12, 34


def an_hour_later(photo: np.ndarray, seed: int = 0) -> np.ndarray:
    """The photo in other light, from two pixels further to the right and one down, with noise; as in the example."""
    moved = np.roll(photo, (-1, -2), axis=(0, 1)).astype(float)
    to_one_side = np.exp(np.linspace(0.15, -0.35, photo.shape[1]))[None, :, None]
    light = 255 * (moved / 255) ** 1.15 * np.array([0.9, 0.78, 0.62]) * to_one_side
    noise = 4 * np.random.default_rng(seed).standard_normal(photo.shape)
    return np.clip(np.round(light + noise), 0, 255).astype(np.uint8)


def panels(pictures: list[tuple[str, np.ndarray]], columns: int) -> Image.Image:
    """Pictures in a grid, each under its caption."""
    height = round(_WIDTH * pictures[0][1].shape[0] / pictures[0][1].shape[1])
    rows = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (columns * (_WIDTH + _GAP) - _GAP, rows * (height + _CAPTION + _GAP) - _GAP), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(20)
    for place, (caption, picture) in enumerate(pictures):
        left, top = place % columns * (_WIDTH + _GAP), place // columns * (height + _CAPTION + _GAP)
        draw.text((left, top + 5), caption, fill="black", font=font)
        sheet.paste(Image.fromarray(picture).resize((_WIDTH, height)), (left, top + _CAPTION))
    return sheet


def main() -> None:
    """Compare the example's photos by the paper's row sums and by the default."""
    scenes = make_scenes()
    before, after = scenes.photos[0], an_hour_later(scenes.photos[2])
    of_the_paper = detect_changes(before, after, method="row-sum", align=False)
    painted = after.copy()
    painted[of_the_paper.mask] = (255, 255, 0)
    changes = detect_changes(before, after)
    overlay = np.asarray(Image.open(BytesIO(overlay_png(changes))))
    sheet = panels(
        [
            ("before", before),
            ("after: other light, moved, noise, two objects", after),
            ("--method row-sum, as in the paper: yellow", painted),
            ("inlier diff", overlay),
        ],
        columns=2,
    )
    sheet.save(HERE / "images" / "photos.jpg", quality=86)
    print(f"row sum: {of_the_paper.changed_share:.1%} of the pixels; default: {changes.sentence}")


if __name__ == "__main__":
    main()
