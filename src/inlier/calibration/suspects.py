"""How likely each pair is wrong, by where its own partner ranks among all others.

A wrong pair's y_i is any y to x_i: the share of other y that fit x_i better is uniform, whatever the row, its length,
its noise. A real one's is small, even where the sample is a poor one that fits badly. So do shares of other x for y_i.
Both as normal scores, added up and divided by the standard deviation that re-pairings have, make z_i. Of all pairs,
z is a mixture of a standard normal distribution (wrong pairs) and another one (real pairs), of which only the lower
part is looked at, for ranks do not tell how much better the best is. How heavy that lower tail is decides who is
innocent, and a few tens of rows hardly tell it: so no mixture is chosen, but the chances are a mean over many of them,
each by how well it explains all z.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri, gammainc, ndtr, ndtri

from inlier._typing import Array, FloatArray
from inlier.calibration.any_pairs import AnyPairs, number_of
from inlier.rows.null_pairs import n_shifts, re_pairings

_FLOORS = 2.0  # times the least share that there can be, from which on the distribution of ranks is looked at
_LOWEST = -4.0  # z that is looked at
_BINS = 60
_RE_PAIRINGS = 1_000  # that tell how much the z of wrong pairs vary
_FEWEST_RE_PAIRINGS = 30
# What mixtures may be like: centre, logarithm of the scale and skew of the real pairs' z. A skew of 0 is normal, of 1
# has an exponential lower tail.
_CENTRES, _LOG_SCALES, _SKEWS = (0.5, 6.5), (-2.0, 2.0), (-3.0, 3.0)
_LEAST_SKEW = 0.03  # that is told from none
_MIXTURES = 1_024
_ROUNDS = 6  # in which mixtures are drawn where those of the round before explain z well
_EFFECTIVE = 60.0  # mixtures that count at least, in all rounds but the last
_WIDER = 1.3  # than those of the round before are spread
_DEGREES = 5.0  # of freedom of the t-distribution that they are drawn from
_LEAST_SPREAD = np.array([0.3, 0.02, 0.02, 0.02])
_TINY = 1e-300


def own_rank_scores(
    compared: Sequence[AnyPairs], n_pairs: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray, float]:
    """Normal score of where each pair's partner ranks, the share of others that fit better, and the least of shares.

    The last is what counts as the share of others where none fits better. NaN where a pair could not be compared.
    """
    i, j = np.concatenate(list(re_pairings(compared[0].labels, n_shifts(n_pairs, _RE_PAIRINGS), rng)), axis=1)
    i, j = i[:_RE_PAIRINGS], j[:_RE_PAIRINGS]
    rows = np.arange(n_pairs)
    beaten, met = _others_that_fit_better(compared, rows, rows)
    wrong = _added_scores(*_others_that_fit_better(compared, i, j))
    wrong = wrong[np.isfinite(wrong)]
    z = _added_scores(beaten, met) / (float(np.std(wrong)) if wrong.size >= _FEWEST_RE_PAIRINGS else 2.0)
    known = met > 0
    better = np.where(known, beaten.mean(axis=0) / np.maximum(met, 1), np.nan)
    return z, better, float(np.median(0.5 / (met[known] + 1))) if known.any() else 1.0


def _others_that_fit_better(compared: Sequence[AnyPairs], i: Array, j: Array) -> tuple[FloatArray, FloatArray]:
    """How many other y fit x_i better than y_j does, how many other x fit y_j better, and how many there are."""
    beaten, met = np.zeros((2, i.size)), np.zeros(i.size)
    for fold in compared:
        at = np.flatnonzero(fold.is_in_fold[i])
        x, y, rivals = i[at], j[at], fold.rivals
        score = fold.pair_scores(x, y).astype(np.float32)[:, None]
        sides = (fold.scores(x, rivals), x, y), (fold.scores(rivals, y).T, y, x)
        for side, (scores, of, beside) in enumerate(sides):
            may = fold.allowed(of, rivals)
            if i is not j:
                may &= rivals != beside[:, None]
            beaten[side, at] += number_of((scores >= score) & may)
        met[at] += number_of(may)
    return beaten, met


def _added_scores(beaten: FloatArray, met: FloatArray) -> FloatArray:
    """Normal scores of the shares of other y and x that fit better, added up; NaN where there are no others."""
    shares = np.where(met > 0, (beaten + 0.5) / (met + 1), np.nan)
    added: FloatArray = -ndtri(shares).sum(axis=0)
    return added


def chance_wrong(z: FloatArray, least_share: float) -> tuple[FloatArray, float]:
    """Chance that each pair is wrong, from its z, and the share of wrong pairs; 1 where z is NaN.

    The mean over mixtures by their posterior weights: beforehand shares have Jeffreys' weights for a proportion, skews
    and logarithms of scales standard normal ones, and centres equal ones.
    """
    known = np.isfinite(z)
    if not known.any():
        return np.ones(z.size), 1.0
    ceiling = -float(ndtri(min(_FLOORS * least_share, 0.5)))
    edges = np.linspace(_LOWEST, ceiling, _BINS + 1)
    place = np.clip(np.searchsorted(edges, z[known], side="right") - 1, 0, _BINS)  # the last is all above the ceiling
    weight, share, wrong, right = _likely_mixtures(edges, np.bincount(place, minlength=_BINS + 1))
    of_bin = weight @ (wrong / (wrong + right))
    chance = np.ones(z.size)
    chance[known] = np.maximum.accumulate(of_bin[::-1])[::-1][place]  # the worse the rank, the likelier wrong
    return chance, float(weight @ share)


def _likely_mixtures(edges: FloatArray, observed: Array) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Weights of mixtures, their shares of wrong pairs, and of wrong and of real pairs in each bin, a row each.

    Adaptive importance sampling: mixtures are drawn from where those of the round before explain the counts well; at
    first from anywhere. The points are spread evenly, so the same counts always have the same answer.
    """
    u, n = _evenly_spread(_MIXTURES, 5), int(observed.sum())
    # the angle of the root of a share, in units of its standard error: Jeffreys' weights are even there
    low, high = np.transpose([(0.0, np.pi * n**0.5), _CENTRES, _LOG_SCALES, _SKEWS])
    t = ndtri(u[:, :4]) * np.sqrt(_DEGREES / chdtri(_DEGREES, u[:, 4:]))
    drawn_by, points = np.zeros(_MIXTURES), low + u[:, :4] * (high - low)
    for number in range(_ROUNDS):
        inside = ((points > low) & (points < high)).all(axis=1)
        angle, centre, log_scale, skew = np.clip(points, low, high).T
        share = np.sin(angle / (2 * n**0.5)) ** 2
        wrong = share[:, None] * _in_bins(ndtr(edges))
        right = (1 - share)[:, None] * _real_pairs(edges, centre, log_scale, skew)
        fit = np.log(np.maximum(wrong + right, _TINY)) @ observed - (skew**2 + log_scale**2) / 2
        weight = _weights(np.where(inside, fit - drawn_by, -np.inf), _EFFECTIVE if number < _ROUNDS - 1 else 1.0)
        if number < _ROUNDS - 1:
            mean = weight @ points
            spread = (points - mean).T @ ((points - mean) * weight[:, None]) + np.diag(_LEAST_SPREAD**2)
            points = mean + _WIDER * t @ np.linalg.cholesky(spread).T
            drawn_by = -(_DEGREES + 4) / 2 * np.log1p((t**2).sum(axis=1) / _DEGREES)
    return weight, share, wrong, np.maximum(right, _TINY)


def _weights(fit: FloatArray, effective: float) -> FloatArray:
    """Weights in proportion to exp(fit), made more even where fewer than so many would count."""
    heat = 1.0
    while True:
        weight = np.exp((fit - fit.max()) / heat)
        weight /= weight.sum()
        if 1 / np.sum(weight**2) >= effective or heat > 1e6:
            return weight
        heat *= 1.5


def _evenly_spread(n: int, d: int) -> FloatArray:
    """Points in the unit cube: multiples of powers of 1 / g, g^(d+1) = g + 1 (an additive recurrence)."""
    g = 2.0
    for _ in range(40):
        g = (1 + g) ** (1 / (d + 1))
    return (0.5 + np.arange(1, n + 1)[:, None] * g ** -np.arange(1.0, d + 1)) % 1


def _real_pairs(edges: FloatArray, centre: FloatArray, log_scale: FloatArray, skew: FloatArray) -> FloatArray:
    """Shares of the bins, a row for each of what real pairs' z may be like.

    Log-gamma distributions (Prentice, 1974) with a mode, a scale and a skew: k exp(skew u) is gamma, k = 1 / skew^2.
    """
    skew = np.where(np.abs(skew) < _LEAST_SKEW, _LEAST_SKEW, skew)[:, None]
    u = (edges - centre[:, None]) / np.exp(log_scale)[:, None]
    below = gammainc(skew**-2, skew**-2 * np.exp(np.minimum(skew * u, 600.0)))
    return _in_bins(np.where(skew > 0, below, 1 - below))


def _in_bins(below: FloatArray) -> FloatArray:
    """Shares of the bins, from those below their edges; the first takes all below it, the last all above."""
    shares = np.concatenate([np.diff(below, axis=-1), 1 - below[..., -1:]], axis=-1)
    shares[..., 0] += below[..., 0]
    return shares
