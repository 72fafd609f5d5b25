"""Draws of places in a list, compiled: with NumPy's generators a few of them would take as long as a whole fit.

The numbers are those of SplitMix64 (Steele, Lea and Flood 2014): a counter, its bits mixed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from inlier._typing import Array
from inlier.rows.compiled import compiled

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST_MIXER, _SECOND_MIXER = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
_LARGEST_SEED = 2**32


class Draws:
    """What is drawn at random in one search; the same each time where ``random_state`` is a number.

    Parameters
    ----------
    random_state : int, RandomState or None
        As scikit-learn reads it.
    """

    def __init__(self, random_state: Any) -> None:
        is_number = isinstance(random_state, (int, np.integer)) and 0 <= random_state < _LARGEST_SEED
        self._number, self._n_draws = int(random_state) if is_number else None, 0
        self._random_state = random_state if is_number else check_random_state(random_state)

    @cached_property
    def numpy(self) -> np.random.RandomState:
        """NumPy's generator: it takes a while to make one of a number."""
        state: np.random.RandomState = check_random_state(self._random_state)
        return state

    def numbers(self, n: int, size: int) -> Array:
        """Draw numbers below n."""
        drawn: Array = _draw(n, size, self._seed())
        return drawn

    def distinct(self, n: int, size: int) -> Array:
        """Draw different numbers below n, all of them where ``size`` is not less."""
        size = min(size, n)
        # Where few are drawn of many, numbers that come a second time are rare, and passed over.
        drawn: Array = (_draw_few if n > 2 * size else _draw_many)(n, size, self._seed())
        return drawn

    def _seed(self) -> np.uint64:
        """Another one for each draw."""
        self._n_draws += 1
        if self._number is None:
            return np.uint64(self.numpy.randint(_LARGEST_SEED, dtype=np.uint64))
        return np.uint64((self._number << 32) + self._n_draws)


@compiled
def _mixed(counter):
    """Bits that look random, others for each counter."""
    bits = (counter ^ (counter >> np.uint64(30))) * _FIRST_MIXER
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND_MIXER
    return bits ^ (bits >> np.uint64(31))


@compiled
def _below(n, counter):
    """The number below n < 2^32 that belongs to a counter."""
    return np.intp(((_mixed(counter) >> _HALF) * np.uint64(n)) >> _HALF)


@compiled
def _draw(n, size, seed):
    numbers = np.empty(size, dtype=np.intp)
    counter = _mixed(seed * _STEP)
    for k in range(size):
        counter += _STEP
        numbers[k] = _below(n, counter)
    return numbers


@compiled
def _draw_many(n, size, seed):
    """Shuffle a list of all, as far as it is needed (Fisher and Yates)."""
    numbers = np.arange(n)
    counter = _mixed(seed * _STEP)
    for k in range(size):
        counter += _STEP
        other = k + _below(n - k, counter)
        numbers[k], numbers[other] = numbers[other], numbers[k]
    return numbers[:size].copy()


@compiled
def _draw_few(n, size, seed):
    """Draw until there are enough, and mark what has been drawn, a bit for each number."""
    drawn, numbers = np.zeros(n // 64 + 1, dtype=np.uint64), np.empty(size, dtype=np.intp)
    counter, found = _mixed(seed * _STEP), 0
    while found < size:
        counter += _STEP
        number = _below(n, counter)
        word, bit = np.uint64(number) >> np.uint64(6), np.uint64(1) << (np.uint64(number) & np.uint64(63))
        numbers[found] = number
        found += (drawn[word] & bit) == 0
        drawn[word] |= bit
    return numbers
