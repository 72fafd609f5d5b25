"""What speaks for x_i with y_j: how much more often partners have such odds than strangers, one way or both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from inlier._typing import Array, FloatArray
from inlier.repair.odds import Odds
from inlier.rows.null_pairs import may_be_re_paired

_STRANGERS = 500_000  # pairs of tried rows with what belongs to others, at most, either way
_LOWEST = -60.0  # odds below which nothing is told apart
_TABLE = 500  # steps that odds are told apart in
_SLOPE = 1e-3  # of lambda, where it does not rise: keeps candidates in the order of their odds


@dataclass(frozen=True, eq=False)
class Strangers:
    """Tried x with y of accepted pairs, and x of these with tried y."""

    gone: FloatArray  # their odds, as if the partner of what was accepted were gone
    there: FloatArray  # as it is
    tried: Array  # which row was tried

    @staticmethod
    def of(
        odds: Odds, labels: Array, rows: Array, candidates: Array, right: Array, rng: np.random.RandomState
    ) -> Strangers:
        """All of them, or some."""
        gone, there, tried = [], [], []
        for side, some in enumerate((rows, candidates)):
            size = some.size * right.size
            at = np.arange(size) if size <= _STRANGERS else rng.randint(size, size=_STRANGERS)
            one, other = some[at // right.size], right[at % right.size]
            i, j = (one, other) if side == 0 else (other, one)
            apart = may_be_re_paired(labels, i, j)
            i, j = i[apart], j[apart]
            beside_x = (odds.beside_x if side == 0 else odds.others_of_x)[i]
            beside_y = (odds.beside_y if side == 1 else odds.others_of_y)[j]
            scores = odds.pair_scores(i, j)
            gone.append(scores - np.maximum(beside_x, beside_y))
            there.append(scores - np.maximum(odds.beside_x[i], odds.beside_y[j]))
            tried.append(one[apart])
        return Strangers(np.concatenate(gone), np.concatenate(there), np.concatenate(tried))


@dataclass(frozen=True, eq=False)
class LogRatio:
    """lambda: how much more often pairs have odds r than strangers do, in logarithms; rising, kept as a table."""

    highest: float
    values: FloatArray

    @staticmethod
    def of(pairs: FloatArray, weights: FloatArray, strangers: FloatArray) -> LogRatio:
        """Estimate it: the best rising ratio, as if one more of the strangers were on top."""
        highest = max(float(pairs.max()), float(strangers.max()))
        table = LogRatio(highest, np.empty(0))
        of_pairs = np.bincount(table.place(pairs), weights, minlength=_TABLE) / max(weights.sum(), 1e-9)
        of_strangers = np.bincount(table.place(strangers), minlength=_TABLE) / strangers.size
        of_strangers[-1] += 1 / strangers.size
        met = np.flatnonzero(of_pairs + of_strangers)
        weight = (of_pairs + of_strangers)[met]
        rising = IsotonicRegression(y_min=1e-9, y_max=1 - 1e-9, out_of_bounds="clip")
        rising.fit(met, of_pairs[met] / weight, sample_weight=weight)
        return LogRatio(highest, logit(rising.predict(np.arange(_TABLE))))

    def place(self, odds: FloatArray) -> Array:
        """Where odds stand in the table."""
        width = max(self.highest - _LOWEST, 1e-9)
        return np.clip((np.maximum(odds, _LOWEST) - _LOWEST) / width * _TABLE, 0, _TABLE - 1).astype(np.int64)

    def __call__(self, odds: FloatArray) -> FloatArray:
        """lambda of these odds."""
        return self.values[self.place(odds)] + _SLOPE * np.clip(odds, _LOWEST, -_LOWEST)


@dataclass(frozen=True, eq=False)
class Evidence:
    """t, from the odds of x_i with y_j and of x_j with y_i, which are -inf where there is no way back."""

    log_ratio: LogRatio
    m: float
    exchanged: float = 0.5  # share of exchanges among displaced rows

    def returned(self, back: FloatArray) -> FloatArray:
        """m P: how much more often than by chance the way back is one to the partner."""
        found: FloatArray = self.m * np.where(back > -np.inf, expit(self.log_ratio(back) - np.log(self.m)), 0.0)
        return found

    def __call__(self, onward: FloatArray, back: FloatArray) -> FloatArray:
        """t of these odds onward and back."""
        exchange = self.exchanged
        evidence: FloatArray = self.log_ratio(onward) + np.log(1 - exchange + exchange * self.returned(back))
        return evidence
