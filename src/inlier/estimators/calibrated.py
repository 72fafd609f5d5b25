"""CalibratedMatcher: which pairs are real, with a false discovery rate."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from inlier._checks import check_count, check_flag, check_number
from inlier._typing import Array, FloatArray
from inlier.calibration.cross_fit import cross_fit
from inlier.calibration.p_values import Calibration, calibrate, estimate_null_fraction, p_values, rising
from inlier.calibration.sampled_fit import judge_many
from inlier.estimators._base import PairMatcher, prepare_model_pairs
from inlier.rows import AtLeast, Extremes, PairedRows, store_of
from inlier.rows.null_pairs import point_numbers

KEPT_NULL_SCORES = 10_000
MOST_ONE_BY_ONE = 200_000  # of more pairs, maps are learned from a sample, and a histogram of the scores is judged


class CalibratedMatcher(PairMatcher):
    """Matching with p-values, q-values and a false discovery rate: the default choice.

    Learns the linear map between the two sets from the pairs that agree, or where these are few, which of them vouch
    for each other; scores each pair by what was learned without it, and compares with re-paired data. Says "nothing
    matches" when nothing does, and keeps everything when everything does.

    Parameters
    ----------
    alpha : float, default=0.01
        Largest expected share of wrong pairs among those accepted.
    whiten : bool, default=True
        First map both sets to an orthonormal basis, so that no direction dominates; where there are too few
        pairs for that, as far as they allow. Without it the directions keep their variances.
    n_folds : int, default=5
        Number of folds of the cross-fit.
    random_state : int, RandomState or None, default=None
        Deals the folds and the re-pairings.

    Attributes
    ----------
    p_values_ : ndarray of shape (n,)
        Chance that a wrong pair scores as high as this one.
    q_values_ : ndarray of shape (n,)
        Smallest ``alpha`` at which the pair is accepted; over one half for pairs more likely wrong than real.
    inlier_mask_ : ndarray of bool, shape (n,)
        True where ``q_values_ <= alpha``.
    inlier_fraction_, inlier_fraction_error_ : float
        Estimated share of real pairs, accepted or not, and its standard error (twice the binomial one; it does not
        cover the small bias that remains where the scores of real and wrong pairs overlap).
    detection_p_value_ : float
        Chance of evidence this strong if no pair at all were real.
    scores_ : ndarray of shape (n,)
        Log likelihood ratio of "real" against "wrong", by a map that has not seen the pair. Where pairs had to vouch
        for each other, in any of the folds, all scores are in other units: 0 for the median re-pairing, 1 where the
        highest hundredth of them begins.
    null_scores_ : ndarray
        Scores of re-pairings, which are wrong for sure, in rising order; of more than 10,000, evenly spaced ones.
    n_re_pairings_ : int
        How many re-pairings there were; no p-value is below ``1 / (n_re_pairings_ + 1)``.
    threshold_ : float
        Scores at or above it are accepted; above every score if none is.
    result_ : MatchResult
        The answer as one object.
    n_features_in_ : int
        Number of columns of ``X``.

    Notes
    -----
    The false discovery rate holds if the wrong pairs' x and y are independent of each other and drawn like the
    others'. Pairs that are wrong in the same way (a second motion, a shifted block) agree with each other and
    are found as if they were real. Equal points are recognised: a point is never re-paired with itself, and equal
    pairs share a fold.

    Of more than 200,000 pairs, the maps and the re-pairings come from a random sample of that many, and pairs are not
    asked to vouch for each other; all pairs are scored, where they live. Their p- and q-values are then those of the
    lower end of a bin that holds about 1 / 16,000 of the pairs or of the re-pairings, so never too small; nothing per
    pair is kept on the host.

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=1000, d=50, inlier_fraction=0.1, noise=0.3, rng=0)
    >>> matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    >>> bool((matcher.inlier_mask_ == data.inlier_mask).all())
    True
    >>> print(f"{matcher.inlier_fraction_:.2f} +- {matcher.inlier_fraction_error_:.2f}")
    0.09 +- 0.01
    """

    _in_any_store = True
    _fewest_pairs = 4  # two folds of two, the least that can be re-paired

    def __init__(self, alpha: float = 0.01, whiten: bool = True, n_folds: int = 5, random_state: Any = None) -> None:
        self.alpha = alpha
        self.whiten = whiten
        self.n_folds = n_folds
        self.random_state = random_state

    def _fit(self, X: Array, Y: Array) -> None:
        check_number(self.alpha, "alpha", low=0, high=0.5)
        check_flag(self.whiten, "whiten")
        check_count(self.n_folds, "n_folds", low=2)
        if X.shape[0] > MOST_ONE_BY_ONE:
            self._judge_many(X, Y)
            return
        store, like = store_of(X, Y), X
        near = PairedRows(X, Y).near(slice(0, X.shape[0]))  # few enough to bring here, unless they are on a device
        pairs = self.prepare(near.X, near.Y)
        points = np.stack([point_numbers(near.X), point_numbers(near.Y)])
        rng = check_random_state(self.random_state)
        deals, null_scores = cross_fit(pairs, points, self.n_folds, rng)
        self.scores_ = _one_score_each(deals, null_scores)
        self._judge(calibrate(self.scores_, null_scores, _null_fraction(deals, null_scores)))
        self.n_re_pairings_ = null_scores.size
        self.null_scores_ = thinned(null_scores)
        for name in ("scores_", "p_values_", "q_values_", "inlier_mask_"):  # back to where the pairs are
            setattr(self, name, store.from_host(getattr(self, name), like))

    def _judge_many(self, X: Any, Y: Any) -> None:
        """Score all pairs where they live; p- and q-values are read off a histogram of the scores."""
        pairs = self.prepare(X, Y)
        found = judge_many(pairs, self.n_folds, check_random_state(self.random_state))
        self.scores_ = found.edges
        self._judge(found.calibration)
        if not self.inlier_mask_.any():
            self.threshold_ = float(np.nextafter(pairs.store.total(Extremes(), found.scores)[1], np.inf))
        self.scores_ = found.scores
        self.p_values_ = found.per_pair(found.calibration.p_values)
        self.q_values_ = found.per_pair(found.calibration.q_values)
        self.inlier_mask_ = pairs.store.map(AtLeast(float(self.threshold_)), found.scores)
        self.n_re_pairings_ = found.null_scores.size
        self.null_scores_ = thinned(found.null_scores)

    def prepare(self, X: Array, Y: Array) -> PairedRows:
        """Centre both sets, whiten them as far as there are pairs for it, give them unit mean square."""
        return prepare_model_pairs(X, Y, whiten=self.whiten)

    def _judge(self, calibration: Calibration) -> None:
        self.p_values_ = calibration.p_values
        self.q_values_ = calibration.q_values
        self.inlier_fraction_ = calibration.inlier_fraction
        self.inlier_fraction_error_ = calibration.inlier_fraction_error
        self.detection_p_value_ = calibration.detection_p_value
        self.inlier_mask_ = calibration.accepted(self.alpha)
        accepted = self.scores_[self.inlier_mask_]
        self.threshold_ = float(accepted.min() if accepted.size else np.nextafter(self.scores_.max(), np.inf))


def _one_score_each(deals: FloatArray, null_scores: FloatArray) -> FloatArray:
    """The median over the deals; a fold that found nothing says nothing for its pairs: below every re-pairing."""
    lowest = min(null_scores.min(), np.nanmin(deals, initial=np.inf))
    scores = np.nan_to_num(deals, nan=lowest)
    return np.median(scores, axis=0) if len(deals) > 1 else scores[0]


def _null_fraction(deals: FloatArray, null_scores: FloatArray) -> tuple[float, float] | None:
    """Share of wrong pairs and its error, where it is not to be read off the p-values that are reported.

    It takes uniform p-values: of single deals, because medians vary less than the re-pairings' scores, and of pairs
    that could be scored. The others are no different, because pairs are dealt into folds at random.
    """
    scored = np.isfinite(deals)
    if not scored.any() or (len(deals) == 1 and scored.all()):
        return None
    estimate, error = estimate_null_fraction(p_values(deals[scored], null_scores))
    return estimate, error * len(deals) ** 0.5  # the deals share their pairs: no more information than one


def thinned(null_scores: FloatArray) -> FloatArray:
    """Sorted, and of very many as many as draw the same picture: evenly spaced ranks."""
    places = np.linspace(0, null_scores.size - 1, min(null_scores.size, KEPT_NULL_SCORES)).round().astype(int)
    return rising(null_scores)[places]
