"""Candidate matches: for each point, of either cloud, the point of the other that looks most alike."""

from __future__ import annotations

import numpy as np

from inlier._typing import Array
from inlier.clouds.descriptors import Descriptors

_BLOCK = 2**22  # entries of the matrix of similarities at a time


def match(source: Descriptors, target: Descriptors) -> Array:
    """Rows of source and target that are nearest to each other, in at least one direction; each pair once."""
    n, m = len(source.even), len(target.even)
    of_source, of_target, best = np.empty(n, np.intp), np.zeros(m, np.intp), np.full(m, -np.inf, np.float32)
    step = max(1, _BLOCK // m)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        similarity = source.even[rows] @ target.even.T
        similarity += np.abs(source.odd[rows] @ target.odd.T)
        of_source[rows] = np.argmax(similarity, axis=1)
        top = np.argmax(similarity, axis=0)
        value = similarity[top, np.arange(m)]
        better = value > best
        of_target[better], best[better] = top[better] + start, value[better]
    one_way = np.arange(n) * m + of_source
    other_way = of_target * m + np.arange(m)
    numbers = np.union1d(one_way, other_way)
    return np.column_stack([numbers // m, numbers % m])
