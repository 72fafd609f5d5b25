"""Learn from some pairs how to tell others: by the map between the sides, or where that is weak, in other ways.

A map that starts from the row sums needs real pairs that are a good part of all, and more of them than dimensions.
Where what it finds leaves doubts, few dimensions are searched for a consensus to start from, and in many dimensions
pairs are looked for that vouch for each other. What is most surprising wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.inner_products import MOST_ROWS, Witnesses, find_witnesses
from inlier.calibration.linear_map import RobustMap, learn_map
from inlier.calibration.significance import Standing
from inlier.calibration.views import View, as_given, views_of
from inlier.consensus import find_consensus
from inlier.rows import PairedRows
from inlier.rows.namespaces import namespace, take_rows, to_host
from inlier.transforms import MapModel

_CLEAR = 60.0  # surprise
_WELL_DETERMINED = 2.0  # pairs per dimension that make a map a good judge
_A_GOOD_PART = 0.25  # of the pairs, that row sums do not miss
_WIDEST_CONSENSUS = 20  # dimensions
_NARROWEST_WITNESSES = 8
_AS_GOOD = 0.9  # of the surprise: then witnesses are the better judges, because a map fits what it was learned from
_SEARCHED, _SEARCHED_IF_WIDE = 5_000, 1_500  # pairs
_NARROW = 8  # dimensions
_FAINT, _MOST_IN_VAIN = 10.0, 2  # surprise of what is not worth the search; after so many in a row, no more
_ANY_RATE = 0.01  # of false discoveries: what is found does not depend on it


class PairScorer(Protocol):
    """What was learned: scores that are larger for pairs like the real ones."""

    @property
    def support(self) -> float:
        """How many pairs it was learned from."""

    @property
    def standing(self) -> Standing:
        """How those pairs stand beside re-pairings."""

    def scores(self, x: Any, y: Any) -> Any:
        """Score each pair of prepared rows."""

    def scores_of_all_pairings(self, x: Any, y: Any) -> Any:
        """Score x_i with y_j, for all i and j."""


class Learner:
    """Learns from some of the pairs.

    Parameters
    ----------
    pairs : PairedRows
        Prepared: centred, unit mean square.
    points : ndarray of int, shape (2, n)
        Numbers that are equal for equal points, of X and of Y.
    rng : RandomState
        Draws re-pairings and samples.
    only_maps : bool
        Look for maps alone, whose scores are on one scale.
    """

    def __init__(self, pairs: PairedRows, points: Array, rng: np.random.RandomState, only_maps: bool = False) -> None:
        self._pairs, self._points, self._rng, self._only_maps = pairs, points, rng, only_maps
        self._views: list[View] | None = None
        self._in_vain = 0

    def learn(self, rows: Array, *, thorough: bool = True) -> PairScorer | None:
        """Learn from these rows, which come in random order; None if nothing is found."""
        x, y = prepared_rows(self._pairs, rows)
        points = self._points[:, rows]
        found: PairScorer | None = learn_map(x, y, self._rng, points)
        if thorough and self._in_vain < _MOST_IN_VAIN and not self._is_clear(found, rows.size):
            best = self._look_elsewhere(x, y, points)
            in_vain = best is None or best.standing.surprise < _FAINT
            self._in_vain = self._in_vain + 1 if in_vain else 0
            found = _better(found, best)
        return found

    def _look_elsewhere(self, x: Any, y: Any, points: Array) -> PairScorer | None:
        best: PairScorer | None = None
        for look in (self._by_consensus, self._by_witnesses):
            for found in look(x, y, points):
                best = _better(best, found)
                if self._is_clear(best, points.shape[1]):
                    return best
        return best

    def _is_clear(self, found: PairScorer | None, n: int) -> bool:
        enough = min(_WELL_DETERMINED * max(self._pairs.dimensions), _A_GOOD_PART * n)
        return found is not None and found.standing.surprise >= _CLEAR and found.support >= enough

    def _by_consensus(self, x: Any, y: Any, points: Array) -> Iterator[RobustMap | None]:
        """Maps that start from pairs that agree on a rotation, of rows as given and of whitened ones."""
        d = self._pairs.X.shape[1]
        if d != self._pairs.Y.shape[1] or d > _WIDEST_CONSENSUS:
            return
        seen = _on_host(x, y, _SEARCHED if d <= _NARROW else _SEARCHED_IF_WIDE)
        for view in (as_given(self._pairs), View()):
            seen_x, seen_y = view(*seen)
            if seen_x.shape[1] != seen_y.shape[1]:  # whitened, one side has lost a direction
                continue
            start = np.zeros(points.shape[1])
            start[: len(seen_x)] = self._agreeing(seen_x, seen_y)
            if np.count_nonzero(start) >= seen_x.shape[1]:
                yield learn_map(x, y, self._rng, points, start)

    def _agreeing(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """How near each pair is to the rotation, in units of the typical length, that most agree on."""
        x, y = (rows / (float(np.median(np.linalg.norm(rows, axis=1))) or 1.0) for rows in (x, y))
        model = MapModel("orthogonal", x.shape[1])
        return find_consensus(model, x, y, np.ones(len(x)), None, _ANY_RATE, self._rng).nearness()

    def _by_witnesses(self, x: Any, y: Any, points: Array) -> Iterator[Witnesses | None]:
        if self._only_maps or min(self._pairs.dimensions) < _NARROWEST_WITNESSES:
            return
        if self._views is None:
            self._views = views_of(self._pairs, *_on_host(x, y, _SEARCHED))
        yield find_witnesses(*_on_host(x, y, MOST_ROWS), self._views, self._rng, points[:, :MOST_ROWS])


def _on_host(x: Any, y: Any, most: int) -> tuple[FloatArray, FloatArray]:
    some = slice(0, min(most, x.shape[0]))
    return to_host(take_rows(x, some)), to_host(take_rows(y, some))


def _better(found: PairScorer | None, other: PairScorer | None) -> PairScorer | None:
    if found is None or other is None:
        return found or other
    ahead = _AS_GOOD if isinstance(other, Witnesses) else 1.0
    return other if other.standing.surprise >= ahead * found.standing.surprise else found


def prepared_rows(pairs: PairedRows, rows: Array) -> tuple[Any, Any]:
    """Rows x and y of some pairs as they are learned from: in float64, in memory or on their device."""
    some = pairs.near(rows)
    x, y = some.map_x(some.X), some.map_y(some.Y)
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False), xp.astype(y, xp.float64, copy=False)
