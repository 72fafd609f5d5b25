"""
Two embedding spaces and a dirty dictionary
===========================================

Two models gave vectors to the words of two languages. A dictionary of 2,000 entries says which words mean the same,
and 85 % of them are wrong. The map between the spaces is wanted, and the wrong entries.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import ortho_group

from inlier import CalibratedMatcher, estimate_transformation
from inlier.plotting import QUIET, REAL, WRONG

rng = np.random.default_rng(0)
spread = np.linspace(1, 0.3, 50)  # some directions carry more than others
meaning = spread * (0.8 * rng.normal(size=(40, 50))[rng.integers(40, size=5000)] + rng.normal(size=(5000, 50)))
words, other = (meaning + 0.7 * spread * rng.normal(size=meaning.shape) for _ in range(2))  # as each model sees them
other = other @ ortho_group.rvs(50, random_state=0)
entry = np.arange(2000)  # the first 2,000 words are in the dictionary
wrong = rng.permutation(2000)[:1700]
entry[wrong] = np.roll(entry[wrong], 1)
X, Y = words[:2000], other[entry]

# %%
# Entries that are real are known with their q-values; the map is fitted to those.

matcher = CalibratedMatcher(random_state=0).fit(X, Y)
accepted, right = matcher.inlier_mask_, entry == np.arange(2000)
print(
    f"{accepted.sum()} entries accepted, {(accepted & ~right).sum()} of them wrong; {(right & ~accepted).sum()} missed."
)


def accuracy(rows):
    """Share of the words outside the dictionary whose nearest neighbour, once mapped, is their translation."""
    mapped, target = estimate_transformation("orthogonal", X[rows], Y[rows])(words[2000:]), other[2000:]
    squared = (target**2).sum(axis=1) - 2 * mapped @ target.T
    return float((squared.argmin(axis=1) == np.arange(3000)).mean())


fits = {"all entries": accuracy(right | ~right), "accepted": accuracy(accepted), "right ones": accuracy(right)}

# %%
# The map from accepted entries translates new words as well as one from a clean dictionary would.

figure, (bars, scores) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
drawn = bars.barh(list(fits), list(fits.values()), color=[WRONG, REAL, QUIET])
bars.bar_label(drawn, fmt="{:.1%}", padding=4)
bars.set(title="new words translated right, the map fitted to ...", xlim=(0, 1.15))
bars.invert_yaxis()
scores.hist([matcher.scores_[right], matcher.scores_[~right]], 60, color=[REAL, WRONG], stacked=True)
scores.legend(["right entries", "wrong entries"], frameon=False)
scores.axvline(matcher.threshold_, color="black", linestyle="--", linewidth=1)
scores.set(xlabel="score", ylabel="entries")
plt.show()
