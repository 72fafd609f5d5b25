"""CloudRegistration: two raw clouds in, one motion out, and how sure it is.

`fit` is: centre both -> (for a similarity: likely scales) -> at one octave after the other: thin, describe, match,
motions that matches suggest, refined on the surfaces -> the strongest -> is it sure? -> refine it on finer points.
"""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from inlier._checks import check_choice, check_flag, warn
from inlier._typing import Array, FloatArray
from inlier.clouds.octaves import Clock, Finding, search
from inlier.clouds.refinement import Motion, errors_of, polish
from inlier.clouds.second_opinion import Opinion, opinion_on
from inlier.clouds.suggestions import likely_scales, size_of
from inlier.clouds.surfaces import Grid, thin_both
from inlier.consensus import as_generator
from inlier.consensus.uncertainty import MotionUncertainty
from inlier.estimators._verdict import RunnerUp
from inlier.estimators.registration import Registration
from inlier.exceptions import NoConsensusError, ParameterError
from inlier.rows import as_table
from inlier.rows.threads import single_threaded_blas
from inlier.transforms import SimilarityTransformation

if TYPE_CHECKING:
    from inlier.report import CloudReport

_MODELS = ("rigid", "similarity")
_SURE = 0.005  # detection p-value up to which a motion is called sure
_FEWEST_POINTS = 100  # of a cloud
_ANOTHER_UNIT = 30.0  # ratio of the sizes of two clouds that hardly show one place in one unit
_ANOTHER_SIZE = 2.0  # ratio from which on a refusal mentions the unit
_AS_SURE = 0.05  # ratio of the p-values of two motions that are both sure, from which on either may be right
_SAME_ORDER = 0.5  # of the support of the motion that was found, that makes another one worth a word
_KNOWN_SCALE = 0.03  # relative standard error up to which a scale is known
_BLOCK = 4.0  # sides of a coarse cell: points within err alike
_REFINED = 6_000  # points of each cloud, about, that a motion is first refined on; then on those of free space
_MOST_POINTS = 4_000_000  # of a cloud that are kept as they are; of more, every so many


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
        the points in view of a scan from its origin that hang in the empty space before it (None where nothing is), and
        ``p_value``.
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
        check_choice(self.model, _MODELS, "model")
        clouds = _read_cloud(source, "source"), _read_cloud(target, "target")
        self._origins = clouds[0].mean(axis=0), clouds[1].mean(axis=0)
        first, second = (cloud - origin for cloud, origin in zip(clouds, self._origins, strict=True))
        self.n_features_in_, clock = 3, Clock()
        with single_threaded_blas():
            first, second, finding = self._search(first, second, clock)
            self._answer(finding)
            if self.success_:
                with clock("refine"):
                    self._refine(finding.scale * first, second, finding)
        self.seconds_ = clock.seconds
        self.why_not_ = None if self.success_ else self._why_not(first, second, finding.opinions)
        if self.why_not_ is not None and self.raise_on_failure:
            raise NoConsensusError(self.why_not_)
        return self

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

    def _answer(self, finding: Finding) -> None:
        """Say what was found, as far as the search has come."""
        self.__dict__.pop("registration_", None)  # of an earlier fit
        opinions, level = finding.opinions, finding.levels[-1]
        best = opinions[0] if opinions else None
        self.detection_p_value_ = 1.0 if best is None else float(np.exp(best.log_p_value))
        self.undetermined_ = None if best is None else best.undetermined
        self.success_ = best is not None and self.detection_p_value_ <= _SURE and not _is_ambiguous(opinions)
        self.best_guess_ = None if best is None else self._as_transformation(best.motion)
        self.transformation_ = self.best_guess_ if self.success_ else None
        self.overlap_ = best.overlap if best is not None and self.success_ else (np.nan, np.nan)
        self.uncertainty_: MotionUncertainty | None = None
        self.runner_up_ = None
        if len(opinions) > 1:
            first, second = opinions[:2]
            if _is_ambiguous(opinions) or second.n_supporting >= _SAME_ORDER * first.n_supporting:
                self.runner_up_ = RunnerUp(self._as_transformation(second.motion), float(second.n_supporting))
        self.evidence_ = [one.to_dict() for one in opinions]
        self.spacing_, self.noise_bound_, self.refinement_ = level.side, np.nan, np.nan
        x, y = level.ends
        self.matches_ = x / self._scale + self._origins[0], y + self._origins[1]

    def _refine(self, source: FloatArray, target: FloatArray, finding: Finding) -> None:
        """Improve the motion on finer points, and say how far it may be off."""
        best, levels, free_scale = finding.opinions[0], finding.levels, self.model == "similarity"
        grids = Grid.of(source, target, _REFINED), finding.views.grid
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

    def _why_not(self, source: FloatArray, target: FloatArray, opinions: list[Opinion]) -> str:
        sizes = [float(np.sqrt((cloud**2).sum(axis=1).mean())) for cloud in (source, target)]
        ratio = sizes[1] / sizes[0]
        if not 1 / _ANOTHER_UNIT < ratio < _ANOTHER_UNIT:
            smaller, scale = "source" if ratio > 1 else "target", 10 ** round(abs(np.log10(ratio)))
            return (
                f"The source has a size of {sizes[0]:.3g}, the target one of {sizes[1]:.3g}, which is "
                f"{max(ratio, 1 / ratio):.3g} times as much or as little. Are they in one unit? A scale of {scale:g} "
                f"would fit (millimetres and metres differ by 1000): multiply the coordinates of the {smaller} by "
                f"that and try again, or let model='similarity' find the scale."
            )
        if not opinions:
            return (
                "The clouds have no surface in common that could be found: none of their points look alike in a way "
                "that one motion explains."
            )
        best = opinions[0]
        if self.undetermined_ is not None:
            return (
                f"The surfaces that can be brought together do not determine the motion: {self.undetermined_} fits "
                f"as well, as along a plane, a pipe or a ball. What was found is one of many; scans "
                f"that show more would tell."
            )
        if _is_ambiguous(opinions):
            return (
                f"Two different motions fit about as well: {best.n_supporting} and {opinions[1].n_supporting} of "
                f"{best.n_matches} matches support them, and {best.contact:.0%} and {opinions[1].contact:.0%} of the "
                f"points near the other surface touch it. What the clouds show may repeat itself or be symmetric; "
                f"scans that show more would tell."
            )
        another = " If they may be in different units, let model='similarity' find the scale."
        unit = another if self.model == "rigid" and not 1 / _ANOTHER_SIZE < ratio < _ANOTHER_SIZE else ""
        in_front = "" if best.in_front is None else f", and {best.in_front:.0%} of what is in view hangs in empty space"
        return (
            f"No motion is sure. The best one found is supported by {best.n_supporting} of {best.n_matches} matches, "
            f"{best.contact:.0%} of the points near the other surface touch it{in_front}; clouds of different places "
            f"do as well with a chance of {np.exp(best.log_p_value):.2g}. The clouds may not overlap, or by too "
            f"little.{unit}"
        )


def _is_ambiguous(opinions: list[Opinion]) -> bool:
    """Whether another motion is sure as well, and about as much: repeated or symmetric structure."""
    if len(opinions) < 2:
        return False
    best, second = (one.log_p_value for one in opinions[:2])
    return second <= np.log(_SURE) and best - second > np.log(_AS_SURE)


def points_of(data: Any, name: str) -> Any:
    """The points of a cloud or a surface of another library, of a camera's grid, or of an array with fields."""
    if isinstance(data, (str, bytes, PathLike)):
        raise ParameterError(
            name, f"is the name of a file, {data!r}. Read it first: inlier.io.read_table({data!r}).values."
        )
    if not hasattr(data, "columns") and not isinstance(data, np.ndarray):  # a frame may have a column of that name
        data = next((getattr(data, part) for part in ("points", "vertices") if hasattr(data, part)), data)
    fields = getattr(getattr(data, "dtype", None), "names", None)
    if fields is not None:
        if not set("xyz") <= set(fields):
            raise ParameterError(name, f"has the fields {', '.join(fields)}, and x, y and z are needed.")
        return np.stack([data[axis].reshape(-1) for axis in "xyz"], axis=1)
    if getattr(data, "ndim", 2) == 3 and data.shape[2] == 3:  # a grid of points, as depth cameras give it
        return data.reshape(-1, 3)
    return data


def _read_cloud(data: Any, name: str) -> FloatArray:
    """Return the points as float64, without those that have no place."""
    table: Array = as_table(points_of(data, name), name)
    if table.shape[1] != 3:
        raise ParameterError(
            name, f"must have three columns, x, y and z, but has shape {table.shape}. Leave other columns out."
        )
    points = np.asarray(table[:: max(1, len(table) // _MOST_POINTS)], dtype=np.float64)
    if not np.isfinite(points).all():
        is_finite = np.isfinite(points).all(axis=1)
        points = points[is_finite]
        warn(f"{np.count_nonzero(~is_finite):,} points of the {name} have NaN or infinity, and are left out.")
    if len(points) < _FEWEST_POINTS:
        raise ParameterError(
            name,
            f"has {len(points)} point{'' if len(points) == 1 else 's'}; it takes {_FEWEST_POINTS} or more to see what "
            f"surfaces look like.",
        )
    if float(np.abs(points).max()) > 1e100:
        raise ParameterError(name, "has coordinates above 1e100, whose squares are too large. Use another unit.")
    if not any(np.ptp(column) > 0 for column in points.T):
        raise ParameterError(name, f"has {len(points)} points, all of which are the same one.")
    return points
