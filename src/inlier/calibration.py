"""From scores and null scores to p-values, q-values and the share of real pairs.

Usable on its own: give any scores that are larger for real pairs, and scores of the same kind for pairs that
are known to be wrong (re-pairings), and `calibrate` says which scores are too large to be chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from inlier.engine.blocks import Array, FloatArray, Mask
from inlier.engine.namespaces import is_host_array, namespace, to_host
from inlier.validation import check_number

_LAMBDAS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
_MOST_LIKELY_WRONG = 0.5  # a pair is not accepted if it is more likely wrong than real
_ERROR_INFLATION = 2.0  # lambda is chosen from the data, and p-values share re-pairings: both add to the error
_TAIL_SHARE = 0.02  # the upper part of the null that its tail is fitted to
_FEWEST_IN_TAIL = 20
_DROPPED_BITS = 52 - 8  # of the fraction of a float64: with what is left, 256 numbers are told apart in an octave
_N_BINS = 32 << 8  # 32 octaves below the largest distance; what is smaller counts with the smallest
_FEWEST_CLEAR = 5  # clear inliers that it takes to describe the inliers' scores


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
    """

    p_values: FloatArray
    q_values: FloatArray
    inlier_fraction: float
    inlier_fraction_error: float
    detection_p_value: float

    def accepted(self, alpha: float) -> Mask:
        """Pairs called real, with a false discovery rate of at most ``alpha``."""
        return self.q_values <= alpha

    def at(self, places: Array) -> Calibration:
        """What these entries are worth, each as often as it is named."""
        return replace(self, p_values=self.p_values[places], q_values=self.q_values[places])


def calibrate(
    scores: Any, null_scores: Any, null_fraction: tuple[float, float] | None = None, counts: Any = None
) -> Calibration:
    """Judge scores against the scores of pairs that are known to be wrong.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Larger means more like a real pair.
    null_scores : array-like of shape (m,)
        Scores of wrong pairs, drawn as the wrong ones among the n are.
    null_fraction : (float, float), optional
        Share of wrong pairs and its standard error, where it is known better than from these scores.
    counts : array-like of int, shape (n,), optional
        How many pairs have each score, where many are given as a histogram; the results are one per score.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.calibration import calibrate
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate([rng.normal(8, 1, 300), rng.normal(0, 1, 700)])
    >>> found = calibrate(scores, rng.normal(0, 1, 100_000))
    >>> int(found.accepted(0.01).sum()), f"{found.inlier_fraction:.2f}"
    (300, '0.29')
    """
    scores, null_scores = _as_scores(scores, "scores"), _as_scores(null_scores, "null_scores")
    order = np.argsort(-scores)
    scores, rising_null = scores[order], rising(null_scores)
    counts = np.ones(scores.size, dtype=np.int64) if counts is None else np.asarray(counts)[order]
    if null_fraction is not None:
        share, error = null_fraction
        null_fraction = check_number(share, "null_fraction", low=0, high=1), check_number(error, "its error", low=0)
    found = _calibrate_sorted(scores, _sorted_p_values(scores, rising_null), counts, rising_null, null_fraction)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return found.at(place)


def _calibrate_sorted(
    scores: FloatArray,
    p: FloatArray,
    counts: Array,
    rising_null: FloatArray,
    null_fraction: tuple[float, float] | None = None,
) -> Calibration:
    """Judge scores that fall, with p-values that rise: the most convincing first."""
    reached = np.cumsum(counts)
    if null_fraction is None:
        n_up_to = np.concatenate([[0], reached])[np.searchsorted(p, _LAMBDAS, side="right")]
        null_fraction = _null_fraction_beyond(reached[-1] - n_up_to, int(reached[-1]))
    share, error = null_fraction
    cautious = min(1.0, share + error)
    stepped_up = _step_up(p, reached)
    detection = float(min(stepped_up[0], 1.0))
    wrong = _local_fdr(scores, rising_null, p, cautious, counts)
    # A pair cannot be surer than that there is any pair, and is not accepted when it is more likely wrong.
    q = np.maximum(np.minimum(cautious * stepped_up, 1.0), detection)
    q = np.maximum.accumulate(np.where(wrong > _MOST_LIKELY_WRONG, np.maximum(q, wrong), q))
    return Calibration(p, q, 1.0 - share, error, detection)


def calibrate_distances(distances: Any, null_distances: Any) -> tuple[Calibration, FloatArray]:
    """Judge distances, which are small for real pairs, against those of wrong pairs.

    Both are rounded up to 256 values an octave, so that a histogram says it all and nothing has to be sorted: p-values
    are never too small for it, and too large by hardly more than a hundredth of themselves.

    Parameters
    ----------
    distances : array-like of shape (n,)
        Not negative.
    null_distances : array-like of shape (m,)
        Of wrong pairs.

    Returns
    -------
    Calibration
        One entry per distance.
    null_scores : ndarray of shape (m,)
        Minus the rounded distances of wrong pairs, in rising order.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.calibration import calibrate_distances
    >>> rng = np.random.default_rng(0)
    >>> distances = np.abs(np.concatenate([rng.normal(0, 0.01, 300), rng.uniform(0, 50, 700)]))
    >>> found, _ = calibrate_distances(distances, rng.uniform(0, 50, 100_000))
    >>> int(found.accepted(0.01).sum()), f"{found.inlier_fraction:.2f}"
    (302, '0.30')
    """
    distances, null_distances = _as_scores(distances, "distances"), _as_scores(null_distances, "null_distances")
    largest = np.array([max(distances.max(), null_distances.max())])
    lowest = max(_octave_part(largest)[0] - _N_BINS + 1, 0)
    bins, null_bins = (_octave_part(values, lowest) for values in (distances, null_distances))
    counts, null_counts = (np.bincount(numbers, minlength=_N_BINS) for numbers in (bins, null_bins))
    upper_ends = ((np.arange(_N_BINS) + lowest + 1) << _DROPPED_BITS).view(np.float64)
    null_scores = np.repeat(-upper_ends[::-1], null_counts[::-1])
    taken = np.flatnonzero(counts)
    p = (1.0 + np.cumsum(null_counts)[taken]) / (1.0 + null_scores.size)
    found = _calibrate_sorted(-upper_ends[taken], p, counts[taken], null_scores)
    place = np.empty(_N_BINS, dtype=np.intp)
    place[taken] = np.arange(taken.size)
    return found.at(place[bins]), null_scores


def _octave_part(values: FloatArray, lowest: int = 0) -> Array:
    """Exponent and first bits of the fraction of positive numbers, as a number that rises with them from 0."""
    part = values.view(np.int64) >> _DROPPED_BITS
    part -= lowest
    return np.maximum(part, 0, out=part)


def rising(values: FloatArray) -> FloatArray:
    """Sort, unless that has been done."""
    return values if (values[1:] >= values[:-1]).all() else np.sort(values)


def p_values(scores: Any, null_scores: Any) -> FloatArray:
    """(1 + number of null scores at or above) / (1 + number of null scores); of scores on a device, counted there."""
    if not is_host_array(scores):
        xp = namespace(scores)
        n_below = to_host(xp.searchsorted(xp.sort(null_scores), scores))
        return (1.0 + null_scores.shape[0] - n_below) / (1.0 + null_scores.shape[0])
    order = np.argsort(-scores)
    p = np.empty(scores.size)
    p[order] = _sorted_p_values(scores[order], np.sort(null_scores))
    return p


def _sorted_p_values(falling_scores: FloatArray, rising_null: FloatArray) -> FloatArray:
    # Sorted against sorted: several times faster than searching at random.
    below = np.searchsorted(rising_null, falling_scores[::-1], side="left")[::-1]
    return (1.0 + rising_null.size - below) / (1.0 + rising_null.size)


def q_values(p: Any, null_fraction: float | None = None) -> FloatArray:
    """Benjamini-Hochberg q-values, scaled by the share of wrong pairs (Storey's estimate if not given).

    Examples
    --------
    >>> from inlier.calibration import q_values
    >>> q_values([0.01, 0.02, 0.9], null_fraction=1.0).tolist()
    [0.03, 0.03, 0.9]
    """
    p = _as_p_values(p)
    if null_fraction is None:
        null_fraction = estimate_null_fraction(p)[0]
    order = np.argsort(p)
    q = np.empty(p.size)
    share = check_number(null_fraction, "null_fraction", low=0, high=1)
    q[order] = np.minimum(share * _step_up(p[order], np.arange(1, p.size + 1)), 1.0)
    return q


def estimate_null_fraction(p: Any, counts: Any = None) -> tuple[float, float]:
    """Storey's estimate of the share of wrong pairs, and its standard error.

    Wrong pairs have uniform p-values, so their share is #{p > lambda} / (n (1 - lambda)) wherever no real
    pair has p > lambda. The estimate falls to that as lambda grows, and gets noisier; taken is the smallest
    lambda whose estimate no later one undercuts by more than two of its standard errors. ``counts`` says how many
    pairs have each p-value; one, if it is not given.
    """
    p = _as_p_values(p)
    counts = np.ones(p.size, dtype=np.int64) if counts is None else np.asarray(counts)
    n = int(counts.sum())
    per_gap = np.bincount(np.searchsorted(_LAMBDAS, p), weights=counts, minlength=_LAMBDAS.size + 1)
    return _null_fraction_beyond(np.cumsum(per_gap[::-1])[-2::-1], n)


def _null_fraction_beyond(beyond: Array, n: int) -> tuple[float, float]:
    """Of n pairs, from the numbers of those with p > lambda, for each."""
    estimate = np.minimum((beyond + 1) / (n * (1 - _LAMBDAS)), 1.0)
    # Of the n_0 wrong pairs, binomially many fall beyond lambda; one is added for the counts that are small.
    error = np.sqrt(n * estimate * _LAMBDAS * (1 - _LAMBDAS) + 1) / (n * (1 - _LAMBDAS))
    lowest_later = np.minimum.accumulate((estimate + 2 * error)[::-1])[::-1]
    chosen = int(np.argmax(estimate <= lowest_later))
    return float(estimate[chosen]), float(_ERROR_INFLATION * error[chosen])


def p_value_density(p: FloatArray) -> FloatArray:
    """Grenander's estimate of the density of the p-values, at each: the steepest that does not rise with p."""
    order = np.argsort(p)
    density = np.empty(p.size)
    density[order] = _sorted_density(p[order], np.ones(p.size, dtype=np.int64))
    return density


def _sorted_density(rising_p: FloatArray, counts: Array) -> FloatArray:
    is_new = np.ones(rising_p.size, dtype=bool)
    is_new[1:] = rising_p[1:] != rising_p[:-1]
    first = np.flatnonzero(is_new)  # of each run of equal values
    gap = np.diff(rising_p[first], prepend=0.0)
    share = np.add.reduceat(counts, first) / counts.sum()
    density = isotonic_regression(share / gap, weights=gap, increasing=False).x
    return density[np.cumsum(is_new) - 1]


def _local_fdr(
    scores: FloatArray, rising_null: FloatArray, p: FloatArray, null_fraction: float, counts: Array
) -> FloatArray:
    """Chance that a pair with this very score is wrong; the larger of two estimates. Scores fall, p rises.

    One compares the density of the p-values with that of wrong pairs. Where the real pairs stand far out
    it cannot see how far, for their p-values are all the smallest possible; so the other compares the
    density of the null scores, exponential in its tail, with a Student t around the clear inliers.
    """
    by_rank = np.minimum(null_fraction / _sorted_density(p, counts), 1.0)
    is_clear = by_rank < _MOST_LIKELY_WRONG
    clear, times = scores[is_clear], counts[is_clear]
    if times.sum() < _FEWEST_CLEAR:
        return by_rank
    centre = _median(clear, times)
    null_density, tail_scale = _null_density(rising_null)
    spread = max(1.4826 * _median(np.abs(clear - centre), times), tail_scale)
    real = times.sum() / counts.sum() * _student_density((scores - centre) / spread) / spread
    wrong = null_fraction * null_density(scores)
    by_score = np.where(scores >= centre, 0.0, wrong / np.maximum(wrong + real, np.finfo(np.float64).tiny))
    return np.maximum(by_rank, by_score)


def _median(values: FloatArray, counts: Array) -> float:
    """Median of values that occur so many times each."""
    if (counts == 1).all():
        return float(np.median(values))  # no sorting
    order = np.argsort(values, kind="stable")  # they come as one or two runs, which it makes use of
    reached = np.cumsum(counts[order])
    lower, upper = np.searchsorted(reached, [(reached[-1] - 1) // 2, reached[-1] // 2], side="right")
    return float(values[order[lower]] + values[order[upper]]) / 2


def _student_density(z: FloatArray) -> FloatArray:
    """Density of Student's t with five degrees of freedom."""
    return 8 / (3 * np.pi * np.sqrt(5)) / (1 + z * z / 5) ** 3


def _null_density(rising_null: FloatArray) -> tuple[Callable[[FloatArray], FloatArray], float]:
    """Density of the null scores: a histogram between quantiles, an exponential tail; and the tail's scale."""
    n = rising_null.size
    n_tail = min(max(int(_TAIL_SHARE * n), _FEWEST_IN_TAIL), n)
    ranks = np.linspace(0, n - n_tail, 51).astype(int)
    edges = rising_null[ranks]
    start, tail = edges[-1], rising_null[n - n_tail :]
    smallest = 1e-9 * max(1.0, float(np.abs(rising_null[[0, -1]]).max()))  # equal scores have no spread of their own
    scale = max(float((tail - start).mean()), smallest)
    height = np.diff(ranks) / n / np.maximum(np.diff(edges), smallest)

    def density(scores: FloatArray) -> FloatArray:
        bulk = height[np.searchsorted(edges[1:-1], scores, side="right")]
        beyond = n_tail / n / scale * np.exp(-np.maximum(scores - start, 0.0) / scale)
        return np.where(scores >= start, beyond, bulk)

    return density, scale


def _step_up(rising_p: FloatArray, rank: Array) -> FloatArray:
    """Benjamini and Hochberg: min over k >= rank of n p_(k) / k, which the share of wrong pairs is a factor of."""
    return np.minimum.accumulate((rank[-1] * rising_p / rank)[::-1])[::-1]


def _as_scores(values: Any, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a list of at least one number; got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity in {int((~np.isfinite(array)).sum())} place(s).")
    return array


def _as_p_values(values: Any) -> FloatArray:
    p = _as_scores(values, "p")
    if p.min() < 0 or p.max() > 1:
        raise ValueError(f"p-values lie between 0 and 1, but these go from {p.min():g} to {p.max():g}.")
    return p
