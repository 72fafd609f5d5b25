"""Is it a slip, or chance? How much better rows fit what a lane gives them than what stands beside them.

Of each row of a run it is asked whether x_i fits the y of the lane better than its own y, and than that y its own x:

    h_i = r_ij - max(r_ii, r_jj),    r the odds of any x with any y.

If no row slipped, h_i is above 0 with a chance of one half at most, whatever its size: where own pairs are real, a
partner is at least as likely to be ahead of another row as behind it; where they are strangers, one stranger is as good
as another. So with any t > 0 and any miss e

    E_i = e + 2 (1 - e) / (1 + exp(-t h_i))

has a mean of one at most, and so has the product over the rows: a bet that no honest coin makes rich. It wins log 2 a
row at most, however far ahead a row is, and a row that was exchanged on its own costs little. The p-value of a run is 1
over what was won, times what could have been bet on: all first and last rows, all amounts, all t.

Neighbours resemble each other, and then so do their bets. How many rows count for one is seen in the run, and where the
whole of y is pushed on along x by some stretch or other, so that no pair is right: bets on the same run of such tables
are added up, and the variance of the sums is compared with that of single bets. What was won is divided by that number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inlier._typing import FloatArray

MISS = 0.1  # share of rows of a slip that may be with another partner all the same
STEEPNESS = np.array([1.0, 0.25, 0.0625])  # t: odds may be surer than they should
_PUSHED = 40  # times that y is pushed on along x
_MOST_LAGS = 100  # of rows that may count for one
_FEWEST = 8  # rows in which it can be seen

Ahead = Callable[[int], FloatArray]  # h of the rows of a run, where y is pushed on by so many rows


def won(ahead: Ahead, n_rows: int, rng: np.random.RandomState) -> FloatArray:
    """Logarithms of what the bets on the rows of a run have won, for each t."""
    own = ahead(0)
    bets = np.array([_bets(own, steepness) for steepness in STEEPNESS])
    total = bets.sum(axis=1)
    best = int(np.argmax(total))
    together = max(_together(bets[best]), _together_by_chance(ahead, n_rows, STEEPNESS[best], rng))
    return np.where(total > 0, total / together, total)


def _bets(ahead: FloatArray, steepness: float) -> FloatArray:
    """log E of each row."""
    bets: FloatArray = np.log(MISS + 2 * (1 - MISS) / (1 + np.exp(-np.clip(steepness * ahead, -50, 50))))
    return bets


def _together(bets: FloatArray) -> float:
    """How many rows count for one: 1 and twice the autocorrelations, up to the first that may be none."""
    rest, number = bets - bets.mean(), 1.0
    square = float(rest @ rest)
    for lag in range(1, min(_MOST_LAGS, bets.size // 3)):
        correlation = float(rest[:-lag] @ rest[lag:]) / max(square, 1e-12)
        if correlation < 2 / np.sqrt(bets.size):
            break
        number += 2 * correlation
    return number


def _together_by_chance(ahead: Ahead, n_rows: int, steepness: float, rng: np.random.RandomState) -> float:
    """The same, in tables of which y is pushed on along x, so that no pair is right."""
    pushed = [_bets(ahead(int(by)), steepness) for by in rng.randint(n_rows // 8, n_rows - n_rows // 8 + 1, _PUSHED)]
    pushed = [bets for bets in pushed if bets.size >= _FEWEST]
    if len(pushed) < 2:
        return 1.0
    mean = np.concatenate(pushed).mean()
    of_sums = np.mean([(bets - mean).sum() ** 2 / bets.size for bets in pushed])
    return max(float(of_sums / max(np.concatenate(pushed).var(), 1e-12)), 1.0)
