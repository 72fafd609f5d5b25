"""
Find the mispaired points of a brain
====================================

Twelve thousand points of a brain surface were paired with a rotated copy of themselves, and a fifth of them with
the wrong partner. Six numbers describe a point: where it is, how thick and how curved the cortex, how much myelin.
Nobody tells the matcher the rotation, or how many pairs are wrong.
"""

import matplotlib.pyplot as plt

from inlier import CalibratedMatcher
from inlier.datasets import load_brain, make_mispaired
from inlier.plotting import plot_points, plot_scores

data = make_mispaired(load_brain().features, n=12_000, inlier_fraction=0.8, rng=0)
matcher = CalibratedMatcher(alpha=0.01, random_state=0).fit(data.X, data.Y)
print(matcher.result_)
print(f"real pairs: about {matcher.inlier_fraction_:.0%} of all, at least {matcher.inlier_fraction_at_least_:.0%}")
print(f"{matcher.certain_mask_.sum():,} are certain: no other point would fit")

# %%
# Left the points that are called wrong, seen from the side; right the scores. Re-pairings of the same data say how
# high a wrong pair scores, and from them follows where to cut: at most 1 % of what lies above is wrong.

figure, (surface, scores) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
plot_points(data.X[:, [1, 2]], ~matcher.inlier_mask_, "paired with the wrong point", surface)
plot_scores(matcher.result_, data.inlier_mask, scores)
scores.set_yscale("symlog", linthresh=100)
misjudged = int((matcher.inlier_mask_ != data.inlier_mask).sum())
scores.set_title(f"{misjudged} of {len(data.X):,} pairs misjudged")
plt.show()
