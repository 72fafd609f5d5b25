"""Compiled formulas of `crowding` and `evidence`: each is a line or two, but a search asks them hundreds of times.

Written in loops throughout: array expressions would take the compiler many times as long.
"""

from __future__ import annotations

import numpy as np

from inlier.rows.compiled import compiled

_FEW, _SOME = 20, 100  # counts between which a density is read off and continued downwards
_CAUTION = 2.0  # times that a wrong match may lie near more often than a re-pairing: features look alike nearby
_WHISPER = 1e-3  # where the most that chance can do explains all, what it does for this map decides
_TINY = float(np.finfo(np.float64).tiny)


@compiled
def surprise_of(found, n, p):
    """n KL(found / n || p) where there are more than p n, else 0."""
    share, chance = min(max(found / max(n, 1), 0.0), 1.0), _inside(p)
    return max(n, 0) * _divergence(share, chance) if share > chance else 0.0


@compiled
def surprise_beside(found, n, p, m):
    """The same if p is the share in a sample of m: n KL(found / n || t) + m KL(p || t), t the share of both together.

    So many fewer in the sample may be chance as well; where m is much larger than n, it makes no difference.
    """
    together = (found + p * m) / max(n + m, 1)
    beside_sample = surprise_of(found, n, together)
    return beside_sample + m * _divergence(_inside(p), _inside(together)) if beside_sample > 0 else 0.0


@compiled
def _inside(chance):
    """Neither 0 nor 1: nothing is impossible, and nothing sure."""
    return min(max(chance, 1e-15), 1 - 1e-12)


@compiled
def _divergence(share, chance):
    """KL(share || chance)."""
    divergence = share * np.log(share / chance) if share > 0 else 0.0
    if share < 1:
        divergence += (1 - share) * np.log((1 - share) / (1 - chance))
    return divergence


@compiled
def _surprise_with_caution(found, n, own, most):
    """Beside the most that chance can do for any map, and a little of that beside what it does for this one."""
    beside_most = surprise_of(found, n, min(_CAUTION * max(own, most), 1.0))
    return beside_most + _WHISPER * surprise_of(found, n, min(_CAUTION * own, 1.0))


@compiled
def surprise_table(found, n, own, bounds, stretches, of_x, of_y):
    """Surprise, with caution, of what each map (column) finds within each of its bounds (rows)."""
    table = np.empty(found.shape)
    for k in range(found.shape[0]):
        for s in range(found.shape[1]):
            most = most_by_chance(bounds[k, s], stretches[s], of_x, of_y)
            table[k, s] = _surprise_with_caution(found[k, s], n, own[k, s], most)
    return table


@compiled
def most_surprising(bounds, found, free, n, own, largest, stretch, of_x, of_y):
    """Which rising bound one map surprises most within, and how much; the first, or one that chance seldom meets.

    Of the pairs found within each, and of all n, so many are ``free``: they prove nothing.
    """
    best, highest = 0, 0.0
    for k in range(bounds.size):
        if k > 0 and (found[k] == found[k - 1] or own[k] > largest):  # as many in a wider bound surprise less
            continue
        if found[k] > free:
            most = most_by_chance(bounds[k], stretch, of_x, of_y)
            surprise = _surprise_with_caution(found[k] - free, n - free, own[k], most)
            if surprise > highest:
                best, highest = k, surprise
    return best, highest


@compiled
def scan(bounds, found, re_pairings, n_re_pairings, free, n, dimension, largest, stretch, of_x, of_y):
    """The most surprising bound of one map, how many it finds within, what chance does there, and the surprise."""
    own = shares_within(bounds, re_pairings, n_re_pairings, dimension)
    best, surprise = most_surprising(bounds, found, free, n, own, largest, stretch, of_x, of_y)
    return bounds[best], found[best], own[best], surprise


@compiled
def count_up_to(values, limit):
    """How many values are no larger."""
    count = 0
    for i in range(values.size):
        count += values[i] <= limit
    return count


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
def log_shares_within(bounds, counts, total, dimension):
    """Logarithms of the bounds (row 0) and of those shares (row 1)."""
    shares = shares_within(bounds, counts, total, dimension)
    logs = np.empty((2, bounds.size))
    for k in range(bounds.size):
        logs[0, k], logs[1, k] = np.log(bounds[k]), np.log(shares[k])
    return logs


@compiled
def most_by_chance(bound, stretch, of_x, of_y):
    """sqrt(P(|T x_i - T x_j| <= e) P(|y_i - y_j| <= e)), from logarithms of distances (row 0) and shares (row 1)."""
    log_bound, log_stretch = np.log(max(bound, _TINY)), np.log(max(stretch, _TINY))
    return np.exp((_between(of_x, log_bound - log_stretch) + _between(of_y, log_bound)) / 2)


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
