"""How significant scores are beside those of re-pairings, and the weights that follow: one step of every fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import rel_entr

from inlier._typing import FloatArray
from inlier.calibration.p_values import p_value_density, p_values
from inlier.rows.backend import namespace, to_host

SHARP = 2.0  # how much a doubt lowers a pair's weight: pairs that are more likely wrong than real drop out
_TAIL_STARTS = 0.99  # share of the re-pairings below; beyond it their distribution is taken for exponential


@dataclass(frozen=True, eq=False)
class Significance:
    """The pairs' scores beside those of re-pairings."""

    p_values: FloatArray  # chance that a wrong pair scores as high
    centre: float  # median of the re-pairings' scores
    spread: float  # how far above it the highest hundredth of them begins
    # Berk and Jones' statistic of the p-values: the largest n KL(k/n || p_k), p_k the kth smallest; large where there
    # are more small ones than chance brings. Beyond the hundredth they are those of an exponential tail, so that it
    # counts how far pairs are above all re-pairings
    berk_jones: float

    @staticmethod
    def of(scores: Any, null_scores: Any) -> Significance:
        """Compare scores, which may be on a device."""
        m = int(null_scores.shape[0])
        if m == 0:
            return Significance(np.ones(int(scores.shape[0])), 0.0, 1.0, 0.0)
        null = namespace(null_scores).sort(null_scores)
        p = p_values(scores, null)
        tail = to_host(null[int(_TAIL_STARTS * (m - 1)) :])
        centre, high = float(null[(m - 1) // 2]), float(tail[0])
        slope = float(np.mean(tail - high)) or 1.0
        beyond = (1 - _TAIL_STARTS) * np.exp(-np.maximum(to_host(scores) - high, 0.0) / slope)
        smooth = np.where(p < 1 - _TAIL_STARTS, np.maximum(beyond, 1e-300), p)  # the logarithm is finite
        differ = high - centre > 1e-12 * max(abs(high), abs(centre))  # by more than rounding
        return Significance(p, centre, high - centre if differ else 1.0, berk_jones(smooth))

    def weights(self, sharpness: float) -> FloatArray:
        """Weight of each pair: 1 - sharpness * (chance that it is wrong), at least 0."""
        p = self.p_values
        background = min(1.0, 2 * float((p > 0.5).mean()) + 1 / p.size)
        return np.clip(1 - sharpness * background / p_value_density(p), 0.0, 1.0)


NOT_COMPARED = Significance(np.ones(1), 0.0, 1.0, 0.0)  # of what was learned where nobody asks how pairs stood out


def berk_jones(p: FloatArray) -> float:
    """Berk and Jones' statistic of p-values: how many more small ones there are than chance brings."""
    n, rising = p.size, np.sort(p)
    share = np.arange(1, n + 1) / n
    divergence = rel_entr(share, rising) + rel_entr(1 - share, np.maximum(1 - rising, np.finfo(np.float64).tiny))
    return float(n * np.max(divergence[(rising < share) & (rising <= 0.5)], initial=0.0))
