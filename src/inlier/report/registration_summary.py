"""What a registration found, in words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.calibration.p_values import evenly_spaced
from inlier.consensus.uncertainty import MotionUncertainty
from inlier.estimators.registration import Registration
from inlier.report.match_summary import MatchSummary, Origin, percent, summarise
from inlier.report.overlay import Overlay, make_overlay
from inlier.transforms import Transformation
from inlier.transforms.transformations import in_brackets

_MAP_NAMES = {"rigid": "rigid motion", "orthogonal": "rotation or reflection", "affine": "affine map"}  # else the model
_SILENT_SETTINGS = ("n_splits", "raise_on_failure")  # nothing depends on them here
_DRAWN, _DRAWN_NUMBERS = 3000, 300_000  # most pairs, and most numbers of one side, that a picture is made of


@dataclass(frozen=True, eq=False, kw_only=True)
class RegistrationSummary(MatchSummary):
    """The transformation, the pairs that agree on it, and the evidence. Made by `summarise_registration`."""

    registration: Registration
    ends: tuple[Array, Array] | None = None
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
        first = {name: columns.pop(name) for name in ("row", "key") if name in columns}
        ends = {} if self.ends is None else dict(zip(("source", "target"), self.ends, strict=True))
        residuals = {} if self.transformation is None else {"residual": self.registration.residuals_}
        return first | ends | residuals | columns | {"near_miss": self.registration.near_miss_mask_}

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
    base = summarise(registration, rows=rows, keys=keys, origin=origin)
    settings = {name: value for name, value in base.settings.items() if name not in _SILENT_SETTINGS}
    return RegistrationSummary(
        **{**vars(base), "method": "registration", "settings": settings},
        registration=copy(registration),  # which may be fitted to other pairs later
        ends=ends,
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
