"""Compiled loop over many maps at once: how many pairs each brings within some bounds."""

from __future__ import annotations

import numpy as np

from inlier.consensus._kernels_pairs import squared_residuals
from inlier.rows.compiled import compiled


@compiled
def support_within(linear, shift, x, y, bounds, found):
    """Count, for each map s, the pairs with residuals up to bounds[k, s], into found[k, s]."""
    n = x.shape[1]
    squared = np.empty(n)
    for s in range(len(linear)):
        squared_residuals(linear[s], shift[s], x, y, 0, n, squared)
        for k in range(len(bounds)):
            limit, count = bounds[k, s] * bounds[k, s], 0
            for i in range(n):
                count += squared[i] <= limit
            found[k, s] = count
