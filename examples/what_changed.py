"""What has changed between two photos of one scene, in other light?

Two photos are made from scikit-learn's china.jpg: the scene, and the scene with a yellow box and an orange cushion, an
hour later: dimmer, warmer, darker to one side, the camera moved by two pixels, and noise in both.

python examples/what_changed.py --out FOLDER        writes before.png, after.png, overlay.png and mask.png
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from _picture import folder_for_pictures
from inlier.datasets import make_scenes
from inlier.images import detect_changes
from inlier.images.pictures import mask_png, overlay_png


def an_hour_later(photo: np.ndarray, seed: int = 0) -> np.ndarray:
    """The photo in other light, from two pixels further to the right and one down, with noise."""
    moved = np.roll(photo, (-1, -2), axis=(0, 1)).astype(float)
    to_one_side = np.exp(np.linspace(0.15, -0.35, photo.shape[1]))[None, :, None]
    light = 255 * (moved / 255) ** 1.15 * np.array([0.9, 0.78, 0.62]) * to_one_side
    noise = 4 * np.random.default_rng(seed).standard_normal(photo.shape)
    return np.clip(np.round(light + noise), 0, 255).astype(np.uint8)


def main(folder: Path | None) -> None:
    """Make the photos, compare them, say what has changed, and if asked write the pictures."""
    scenes = make_scenes()
    before, after = scenes.photos[0], an_hour_later(scenes.photos[2])
    changes = detect_changes(before, after)

    print(changes.sentence)
    print(f"The camera moved by {changes.alignment.shift(*changes.mask.shape):.1f} pixels.")
    for region in changes.regions:
        column, row = (region.left + region.right) // 2, (region.top + region.bottom) // 2
        chance = max(region.p_value or 0, 1e-6)
        print(f"  {region.area:,} pixels around column {column}, row {row}; by noise alone: under {chance:.0e}")

    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(before).save(folder / "before.png")
        Image.fromarray(after).save(folder / "after.png")
        (folder / "overlay.png").write_bytes(overlay_png(changes))
        (folder / "mask.png").write_bytes(mask_png(changes))
        print(f"The pictures are in {folder}.")


if __name__ == "__main__":
    main(folder_for_pictures(__doc__.splitlines()[0]))
