"""Draws of places in a list, compiled: NumPy's random state gives a seed, and would take as long as a whole fit.

The numbers are those of SplitMix64 (Steele, Lea and Flood 2014): a counter, its bits mixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from inlier.engine.blocks import Array
from inlier.engine.compiled import compiled

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST_MIXER, _SECOND_MIXER = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
_LARGEST_SEED = 2**32


def random_state_of(seed: Any) -> np.random.RandomState:
    """As scikit-learn reads it; for a number, a generator that is ready ten times as fast as its own."""
    if isinstance(seed, (int, np.integer)) and 0 <= seed < _LARGEST_SEED:
        return np.random.RandomState(np.random.PCG64(int(seed)))
    state: np.random.RandomState = check_random_state(seed)
    return state


def draw(n: int, size: int, rng: np.random.RandomState) -> Array:
    """Draw numbers below n."""
    numbers: Array = _draw(n, size, _seed(rng))
    return numbers


def draw_distinct(n: int, size: int, rng: np.random.RandomState) -> Array:
    """Draw different numbers below n, all of them where ``size`` is not less."""
    size = min(size, n)
    # Where few are drawn of many, numbers that come a second time are rare, and passed over.
    numbers: Array = (_draw_few if n > 2 * size else _draw_many)(n, size, _seed(rng))
    return numbers


def _seed(rng: np.random.RandomState) -> np.uint64:
    return np.uint64(rng.randint(_LARGEST_SEED, dtype=np.uint64))


@compiled
def _below(n, counter):
    """The number below n < 2^32 that belongs to a counter."""
    bits = (counter ^ (counter >> np.uint64(30))) * _FIRST_MIXER
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND_MIXER
    return np.intp((((bits ^ (bits >> np.uint64(31))) >> _HALF) * np.uint64(n)) >> _HALF)


@compiled
def _draw(n, size, seed):
    numbers = np.empty(size, dtype=np.intp)
    counter = seed * _STEP
    for k in range(size):
        counter += _STEP
        numbers[k] = _below(n, counter)
    return numbers


@compiled
def _draw_many(n, size, seed):
    """Shuffle a list of all, as far as it is needed (Fisher and Yates)."""
    numbers = np.arange(n)
    counter = seed * _STEP
    for k in range(size):
        counter += _STEP
        other = k + _below(n - k, counter)
        numbers[k], numbers[other] = numbers[other], numbers[k]
    return numbers[:size].copy()


@compiled
def _draw_few(n, size, seed):
    """Draw until there are enough, and mark what has been drawn, a bit for each number."""
    drawn, numbers = np.zeros(n // 64 + 1, dtype=np.uint64), np.empty(size, dtype=np.intp)
    counter, found = seed * _STEP, 0
    while found < size:
        counter += _STEP
        number = _below(n, counter)
        word, bit = np.uint64(number) >> np.uint64(6), np.uint64(1) << (np.uint64(number) & np.uint64(63))
        numbers[found] = number
        found += (drawn[word] & bit) == 0
        drawn[word] |= bit
    return numbers
