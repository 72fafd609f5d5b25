"""How likely each pair is wrong, by where its own partner ranks among all others.

A wrong pair's y_i is any y to x_i: the share of other y that fit x_i better is uniform, whatever the row, its length,
its noise. A real one's is small, even where the sample is a poor one that fits badly. So do shares of other x for y_i.
Both as normal scores, averaged and divided by the standard deviation that wrong pairs have, make z_i. Of all pairs,
z is a mixture of a standard normal distribution (wrong pairs) and another one with longer tails (real pairs), of which
only the lower part is looked at, for ranks do not tell how much better the best is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtr, ndtri, stdtr
from scipy.stats import norm
from scipy.stats import t as student

from inlier._typing import FloatArray
from inlier.calibration.any_pairs import AnyPairs

_FLOORS = 2.0  # times the least share that there can be, from which on the distribution of ranks is looked at
_FREEDOMS = (15, 100, 5, 2)  # degrees, of the Student t of real pairs' z: the usual ones, and how heavy it may be
_LOWEST = -4.0  # z that is looked at
_BINS = 100
_STARTS = ((-4.0, 2.5, 0.0), (-4.0, 5.0, 0.7), (-1.0, 4.0, 0.3))  # logit of the share, centre, log scale
_BOUNDS = ((-9.0, 9.0), (0.5, 12.0), (-0.7, 1.6))
_MOST_FOR_CORRELATION = 300  # rows of a fold, each with each
_TINY = 1e-300


def own_rank_scores(compared: Sequence[AnyPairs], n_pairs: int) -> tuple[FloatArray, FloatArray, float]:
    """Normal score of where each pair's partner ranks, the share of others that fit better, and the least of scores.

    The last is what counts as the share of others where none fits better. NaN where a pair could not be compared.
    """
    beaten, met = np.zeros((2, n_pairs)), np.zeros(n_pairs)
    correlations = []
    for fold in compared:
        rows, rivals = fold.fold.rows, fold.rivals
        own, may = fold.own_scores(rows), fold.allowed(rows, rivals)
        beaten[0, rows] += ((fold.scores(rows, rivals) >= own[:, None]) & may).sum(axis=1)
        beaten[1, rows] += ((own[:, None] <= fold.scores(rivals, rows).T) & may).sum(axis=1)
        met[rows] += may.sum(axis=1)
        correlations.append(_correlation_of_wrong(fold))
    known = met > 0
    shares = np.full((2, n_pairs), np.nan)
    shares[:, known] = (beaten[:, known] + 0.5) / (met[known] + 1)
    correlation = float(np.nanmean(correlations)) if np.isfinite(correlations).any() else 1.0
    z = -ndtri(shares).sum(axis=0) / np.sqrt(2 * (1 + correlation))
    better = np.where(known, beaten.mean(axis=0) / np.maximum(met, 1), np.nan)
    return z, better, float(np.median(0.5 / (met[known] + 1))) if known.any() else 1.0


def _correlation_of_wrong(fold: AnyPairs) -> float:
    """Correlation, over wrong pairs, of the normal scores of the rank of y among others for x, and of x for y."""
    some = fold.rivals[:_MOST_FOR_CORRELATION]
    scores, may = fold.scores(some, some), fold.allowed(some, some)
    if may.sum() < _BINS:
        return float("nan")
    ranks = [np.argsort(np.argsort(side, axis=1), axis=1) for side in (scores, scores.T)]
    of_x, of_y = (ndtri((rank + 0.5) / some.size) for rank in ranks)
    return float(np.clip(np.corrcoef(of_x[may], of_y.T[may])[0, 1], 0.0, 1.0))


def chance_wrong(z: FloatArray, least_share: float) -> tuple[FloatArray, float]:
    """Chance that each pair is wrong, from its z, and the share of wrong pairs; 1 where z is NaN.

    The lower tail of the real pairs' z is the usual one, unless another explains all z better by more than Schwarz's
    log(n) / 2: a few wrong pairs would do for a heavy tail.
    """
    known = np.isfinite(z)
    if not known.any():
        return np.ones(z.size), 1.0
    ceiling = -float(ndtri(min(_FLOORS * least_share, 0.5)))
    clipped = np.clip(z[known], _LOWEST, None)
    usual, *others = (_Mixture.of(clipped, ceiling, freedom) for freedom in _FREEDOMS)
    best = min(others, key=lambda found: found.loss)
    mixture = best if usual.loss - best.loss > np.log(clipped.size) / 2 else usual
    chance = np.ones(z.size)
    chance[known] = mixture.chance_wrong(clipped, ceiling)
    order = np.argsort(-np.where(known, z, -np.inf))
    chance[order] = np.maximum.accumulate(chance[order])  # the worse the rank, the likelier wrong
    return chance, mixture.share


@dataclass(frozen=True)
class _Mixture:
    """A share of standard normal z, of wrong pairs, beside Student's t with a centre and a scale, of real ones."""

    share: float
    centre: float
    scale: float
    freedom: float
    loss: float  # minus the log likelihood, and a bound on the scale

    @staticmethod
    def of(z: FloatArray, ceiling: float, freedom: float) -> _Mixture:
        """Fit it to the histogram of z up to the ceiling, and how many are above."""
        edges = np.linspace(_LOWEST, ceiling, _BINS + 1)
        observed = np.append(np.histogram(z, edges)[0], (z > ceiling).sum())
        of_wrong = np.append(np.diff(ndtr(edges)), ndtr(-ceiling))

        def loss(parameters: FloatArray) -> float:
            share, (centre, log_scale) = expit(parameters[0]), parameters[1:]
            below = stdtr(freedom, (edges - centre) / np.exp(log_scale))
            likelihood = share * of_wrong + (1 - share) * np.append(np.diff(below), 1 - below[-1])
            return -float(observed @ np.log(np.maximum(likelihood, _TINY))) + 0.5 * float(log_scale) ** 2

        fits = (minimize(loss, start, method="L-BFGS-B", bounds=_BOUNDS) for start in _STARTS)
        best = min(fits, key=lambda fit: fit.fun)
        return _Mixture(float(expit(best.x[0])), best.x[1], float(np.exp(best.x[2])), freedom, float(best.fun))

    def chance_wrong(self, z: FloatArray, ceiling: float) -> FloatArray:
        """Of each z; all above the ceiling are alike."""
        inside = z <= ceiling
        of_wrong = np.where(inside, norm.pdf(z), ndtr(-ceiling))
        above = stdtr(self.freedom, (self.centre - ceiling) / self.scale)
        of_real = np.where(inside, student.pdf(z, self.freedom, self.centre, self.scale), above)
        wrong, real = self.share * of_wrong, (1 - self.share) * of_real
        return np.asarray(wrong / np.maximum(wrong + real, _TINY))
