"""Compiled loops that judge distances by those of wrong pairs, in bins: 256 of them an octave, so nothing is sorted.

The number of a distance's bin is the exponent and the first bits of the fraction of its floating-point form. A bin
stands for its upper end, so that p-values are never too small.
"""

from __future__ import annotations

import numpy as np

from inlier.calibration._kernels import q_values_of, share_of_wrong
from inlier.rows.compiled import compiled, compiled_exactly

_DROPPED_BITS = 52 - 8  # of the fraction of a float64: with what is left, 256 numbers are told apart in an octave
_MOST_BINS = 32 << 8  # 32 octaves below the largest distance; what is smaller counts with the smallest


@compiled
def judge_distances(distances, null_distances, lambdas, most_null_scores):
    """p- and q-values, the share of wrong pairs and its error, detection, and some null scores (see `calibration`)."""
    lowest, n_bins = _range_of_bins(distances, null_distances)
    null_counted = _counted(null_distances, lowest, n_bins)
    places, scores, counts = _listed(_counted(distances, lowest, n_bins), lowest, False)
    _, null_scores, null_counts = _listed(null_counted, lowest, True)
    p = _null_shares_at(places, null_counted, null_distances.size)
    share, error = share_of_wrong(p, counts, lambdas)
    q, detection = q_values_of(scores, p, counts, null_scores, null_counts, min(1.0, share + error))
    p_of_each, q_of_each = _look_up(distances, lowest, n_bins, places, p, q)
    kept = evenly_spaced_entries(null_scores, null_counts, null_distances.size, most_null_scores)
    return p_of_each, q_of_each, share, error, detection, kept


@compiled
def _range_of_bins(distances, null_distances):
    """The first bin that is needed, and how many."""
    largest, smallest = 0, np.iinfo(np.int64).max
    for values in (distances, null_distances):
        parts = values.view(np.int64)
        for i in range(parts.size):
            largest, smallest = max(largest, parts[i]), min(smallest, parts[i])
    last = largest >> _DROPPED_BITS
    lowest = max(smallest >> _DROPPED_BITS, last - (_MOST_BINS - 1))
    return lowest, last - lowest + 1


@compiled
def _counted(values, lowest, n_bins):
    """How many values there are in each bin."""
    parts = values.view(np.int64)
    counts = np.zeros(n_bins, dtype=np.int64)
    for i in range(parts.size):
        counts[max((parts[i] >> _DROPPED_BITS) - lowest, 0)] += 1
    return counts


@compiled
def _listed(counted, lowest, backwards):
    """Bins with something in them, in order or backwards; their scores, minus the upper ends; and how much."""
    n_bins, step = counted.size, -1 if backwards else 1
    places, counts, bits = np.empty(n_bins, np.int64), np.empty(n_bins, np.int64), np.empty(n_bins, np.int64)
    found, k = 0, n_bins - 1 if backwards else 0
    for _ in range(n_bins):
        places[found], counts[found] = k, counted[k]
        bits[found] = (k + lowest + 1) << _DROPPED_BITS
        found += counted[k] > 0
        k += step
    scores = bits.view(np.float64)
    for t in range(found):
        scores[t] = -scores[t]
    return places[:found], scores[:found], counts[:found]


@compiled_exactly
def _null_shares_at(places, null_counted, n):
    """(1 + number of null distances up to each of these rising bins) / (1 + n)."""
    shares, reached, k = np.empty(places.size), 0, 0
    for t in range(places.size):
        while k <= places[t]:
            reached += null_counted[k]
            k += 1
        shares[t] = (1.0 + reached) / (1.0 + n)
    return shares


@compiled
def _look_up(values, lowest, n_bins, places, p, q):
    """Two entries for each value: those of its bin."""
    parts = values.view(np.int64)
    tables, of_each_p, of_each_q = np.empty((n_bins, 2)), np.empty(parts.size), np.empty(parts.size)
    for t in range(places.size):
        tables[places[t], 0], tables[places[t], 1] = p[t], q[t]
    for i in range(parts.size):
        place = max((parts[i] >> _DROPPED_BITS) - lowest, 0)
        of_each_p[i], of_each_q[i] = tables[place, 0], tables[place, 1]
    return of_each_p, of_each_q


@compiled
def evenly_spaced_entries(values, counts, n, most):
    """At most so many entries of a list of n in which each value occurs so many times in a row, first to last."""
    size = min(n, most)
    step = (n - 1) / max(size - 1, 1)
    entries = np.empty(size)
    reached = t = 0
    for k in range(values.size):
        reached += counts[k]
        while t < size and int(t * step + 0.5) < reached:  # the rank
            entries[t] = values[k]
            t += 1
    return entries
