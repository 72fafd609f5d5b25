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

from inlier._typing import Array, FloatArray
from inlier.consensus._kernels_agreement import agreement_bits, circle_weights, circles_of_friends, excess_degrees
from inlier.rows.threads import run_in_threads

_ROWS_AT_ONCE = 128
_FEW_ROWS = 1024  # up to which handing work to threads takes longer than doing it
_WORD = 64
_SINGLE = 1e4  # tolerances that fit into the extent of the points, up to which single precision will do
_ROUNDING_ERRORS, _MOST_LOST = 4, 0.01  # in the difference of two distances; of a tolerance
_NO_TOLERANCE = 1e-60  # stands for 0, where only equal distances agree


@dataclass(frozen=True, eq=False)
class Circles:
    """Pairs, each with the friends with whom it has most friends in common.

    Attributes
    ----------
    members : ndarray of int, shape (k, size)
        The pair itself and its friends; -1 where there are fewer.
    weights : ndarray of shape (k, size)
        Leading eigenvector of the agreement among them; 0 beyond them.
    tightness : ndarray of shape (k,)
        How many friends a friend of one of the friends has among them on average: k - 2 for k pairs that all agree.
    """

    members: Array
    weights: FloatArray
    tightness: FloatArray


class Agreement:
    """The matrices A of some tolerances, as bits.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.consensus.agreement import Agreement
    >>> x = np.array([[0.0, 1.0, 3.0, 9.0]])
    >>> y = np.array([[5.0, 6.0, 8.0, 0.0]])
    >>> Agreement(x, y, tolerances=np.array([0.1])).to_dense(0).astype(int)
    array([[0, 1, 1, 0],
           [1, 0, 1, 0],
           [1, 1, 0, 0],
           [0, 0, 0, 0]])
    """

    def __init__(self, x: FloatArray, y: FloatArray, tolerances: FloatArray) -> None:
        self.n_pairs = x.shape[1]
        x, y, tolerances = _in_a_common_unit(x, y, tolerances)
        self._bits = np.empty((tolerances.size, self.n_pairs, -(-self.n_pairs // _WORD)), dtype=np.uint64)
        _over_rows(self.n_pairs, lambda start, stop: agreement_bits(x, y, tolerances, start, stop, self._bits))

    def tightest_circles(self, which: int, size: int, most: int) -> Circles:
        """Return the tightest circles, of at most ``size`` pairs each, to the tolerance number ``which``."""
        bits = self._bits[which]
        members, tightness = np.empty((self.n_pairs, size), dtype=np.int64), np.empty(self.n_pairs)
        _over_rows(self.n_pairs, lambda start, stop: circles_of_friends(bits, start, stop, members, tightness))
        tightest = np.argsort(-tightness, kind="stable")[:most]
        members, weights = members[tightest], np.empty((tightest.size, size))
        circle_weights(bits, members, weights)
        return Circles(members, weights, tightness[tightest])

    def to_dense(self, which: int) -> Array:
        """A to the tolerance number ``which``, as an array of bool."""
        by_byte = self._bits[which].astype("<u8").view(np.uint8)
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
    x, y, tolerances = _in_a_common_unit(x, y, tolerances)
    sides = np.stack([y, y[:, partner]])
    _over_rows(m, lambda start, stop: excess_degrees(x, sides, tolerances, start, stop, excess))
    return excess


def _in_a_common_unit(x: FloatArray, y: FloatArray, tolerances: FloatArray) -> tuple[Array, Array, Array]:
    """Measure in the largest tolerance: the kernels take fourth powers, which must not overflow.

    Single precision, which is faster, is enough unless the tolerances are a tiny part of the distances. Tolerances grow
    by what may be lost to it, so that pairs that disagree by just the tolerance agree: on a grid there are many.
    """
    unit = float(np.max(tolerances)) or 1.0
    x, y, tolerances = x / unit, y / unit, np.maximum(tolerances / unit, _NO_TOLERANCE)
    length = max(float(np.ptp(side, axis=1).max(initial=0.0)) for side in (x, y)) / float(tolerances.min())
    kind = np.float32 if length < _SINGLE else np.float64
    lost = min(_ROUNDING_ERRORS * float(np.finfo(kind).eps) * length, _MOST_LOST)
    x, y = x.astype(kind, order="C"), y.astype(kind, order="C")
    return x, y, (tolerances * (1 + lost)).astype(kind)


def _over_rows(n_rows: int, work: Callable[[int, int], None]) -> None:
    if n_rows <= _FEW_ROWS:
        return work(0, n_rows)
    run_in_threads(n_rows, lambda rows: work(rows.start, rows.stop), rows_per_range=_ROWS_AT_ONCE)
    return None
