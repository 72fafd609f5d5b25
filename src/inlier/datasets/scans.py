"""Two scans of one surface with supposed matches between them, most of them wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from inlier._checks import check_count, check_number
from inlier._typing import Array, FloatArray, Mask
from inlier.datasets.brain import packaged_surface
from inlier.datasets.synthetic import RandomSource

_VIEWS = np.array([[0.8, -0.5, 0.33], [0.8, 0.5, 0.33]])  # where each scanner stands, as seen from the middle
_UNSEEN = 0.25  # share of the surface on the far side of a scanner
_TURN = np.array([20.0, -35.0, 110.0])  # degrees about x, y and z
_SHIFT = np.array([120.0, 40.0, -25.0])


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
