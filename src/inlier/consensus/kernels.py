"""Compiled loops over pairs under a given map: residuals, support, histograms of residuals."""

from __future__ import annotations

import numpy as np

from inlier.engine.compiled import compiled


@compiled
def squared_residuals(linear, shift, x, y, partner, start, stop, out):
    """|y_partner(i) - linear x_i - shift|^2 for rows start to stop; points are columns."""
    d_y, d_x = linear.shape
    for i in range(start, stop):
        total = 0.0
        for a in range(d_y):
            step = y[a, partner[i]] - shift[a]
            for b in range(d_x):
                step -= linear[a, b] * x[b, i]
            total += step * step
        out[i] = total


@compiled
def support(linear, shift, x, y, squared_bound, count):
    """How many pairs each map brings within the bound."""
    d_y, d_x = linear.shape[1:]
    for s in range(len(linear)):
        found = 0
        for i in range(x.shape[1]):
            total = 0.0
            for a in range(d_y):
                step = y[a, i] - shift[s, a]
                for b in range(d_x):
                    step -= linear[s, a, b] * x[b, i]
                total += step * step
            found += total <= squared_bound
        count[s] = found
