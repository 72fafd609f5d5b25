"""
Two photos of the night sky
===========================

The same stars in two photos: turned, zoomed, moved. Brightness alone said which star is which, and was wrong nine
times in ten. A similarity carries one photo onto the other; stars that only one of them shows have no partner.
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier import Registration
from inlier.plotting import QUIET, REAL

rng = np.random.default_rng(3)
big_dipper = np.array([[0, 0], [1.6, 0.35], [2.6, -0.1], [3.7, -0.6], [4.0, -1.8], [6.0, -1.9], [6.2, -0.4]])
first = np.vstack([big_dipper, rng.uniform([-3, -6], [9, 4], size=(393, 2))])
size = np.concatenate([np.full(7, 60.0), 2 + 14 * rng.pareto(3, 393)])

turn = np.deg2rad(40)
R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
second = 0.6 * first @ R.T + [8.0, 2.0] + 0.01 * rng.normal(size=first.shape)
wrong = rng.permutation(np.arange(7, 400))[:353]
second[wrong] = rng.uniform(second.min(axis=0), second.max(axis=0), size=(353, 2))

# %%
# 47 of 400 matches are right. The model says what may differ between the photos.

registration = Registration("similarity", random_state=0).fit(first, second)
agree = registration.inlier_mask_
print(f"The second photo {registration.transformation_.describe()}.")
print(f"{agree.sum()} matches agree; {np.isin(np.flatnonzero(agree), wrong).sum()} of them are wrong.")

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", facecolor="#0b1020")
for ax, stars, name in zip(axes, (first, second), ("first photo", "second photo"), strict=True):
    ax.scatter(*stars.T, s=size, color="white", alpha=0.85, linewidths=0)
    ax.scatter(*stars[agree].T, s=90, facecolors="none", edgecolors=REAL, linewidths=1.4)
    ax.plot(*stars[:7].T, color=QUIET, linewidth=1)
    ax.set_title(name + ": rings are matches that agree", color="white")
    ax.set_aspect("equal")
    ax.axis("off")
plt.show()
