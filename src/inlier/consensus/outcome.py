"""What a search found, and the motion that fits it best."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from inlier._typing import FloatArray
from inlier.consensus._kernels_columns import farthest_coordinates
from inlier.consensus.evidence import Evidence
from inlier.consensus.models import MapModel, Maps, determines
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.refine import closeness, fall_off
from inlier.consensus.repeats import any_repeats
from inlier.transforms import SimilarityTransformation

_OF_LARGEST = 1e-6  # moments that are smaller, beside what the largest coordinates would give, take a closer look
_FAR_ABOVE = 10.0  # times what the rounding of the input makes of a moment


@dataclass(frozen=True, eq=False)
class Consensus:
    """The map that most pairs agree on, and what speaks for it.

    Attributes
    ----------
    model : MapModel
        What was looked for.
    evidence : Evidence
        What speaks for it.
    map : Maps
        One map, between the pairs as the search saw them.
    pairs : ColumnPairs
        All pairs, about their means where the model has a shift.
    origin : (ndarray, ndarray)
        Those means of x and y, or zeros.
    rounding : (float, float)
        Relative rounding error of the numbers that x and y came as.
    re_paired_residuals : ndarray
        What residuals are like where nothing is paired.
    better_mirrored : bool
        Whether a reflection, which the model does not allow, would fit the same pairs far better.
    """

    model: MapModel
    evidence: Evidence
    map: Maps
    pairs: ColumnPairs
    origin: tuple[FloatArray, FloatArray]
    rounding: tuple[float, float]
    re_paired_residuals: FloatArray
    better_mirrored: bool

    def nearness(self) -> FloatArray:
        """How near each pair is, between 0 and 1: weights for a final fit."""
        return closeness(self.pairs.squared_residuals(self.map), self.evidence.bound)

    def has_repeats(self, residuals: FloatArray | None) -> bool:
        """Whether pairs that support what was found are listed twice; where nothing was found, whether any are."""
        if residuals is None:
            residuals = np.sqrt(self.pairs.squared_residuals(self.map))
        found = self.evidence
        bound, share = (found.bound, found.inlier_fraction) if found.is_significant else (np.inf, 1.0)
        return any_repeats(self.pairs.x, self.pairs.y, residuals, bound, int(share * self.pairs.n_pairs))

    def motion(self) -> tuple[SimilarityTransformation, FloatArray] | None:
        """The least-squares motion of all pairs, weighted by their nearness too, and the residuals.

        None where it takes a closer look: for other maps, in many dimensions, and where the pairs hardly determine it.
        """
        model = self.model
        if model.name == "affine" or self.pairs.is_wide:
            return None
        maps, cross = self.pairs.fit_and_cross(model, self.map, *fall_off(self.evidence.bound))
        if not determines(model, cross, self._doubtful()):
            return None
        scale = float(maps.stretch[0]) if model.name == "similarity" else 1.0
        x, y = self.origin
        shift = y + maps.shift[0] - maps.linear[0] @ x if model.has_shift else None
        found = SimilarityTransformation(maps.linear[0] / scale, shift, scale, model.name)  # type: ignore[arg-type]
        residuals = self.pairs.squared_residuals(maps)
        return found, np.sqrt(residuals, out=residuals)

    def _doubtful(self) -> float:
        """Means of products x y that rounding, of the input or of sums, might have a part in."""
        (reach_x, off_x), (reach_y, off_y) = (
            (reach, rounding * (reach + math.hypot(*mean)))
            for points, mean, rounding in zip((self.pairs.x, self.pairs.y), self.origin, self.rounding, strict=True)
            for reach in [farthest_coordinates(points)]
        )
        return float(_OF_LARGEST * reach_x * reach_y + _FAR_ABOVE * (off_x * reach_y + off_y * reach_x))
