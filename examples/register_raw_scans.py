"""
Two raw scans, nothing else
===========================

No matches are given: two clouds of points that overlap in part, in unknown position. Nothing is to be set, no voxel
size and no radius, and the unit does not matter. (The scans are made from a brain surface that comes with the package.)
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier import CloudRegistration
from inlier.datasets import make_scans
from inlier.plotting import plot_alignment

scans = make_scans(rng=0)
source, target = scans.source, scans.target
registration = CloudRegistration(random_state=0).fit(source, target)
move = registration.transformation_
print(f"The scanner {move.describe()}.")
print(f"chance that clouds of different places agree as well: {registration.detection_p_value_:.1e}")
print(f"the turn is off by {np.degrees(np.linalg.norm(move.rotation - scans.rotation) / 2**0.5):.3f} degrees")

# %%
# The same clouds in metres, far from the origin:

far = CloudRegistration(random_state=0).fit(source / 1000 + 5e6, target / 1000)
print(f"turned by {far.transformation_.angle:.3f} degrees, as before ({move.angle:.3f})")

# %%
# One of them without a unit, as a model made of photos is: the scale is looked for as well.

scaled = CloudRegistration(random_state=0, model="similarity").fit(0.37 * source, target).transformation_
print(f"scale {scaled.scale:.3f}, to be {1 / 0.37:.3f}")

# %%
# Two clouds that have nothing to do with each other. Others would return some motion; here the answer is no.

ball = np.random.default_rng(0).normal(size=(8000, 3))
ball *= 60 / np.linalg.norm(ball, axis=1, keepdims=True)
nothing = CloudRegistration(random_state=0, raise_on_failure=False).fit(ball, target)
print(f"a ball on a brain: sure? {nothing.success_}")

figure, (before, after) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
plot_alignment(source, target, ax=before)
before.set_title("two scans")
plot_alignment(source, target, move, ax=after)
after.set_title("registered")
plt.show()
