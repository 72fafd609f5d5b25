"""What a registration found, in words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.consensus.uncertainty import MotionUncertainty
from inlier.estimators.registration import Registration
from inlier.report.match_summary import MatchSummary, Origin, percent, summarise
from inlier.report.overlay import Overlay, make_overlay
from inlier.transforms import Transformation
from inlier.transforms.transformations import in_brackets

MAP_NAMES = {
    "rigid": "rigid motion",
    "rotation": "rotation",
    "orthogonal": "rotation or reflection",
    "similarity": "similarity",
    "affine": "affine map",
}
_SILENT_SETTINGS = ("n_splits", "raise_on_failure")  # nothing depends on them here
_DRAWN, _DRAWN_NUMBERS = 3000, 300_000  # most pairs, and most numbers of one side, that a picture is made of

DrawnPairs = tuple[Array, Array, Array]  # rows, and their points of the source and of the target


@dataclass(frozen=True, eq=False)
class RegistrationSummary(MatchSummary):
    """The transformation, the pairs that agree on it, and the evidence. Made by `summarise_registration`."""

    model: str = "rigid"
    transformation: Transformation | None = None
    residuals: FloatArray | None = None
    noise_bound: float | None = None
    bound_was_given: bool = False
    ends: tuple[Array, Array] | None = None
    errors: MotionUncertainty | None = None
    drawn: DrawnPairs | None = None
    clouds: tuple[Array, Array] | None = None

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        n, found, what = self.n_pairs, self.n_inliers, MAP_NAMES[self.model]
        if self.transformation is None or self.residuals is None:
            return f"The {n:,} pairs do not agree on any {what}."
        if found == 0:
            return f"The {n:,} pairs agree on one {what}, but no single one of them can be called real."
        farthest = float(self.residuals[self.result.inlier_mask].max())
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
        errors = [] if self.errors is None else [errors_in_words(self.errors, self.model)]
        return [f"It {self.transformation.describe()}.", *errors]

    @property
    def about_the_pairs(self) -> list[str]:
        """How the pairs were judged, and what came out."""
        sentences = []
        if self.bound_was_given:
            sentences.append(f"Pairs agree if they come within {self.noise_bound:.3g}, the bound that was given.")
        else:
            sentences.append(
                f"{self._share_of_wrong()}; the noise bound found from the data is {self.noise_bound:.3g}."
            )
        return sentences + super().details

    def _share_of_wrong(self) -> str:
        q, alpha = self.result.q_values, self.alpha or 0.0
        largest = 0.0 if q is None or not self.n_inliers else float(q[self.result.inlier_mask].max())
        if largest <= alpha:
            return f"At most {percent(alpha)} of them are expected to be wrong"
        share = percent(min(largest, 1.0))
        return f"Some {share} of them are expected to be wrong, since wrong ones lie as near by chance"

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
        return self.residuals is not None and np.array_equal(self.result.scores, -self.residuals)

    def columns(self) -> dict[str, Array]:
        """Everything there is per pair: row, key, the two ends, residual, p- and q-value, inlier."""
        columns = super().columns()
        if self.scores_are_residuals:
            del columns["score"]
        added: dict[str, Array | None] = {"residual": self.residuals}
        if self.ends is not None:
            added = {"source": self.ends[0], "target": self.ends[1], **added}
        first = {name: columns.pop(name) for name in ("row", "key") if name in columns}
        return first | {name: column for name, column in added.items() if column is not None} | columns

    def transformation_dict(self) -> dict[str, Any]:
        """The transformation, with what it rests on; `Transformation.from_dict` reads it."""
        if self.transformation is None:
            return {}
        errors = self.errors and {
            "degrees": np.asarray(self.errors.rotation).tolist(),
            "translation": np.asarray(self.errors.translation).tolist(),
            "scale": float(self.errors.scale),
        }
        return {
            **self.transformation.to_dict(),
            "in_words": self.transformation.describe(),
            "standard_errors": errors,
            "noise_bound": self.noise_bound,
            "noise_bound_was_given": self.bound_was_given,
            "n_pairs": self.n_pairs,
            "n_inliers": self.n_inliers,
            "inlier_fraction": self.inlier_fraction,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pairs."""
        return {**super().to_dict(), "transformation": self.transformation_dict() or None}


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
    rows : ndarray of int, optional
        Where each pair stands in the user's own table; 0, 1, 2, ... by default.
    keys : sequence of str, optional
        A name for each pair.
    ends : tuple of two ndarrays of int, optional
        Rows of the source and of the target that each pair joins, where they differ.
    clouds : tuple of two ndarrays, optional
        All points of source and target, to be drawn; by default those of the pairs.
    origin : Origin, optional
        Files, command and notes.

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
    base = summarise(registration, rows=rows, keys=keys, origin=origin)
    settings = {name: value for name, value in base.settings.items() if name not in _SILENT_SETTINGS}
    found = registration.success_
    return RegistrationSummary(
        **{**vars(base), "method": "registration", "settings": settings},
        model=registration.model,
        transformation=registration.transformation_,
        residuals=registration.residuals_ if found else None,
        noise_bound=float(registration.noise_bound_) if found else None,
        bound_was_given=registration.noise_bound is not None,
        ends=ends,
        errors=getattr(registration, "uncertainty_", None) if found else None,
        drawn=_drawn_pairs(registration, X, y) if found else None,
        clouds=clouds,
    )


def _drawn_pairs(registration: Registration, X: Array | None, y: Array | None) -> DrawnPairs | None:
    """Choose the pairs to draw: of the accepted and of the others, both evenly spread."""
    if X is None or y is None:
        return None
    X, Y = (np.asarray(table).reshape(len(table), -1) for table in (X, y))
    most = min(_DRAWN, max(_DRAWN_NUMBERS // max(X.shape[1], Y.shape[1]), 1))
    accepted, others = np.flatnonzero(registration.inlier_mask_), np.flatnonzero(~registration.inlier_mask_)
    n_others = min(max(most // 3, most - accepted.size), others.size)
    rows = np.sort(np.concatenate([_evenly_spread(accepted, most - n_others), _evenly_spread(others, n_others)]))
    return rows, X[rows], Y[rows]


def _evenly_spread(rows: Array, most: int) -> Array:
    few = min(rows.size, most)
    return rows[np.linspace(0, rows.size - 1, few).round().astype(np.intp)] if few else rows[:0]


def errors_in_words(errors: MotionUncertainty, model: str) -> str:
    """A sentence: how far the transformation may be off."""
    parts = [f"{float(np.max(errors.rotation)):.2g} degrees"]
    if model in ("rigid", "similarity"):
        parts.append(f"{in_brackets(np.asarray(errors.translation), '.2g')} in the translation")
    if model == "similarity":
        parts.append(f"{errors.scale:.2g} in the scale")
    return f"Standard errors: {', '.join(parts)}."
