"""How wrong is a guess, when the truth is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from inlier._typing import Mask


class ErrorRates(NamedTuple):
    """Shares of misclassified pairs: error_G, error_B and error_W of the paper's Definition 1."""

    inliers: float
    outliers: float
    overall: float


def error_rates(true_mask: Any, mask: Any) -> ErrorRates:
    """Compare a mask of pairs called inliers with the truth.

    Parameters
    ----------
    true_mask : array-like of bool, shape (n,)
        True where the pair is real.
    mask : array-like of bool, shape (n,)
        True where the pair was called an inlier.

    Returns
    -------
    ErrorRates
        ``inliers``: share of the real pairs that were missed; ``outliers``: share of the wrong pairs that
        were accepted; ``overall``: share of all pairs that were misclassified. A share of an empty set
        is 0: where there is nothing to get wrong, nothing was.

    Examples
    --------
    >>> from inlier.metrics import error_rates
    >>> error_rates([True, True, False, False], [True, False, False, False])
    ErrorRates(inliers=0.5, outliers=0.0, overall=0.25)
    """
    truth, guess = _as_mask(true_mask, "true_mask"), _as_mask(mask, "mask")
    if truth.size != guess.size:
        raise ValueError(f"true_mask has {truth.size} entries and mask has {guess.size}; they must be equal.")
    if truth.size == 0:
        raise ValueError("true_mask and mask are empty; there is nothing to compare.")
    missed, accepted = int(np.sum(truth & ~guess)), int(np.sum(~truth & guess))
    n_inliers = int(np.sum(truth))
    n_outliers = truth.size - n_inliers
    return ErrorRates(
        inliers=missed / max(n_inliers, 1),
        outliers=accepted / max(n_outliers, 1),
        overall=(missed + accepted) / truth.size,
    )


def _as_mask(mask: Any, name: str) -> Mask:
    array = np.asarray(mask)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, but has shape {array.shape}.")
    if array.dtype != bool:
        if array.size and not np.isin(array, (0, 1)).all():
            raise ValueError(f"{name} must hold only True and False; indices must be turned into a mask first.")
        array = array.astype(bool)
    return array
