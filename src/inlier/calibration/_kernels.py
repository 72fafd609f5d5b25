"""Compiled loops behind `calibration`: what sorted scores are worth, each given once with how often it occurs.

Scores fall, so the most convincing come first and p-values rise, null scores rise.
"""

from __future__ import annotations

import numpy as np

from inlier.rows.compiled import compiled

MOST_LIKELY_WRONG = 0.5  # a pair is not accepted if it is more likely wrong than real
_ERROR_INFLATION = 2.0  # lambda is chosen from the data, and p-values share re-pairings: both add to the error
_TAIL_SHARE = 0.02  # the upper part of the null that its tail is fitted to
_FEWEST_IN_TAIL = 20
_QUANTILES = 50  # between which the rest of the null has a histogram
_FEWEST_CLEAR = 5  # clear inliers that it takes to describe the inliers' scores
_TINY = float(np.finfo(np.float64).tiny)
_MEDIAN_TO_SIGMA = 1.4826
_STUDENT_PEAK = 8 / (3 * np.pi * np.sqrt(5))  # of Student's t with five degrees of freedom


@compiled
def q_values_of(scores, p, counts, null_scores, null_counts, null_fraction):
    """q-values, and the chance of evidence as strong as the strongest if no pair were real (Simes).

    A pair cannot be surer than that there is any pair, and is not accepted when it is more likely wrong.
    """
    q = step_up(p, counts)
    detection = min(q[0], 1.0)
    wrong = _chance_wrong(scores, p, counts, null_scores, null_counts, null_fraction)
    highest = detection
    for k in range(q.size):
        highest = max(highest, min(null_fraction * q[k], 1.0))
        if wrong[k] > MOST_LIKELY_WRONG:
            highest = max(highest, wrong[k])
        q[k] = highest
    return q, detection


@compiled
def step_up(p, counts):
    """Benjamini and Hochberg: min over k >= rank of n p_(k) / k, which the share of wrong pairs is a factor of."""
    n = 0
    for k in range(p.size):
        n += counts[k]
    stepped = np.empty(p.size)
    lowest, rank = np.inf, n
    for k in range(p.size - 1, -1, -1):
        lowest = min(lowest, n * p[k] / rank)
        stepped[k] = lowest
        rank -= counts[k]
    return stepped


@compiled
def share_of_wrong(p, counts, lambdas):
    """Storey's estimate of the share of wrong pairs, and its standard error; p in any order.

    The smallest lambda whose estimate no later one undercuts by more than two of its standard errors.
    """
    n = 0
    beyond = np.zeros(lambdas.size)
    for k in range(p.size):
        n += counts[k]
        for t in range(lambdas.size):
            if p[k] <= lambdas[t]:
                break
            beyond[t] += counts[k]
    chosen_share = chosen_error = 1.0
    lowest_later = np.inf
    for t in range(lambdas.size - 1, -1, -1):
        left = n * (1 - lambdas[t])
        share = min((beyond[t] + 1) / left, 1.0)
        # Of the n_0 wrong pairs, binomially many fall beyond lambda; one is added for the counts that are small.
        error = np.sqrt(share * left * lambdas[t] + 1) / left
        lowest_later = min(lowest_later, share + 2 * error)
        if share <= lowest_later:
            chosen_share, chosen_error = share, error
    return chosen_share, _ERROR_INFLATION * chosen_error


@compiled
def falling_density(p, counts):
    """Grenander's estimate of the density of rising p-values, at each: the steepest that does not rise with p.

    The slopes of the least concave majorant of their distribution: neighbours are pooled for as long as they rise.
    """
    n = 0
    for k in range(p.size):
        n += counts[k]
    share, gap, last = np.empty(p.size), np.empty(p.size), np.empty(p.size, dtype=np.intp)  # of blocks
    blocks, before = 0, 0.0
    for k in range(p.size):
        if k > 0 and p[k] == p[k - 1]:  # one step of the distribution
            share[blocks - 1] += counts[k] / n
        else:
            share[blocks], gap[blocks] = counts[k] / n, p[k] - before
            blocks, before = blocks + 1, p[k]
        last[blocks - 1] = k
        while blocks > 1 and share[blocks - 1] * gap[blocks - 2] >= share[blocks - 2] * gap[blocks - 1]:
            blocks -= 1
            share[blocks - 1] += share[blocks]
            gap[blocks - 1] += gap[blocks]
            last[blocks - 1] = last[blocks]
    density, k = np.empty(p.size), 0
    for block in range(blocks):
        while k <= last[block]:
            density[k] = share[block] / gap[block]
            k += 1
    return density


@compiled
def _chance_wrong(scores, p, counts, null_scores, null_counts, null_fraction):
    """Chance that a pair with this very score is wrong; the larger of two estimates.

    One compares the density of the p-values with that of wrong pairs. Where the real pairs stand far out
    it cannot see how far, for their p-values are all the smallest possible; so the other compares the
    density of the null scores, exponential in its tail, with a Student t around the clear inliers.
    """
    wrong = falling_density(p, counts)
    n = n_clear = clear = 0
    for k in range(wrong.size):
        wrong[k] = min(null_fraction / wrong[k], 1.0)
        n += counts[k]
        if wrong[k] < MOST_LIKELY_WRONG:  # it rises, so these are the first
            clear, n_clear = k + 1, n
    if n_clear < _FEWEST_CLEAR:
        return wrong
    ranks, edges, start, scale = _null_shape(null_scores, null_counts)
    n_null = ranks[-1]
    centre = _median(scores[:clear], counts[:clear])
    spread = max(_MEDIAN_TO_SIGMA * _median_distance(scores[:clear], counts[:clear], centre), scale)
    place = _QUANTILES - 1
    for k in range(wrong.size):
        if scores[k] >= centre:
            continue
        if scores[k] >= start:
            n_tail = n_null - ranks[_QUANTILES]
            null_density = n_tail / n_null / scale * np.exp(-(scores[k] - start) / scale)
        else:
            while place > 0 and edges[place] > scores[k]:
                place -= 1
            smallest = _smallest_step(null_scores)
            width = max(edges[place + 1] - edges[place], smallest)
            null_density = (ranks[place + 1] - ranks[place]) / n_null / width
        z = (scores[k] - centre) / spread
        real = n_clear / n * _STUDENT_PEAK / (1 + z * z / 5) ** 3 / spread
        by_null = null_fraction * null_density
        wrong[k] = max(wrong[k], by_null / max(by_null + real, _TINY))
    return wrong


@compiled
def _smallest_step(rising):
    """Between scores that count as different: equal ones have no spread of their own."""
    return 1e-9 * max(1.0, max(abs(rising[0]), abs(rising[-1])))


@compiled
def _null_shape(rising, counts):
    """Ranks and scores of the quantiles up to the tail (and how many there are in all), where it starts, its scale."""
    n = 0
    for k in range(rising.size):
        n += counts[k]
    n_tail = min(max(int(_TAIL_SHARE * n), _FEWEST_IN_TAIL), n)
    ranks, edges = np.empty(_QUANTILES + 2, dtype=np.intp), np.empty(_QUANTILES + 1)
    for t in range(_QUANTILES + 1):
        ranks[t] = int(t * ((n - n_tail) / _QUANTILES)) if t < _QUANTILES else n - n_tail
    ranks[_QUANTILES + 1] = n
    reached = t = 0
    in_tail, beyond = 0, 0.0
    for k in range(rising.size):
        reached += counts[k]
        while t <= _QUANTILES and ranks[t] < reached:
            edges[t] = rising[k]
            t += 1
        if t > _QUANTILES:
            here = min(counts[k], reached - (n - n_tail))
            in_tail += here
            beyond += here * (rising[k] - edges[_QUANTILES])
    return ranks, edges, edges[_QUANTILES], max(beyond / max(in_tail, 1), _smallest_step(rising))


@compiled
def _median(values, counts):
    """Median of sorted values that occur so many times each."""
    n = 0
    for k in range(values.size):
        n += counts[k]
    reached, lower = 0, values[0]
    for k in range(values.size):
        if reached <= (n - 1) // 2:
            lower = values[k]
        reached += counts[k]
        if reached > n // 2:
            return (lower + values[k]) / 2
    return lower


@compiled
def _median_distance(falling, counts, centre):
    """Median of |value - centre|: from the centre outwards, the nearer of the two neighbours next."""
    below = 0
    while below < falling.size and falling[below] > centre:
        below += 1
    above = below - 1
    distances, times = np.empty(falling.size), np.empty(falling.size, dtype=np.int64)
    for k in range(falling.size):
        if above < 0 or (below < falling.size and centre - falling[below] <= falling[above] - centre):
            distances[k], times[k] = centre - falling[below], counts[below]
            below += 1
        else:
            distances[k], times[k] = falling[above] - centre, counts[above]
            above -= 1
    return _median(distances, times)
