"""The last refinement: all scans of a part at once, on all surfaces that overlap, point to plane.

A pair by pair answer leaves each wall as many times as it was seen, a little apart. Here the poses of all scans move
together, as `graph` has it, by the equations of `clouds.refinement` for each pair that overlaps. How far walls stand
apart is measured before and after, and what does not bring them together is not taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.sparse import eye_array
from scipy.sparse.linalg import splu

from inlier._typing import FloatArray
from inlier.clouds.refinement import Equations, Motion, Nearest, contact, equations
from inlier.clouds.second_opinion import VIEWED
from inlier.clouds.surfaces import Surface
from inlier.scans.graph import Blocks, Pose, cross
from inlier.scans.prepared import Prepared, PreparedPair

_OVERLAP = 0.1  # share of a scan that lies on another, from which on they are refined together
_MOST_PAIRS = 8  # of a scan, those that overlap most
_BOUNDS, _ROUNDS = (3.0, 1.5), 4  # in sides of a cell
_LOOKED_AT = 4.0  # sides of a cell, within which a wall seen twice is one
_SOME = 5_000  # points of a scan that are asked
_RIDGE = 1e-6  # of the mean information: along a plane nothing moves


@dataclass(frozen=True)
class Walls:
    """How far apart the surfaces stand that several scans saw: the median distance, and that of the worst tenth."""

    median: float
    worst_tenth: float

    @staticmethod
    def of(distances: Sequence[FloatArray]) -> Walls:
        """Of all points that touch another scan's surface."""
        together = np.concatenate([*distances, np.empty(0)])
        if not together.size:
            return Walls(np.nan, np.nan)
        return Walls(*(float(value) for value in np.quantile(together, [0.5, 0.9])))


def overlap_between(scans: Sequence[Prepared], poses: dict[int, Pose], i: int, j: int) -> float:
    """Share of the one scan that lies on the other where their poses are known; the larger one."""
    there = poses[i].motion.inverse @ poses[j].motion
    of_j = scans[i].share_near(there(scans[j].probes), scans[j].of_looks[2])
    of_i = scans[j].share_near(there.inverse(scans[i].probes), scans[i].of_looks[2])
    return max(of_i, of_j)


@dataclass(eq=False)
class Joint:
    """Scans that are refined together."""

    scans: Sequence[Prepared]
    poses: dict[int, Pose]
    _surfaces: dict[tuple[int, float], Surface] = field(default_factory=dict)

    def refined(self) -> tuple[dict[int, Pose], Walls, Walls, dict[int, float]]:
        """The poses, how far walls stand apart before and after, and the median distance of each scan's at the end."""
        pairs = self._overlapping()
        before, by_scan = self._walls(pairs, self.poses)
        poses = self.poses
        for bound in _BOUNDS:
            for _ in range(_ROUNDS):
                poses = self._step(pairs, poses, bound)
        after, by_scan_after = self._walls(pairs, poses)
        if not after.median < before.median:
            return self.poses, before, before, by_scan
        return poses, before, after, by_scan_after

    def _overlapping(self) -> list[tuple[int, int]]:
        """Pairs that overlap, for each scan those that do most."""
        share = {pair: overlap_between(self.scans, self.poses, *pair) for pair in combinations(sorted(self.poses), 2)}
        kept = set()
        for scan in self.poses:
            mine = sorted(
                (pair for pair in share if scan in pair and share[pair] >= _OVERLAP), key=lambda one: -share[one]
            )
            kept.update(mine[:_MOST_PAIRS])
        return sorted(kept)

    def _surface(self, scan: int, side: float) -> Surface:
        if (scan, side) not in self._surfaces:
            key = "thinned", VIEWED, side
            points = self.scans[scan].parts.get(key)
            points = self.scans[scan].worked_out([key])[key] if points is None else points
            self._surfaces[scan, side] = Surface.dense(points)
        return self._surfaces[scan, side]

    def _equations(self, pair: tuple[int, int], poses: dict[int, Pose], bound: float) -> Equations | None:
        """What the surface of j (the second) says where it touches that of i, in the axes of i, from its middle."""
        i, j = pair
        side = PreparedPair(self.scans[j], self.scans[i]).side(VIEWED)
        target, source = self._surface(i, side), self._surface(j, side)
        back = poses[i].rotation.T
        motion = Motion(back @ poses[j].rotation, back @ (poses[j].place - poses[i].place))
        every = max(1, len(source.points) // _SOME)
        touching = contact(source, target, motion, Nearest(target.tree, bound * side), every)
        return equations(target, touching, bound * side)

    def _step(self, pairs: Sequence[tuple[int, int]], poses: dict[int, Pose], bound: float) -> dict[int, Pose]:
        """All poses after one round; the first one stays."""
        order = list(poses)
        number = {scan: k for k, scan in enumerate(order)}
        blocks = Blocks(len(order))
        for i, j in pairs:
            found = self._equations((i, j), poses, bound)
            if found is None:
                continue
            G = _relative(poses[i], poses[j], found)
            weighted = found.moves * found.weight[:, None]
            blocks.add(number[i], number[j], G.T @ (weighted.T @ found.moves) @ G, G.T @ (weighted.T @ found.offset))
        if blocks.is_empty:
            return poses
        information, pull = blocks.sums
        inner = information[6:, 6:]
        scale = np.sqrt(np.maximum(inner.diagonal(), 1e-300))
        unit = inner.multiply(1 / scale[:, None]).multiply(1 / scale) + _RIDGE * eye_array(scale.size)
        step = (splu(unit.tocsc()).solve(-pull[6:] / scale) / scale).reshape(-1, 6)
        return {scan: pose if k == 0 else pose.moved(step[k - 1]) for k, (scan, pose) in enumerate(poses.items())}

    def _walls(self, pairs: Sequence[tuple[int, int]], poses: dict[int, Pose]) -> tuple[Walls, dict[int, float]]:
        distances, of_scan = list[FloatArray](), dict[int, list[FloatArray]]()
        for pair in pairs:
            found = self._equations(pair, poses, _LOOKED_AT)
            if found is not None:
                distances.append(np.abs(found.offset))
                for scan in pair:
                    of_scan.setdefault(scan, []).append(distances[-1])
        return Walls.of(distances), {scan: Walls.of(some).median for scan, some in of_scan.items()}


def _relative(i: Pose, j: Pose, found: Equations) -> FloatArray:
    """From turns and shifts of both poses to the turn (times the size) and shift of j beside i, at the centre."""
    arm = i.rotation @ found.centre
    other = arm + i.place - j.place
    eye, none = np.eye(3), np.zeros((3, 3))
    moves = np.block([[-found.size * eye, none, found.size * eye, none], [cross(arm), -eye, -cross(other), eye]])
    return np.kron(np.eye(2), i.rotation.T) @ moves
