"""Pairs with a known answer: Gaussian ones (Assumption 1), mispaired rows of a table (section 6.1), two scans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.stats import ortho_group

from inlier._checks import check_count, check_number
from inlier._typing import Array, FloatArray, Mask
from inlier.datasets.brain import packaged_surface
from inlier.rows import as_table, check_finite, summarise_columns

RandomSource = int | np.random.Generator | None
_VIEWS = np.array([[0.8, -0.5, 0.33], [0.8, 0.5, 0.33]])  # where each scanner stands, as seen from the middle
_UNSEEN = 0.25  # share of the surface on the far side of a scanner
_TURN = np.array([20.0, -35.0, 110.0])  # degrees about x, y and z
_SHIFT = np.array([120.0, 40.0, -25.0])


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


@dataclass(frozen=True, eq=False)
class Scans:
    """Two scans, the supposed matches between them, and the truth about those.

    Attributes
    ----------
    source, target : ndarray of shape (n_points, 3)
        Points, in millimetres.
    pairs : ndarray of int, shape (n_pairs, 2)
        Rows of source and target that are supposed to show the same spot.
    inlier_mask : ndarray of bool, shape (n_pairs,)
        True where they do.
    rotation, translation : ndarray of shape (3, 3), (3,)
        On real pairs target = rotation source + translation, up to noise.
    """

    source: FloatArray
    target: FloatArray
    pairs: Array
    inlier_mask: Mask
    rotation: FloatArray
    translation: FloatArray


def make_scans(
    n_points: int = 8000,
    n_pairs: int = 2000,
    inlier_fraction: float = 0.3,
    *,
    noise: float = 0.3,
    rng: RandomSource = None,
) -> Scans:
    """Scan the brain surface that ships with the package from two sides, and match the scans badly.

    Parameters
    ----------
    n_points : int, default=8000
        Points of each scan.
    n_pairs : int, default=2000
        Supposed matches.
    inlier_fraction : float, default=0.3
        Share of the matches that are real; the others lead anywhere.
    noise : float, default=0.3
        Standard deviation of the noise of each coordinate, in millimetres.
    rng : int, Generator or None
        Seed of all choices.

    Returns
    -------
    Scans

    Examples
    --------
    >>> from inlier.datasets import make_scans
    >>> scans = make_scans(rng=0)
    >>> scans.source.shape, scans.pairs.shape, int(scans.inlier_mask.sum())
    ((8000, 3), (2000, 2), 600)
    """
    check_count(n_points, "n_points", low=10)
    check_count(n_pairs, "n_pairs", low=2)
    check_number(inlier_fraction, "inlier_fraction", low=0, high=1)
    check_number(noise, "noise", low=0)
    random = np.random.default_rng(rng)
    surface = packaged_surface()["xyz"]
    order = random.permutation(len(surface))  # the same for both, so that they share points where they overlap
    seen = [random.permutation(order[_is_seen(surface[order], view)][:n_points]) for view in _VIEWS]
    pairs, mask = _matches(seen[0], seen[1], n_pairs, inlier_fraction, random)
    scans = [surface[vertices] + noise * random.standard_normal((vertices.size, 3)) for vertices in seen]
    rotation = Rotation.from_euler("xyz", _TURN, degrees=True).as_matrix()
    return Scans(scans[0], scans[1] @ rotation.T + _SHIFT, pairs, mask, rotation, _SHIFT.copy())


def _is_seen(surface: FloatArray, view: FloatArray) -> Mask:
    towards = (surface - surface.mean(axis=0)) @ view
    return np.asarray(towards >= np.quantile(towards, _UNSEEN))


def _matches(
    of_source: Array, of_target: Array, n_pairs: int, inlier_fraction: float, random: np.random.Generator
) -> tuple[Array, Mask]:
    """Rows of both scans: the same vertex in some, any two different vertices in the others."""
    _, in_source, in_target = np.intersect1d(of_source, of_target, assume_unique=True, return_indices=True)
    n_real = round(inlier_fraction * n_pairs)
    if n_real > in_source.size:
        raise ValueError(
            f"The two scans share {in_source.size:,} points, so there cannot be {n_real:,} real matches. "
            f"Use more points, fewer pairs or a smaller inlier fraction."
        )
    chosen = random.permutation(in_source.size)[:n_real]
    real = np.stack([in_source[chosen], in_target[chosen]], axis=1)
    wrong = np.stack([random.integers(of.size, size=2 * n_pairs) for of in (of_source, of_target)], axis=1)
    wrong = wrong[of_source[wrong[:, 0]] != of_target[wrong[:, 1]]][: n_pairs - n_real]
    order = random.permutation(n_pairs)
    return np.concatenate([real, wrong])[order], (np.arange(n_pairs) < n_real)[order]
