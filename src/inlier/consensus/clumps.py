"""Mistakes that come in clumps: how far they reach, which pairs are neighbours on both sides, what is independent.

A descriptor that mistakes one patch for another does so for all points of the patch: neighbours of x_i are matched to
neighbours of y_i. Two pairs are *joint neighbours* within r where |x_i - x_j| <= r and |y_i - y_j| <= r. Among
independent mistakes these are as frequent as among re-pairings; in clumps they are more frequent, up to the
*correlation length* of the mistakes. Read off the pairs that do not follow the motion that was found (those that do are
joint neighbours for a good reason), it is

    length = the largest r up to which   #{joint neighbours at about r}  >  1.5 #{the same among re-pairings},

as long as that ratio still falls: it exceeds 1.35 times the one between r and 2 r. Coarse structure (the range of a
lidar, which its density tells; floor matched to floor) raises the ratio at all distances alike, and is no clump.

Pairs in one clump are one witness. So each has 1 / (number of its joint neighbours, itself included) of a *vote*: a
clump has one vote, however many pairs it has, and a pair that stands alone has one as well.

Right pairs that lie near each other err alike, too: features look at a whole patch. With u_i the residual vector
of pair i, times its say in the fit, what pairs up to a distance h have in common is

    S(h) = sum of u_i . u_j over all i < j with |x_i - x_j| <= h,

which is 0 on average where pairs err independently, with variance V(h) = sum of (u_i . u_j)^2: each term is as likely
to be negative. Where S rises to many times sqrt(V), errors do correlate. Then M = 1 + 2 S(h) / sum of |u_i|^2 pairs err
like one, and S may rise by some M sqrt(V) beyond h by luck. The length up to which errors are alike is the shortest h
beyond which it rises no further than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist

from inlier._typing import Array, FloatArray, Mask
from inlier.consensus._kernels_pairs import TILE, count_joint
from inlier.consensus.pairs import spread_of

_LEVEL = 1.5  # joint neighbours beside those among re-pairings that make a clump
_FALLS, _OCTAVE = 1.35, 2  # a clump ends where there are so many times more than in the shells of the octave beyond
_SHELLS = 2.0 ** np.arange(-8, 1.01, 0.5)  # shells of joint distance, in units of the smaller spread
_ENOUGH_SEEN, _ENOUGH_EXPECTED = 20, 10  # joint neighbours in a shell for it to tell; others are pooled
_DEVIATIONS = 4.0  # of the expected number, by which a shell must exceed it
_RE_PAIRINGS = 2  # orders of y that say what is expected
_GLANCE, _GLANCE_LEVEL, _GLANCE_DEVIATIONS = 250, 1.25, 4.0  # pairs of a glance, and what makes them suspicious
_WIDEST_AT_A_GLANCE = 0.36  # of the spread: joint neighbours farther apart are too many to be counted at a glance
_CLOSE_LOOK = 1_200  # pairs that the length is read off
_TINY = float(np.finfo(np.float64).tiny)
_COMPARED = 700  # pairs that are compared each with each; of more, every so many
_STEPS = 30  # distances that are tried, four an octave, down from the largest there is
_CLEARLY = 4.0  # sqrt(V): independent errors of a fit hardly get there (benchmarks/uncertainty.py)
_PERHAPS = 2.0  # M sqrt(V): a further rise of S may be luck
_CELL = 5.0  # correlation lengths: then about four in five of the pairs that err alike share a cell


def clump_length(X: Array, Y: Array, rng: np.random.Generator) -> float:
    """Distance up to which mistakes come together; 0 where they are independent.

    Parameters
    ----------
    X, Y : ndarray of shape (n, d_x), (n, d_y)
        Pairs that are no witnesses of a motion.
    rng : Generator
        Draws the pairs that are looked at, and re-pairings.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.consensus.clumps import clump_length
    >>> rng = np.random.default_rng(0)
    >>> clump_length(rng.random((900, 3)), rng.random((900, 3)), rng)
    0.0
    >>> spot = rng.integers(30, size=900)
    >>> X, Y = (rng.random((30, 3))[spot] + rng.normal(scale=0.02, size=(900, 3)) for _ in range(2))
    >>> 0.05 < clump_length(X, Y, rng) < 0.2
    True
    """
    some = rng.permutation(len(X))[:_CLOSE_LOOK]
    x, y = X[some], Y[some]
    ends = _shells(x, y)
    seen, expected = (np.diff(counts, prepend=0.0) for counts in _joint_within(x, y, ends, _RE_PAIRINGS, rng))
    length = n_seen = n_expected = 0.0
    shells = zip(seen.tolist(), expected.tolist(), ends.tolist(), _ratios_beyond(seen, expected).tolist(), strict=True)
    for here, by_chance, end, beyond in shells:
        n_seen, n_expected = n_seen + here, n_expected + by_chance
        if n_seen < _ENOUGH_SEEN and n_expected < _ENOUGH_EXPECTED:
            continue  # pooled with the next
        is_more = n_seen > _LEVEL * n_expected and n_seen - n_expected > _DEVIATIONS * np.sqrt(n_expected + 1)
        if is_more and (length == 0 or n_seen > _FALLS * beyond * n_expected):
            length = end
        elif length > 0 and not is_more:
            break
        n_seen = n_expected = 0.0
    return length


def _ratios_beyond(seen: FloatArray, expected: FloatArray) -> FloatArray:
    """Joint neighbours beside those among re-pairings, in the octave beyond each shell."""
    of_seen, of_expected = (
        np.convolve(counts, [1.0] * _OCTAVE + [0.0] * (_OCTAVE + 1), mode="same") for counts in (seen, expected)
    )
    ratios: FloatArray = of_seen / np.maximum(of_expected, 1.0)
    return ratios


def looks_clumped(X: Array, Y: Array, rng: np.random.Generator) -> bool:
    """Whether a glance at some hundred pairs finds more joint neighbours than among re-pairings."""
    x, y = X[:_GLANCE], Y[:_GLANCE]
    ends = _shells(x, y, _WIDEST_AT_A_GLANCE)
    seen, expected = _joint_within(x, y, ends, _RE_PAIRINGS, rng)
    return bool(np.max((seen - _GLANCE_LEVEL * expected) / np.sqrt(expected + 1)) > _GLANCE_DEVIATIONS)


def _shells(x: Array, y: Array, widest: float = np.inf) -> FloatArray:
    """Ends of the shells of joint distance, no wider than so many spreads."""
    return min(spread_of(x.T), spread_of(y.T)) * _SHELLS[widest >= _SHELLS]


def _joint_within(
    x: Array, y: Array, ends: FloatArray, re_pairings: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """How many joint neighbours there are within each of these distances, and how many among re-pairings.

    Those that share a point are left out: they say nothing about clumps.
    """
    x, y, squared, room = np.ascontiguousarray(x.T), np.ascontiguousarray(y.T), ends**2, np.empty((2, TILE))

    def within(partners: FloatArray) -> FloatArray:
        counts = np.zeros(ends.size)
        count_joint(x, partners, squared, room, counts)
        return counts

    again = [within(y.take(rng.permutation(y.shape[1]), axis=1)) for _ in range(re_pairings)]
    return within(y), np.add.reduce(again) / re_pairings


@dataclass(frozen=True, eq=False)
class JointNeighbours:
    """Which of n pairs are near each other on both sides, and how near: the larger of the two distances."""

    n_pairs: int
    first: Array
    second: Array
    distance: FloatArray

    @staticmethod
    def within(X: Array, Y: Array, reach: float) -> JointNeighbours:
        """List those no farther apart than ``reach``."""
        # A tree for all columns of both sides knows cubes; the balls in them are what is meant.
        pairs = cKDTree(np.hstack([X, Y])).query_pairs(reach, p=np.inf, output_type="ndarray")
        first, second = pairs[:, 0], pairs[:, 1]
        steps = (side[first] - side[second] for side in (X, Y))
        distance = np.sqrt(np.maximum(*(np.einsum("ij,ij->i", step, step) for step in steps)))
        kept = distance <= reach
        return JointNeighbours(len(X), first[kept], second[kept], distance[kept])

    def among(self, chosen: Mask) -> JointNeighbours:
        """Those of which both are chosen; all are still numbered as before."""
        kept = chosen[self.first] & chosen[self.second]
        return JointNeighbours(self.n_pairs, self.first[kept], self.second[kept], self.distance[kept])

    def nearer(self, reach: float) -> JointNeighbours:
        """Those no farther apart than ``reach``."""
        kept = self.distance <= reach
        return JointNeighbours(self.n_pairs, self.first[kept], self.second[kept], self.distance[kept])

    def votes(self) -> FloatArray:
        """1 / (1 + number of joint neighbours) for each pair."""
        ends = np.concatenate([self.first, self.second])
        votes: FloatArray = 1.0 / (1.0 + np.bincount(ends, minlength=self.n_pairs))
        return votes

    def touching(self, chosen: Mask) -> Mask:
        """Which pairs have a joint neighbour that is chosen."""
        touched = np.zeros(self.n_pairs, dtype=bool)
        touched[self.second[chosen[self.first]]] = True
        touched[self.first[chosen[self.second]]] = True
        return touched

    def separated(self, chosen: Mask, rng: np.random.Generator) -> Mask:
        """Some of the chosen, no two of them joint neighbours, to which none can be added.

        In each round those stay that come before all their neighbours in a random order, and drive these out.
        """
        rank, free, kept = rng.permutation(self.n_pairs), chosen.copy(), np.zeros(self.n_pairs, dtype=bool)
        left = self.among(chosen)
        while left.first.size:
            later = np.where(rank[left.first] > rank[left.second], left.first, left.second)
            stays = free.copy()
            stays[later] = False
            kept |= stays
            free &= ~(stays | left.touching(stays))
            left = left.among(free)
        return kept | free


def cell_side(points: FloatArray, errors: FloatArray) -> float:
    """Side of cells that hold most of what errors have in common, 0 where they have nothing."""
    return _CELL * error_length(points, errors)


def error_length(points: FloatArray, errors: FloatArray) -> float:
    """Distance up to which neighbouring points err alike, 0 where that might be chance."""
    step = -(-len(points) // _COMPARED)
    points, errors = points[::step], errors[::step]
    longest = np.abs(errors).max(initial=0.0)
    if len(points) < 2 or longest == 0:
        return 0.0
    errors = errors / longest  # so that no unit matters
    in_common = (errors @ errors.T)[~np.tri(len(points), dtype=bool)]
    distances = pdist(points)
    farthest = distances.max()
    if farthest == 0:
        return 0.0
    with np.errstate(divide="ignore"):  # points may coincide
        steps_down = np.minimum(-4 * np.log2(distances / farthest), _STEPS)
    bins = _STEPS - steps_down.astype(np.intp)
    together = np.cumsum(np.bincount(bins, in_common, minlength=_STEPS + 1))
    by_chance = np.cumsum(np.bincount(bins, in_common**2, minlength=_STEPS + 1))
    if not (together > _CLEARLY * np.sqrt(by_chance)).any():
        return 0.0
    like_each = np.maximum(1 + 2 * together / np.sum(errors**2), 1.0)  # M
    rise = np.triu(together - together[:, None])
    luck = like_each[:, None] * np.sqrt(np.maximum(by_chance - by_chance[:, None], 0.0))
    reached = int(np.argmax((rise <= _PERHAPS * luck).all(axis=1)))
    return float(farthest * 2.0 ** ((reached - _STEPS) / 4))


def cells(points: FloatArray, side: float, rng: np.random.Generator) -> Array:
    """Number of the cell that each point lies in, in a grid of random turn and origin."""
    d = points.shape[1]
    turned = points @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    corners = np.floor(turned / side + rng.random(d))
    numbers: Array = np.unique(corners, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers
