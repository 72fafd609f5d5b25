"""Straight lines through logarithms: the exponent of a power law, and its standard error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Slope(NamedTuple):
    """Exponent of a fitted power law."""

    value: float
    stderr: float


def log_log_slope(x: Sequence[float], y: Sequence[float], relative_errors: Sequence[float] | None = None) -> Slope:
    """Least squares slope of log y against log x; ``relative_errors`` are the standard errors of log y.

    Examples
    --------
    >>> from inlier.apps.reproduce.slopes import log_log_slope
    >>> round(log_log_slope([1, 2, 4], [3, 12, 48]).value, 6)
    2.0
    """
    log_x, log_y = np.log(x), np.log(y)
    weights = (log_x - log_x.mean()) / np.sum((log_x - log_x.mean()) ** 2)
    errors = np.zeros(len(log_x)) if relative_errors is None else np.asarray(relative_errors)
    return Slope(float(weights @ log_y), float(np.sqrt(np.sum((weights * errors) ** 2))))
