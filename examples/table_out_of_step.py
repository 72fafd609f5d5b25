"""
My table is out of step: one slip for many rows
===============================================

Two lines of the second table are missing, and one block was pasted in backwards: more than half of the rows stand
beside a wrong one. They are not that many mistakes, but three, and once these are undone all rows are in their place.
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier import CalibratedMatcher
from inlier.plotting import REAL, WRONG

rng = np.random.default_rng(0)
hidden = rng.normal(size=(600, 6))
X = hidden @ rng.normal(size=(6, 20)) + 0.5 * rng.normal(size=(600, 20))
Y = hidden @ rng.normal(size=(6, 12)) + 0.5 * rng.normal(size=(600, 12))

truth = np.delete(np.arange(600), [150, 400])  # two lines are missing
truth[500:580] = truth[500:580][::-1]  # and further down a block is the wrong way round
rest = np.full(2, -1)
y = np.vstack([Y[truth], rng.normal(size=(2, 12))])  # somebody else's lines at the end
truth = np.append(truth, rest)

# %%
# Row by row a quarter is right. That teaches what belongs together; then slips are looked for.

matcher = CalibratedMatcher(random_state=0).fit(X, y)
repaired = matcher.repair()
for slip in repaired.slips:
    print(slip.text())
fixed = repaired.apply(y)
home = np.full(600, -1)
home[truth[truth >= 0]] = np.flatnonzero(truth >= 0)
has = home >= 0
right_before, right_after = (np.mean(rows[has] == home[has]) for rows in (np.arange(600), repaired.partner))
print(f"in their place: {right_before:.1%} of the rows before, {right_after:.1%} after")

# %%
# How far down in the second table the partner of each row stands: zero, where it is beside it.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, name in zip(axes, ("the whole", "lines that are missing"), strict=True):
    ax.axhline(0, color=WRONG, linestyle="--", linewidth=1, label="beside each other now")
    ax.plot(np.flatnonzero(has), (repaired.partner - np.arange(600))[has], ".", color=REAL, ms=3, label="together")
    ax.set(title=name, xlabel="row of X", ylabel="rows further down in y")
axes[1].set_ylim(-4, 2)
axes[0].legend()
plt.show()
