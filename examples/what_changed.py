"""
What has changed between two photos?
====================================

A scene, and the same an hour later: dimmer, warmer, darker to one side, the camera moved by two pixels, noise in
both. And two things that were not there before.
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier.datasets import make_scenes
from inlier.images import detect_changes

rng = np.random.default_rng(0)
before, _, later = make_scenes().photos
moved = np.roll(later, (-1, -2), axis=(0, 1)) / 255
dimmer = 255 * moved**1.15 * [0.9, 0.78, 0.62] * np.exp(np.linspace(0.15, -0.35, later.shape[1]))[:, None]
after = np.clip(dimmer + 4 * rng.normal(size=later.shape), 0, 255).astype(np.uint8)

# %%
# Each region comes with a q-value: how likely it is that light, noise or the camera did it.

changes = detect_changes(before, after)
print(changes.sentence)
for region in changes.regions:
    print(f"{region.area:,} pixels from column {region.left} to {region.right}, row {region.top} to {region.bottom}")

# %%
figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
for ax, photo, name in zip(axes, (before, after, after), ("before", "an hour later", "what is new"), strict=True):
    ax.imshow(photo)
    ax.set_title(name)
    ax.axis("off")
axes[2].imshow(np.where(changes.mask[..., None], [255, 60, 0, 110], 0).astype(np.uint8))
axes[2].contour(changes.mask, [0.5], colors="#D55E00", linewidths=1.5)
plt.show()
