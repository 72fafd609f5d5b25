"""Two clouds at one octave, and the motions and scales that their matches suggest.

Sets of matches suggest a motion if they keep their distances to each other, and the angles between their normals and
with the line between them (up to the signs of the normals):

    A_ij = 1 where  | |x_i - x_j| - |y_i - y_j| |,  | |n_i . n_j| - |m_i . m_j| |,  | |n_i . e_ij| - |m_i . f_ij| |
    and the same with i and j exchanged  are small,  e and f the unit vectors between the ends.

Each match, with those that agree with it and with most of the others that do (the second order A A, Chen et al. 2022,
SC2-PCR), is a set. Mistakes come in clumps, and a clump agrees with itself, too: so near neighbours say nothing of each
other, and many different motions are looked at, the best of them on the surfaces.

In different units the ratio of the clouds' sizes is a first guess of the scale, and right if both show the same; else
it may be off by a factor, and a ladder of scales about it is tried. Descriptors stay much the same if a scale is wrong
by a tenth, so at each step some matches are right. Two right ones tell the scale: |y_i - y_j| / |x_i - x_j|. With a
wrong match the ratio can be anything. So each match i counts the ratios to all others whose normals make the same
angles, H_ib in bin b, and the bin with the largest sum_i H_ib^2 is the scale: the votes of a right match fall together,
those of a wrong one do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

from inlier._typing import Array, FloatArray, Mask
from inlier.clouds.refinement import Motion, refine
from inlier.clouds.surfaces import (
    Descriptors,
    Neighbours,
    Surface,
    common_part,
    describe,
    match,
    normals_of,
    side_for,
    thin,
)
from inlier.consensus.clumps import JointNeighbours
from inlier.transforms import MapModel
from inlier.transforms.least_squares import fit_maps

# Lengths in sides of a cell.
_NORMAL_RADIUS = 2.5  # about 20 neighbours on a surface
_RADII = (5.0, 10.0)  # about 80 and 300
_APART = 1.5  # matches nearer to each other, on both sides, are one witness
_TOLERANCE = 1.5  # by which distances of right matches differ
_ANGLE = 0.25  # by which cosines of right matches differ
_FAR = 3.0  # matches nearer to each other always agree
_MOST_MATCHES, _MOST_SEEDS = 2_000, 1_000  # that are compared with each other, and that sets are made of
_SET_SIZE = 10  # matches that suggest one motion
_POWER_ROUNDS, _SHARPNESS = 10, 4  # weights in a set: this power of the leading eigenvector
_SUPPORT = 1.5  # residual of a match that supports a motion
_ROUGH_SUPPORT = 2.5  # before refinement
_SAME = 4.0  # root mean square distance of the images of points under motions that are the same
_TRIED = 80  # motions, at most, that some points of the surfaces are asked about
_BOUNDS, _ROUNDS = (3.0, 2.0), (6, 4)  # of refinement
_QUICK_ROUNDS, _QUICK_POINTS = 4, 500  # of a quick look
_ROWS = 256  # of A at a time
_TELLING = 10.0  # ratios of shorter distances tell little of a scale
# Scales.
_SCALE_POINTS = 2_000  # of each cloud, about
_SCALE_STEP, _SCALE_STEPS = 1.25, 3  # of the ladder, and how many either way
_VOTE_WIDTH, _VOTE_BINS = 0.02, 17  # of the logarithm of a ratio: to 17 % either way
_ANOTHER_SCALE = 0.05  # of the logarithms of different scales
_WORTH_A_SEARCH = 3  # scales: the right one was among the first three in 19 of 23 pairs, the first in 17
_ASTRAY = 10.0  # median distances from the middle of a cloud
N_DIFFERENT_SCALES = round((2 * _SCALE_STEPS + 1) * np.log(_SCALE_STEP) / _ANOTHER_SCALE)  # so many chances to be wrong


@dataclass(frozen=True, eq=False)
class Level:
    """Two clouds, thinned with cells of one side, and the matches between them."""

    side: float
    source: Surface
    target: Surface
    matches: Array  # rows of source and of target
    free_scale: bool = False  # whether refinement may change the scale

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The points that each match joins."""
        return self.source.points[self.matches[:, 0]], self.target.points[self.matches[:, 1]]

    @property
    def every(self) -> int:
        """Of how many points one takes part in a quick look."""
        return max(1, (len(self.source.points) + len(self.target.points)) // (2 * _QUICK_POINTS))

    @cached_property
    def normals(self) -> tuple[FloatArray, FloatArray]:
        """The normals there."""
        return self.source.normals_at(self.matches[:, 0]), self.target.normals_at(self.matches[:, 1])


def level_of(
    source: FloatArray,
    target: FloatArray,
    n_points: int,
    axes: FloatArray | None = None,
    *,
    free_scale: bool = False,
) -> Level:
    """Thin two clouds to about so many points each, by cells along some axes, describe the points and match them."""
    axes = np.eye(3) if axes is None else axes
    side = side_for((source, target), n_points)
    return matched(side, described(source, side, axes), described(target, side, axes), free_scale=free_scale)


Described = tuple[Surface, Descriptors]


def described(cloud: FloatArray, side: float, axes: FloatArray) -> Described:
    """Thin a cloud by cells along some axes, and describe its points."""
    points = thin(cloud @ axes, side) @ axes.T
    neighbours = Neighbours.within(points, side * max(_RADII))
    normals = normals_of(points, neighbours.nearer(side * _NORMAL_RADIUS))
    radii = tuple(side * radius for radius in _RADII)
    return Surface.of(points, normals), describe(normals, neighbours, radii)


def matched(side: float, source: Described, target: Described, *, free_scale: bool = False) -> Level:
    """Match two clouds that were thinned with cells of one side."""
    (first, of_first), (second, of_second) = source, target
    common = common_part(of_first, of_second)
    return Level(side, first, second, match(of_first.centred(common), of_second.centred(common)), free_scale)


def supporting(level: Level, motion: Motion) -> Array:
    """Which matches a motion explains."""
    x, y = level.ends
    step = motion(x) - y
    return np.flatnonzero(np.einsum("ij,ij->i", step, step) <= (_SUPPORT * level.side) ** 2)


def witnesses(level: Level, rng: np.random.Generator) -> Array:
    """Some matches, of those that lie together on both sides one."""
    x, y = level.ends
    apart = JointNeighbours.within(x, y, _APART * level.side).separated(np.ones(len(x), dtype=bool), rng)
    return np.sort(rng.permutation(np.flatnonzero(apart))[:_MOST_MATCHES])


def suggested_motions(level: Level, rng: np.random.Generator) -> list[Motion]:
    """The motions that most matches of a level support, those with most first; no two are the same."""
    x, y = level.ends
    rows = witnesses(level, rng)
    if rows.size < _SET_SIZE:
        return []
    motions = _fits_to_sets(x[rows], y[rows], agreement(level, rows))
    support = _supports(motions, x, y, _ROUGH_SUPPORT * level.side)
    return different([motions[k] for k in np.argsort(-support, kind="stable")], level, _TRIED)


def roughly_refined(level: Level, motions: list[Motion]) -> list[Motion]:
    """The motions after a few rounds on some points of the surfaces; no two are the same."""
    return different([_refined(level, one, _BOUNDS[0], _QUICK_ROUNDS, level.every) for one in motions], level)


def refined(level: Level, motions: list[Motion]) -> list[Motion]:
    """The motions after refinement on all points of the surfaces; no two are the same."""
    for bound, rounds in zip(_BOUNDS, _ROUNDS, strict=True):
        motions = [_refined(level, motion, bound, rounds) for motion in motions]
    return different(motions, level)


def _refined(level: Level, motion: Motion, bound: float, rounds: int, every: int = 1) -> Motion:
    surfaces = level.source, level.target
    return refine(*surfaces, motion, bound * level.side, rounds, every, free_scale=level.free_scale)


def different(motions: list[Motion], level: Level, most: int | None = None) -> list[Motion]:
    """The first of each group of motions that are the same, and no more than so many."""
    if not motions:
        return []
    # The mean square distance of the images of points is the square distance of these rows.
    centre = level.source.points.mean(axis=0)
    spread = level.source.points - centre
    values, axes = np.linalg.eigh(spread.T @ spread / len(spread))
    root = axes * np.sqrt(np.maximum(values, 0))
    linear = np.array([one.scale * one.rotation for one in motions])
    images = linear @ centre + np.array([one.translation for one in motions])
    places = np.hstack([(linear @ root).reshape(-1, 9), images])
    kept: list[int] = []
    for k, place in enumerate(places):
        if not kept or ((places[kept] - place) ** 2).sum(axis=1).min() > (_SAME * level.side) ** 2:
            kept.append(k)
        if len(kept) == most:
            break
    return [motions[k] for k in kept]


def agreement(level: Level, rows: Array) -> Mask:
    """Which of some matches agree with each other, as a matrix."""
    agrees = np.empty((rows.size, rows.size), dtype=bool)
    for some, distance, other, is_alike in compared(level, rows):
        agrees[some] = is_alike & (np.abs(distance - other) < _TOLERANCE) & (np.minimum(distance, other) > _FAR)
    return agrees


def compared(level: Level, rows: Array) -> Iterator[tuple[slice, Array, Array, Mask]]:
    """For some matches at a time: their distances to all in source and target, and where the angles agree."""
    ends = [_Ends(end[rows] / level.side, normal[rows]) for end, normal in zip(level.ends, level.normals, strict=True)]
    for start in range(0, rows.size, _ROWS):
        some = slice(start, start + _ROWS)
        (distance, *cosines), (other, *others) = (end.seen_from(some) for end in ends)
        is_alike = np.ones(distance.shape, dtype=bool)
        for a, b in zip(cosines, others, strict=True):
            is_alike &= np.abs(a - b) < _ANGLE
        yield some, distance, other, is_alike


class _Ends:
    """One side of matches, in single precision and sides of a cell."""

    def __init__(self, points: FloatArray, normals: FloatArray) -> None:
        self._points, self._normals = (points - points.mean(axis=0)).astype(np.float32), normals.astype(np.float32)
        self._squares = np.einsum("ij,ij->i", self._points, self._points)
        self._heights = np.einsum("ij,ij->i", self._points, self._normals)

    def seen_from(self, some: slice) -> tuple[Array, Array, Array, Array]:
        """Distances from some to all, and |n_i . n_j|, |n_i . e_ij|, |n_j . e_ij|."""
        squares = self._squares[some, None] + self._squares - 2 * (self._points[some] @ self._points.T)
        distance = np.sqrt(np.maximum(squares, np.float32(1e-6)))
        own = np.abs(self._normals[some] @ self._points.T - self._heights[some, None]) / distance
        others = np.abs(self._points[some] @ self._normals.T - self._heights) / distance
        return distance, np.abs(self._normals[some] @ self._normals.T), own, others


def _fits_to_sets(x: FloatArray, y: FloatArray, agrees: Mask) -> list[Motion]:
    """Fit a motion to the set of each of the matches that agree with most."""
    seeds = np.argsort(-agrees.sum(axis=1), kind="stable")[:_MOST_SEEDS]
    A = agrees.astype(np.float32)
    in_common = (A[seeds] @ A) * A[seeds]
    others = np.argpartition(-in_common, _SET_SIZE - 2, axis=1)[:, : _SET_SIZE - 1]
    members = np.hstack([seeds[:, None], others])
    among = A[members[:, :, None], members[:, None, :]] + np.eye(_SET_SIZE, dtype=np.float32)
    weights = np.ones(members.shape)
    for _ in range(_POWER_ROUNDS):
        weights = np.einsum("sij,sj->si", among, weights)
        weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    maps = fit_maps(MapModel("rigid", 3), x[members], y[members], weights**_SHARPNESS)
    return [Motion(R, s) for R, s in zip(maps.linear, maps.shift, strict=True)]


def _supports(motions: list[Motion], x: FloatArray, y: FloatArray, bound: float) -> Array:
    """How many matches each of many motions explains.

    |R x + s - y|^2 = |x|^2 + |y|^2 + |s|^2 - 2 y . R x + 2 s . R x - 2 s . y: a row of the match times one of the
    motion.
    """
    products, squares = (y[:, :, None] * x[:, None, :]).reshape(-1, 9), (x**2).sum(axis=1) + (y**2).sum(axis=1)
    of_matches = np.column_stack([squares, np.ones(len(x)), products, x, y])
    R, s = np.array([one.rotation for one in motions]), np.array([one.translation for one in motions])
    of_motions = np.column_stack(
        [np.ones(len(s)), (s**2).sum(axis=1), -2 * R.reshape(-1, 9), 2 * np.einsum("mij,mi->mj", R, s), -2 * s]
    )
    counts = np.empty(len(motions), dtype=np.intp)
    for start in range(0, len(motions), _ROWS):
        some = slice(start, start + _ROWS)
        counts[some] = np.count_nonzero(of_motions[some] @ of_matches.T <= bound**2, axis=1)
    return counts


def size_of(cloud: FloatArray) -> float:
    """Root mean square distance of the surface from its centre, without points that went astray."""
    points = thin(cloud, side_for((cloud, cloud), _SCALE_POINTS))
    squares = ((points - np.median(points, axis=0)) ** 2).sum(axis=1)
    return float(np.sqrt(points[squares <= _ASTRAY**2 * np.median(squares)].var(axis=0).sum()))


def likely_scales(source: FloatArray, target: FloatArray, rng: np.random.Generator) -> list[float]:
    """The scales of the source that most pairs of matches vote for, the first one first; the clouds are of one size."""
    found = []
    for scale in _SCALE_STEP ** np.arange(-_SCALE_STEPS, _SCALE_STEPS + 1):
        level = level_of(scale * source, target, _SCALE_POINTS, Rotation.random(rng=rng).as_matrix())
        factor, votes = voted_scale(level, rng)
        found.append((votes, float(scale * factor)))
    kept: list[float] = []
    for _, scale in sorted(found, reverse=True):
        if all(abs(np.log(scale / other)) > _ANOTHER_SCALE for other in kept):
            kept.append(scale)
    return kept[:_WORTH_A_SEARCH]


def voted_scale(level: Level, rng: np.random.Generator) -> tuple[float, float]:
    """The factor that most pairs of matches of a level ask for beside its scale, and how many do."""
    rows = witnesses(level, rng)
    votes = np.zeros((rows.size, _VOTE_BINS), dtype=np.float32)
    for some, distance, other, is_alike in compared(level, rows):
        bins = np.floor(np.log(other / distance) / _VOTE_WIDTH + _VOTE_BINS / 2)
        i, j = np.nonzero(is_alike & (np.minimum(distance, other) > _TELLING) & (bins >= 0) & (bins < _VOTE_BINS))
        counts = np.bincount(i * _VOTE_BINS + bins[i, j].astype(np.intp), minlength=len(bins) * _VOTE_BINS)
        votes[some] = counts.reshape(-1, _VOTE_BINS)
    together = (gaussian_filter1d(votes, 1.0, axis=1) ** 2).sum(axis=0) / max(rows.size, 1) ** 3
    best = int(together.argmax())
    return float(np.exp((best - _VOTE_BINS // 2) * _VOTE_WIDTH)), float(together[best])
