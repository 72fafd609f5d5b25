"""Compiled formulas of `crowding` and `evidence`: each is a line or two, but a search asks them hundreds of times."""

from __future__ import annotations

import numpy as np

from inlier.engine.compiled import compiled

_FEW, _SOME = 20, 100  # counts between which a density is read off and continued downwards


@compiled
def surprises(found, n, p):
    """n KL(found / n || p) where there are more than p n, else 0; p is one for each, or one for all."""
    surprise = np.zeros(found.size)
    for k in range(found.size):
        share = min(max(found[k] / max(n, 1), 0.0), 1.0)
        chance = min(max(p[k if p.size > 1 else 0], 1e-15), 1 - 1e-12)
        if share > chance:
            divergence = share * np.log(share / chance)
            if share < 1:
                divergence += (1 - share) * np.log((1 - share) / (1 - chance))
            surprise[k] = max(n, 0) * divergence
    return surprise


@compiled
def shares_within(bounds, counts, total, dimension):
    """counts / total; where hardly any were counted, a power of the bound, and never less than could be seen."""
    shares = (counts + 1.0) / (total + 1.0)
    few = min(np.searchsorted(counts, _FEW), bounds.size - 1)
    more = min(np.searchsorted(counts, _SOME), bounds.size - 1)
    if few < more:
        rise = np.log(counts[more] / counts[few]) / np.log(bounds[more] / bounds[few])
        rise = min(max(rise, 1.0), float(dimension))
        for k in range(few):
            shares[k] = shares[few] * (bounds[k] / bounds[few]) ** rise
    return np.maximum(shares, 1 / (total + 1.0))


@compiled
def most_by_chance(bounds, stretches, of_x, of_y):
    """sqrt(P(|T x_i - T x_j| <= e) P(|y_i - y_j| <= e)), from logarithms of distances (row 0) and shares (row 1)."""
    tiny = np.finfo(np.float64).tiny
    log_bounds, log_stretches = np.log(np.maximum(bounds, tiny)), np.log(np.maximum(stretches, tiny))
    in_x = np.interp(log_bounds - log_stretches, of_x[0], of_x[1])
    in_y = np.interp(log_bounds, of_y[0], of_y[1])
    return np.exp((in_x + in_y) / 2)
