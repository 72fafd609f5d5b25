"""The second overlap of two similarity matrices: which pairs of pairs have the same distance on both sides.

A_ij = 1 where | |x_i - x_j| - |y_i - y_j| | <= tolerance. Real pairs all agree with each other, whatever the rotation
and translation; wrong ones agree by chance. Second order carries the extreme rates: (A A)_ij counts the friends that i
and j have in common. A is kept as bits, m^2 / 8 bytes, and formed for a few thousand pairs at most; who they are is
decided by first-order counts, which need no matrix.

Points are columns here: x (d_x, m), y (d_y, m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from inlier.engine.blocks import Array, FloatArray
from inlier.engine.threads import run_in_threads
from inlier.overlap.agreement_kernels import agreement_bits, circles_of_friends, excess_degrees

_ROWS_AT_ONCE = 64
_FEW_ROWS = 512  # up to which handing work to threads takes longer than doing it
_WORD = 64


@dataclass(frozen=True, eq=False)
class Circles:
    """For each pair, the friends with whom it has most friends in common.

    Attributes
    ----------
    members : ndarray of int, shape (m, size)
        The pair itself and its friends; -1 where there are fewer.
    weights : ndarray of shape (m, size)
        Leading eigenvector of the agreement among them; 0 beyond them.
    strength : ndarray of shape (m,)
        Its eigenvalue: k for k + 1 pairs that all agree.
    """

    members: Array
    weights: FloatArray
    strength: FloatArray


class Agreement:
    """The matrix A of one tolerance, as bits.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.overlap.agreement import Agreement
    >>> x = np.array([[0.0, 1.0, 3.0, 9.0]])
    >>> y = np.array([[5.0, 6.0, 8.0, 0.0]])
    >>> Agreement(x, y, tolerance=0.1).to_dense().astype(int)
    array([[0, 1, 1, 0],
           [1, 0, 1, 0],
           [1, 1, 0, 0],
           [0, 0, 0, 0]])
    """

    def __init__(self, x: FloatArray, y: FloatArray, tolerance: float) -> None:
        self.n_pairs = x.shape[1]
        self._bits = np.empty((self.n_pairs, -(-self.n_pairs // _WORD)), dtype=np.uint64)
        _over_rows(self.n_pairs, lambda start, stop: agreement_bits(x, y, tolerance, start, stop, self._bits))

    def circles(self, size: int) -> Circles:
        """Gather each pair's circle of friends, of at most ``size`` with itself."""
        members = np.empty((self.n_pairs, size), dtype=np.int64)
        weights, strength = np.empty((self.n_pairs, size)), np.empty(self.n_pairs)
        _over_rows(
            self.n_pairs, lambda start, stop: circles_of_friends(self._bits, start, stop, members, weights, strength)
        )
        return Circles(members, weights, strength)

    def to_dense(self) -> Array:
        """A as an array of bool."""
        by_byte = self._bits.astype("<u8").view(np.uint8)
        return np.unpackbits(by_byte, axis=1, count=self.n_pairs, bitorder="little").astype(bool)


def excess_of_friends(x: FloatArray, y: FloatArray, tolerances: FloatArray, rng: np.random.RandomState) -> FloatArray:
    """By how much each pair agrees with more pairs than with re-paired ones, in standard deviations; (m, tolerances).

    O(m^2) time, O(m) memory a thread.
    """
    m = x.shape[1]
    order = rng.permutation(m)
    partner = np.empty(m, dtype=np.int64)
    partner[order] = np.roll(order, 1)
    excess = np.empty((m, tolerances.size))
    _over_rows(m, lambda start, stop: excess_degrees(x, y, partner, tolerances, start, stop, excess))
    return excess


def _over_rows(n_rows: int, work: Callable[[int, int], None]) -> None:
    if n_rows <= _FEW_ROWS:
        return work(0, n_rows)
    run_in_threads(n_rows, lambda rows: work(rows.start, rows.stop), rows_per_range=_ROWS_AT_ONCE)
    return None
