"""
Scores of your own
==================

You have a score of your own for each pair, and can score pairs that are wrong for sure: that is all it takes for
p-values, q-values and the share of real pairs. Here handwritten digits: do the upper and the lower half belong to
one image? The score is how well a classifier of upper halves and one of lower halves agree.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from inlier.calibration import calibrate
from inlier.plotting import QUIET, REAL, WRONG

images, digit = load_digits(return_X_y=True)
upper, lower = images[:, :32] / 16, images[:, 32:] / 16
rng = np.random.default_rng(0)
learn, test = np.split(rng.permutation(len(digit)), [900])
classifier = LogisticRegression(max_iter=2000)
beliefs = [classifier.fit(half[learn], digit[learn]).predict_proba(half[test]) for half in (upper, lower)]

partner = np.arange(test.size)
wrong = rng.random(test.size) < 0.4  # four in ten lower halves are of another image
partner[wrong] = rng.permutation(partner[wrong])
scores = np.log((beliefs[0] * beliefs[1][partner]).sum(axis=1))
null = np.log((beliefs[0] * beliefs[1][rng.permutation(test.size)]).sum(axis=1))

# %%
# A wrong half may show the same digit by chance, so hardly any pair is sure to one in a hundred; the share is known
# all the same.

found = calibrate(scores, null)
likely = found.q_values < 0.5
print(f"share of real pairs: {found.inlier_fraction:.2f} +- {found.inlier_fraction_error:.2f}")
print(f"in truth: {1 - wrong.mean():.2f}")
print(f"more likely real than wrong: {likely.sum()}; of those wrong: {wrong[likely].sum()}")

# %%
figure = plt.figure(figsize=(10, 3.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 1.2])
for ax, k in zip(left.subplots(3, 5).ravel(), np.argsort(scores)[:15], strict=True):
    ax.imshow(np.vstack([upper[test[k]].reshape(4, 8), lower[test[partner[k]]].reshape(4, 8)]), cmap="Greys")
    ax.axis("off")
left.suptitle("the worst pairs")
ax = right.subplots()
ax.hist([scores[~wrong], scores[wrong]], 50, stacked=True, color=[REAL, WRONG], label=["real", "wrong"])
ax.hist(null, 50, histtype="step", color=QUIET, linewidth=2, label="re-paired")
ax.set(xlabel="score", ylabel="pairs")
ax.legend(frameon=False)
plt.show()
