"""Registration: the transformation that carries X onto y, from pairs of which most may be wrong."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from inlier._checks import (
    check_choice,
    check_flag,
    check_number,
    check_weights,
    warn,
)
from inlier._typing import Array, FloatArray
from inlier.calibration.p_values import calibrate_distances
from inlier.consensus import Consensus, Evidence, MapModel, find_consensus
from inlier.consensus.draws import Draws
from inlier.consensus.uncertainty import MotionUncertainty, NearPairs, motion_uncertainty
from inlier.estimators._base import PairMatcher
from inlier.estimators.calibrated import KEPT_NULL_SCORES, CalibratedMatcher, thinned
from inlier.exceptions import NoConsensusError
from inlier.rows import as_table, check_coordinates, check_finite, summarise_columns
from inlier.rows.null_pairs import distinct_pairs
from inlier.rows.threads import single_threaded_blas
from inlier.transforms import SimilarityTransformation, Transformation
from inlier.transforms.least_squares import MODELS, fit_transformation

_DRAWN, _DRAWN_NUMBERS = 3000, 300_000  # pairs, and numbers of one side, that are kept for the report to draw
_FEW_COLUMNS = 8  # up to which residuals say enough; with more, a linear map may find what they do not
_WIDEST_SEARCH = 100  # columns up to which a search by distances comes first
_AMPLE = 2  # supporting pairs a column that leave no doubt
_GENEROUS = 1.5  # noise bounds: pairs beyond may not be there by chance, but do not agree as the others do
_TOO_FEW = 0.5  # of the pairs that agree beyond chance
_MORE_LIKELY_REAL = 0.5  # q-value: what is worth a first fit


class Registration(TransformerMixin, PairMatcher):
    """Find the transformation between two sets of points, and which pairs are real.

    No noise bound has to be given: it is found from the data, and so is the answer to "did it fail?".

    Parameters
    ----------
    model : {"rigid", "rotation", "orthogonal", "similarity", "affine"}, default="rigid"
        What to look for: rotation and translation; rotation about the origin; the same or a reflection; rotation,
        translation and one scale; any linear map and translation.
    alpha : float, default=0.01
        Largest expected share of wrong pairs among those accepted. Where that would leave out most of the pairs that
        agree, those within ``noise_bound_`` are accepted, and a warning says what the share is instead.
    noise_bound : float, optional
        Largest residual of a real pair, in units of ``y``, if known: it then decides which pairs are accepted.
    reflection : bool, default=False
        Whether ``"rigid"`` and ``"similarity"`` may mirror.
    raise_on_failure : bool, default=True
        Whether `fit` raises `NoConsensusError` where nothing is found. If not, ``success_`` says so.
    random_state : int, RandomState or None, default=None
        Draws samples and re-pairings.

    Attributes
    ----------
    success_ : bool
        Whether a transformation was found.
    transformation_ : SimilarityTransformation, AffineTransformation or None
        y = transformation_(x), with ``rotation``, ``translation``, ``scale``, ``matrix``, ``inverse``.
    uncertainty_ : MotionUncertainty or None
        In 2 and 3 dimensions, except for ``"affine"``: standard errors of ``rotation`` (degrees), ``translation`` and
        ``scale``, and their ``covariance``. None where they are not available: otherwise, and where hardly more pairs
        count than fix the transformation; for rigid ones in space, where (sum w)^2 / sum w^2 < 4 by their weights w.
    inlier_mask_ : ndarray of bool, shape (n,)
        The pairs that are called real: ``q_values_ <= alpha``, and residuals up to one and a half ``noise_bound_``;
        where a ``noise_bound`` was given, residuals up to that.
    false_discovery_rate_ : float
        Expected share of wrong pairs among those accepted.
    residuals_ : ndarray of shape (n,)
        |y_i - transformation_(x_i)|.
    noise_bound_ : float
        Residual up to which the pairs agree beyond chance, found from the data or as it was given.
    p_values_, q_values_ : ndarray of shape (n,)
        Chance that a wrong pair lies as near, and the smallest ``alpha`` at which the pair is accepted.
    inlier_fraction_, inlier_fraction_error_ : float
        Estimated share of real pairs, accepted or not, among the different ones, and its standard error.
    detection_p_value_ : float
        Bound on the chance of so much agreement, anywhere, if no pair were real.
    scores_, threshold_ : ndarray of shape (n,), float
        Pairs with scores at or above the threshold are accepted. The score is minus the residual, or that of
        `CalibratedMatcher` where that found the pairs.
    null_scores_ : ndarray
        Scores of re-pairings, which are wrong for sure, in rising order and rounded (256 values an octave); of more
        than 10,000, evenly spaced ones.
    n_re_pairings_ : int
        How many re-pairings the p-values come from.
    result_ : MatchResult
        The answer as one object.
    n_features_in_, n_outputs_ : int
        Number of columns of ``X`` and of ``y``.

    Notes
    -----
    Maps are looked for by their residuals: first from the paper's row sums, then from circles of pairs that keep their
    distances to each other, in samples that grow until nothing better can have been missed. With more than 8 columns
    `CalibratedMatcher` looks too where that leaves doubts, with more than 100 it comes first. Fewer accepted pairs than
    dimensions do not determine a rotation: a warning says so, and the transformation is the best one on what they
    span. Structured errors (a second motion, a repeated pattern) agree with each other too; the larger agreement wins.
    A pair that is listed more than once counts once, with the mean weight of those of its copies that have one, and all
    copies get the same answer.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier import Registration
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]) + [5, 0, 0] + rng.normal(scale=0.02, size=X.shape)
    >>> y[:950] = rng.normal(size=(950, 3))  # 95 % wrong
    >>> registration = Registration(random_state=0).fit(X, y)
    >>> print(f"{registration.transformation_.angle:.1f} degrees")
    90.0 degrees
    >>> print(f"{registration.inlier_mask_.sum()} pairs, within {registration.noise_bound_:.2f}")
    50 pairs, within 0.07
    """

    _works_in_parts = False

    transformation_: Transformation | None
    _near_pairs: NearPairs | None

    def __init__(
        self,
        model: str = "rigid",
        alpha: float = 0.01,
        noise_bound: float | None = None,
        reflection: bool = False,
        raise_on_failure: bool = True,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.alpha = alpha
        self.noise_bound = noise_bound
        self.reflection = reflection
        self.raise_on_failure = raise_on_failure
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the transformation, and decide which rows of ``X`` and ``y`` are real pairs.

        Parameters
        ----------
        X : array-like of shape (n, d_x)
            Points.
        y : array-like of shape (n, d_y)
            Row i is the supposed partner of row i of ``X``. d_y = d_x, except for model ``"affine"``.
        sample_weight : array-like of shape (n,), optional
            How much each pair is trusted beforehand: the similarity of its descriptors, or the inverse of its noise
            variance. Pairs are drawn for the search, and count in the fit, in proportion. A pair of weight 0 does not
            help to find the transformation, but is still judged by it.

        Returns
        -------
        self
        """
        table_x, table_y = self._read_pairs(X, y)
        self._check(table_x, table_y)
        weights = self._read_weights(sample_weight, len(table_x))
        self.n_outputs_ = table_y.shape[1]
        self._near_pairs = None
        self.__dict__.pop("uncertainty_", None)  # of an earlier fit
        if not self._fit_listed(table_x, table_y, weights):
            self._fit_distinct(table_x, table_y, weights)
        self._keep_some(table_x, table_y)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Carry points to the space of ``y``; NaN where `fit` found no transformation."""
        check_is_fitted(self, "success_")
        table = as_table(X, "X")
        validate_data(self, X, reset=False, skip_check_array=True)
        check_finite(table, summarise_columns(table), "X")
        if self.transformation_ is None:
            return np.full((len(table), self.n_outputs_), np.nan)
        return self.transformation_(table)

    @cached_property
    def uncertainty_(self) -> MotionUncertainty | None:
        """Standard errors of the transformation, worked out when they are first asked for."""
        check_is_fitted(self, "success_")
        motion, near = self.transformation_, self._near_pairs
        if near is None or not isinstance(motion, SimilarityTransformation):
            return None
        return motion_uncertainty(motion, near)

    def _read_weights(self, sample_weight: Any, n: int) -> FloatArray:
        if sample_weight is None:
            return np.ones(n)
        weights = check_weights(sample_weight, n)
        if not weights.any():
            raise ValueError(f"All {n} entries of sample_weight are zero, so no pair counts. Some must be positive.")
        return weights / weights.max()  # so that their unit does not matter

    def _check(self, X: Array, Y: Array) -> None:
        check_choice(self.model, MODELS, "model")
        check_number(self.alpha, "alpha", low=0, high=0.5)
        check_flag(self.reflection, "reflection")
        check_flag(self.raise_on_failure, "raise_on_failure")
        if self.noise_bound is not None and check_number(self.noise_bound, "noise_bound", low=0) == 0:
            raise ValueError("noise_bound must be positive; leave it out to have it found from the data.")
        if self.model == "rotation" and self.reflection:
            raise ValueError("Model 'rotation' never reflects. Use model='orthogonal', or leave out reflection=True.")
        if self.model != "affine" and X.shape[1] != Y.shape[1]:
            raise ValueError(
                f"A {self.model} transformation keeps the dimension, but X has {X.shape[1]} column(s) and y "
                f"{Y.shape[1]}. Use model='affine', or bring both to the same number of columns."
            )
        check_coordinates(X, "X")
        check_coordinates(Y, "y")

    def _search(self, X: Array, Y: Array, weights: FloatArray) -> Consensus:
        draws = Draws(self.random_state)
        suggestion = self._linear_start(X, Y, draws) if self.model == "affine" else None
        model = MapModel(self.model, X.shape[1], self.reflection)
        return find_consensus(model, X, Y, weights, self.noise_bound, self.alpha, draws, suggestion)

    def _fit_listed(self, X: Array, Y: Array, weights: FloatArray, all_differ: bool = False) -> bool:
        """Fit to all pairs; False where a search finds that some are listed twice, and has to be done without those."""
        if X.shape[1] > _FEW_COLUMNS:
            return self._fit_wide(X, Y, weights, all_differ)
        return self._fit_by_search(X, Y, weights, self._search(X, Y, weights), all_differ)

    def _fit_distinct(self, X: Array, Y: Array, weights: FloatArray) -> None:
        """Fit to the different pairs, and give every copy of one its answer."""
        rows, numbers = distinct_pairs(X, Y)
        totals, n_copies = (np.bincount(numbers, part) for part in (weights, weights > 0))
        try:
            self._fit_listed(X[rows], Y[rows], totals / np.maximum(n_copies, 1), all_differ=True)
        except NoConsensusError as error:
            counted = f"Of the {len(X)} pairs, {rows.size} differ; one that is listed more than once counts once."
            raise NoConsensusError(f"{error} {counted}", error.evidence) from None
        for name in ("residuals_", "scores_", "p_values_", "q_values_", "inlier_mask_"):
            setattr(self, name, getattr(self, name)[numbers])

    def _fit_by_search(self, X: Array, Y: Array, weights: FloatArray, found: Consensus, all_differ: bool) -> bool:
        """The map that most pairs support, and residuals judged by those of re-pairings."""
        motion = found.motion() if found.evidence.is_significant else None
        if not all_differ and found.has_repeats(motion[1] if motion else None):
            return False
        if not found.evidence.is_significant:
            return self._fail(len(X), found.evidence)
        model = MapModel(self.model, X.shape[1], self.reflection)
        self.noise_bound_ = float(self.noise_bound or found.evidence.bound)
        if motion is None:
            self._set_transformation(X, Y, weights * found.nearness())
        else:
            self.transformation_, self.residuals_ = motion
            self.success_ = True
        self._keep_near(X, Y, weights, found.evidence.bound)
        self._judge_residuals(model, found, Y.shape[1])
        if found.evidence.is_coarse and np.count_nonzero(self.inlier_mask_) < model.fewest_pairs:
            return self._fail(len(X), found.evidence)
        if found.better_mirrored:
            cure = "model='orthogonal'" if self.model == "rotation" else "reflection=True"
            warn(f"A mirror image would fit the pairs far better. Use {cure} if it may be one.")
        return True

    def _fit_wide(self, X: Array, Y: Array, weights: FloatArray, all_differ: bool) -> bool:
        """Many dimensions: search by distances, and match by a linear map where that leaves doubts; more pairs win."""
        d, found = X.shape[1], None
        if d <= _WIDEST_SEARCH and self.model != "affine":
            found = self._search(X, Y, weights)
            if found.evidence.is_significant and found.evidence.n_supporting >= _AMPLE * d:
                return self._fit_by_search(X, Y, weights, found, all_differ)
        if len(X) < CalibratedMatcher._fewest_pairs:
            return self._fit_by_search(X, Y, weights, found or self._search(X, Y, weights), all_differ)
        matcher = CalibratedMatcher(alpha=self.alpha, random_state=self.random_state).fit(X, Y)
        accepted = np.count_nonzero(weights * matcher.inlier_mask_)
        by_search = found is not None and found.evidence.is_significant and found.evidence.n_supporting > accepted
        if accepted and not by_search:
            return self._fit_by_matching(X, Y, weights, matcher)
        return self._fit_by_search(X, Y, weights, found or self._search(X, Y, weights), all_differ)

    def _linear_start(self, X: Array, Y: Array, draws: Draws) -> Array:
        """Pairs that a linear map explains: where distances change, agreement has nothing to go by."""
        few = draws.distinct(len(X), 2000)
        if few.size < CalibratedMatcher._fewest_pairs:
            return few
        matcher = CalibratedMatcher(alpha=0.05, random_state=draws.numpy).fit(X[few], Y[few])
        return few[matcher.q_values_ <= _MORE_LIKELY_REAL]

    def _judge_residuals(self, model: MapModel, found: Consensus, d_y: int) -> None:
        # The map was fitted to the pairs within the bound, and its freedom has shortened their residuals.
        shortened = np.sqrt(max(1 - model.freedom / (d_y * max(found.evidence.n_supporting, 1)), 0.1))
        null = found.re_paired_residuals
        null *= shortened  # in place: nobody needs them as they were
        calibration, self.null_scores_ = calibrate_distances(self.residuals_, null, KEPT_NULL_SCORES)
        self.n_re_pairings_ = null.size
        self.detection_p_value_ = float(np.exp(min(found.evidence.log_false_alarms, 0.0)))
        real = found.evidence.n_supporting - found.evidence.by_chance * found.evidence.n_pairs
        q = np.maximum(calibration.q_values, self.detection_p_value_, out=calibration.q_values)
        self._decide(-self.residuals_, calibration.p_values, q, expected=0.0 if found.evidence.is_coarse else real)
        self.inlier_fraction_ = calibration.inlier_fraction
        self.inlier_fraction_error_ = calibration.inlier_fraction_error

    def _fit_by_matching(self, X: Array, Y: Array, weights: FloatArray, matcher: CalibratedMatcher) -> bool:
        """The pairs that the matcher accepts, and the transformation that fits them."""
        self._set_transformation(X, Y, weights * matcher.inlier_mask_)
        self.detection_p_value_ = matcher.detection_p_value_
        self.noise_bound_ = float(self.noise_bound or self.residuals_[matcher.inlier_mask_].max())
        self._decide(matcher.scores_, matcher.p_values_, matcher.q_values_)
        self.inlier_fraction_ = matcher.inlier_fraction_
        self.inlier_fraction_error_ = matcher.inlier_fraction_error_
        self.null_scores_, self.n_re_pairings_ = matcher.null_scores_, matcher.n_re_pairings_
        if self.noise_bound is not None and self.transformation_ is not None:  # then residuals are the scores
            self.null_scores_ = thinned(-self.transformation_.residuals(X, np.roll(Y, len(Y) // 2, axis=0)))
        return True

    def _keep_some(self, X: Array, Y: Array) -> None:
        """Keep some pairs for the report to draw: of the accepted and of the others, every so manieth."""
        most = min(_DRAWN, max(_DRAWN_NUMBERS // max(X.shape[1], Y.shape[1]), 1))
        n_accepted = int(np.count_nonzero(self.inlier_mask_))
        n_others = min(max(most // 3, most - n_accepted), len(X) - n_accepted)
        accepted, others = np.flatnonzero(self.inlier_mask_), np.flatnonzero(~self.inlier_mask_)
        rows = np.sort(np.concatenate([_evenly_spread(accepted, most - n_others), _evenly_spread(others, n_others)]))
        self._drawn_pairs = rows, np.take(X, rows, axis=0), np.take(Y, rows, axis=0)

    def _set_transformation(self, X: Array, Y: Array, weights: FloatArray) -> None:
        with single_threaded_blas() if X.shape[1] <= _FEW_COLUMNS else nullcontext():  # threads would only wait
            motion = fit_transformation(self.model, X, Y, weights, self.reflection, allow_undetermined=True)
            self.transformation_, self.residuals_ = motion, motion.residuals(X, Y)
        self.success_ = True
        if not motion.determined:
            warn(
                f"The {np.count_nonzero(weights)} pairs that agree do not determine all of a {self.model} "
                f"transformation in {X.shape[1]} dimensions; it is the best one on what they span, and the nearest to "
                f"the identity elsewhere.",
            )

    def _keep_near(self, X: Array, Y: Array, weights: FloatArray, bound: float) -> None:
        """Keep what `uncertainty_` takes, where there is one."""
        motion = self.transformation_
        if isinstance(motion, SimilarityTransformation) and X.shape[1] in (2, 3) and motion.determined:
            self._near_pairs = NearPairs.among(X, Y, weights, self.residuals_, bound)

    def _decide(self, scores: FloatArray, p: FloatArray, q: FloatArray, expected: float = 0.0) -> None:
        """Accept what is sure enough; where that leaves out most of the ``expected`` real pairs, say so."""
        self.p_values_, self.q_values_ = p, q
        self.scores_ = scores if self.noise_bound is None else -self.residuals_
        if self.noise_bound is None:
            self.inlier_mask_ = (q <= self.alpha) & (self.residuals_ <= _GENEROUS * self.noise_bound_)
        else:
            self.inlier_mask_ = self.residuals_ <= self.noise_bound
        unsure = self.noise_bound is None and np.count_nonzero(self.inlier_mask_) < _TOO_FEW * expected
        if unsure:
            self.inlier_mask_ = self.residuals_ <= self.noise_bound_
        n_accepted = int(np.count_nonzero(self.inlier_mask_))
        self.false_discovery_rate_ = min(float(q[self.inlier_mask_].max(initial=0.0)), 1.0)
        above_all = np.nextafter(self.scores_.max(), np.inf)
        self.threshold_ = float(self.scores_[self.inlier_mask_].min() if n_accepted else above_all)
        if unsure:
            warn(
                f"The transformation is sure, but most pairs that agree are not at alpha={self.alpha:g}: wrong ones "
                f"lie as near by chance. The {n_accepted} pairs within the noise bound are accepted, "
                f"with an expected {self.false_discovery_rate_:.1%} wrong ones; q_values_ tell which are surer.",
            )

    def _fail(self, n: int, evidence: Evidence) -> bool:
        if self.raise_on_failure:
            raise NoConsensusError.of(MapModel(self.model, self.n_features_in_, self.reflection), n, evidence)
        self.success_, self.transformation_, self._near_pairs = False, None, None
        self.residuals_ = np.full(n, np.nan)
        self.noise_bound_ = np.nan
        self.null_scores_, self.n_re_pairings_ = np.empty(0), 0
        self.scores_, self.threshold_ = np.zeros(n), float(np.nextafter(0.0, 1.0))
        self.inlier_mask_ = np.zeros(n, dtype=bool)
        self.p_values_, self.q_values_ = np.ones(n), np.ones(n)
        self.inlier_fraction_, self.inlier_fraction_error_, self.false_discovery_rate_ = 0.0, 0.0, 0.0
        self.detection_p_value_ = float(np.exp(min(evidence.log_false_alarms, 0.0)))
        return True


def _evenly_spread(rows: Array, most: int) -> Array:
    """At most so many of the rows, the first and the last among them."""
    ranks = np.linspace(0, rows.size - 1, min(most, rows.size)) + 0.5
    return rows[ranks.astype(np.intp)]
