"""Motions that matches suggest: those of sets of matches that keep their distances to each other (`consensus`).

Mistakes come in clumps, and a clump keeps its distances, too. So motions are looked for among all matches and among
some that are no joint neighbours of each other, drawn anew a few times; those that most matches support go to the
surfaces, and are refined there.
"""

from __future__ import annotations

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.clouds.levels import Level
from inlier.clouds.refinement import Motion, refine
from inlier.consensus.candidates import rough_maps
from inlier.consensus.clumps import JointNeighbours
from inlier.consensus.pairs import ColumnPairs
from inlier.transforms import MapModel

# Lengths in sides of a cell.
_TOLERANCES = np.array([1.0, 2.0])  # by which distances of right matches differ
_APART = 3.0  # matches nearer to each other, on both sides, are one witness
_DRAWS = 2  # of matches that are so far apart
_SUPPORT = 1.5  # residual of a match that supports a motion
_ROUGH_SUPPORT = 2.5  # before refinement
_SAME = 4.0  # root mean square distance of the images of points under motions that are the same
_REFINED = 10  # motions, at most, that are refined
_BOUNDS, _ROUNDS = (3.0, 2.0), (6, 4)  # of refinement


def n_supporting(level: Level, motion: Motion, within: float = _SUPPORT) -> int:
    """How many matches a motion explains."""
    x, y = level.ends
    step = motion(x) - y
    return int(np.count_nonzero(np.einsum("ij,ij->i", step, step) <= (within * level.side) ** 2))


def suggested_motions(level: Level, rng: np.random.Generator) -> list[Motion]:
    """The motions that most matches of a level support, refined on its surfaces; no two are the same."""
    rough = _rough_motions(level, rng)
    support = [n_supporting(level, motion, _ROUGH_SUPPORT) for motion in rough]
    best = different([rough[k] for k in np.argsort(support, kind="stable")[::-1]], level, _REFINED)
    for bound, rounds in zip(_BOUNDS, _ROUNDS, strict=True):
        best = [refine(level.source, level.target, motion, bound * level.side, rounds) for motion in best]
    return different(best, level)


def different(motions: list[Motion], level: Level, most: int | None = None) -> list[Motion]:
    """The first of each group of motions that are the same, and no more than so many."""
    some = level.source.points[:: max(1, len(level.source.points) // 100)]
    kept: list[Motion] = []
    images: list[FloatArray] = []
    for motion in motions:
        image = motion(some)
        if all(((image - other) ** 2).sum(axis=1).mean() > (_SAME * level.side) ** 2 for other in images):
            kept.append(motion)
            images.append(image)
        if len(kept) == most:
            break
    return kept


def _rough_motions(level: Level, rng: np.random.Generator) -> list[Motion]:
    """Fits to the densest sets of matches, among all and among those far apart."""
    x, y = level.ends
    everyone = np.ones(len(x), dtype=bool)
    neighbours = JointNeighbours.within(x, y, _APART * level.side)
    samples: list[Array] = [np.flatnonzero(neighbours.separated(everyone, rng)) for _ in range(_DRAWS)]
    found: list[Motion] = []
    for rows in [np.arange(len(x)), *samples]:
        pairs, (mean_x, mean_y) = ColumnPairs.from_rows(x[rows], y[rows], np.ones(rows.size), centred=True)
        maps = rough_maps(MapModel("rigid", 3), pairs, 1.0, _TOLERANCES * level.side, rng)
        if maps is not None:
            turns, shifts = maps[0].linear, maps[0].shift
            found += [Motion(R, mean_y + s - R @ mean_x) for R, s in zip(turns, shifts, strict=True)]
    return found
