"""Poses of many scans from motions between some of them, and which of those motions break the loops.

*Loops.* Motions along a loop of scans come back to where they began, up to their errors. With C the motion around, e
its turn and the shift of the centre of the first scan, and S the covariance that the errors of the steps give e (each
carried to the first scan by the steps after it), chi^2 = e^T S^-1 e has six degrees of freedom. For each motion the
shortest other way between its ends makes a loop, and so do all triangles.

Scans bend alike, and stated errors fall short of that: the lower half of the loops tells by how much (`inflation`), and
all errors are taken to be as much larger (Birge 1932). A loop beyond that is broken. Of the motions in broken loops the
one is taken out without which fewest are left broken; among several, that which breaks most loops, less those that it
keeps, or has least evidence. Again, until no loop is broken.

*Poses.* World = R_i (x - o_i) + a_i for points of scan i, o_i its middle. A small turn w_i and shift s_i of each change
what a motion T from j to i should be, P = pose_i^-1 pose_j: with R = R_i^T and u = R_j (c - o_j) + a_j - a_i, c the
centre of the motion,

    turn:  R (w_j - w_i),     image of c:  R (-[R_j (c - o_j)]x w_j + s_j + [u]x w_i - s_i).

These are solved for the differences of T and P by sparse least squares (Gauss and Newton), each motion with its
information, and with the weight of a t distribution of its degrees of freedom, so that none pulls far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import splu
from scipy.spatial.transform import Rotation
from scipy.special import chdtri

from inlier._typing import Array, FloatArray
from inlier.scans.pairs import Edge
from inlier.transforms import SimilarityTransformation

_BROKEN = 1e-6  # chance of a loop of right motions to be called broken
_MOST_INFLATED = 16.0  # of the variances that are stated
_ROUNDS, _LITTLE = 30, 1e-10  # of Gauss and Newton; of a step, in radians and beside the size
_FREEDOM = 6  # of a motion


@dataclass(frozen=True, eq=False)
class Loop:
    """Scans around which one comes back, and how well."""

    scans: tuple[int, ...]
    edges: tuple[Edge, ...]
    chi2: float  # beside the errors as they are stated; six degrees of freedom

    def is_broken(self, inflation: float) -> bool:
        """Whether it does not close to within the errors."""
        return self.chi2 > inflation * float(chdtri(_FREEDOM, _BROKEN))


def loops_of(edges: Sequence[Edge], centres: FloatArray) -> list[Loop]:
    """All triangles, and for each edge the shortest loop that it is in."""
    between: dict[tuple[int, int], Edge] = {}
    for edge in edges:
        between[edge.ends] = between[edge.ends[::-1]] = edge
    n = len(centres)
    near = [{b for a, b in between if a == scan} for scan in range(n)]
    found: dict[frozenset[int], tuple[int, ...]] = {}
    found |= {frozenset(three): three for a, b in between for c in near[a] & near[b] for three in [(a, b, c)] if a < b}
    for edge in edges:
        if not near[edge.target] & near[edge.source]:
            way = _way(_without(edge, edges), n, edge.target, edge.source)
            if way is not None:
                found.setdefault(frozenset(way), way)
    return [_loop(scans, between, centres) for scans in found.values()]


def _without(edge: Edge, edges: Sequence[Edge]) -> list[Edge]:
    return [one for one in edges if one is not edge]


def _matrix(edges: Sequence[Edge], n: int) -> csr_array:
    ends = np.array([edge.ends for edge in edges], dtype=np.intp).reshape(-1, 2)
    return csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))


def _way(edges: Sequence[Edge], n: int, first: int, last: int) -> tuple[int, ...] | None:
    """The shortest way between two scans, over edges."""
    length, before = dijkstra(_matrix(edges, n), directed=False, indices=first, return_predecessors=True)
    if not np.isfinite(length[last]):
        return None
    way = [last]
    while way[-1] != first:
        way.append(int(before[way[-1]]))
    return tuple(way)


def _loop(scans: tuple[int, ...], between: dict[tuple[int, int], Edge], centres: FloatArray) -> Loop:
    """Go around: scans[0] <- scans[1] <- ... <- scans[0]."""
    steps = list(zip(scans, scans[1:] + scans[:1], strict=True))
    start: FloatArray = centres[scans[0]]
    point = start
    jumps, turns, slips = list[FloatArray](), list[FloatArray](), list[FloatArray]()
    turn: FloatArray
    for to, come in reversed(steps):  # points go through the last one first
        edge = between[to, come]
        motion, errors = edge.motion, edge.errors
        assert motion is not None
        assert errors is not None
        if edge.target == to:
            after, pivot, turn, sign = motion(point[None])[0], motion(errors.centre[None])[0], np.eye(3), 1.0
            arm, rotation = after - pivot, motion.rotation
        else:  # the way back: y -> c + R^T (y - T c - s) without the turn
            back = motion.inverse
            arm, turn, sign = point - motion(errors.centre[None])[0], back.rotation, -1.0
            after, rotation = back(point[None])[0], back.rotation
        change: FloatArray = np.zeros((6, 6))
        change[:3, :3] = change[3:, 3:] = sign * turn
        change[3:, :3] = -sign * turn @ cross(arm)
        slips = [_carried(rotation) @ one for one in slips] + [change]
        jumps.append(errors.covariance_at_centre)
        turns.append(rotation)
        point = after
    spread = sum((slip @ jump @ slip.T for slip, jump in zip(slips, jumps, strict=True)), np.zeros((6, 6)))
    around = np.linalg.multi_dot([*turns[::-1], np.eye(3)])
    miss = np.concatenate([Rotation.from_matrix(around).as_rotvec(), point - start])
    chi2 = float(miss @ np.linalg.solve(spread, miss))
    return Loop(scans, tuple(between[step] for step in steps), chi2)


def _carried(rotation: FloatArray) -> FloatArray:
    """What a step makes of a turn about the point that goes around, and of a shift of it."""
    both: FloatArray = np.kron(np.eye(2), rotation)
    return both


def cross(v: FloatArray) -> FloatArray:
    """The matrix that a vector product with v is."""
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def inflation(loops: Sequence[Loop]) -> float:
    """By how much variances fall short, by the lower half of the loops; 1 where they do not."""
    if not loops:
        return 1.0
    values = np.sort([loop.chi2 for loop in loops])[: (len(loops) + 1) // 2]
    expected = [chdtri(_FREEDOM, 1 - (k + 0.5) / len(loops)) for k in range(len(values))]
    return float(np.clip(values.sum() / np.sum(expected), 1.0, _MOST_INFLATED))


@dataclass(frozen=True, eq=False)
class Checked:
    """Edges that the loops leave, those that they do not with the reason, and the loops of those that are left."""

    kept: list[Edge]
    taken_out: list[Edge]
    loops: list[Loop]
    inflation: float


def checked_by_loops(edges: Sequence[Edge], centres: FloatArray) -> Checked:
    """Take out the edges that break loops which others keep."""
    kept, taken_out = list(edges), list[Edge]()
    while True:
        loops = loops_of(kept, centres)
        factor = inflation(loops)
        broken = [loop for loop in loops if loop.is_broken(factor)]
        if not broken:
            return Checked(kept, taken_out, loops, factor)
        votes = Counter[int]()  # loops that an edge breaks, less those that it keeps
        for loop in loops:
            votes.update({id(edge): 1 if loop.is_broken(factor) else -1 for edge in loop.edges})
        suspects = {id(edge): edge for loop in broken for edge in loop.edges}.values()
        worst = max(suspects, key=lambda one: (votes[id(one)], one.p_value))
        mine = [loop for loop in loops if worst in loop.edges]
        kept = _without(worst, kept)
        taken_out.append(replace(worst, why_not=_reason(worst, mine, broken)))


def _reason(edge: Edge, mine: list[Loop], broken: list[Loop]) -> str:
    """Why an edge is taken out, in a sentence."""
    bad = [loop for loop in mine if loop in broken]
    doubt = ""
    if len(bad) == len(broken) == 1:
        doubt = f" Any of its {len(bad[0].edges)} motions could be the wrong one; this has least evidence."
    return (
        f"It breaks {len(bad)} of the {len(mine)} loops that it is in (chi2 of {min(loop.chi2 for loop in bad):.3g} or "
        f"more, 6 degrees of freedom).{doubt}"
    )


def parts_of(edges: Sequence[Edge], n_scans: int) -> list[list[int]]:
    """Scans that edges connect, the most first."""
    _, label = connected_components(_matrix(edges, n_scans), directed=False)
    parts = [np.flatnonzero(label == one).tolist() for one in np.unique(label)]
    return sorted(parts, key=lambda part: (-len(part), part[0]))


def bridges(edges: Sequence[Edge], n_scans: int) -> Iterator[tuple[Edge, list[int]]]:
    """Edges in no loop, each with the scans that hang on it (the fewer ones)."""
    for edge in edges:
        sides = [part for part in parts_of(_without(edge, edges), n_scans) if set(edge.ends) & set(part)]
        if len(sides) == 2:
            yield edge, min(sides[::-1], key=len)


# ---- poses


@dataclass(frozen=True, eq=False)
class Pose:
    """Where a scan lies: world = rotation (x - origin) + place; and its standard errors.

    The covariance is of a turn about the scan's middle (radians) and a shift of it, in the axes of the world.
    """

    rotation: FloatArray
    place: FloatArray
    origin: FloatArray
    covariance: FloatArray

    @property
    def motion(self) -> SimilarityTransformation:
        """world = motion(scan)."""
        return SimilarityTransformation(self.rotation, self.place - self.rotation @ self.origin, model="rigid")

    @property
    def degrees(self) -> FloatArray:
        """Standard errors of turns about the three axes of the world."""
        return np.degrees(np.sqrt(np.maximum(np.diag(self.covariance)[:3], 0.0)))

    @property
    def shift(self) -> FloatArray:
        """Standard errors of the place of the middle."""
        return np.sqrt(np.maximum(np.diag(self.covariance)[3:], 0.0))

    def moved(self, step: FloatArray) -> Pose:
        """After a small turn about the middle and a shift."""
        turn = Rotation.from_rotvec(step[:3]).as_matrix()
        return replace(self, rotation=turn @ self.rotation, place=self.place + step[3:])


def poses_of(part: Sequence[int], edges: Sequence[Edge], centres: FloatArray, factor: float = 1.0) -> dict[int, Pose]:
    """Poses of connected scans; the first one stays as it is, and errors are those beside it."""
    inside = [edge for edge in edges if edge.target in part]
    poses = _chained(part, inside, centres)
    if len(part) == 1:
        return poses
    number = {scan: k for k, scan in enumerate(part)}
    size = max(float(np.linalg.norm(centres[edge.source] - poses[edge.source].origin)) for edge in inside) or 1.0
    size = max(size, max(float(np.linalg.norm(one.place - poses[part[0]].place)) for one in poses.values()), 1e-12)
    for _ in range(_ROUNDS):
        information, pull = _normal_equations(inside, poses, number, factor)
        step = splu(information[6:, 6:].tocsc()).solve(-pull[6:]).reshape(-1, 6)
        for k, scan in enumerate(part[1:]):
            poses[scan] = poses[scan].moved(step[k])
        if np.abs(step / np.repeat([1.0, size], 3)).max() < _LITTLE:
            break
    information, _ = _normal_equations(inside, poses, number, factor, robust=False)
    spread = splu(information[6:, 6:].tocsc()).solve(np.eye(6 * len(part) - 6))
    for k, scan in enumerate(part[1:]):
        rows = slice(6 * k, 6 * k + 6)
        poses[scan] = replace(poses[scan], covariance=spread[rows, rows])
    return poses


def _chained(part: Sequence[int], edges: Sequence[Edge], centres: FloatArray) -> dict[int, Pose]:
    """Poses along a chain of the edges with most evidence."""
    first = part[0]
    poses = {first: Pose(np.eye(3), centres[first], centres[first], np.zeros((6, 6)))}
    while len(poses) < len(part):
        edge = min((one for one in edges if len(poses.keys() & set(one.ends)) == 1), key=lambda one: one.p_value)
        motion = edge.motion
        assert motion is not None
        known, new = edge.ends if edge.target in poses else edge.ends[::-1]
        to_known = motion if known == edge.target else motion.inverse
        place = poses[known].motion(to_known(centres[new][None]))[0]
        poses[new] = Pose(poses[known].rotation @ to_known.rotation, place, centres[new], np.zeros((6, 6)))
    return poses


def _normal_equations(
    edges: Sequence[Edge], poses: dict[int, Pose], number: dict[int, int], factor: float, *, robust: bool = True
) -> tuple[csr_array, FloatArray]:
    """The sum of J^T W J over the edges, and of J^T W r."""
    blocks = Blocks(len(number))
    for edge in edges:
        moves, miss, information = linearised(edge, poses, factor)
        assert edge.errors is not None
        freedom = max(edge.errors.degrees_of_freedom, _FREEDOM)
        weight = (freedom + _FREEDOM) / (freedom + miss @ information @ miss) if robust else 1.0
        weighted = moves.T @ information * weight
        blocks.add(number[edge.target], number[edge.source], weighted @ moves, weighted @ miss)
    return blocks.sums


def linearised(edge: Edge, poses: dict[int, Pose], factor: float = 1.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How turns and shifts of target and source (twelve numbers) move what is missed; that; and its information."""
    i, j, motion, errors = poses[edge.target], poses[edge.source], edge.motion, edge.errors
    assert motion is not None
    assert errors is not None
    arm = j.rotation @ (errors.centre - j.origin)
    u = arm + j.place - i.place
    image = i.rotation.T @ u + i.origin
    turn = Rotation.from_matrix(i.rotation.T @ j.rotation @ motion.rotation.T).as_rotvec()
    miss = np.concatenate([turn, image - motion(errors.centre[None])[0]])
    eye, none = np.eye(3), np.zeros((3, 3))
    moves = np.block([[-eye, none, eye, none], [cross(u), -eye, -cross(arm), eye]])
    return np.kron(np.eye(2), i.rotation.T) @ moves, miss, np.linalg.inv(factor * errors.covariance_at_centre)


class Blocks:
    """Normal equations of pairs of poses, put together."""

    def __init__(self, n: int) -> None:
        self._n, self._pull = n, np.zeros(6 * n)
        self._rows, self._columns, self._values = list[Array](), list[Array](), list[FloatArray]()

    def add(self, i: int, j: int, square: FloatArray, pull: FloatArray) -> None:
        """A matrix of 12 x 12, and twelve numbers."""
        at = np.concatenate([6 * i + np.arange(6), 6 * j + np.arange(6)])
        self._rows.append(np.repeat(at, 12))
        self._columns.append(np.tile(at, 12))
        self._values.append(square.ravel())
        np.add.at(self._pull, at, pull)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return not self._values

    @property
    def sums(self) -> tuple[csr_array, FloatArray]:
        """All of them."""
        rows, columns, values = (np.concatenate(one) for one in (self._rows, self._columns, self._values))
        return csr_array(coo_array((values, (rows, columns)), shape=(6 * self._n,) * 2)), self._pull
