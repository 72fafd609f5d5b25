"""What scores are worth, by the definitions: one entry per pair, no counts, no bins, nothing shared.

`inlier.calibration.p_values` works on histograms, and is compared with this.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import false_discovery_control
from scipy.stats import t as student

LAMBDAS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])


def calibrate(scores, null):
    """p-values, q-values, share of wrong pairs and its error, detection."""
    p = np.array([(1 + (null >= score).sum()) / (1 + null.size) for score in scores])
    share, error = storey(p)
    most_wrong = min(share + error, right_boundary(p), 1.0)
    stepped_up = false_discovery_control(p)
    wrong = chance_wrong(scores, p, np.sort(null), most_wrong)
    q = np.maximum(np.minimum(most_wrong * stepped_up, 1.0), stepped_up.min())
    q = np.where(wrong > 0.5, np.maximum(q, wrong), q)
    return p, np.array([q[scores >= score].max() for score in scores]), share, error, stepped_up.min()


def storey(p):
    """Storey's estimate, and its inflated standard error."""
    n = p.size
    estimates = [min(((p > limit).sum() + 1) / (n * (1 - limit)), 1.0) for limit in LAMBDAS]
    errors = [
        np.sqrt(n * estimate * limit * (1 - limit) + 1) / (n * (1 - limit))
        for estimate, limit in zip(estimates, LAMBDAS, strict=True)
    ]
    for k, estimate in enumerate(estimates):
        if all(estimate <= estimates[later] + 2 * errors[later] for later in range(k, LAMBDAS.size)):
            return estimate, 2 * errors[k]
    raise AssertionError("the last estimate undercuts itself")


def right_boundary(p):
    """Storey's estimate, with one more pair, at the first lambda at which it does not fall (Liang and Nettleton)."""
    last = 1.0
    for limit in LAMBDAS:
        estimate = min(((p > limit).sum() + 1) / (p.size * (1 - limit)), 1.0)
        if estimate >= last:
            return estimate
        last = estimate
    return last


def falling_density(p):
    """Of the p-values: the isotonic regression of share over gap."""
    values, place, times = np.unique(p, return_inverse=True, return_counts=True)
    gap = np.diff(values, prepend=0.0)
    return isotonic_regression(times / p.size / gap, weights=gap, increasing=False).x[place]


def chance_wrong(scores, p, null, null_fraction):
    """By the density of p-values, or by the scores of clear inliers and of re-pairings; the larger.

    The latter where fewer than five wrong pairs are expected to score as high.
    """
    by_rank = np.minimum(null_fraction / falling_density(p), 1.0)
    clear = scores[by_rank < 0.5]
    if clear.size < 5:
        return by_rank
    centre = np.median(clear)
    null_density, tail_scale = null_shape(null)
    spread = max(1.4826 * np.median(np.abs(clear - centre)), tail_scale)
    real = clear.size / scores.size * student.pdf((scores - centre) / spread, 5) / spread
    wrong = null_fraction * null_density(scores)
    counted = p > 5 / (null_fraction * scores.size)
    by_score = np.where((scores >= centre) | counted, 0.0, wrong / np.maximum(wrong + real, np.finfo(np.float64).tiny))
    return np.maximum(by_rank, by_score)


def null_shape(null):
    """Density of the null scores, a histogram between quantiles and an exponential tail; and the tail's scale."""
    n = null.size
    n_tail = min(max(int(0.02 * n), 20), n)
    ranks = [t * (n - n_tail) // 50 for t in range(51)]
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
