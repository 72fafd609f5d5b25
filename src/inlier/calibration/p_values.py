"""From scores and null scores to p-values, q-values and the share of real pairs.

Usable on its own: give any scores that are larger for real pairs, and scores of the same kind for pairs that
are known to be wrong (re-pairings), and `calibrate` says which scores are too large to be chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inlier._checks import check_number
from inlier._typing import Array, FloatArray, Mask
from inlier.calibration._distance_kernels import judge_distances
from inlier.calibration._kernels import falling_density, q_values_of, share_of_wrong, step_up
from inlier.rows.namespaces import is_host_array, namespace, to_host

_LAMBDAS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])


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
    >>> from inlier.calibration.p_values import calibrate
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate([rng.normal(8, 1, 300), rng.normal(0, 1, 700)])
    >>> found = calibrate(scores, rng.normal(0, 1, 100_000))
    >>> int(found.accepted(0.01).sum()), f"{found.inlier_fraction:.2f}"
    (300, '0.29')
    """
    scores, null_scores = _as_scores(scores, "scores"), _as_scores(null_scores, "null_scores")
    order = np.argsort(-scores)
    scores, rising_null = scores[order], rising(null_scores)
    counts = _once_each(scores) if counts is None else np.asarray(counts)[order].astype(np.int64)
    if null_fraction is not None:
        share, error = null_fraction
        null_fraction = check_number(share, "null_fraction", low=0, high=1), check_number(error, "its error", low=0)
    null, p = (rising_null, _once_each(rising_null)), _sorted_p_values(scores, rising_null)
    found = _calibrate_sorted(scores, p, counts, null, null_fraction)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return found.at(place)


def _calibrate_sorted(
    scores: FloatArray,
    p: FloatArray,
    counts: Array,
    null: tuple[FloatArray, Array],
    null_fraction: tuple[float, float] | None = None,
) -> Calibration:
    """Judge scores that fall, with p-values that rise: the most convincing first; null scores rise, with counts."""
    share, error = share_of_wrong(p, counts, _LAMBDAS) if null_fraction is None else null_fraction
    q, detection = q_values_of(scores, p, counts, *null, min(1.0, share + error))
    return Calibration(p, q, 1.0 - share, error, detection)


def calibrate_distances(
    distances: Any, null_distances: Any, most_null_scores: int | None = None
) -> tuple[Calibration, FloatArray]:
    """Judge distances, which are small for real pairs, against those of wrong pairs.

    Both are rounded up to 256 values an octave, so that a histogram says it all and nothing has to be sorted: p-values
    are never too small for it, and too large by hardly more than a hundredth of themselves.

    Parameters
    ----------
    distances : array-like of shape (n,)
        Not negative.
    null_distances : array-like of shape (m,)
        Of wrong pairs.
    most_null_scores : int, optional
        How many null scores to return at most; of more, evenly spaced ones.

    Returns
    -------
    Calibration
        One entry per distance.
    null_scores : ndarray
        Minus the rounded distances of wrong pairs, in rising order.

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
    distances, null_distances = (
        np.ascontiguousarray(_as_scores(values, name))
        for values, name in ((distances, "distances"), (null_distances, "null_distances"))
    )
    n_kept = most_null_scores or null_distances.size
    p, q, share, error, detection, null_scores = judge_distances(distances, null_distances, _LAMBDAS, n_kept)
    return Calibration(p, q, 1.0 - share, error, detection), null_scores


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
    >>> from inlier.calibration.p_values import q_values
    >>> q_values([0.01, 0.02, 0.9], null_fraction=1.0).tolist()
    [0.03, 0.03, 0.9]
    """
    p = _as_p_values(p)
    if null_fraction is None:
        null_fraction = estimate_null_fraction(p)[0]
    order = np.argsort(p)
    q = np.empty(p.size)
    share = check_number(null_fraction, "null_fraction", low=0, high=1)
    q[order] = np.minimum(share * step_up(p[order], _once_each(p)), 1.0)
    return q


def estimate_null_fraction(p: Any, counts: Any = None) -> tuple[float, float]:
    """Storey's estimate of the share of wrong pairs, and its standard error.

    Wrong pairs have uniform p-values, so their share is #{p > lambda} / (n (1 - lambda)) wherever no real
    pair has p > lambda. The estimate falls to that as lambda grows, and gets noisier; taken is the smallest
    lambda whose estimate no later one undercuts by more than two of its standard errors. ``counts`` says how many
    pairs have each p-value; one, if it is not given.
    """
    p = _as_p_values(p)
    share, error = share_of_wrong(p, _once_each(p) if counts is None else np.array(counts, dtype=np.int64), _LAMBDAS)
    return share, error


def p_value_density(p: FloatArray) -> FloatArray:
    """Grenander's estimate of the density of the p-values, at each: the steepest that does not rise with p."""
    order = np.argsort(p)
    density = np.empty(p.size)
    density[order] = falling_density(p[order], _once_each(p))
    return density


def _once_each(values: FloatArray) -> Array:
    return np.ones(values.size, dtype=np.int64)


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
