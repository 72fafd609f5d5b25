"""Before anything is called sure: what do the surfaces say at the motion that was found?

Four questions to a motion, at the octave that it was found at:

- *Support*: how many of the matches does it explain, after the surfaces have refined it, and in how many places? Wrong
  motions are explained by the clumps that suggested them: many matches, few places.
- *Contact*: of all points that come near the other surface (within five cells), how many touch it, with a normal of the
  same direction? Surfaces that cross each other are near in many places and touch in few; where two scans show the same
  place they touch in most.
- *Free space*: a scan that was taken from its origin has seen through all that lies in front of its surface. Of the
  points of the other cloud that come into its view, how many hang in that empty space? With a right motion hardly any
  do, if one looks as finely as the clouds allow.
- *Freedom*: is there a turn or shift that the touching surfaces leave free? On a plane, a ball or a pipe any motion
  along it fits as well, and nothing tells which is right.

The first three make one number, for K of n matches supporting in P places, T points touching, a share c of the near
ones, and a share v of those in view that should not be there:

    strength = log(P / n) + 0.6 log(K / T) + 4 c - 0.7 log((v + 0.01) / 0.12).

Where nothing is in view v is 0.11, as usual as not; 200 such points are always counted with those in view, because of a
few nothing follows.

The best motion is also compared with the next best one: where nothing is right, the first of many is little better than
the second. Half of its lead, up to one, is added to its strength. Among clouds of different places the upper tail of
the sum is exponential, and that is the p-value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import minimum_filter

from inlier._typing import Array, FloatArray
from inlier.clouds.refinement import Contact, Motion, contact_and_nearness, screws
from inlier.clouds.suggestions import N_DIFFERENT_SCALES, Level, supporting
from inlier.clouds.surfaces import Grid, Surface, count_cells

_TOUCH, _NEAR = 1.5, 5.0  # sides of a cell: points that touch the other surface, points that are near it
_PER_POINT, _PER_CONTACT, _PER_FRONT = 0.6, 4.0, 0.7  # weights of log(K / T), of c and of free space beside log(P / n)
_PLACE = 3.0  # sides of a cell: matches that end in one cube of that width are in one place
_USUAL_FRONT, _USUAL_POINTS = 0.11, 200  # v that says nothing, and how many such points are counted with those in view
_EVEN_IF_RIGHT = 0.01  # share of points that noise leaves in front of a surface
_PER_LEAD, _MOST_LEAD = 0.5, 2.0  # weight of the lead over the next best motion, and what it counts at most
REFINED = 6_000  # points of each cloud, about, that a motion is first refined on
VIEWED = 20_000  # points of each cloud, about, that free space is looked at with
_IN_FRONT = 3.0  # sides of a cell that a point has to lie in front of a surface
_MOST_HIDDEN = 0.1  # share of a cloud's points that a place where it was seen from may not see
_FARTHEST = 5.0  # radii of a cloud that it was seen from
_MOST_PIXELS = 400  # along a face of the cube that a view is drawn on
_FEW = 20  # touching points below which their number says little
# Strength, with its lead, that 15 % of 136 pairs of clouds without a motion exceed, and the mean excess of those.
_TAIL_START, _TAIL_SHARE, _TAIL_LENGTH = -5.52, 0.15, 0.49
_LEAST_HELD = 0.006  # of the mean information a point: below, a freedom is left undetermined


@dataclass(frozen=True, eq=False)
class Opinion:
    """What speaks for a motion."""

    motion: Motion
    n_supporting: int  # matches
    n_matches: int
    n_places: int  # that the supporting matches lie in
    contact: float  # share of the points near the other surface that touch it, in both directions
    overlap: tuple[float, float]  # share of the points of source and target that touch the other
    n_touching: int
    n_in_front: int  # points that hang in free space
    n_in_view: int  # of so many
    freedoms: FloatArray  # how firmly the touching surfaces hold each of six small motions (or seven), in rising order
    least_held: FloatArray  # the first: a turn (times the radius of the contact), a shift and, if it is free, growth
    lead: float = 0.0  # of the best motion: by how much stronger it is than the next one
    n_scales: int = 1  # that motions were looked for at: each is a chance more

    @property
    def in_front(self) -> float | None:
        """Share of the points in view that hang in free space; None where nothing is in view."""
        return self.n_in_front / self.n_in_view if self.n_in_view else None

    @property
    def strength(self) -> float:
        """One number for support, contact and free space."""
        per_match = np.log((self.n_places + 1) / max(self.n_matches, 1))
        per_point = np.log((self.n_supporting + 1) / (self.n_touching + _FEW))
        share = (self.n_in_front + _USUAL_FRONT * _USUAL_POINTS) / (self.n_in_view + _USUAL_POINTS)
        in_front = np.log((share + _EVEN_IF_RIGHT) / (_USUAL_FRONT + _EVEN_IF_RIGHT))
        return float(per_match + _PER_POINT * per_point + _PER_CONTACT * self.contact - _PER_FRONT * in_front)

    @property
    def strength_with_lead(self) -> float:
        """The same with what the lead over the next best motion adds: what the tail is about."""
        return self.strength + _PER_LEAD * min(self.lead, _MOST_LEAD)

    @property
    def log_p_value(self) -> float:
        """Logarithm of the chance of such a strength for clouds of different places; 0 where a freedom is left."""
        return self.log_p_if_held if self.undetermined is None else 0.0

    @property
    def log_p_if_held(self) -> float:
        """The same if no freedom were left."""
        excess = self.strength_with_lead - _TAIL_START
        return min(0.0, float(np.log(_TAIL_SHARE * self.n_scales) - excess / _TAIL_LENGTH))

    def to_dict(self) -> dict[str, float | str | None]:
        """The evidence in numbers."""
        return {
            "n_supporting": self.n_supporting,
            "n_matches": self.n_matches,
            "n_places": self.n_places,
            "contact": float(self.contact),
            "in_front": self.in_front,
            "undetermined": self.undetermined,
            "strength": self.strength_with_lead,
            "p_value": float(np.exp(self.log_p_value)),
        }

    @property
    def undetermined(self) -> str | None:
        """In words, the small motion that the touching surfaces do not determine, if there is one."""
        if self.freedoms[0] >= _LEAST_HELD:
            return None
        turn, shift, growth = self.least_held[:3], self.least_held[3:6], self.least_held[6:]
        if growth @ growth > max(turn @ turn, shift @ shift):
            return "another scale"
        kind, axis = ("turn about", turn) if turn @ turn > shift @ shift else ("shift along", shift)
        return f"a {kind} ({', '.join(f'{part:.2f}' for part in axis / np.linalg.norm(axis))})"


@dataclass(frozen=True, eq=False)
class View:
    """What a scan has seen from one place: the depth in each direction, on the faces of a cube about it."""

    place: FloatArray
    n_pixels: int
    depth: FloatArray  # of each pixel, the least of it and its neighbours; infinite where nothing was seen

    @staticmethod
    def of(points: FloatArray, place: FloatArray, side: float) -> View | None:
        """Draw what points look like from a place; None if they were hardly seen from there."""
        ray = points - place
        distance = np.sqrt(np.einsum("ij,ij->i", ray, ray))
        typical, size = float(np.median(distance)), float(np.sqrt(points.var(axis=0).sum()))
        if not side < typical < _FARTHEST * size:
            return None
        n_pixels = int(np.clip(2 * typical / side, 4, _MOST_PIXELS))
        pixel = _pixels(ray, n_pixels)
        depth = np.full(6 * n_pixels**2, np.inf)
        np.minimum.at(depth, pixel, distance)
        hidden = distance > depth[pixel] + _IN_FRONT * side + 2 * distance / n_pixels
        if hidden.mean() > _MOST_HIDDEN:
            return None
        faces = depth.reshape(6, n_pixels, n_pixels)
        least = minimum_filter(faces, size=(1, 3, 3), mode="nearest")
        return View(place, n_pixels, np.where(np.isfinite(faces), least, np.inf).ravel())

    def count(self, points: FloatArray, margin: float) -> tuple[int, int]:
        """How many points hang in front of what was seen, and how many do not hide behind it."""
        ray = points - self.place
        ahead = self.depth[_pixels(ray, self.n_pixels)] - np.sqrt(np.einsum("ij,ij->i", ray, ray))
        is_seen = np.isfinite(ahead)
        return int(np.count_nonzero(is_seen & (ahead > margin))), int(np.count_nonzero(is_seen & (ahead > -margin)))


def _pixels(ray: FloatArray, n_pixels: int) -> Array:
    """The pixel of a cube that each ray goes through."""
    rows, axis = np.arange(len(ray)), np.abs(ray).argmax(axis=1)
    length = ray[rows, axis]
    length = np.where(length == 0, 1.0, length)
    u, v = (
        np.clip(((ray[rows, (axis + k) % 3] / length + 1) * (n_pixels / 2)).astype(np.int64), 0, n_pixels - 1)
        for k in (1, 2)
    )
    pixels: Array = ((2 * axis + (length < 0)) * n_pixels + u) * n_pixels + v
    return pixels


@dataclass(frozen=True, eq=False)
class Views:
    """What both clouds look like from their origins, where they may have been taken from there; and fine points."""

    coarser: Grid  # that a motion is first refined on; then on the finest
    grid: Grid
    seen: tuple[View | None, View | None]

    @staticmethod
    def of(clouds: tuple[FloatArray, FloatArray], places: tuple[FloatArray, FloatArray]) -> Views:
        """Draw both clouds from the places where their sensors may have stood."""
        coarser, grid = (Grid.of(*clouds, n_points) for n_points in (REFINED, VIEWED))
        first, second = (View.of(cloud, place, grid.side) for cloud, place in zip(clouds, places, strict=True))
        return Views(coarser, grid, (first, second))

    def count(self, motion: Motion, margin: float, every: int) -> tuple[int, int]:
        """Points of either cloud that hang in the empty space before the other, and those in its view."""
        total = np.zeros(2, dtype=np.int64)
        others = (self.grid.target, motion.inverse), (self.grid.source, motion)
        for view, (points, move) in zip(self.seen, others, strict=True):
            if view is not None:
                total += view.count(move(points[::every]), margin)
        return int(total[0]) * every, int(total[1]) * every


def ranked(opinions: list[Opinion]) -> list[Opinion]:
    """The strongest first, with its lead; those that leave a freedom undetermined come last."""
    if not opinions:
        return []
    first, *others = sorted(opinions, key=lambda one: (one.undetermined is not None, -one.strength))
    determined = [one.strength for one in others[:1] if one.undetermined is None]
    return [replace(first, lead=first.strength - max(determined, default=-np.inf)), *others]


def opinion_on(motion: Motion, levels: list[Level], views: Views | None = None, every: int = 1) -> Opinion:
    """Ask the four questions, of every so many points; surfaces are those of the last level."""
    level = levels[-1]
    bounds = _TOUCH * level.side, _NEAR * level.side
    there, n_near = contact_and_nearness(level.source, level.target, motion, bounds, every)
    back, n_near_back = contact_and_nearness(level.target, level.source, motion.inverse, bounds, every)
    n_touching = len(there.rows) + len(back.rows)
    rows = [supporting(one, motion) for one in levels]
    side = level.side if views is None or every > 1 else views.grid.side  # before refinement more is spared
    return Opinion(
        motion,
        sum(some.size for some in rows),
        sum(len(one.matches) for one in levels),
        sum(_n_places(one.ends[1][some], one.side) for one, some in zip(levels, rows, strict=True)),
        n_touching / max(n_near + n_near_back, 1),
        (there.share, back.share),
        n_touching * every,
        *((0, 0) if views is None else views.count(motion, _IN_FRONT * side, every)),
        *freedoms(there, level.target, free_scale=level.free_scale),
        n_scales=N_DIFFERENT_SCALES if level.free_scale else 1,
    )


def _n_places(points: FloatArray, side: float) -> int:
    return count_cells(points, _PLACE * side) if len(points) else 0


def freedoms(there: Contact, target: Surface, *, free_scale: bool = False) -> tuple[FloatArray, FloatArray]:
    """Information about turns (at the radius of the contact) and shifts, a point on average, and what is known least.

    In rising order, along the main axes.
    """
    x = there.moved[there.rows]
    if len(x) < 6:
        return np.zeros(6), np.eye(6)[5]
    centred = x - x.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=1).mean()) or 1.0
    moves = screws(centred / size, target.normals_at(there.nearest), free_scale=free_scale)
    values, axes = np.linalg.eigh(moves.T @ moves / len(moves))
    return np.maximum(values, 0), axes[:, 0]
