"""
Squares that changed places in a photo
======================================

An experiment of the paper: thirty squares of a photo changed places, and there is noise. Every pixel is a pair, its
colour before and after. Row sums of the overlap tell which pixels moved; in linear time that is all 273,280 of them
at once.
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier import RowSumMatcher
from inlier.datasets import load_sky, permuted_squares, random_cycle
from inlier.metrics import error_rates

rng = np.random.default_rng(0)
photo = load_sky()
height, width, _ = photo.shape
source, unmoved = permuted_squares(height, width).rearrange(random_cycle(30, rng))
before = photo.reshape(-1, 3) / 255
after = np.clip(before[source] + 0.05 * rng.normal(size=before.shape), 0, 1)

# %%
# Two colours of the same direction look alike to it: where sky took the place of sky, nothing can be seen, by
# anyone.

matcher = RowSumMatcher().fit(before, after)
errors = error_rates(unmoved, matcher.inlier_mask_)
print(f"{1 - unmoved.mean():.1%} of {len(before):,} pixels moved; {errors.overall:.1%} of all were misjudged.")

# %%
figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
pictures = (after.reshape(photo.shape), unmoved.reshape(height, width), matcher.inlier_mask_.reshape(height, width))
for ax, picture, name in zip(axes, pictures, ("after", "what moved", "what is called moved"), strict=True):
    ax.imshow(picture, cmap="gray")
    ax.set_title(name)
    ax.axis("off")
plt.show()
