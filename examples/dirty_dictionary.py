"""
A dirty dictionary, a map, new translations
===========================================

Six hundred words of two languages, as vectors; a dictionary of 300 of them, in which seven entries in ten are wrong.
The words that no entry names help to learn. What comes out is a clean dictionary, a map, and entries that were not
there.
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier import CalibratedMatcher
from inlier.plotting import plot_map, plot_scores

rng = np.random.default_rng(0)
words = rng.normal(size=(600, 20)) * np.linspace(1, 0.2, 20)
abroad = words @ np.linalg.qr(rng.normal(size=(20, 20)))[0] + 0.3 * rng.normal(size=words.shape)
entry = np.arange(300)
entry[:210] = np.roll(entry[:210], 1)  # the first 210 entries name the word beside the right one
is_right = entry == np.arange(300)

matcher = CalibratedMatcher(alpha=0.05, random_state=0)
matcher.fit(words[:300], abroad[entry], unpaired=(words[300:], abroad[300:]))
accepted = matcher.inlier_mask_
print(f"{accepted.sum()} of 300 entries accepted, {(accepted & ~is_right).sum()} of them wrong")

# %%
# The map carries words over; the nearest word there, not too popular with others, is the translation (CSLS).

found = matcher.find_partners(words[300:])
named = found.rows[:, 0] == np.arange(300, 600)
print(f"the map is {matcher.map_.kind}; {named.mean():.0%} of the 300 other words find their translation")

# %%
# Of entries that come later, each gets a q-value of its own.

later = np.arange(300, 340)
claimed = np.where(later < 320, later, later + 100)  # the last twenty are wrong
judged = matcher.predict_pairs(words[later], abroad[claimed])
print(f"right ones accepted: {judged.inlier_mask[:20].sum()} of 20, wrong ones: {judged.inlier_mask[20:].sum()} of 20")

figure, (scores, carried) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
plot_scores(matcher, ax=scores)
plot_map(matcher, words[:300], abroad[entry], ax=carried)
plt.show()
