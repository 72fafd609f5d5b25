"""CloudRegistration: two raw clouds in, one motion out, and how sure it is.

`fit` is: centre both -> at one octave after the other: thin, describe, match, motions that matches suggest, refined on
the surfaces -> the strongest -> is it sure? -> refine it on finer points.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.spatial.transform import Rotation
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from inlier._checks import check_flag, warn
from inlier._typing import Array, FloatArray
from inlier.clouds.refinement import Motion, errors_of, polish
from inlier.clouds.second_opinion import Opinion, Views, opinion_on, ranked
from inlier.clouds.suggestions import Level, different, level_of, refined, roughly_refined, suggested_motions
from inlier.clouds.surfaces import thin_both
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

_OCTAVES = (2_000, 6_000)  # points of each cloud, about
_SURE = 0.005  # detection p-value up to which a motion is called sure
_BEYOND_DOUBT = -8.0  # logarithm of the p-value at which nothing else is looked at
_FIRST = 10  # motions of an octave that are looked at before the others
_WORTH_REFINING = 8  # motions of an octave, the strongest by a quick look
_CARRIED_ON = 4  # motions of an octave that are tried at the next one
_FEWEST_POINTS = 100
_ANOTHER_UNIT = 30.0  # ratio of the sizes of two clouds that hardly show one place in one unit
_AS_SURE = 0.05  # ratio of the p-values of two motions that are both sure, from which on either may be right
_SAME_ORDER = 0.5  # of the support of the motion that was found, that makes another one worth a word
_BLOCK = 4.0  # sides of a coarse cell: points within err alike
_MOST_POINTS = 4_000_000  # of a cloud that are kept as they are; of more, every so many


@dataclass(eq=False)
class _Clock:
    """Seconds that each step took."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + perf_counter() - start


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

    Attributes
    ----------
    success_ : bool
        Whether a motion was found that is sure: ``detection_p_value_`` of 0.005 or less, no freedom left, and no other
        motion that is about as sure.
    transformation_ : SimilarityTransformation or None
        target = transformation_(source), rigid. None where nothing is sure.
    detection_p_value_ : float
        Chance that clouds of different places support a motion as well, by the tail of what such clouds did when the
        test was set up; 1 where the surfaces leave a freedom undetermined.
    undetermined_ : str or None
        The small turn or shift, in the target's axes, that the surfaces in contact do not determine: along a plane, a
        pipe, about a ball.
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
        What each step took.
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

    def __init__(self, random_state: Any = None, raise_on_failure: bool = True) -> None:
        self.random_state = random_state
        self.raise_on_failure = raise_on_failure

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
        clouds = _read_cloud(source, "source"), _read_cloud(target, "target")
        self._origins = clouds[0].mean(axis=0), clouds[1].mean(axis=0)
        first, second = (cloud - origin for cloud, origin in zip(clouds, self._origins, strict=True))
        self.n_features_in_, clock = 3, _Clock()
        with single_threaded_blas():
            with clock("thin"):
                first, second = thin_both(first, second)
            levels, opinions = self._search(first, second, clock)
            self._answer(levels, opinions)
            if self.success_:
                with clock("refine"):
                    self._refine(first, second, opinions[0], levels)
        self.seconds_ = clock.seconds
        self.why_not_ = None if self.success_ else self._why_not(first, second, opinions)
        if self.why_not_ is not None and self.raise_on_failure:
            raise NoConsensusError(self.why_not_)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Carry points of the source to the target; NaN where `fit` found no motion."""
        check_is_fitted(self, "success_")
        points = as_table(X, "X")
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
        return Registration(raise_on_failure=False, random_state=self.random_state).fit(*self.matches_)

    def _search(self, source: FloatArray, target: FloatArray, clock: _Clock) -> tuple[list[Level], list[Opinion]]:
        """Look for motions at one octave after the other, until one is beyond doubt; the strongest first."""
        rng, levels = as_generator(self.random_state), list[Level]()
        opinions = list[Opinion]()
        with clock("judge"):
            views = Views.of((source, target), (-self._origins[0], -self._origins[1]))
        for n_points in _OCTAVES:
            with clock("describe and match"):
                # Each octave cuts the clouds along other axes: what its cells happen to hold is drawn anew.
                level = level_of(source, target, n_points, Rotation.random(rng=rng).as_matrix())
            levels.append(level)
            with clock("search"):
                suggested = suggested_motions(level, rng)
            motions, coarser = list[Motion](), [one.motion for one in opinions[:_CARRIED_ON]]
            judged = dict[Motion, Opinion]()
            # Where the first few suggestions settle it, the others are not looked at.
            for some in ([*coarser, *suggested[:_FIRST]], suggested[_FIRST:]):
                with clock("search"):
                    rough = roughly_refined(level, some)
                    quick = ranked([opinion_on(one, [level], views, level.every) for one in rough])
                    best = refined(level, [one.motion for one in quick[:_WORTH_REFINING]])
                    motions = different([*motions, *best], levels[0])
                with clock("judge"):
                    judged |= {one: opinion_on(one, levels, views) for one in motions if one not in judged}
                    opinions = ranked([judged[one] for one in motions])
                if opinions and opinions[0].log_p_value < _BEYOND_DOUBT:
                    return levels, opinions
        return levels, opinions

    def _answer(self, levels: list[Level], opinions: list[Opinion]) -> None:
        """Say what was found, as far as the search has come."""
        self.__dict__.pop("registration_", None)  # of an earlier fit
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
        self.spacing_, self.noise_bound_, self.refinement_ = levels[-1].side, np.nan, np.nan
        x, y = levels[-1].ends
        self.matches_ = x + self._origins[0], y + self._origins[1]

    def _refine(self, source: FloatArray, target: FloatArray, best: Opinion, levels: list[Level]) -> None:
        """Improve the motion on finer points, and say how far it may be off."""
        motion, surfaces, self.noise_bound_ = polish(source, target, best.motion)
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
        self.uncertainty_ = errors_of(
            surfaces, motion, self.noise_bound_, _BLOCK * levels[0].side, found, self._origins
        )

    def _as_transformation(self, motion: Motion) -> SimilarityTransformation:
        """The motion between the clouds as they came."""
        shift = self._origins[1] + motion.translation - motion.rotation @ self._origins[0]
        return SimilarityTransformation(motion.rotation, shift, model="rigid")

    def _why_not(self, source: FloatArray, target: FloatArray, opinions: list[Opinion]) -> str:
        sizes = [float(np.sqrt((cloud**2).sum(axis=1).mean())) for cloud in (source, target)]
        ratio = sizes[1] / sizes[0]
        if not 1 / _ANOTHER_UNIT < ratio < _ANOTHER_UNIT:
            smaller, scale = "source" if ratio > 1 else "target", 10 ** round(abs(np.log10(ratio)))
            return (
                f"The source has a size of {sizes[0]:.3g}, the target one of {sizes[1]:.3g}, which is "
                f"{max(ratio, 1 / ratio):.3g} times as much or as little. Are they in one unit? A scale of {scale:g} "
                f"would fit (millimetres and metres differ by 1000): multiply the coordinates of the {smaller} by "
                f"that and try again."
            )
        if not opinions:
            return (
                "The clouds have no surface in common that could be found: none of their points look alike in a way "
                "that one motion explains."
            )
        best = opinions[0]
        if best.undetermined is not None:
            return (
                f"The surfaces that can be brought together do not determine the motion: {best.undetermined} fits "
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
        in_front = "" if best.in_front is None else f", and {best.in_front:.0%} of what is in view hangs in empty space"
        return (
            f"No motion is sure. The best one found is supported by {best.n_supporting} of {best.n_matches} matches, "
            f"{best.contact:.0%} of the points near the other surface touch it{in_front}; clouds of different places "
            f"do as well with a chance of {np.exp(best.log_p_value):.2g}. The clouds may not overlap, or by too little."
        )


def _is_ambiguous(opinions: list[Opinion]) -> bool:
    """Whether another motion is sure as well, and about as much: repeated or symmetric structure."""
    if len(opinions) < 2:
        return False
    best, second = (one.log_p_value for one in opinions[:2])
    return second <= np.log(_SURE) and best - second > np.log(_AS_SURE)


def _read_cloud(data: Any, name: str) -> FloatArray:
    """Return the points as float64, without those that have no place."""
    table: Array = as_table(data, name)
    if table.shape[1] != 3:
        raise ParameterError(
            name, f"must have three columns, x, y and z, but has shape {table.shape}. Leave other columns out."
        )
    points = np.asarray(table[:: max(1, len(table) // _MOST_POINTS)], dtype=np.float64)
    is_finite = np.isfinite(points).all(axis=1)
    if not is_finite.all():
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
    extent = np.ptp(points, axis=0)
    if not extent.max() > 0:
        raise ParameterError(name, f"has {len(points)} points, all of which are the same one.")
    return points
