"""From scores and null scores to p-values, q-values and the share of real pairs.

Usable on its own: give any scores that are larger for real pairs, and scores of the same kind for pairs that
are known to be wrong (re-pairings), and `calibrate` says which scores are too large to be chance.

All steps take scores as a histogram, values and how often each occurs, so that few scores one by one and millions in
bins are judged by the same lines. Scores fall and null scores rise: the most convincing come first, p-values rise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from inlier._checks import check_number
from inlier._typing import Array, FloatArray, Mask
from inlier.rows.backend import namespace, to_host
from inlier.rows.compiled import compiled

KEPT_NULL_SCORES = 10_000  # that estimators keep: as many as draw the picture of all
_LAMBDAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # of Storey's estimate
_ERROR_INFLATION = 2.0  # lambda is chosen from the data, and p-values share re-pairings: both add to the error
_TWO_SIDED = 1.96  # standard errors, beyond which chance goes once in twenty
_NOT_SMALL, _MIDDLE = 0.01, 0.5  # p-values between which real pairs are on their way among the wrong ones
_FEW_ON_THEIR_WAY = 0.2  # of the real pairs; where more are, a pair that looks wrong may well be real
_MOST_LIKELY_WRONG = 0.5  # a pair is not accepted if it is more likely wrong than real
_TAIL_SHARE, _FEWEST_IN_TAIL = 0.02, 20  # the upper part of the null that its exponential tail is fitted to
_QUANTILES = 50  # between which the rest of the null has a histogram
_FEWEST_CLEAR = 5  # clear inliers that it takes to describe the inliers' scores
_TOLD_BY_RANKS = 5.0  # wrong pairs expected among those that score as high, from which on ranks tell what is real
_MEDIAN_TO_SIGMA = 1.4826
_STUDENT_PEAK = 8 / (3 * np.pi * np.sqrt(5))  # of Student's t with five degrees of freedom
_TINY = np.finfo(np.float64).tiny
_DROPPED_BITS = 52 - 8  # of the fraction of a float64: with what is left, 256 numbers are told apart in an octave
_MOST_BINS = 32 << 8  # 32 octaves below the largest distance; what is smaller counts with the smallest


class NullFraction(NamedTuple):
    """Share of wrong pairs, its standard error, and the share that q-values are computed with."""

    share: float
    error: float
    taken: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the scores are worth, one entry per pair.

    Attributes
    ----------
    p_values : ndarray of shape (n,)
        Chance that a wrong pair scores as high.
    q_values : ndarray of shape (n,)
        Smallest false discovery rate at which the pair is accepted.
    inlier_fraction, inlier_fraction_error : float
        Share of real pairs, and its standard error.
    detection_p_value : float
        Chance of evidence this strong anywhere if no pair were real (Simes).

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.calibration import calibrate
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate([rng.normal(6, 1, size=300), rng.normal(0, 1, size=700)])
    >>> found = calibrate(scores, rng.normal(0, 1, size=100_000))
    >>> int(found.accepted(0.01).sum()), round(found.inlier_fraction, 2)
    (298, 0.29)
    """

    p_values: FloatArray
    q_values: FloatArray
    inlier_fraction: float
    inlier_fraction_error: float
    detection_p_value: float

    def accepted(self, alpha: float) -> Mask:
        """Pairs called real, with a false discovery rate of at most ``alpha``."""
        return self.q_values <= alpha

    def at(self, entries: Array) -> Calibration:
        """What these entries are worth, each as often as it is named."""
        return replace(self, p_values=np.take(self.p_values, entries), q_values=np.take(self.q_values, entries))


def on_their_way(p_values: Array) -> Mask:
    """P-values that are neither small nor those of wrong pairs alone: real pairs that have them look half wrong."""
    return (p_values > _NOT_SMALL) & (p_values <= _MIDDLE)


def tells_wrong(n_on_their_way: int, n_pairs: int, inlier_fraction: float) -> bool:
    """Whether a pair that scores as wrong ones do is more likely wrong than real.

    It is where real pairs stand apart from wrong ones. Where a good part of them is on the way there, beyond what the
    luck of the wrong ones explains, others have arrived: then most of the pairs that look wrong may be real.

    Examples
    --------
    >>> from inlier.calibration.p_values import tells_wrong
    >>> tells_wrong(100, 1000, inlier_fraction=0.8), tells_wrong(300, 1000, inlier_fraction=0.8)
    (True, False)
    """
    by_chance = (1 - inlier_fraction) * (_MIDDLE - _NOT_SMALL) / n_pairs
    hidden = _share_hidden(n_on_their_way / n_pairs, inlier_fraction)
    return hidden <= _FEW_ON_THEIR_WAY * inlier_fraction + _TWO_SIDED * math.sqrt(by_chance)


def _share_hidden(on_their_way: float, inlier_fraction: float) -> float:
    """Share of the pairs that are on their way among the wrong ones, less the wrong ones that are there by chance."""
    return max(on_their_way - (1 - inlier_fraction) * (_MIDDLE - _NOT_SMALL), 0.0)


def calibrate(
    scores: Any,
    null_scores: Any,
    null_fraction: NullFraction | tuple[float, float] | None = None,
    counts: Any = None,
) -> Calibration:
    """Judge scores against the scores of pairs that are known to be wrong.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Larger means more like a real pair.
    null_scores : array-like of shape (m,)
        Scores of wrong pairs, drawn as the wrong ones among the n are.
    null_fraction : (float, float), optional
        Share of wrong pairs and its standard error, where it is known better than from these scores; q-values then
        take their sum.
    counts : array-like of int, shape (n,), optional
        How many pairs have each score, where many are given as a histogram; the results are one per score.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.calibration.p_values import calibrate
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate([rng.normal(8, 1, 300), rng.normal(0, 1, 700)])
    >>> found = calibrate(scores, rng.normal(0, 1, 100_000))
    >>> int(found.accepted(0.01).sum()), f"{found.inlier_fraction:.2f}"
    (300, '0.29')
    """
    scores, null = _as_scores(scores, "scores"), _rising(_as_scores(null_scores, "null_scores"))
    counts = np.ones(scores.size, np.int64) if counts is None else np.asarray(counts)
    if null_fraction is not None and not isinstance(null_fraction, NullFraction):
        share = check_number(null_fraction[0], "null_fraction", low=0, high=1)
        error = check_number(null_fraction[1], "its error", low=0)
        null_fraction = NullFraction(share, error, min(share + error, 1.0))
    order = np.argsort(-scores)
    falling = scores[order]
    # Searched in rising order: several times faster.
    n_above = null.size - np.searchsorted(null, falling[::-1], side="left")[::-1]
    p = (1.0 + n_above) / (1.0 + null.size)
    found = _calibrate_histograms(falling, counts[order], p, null, np.ones(null.size, np.int64), null_fraction)
    return found.at(_inverse(order))


def calibrate_distances(
    distances: Any, null_distances: Any, most_null_scores: int | None = None
) -> tuple[Calibration, FloatArray]:
    """Judge distances, which are small for real pairs, against those of wrong pairs.

    Also the null scores: minus the rounded distances of wrong pairs, in rising order, at most ``most_null_scores``
    evenly spaced ones. Distances are rounded up to 256 values an octave, so that a histogram says it all and nothing
    has to be sorted: p-values are never too small for it, and too large by hardly more than a hundredth of themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.calibration.p_values import calibrate_distances
    >>> rng = np.random.default_rng(0)
    >>> distances = np.abs(np.concatenate([rng.normal(0, 0.01, 300), rng.uniform(0, 50, 700)]))
    >>> found, _ = calibrate_distances(distances, rng.uniform(0, 50, 100_000))
    >>> int(found.accepted(0.01).sum()), f"{found.inlier_fraction:.2f}"
    (302, '0.30')
    """
    given = _as_scores(distances, "distances"), _as_scores(null_distances, "null_distances")
    bits, null_bits = (np.ascontiguousarray(values).view(np.int64) for values in given)  # they rise with the values
    last = max(int(bits.max()), int(null_bits.max())) >> _DROPPED_BITS
    first = max(min(int(bits.min()), int(null_bits.min())) >> _DROPPED_BITS, last - (_MOST_BINS - 1))
    bins, (counts, null_counts) = np.empty_like(bits), np.zeros((2, last - first + 1), np.int64)
    _count_bins(bits, first, bins, counts)
    _count_bins(null_bits, first, np.empty_like(null_bits), null_counts)
    scores = -(np.arange(first + 1, last + 2) << _DROPPED_BITS).view(np.float64)  # minus the upper end of each bin
    used, null_used = (counts > 0).nonzero()[0], (null_counts > 0).nonzero()[0][::-1]
    null, null_counts_used = scores[null_used], null_counts[null_used]
    p = (1.0 + null_counts.cumsum()[used]) / (1.0 + null_bits.size)
    found = _calibrate_histograms(scores[used], counts[used], p, null, null_counts_used)
    of_bins = np.empty((2, counts.size))
    of_bins[0, used], of_bins[1, used] = p, found.q_values
    null_scores = _evenly_spaced_among(null, null_counts_used, most_null_scores or null_bits.size)
    return replace(found, p_values=of_bins[0].take(bins), q_values=of_bins[1].take(bins)), null_scores


def _calibrate_histograms(
    scores: FloatArray,
    counts: Array,
    p: FloatArray,
    null: FloatArray,
    null_counts: Array,
    null_fraction: NullFraction | None = None,
) -> Calibration:
    """Judge falling scores, with the p-values that they have, by rising null scores; each with how often it occurs."""
    ranks = counts.cumsum()
    share, error, taken = null_fraction or _storey(p, ranks)
    q = _chance_wrong(scores, p, counts, ranks, null, null_counts, taken)
    detection = _step_up(p, ranks, taken, q)
    return Calibration(p, q, 1.0 - share, error, detection)


@compiled
def _count_bins(bits: Array, first: int, bins: Array, counts: Array) -> None:
    """Number the bins of distances, given as bits, from ``first`` on, and count them; what lies before counts there."""
    for i in range(bits.size):
        k = (bits[i] >> _DROPPED_BITS) - first
        k = k if k > 0 else 0
        bins[i] = k
        counts[k] += 1


@compiled
def _step_up(p: FloatArray, ranks: Array, null_fraction: float, wrong: FloatArray) -> float:
    """Replace the chance that a pair is wrong by its q-value, for rising p-values; the detection p-value.

    By Benjamini and Hochberg: the share of wrong pairs times min over k >= rank of n p_(k) / k. A pair cannot be surer
    than that there is any pair, and is not accepted when it is more likely wrong.
    """
    lowest = 1.0
    for k in range(p.size - 1, -1, -1):
        here = ranks[-1] * p[k] / ranks[k]
        lowest = here if here < lowest else lowest
        q = null_fraction * lowest
        wrong[k] = wrong[k] if wrong[k] > _MOST_LIKELY_WRONG and wrong[k] > q else q
    highest = lowest
    for k in range(p.size):
        highest = wrong[k] if wrong[k] > highest else highest
        wrong[k] = highest
    return lowest


def _storey(p: FloatArray, ranks: Array, alike: float = 1.0) -> NullFraction:
    """Storey's estimate of the share of wrong pairs, from rising p-values (see `estimate_null_fraction`)."""
    n, up_to = int(ranks[-1]), p.searchsorted(_LAMBDAS, side="right").tolist()
    chosen, lowest_later, later, stopped = (1.0, 0.0), math.inf, -math.inf, 1.0
    for limit, k in zip(_LAMBDAS[::-1], up_to[::-1], strict=True):
        beyond, left = n - (int(ranks[k - 1]) if k else 0), n * (1 - limit)
        share = min((beyond + 1) / left, 1.0)
        # Of the n_0 wrong pairs, binomially many fall beyond lambda; one is added for the counts that are small.
        error = math.sqrt(share * left * limit + 1) / left
        lowest_later = min(lowest_later, share + 2 * error)
        if share <= lowest_later:
            chosen = share, error
        with_one_more = min((beyond + alike) / left, 1.0)
        stopped = later if later >= with_one_more else with_one_more if later < 0 else stopped
        later = with_one_more
    share, error = chosen[0], min(_ERROR_INFLATION * alike**0.5 * chosen[1], 1.0)
    return NullFraction(share, error, min(share + error, stopped if later < 1 else 1.0))


def _falling_density(p: FloatArray, ranks: Array) -> FloatArray:
    """Grenander's estimate of the density of rising p-values, at each: the steepest that does not rise with p."""
    is_last = np.append(p[1:] != p[:-1], True)  # equal ones are one step of the distribution
    last = np.flatnonzero(is_last)
    gap, share = _steps(p[last]), _steps(ranks[last] / ranks[-1])
    density = share / gap
    if (density[1:] > density[:-1]).any():
        density = isotonic_regression(density, weights=gap, increasing=False).x
    return density if last.size == p.size else density[np.cumsum(is_last) - is_last]


def _chance_wrong(
    scores: FloatArray,
    p: FloatArray,
    counts: Array,
    ranks: Array,
    null: FloatArray,
    null_counts: Array,
    null_fraction: float,
) -> FloatArray:
    """Chance that a pair with this very score is wrong; the larger of two estimates.

    One compares the density of the p-values with that of wrong pairs. Where the real pairs stand far out
    it cannot see how far, for their p-values are all the smallest possible; so there the other compares the
    density of the null scores, exponential in its tail, with a Student t around the clear inliers. What real pairs
    are like is a guess, so that it ends where wrong pairs are expected, and can be counted.
    """
    by_rank = np.minimum(null_fraction / _falling_density(p, ranks), 1.0)
    n_clear = int(np.searchsorted(by_rank, _MOST_LIKELY_WRONG))  # it rises, so these are the first
    weight = int(ranks[n_clear - 1]) if n_clear else 0
    if weight < _FEWEST_CLEAR:
        return by_rank
    clear = scores[:n_clear]
    centre = _median(clear, ranks[:n_clear])
    below = int(np.searchsorted(-scores, -centre, side="right"))
    until = max(below, int(np.searchsorted(p, _TOLD_BY_RANKS / (null_fraction * ranks[-1]), side="right")))
    far = slice(below, until)
    off = np.abs(clear - centre)
    order = np.argsort(off, kind="stable")  # it falls and rises again: two runs to be merged
    null_density, tail_scale = _null_density(scores[far], null, null_counts)
    spread = max(_MEDIAN_TO_SIGMA * _median(off[order], np.cumsum(counts[:n_clear][order])), tail_scale)
    z = (scores[far] - centre) / spread
    real = weight / ranks[-1] * _STUDENT_PEAK / (1 + z * z / 5) ** 3 / spread
    wrong = null_fraction * null_density
    by_rank[far] = np.maximum(by_rank[far], wrong / np.maximum(wrong + real, _TINY))
    return by_rank


def _null_density(scores: FloatArray, null: FloatArray, counts: Array) -> tuple[FloatArray, float]:
    """Density of the null at falling scores, a histogram between quantiles and an exponential tail; its scale."""
    reached = counts.cumsum()
    n = int(reached[-1])
    n_tail = min(max(int(_TAIL_SHARE * n), _FEWEST_IN_TAIL), n)
    ranks = np.arange(_QUANTILES + 1) * (n - n_tail) // _QUANTILES
    at = reached.searchsorted(ranks, side="right")
    edges, start = null[at], null[at[-1]]
    smallest = 1e-9 * max(1.0, abs(null[0]), abs(null[-1]))  # step between scores that count as different
    scale = max(float((null[at[-1] :] - start) @ counts[at[-1] :]) / n_tail, smallest)
    height = (ranks[1:] - ranks[:-1]) / n / np.maximum(edges[1:] - edges[:-1], smallest)
    # Scores fall, so those of the tail are the first, and those between two edges follow each other.
    from_edges = np.searchsorted(-scores, -edges[:0:-1], side="right")
    in_tail = from_edges[0]
    lengths = np.append(from_edges[1:], scores.size) - from_edges
    density = np.empty(scores.size)
    density[:in_tail] = n_tail / n / scale * np.exp((start - scores[:in_tail]) / scale)
    density[in_tail:] = np.repeat(height[::-1], lengths)
    return density, scale


def _steps(values: FloatArray) -> FloatArray:
    """Differences of neighbours, the first from 0."""
    steps = values.copy()
    steps[1:] -= values[:-1]
    return steps


def _median(ordered: FloatArray, ranks: Array) -> float:
    """Median of values in rising or falling order, each of which occurs as often as its rank is above the last."""
    lower, upper = ordered[ranks.searchsorted([(ranks[-1] - 1) // 2, ranks[-1] // 2], side="right")].tolist()
    return (lower + upper) / 2


def p_values(scores: Any, null_scores: Any) -> FloatArray:
    """(1 + number of null scores at or above) / (1 + number of null scores); of scores on a device, counted there."""
    xp, m = namespace(scores), int(null_scores.shape[0])
    order = to_host(xp.argsort(scores))
    n_below = xp.searchsorted(xp.sort(null_scores), xp.sort(scores))  # sorted in sorted: several times faster
    p = np.empty(order.size)
    p[order] = (1.0 + m - to_host(n_below)) / (1.0 + m)
    return p


def means_of_surer(chances: FloatArray) -> FloatArray:
    """Mean of the chances of an error over all that are as sure or surer: the share of errors to be expected."""
    order = np.argsort(chances, kind="stable")
    means = np.empty(chances.size)
    means[order] = np.cumsum(chances[order]) / np.arange(1, chances.size + 1)
    return means


def estimate_null_fraction(p: Any, counts: Any = None, alike: float = 1.0) -> NullFraction:
    """Storey's estimate of the share of wrong pairs, its standard error, and the share that q-values take.

    Wrong pairs have uniform p-values, so their share is #{p > lambda} / (n (1 - lambda)) wherever no real
    pair has p > lambda. The estimate falls to that as lambda grows, and gets noisier; taken is the smallest
    lambda whose estimate no later one undercuts by more than two of its standard errors. ``counts`` says how many
    pairs have each p-value; one, if it is not given. ``alike`` are how many p-values stand or fall together.

    The false discovery rate does not suffer from noise in the share as long as one more pair is counted beyond
    lambda: q-values take the estimate at the first lambda at which it no longer falls (Liang and Nettleton 2012), or
    the share plus its error where that is less.
    """
    p = _as_p_values(p)
    order = np.argsort(p)
    ranks = np.cumsum(np.ones(p.size, np.int64) if counts is None else np.asarray(counts)[order])
    return _storey(p[order], ranks, alike)


def p_value_density(p: FloatArray) -> FloatArray:
    """Grenander's estimate of the density of the p-values, at each: the steepest that does not rise with p."""
    order = np.argsort(p)
    return _falling_density(p[order], np.arange(1, p.size + 1))[_inverse(order)]


def _rising(values: FloatArray) -> FloatArray:
    """Sort, unless that has been done."""
    return values if (values[1:] >= values[:-1]).all() else np.sort(values)


def evenly_spaced(rising_values: Array, most: int = KEPT_NULL_SCORES) -> Array:
    """All of them, or of more as many as draw the same picture: those of evenly spaced ranks."""
    if rising_values.size <= most:
        return rising_values
    # j (n - 1) / (most - 1), rounded
    n, gaps = rising_values.size, max(most - 1, 1)
    return rising_values[(2 * (n - 1) * np.arange(most) + gaps) // (2 * gaps)]


def _evenly_spaced_among(rising_values: FloatArray, counts: Array, most: int) -> FloatArray:
    """The same for values that occur so many times each."""
    reached = np.cumsum(counts)
    if reached[-1] <= most:
        return np.repeat(rising_values, counts)
    n, gaps = int(reached[-1]), max(most - 1, 1)
    # How many of those ranks lie below each that is reached, r: all j < (2 r - 1) (most - 1) / (2 (n - 1)).
    n_kept = np.minimum(-((1 - 2 * reached) * gaps // (2 * (n - 1))), most)
    n_kept[1:] -= n_kept[:-1].copy()
    return rising_values.repeat(n_kept)


def _inverse(order: Array) -> Array:
    """The permutation that undoes this one."""
    inverse = np.empty_like(order)
    inverse[order] = np.arange(order.size)
    return inverse


def _as_scores(values: Any, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a list of at least one number; got shape {array.shape}.")
    if not (math.isfinite(array.min()) and math.isfinite(array.max())):  # NaN is the minimum if there is one
        raise ValueError(f"{name} holds NaN or infinity in {int((~np.isfinite(array)).sum())} place(s).")
    return array


def _as_p_values(values: Any) -> FloatArray:
    p = _as_scores(values, "p")
    if p.min() < 0 or p.max() > 1:
        raise ValueError(f"p-values lie between 0 and 1, but these go from {p.min():g} to {p.max():g}.")
    return p
