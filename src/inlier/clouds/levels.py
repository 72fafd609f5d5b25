"""A cloud at one octave: thinned, with normals, descriptors and a tree of its points."""

from __future__ import annotations

from dataclasses import dataclass

from inlier._typing import Array, FloatArray
from inlier.clouds.descriptors import Descriptors, common_part, describe
from inlier.clouds.matching import match
from inlier.clouds.normals import Neighbours, normals_of
from inlier.clouds.refinement import Surface
from inlier.clouds.thinning import side_for, thin

_NORMAL_RADIUS = 2.5  # sides of a cell: about 20 neighbours on a surface
_RADII = (5.0, 10.0)  # sides of a cell: about 80 and 300


@dataclass(frozen=True, eq=False)
class Level:
    """Two clouds, thinned with cells of one side, and the matches between them."""

    side: float
    source: Surface
    target: Surface
    matches: Array  # rows of source and of target

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The points that each match joins."""
        return self.source.points[self.matches[:, 0]], self.target.points[self.matches[:, 1]]


def level_of(source: FloatArray, target: FloatArray, n_points: int) -> Level:
    """Thin two clouds to about so many points each, describe the points and match them."""
    side = side_for((source, target), n_points)
    (first, of_first), (second, of_second) = (_described(cloud, side) for cloud in (source, target))
    common = common_part(of_first, of_second)
    return Level(side, first, second, match(of_first.centred(common), of_second.centred(common)))


def _described(cloud: FloatArray, side: float) -> tuple[Surface, Descriptors]:
    points = thin(cloud, side)
    neighbours = Neighbours.within(points, side * max(_RADII))
    normals = normals_of(points, neighbours.nearer(side * _NORMAL_RADIUS))
    radii = tuple(side * radius for radius in _RADII)
    return Surface.of(points, normals), describe(points, normals, neighbours, radii)
