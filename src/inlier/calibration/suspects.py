"""How likely each pair is wrong, by where its own partner ranks among all others.

A wrong pair's y_i is any y to x_i: the share of other y that fit x_i better is uniform, whatever the row, its length,
its noise. A real one's is small, even where the sample is a poor one that fits badly. So do shares of other x for y_i.
Both as normal scores, averaged and divided by the standard deviation that wrong pairs have, make z_i. Of all pairs,
z is a mixture of a standard normal distribution (wrong pairs) and another one (real pairs), of which only the lower
part is looked at, for ranks do not tell how much better the best is. How heavy that lower tail is decides who is
innocent, and a few tens of rows hardly tell it: so no mixture is chosen, but the chances are a mean over many of them,
each by how well it explains all z.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammainc, gammaincc, ndtr, ndtri

from inlier._typing import FloatArray
from inlier.calibration.any_pairs import AnyPairs

_FLOORS = 2.0  # times the least share that there can be, from which on the distribution of ranks is looked at
_LOWEST = -4.0  # z that is looked at
_BINS = 60
_SKEWS = np.arange(-1.0, 2.1, 0.5)  # of the real pairs' z: 0 is normal, 1 has an exponential lower tail
_CENTRES = np.linspace(0.5, 6.5, 19)
_LOG_SCALES = np.linspace(-1.2, 1.2, 9)
_N_SHARES = 25  # of wrong pairs, from a third of a pair to nearly all
_MOST_FOR_CORRELATION = 300  # rows of a fold, each with each
_FEWEST_FOR_CORRELATION = 100  # wrong pairs among them
_NEGLIGIBLE = 1e-9  # weight of a mixture
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
    if may.sum() < _FEWEST_FOR_CORRELATION:
        return float("nan")
    ranks = [np.argsort(np.argsort(side, axis=1), axis=1) for side in (scores, scores.T)]
    of_x, of_y = (ndtri((rank + 0.5) / some.size) for rank in ranks)
    return float(np.clip(np.corrcoef(of_x[may], of_y.T[may])[0, 1], 0.0, 1.0))


def chance_wrong(z: FloatArray, least_share: float) -> tuple[FloatArray, float]:
    """Chance that each pair is wrong, from its z, and the share of wrong pairs; 1 where z is NaN.

    The mean over mixtures by their posterior weights: beforehand shares have Jeffreys' weights for a proportion, skews
    and logarithms of scales standard normal ones.
    """
    known = np.isfinite(z)
    if not known.any():
        return np.ones(z.size), 1.0
    ceiling = -float(ndtri(min(_FLOORS * least_share, 0.5)))
    edges = np.linspace(_LOWEST, ceiling, _BINS + 1)
    place = np.clip(np.searchsorted(edges, z[known], side="right") - 1, 0, _BINS)  # the last is all above the ceiling
    observed = np.bincount(place, minlength=_BINS + 1)
    of_wrong, (of_real, prior) = _in_bins(ndtr(edges)), _real_pairs(edges)
    shares = np.geomspace(0.3 / place.size, 0.98, _N_SHARES)
    met = observed > 0
    fit = [np.log(w * of_wrong[met] + (1 - w) * of_real[:, met]) @ observed[met] + np.log(w) / 2 for w in shares]
    weight = np.exp(np.add(fit, prior) - np.max(np.add(fit, prior)))
    weight /= weight.sum()
    of_bin = np.zeros(_BINS + 1)
    for w, by in zip(shares, weight, strict=True):
        likely = by > _NEGLIGIBLE
        of_bin += by[likely] @ (w * of_wrong / (w * of_wrong + (1 - w) * of_real[likely]))
    chance = np.ones(z.size)
    chance[known] = np.maximum.accumulate(of_bin[::-1])[::-1][place]  # the worse the rank, the likelier wrong
    return chance, float(weight.sum(axis=1) @ shares)


def _real_pairs(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What real pairs' z may be like, a row each: shares of the bins; and the logarithms of their weights beforehand.

    Log-gamma distributions (Prentice, 1974) with a mode, a scale and a skew: k exp(skew u) is gamma, k = 1 / skew^2.
    """
    u = (edges - _CENTRES[:, None, None]) / np.exp(_LOG_SCALES)[:, None]
    below = [ndtr(u) if skew == 0 else _below(u, skew) for skew in _SKEWS]
    prior = -(np.square(_SKEWS)[:, None, None] + np.square(_LOG_SCALES)) / 2
    prior = np.broadcast_to(prior, (_SKEWS.size, _CENTRES.size, _LOG_SCALES.size))
    return np.maximum(_in_bins(np.array(below)).reshape(prior.size, -1), _TINY), prior.ravel()


def _below(u: FloatArray, skew: float) -> FloatArray:
    k = skew**-2
    return (gammainc if skew > 0 else gammaincc)(k, k * np.exp(np.minimum(skew * u, 600.0)))


def _in_bins(below: FloatArray) -> FloatArray:
    """Shares of the bins, from those below their edges; the first takes all below it, the last all above."""
    shares = np.concatenate([np.diff(below, axis=-1), 1 - below[..., -1:]], axis=-1)
    shares[..., 0] += below[..., 0]
    return shares
