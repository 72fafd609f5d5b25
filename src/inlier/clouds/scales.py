"""Two clouds in different units, or one without any: which scales are worth a search?

The ratio of their sizes is a first guess, and right if both show the same; else it may be off by a factor, and a ladder
of scales about it is tried. Descriptors stay much the same if a scale is wrong by a tenth, so at each step some matches
are right. Two right ones tell the scale, by their distances in source and target:

    scale = |y_i - y_j| / |x_i - x_j|.

With a wrong match the ratio can be anything. So each match i counts the ratios to all others whose normals make the
same angles, H_ib in bin b, and the bin with the largest sum_i H_ib^2 is the scale: the votes of a right match fall
together, those of a wrong one do not.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

from inlier._typing import FloatArray
from inlier.clouds.suggestions import Level, compared, level_of, witnesses
from inlier.clouds.surfaces import side_for, thin

_POINTS = 2_000  # of each cloud, about
_STEP, _STEPS = 1.25, 3  # of the ladder, and how many either way
_WIDTH, _BINS = 0.02, 17  # of the logarithm of a ratio: to 17 % either way
_FAR = 10.0  # sides of a cell: ratios of shorter distances tell little
_APART = 0.05  # of the logarithms of different scales
_WORTH_A_SEARCH = 3
_ASTRAY = 10.0  # median distances from the middle of a cloud
N_DIFFERENT = round((2 * _STEPS + 1) * np.log(_STEP) / _APART)  # scales on the ladder: so many chances to be wrong


def size_of(cloud: FloatArray) -> float:
    """Root mean square distance of the surface from its centre, without points that went astray."""
    points = thin(cloud, side_for((cloud, cloud), _POINTS))
    squares = ((points - np.median(points, axis=0)) ** 2).sum(axis=1)
    return float(np.sqrt(points[squares <= _ASTRAY**2 * np.median(squares)].var(axis=0).sum()))


def likely_scales(source: FloatArray, target: FloatArray, rng: np.random.Generator) -> list[float]:
    """The scales of the source that most pairs of matches vote for, the first one first; the clouds are of one size."""
    found = []
    for scale in _STEP ** np.arange(-_STEPS, _STEPS + 1):
        level = level_of(scale * source, target, _POINTS, Rotation.random(rng=rng).as_matrix())
        factor, votes = voted_scale(level, rng)
        found.append((votes, float(scale * factor)))
    different: list[float] = []
    for _, scale in sorted(found, reverse=True):
        if all(abs(np.log(scale / other)) > _APART for other in different):
            different.append(scale)
    return different[:_WORTH_A_SEARCH]


def voted_scale(level: Level, rng: np.random.Generator) -> tuple[float, float]:
    """The factor that most pairs of matches of a level ask for beside its scale, and how many do."""
    rows = witnesses(level, rng)
    votes = np.zeros((rows.size, _BINS), dtype=np.float32)
    for some, distance, other, is_alike in compared(level, rows):
        bins = np.floor(np.log(other / distance) / _WIDTH + _BINS / 2)
        i, j = np.nonzero(is_alike & (np.minimum(distance, other) > _FAR) & (bins >= 0) & (bins < _BINS))
        counts = np.bincount(i * _BINS + bins[i, j].astype(np.intp), minlength=len(bins) * _BINS)
        votes[some] = counts.reshape(-1, _BINS)
    together = (gaussian_filter1d(votes, 1.0, axis=1) ** 2).sum(axis=0) / max(rows.size, 1) ** 3
    best = int(together.argmax())
    return float(np.exp((best - _BINS // 2) * _WIDTH)), float(together[best])
