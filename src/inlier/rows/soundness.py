"""One compiled look at a table that says that nothing is wrong with it."""

from __future__ import annotations

import numpy as np

from inlier.rows.compiled import compiled

_WITHOUT_SIGN = np.int64(2**63 - 1)


@compiled
def is_sound(line, n_columns, least, most):
    """Whether the largest number of a table, row after row, is of a usual size, and all its columns vary.

    All are the bits of floating-point numbers. Without a sign they rise, as whole numbers, with the size of what they
    stand for, and then come infinity and NaN: so the largest says that there is none of these.
    """
    farthest = np.int64(0)
    for k in range(line.size):
        farthest = max(farthest, line[k] & _WITHOUT_SIGN)
    varying = 0
    for a in range(n_columns):
        k = a + n_columns
        while k < line.size and line[k] == line[a]:
            k += n_columns
        varying += k < line.size
    return least <= farthest <= most and varying == n_columns
