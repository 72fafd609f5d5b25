"""CloudRegistration: two raw clouds in, one motion out, and how sure it is.

`fit` is: centre both -> (for a similarity: likely scales) -> at one octave after the other: thin, describe, match,
motions that matches suggest, refined on the surfaces -> the strongest -> is it sure? -> refine it on finer points.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.spatial.transform import Rotation
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from inlier._checks import check_choice, check_flag, warn
from inlier._typing import FloatArray
from inlier.clouds.errors import errors_of
from inlier.clouds.judging import Judgement, judged
from inlier.clouds.octaves import Clock, Finding, search
from inlier.clouds.refinement import Motion, polish
from inlier.clouds.rivals import FineLook, rival_of, set_aside, settled
from inlier.clouds.second_opinion import Opinion, opinion_on
from inlier.clouds.suggestions import likely_scales, size_of
from inlier.clouds.surfaces import thin_both
from inlier.consensus.search import as_generator
from inlier.consensus.uncertainty import MotionUncertainty
from inlier.estimators._cloud_input import as_motion, points_of, read_cloud
from inlier.estimators._cloud_refusals import another_unit, refusal, unit_hint, verdict_against
from inlier.estimators._verdict import RunnerUp
from inlier.estimators.registration import Registration
from inlier.exceptions import NoConsensusError
from inlier.rows import as_table
from inlier.rows.threads import single_threaded_blas
from inlier.transforms import SimilarityTransformation

if TYPE_CHECKING:
    from inlier.report import CloudReport

_MODELS = ("rigid", "similarity")
_SURE = 0.005  # detection p-value up to which a motion is called sure
_SAME_ORDER = 0.5  # of the support of the motion that was found, that makes another one worth a word
_KNOWN_SCALE = 0.03  # relative standard error up to which a scale is known
_BLOCK = 4.0  # sides of a coarse cell: points within err alike


class CloudRegistration(TransformerMixin, BaseEstimator):
    """Find the motion that carries one cloud of points onto another, from the points alone.

    Nothing has to be known: no pairs, no voxel size, no radius, no bound, no unit, no start. Both clouds may be of any
    size and density, and may show little of the same place; where they seem to show nothing in common, that is the
    answer. If a cloud may have been seen from its origin (0, 0, 0), as scans are that nobody moved, what it saw through
    helps to tell.

    Parameters
    ----------
    random_state : int, RandomState or None, default=None
        Draws samples of matches.
    raise_on_failure : bool, default=True
        Whether `fit` raises `NoConsensusError` where nothing is sure. If not, ``success_`` says so.
    model : {"rigid", "similarity"}, default="rigid"
        Whether the clouds are in one unit, or the scale is to be found as well: millimetres and metres, or a model made
        of photos, which has no unit. A scale is one more thing that can go wrong, so less is sure; it is found if
        the two clouds are of about one size once they are in one unit (up to a factor of 2).

    Attributes
    ----------
    success_ : bool
        Whether a motion was found that is sure: ``detection_p_value_`` of 0.005 or less, no freedom left, and no other
        motion that is about as sure.
    transformation_ : SimilarityTransformation or None
        target = transformation_(source), of the model that was asked for. None where nothing is sure.
    detection_p_value_ : float
        Chance that clouds of different places support a motion as well, by the tail of what such clouds did when the
        test was set up; 1 where the surfaces leave a freedom undetermined.
    undetermined_ : str or None
        The small turn or shift, in the target's axes, or change of scale, that the surfaces in contact do not
        determine: along a plane, a pipe, about a ball, of a corner.
    overlap_ : tuple of two floats
        Share of the surface of source and of target that touches the other; NaN where nothing was found.
    uncertainty_ : MotionUncertainty or None
        Standard errors of the motion, by blocks of the surface; None where nothing was found or too little tells.
    why_not_ : str or None
        What speaks against calling it sure, in a sentence; None where it is.
    evidence_ : list of dict
        For each motion that was looked at, the best first: ``n_supporting`` of ``n_matches`` matches in ``n_places``
        places, ``contact``, the share of the points near the other surface that touch it, ``in_front``, the share of
        the points in view of a scan from its origin that hang in the empty space before it (None where nothing is),
        ``undetermined``, a freedom that it leaves (or None), ``strength``, the one number of all that, and ``p_value``.
    best_guess_ : SimilarityTransformation or None
        The best motion that was found, sure or not, as it came from the search.
    runner_up_ : RunnerUp or None
        Another motion that is about as sure, or that at least half as many matches support, if there is one.
    matches_ : tuple of two ndarrays of shape (n, 3)
        The points of source and target that look most alike, row by row; most of these pairs are wrong.
    registration_ : Registration
        What `Registration` makes of the matches alone; worked out when it is first asked for.
    spacing_ : float
        Side of the cells that the clouds were last thinned with for matching.
    noise_bound_ : float
        Distance up to which points touch the other surface in the last refinement.
    refinement_ : float
        Root mean square distance by which the last refinement moved the source.
    judged_ : SimilarityTransformation or None
        The motion that `judge` was given; None after `fit`.
    off_by_ : tuple of two floats or None
        Degrees, and distance at the centre of the source, from that motion to where the surfaces put it.
    seconds_ : dict of float
        What each step took: ``"thin"``, ``"scales"`` (for a similarity), ``"describe and match"``, ``"search"``,
        ``"judge"`` and, where a motion is sure, ``"refine"``.
    n_features_in_ : int
        3.

    See Also
    --------
    Registration : for pairs that are given.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier import CloudRegistration
    >>> from inlier.datasets import make_scans
    >>> scans = make_scans(rng=0)  # a brain, seen from two sides
    >>> found = CloudRegistration(random_state=0).fit(scans.source, scans.target)
    >>> found.success_
    True
    >>> bool(np.abs(found.transformation_.rotation - scans.rotation).max() < 0.01)
    True
    """

    success_: bool
    transformation_: SimilarityTransformation | None

    # no side information that a pipeline could hand on, so no set_fit_request
    __metadata_request__fit: ClassVar = {"source": UNUSED, "target": UNUSED}

    def __init__(self, random_state: Any = None, raise_on_failure: bool = True, model: str = "rigid") -> None:
        self.random_state = random_state
        self.raise_on_failure = raise_on_failure
        self.model = model

    def fit(self, source: Any, target: Any) -> Self:
        """Find the motion.

        Parameters
        ----------
        source, target : array-like of shape (n, 3), (m, 3)
            Points of the two clouds, in one unit and in any order. Rows with NaN are left out.

        Returns
        -------
        self
        """
        check_flag(self.raise_on_failure, "raise_on_failure")
        self._register(source, target, None)
        if self.why_not_ is not None and self.raise_on_failure:
            raise NoConsensusError(self.why_not_)
        return self

    def judge(self, source: Any, target: Any, transformation: Any) -> Self:
        """Say whether a motion that another tool found is right, by the evidence that `fit` asks for.

        The same search is made, and the motion is compared with all that it finds. ``success_`` is True where the
        motion would have been called sure, and the surfaces leave it where it is: then ``transformation_`` is where
        they put it, and ``off_by_`` how far that is from the motion as it was given. Otherwise ``why_not_`` says what
        speaks against it, and ``runner_up_`` is the motion to look at instead. Nothing is raised for a no.

        Parameters
        ----------
        source, target : array-like of shape (n, 3), (m, 3)
            As for `fit`.
        transformation : SimilarityTransformation or array-like of shape (4, 4)
            The motion, or its matrix: target = R source + t.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from inlier import CloudRegistration
        >>> from inlier.datasets import make_scans
        >>> scans = make_scans(rng=0)
        >>> matrix = np.eye(4)
        >>> matrix[:3, :3], matrix[:3, 3] = scans.rotation, scans.translation
        >>> judge = CloudRegistration(random_state=0)
        >>> judge.judge(scans.source, scans.target, matrix).success_
        True
        >>> judge.judge(scans.source, scans.target, np.eye(4)).success_
        False
        """
        self._register(source, target, as_motion(transformation, self.model))
        return self

    def _register(self, source: Any, target: Any, claim: SimilarityTransformation | None) -> None:
        """Look for the motion, or judge one that is claimed."""
        check_choice(self.model, _MODELS, "model")
        clouds = read_cloud(source, "source"), read_cloud(target, "target")
        self._origins = clouds[0].mean(axis=0), clouds[1].mean(axis=0)
        first, second = (cloud - origin for cloud, origin in zip(clouds, self._origins, strict=True))
        self.n_features_in_, clock, judgement = 3, Clock(), None
        with single_threaded_blas():
            first, second, finding = self._search(first, second, clock)
            if claim is not None:
                judgement = judged(self._as_motion(claim), finding)
                finding = judgement.finding
            with clock("judge"):
                opinions, self._rival, self._aside = self._doubts(finding, is_claim=claim is not None)
                finding = replace(finding, opinions=opinions)
            self._answer(finding, judgement)
            if self.success_:
                with clock("refine"):
                    self._refine(finding)
        self.seconds_, self.judged_ = clock.seconds, claim
        self.off_by_ = None if claim is None else self._off_by(claim)
        self.why_not_ = None if self.success_ else self._why_not((first, second), finding.opinions, judgement)

    def transform(self, X: Any) -> FloatArray:
        """Carry points of the source to the target; NaN where `fit` found no motion."""
        check_is_fitted(self, "success_")
        points = as_table(points_of(X, "X"), "X")
        if self.transformation_ is None:
            return np.full(points.shape, np.nan)
        return self.transformation_(points)

    def report(self, source: Any, target: Any) -> CloudReport:
        """Return a page to look at, with both clouds before and after; they are not kept, so give them again.

        Parameters
        ----------
        source, target : array-like of shape (n, 3), (m, 3)
            The clouds of `fit`.

        Returns
        -------
        CloudReport
        """
        from inlier.report import report_on_clouds

        check_is_fitted(self, "success_")
        return report_on_clouds(self, source, target)

    @cached_property
    def registration_(self) -> Registration:
        """What the matches alone say."""
        check_is_fitted(self, "success_")
        start = Registration(self.model, raise_on_failure=False, random_state=self.random_state)
        return start.fit(*self.matches_)

    def _search(self, source: FloatArray, target: FloatArray, clock: Clock) -> tuple[FloatArray, FloatArray, Finding]:
        """Thin both, and look for motions; the source is brought to the size of the target where its scale is free."""
        rng, scales = as_generator(self.random_state), None
        with clock("thin"):
            self._scale = 1.0 if self.model == "rigid" else size_of(target) / size_of(source)
            source, target = thin_both(self._scale * source, target)
        if self.model == "similarity":
            with clock("scales"):
                scales = likely_scales(source, target, rng)
        origins = self._scale * self._origins[0], self._origins[1]
        finding = search(source, target, origins, scales, rng, clock)
        self._scale *= finding.scale
        return source, target, finding

    def _doubts(self, finding: Finding, *, is_claim: bool) -> tuple[list[Opinion], Opinion | None, Opinion | None]:
        """The opinions, what rivals the first, if that looks sure, and what was set aside though more speaks for it."""
        log_sure, opinions = float(np.log(_SURE)), finding.opinions
        if not opinions or opinions[0].log_p_value > log_sure:
            return opinions, None, None
        look = FineLook((finding.views.coarser, finding.views.grid), self.model == "similarity")
        if is_claim:  # which stays the one that is judged
            rival = rival_of(opinions, look, log_sure)
        else:
            opinions, rival = settled(opinions, look, log_sure)
        return opinions, rival, set_aside(opinions, log_sure)

    def _answer(self, finding: Finding, judgement: Judgement | None) -> None:
        """Say what was found, as far as the search has come, or what is claimed."""
        self.__dict__.pop("registration_", None)  # of an earlier fit
        opinions, level = finding.opinions, finding.levels[-1]
        best = opinions[0] if opinions else None
        self.detection_p_value_ = 1.0 if best is None else float(np.exp(best.log_p_value))
        self.undetermined_ = None if best is None else best.undetermined
        is_doubted = self._rival is not None or self._aside is not None
        self.success_ = bool(best is not None and self.detection_p_value_ <= _SURE and not is_doubted)
        if judgement is not None:
            self.success_ = bool(self.success_ and judgement.is_strongest and judgement.is_where_claimed)
        self.best_guess_ = None if best is None else self._as_transformation(best.motion)
        self.transformation_ = self.best_guess_ if self.success_ else None
        self.overlap_ = best.overlap if best is not None and self.success_ else (np.nan, np.nan)
        self.uncertainty_: MotionUncertainty | None = None
        self.runner_up_ = None
        second = self._rival or self._aside
        if second is None and len(opinions) > 1:
            is_beaten = judgement is not None and not judgement.is_strongest
            if is_beaten or opinions[1].n_supporting >= _SAME_ORDER * opinions[0].n_supporting:
                second = opinions[1]
        if second is not None:
            self.runner_up_ = RunnerUp(self._as_transformation(second.motion), float(second.n_supporting))
        self.evidence_ = [one.to_dict() for one in opinions]
        self.spacing_, self.noise_bound_, self.refinement_ = level.side, np.nan, np.nan
        x, y = level.ends
        self.matches_ = x / self._scale + self._origins[0], y + self._origins[1]

    def _refine(self, finding: Finding) -> None:
        """Improve the motion on finer points, and say how far it may be off."""
        best, levels, free_scale = finding.opinions[0], finding.levels, self.model == "similarity"
        grids = finding.views.coarser, finding.views.grid
        motion, surfaces, self.noise_bound_ = polish(grids, best.motion, free_scale=free_scale)
        some = levels[0].source.points
        self.refinement_ = float(np.sqrt(((motion(some) - best.motion(some)) ** 2).sum(axis=1).mean()))
        if self.refinement_ > _BLOCK * levels[0].side:
            warn(
                f"Refinement moved the source by {self.refinement_:.3g}, more than its search left open: finer points "
                f"disagree with coarse ones. The motion is the one before refinement; look at it before you rely on it."
            )
            return
        found = self._as_transformation(motion)
        self.transformation_ = found
        self.overlap_ = opinion_on(motion, levels).overlap
        block = _BLOCK * levels[0].side
        self.uncertainty_ = errors_of(surfaces, motion, self.noise_bound_, block, found, self._origins[1])
        if free_scale and (self.uncertainty_ is None or self.uncertainty_.scale > _KNOWN_SCALE * found.scale):
            self.success_, self.detection_p_value_, self.undetermined_ = False, 1.0, "another scale"
            self.transformation_, self.uncertainty_, self.overlap_ = None, None, (np.nan, np.nan)

    def _as_transformation(self, motion: Motion) -> SimilarityTransformation:
        """The motion between the clouds as they came."""
        scale = self._scale * motion.scale
        shift = self._origins[1] + motion.translation - scale * (motion.rotation @ self._origins[0])
        return SimilarityTransformation(motion.rotation, shift, scale, model=self.model)

    def _as_motion(self, claim: SimilarityTransformation) -> Motion:
        """A motion between the clouds as they came, as one between the clouds as they are looked at."""
        shift = claim.translation + claim.linear @ self._origins[0] - self._origins[1]
        return Motion(claim.rotation, shift, claim.scale / self._scale)

    def _off_by(self, claim: SimilarityTransformation) -> tuple[float, float]:
        """Degrees, and distance at the centre of the source, from a claimed motion to where the surfaces put it."""
        settled, centre = self.transformation_ or self.best_guess_, self._origins[0]
        assert settled is not None
        turn = Rotation.from_matrix(settled.rotation @ claim.rotation.T).magnitude()
        step = settled(centre[None]) - claim(centre[None])
        return float(np.degrees(turn)), float(np.linalg.norm(step))

    def _why_not(
        self, clouds: tuple[FloatArray, FloatArray], opinions: list[Opinion], judgement: Judgement | None
    ) -> str:
        first, second = (float(np.sqrt((cloud**2).sum(axis=1).mean())) for cloud in clouds)
        of_unit = another_unit((first, second))
        if of_unit is not None:
            return of_unit
        if judgement is not None and self.off_by_ is not None:
            is_other_sure = any(one.log_p_value <= np.log(_SURE) for one in opinions[1:2])
            against = verdict_against(judgement, self.off_by_, is_other_sure)
            if against is not None:
                return against
        hint = unit_hint((first, second), self.model)
        return refusal(opinions, self._rival, self._aside, hint)
