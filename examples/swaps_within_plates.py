"""
Swaps within a plate: say where wrong partners come from
========================================================

Samples of one plate resemble each other. A tube that was swapped with its neighbour fits far better than a stranger
would, so that it is accepted; but nobody is called certain, since the rest of the plate would fit as well. Told which
plate each sample is from, the matcher compares inside of it.
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier import CalibratedMatcher
from inlier.plotting import REAL, WRONG

rng = np.random.default_rng(0)
plate = np.repeat(np.arange(20), 48)
X = 5 * rng.normal(size=(20, 10))[plate] + rng.normal(size=(960, 10))
Y = X[:, ::-1] + 0.3 * rng.normal(size=(960, 10))
swapped = np.arange(960) % 48 < 10  # the first ten tubes of each plate, moved on by one
partner = np.arange(960)
partner[swapped] = np.roll(partner[swapped].reshape(20, 10), 1, axis=1).ravel()
Y = Y[partner]

# %%
# Accepted means: better than a stranger. Certain means: this one and no other. How many others would fit is counted.

alone = CalibratedMatcher(random_state=0).fit(X, Y)
told = CalibratedMatcher(random_state=0).fit(X, Y, strata=plate)
for name, matcher in (("without plates", alone), ("with plates", told)):
    wrong, real = (int(matcher.inlier_mask_[mask].sum()) for mask in (swapped, ~swapped))
    print(
        f"{name}: {real} of 760 real pairs accepted, {wrong} of 200 swapped ones; {matcher.certain_mask_.sum()} are "
        f"certain; others that would fit a row: {np.median(matcher.n_rivals_):.0f}"
    )

# %%
# A field for each sample, a row of fields for each plate: blue was accepted. The first ten of each were swapped.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
for ax, name, matcher in zip(axes, ("what plates are is not known", "strata=plate"), (alone, told), strict=True):
    colours = np.where(matcher.inlier_mask_, REAL, WRONG).reshape(20, 48)
    ax.scatter(*np.meshgrid(np.arange(48), np.arange(20)), c=colours.ravel(), s=22, marker="s")
    ax.axvline(9.5, color="black", linestyle="--", linewidth=1)
    ax.set(title=name, xlabel="tube", yticks=range(0, 20, 5))
axes[0].set_ylabel("plate")
plt.show()
