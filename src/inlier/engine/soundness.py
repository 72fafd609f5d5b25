"""One compiled look at a table that says that nothing is wrong with it."""

from __future__ import annotations

import numpy as np

from inlier.engine.compiled import compiled

_WITHOUT_SIGN = np.int64(2**63 - 1)


@compiled
def is_sound(table, largest):
    """Whether all numbers are finite and no larger than that, and every column has two different ones.

    The bits of floating-point numbers without a sign, read as whole numbers, rise as these do, then come infinity and
    NaN: so the largest says all of them.
    """
    bits, limit = table.reshape(-1).view(np.int64), np.array([largest]).view(np.int64)[0]
    farthest = np.int64(0)
    for k in range(bits.size):
        farthest = max(farthest, bits[k] & _WITHOUT_SIGN)
    varying = 0
    for a in range(table.shape[1]):
        i = 1
        while i < len(table) and table[i, a] == table[0, a]:
            i += 1
        varying += i < len(table)
    return farthest <= limit and varying == table.shape[1]
