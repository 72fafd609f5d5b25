"""Compiled formulas of `crowding` and `evidence`: each is a line or two, but a search asks them hundreds of times.

Written in loops throughout: array expressions would take the compiler many times as long.
"""

from __future__ import annotations

import numpy as np

from inlier.engine.compiled import compiled

_FEW, _SOME = 20, 100  # counts between which a density is read off and continued downwards
_TINY = float(np.finfo(np.float64).tiny)


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
    last = bounds.size - 1
    shares = np.empty(bounds.size)
    few = more = last  # first bounds with so many counts
    for k in range(last, -1, -1):
        shares[k] = (counts[k] + 1.0) / (total + 1.0)
        few = k if counts[k] >= _FEW else few
        more = k if counts[k] >= _SOME else more
    if few < more:
        rise = np.log(counts[more] / counts[few]) / np.log(bounds[more] / bounds[few])
        rise = min(max(rise, 1.0), float(dimension))
        for k in range(few):
            shares[k] = max(shares[few] * (bounds[k] / bounds[few]) ** rise, 1.0 / (total + 1.0))
    return shares


@compiled
def most_by_chance(bounds, stretches, of_x, of_y):
    """sqrt(P(|T x_i - T x_j| <= e) P(|y_i - y_j| <= e)), from logarithms of distances (row 0) and shares (row 1).

    One stretch for each bound, or one for all.
    """
    most = np.empty(bounds.size)
    for k in range(most.size):
        log_bound, stretch = np.log(max(bounds[k], _TINY)), stretches[k if stretches.size > 1 else 0]
        log_stretch = np.log(max(stretch, _TINY))
        most[k] = np.exp((_between(of_x, log_bound - log_stretch) + _between(of_y, log_bound)) / 2)
    return most


@compiled
def _between(line, place):
    """Value of a broken line (row 1) at this place, its corners at rising places (row 0); beyond them, the last one."""
    low, high = 0, line.shape[1] - 1
    if place <= line[0, low]:
        return line[1, low]
    if place >= line[0, high]:
        return line[1, high]
    while high - low > 1:
        middle = (low + high) // 2
        if line[0, middle] <= place:
            low = middle
        else:
            high = middle
    part = (place - line[0, low]) / (line[0, high] - line[0, low])
    return line[1, low] + part * (line[1, high] - line[1, low])
