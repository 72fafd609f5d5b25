"""A scan, prepared once for all the pair searches that it takes part in.

What two clouds are compared by has to be worked out with cells of one side. So sides stand on a ladder: scans of about
one size share their step, and what was worked out for one pair serves the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from inlier._typing import Array, FloatArray
from inlier.clouds.octaves import OCTAVES
from inlier.clouds.second_opinion import REFINED, VIEWED, View, Views
from inlier.clouds.suggestions import Level, described, matched
from inlier.clouds.surfaces import FINEST, Grid, side_for, thin

_STEPS = 4  # of the ladder, to twice the side
_ANOTHER_SIZE = 30.0  # ratio of the sizes of scans that are not asked about each other
_N_WORDS, _ROUNDS, _SAMPLE = 64, 10, 400  # looks that points are told apart by; points of each scan that tell them
_PROBES = 400  # points of a scan that are asked what they overlap
_NEAR = 2.0  # sides of a coarse cell: points that overlap

Key = tuple[str, int, float]  # what of a scan, thinned to about so many points, with cells of this side


@dataclass(frozen=True, eq=False)
class Prepared:
    """A scan's points, thinned, and what was worked out of them."""

    points: FloatArray  # as they came, but no more than are ever looked at
    origin: FloatArray  # their mean
    sides: dict[int, float]  # of the cells that thin them to about so many points
    size: float  # root mean square distance from the mean
    parts: dict[Key, Any] = field(default_factory=dict)

    @staticmethod
    def of(points: FloatArray) -> Prepared:
        """Thin a scan, and look how fine its cells have to be."""
        if len(points) > FINEST:
            points = thin(points, side_for((points, points), FINEST))
        origin = points.mean(axis=0)
        centred = points - origin
        sides = {n: side_for((centred, centred), n) for n in {*OCTAVES, REFINED, VIEWED}}
        size = float(np.sqrt(centred.var(axis=0).sum()))
        first = Prepared(points, origin, sides, size)
        return Prepared(points, origin, sides, size, first.worked_out([first.of_looks]))

    @cached_property
    def digest(self) -> bytes:
        """By what it holds: the order in which scans are given decides nothing."""
        return blake2b(self.points.tobytes(), digest_size=12).digest()

    @property
    def of_looks(self) -> Key:
        """By what it is compared as a whole."""
        return "described", OCTAVES[0], _on_ladder(self.sides[OCTAVES[0]])

    def worked_out(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Work out what is asked for."""
        return {key: self._part(*key) for key in keys}

    def _part(self, what: str, n_points: int, side: float) -> Any:
        centred = self.points - self.origin
        if what == "described":
            return described(centred, side, Rotation.random(rng=np.random.default_rng(n_points)).as_matrix())
        return View.of(centred, -self.origin, side) if what == "view" else thin(centred, side)

    @cached_property
    def sketch(self) -> FloatArray:
        """Points that stand for its surface, in random order."""
        points: FloatArray = self.parts[self.of_looks][0].points + self.origin
        return np.random.default_rng(0).permutation(points)

    @property
    def probes(self) -> FloatArray:
        """Some of them."""
        return self.sketch[:_PROBES]

    @cached_property
    def tree(self) -> cKDTree:
        """Of all of them."""
        return cKDTree(self.sketch)

    def share_near(self, points: FloatArray, side: float) -> float:
        """Share of some points that lie on its surface, by coarse cells."""
        reach = _NEAR * max(side, self.of_looks[2])
        return float(np.isfinite(self.tree.query(points, distance_upper_bound=reach)[0]).mean())


def _on_ladder(side: float) -> float:
    return float(2.0 ** (np.round(_STEPS * np.log2(side)) / _STEPS))


def are_of_one_size(a: Prepared, b: Prepared) -> bool:
    """Whether two scans may show one place in one unit at all."""
    return 1 / _ANOTHER_SIZE < a.size / b.size < _ANOTHER_SIZE


@dataclass(frozen=True, eq=False)
class PreparedPair:
    """Two scans, and the sides of the cells that they are compared with."""

    source: Prepared
    target: Prepared

    def side(self, n_points: int) -> float:
        """So that both together have twice as many cells: their number goes with the square of the side."""
        squares = (self.source.sides[n_points] ** 2 + self.target.sides[n_points] ** 2) / 2
        return _on_ladder(float(np.sqrt(squares)))

    @property
    def keys(self) -> list[Key]:
        """What a search takes, of either scan."""
        wanted = [("described", n) for n in OCTAVES] + [("thinned", n) for n in (REFINED, VIEWED)] + [("view", VIEWED)]
        return [(what, n, self.side(n)) for what, n in wanted]

    def level_at(self, n_points: int) -> Level:
        """Both, thinned to about so many points, and matched."""
        key = "described", n_points, self.side(n_points)
        return matched(key[2], self.source.parts[key], self.target.parts[key])

    @property
    def views(self) -> Views:
        """Both as they are judged by."""
        grids = [
            Grid(side, self.source.parts["thinned", n, side], self.target.parts["thinned", n, side])
            for n, side in ((n, self.side(n)) for n in (REFINED, VIEWED))
        ]
        key = "view", VIEWED, grids[1].side
        return Views(grids[0], grids[1], (self.source.parts[key], self.target.parts[key]))


def alikeness(scans: Sequence[Prepared]) -> FloatArray:
    """How much each scan looks like each other as a whole; -inf for those that are not to be asked.

    What points look like falls into so many words; a scan is how often it says each, by how rare that is, and two are
    compared by the angle between (Sivic and Zisserman 2003).
    """
    looks = [_looks(scan) for scan in scans]
    rng = np.random.default_rng(0)
    some = np.vstack([one[rng.permutation(len(one))[:_SAMPLE]] for one in looks])
    words, _ = kmeans2(some, min(_N_WORDS, len(some) // 2), _ROUNDS, minit="points", rng=rng)
    tree = cKDTree(words)
    counts = np.array([np.bincount(tree.query(one)[1], minlength=len(words)) / len(one) for one in looks])
    roots = np.sqrt(counts)
    roots -= roots.mean(axis=0)
    roots /= np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-12)
    alike: FloatArray = roots @ roots.T
    sizes = np.log([scan.size for scan in scans])
    apart = np.abs(sizes[:, None] - sizes)
    alike -= apart  # a place seen twice is of about one size
    alike[apart >= np.log(_ANOTHER_SIZE)] = -np.inf
    np.fill_diagonal(alike, -np.inf)
    return alike


def _looks(scan: Prepared) -> Array:
    """What each point looks like, whatever the sign of its normal."""
    _, descriptors = scan.parts[scan.of_looks]
    return np.hstack([descriptors.even, np.abs(descriptors.odd)]).astype(np.float64)
