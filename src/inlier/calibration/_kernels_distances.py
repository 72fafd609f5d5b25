"""Compiled loops over distances in bins of their floating-point form: counted, and looked up again."""

from __future__ import annotations

from inlier.rows.compiled import compiled


@compiled
def count_in_bins(bits, dropped, first, counts):
    """Count numbers by their first bits, less ``first``; those before the first bin are counted there."""
    for i in range(bits.size):
        place = (bits[i] >> dropped) - first
        counts[place if place > 0 else 0] += 1


@compiled
def look_up_bins(bits, dropped, first, values, out):
    """Write values[k, bin] of each number into out[k]."""
    for i in range(bits.size):
        place = (bits[i] >> dropped) - first
        place = place if place > 0 else 0
        for k in range(len(values)):
            out[k, i] = values[k, place]
