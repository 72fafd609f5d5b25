"""
Two things that move
====================

A camera moves, and so does everything it sees; a letter in front moves in its own way, and a third of the matches
are nonsense. The first fit finds the larger group; a second one, on what is left, the other; a third finds nothing,
and says so.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from inlier import NoConsensusError, Registration
from inlier.plotting import QUIET, REAL, WRONG

rng = np.random.default_rng(0)


def turned(points, degrees, shift):
    """Points after a turn about the origin, a shift, and a little noise."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    return points @ np.array([[c, s], [-s, c]]) + shift + 0.02 * rng.normal(size=points.shape)


background, nonsense = rng.uniform([0, 0], [12, 8], size=(600, 2)), rng.uniform([0, 0], [12, 8], size=(400, 2))
letter = Path(TextPath((3.5, 0.8), "A", size=9).to_polygons()[0])
front = rng.uniform([0, 0], [12, 8], size=(4000, 2))
front = front[letter.contains_points(front)][:300]
X = np.vstack([background, front, nonsense])
Y = np.vstack(
    [turned(background, 12, [1, -1]), turned(front, -35, [-1, 7]), rng.permutation(turned(nonsense, 12, [1, -1]))]
)

# %%
rest, found = np.arange(len(X)), []
try:
    while True:
        registration = Registration("rigid", random_state=0).fit(X[rest], Y[rest])
        found.append(rest[registration.inlier_mask_])
        print(f"{found[-1].size} matches: {registration.transformation_.describe()}")
        rest = rest[~registration.inlier_mask_]
except NoConsensusError as error:
    print(str(error)[:100], "...")

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, points, name in zip(axes, (X, Y), ("before", "after"), strict=True):
    ax.scatter(*points.T, s=5, color=QUIET, label="neither")
    for rows, colour, label in zip(found, (REAL, WRONG), ("first motion", "second motion"), strict=True):
        ax.scatter(*points[rows].T, s=7, color=colour, label=label)
    ax.set(title=name, aspect="equal", xticks=[], yticks=[])
axes[1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), markerscale=3)
plt.show()
