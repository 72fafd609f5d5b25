"""One step of every search for the real pairs: from scores to weights, beside the scores of re-pairings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from inlier._typing import FloatArray
from inlier.calibration.p_values import p_value_density, p_values
from inlier.rows.namespaces import namespace, to_host

_HIGH = 0.99  # share of the re-pairings below
_LEAST_P = 1e-300
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Standing:
    """How the pairs' scores stand beside those of re-pairings.

    Attributes
    ----------
    p_values : ndarray of shape (n,)
        Chance that a wrong pair scores as high.
    centre, spread : float
        Median of the re-pairings' scores, and how far above it the highest hundredth of them begins.
    surprise : float
        How unlikely so many small p-values are: the largest n KL(k/n || p_k), p_k the kth smallest (Berk and Jones).
        Beyond the hundredth they are those of an exponential tail: how far pairs stand above all re-pairings counts.
    """

    p_values: FloatArray
    centre: float
    spread: float
    surprise: float

    @staticmethod
    def of(scores: Any, null_scores: Any) -> Standing:
        """Compare scores, which may be on a device."""
        m = int(null_scores.shape[0])
        if m == 0:
            return Standing(np.ones(int(scores.shape[0])), 0.0, 1.0, 0.0)
        null = namespace(null_scores).sort(null_scores)
        p = p_values(scores, null)
        tail = to_host(null[int(_HIGH * (m - 1)) :])
        centre, high = float(null[(m - 1) // 2]), float(tail[0])
        slope = float(np.mean(tail - high)) or 1.0
        beyond = (1 - _HIGH) * np.exp(-np.maximum(to_host(scores) - high, 0.0) / slope)
        smooth = np.where(p < 1 - _HIGH, np.maximum(beyond, _LEAST_P), p)
        told_apart = high - centre > _ROUNDING * max(abs(high), abs(centre))
        return Standing(p, centre, high - centre if told_apart else 1.0, _surprise(smooth))

    def weights(self, sharpness: float) -> FloatArray:
        """Weight of each pair: 1 - sharpness * (chance that it is wrong), at least 0."""
        p = self.p_values
        background = min(1.0, 2 * float((p > 0.5).mean()) + 1 / p.size)
        return np.clip(1 - sharpness * background / p_value_density(p), 0.0, 1.0)


def _surprise(p: FloatArray) -> float:
    n, rising = p.size, np.sort(p)
    share = np.arange(1, n + 1) / n
    rest = xlogy(1 - share, (1 - share) / np.maximum(1 - rising, np.finfo(np.float64).tiny))
    divergence = xlogy(share, share / rising) + rest
    return float(n * np.max(divergence[(rising < share) & (rising <= 0.5)], initial=0.0))
