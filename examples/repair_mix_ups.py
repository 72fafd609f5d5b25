"""
Who belongs to whom?
====================

Four hundred samples were measured twice, genes and proteins. Two were swapped, and three moved round in a circle. The
matcher finds the wrong rows; a repair names their partners, with an error rate for the names.
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier import CalibratedMatcher
from inlier.plotting import plot_repair, plot_scores

rng = np.random.default_rng(0)
states = rng.normal(size=(400, 8))
genes, proteins = (states @ rng.normal(size=(8, d)) + rng.normal(size=(400, d)) for d in (40, 25))
order = np.arange(400)
order[[10, 11]], order[[50, 60, 70]] = order[[11, 10]], order[[60, 70, 50]]
mixed = proteins[order]  # row i is the protein sample that was filed under i

matcher = CalibratedMatcher(random_state=0).fit(genes, mixed)
print(matcher.result_)

# %%
# Rows that were not accepted are tried with each other's partners. Who stands out gets a name; of the others the
# likeliest partners are told, with their chances: what is left to one is "none of these".

repair = matcher.repair()
print(repair.answer)
for row in np.flatnonzero(repair.kind != "kept"):
    candidates = zip(repair.candidates[row], repair.chances[row], strict=True)
    likeliest = ", ".join(f"{other} ({chance:.2f})" for other, chance in candidates if other >= 0)
    own = f"its own partner ranks {repair.own_rank[row]} of 400"
    print(f"row {row}: {repair.kind[row]}; {own}; likeliest: {likeliest or 'nobody'}")

# %%
# In the right order, and the truth for comparison.

fixed = repair.apply(mixed)
print(f"rows that are right now: {np.all(fixed == proteins, axis=1).sum()} of 400")

figure, (scores, arrows) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
plot_scores(matcher, ax=scores)
plot_repair(repair, ax=arrows)
plt.show()
