"""
Is a promised 5 % really 5 %?
=============================

A hard case: three dimensions, much noise, half of the pairs wrong, so that real and wrong pairs overlap. For twenty
draws, what share of the accepted pairs was wrong, beside the alpha that was asked for? And are the p-values of
wrong pairs uniform, from which all else follows?
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier import CalibratedMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.plotting import REAL, WRONG

alphas = np.array([0.01, 0.02, 0.05, 0.1])
shares, of_wrong = [], []
for seed in range(20):
    data = make_gaussian_pairs(n=1000, d=3, inlier_fraction=0.5, noise=0.3, rng=seed)
    matcher = CalibratedMatcher(random_state=seed).fit(data.X, data.Y)
    accepted = matcher.q_values_ <= alphas[:, None]
    shares.append((accepted & ~data.inlier_mask).sum(axis=1) / np.maximum(accepted.sum(axis=1), 1))
    of_wrong.append(matcher.p_values_[~data.inlier_mask])
mean = np.mean(shares, axis=0)
print("asked for:", alphas, " observed:", mean.round(3))

# %%
# From 5 % on the curve is flat: a pair that is more likely wrong than real is never accepted, whatever alpha would
# allow.

figure, (rates, uniform) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
rates.plot(alphas, np.transpose(shares), color=WRONG, alpha=0.15)
rates.plot(alphas, mean, "o-", color=REAL, label="mean of twenty draws")
rates.plot(alphas, alphas, "--", color="black", label="promised")
rates.set(xlabel="alpha", ylabel="wrong among the accepted", ylim=(0, 0.15))
rates.legend(frameon=False)
uniform.hist(np.concatenate(of_wrong), 40, density=True, color=WRONG)
uniform.axhline(1, color="black", linestyle="--")
uniform.set(xlabel="p-value", title="p-values of 10,000 wrong pairs")
plt.show()
