"""
Register two scans from bad matches
===================================

A surface was scanned from two sides. Two thousand supposed matches join the scans, and 85 % of them are wrong. How
did the scanner move? No noise bound is given, and no number of trials.
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier import Registration, SimilarityTransformation
from inlier.datasets import make_scans
from inlier.plotting import plot_alignment

scans = make_scans(inlier_fraction=0.15, rng=0)
X, y = scans.source[scans.pairs[:, 0]], scans.target[scans.pairs[:, 1]]
registration = Registration("rigid", random_state=0).fit(X, y)
move = registration.transformation_
print(f"The scanner {move.describe()}.")
print(f"{registration.inlier_mask_.sum()} of {len(X):,} matches agree, up to {registration.noise_bound_:.2f} mm.")

# %%
# How far from the truth? And how far do the standard errors say it may be?

truth = SimilarityTransformation(scans.rotation, scans.translation, model="rigid")
print(f"the turn is off by {np.degrees(np.linalg.norm(move.rotation - scans.rotation) / 2**0.5):.3f} degrees")
print(f"the shift by {np.linalg.norm(move.translation - scans.translation):.3f} mm")
error = registration.uncertainty_
print(f"standard errors: {error.rotation.round(3)} degrees, {error.translation.round(3)} mm")
print(f"the true motion lies in the joint 95 % region: {error.covers(truth)}")

# %%
# Both scans before and after, from the direction in which they are widest. Joined in blue is what was accepted.

figure, (before, after) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
plot_alignment(X, y, inlier_mask=registration.inlier_mask_, ax=before)
before.set_title("2,000 supposed matches; blue: those that agree")
plot_alignment(scans.source, scans.target, move, ax=after)
after.set_title("the scans, registered")
plt.show()
