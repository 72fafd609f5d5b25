"""How likely each pair is wrong, by how well its two rows fit each other beside others: by scores, and by ranks.

Scores are log likelihood ratios, in a unit that is estimated. Beside those of the same rows with others they make the
*evidence* e_i of a pair (`AnyPairs.evidence`). If scores are what they claim to be, real pairs have the evidence e
exp(b (e - m)) times as often as wrong pairs do, with b near 1 and m near 0; how often wrong pairs have it is told by
re-pairings. With a share w of wrong pairs, a pair then is

    w + (1 - w) exp(b (e - m))

times as frequent at e as a re-pairing, and wrong with the chance of the first term in this sum: a logistic function of
e with two parameters and the share. (Densities whose log ratio is linear: an exponential tilt, as in logistic
regression, here with pairs of which some are wrong.)

Scores are not always what they claim to be: a poor sample fits badly without being wrong. To x_i of a wrong pair its
y_i is any y: the share of other y that fit x_i better is uniform, whatever the row, its length, its noise. A real one's
is small, even where the sample is a poor one that fits badly. So do shares of other x for y_i. Both as normal scores,
added up and divided by the standard deviation that re-pairings have, make z_i, standard normal for wrong pairs. So
scores are believed where those whom they call wrong have ranks as by chance. Elsewhere ranks alone count: z is a
mixture of a standard normal distribution (wrong pairs) and another one (real pairs), of which only the lower part is
looked at, for ranks do not tell how much better the best is.

How heavy the lower tail of real pairs is decides who is innocent, and a few tens of rows hardly tell it: so no mixture
is chosen, but the chances are a mean over many of them, each by how well it explains all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import chdtri, expit, gammainc, ndtr, ndtri

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.any_pairs import AnyPairs, number_of
from inlier.rows.null_pairs import n_shifts, re_pairings

_FLOORS = 2.0  # times the least share that there can be, from which on the distribution of ranks is looked at
_LOWEST = -4.0  # z that is looked at
_BINS = 60
_RE_PAIRINGS = 1_000  # that tell how much the z of wrong pairs vary
_FEWEST_RE_PAIRINGS = 30
_IF_SIDES_AGREE = 2.0  # standard deviation of the sum of two normal scores that are always equal, the largest it can be
_RE_PAIRINGS_FOR_EVIDENCE = 8_000  # that tell what evidence wrong pairs have
_MOST_EVIDENCE = 30.0  # either way, that is told from more
_EVIDENCE_BINS = 240
_SPREAD_OF_SLOPE, _SPREAD_OF_LEVEL = 0.5, 3.0  # beforehand, of log b around 0 and of m around 0
_STEEPEST = 3.0  # log b, either way: six times its spread
_FEW_ARE_WRONG = 1 / 3  # exponent of the share's weight beforehand, as of a beta distribution; 1/2 is Jeffreys'
_FIRST_SHARES = (0.01, 0.1, 0.5)  # of wrong pairs, that the likeliest one is looked for from
_AROUND = np.array([6.0, 2.0, 1.0])  # the likeliest share (in standard errors), m and log b, where more are drawn first
_MOST_CALLED_WRONG = 0.5  # share of the pairs, above which scores are not believed
_AS_BY_CHANCE = 1.5  # standard errors by which the mean z of those whom scores call wrong may be above 0
# What mixtures may be like: centre, logarithm of the scale and skew of the real pairs' z. A skew of 0 is normal, of 1
# has an exponential lower tail.
_CENTRES, _LOG_SCALES, _SKEWS = (0.5, 6.5), (-2.0, 2.0), (-3.0, 3.0)
_LEAST_SKEW = 0.03  # that is told from none
_MIXTURES = 1_024
_ROUNDS = 6  # in which mixtures are drawn where those of the round before explain z well
_EFFECTIVE = 60.0  # mixtures that count at least, in all rounds but the last
_WIDER = 1.3  # than those of the round before are spread
_DEGREES = 5.0  # of freedom of the t-distribution that they are drawn from
_LEAST_SPREAD = np.array([0.3, 0.02, 0.02, 0.02])  # of the share (in standard errors) and the other parameters
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Own:
    """How well the rows of each pair fit each other; NaN where a pair could not be compared."""

    evidence: FloatArray
    of_wrong: FloatArray  # evidence of re-pairings
    z: FloatArray  # normal score of where its partner ranks
    better: FloatArray  # share of others that fit better
    least: float  # what counts as the share of others where none fits better

    @staticmethod
    def of(compared: Sequence[AnyPairs], n_pairs: int, rng: np.random.RandomState) -> Own:
        """Compare each pair's rows with others, and re-pairings likewise."""
        rows = np.arange(n_pairs)
        shifts = n_shifts(n_pairs, _RE_PAIRINGS_FOR_EVIDENCE)
        i, j = np.concatenate(list(re_pairings(compared[0].labels, shifts, rng)), axis=1)
        evidence, of_wrong = _mean_evidence(compared, rows, rows), _mean_evidence(compared, i, j)
        i, j = i[:_RE_PAIRINGS], j[:_RE_PAIRINGS]
        beaten, met = _others_that_fit_better(compared, rows, rows)
        wrong = _added_scores(*_others_that_fit_better(compared, i, j))
        wrong = wrong[np.isfinite(wrong)]
        spread = float(np.std(wrong)) if wrong.size >= _FEWEST_RE_PAIRINGS else _IF_SIDES_AGREE
        z = _added_scores(beaten, met) / spread
        known = met > 0
        better = np.where(known, beaten.mean(axis=0) / np.maximum(met, 1), np.nan)
        least = float(np.median(0.5 / (met[known] + 1))) if known.any() else 1.0
        return Own(evidence, of_wrong[np.isfinite(of_wrong)], z, better, least)


def _mean_evidence(compared: Sequence[AnyPairs], i: Array, j: Array) -> FloatArray:
    """Evidence for x_i with y_j, the mean over the deals."""
    total, count = np.zeros((2, i.size))
    for fold in compared:
        at = np.flatnonzero(fold.is_in_fold[i])
        found = fold.evidence(i[at], j[at])
        total[at] += np.nan_to_num(found)
        count[at] += np.isfinite(found)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


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


def chance_wrong(own: Own, is_pair: Mask, stands_for: FloatArray) -> FloatArray:
    """Chance that each pair is wrong; 1 where it could not be compared. ``stands_for`` says how many it was drawn from.

    By its evidence, if ranks agree, and otherwise by its rank.
    """
    z = np.where(is_pair, own.z, np.nan)
    by_scores = chance_by_scores(np.where(is_pair, own.evidence, np.nan), own.of_wrong, stands_for)
    known = np.isfinite(by_scores) & np.isfinite(z)
    called = by_scores[known]
    # where most pairs are wrong, re-pairings meet true partners, and few rows are left to compare with
    believed = known.any() and called.mean() <= _MOST_CALLED_WRONG
    believed = believed and called @ np.maximum(z[known], _LOWEST) <= _AS_BY_CHANCE * called.sum() ** 0.5
    if believed and np.array_equal(known, np.isfinite(z)):
        return np.where(known, by_scores, 1.0)
    by_ranks = chance_by_ranks(z, own.least)[0]
    return np.where(known, by_scores, by_ranks) if believed else by_ranks


def chance_by_scores(evidence: FloatArray, of_wrong: FloatArray, stands_for: FloatArray) -> FloatArray:
    """Chance that each pair is wrong, from its evidence and that of re-pairings; NaN where it has none.

    The mean over shares of wrong pairs, slopes b and levels m by their posterior weights, given the likelihood that of
    pairs and re-pairings together these are the pairs.
    """
    chance, known = np.full(evidence.size, np.nan), np.isfinite(evidence)
    if not known.any() or of_wrong.size < _FEWEST_RE_PAIRINGS:
        return chance
    edges = np.linspace(-_MOST_EVIDENCE, _MOST_EVIDENCE, _EVIDENCE_BINS + 1)
    inner, middle = edges[1:-1], (edges[1:] + edges[:-1]) / 2
    place, of_null = np.searchsorted(inner, evidence[known]), np.searchsorted(inner, of_wrong)
    pairs = np.bincount(place, stands_for[known], _EVIDENCE_BINS)
    null = np.bincount(of_null, minlength=_EVIDENCE_BINS)
    met = np.flatnonzero(pairs + null)
    n = float(pairs.sum())

    def explain(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        angle, level, slope = points.T
        share = np.clip(np.sin(angle / (2 * n**0.5)) ** 2, _TINY, 1 - 1e-12)
        wrong = np.log(share)[:, None]
        right = np.log1p(-share)[:, None] + np.exp(slope)[:, None] * (middle - level[:, None])
        odds = np.logaddexp(wrong, right)[:, met] + np.log(n / of_wrong.size)
        fit = -np.logaddexp(0, -odds) @ pairs[met] - np.logaddexp(0, odds) @ null[met]
        fit -= (slope / _SPREAD_OF_SLOPE) ** 2 / 2 + (level / _SPREAD_OF_LEVEL) ** 2 / 2
        fit += (2 * _FEW_ARE_WRONG - 1) * np.log(np.maximum(share, 1e-3 / n))
        return fit, expit(wrong - right)

    limits = np.transpose([(0.0, np.pi * n**0.5), (-_MOST_EVIDENCE, _MOST_EVIDENCE), (-_STEEPEST, _STEEPEST)])
    likeliest = _likeliest(lambda point: float(explain(point[None])[0][0]), n, limits)
    box = np.clip([likeliest - _AROUND, likeliest + _AROUND], *limits)
    weight, _, of_bin = _likely(explain, box, limits)
    chance[known] = np.maximum.accumulate((weight @ of_bin)[::-1])[::-1][place]  # the worse, the likelier wrong
    return chance


def _likeliest(fit: Callable[[FloatArray], float], n: float, limits: FloatArray) -> FloatArray:
    """Share, level and slope of the largest posterior weight, from several shares on."""
    starts = [np.array([2 * n**0.5 * np.arcsin(share**0.5), 0.0, 0.0]) for share in _FIRST_SHARES]
    found = [minimize(lambda point: -fit(np.clip(point, *limits)), start, method="Nelder-Mead") for start in starts]
    best: FloatArray = np.clip(min(found, key=lambda one: float(one.fun)).x, *limits)
    return best


def chance_by_ranks(z: FloatArray, least_share: float) -> tuple[FloatArray, float]:
    """Chance that each pair is wrong, from its z, and the share of wrong pairs; 1 where z is NaN.

    The mean over mixtures by their posterior weights: beforehand shares have Jeffreys' weights for a proportion, skews
    and logarithms of scales standard normal ones, and centres equal ones.
    """
    known = np.isfinite(z)
    if not known.any():
        return np.ones(z.size), 1.0
    ceiling = -float(ndtri(min(_FLOORS * least_share, 0.5)))
    edges, n = np.linspace(_LOWEST, ceiling, _BINS + 1), int(known.sum())
    place = np.clip(np.searchsorted(edges, z[known], side="right") - 1, 0, _BINS)  # the last is all above the ceiling
    observed = np.bincount(place, minlength=_BINS + 1)

    def explain(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        angle, centre, log_scale, skew = points.T
        share = np.sin(angle / (2 * n**0.5)) ** 2
        wrong = share[:, None] * _in_bins(ndtr(edges))
        right = (1 - share)[:, None] * np.maximum(_real_pairs(edges, centre, log_scale, skew), _TINY)
        fit = np.log(np.maximum(wrong + right, _TINY)) @ observed - (skew**2 + log_scale**2) / 2
        return fit, wrong / np.maximum(wrong + right, _TINY)

    # the angle of the root of a share, in units of its standard error: Jeffreys' weights are even there
    limits = np.transpose([(0.0, np.pi * n**0.5), _CENTRES, _LOG_SCALES, _SKEWS])
    weight, points, of_bin = _likely(explain, limits, limits)
    chance = np.ones(z.size)
    chance[known] = np.maximum.accumulate((weight @ of_bin)[::-1])[::-1][place]  # the worse, the likelier wrong
    return chance, float(weight @ np.sin(points[:, 0] / (2 * n**0.5)) ** 2)


def _likely(
    explain: Callable[[FloatArray], tuple[FloatArray, FloatArray]], box: FloatArray, limits: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights of mixtures, their parameters, a row each, and what they say beside how well they explain the pairs.

    Adaptive importance sampling: mixtures are drawn from where those of the round before explain the pairs well; at
    first from anywhere in the box. The points are spread evenly, so the same pairs always have the same answer.
    """
    (low, high), d = limits, limits.shape[1]
    u = _evenly_spread(_MIXTURES, d + 1)
    t = ndtri(u[:, :d]) * np.sqrt(_DEGREES / chdtri(_DEGREES, u[:, d:]))
    drawn_by, points = np.zeros(_MIXTURES), box[0] + u[:, :d] * (box[1] - box[0])
    for number in range(_ROUNDS):
        inside = ((points > low) & (points < high)).all(axis=1)
        fit, said = explain(np.clip(points, low, high))
        weight = _weights(np.where(inside, fit - drawn_by, -np.inf), _EFFECTIVE if number < _ROUNDS - 1 else 1.0)
        if number < _ROUNDS - 1:
            mean = weight @ points
            spread = (points - mean).T @ ((points - mean) * weight[:, None]) + np.diag(_LEAST_SPREAD[:d] ** 2)
            points = mean + _WIDER * t @ np.linalg.cholesky(spread).T
            drawn_by = -(_DEGREES + d) / 2 * np.log1p((t**2).sum(axis=1) / _DEGREES)
    return weight, np.clip(points, low, high), said


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
