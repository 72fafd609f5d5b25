"""
Samples that were swapped in the lab
====================================

The same 300 samples were measured by two assays, say gene expression and proteins. The two tables have other
columns, but both follow the same few biological programmes. Somewhere tubes were mixed up: three pairs and one
triple of samples.
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier import CalibratedMatcher
from inlier.plotting import REAL, WRONG

rng = np.random.default_rng(0)
programmes = rng.normal(size=(300, 8))
genes = programmes @ rng.normal(size=(8, 60)) + 2 * rng.normal(size=(300, 60))
proteins = programmes @ rng.normal(size=(8, 35)) + 2 * rng.normal(size=(300, 35))

owner = np.arange(300)  # whose proteins stand in each row
for tubes in np.split(rng.permutation(300)[:9], [2, 4, 6]):
    owner[tubes] = np.roll(tubes, 1)
proteins = proteins[owner]

# %%
# A pair with a q-value above one half scores as wrong pairs do. Where real ones stand apart, it is more likely wrong.

matcher = CalibratedMatcher(random_state=0).fit(genes, proteins)
suspects = np.flatnonzero(matcher.q_values_ > 0.5)
swapped = owner != np.arange(300)
print(f"{suspects.size} samples seem not to go together; {swapped[suspects].sum()} of the 9 swapped ones among them.")

# %%
# One point a sample. What was swapped lies far below all others, and is named.

figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
ax.scatter(np.flatnonzero(~swapped), matcher.scores_[~swapped], s=12, color=REAL, label="in its place")
ax.scatter(np.flatnonzero(swapped), matcher.scores_[swapped], s=28, color=WRONG, label="swapped in truth")
for sample in suspects:
    ax.annotate(f"S{sample:03d}", (sample, matcher.scores_[sample]), xytext=(5, -3), textcoords="offset points")
ax.axhline(0, color="grey", linewidth=0.8)
ax.set(xlabel="sample", ylabel="score: do the rows go together?")
ax.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, 1.14))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
