"""Whether pairs are listed more than once: a pair that is listed twice is still one witness."""

from __future__ import annotations

import numpy as np

from inlier._typing import FloatArray
from inlier.rows.compiled import compiled_exactly

_LOOKED_AT = 256  # different pairs, about, that are looked at
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # an odd constant whose bits look random
_HALF, _FEW = np.uint64(32), np.uint64(7)


def any_repeats(x: FloatArray, y: FloatArray, residuals: FloatArray, bound: float, n_within: int) -> bool:
    """Whether some of the pairs within the bound are equal; of many, some hundreds are looked at.

    Half of those are chosen by their coordinates alone: so copies are looked at together, wherever they stand in the
    table. The others are every so manieth: so a single pair that is listed very often is not overlooked. Repeats that
    are less than about 1 of 100 of the pairs may be.

    Parameters
    ----------
    x, y : ndarray of shape (d_x, n), (d_y, n)
        Pairs, as columns.
    residuals : ndarray of shape (n,)
        One for each.
    bound : float
        Largest residual of those that are looked at.
    n_within : int
        How many those are, about.
    """
    marks = np.sort(_some_marks(x, y, residuals, bound, max(n_within, 1), _LOOKED_AT))
    return bool((marks[1:] == marks[:-1]).any())


@compiled_exactly
def _some_marks(x, y, residuals, bound, n_within, about):  # type: ignore[no-untyped-def]
    """Those of the pairs that are looked at."""
    return _marks(x, y, _some(x[0], x[-1], residuals, bound, n_within, about))


@compiled_exactly
def _some(u, v, residuals, bound, n_within, about):  # type: ignore[no-untyped-def]
    """Rows within the bound: about so many that two coordinates choose, and of the others every so manieth."""
    limit = np.uint64(min(2.0**32 * about / n_within, 2.0**32))  # of the upper half of a number
    most, count, n = 4 * about, 0, residuals.size
    rows = np.empty(2 * most, dtype=np.intp)
    for i in range(n):
        if _mixed(u[i], v[i]) < limit and residuals[i] <= bound:  # of many, few: no time is lost by a wrong guess
            rows[count] = i
            count += 1
            if count == most:
                break
    for i in range(0, n, max(1, n_within // about)):
        if residuals[i] <= bound and _mixed(u[i], v[i]) >= limit:
            rows[count] = i
            count += 1
            if count == rows.size:
                break
    return rows[:count]


@compiled_exactly
def _marks(x, y, rows):  # type: ignore[no-untyped-def]
    """Numbers that are equal for equal pairs, and hardly ever for others."""
    marks = np.zeros(rows.size, dtype=np.uint64)
    for points in (x, y):
        for a in range(len(points)):
            for k in range(rows.size):
                mark = (marks[k] ^ _bits(points[a, rows[k]])) * _MIXER
                marks[k] = mark ^ (mark >> _HALF)
    return marks


@compiled_exactly
def _mixed(u, v):  # type: ignore[no-untyped-def]
    """A number below 2^32 that depends on two others as if at random."""
    return ((_bits(u) ^ (_bits(v) >> _FEW)) * _MIXER) >> _HALF


@compiled_exactly
def _bits(number):  # type: ignore[no-untyped-def]
    """The bits of a number; -0 and 0 are one."""
    return np.float64(number + 0.0).view(np.uint64)
