"""What sorted scores are worth, in plain array expressions: what `inlier.calibration._kernels` is compared with.

Scores fall, p-values and null scores rise; ``counts`` says how often each score occurs.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import t as student


def share_of_wrong(p, counts, lambdas):
    """Storey's estimate, and its inflated standard error."""
    n = counts.sum()
    beyond = np.array([counts[p > limit].sum() for limit in lambdas])
    estimate = np.minimum((beyond + 1) / (n * (1 - lambdas)), 1.0)
    error = np.sqrt(n * estimate * lambdas * (1 - lambdas) + 1) / (n * (1 - lambdas))
    lowest_later = np.minimum.accumulate((estimate + 2 * error)[::-1])[::-1]
    chosen = int(np.argmax(estimate <= lowest_later))
    return estimate[chosen], 2 * error[chosen]


def q_values_of(scores, p, counts, null, null_fraction):
    """q-values and detection; ``null`` holds every null score."""
    rank = np.cumsum(counts)
    stepped_up = np.minimum.accumulate((rank[-1] * p / rank)[::-1])[::-1]
    detection = min(stepped_up[0], 1.0)
    wrong = chance_wrong(scores, p, counts, null, null_fraction)
    q = np.maximum(np.minimum(null_fraction * stepped_up, 1.0), detection)
    return np.maximum.accumulate(np.where(wrong > 0.5, np.maximum(q, wrong), q)), detection


def falling_density(p, counts):
    """Of the p-values: the isotonic regression of share over gap."""
    values, place = np.unique(p, return_inverse=True)
    share = np.bincount(place, weights=counts) / counts.sum()
    gap = np.diff(values, prepend=0.0)
    return isotonic_regression(share / gap, weights=gap, increasing=False).x[place]


def chance_wrong(scores, p, counts, null, null_fraction):
    """By the density of p-values, or by the scores of clear inliers and of re-pairings; the larger."""
    by_rank = np.minimum(null_fraction / falling_density(p, counts), 1.0)
    clear = np.repeat(scores, np.where(by_rank < 0.5, counts, 0))
    if clear.size < 5:
        return by_rank
    centre = np.median(clear)
    null_density, tail_scale = null_shape(null)
    spread = max(1.4826 * np.median(np.abs(clear - centre)), tail_scale)
    real = clear.size / counts.sum() * student.pdf((scores - centre) / spread, 5) / spread
    wrong = null_fraction * null_density(scores)
    by_score = np.where(scores >= centre, 0.0, wrong / np.maximum(wrong + real, np.finfo(np.float64).tiny))
    return np.maximum(by_rank, by_score)


def null_shape(null):
    """Density of the null scores, a histogram between quantiles and an exponential tail; and the tail's scale."""
    n = null.size
    n_tail = min(max(int(0.02 * n), 20), n)
    ranks = np.linspace(0, n - n_tail, 51).astype(int)
    edges = null[ranks]
    start, tail = edges[-1], null[n - n_tail :]
    smallest = 1e-9 * max(1.0, np.abs(null[[0, -1]]).max())
    scale = max((tail - start).mean(), smallest)
    height = np.diff(ranks) / n / np.maximum(np.diff(edges), smallest)

    def density(scores):
        bulk = height[np.searchsorted(edges[1:-1], scores, side="right")]
        beyond = n_tail / n / scale * np.exp(-np.maximum(scores - start, 0.0) / scale)
        return np.where(scores >= start, beyond, bulk)

    return density, scale
