"""Pairs with a known answer: Gaussian ones (Assumption 1), and mispaired rows of a table (section 6.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import ortho_group

from inlier._checks import check_count, check_number
from inlier._typing import FloatArray, Mask
from inlier.rows import as_table, check_finite, summarise_columns

RandomSource = int | np.random.Generator | None


@dataclass(frozen=True, eq=False)
class PairedData:
    """Two sets of paired rows and the truth about them.

    Attributes
    ----------
    X, Y : ndarray of shape (n, d)
        The pairs. On inliers ``Y = X @ rotation.T + translation``, up to noise.
    inlier_mask : ndarray of bool, shape (n,)
        True where the pair is real (the paper's G).
    rotation : ndarray of shape (d, d)
        The orthogonal matrix R.
    translation : ndarray of shape (d,)
        What was added to every row of ``Y``.
    """

    X: FloatArray
    Y: FloatArray
    inlier_mask: Mask
    rotation: FloatArray
    translation: FloatArray


def make_gaussian_pairs(
    n: int, d: int, inlier_fraction: float, *, noise: float = 0.0, translation: float = 0.0, rng: RandomSource = None
) -> PairedData:
    """Draw pairs from Assumption 1 of the paper, with optional noise and translation.

    Parameters
    ----------
    n, d : int
        Number of pairs and their dimension.
    inlier_fraction : float
        r; exactly ``round(r n)`` pairs, at random places, are real.
    noise : float, default=0
        Standard deviation of Gaussian noise added to every coordinate of ``Y``.
    translation : float, default=0
        Length of a random translation of ``Y``.
    rng : int, numpy Generator or None
        Source of randomness.

    Returns
    -------
    PairedData

    Examples
    --------
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=100, d=3, inlier_fraction=0.7, rng=0)
    >>> data.X.shape, int(data.inlier_mask.sum())
    ((100, 3), 70)
    """
    n, d = check_count(n, "n", low=2), check_count(d, "d")
    noise, length = check_number(noise, "noise", low=0), check_number(translation, "translation", low=0)
    random = np.random.default_rng(rng)
    inlier_mask = _random_mask(n, inlier_fraction, random)
    X = random.standard_normal((n, d))
    partner = X.copy()
    partner[~inlier_mask] = random.standard_normal((n - inlier_mask.sum(), d))
    rotation = _random_orthogonal(d, random)
    shift = random.standard_normal(d)
    shift *= length / np.linalg.norm(shift)
    Y = partner @ rotation.T + shift
    if noise > 0:
        Y += noise * random.standard_normal((n, d))
    return PairedData(X, Y, inlier_mask, rotation, shift)


def make_mispaired(
    table: Any, n: int | None = None, inlier_fraction: float = 0.8, *, rng: RandomSource = None
) -> PairedData:
    """Pair rows of a table with rotated copies of themselves, some of them with another row's (section 6.1).

    ``Y_i = R X_i`` on inliers and ``R X_pi(i)`` on the others, with a random permutation pi of the outliers
    that leaves none of them in place.

    Parameters
    ----------
    table : array-like of shape (m, d)
        Where the rows are drawn from, without replacement.
    n : int, optional
        Number of pairs; all rows by default.
    inlier_fraction : float, default=0.8
        r; exactly ``round(r n)`` pairs are real.
    rng : int, numpy Generator or None
        Source of randomness.

    Returns
    -------
    PairedData

    Examples
    --------
    >>> from inlier.datasets import load_brain, make_mispaired
    >>> data = make_mispaired(load_brain().features, n=2000, inlier_fraction=0.8, rng=0)
    >>> data.X.shape, int(data.inlier_mask.sum())
    ((2000, 6), 1600)
    """
    rows = as_table(table, "table").astype(np.float64)
    check_finite(rows, summarise_columns(rows), "table")
    n = check_count(len(rows) if n is None else n, "n", low=2)
    if n > len(rows):
        raise ValueError(f"n = {n} pairs were asked for, but the table has only {len(rows)} rows.")
    random = np.random.default_rng(rng)
    X = rows[random.permutation(len(rows))[:n]]
    inlier_mask = _random_mask(n, inlier_fraction, random)
    outliers = random.permutation(np.flatnonzero(~inlier_mask))
    if outliers.size == 1:
        raise ValueError(
            f"inlier_fraction={inlier_fraction} of n = {n} leaves one outlier, which has nobody to be mispaired "
            f"with. Lower the fraction so that there are at least two, or use 1."
        )
    partner = np.arange(n)
    partner[outliers] = np.roll(outliers, 1)  # one random cycle: a permutation without fixed points
    rotation = _random_orthogonal(rows.shape[1], random)
    return PairedData(X, X[partner] @ rotation.T, inlier_mask, rotation, np.zeros(rows.shape[1]))


def _random_mask(n: int, inlier_fraction: float, random: np.random.Generator) -> Mask:
    fraction = check_number(inlier_fraction, "inlier_fraction", low=0, high=1)
    mask = np.zeros(n, dtype=bool)
    mask[random.permutation(n)[: round(fraction * n)]] = True
    return mask


def _random_orthogonal(d: int, random: np.random.Generator) -> FloatArray:
    """Draw an orthogonal matrix from the Haar distribution; scipy's sampler starts at d = 2."""
    if d == 1:
        return random.choice([-1.0, 1.0], size=(1, 1))
    return ortho_group.rvs(d, random_state=random)
