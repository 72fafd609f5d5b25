"""What a registration found, in words and numbers, and what the page's viewer draws.

*The overlay* is the two sets of points on top of each other, before and after. Coordinates are those of the target,
about its middle and in units of its size, so that the viewer need not know them. More than three dimensions are shown
in the three directions in which the target varies most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import polar
from scipy.spatial.transform import Rotation

from inlier._typing import Array, FloatArray
from inlier.calibration.p_values import evenly_spaced
from inlier.consensus.uncertainty import MotionUncertainty
from inlier.estimators.registration import Registration
from inlier.report.match_summary import MatchSummary, Origin, summarise
from inlier.report.words import interval_in_words, percent
from inlier.transforms import Transformation
from inlier.transforms.transformations import in_brackets

_MAP_NAMES = {"rigid": "rigid motion", "orthogonal": "rotation or reflection", "affine": "affine map"}  # else the model
_TWO_SIDED = 1.96  # standard errors of a share to either side
_SILENT_SETTINGS = ("n_splits", "raise_on_failure")  # nothing depends on them here
_DRAWN, _DRAWN_NUMBERS = 3000, 300_000  # most pairs, and most numbers of one side, that a picture is made of
_MOST_POINTS = 4000  # of each set
_MOST_LINES = (120, 40, 80)  # of each verdict: real, doubtful, wrong
_STEPS = 24  # between before and after; the viewer goes straight between two of them
_NEARLY_ALL = 0.98  # of the points decide what is in sight: a few stray ones must not
_FAR = 2.5  # sizes between two sets from which they are drawn nearer
_WHOLE = 4000  # whole numbers per unit: a quarter of a pixel on a large screen
_EDGE = 25.0  # units, beyond which nothing is drawn


@dataclass(frozen=True, eq=False, kw_only=True)
class RegistrationSummary(MatchSummary):
    """The transformation, the pairs that agree on it, and the evidence. Made by `summarise_registration`."""

    registration: Registration
    drawn: tuple[Array, Array, Array] | None = None  # rows, and their points of the source and of the target
    clouds: tuple[Array, Array] | None = None

    @property
    def transformation(self) -> Transformation | None:
        """What was found, if anything."""
        return self.registration.transformation_

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        n, found, what = self.n_pairs, self.n_inliers, _MAP_NAMES.get(self.registration.model, self.registration.model)
        if self.transformation is None:
            return f"The {n:,} pairs do not agree on any {what}."
        if found == 0:
            return f"The {n:,} pairs agree on one {what}, but no single one of them can be called real."
        farthest = float(self.registration.residuals_[self.result.inlier_mask].max())
        return f"{found:,} of {n:,} pairs agree on one {what}, to within {farthest:.3g}."

    @property
    def details(self) -> list[str]:
        """What else there is to say, a sentence each."""
        return [*self.about_the_transformation, *self.about_the_pairs] if self.transformation is not None else []

    @property
    def about_the_transformation(self) -> list[str]:
        """What it does, and how precisely it is known."""
        if self.transformation is None:
            return []
        errors = self.registration.uncertainty_
        precision = [] if errors is None else [errors_in_words(errors, self.registration.model)]
        return [f"It {self.transformation.describe()}.", *precision]

    @property
    def about_the_pairs(self) -> list[str]:
        """How the pairs were judged, and what came out."""
        bound = f"{self.registration.noise_bound_:.3g}"
        if self.registration.noise_bound is not None:
            given = f"Pairs agree if they come within {bound}, the bound that was given."
            return [given, *self._about_near_misses, *super().details]
        alpha, share = self.registration.alpha, self.registration.false_discovery_rate_
        if share <= alpha:
            expected = f"At most {percent(alpha)} of them are expected to be wrong"
        else:
            expected = f"Some {percent(share)} of them are expected to be wrong, since wrong ones lie as near by chance"
        found = f"{expected}; the noise bound found from the data is {bound}."
        return [found, *self._about_near_misses, *super().details]

    @property
    def tells_wrong(self) -> bool:
        """It is known where the partners of all points should lie."""
        return True

    def _about_the_found(self) -> Iterator[str]:
        """Nothing: what there is to say of them, the answer says."""
        return iter(())

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the share of real pairs, from its standard error."""
        share, spread = self.registration.inlier_fraction_, _TWO_SIDED * self.registration.inlier_fraction_error_
        return max(share - spread, 0.0), min(share + spread, 1.0)

    def _about_the_share(self) -> list[str]:
        return [f"Share of real pairs, found or not: {interval_in_words(*self.interval)}."]

    @property
    def n_near_misses(self) -> int:
        """Number of pairs that agree better than chance, but not as tightly as those called real."""
        return int(np.count_nonzero(self.registration.near_miss_mask_))

    @property
    def _about_near_misses(self) -> list[str]:
        n, near = self.n_near_misses, self.registration.near_miss_mask_
        if not n:
            return []
        pairs, they = ("pair is a near miss", "it agrees") if n == 1 else ("pairs are near misses", "they agree")
        farthest = float(self.registration.residuals_[near].max())
        return [
            f"{n:,} {pairs}: up to {farthest:.3g} off, {they} better than chance but not as tightly, as matches to a "
            f"neighbouring place do. None of them is called real."
        ]

    @property
    def overlay(self) -> Overlay | None:
        """Both sets on top of each other; None where there is nothing to be drawn."""
        if self.transformation is None or self.drawn is None:
            return None
        rows, X, Y = self.drawn
        return make_overlay(self.transformation, X, Y, self.verdicts[rows], self.n_pairs, self.clouds)

    @property
    def scores_are_residuals(self) -> bool:
        """Whether pairs were judged by their residuals; in many dimensions a linear map may have judged them."""
        return np.array_equal(self.result.scores, -self.registration.residuals_)

    def columns(self) -> dict[str, Array]:
        """Everything there is per pair: row, key, the two ends, residual, p- and q-value, inlier, near miss."""
        columns = super().columns()
        if self.scores_are_residuals:
            del columns["score"]
        first = {name: columns.pop(name) for name in ("row", "key", "source", "target") if name in columns}
        residuals = {} if self.transformation is None else {"residual": self.registration.residuals_}
        return first | residuals | columns | {"near_miss": self.registration.near_miss_mask_}

    def transformation_dict(self) -> dict[str, Any]:
        """The transformation, with what it rests on; `Transformation.from_dict` reads it."""
        if self.transformation is None:
            return {}
        errors = self.registration.uncertainty_
        return {
            **self.transformation.to_dict(),
            "in_words": self.transformation.describe(),
            "standard_errors": errors
            and {
                "degrees": np.asarray(errors.rotation).tolist(),
                "translation": np.asarray(errors.translation).tolist(),
                "scale": float(errors.scale),
            },
            "noise_bound": self.registration.noise_bound_,
            "noise_bound_was_given": self.registration.noise_bound is not None,
            "n_pairs": self.n_pairs,
            "n_inliers": self.n_inliers,
            "n_near_misses": self.n_near_misses,
            "inlier_fraction": self.inlier_fraction,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pairs."""
        error = self.registration.inlier_fraction_error_
        shares = {"inlier_fraction_error": error, "inlier_fraction_interval": list(self.interval)}
        return {**super().to_dict(), **shares, "transformation": self.transformation_dict() or None}


def summarise_registration(
    registration: Registration,
    X: Array | None = None,
    y: Array | None = None,
    *,
    rows: Array | None = None,
    keys: Sequence[str] | Array | None = None,
    ends: tuple[Array, Array] | None = None,
    clouds: tuple[Array, Array] | None = None,
    origin: Origin | None = None,
) -> RegistrationSummary:
    """Summarise what a fitted registration found.

    Parameters
    ----------
    registration : Registration
        After ``fit``.
    X, y : ndarrays of shape (n, d), optional
        The pairs that it was fitted to, of which some are drawn.
    ends : tuple of two ndarrays of int, optional
        Rows of the source and of the target that each pair joins, where they differ.
    clouds : tuple of two ndarrays, optional
        All points of source and target, to be drawn; by default those of the pairs.
    rows, keys, origin
        As for `summarise`.

    Examples
    --------
    >>> from inlier import Registration
    >>> from inlier.datasets import make_gaussian_pairs
    >>> from inlier.report import summarise_registration
    >>> data = make_gaussian_pairs(n=500, d=3, inlier_fraction=0.6, noise=0.01, rng=0)
    >>> registration = Registration("orthogonal", random_state=0).fit(data.X, data.Y)
    >>> summarise_registration(registration, data.X, data.Y).answer
    '300 of 500 pairs agree on one rotation or reflection, to within 0.03....'
    """
    base = summarise(registration, rows=rows, keys=keys, ends=ends, origin=origin)
    settings = {name: value for name, value in base.settings.items() if name not in _SILENT_SETTINGS}
    return RegistrationSummary(
        **{**vars(base), "method": "registration", "settings": settings},
        registration=copy(registration),  # which may be fitted to other pairs later
        drawn=None if X is None or y is None else _some_pairs(registration, X, y),
        clouds=clouds,
    )


def _some_pairs(registration: Registration, X: Array, y: Array) -> tuple[Array, Array, Array]:
    """Choose the pairs to draw: of the accepted and of the others, both evenly spread."""
    X, Y = (np.asarray(table).reshape(len(table), -1) for table in (X, y))
    most = min(_DRAWN, max(_DRAWN_NUMBERS // max(X.shape[1], Y.shape[1]), 1))
    accepted, others = np.flatnonzero(registration.inlier_mask_), np.flatnonzero(~registration.inlier_mask_)
    n_others = min(max(most // 3, most - accepted.size), others.size)
    rows = np.sort(np.concatenate([evenly_spaced(accepted, most - n_others), evenly_spaced(others, n_others)]))
    return rows, X[rows], Y[rows]


def errors_in_words(errors: MotionUncertainty, model: str) -> str:
    """A sentence: how far the transformation may be off."""
    parts = [f"{float(np.max(errors.rotation)):.2g} degrees"]
    if model in ("rigid", "similarity"):
        parts.append(f"{in_brackets(np.asarray(errors.translation), '.2g')} in the translation")
    if model == "similarity":
        parts.append(f"{errors.scale:.2g} in the scale")
    return f"Standard errors: {', '.join(parts)}."


# ---- the two sets on top of each other


@dataclass(frozen=True, eq=False)
class Overlay:
    """What is drawn, and what there is to say about it."""

    view: dict[str, Any]  # for the viewer: whole numbers and matrices
    has_before: bool  # whether the source can be shown as it came, in the space of the target
    drawn_nearer: bool  # the source stands nearer to the target than it came, to be seen at all
    projected_from: int | None  # number of dimensions, where there are more than three
    drawn: tuple[int, int]  # points of source and target,
    existing: tuple[int, int]  # and all there are
    lines: tuple[int, int]  # pairs that are drawn as lines, and all there are
    distances: tuple[float, float] | None  # median within the real pairs, before and after


def make_overlay(
    transformation: Transformation,
    X: Array,
    Y: Array,
    verdicts: Array,
    n_pairs: int,
    clouds: tuple[Array, Array] | None = None,
) -> Overlay | None:
    """Choose what to draw, of some of ``n_pairs`` pairs and of all points (``clouds``) or theirs. None in 1-D."""
    d_y, d_x = transformation.linear.shape
    if d_y < 2 or len(X) == 0:
        return None
    source, target = (X, Y) if clouds is None else clouds
    some_source, some_target, lines = _some(source), _some(target), _some_lines(verdicts)
    basis, has_before, real = _to_three(d_y, some_target), d_x == d_y, verdicts == 0

    def shown(points: Array) -> FloatArray:
        return np.asarray(points, dtype=np.float64) @ basis

    after, moved_starts = shown(transformation(some_source)), shown(transformation(X[lines]))
    before, starts = (shown(some_source), shown(X[lines])) if has_before else (after, moved_starts)
    picture = _Picture(shown(some_target), after, before)
    place = picture.on_target
    view: dict[str, Any] = {
        "flat": d_y == 2,
        "unit": _WHOLE,
        "target": place(shown(some_target)),
        "ends": place(shown(Y[lines])),
        "verdicts": verdicts[lines].tolist(),
        "first_view": picture.first_view,
        "steps": None,
        "moved": None,
        "moved_starts": None,
    }
    if has_before and d_y <= 3:
        view |= {"source": picture.own(before), "starts": picture.own(starts), "steps": picture.steps(transformation)}
    else:
        view |= {"source": picture.beside_target(before), "starts": picture.beside_target(starts)}
    if has_before and d_y > 3:
        view |= {"moved": place(after), "moved_starts": place(moved_starts)}
    return Overlay(
        view=view,
        has_before=has_before,
        drawn_nearer=picture.is_nearer,
        projected_from=d_y if d_y > 3 else None,
        drawn=(len(some_source), len(some_target)),
        existing=(n_pairs, n_pairs) if clouds is None else (len(source), len(target)),
        lines=(lines.size, n_pairs),
        distances=_distances(transformation, X[real], Y[real]) if has_before and real.any() else None,
    )


def _to_three(d: int, points: Array) -> FloatArray:
    """A matrix that takes rows to three coordinates: zeros are added, or the points' main directions taken."""
    if d <= 3:
        return np.eye(3)[:d]
    centred = np.asarray(points, dtype=np.float64) - points.mean(axis=0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:3].T
    return np.pad(directions, ((0, 0), (0, 3 - directions.shape[1])))


class _Picture:
    """Where things are drawn: after the registration about the middle of both sets, before it beside each other."""

    def __init__(self, target: FloatArray, after: FloatArray, before: FloatArray) -> None:
        both = np.concatenate([target, after])
        self._middle = _middle_of(both)
        self._size = _reach(both, self._middle) or 1.0
        self._place = np.median(before, axis=0)
        self._reach = _reach(before, self._place) or 1.0
        away = self._place - self._middle
        distance, wanted = float(np.linalg.norm(away)), _FAR * max(self._size, self._reach)
        self.is_nearer = distance > wanted
        self._pull = away * (wanted / distance - 1) if self.is_nearer else np.zeros(3)
        all_before = np.concatenate([target, before + self._pull])
        centre = _middle_of(all_before)
        radius = _reach(all_before, centre) / self._size
        self.first_view = [*((centre - self._middle) / self._size).round(4).tolist(), round(radius, 4)]

    def on_target(self, points: FloatArray) -> list[int]:
        """Coordinates in the picture, as whole numbers."""
        return _whole((points - self._middle) / self._size)

    def beside_target(self, points: FloatArray) -> list[int]:
        """The same for what has not been moved yet, and need not be turned."""
        return self.on_target(points + self._pull)

    def own(self, points: FloatArray) -> list[int]:
        """About the middle of the source and in units of its size; the steps bring it into the picture."""
        return _whole((points - self._place) / self._reach)

    def steps(self, transformation: Transformation) -> list[list[float]]:
        """Motion from before to after as matrices (rows of 4): turning, while the middle goes straight."""
        d = len(transformation.linear)
        linear, shift = np.eye(3), np.zeros(3)
        linear[:d, :d], shift[:d] = transformation.linear, transformation.translation
        start = (self._place + self._pull - self._middle) / self._size
        end = (linear @ self._place + shift - self._middle) / self._size
        matrices = []
        for t in np.linspace(0, 1, _STEPS + 1):
            turned = _part_of(linear, t) * (self._reach / self._size)
            matrix = np.column_stack([turned, (1 - t) * start + t * end])
            matrices.append([float(f"{value:.7g}") for value in matrix.ravel()])
        return matrices


def _whole(units: FloatArray) -> list[int]:
    return np.rint(_WHOLE * np.clip(units, -_EDGE, _EDGE)).astype(int).ravel().tolist()


def _part_of(linear: FloatArray, t: float) -> FloatArray:
    """The share t of a linear map: so much of its angle, and so much of its stretch; of a mirror, straight through."""
    turn, stretch = polar(linear)
    if np.linalg.det(turn) < 0:
        return (1 - t) * np.eye(3) + t * linear
    part = Rotation.from_rotvec(t * Rotation.from_matrix(turn).as_rotvec()).as_matrix()
    return part @ ((1 - t) * np.eye(3) + t * stretch)


def _middle_of(points: FloatArray) -> FloatArray:
    """Of the box around nearly all points."""
    return np.quantile(points, [1 - _NEARLY_ALL, _NEARLY_ALL], axis=0).mean(axis=0)


def _reach(points: FloatArray, centre: FloatArray) -> float:
    return float(np.quantile(np.linalg.norm(points - centre, axis=1), _NEARLY_ALL))


def _some(points: Array) -> Array:
    """Points at random, but the same ones each time; scanners write NaN where they saw nothing."""
    places = np.flatnonzero(np.isfinite(points).all(axis=1))
    if places.size > _MOST_POINTS:
        places = places[np.sort(np.random.default_rng(0).choice(places.size, _MOST_POINTS, replace=False))]
    return np.asarray(points[places])


def _some_lines(verdicts: Array) -> Array:
    """Places of pairs of each verdict, evenly spread."""
    places = (np.flatnonzero(verdicts == code) for code in range(len(_MOST_LINES)))
    return np.concatenate([of[:: -(-of.size // most) or 1] for of, most in zip(places, _MOST_LINES, strict=True)])


def _distances(transformation: Transformation, X: Array, Y: Array) -> tuple[float, float]:
    apart = np.linalg.norm(np.asarray(X, dtype=np.float64) - Y, axis=1)
    return float(np.median(apart)), float(np.median(transformation.residuals(X, Y)))
