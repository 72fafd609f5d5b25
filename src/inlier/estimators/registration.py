"""Registration: the transformation that carries X onto y, from pairs of which most may be wrong.

`fit` is: read and check -> search for a consensus (in many dimensions also match by a linear map) -> where pairs are
listed twice, search again among the different ones -> the transformation of least squares -> judge residuals by those
of re-pairings -> accept, warn, or fail.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from inlier._checks import check_flag, check_number, relative_weights, warn
from inlier._typing import Array, FloatArray
from inlier.calibration.p_values import KEPT_NULL_SCORES, calibrate_distances, evenly_spaced
from inlier.consensus.evidence import find_near_misses
from inlier.consensus.find import doubt, find_consensus
from inlier.consensus.refine import Certainty, Consensus, NearPairs
from inlier.consensus.search import as_generator
from inlier.consensus.uncertainty import MotionUncertainty, motion_uncertainty, widened
from inlier.estimators._base import RowNames
from inlier.estimators._new_pairs import NewPairs, in_kind
from inlier.estimators._verdict import (
    CHOSEN,
    NO_TIES,
    PERHAPS_CHOSEN,
    Verdict,
    chosen,
    set_aside,
    ties_of,
    warn_about,
    warn_of_choice,
    warn_of_others,
    why_not,
)
from inlier.estimators.calibrated import CalibratedMatcher
from inlier.exceptions import DependenceWarning, NoConsensusError, ParameterError
from inlier.rows import as_table, check_coordinates, check_finite, check_magnitude, summarise_columns
from inlier.rows.null_pairs import distinct_pairs
from inlier.rows.threads import single_threaded_blas
from inlier.transforms import MapModel, SimilarityTransformation, Transformation
from inlier.transforms.estimation import fit_transformation
from inlier.transforms.least_squares import check_model

if TYPE_CHECKING:
    from inlier.report import MatchReport

_FEW_COLUMNS = 8  # up to which residuals say enough; with more, a linear map may find what they do not
_WIDEST_SEARCH = 100  # columns up to which a search by distances comes first
_AMPLE = 2  # supporting pairs a column that leave no doubt
_ONE_SIDED = 1.645  # standard errors to the end of a one-sided 95 % interval


class Registration(NewPairs):
    """Find the transformation between two sets of points, and which pairs are real.

    No noise bound has to be given: it is found from the data, and so is the answer to "did it fail?".

    Parameters
    ----------
    model : {"rigid", "rotation", "orthogonal", "similarity", "affine"}, default="rigid"
        What to look for: rotation and translation; rotation about the origin; the same or a reflection; rotation,
        translation and one scale; any linear map and translation.
    alpha : float, default=0.01
        Largest expected share of wrong pairs among those accepted. Where that would leave out most of the pairs that
        agree, those within ``noise_bound_`` are accepted, and ``false_discovery_rate_`` is what the share is instead.
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
        ``scale``, their ``covariance``, and ``covers(transformation, level=0.95)``, whether another one lies in the
        joint region. Pairs that lie near each other and err alike count as one; for rigid ones in space, where they do,
        errors reach to where the surface that the points lie on would have it. None where they are not available:
        otherwise, and where hardly more pairs count than fix the transformation; for rigid ones in space, where
        (sum w)^2 / sum w^2 < 4 by their weights w, or where less than two cells of such neighbours tell.
    inlier_mask_ : ndarray of bool, shape (n,)
        The pairs that are called real: ``q_values_ <= alpha``, and residuals up to one and a half ``noise_bound_``;
        where a ``noise_bound`` was given, residuals up to that.
    near_miss_mask_ : ndarray of bool, shape (n,)
        In 2 and 3 dimensions: pairs beyond those, which agree better than chance but not as tightly as real ones do,
        such as matches to a neighbouring place. They are not called real; unless a bound was given, their ``q_values_``
        are a quarter or more.
    false_discovery_rate_ : float
        Expected share of wrong pairs among those accepted.
    residuals_ : ndarray of shape (n,)
        ``|y_i - transformation_(x_i)|``.
    noise_bound_ : float
        Residual up to which the pairs agree beyond chance, found from the data or as it was given. Where there are
        near misses, it is not above the residual up to which a pair is three times as likely real as not.
    p_values_, q_values_ : ndarray of shape (n,)
        Chance that a wrong pair lies as near, and the smallest ``alpha`` at which the pair is accepted.
    inlier_fraction_, inlier_fraction_error_ : float
        Estimated share of real pairs, accepted or not, among the different ones, and its standard error. Where there
        are near misses, the share within the bound beyond what they and chance give. Where a matcher judged the pairs,
        the error is such that the lower end of a one-sided interval is `CalibratedMatcher.inlier_fraction_at_least_`.
    detection_p_value_ : float
        Bound on the chance of so much agreement, anywhere, if no pair were real; for mistakes that come in clumps (a
        patch matched to a patch) as well as for independent ones. 1 where another one is supported alike, or where a
        turn or slide of it is open.
    n_places_ : float
        In how many places pairs agree: cells two noise bounds wide, occupied on both sides.
    clump_length_ : float
        Distance up to which mistakes come together, neighbours here matched to neighbours there; 0 where they are
        independent of each other.
    runner_up_ : RunnerUp or None
        Where mistakes come in clumps and another transformation has at least half as many places: that
        ``transformation`` and its ``n_places``.
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
    Maps are looked for by their residuals: first from the paper's row sums, then from sets of pairs that keep their
    distances to each other, in samples that grow until nothing better can have been missed. With more than 8 columns
    `CalibratedMatcher` looks too where that leaves doubts, with more than 100 it comes first. Fewer accepted pairs than
    dimensions do not determine a rotation: a warning says so, and the transformation is the best one on what they
    span. Structured errors (a second motion, a repeated pattern, an order of rows, pairs chosen by nearness) agree with
    each other too: before a motion is sure, each of these is asked what it gives without one, and places count, not
    pairs. Affine maps and more than 8 columns are not asked in this way.
    A pair that is listed more than once counts once, with the mean weight of those of its copies that have one, and all
    copies get the same answer.
    A pair with a point over a thousand times as far from the others as is typical is set aside, and a warning names it,
    unless more than a hundredth of the points are so far away.

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

    is_calibrated = True
    _works_in_parts = False

    success_: bool
    transformation_: Transformation | None
    _near_pairs: NearPairs | None
    _null_residuals: FloatArray | None  # minus those of re-pairings, where scores are a matcher's
    _names_y: RowNames

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
        self._names_y, self._null_residuals = RowNames.of(y), None
        X, y = self._read_pairs(X, y)
        lengths = self._check(X, y)
        self.n_outputs_ = y.shape[1]
        weights, copies = relative_weights(sample_weight, len(X)), None
        weights = np.ones(len(X)) if weights is None else weights
        everyone, far = (X, y), set_aside(X, y, weights, lengths)
        if far is not None:
            X, y, weights = X[~far], y[~far], weights[~far]
        found = self._find(X, y, weights)
        if isinstance(found, Consensus) and found.has_repeats:  # a pair that is listed twice is still one witness
            rows, copies = distinct_pairs(X, y)
            totals, n_weighted = (np.bincount(copies, part) for part in (weights, weights > 0))
            X, y, weights = X[rows], y[rows], totals / np.maximum(n_weighted, 1)
            found = self._find(X, y, weights)
        if isinstance(found, Consensus):
            found, certainty = doubt(found, self.noise_bound, self.alpha, as_generator(self.random_state))
            verdict = self._by_search(found, certainty, X, y, weights)
            motion = verdict.transformation_ if verdict.success_ else None
            ties = NO_TIES if motion is None else ties_of(motion, X, y, verdict.inlier_mask_)
            is_chosen = ties.chance <= CHOSEN
            if is_chosen:
                verdict = Verdict.of_failure(len(X), found, certainty, max(certainty.p_value, ties.chance))
            elif ties.chance <= PERHAPS_CHOSEN:
                warn_of_choice(ties)
            if not verdict.success_ and self.raise_on_failure:
                why = chosen(ties) if is_chosen else why_not(found, certainty, len(X), copies)
                raise NoConsensusError(why, found.evidence)
        else:
            verdict = self._by_matching(found, X, y, weights)
        self.__dict__.pop("uncertainty_", None)  # of an earlier fit
        motion, self._near_pairs = verdict.transformation_, None
        has_errors = isinstance(motion, SimilarityTransformation) and motion.determined and X.shape[1] in (2, 3)
        if has_errors and isinstance(found, Consensus):
            self._near_pairs = NearPairs.among(
                X, y, weights, verdict.residuals_, found.evidence.bound, verdict.clump_length_
            )
        if copies is not None:
            verdict = verdict.of_copies(copies)
        if far is not None:
            verdict = verdict.with_far_points(far, *everyone)
        for name, value in vars(verdict).items():
            setattr(self, name, value)
        return self

    def transform(self, X: Any) -> Any:
        """Carry points to the space of ``y``; NaN where `fit` found no transformation. A frame comes back as one."""
        check_is_fitted(self, "success_")
        table = as_table(X, "X")
        validate_data(self, X, reset=False, skip_check_array=True)
        check_finite(table, summarise_columns(table), "X")
        moved = np.full((len(table), self.n_outputs_), np.nan)
        if self.transformation_ is not None:
            moved = self.transformation_(table)
        return in_kind(moved, X, self._output_names)

    def predict(self, X: Any) -> Any:
        """Predict y for points of ``X``: what `transform` says."""
        return self.transform(X)

    def _score_new(self, X: Array, Y: Array) -> FloatArray:
        """Minus the residuals; 0 where nothing was found."""
        return np.zeros(len(X)) if self.transformation_ is None else -self.transformation_.residuals(X, Y)

    def _kept_null(self) -> FloatArray:
        null = self.null_scores_ if self._null_residuals is None else self._null_residuals
        return null if null.size else np.zeros(1)

    @cached_property
    def uncertainty_(self) -> MotionUncertainty | None:
        """Standard errors of the transformation, worked out when they are first asked for."""
        check_is_fitted(self, "success_")
        motion, near = self.transformation_, self._near_pairs
        if near is None or not isinstance(motion, SimilarityTransformation):
            return None
        errors = motion_uncertainty(motion, near)
        if errors is None or not errors.cluster_side or motion.model != "rigid" or self.n_outputs_ != 3:
            return errors
        from inlier.clouds.refinement import slid_to_surface  # a fit takes no surfaces

        return widened(errors, slid_to_surface(near.X, near.Y, motion, near.bound))

    def report(self, path: Any = None, keys: Any = None, X: Any = None, y: Any = None) -> MatchReport:
        """Return a report to look at: shown by notebooks, and written to a file where one is named.

        Parameters
        ----------
        path : path, optional
            Where to write the page, such as ``"report.html"``.
        keys : sequence of str, optional
            A name for each pair, for the table of pairs; by default the labels of the rows of ``X``, if it was a frame.
        X, y : array-like, optional
            The tables of `fit`, which are not kept: with them the page draws both sets, before and after.

        Returns
        -------
        RegistrationReport
        """
        from inlier.report import report_on

        report = report_on(self, self._keys(keys), X, y)
        if path is not None:
            report.write_html(path)
        return report

    @property
    def _map_model(self) -> MapModel:
        return MapModel(self.model, self.n_features_in_, self.reflection)

    def _check(self, X: Array, Y: Array) -> tuple[float, float]:
        """Refuse what cannot be fitted; how long the ranges of all coordinates of X and of Y are."""
        check_model(self.model, X, Y, self.reflection)
        check_number(self.alpha, "alpha", low=0, high=0.5)
        check_flag(self.reflection, "reflection")
        check_flag(self.raise_on_failure, "raise_on_failure")
        if self.noise_bound is not None and check_number(self.noise_bound, "noise_bound", low=0) == 0:
            raise ParameterError("noise_bound", "must be positive; leave it out to have it found from the data.")
        if self.noise_bound is not None:
            check_magnitude(float(self.noise_bound), "noise_bound")
        return check_coordinates(X, "X"), check_coordinates(Y, "y")

    def _find(self, X: Array, Y: Array, weights: FloatArray) -> Consensus | CalibratedMatcher:
        """Search by distances; in many dimensions, match by a linear map where that leaves doubts. More pairs win."""
        d, found = X.shape[1], None
        if d <= _FEW_COLUMNS or len(X) < CalibratedMatcher._fewest_pairs:
            return self._search(X, Y, weights)
        if d <= _WIDEST_SEARCH and self.model != "affine":
            found = self._search(X, Y, weights)
            if found.evidence.is_significant and found.evidence.n_supporting >= _AMPLE * d:
                return found
        matcher = self._matched(CalibratedMatcher(alpha=self.alpha, random_state=self.random_state), X, Y)
        n_accepted = np.count_nonzero(weights * matcher.inlier_mask_)
        n_supporting = found.evidence.n_supporting if found and found.evidence.is_significant else 0
        return matcher if n_accepted and n_accepted >= n_supporting else found or self._search(X, Y, weights)

    def _search(self, X: Array, Y: Array, weights: FloatArray) -> Consensus:
        rng = as_generator(self.random_state)
        suggestion = self._linear_start(X, Y, rng) if self.model == "affine" else None
        return find_consensus(self._map_model, X, Y, weights, self.noise_bound, self.alpha, rng, suggestion)

    @staticmethod
    def _matched(matcher: CalibratedMatcher, X: Array, Y: Array) -> CalibratedMatcher:
        """Match by a linear map; what it has to say about rows that depend on each other is not about this question."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DependenceWarning)
            return matcher.fit(X, Y)

    def _linear_start(self, X: Array, Y: Array, rng: np.random.Generator) -> Array:
        """Pairs that a linear map explains: where distances change, agreement has nothing to go by."""
        few = rng.choice(len(X), min(len(X), 2000), replace=False)
        if few.size < CalibratedMatcher._fewest_pairs:
            return few
        matcher = self._matched(CalibratedMatcher(alpha=0.05, random_state=int(rng.integers(2**32))), X[few], Y[few])
        return few[matcher.q_values_ <= 0.5]

    def _by_search(self, found: Consensus, certainty: Certainty, X: Array, Y: Array, weights: FloatArray) -> Verdict:
        """The map that most pairs support, and residuals judged by those of re-pairings."""
        evidence = found.evidence
        if not certainty.is_sure:
            return Verdict.of_failure(len(X), found, certainty)
        motion, residuals = found.motion or self._fit_to(X, Y, weights * found.nearness())
        calibration, null_scores = calibrate_distances(residuals, found.re_paired_residuals, KEPT_NULL_SCORES)
        q_values = calibration.q_values
        if q_values.min() < certainty.p_value:  # no pair is surer than that there is any
            np.maximum(q_values, certainty.p_value, out=q_values)
        n_real = evidence.n_supporting - evidence.by_chance * evidence.n_pairs
        judged = Verdict(
            success_=True,
            transformation_=motion,
            residuals_=residuals,
            noise_bound_=float(self.noise_bound or evidence.bound),
            scores_=-residuals,
            p_values_=calibration.p_values,
            q_values_=q_values,
            inlier_mask_=np.zeros(len(X), dtype=bool),  # until it is decided
            near_miss_mask_=np.zeros(len(X), dtype=bool),
            detection_p_value_=certainty.p_value,
            inlier_fraction_=calibration.inlier_fraction,
            inlier_fraction_error_=calibration.inlier_fraction_error,
            null_scores_=null_scores,
            n_re_pairings_=found.re_paired_residuals.size,
        )
        near_misses, rate = None, 0.0
        if not evidence.is_coarse:
            near_misses = find_near_misses(residuals, found.re_paired_residuals, evidence.bound, Y.shape[1])
        if near_misses is not None and self.noise_bound is None:
            judged = judged.told_from(near_misses)
            n_real, *others = near_misses.expected_within(judged.noise_bound_)
            rate = float(sum(others) / max(n_real + sum(others), 1.0))
        elif near_misses is not None:
            judged = replace(judged, near_miss_mask_=near_misses.among(residuals, judged.noise_bound_))
        elif certainty.clump_length > 0 and not evidence.is_coarse:
            judged = judged.within_bound(evidence.inlier_fraction)
        verdict = judged.decided(self.alpha, self.noise_bound, 0.0 if evidence.is_coarse else n_real, rate)
        verdict = verdict.with_others(found, certainty)
        if evidence.is_coarse and np.count_nonzero(verdict.inlier_mask_) < found.model.fewest_pairs:
            return Verdict.of_failure(len(X), found, certainty)
        warn_about(found, verdict, X, Y)
        warn_of_others(verdict, self.model)
        return verdict

    def _by_matching(self, matcher: CalibratedMatcher, X: Array, Y: Array, weights: FloatArray) -> Verdict:
        """The pairs that the matcher accepts, and the transformation that fits them."""
        motion, residuals = self._fit_to(X, Y, weights * matcher.inlier_mask_)
        scores, null_scores = matcher.scores_, matcher.null_scores_
        self._null_residuals = evenly_spaced(np.sort(-motion.residuals(X, np.roll(Y, len(Y) // 2, axis=0))))
        if self.noise_bound is not None:  # then residuals are the scores
            scores, null_scores = -residuals, self._null_residuals
        judged = Verdict(
            success_=True,
            transformation_=motion,
            residuals_=residuals,
            noise_bound_=float(self.noise_bound or residuals[matcher.inlier_mask_].max()),
            scores_=scores,
            p_values_=matcher.p_values_,
            q_values_=matcher.q_values_,
            inlier_mask_=matcher.inlier_mask_,
            near_miss_mask_=np.zeros(len(X), dtype=bool),
            inlier_fraction_=matcher.inlier_fraction_,
            inlier_fraction_error_=(matcher.inlier_fraction_ - matcher.inlier_fraction_at_least_) / _ONE_SIDED,
            detection_p_value_=matcher.detection_p_value_,
            null_scores_=null_scores,
            n_re_pairings_=matcher.n_re_pairings_,
        )
        return judged.decided(self.alpha, self.noise_bound)

    def _fit_to(self, X: Array, Y: Array, weights: FloatArray) -> tuple[Transformation, FloatArray]:
        """The transformation of least squares and its residuals; a warning where pairs do not determine all of it."""
        with single_threaded_blas() if X.shape[1] <= _FEW_COLUMNS else nullcontext():  # threads would only wait
            motion = fit_transformation(self._map_model, X, Y, weights, allow_undetermined=True)
            residuals = motion.residuals(X, Y)
        if not motion.determined:
            warn(
                f"The {np.count_nonzero(weights)} pairs that agree do not determine all of a {self.model} "
                f"transformation in {X.shape[1]} dimensions; it is the best one on what they span, and the nearest to "
                f"the identity elsewhere.",
            )
        return motion, residuals
