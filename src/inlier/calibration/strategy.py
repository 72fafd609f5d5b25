"""Which model is learned, and from how many pairs: the map between the sides, or where that is weak, something else.

A map that starts from the row sums needs real pairs that are a good part of all, and more of them than dimensions.
Where what it finds leaves doubts, few dimensions are searched for a consensus to start from, and in many dimensions
for pairs whose inner products agree. The most significant wins. Of very many pairs a part is learned from; more, if
the rest does not confirm what was learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Protocol

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.inner_products import (
    MOST_ROWS,
    AnchorPairs,
    Coordinates,
    candidate_coordinates,
    find_anchors,
    original_coordinates,
)
from inlier.calibration.linear_map import LinearMap, Significance, learn_map
from inlier.calibration.p_values import calibrate
from inlier.calibration.ridge_map import RidgeMap, SharedRidge, learn_ridge
from inlier.consensus import find_consensus
from inlier.rows import PairedRows
from inlier.rows.backend import from_host, namespace, take_rows, to_host
from inlier.rows.columns import RowMap
from inlier.rows.null_pairs import are_re_pairings, re_pairings
from inlier.rows.threads import pieces_of_many
from inlier.transforms import MapModel

_TRAINING_PAIRS, _TRAINING_PAIRS_PER_DIMENSION = 5_000, 25  # if a good part is real, more make hardly a better map
_AMPLE = 10.0  # real pairs per dimension that a map is well learned from
_GROWTH, _MOST_GROWTH = 4, 16  # of the training pairs, when what they found is not confirmed
_CONFIRMED = 0.01  # detection p-value on pairs that were not learned from
_CLEAR = 60.0  # Berk-Jones statistic above which no other model is tried: chance reaches 12 to 23
_WELL_DETERMINED = 2.0  # pairs per dimension that make a map a good judge
_A_GOOD_PART = 0.25  # of the pairs, that row sums do not miss
_WIDEST_CONSENSUS, _NARROWEST_ANCHORS = 20, 8  # dimensions
_AS_GOOD = 0.9  # of the statistic: then anchors are the better judges, because a map fits what it was learned from
_FEWEST_FOR_A_MAP = 2  # training pairs per dimension, below which no map comes near a ridge
_AS_GOOD_A_RIDGE = 0.8  # likewise of a ridge, whose weights do not follow the pairs
_CLEAR_PER_PAIR = 1.5  # Berk-Jones statistic per pair from which a map needs no ridge beside it
_BEYOND_CHANCE = 25.0  # Berk-Jones statistic that chance does not reach
_NARROWEST_RIDGE, _NARROWEST_IF_FEW = 20, 8  # dimensions: in fewer, strangers too have much the same direction
_FEW = 8  # pairs per dimension, fewer of which are few
_SEARCHED, _SEARCHED_IF_WIDE, _WIDE = 5_000, 1_500, 8  # pairs that are searched for a consensus; dimensions
_FAINT, _MOST_IN_VAIN = 10.0, 2  # statistic of what was not worth the search; after so many more than were, no more
_WORTH_A_MATRIX = 100  # re-pairings of one pair above which they are computed as a matrix product


class PairScorer(Protocol):
    """What was learned: scores that are larger for pairs like the real ones."""

    @property
    def support(self) -> float:
        """How many pairs it was learned from."""

    @property
    def significance(self) -> Significance:
        """Those pairs beside their re-pairings."""

    def scores(self, x: Any, y: Any) -> Any:
        """Score each pair of prepared rows."""

    def scores_of_all_pairings(self, x: Any, y: Any) -> Any:
        """Score x_i with y_j, for all i and j."""

    def pairings(self, x: Any, y: Any) -> Callable[[Array, Array], Any]:
        """What scores x_i with y_j, given numbers i and j."""


class Learner:
    """Learns from some of the prepared pairs; with ``only_maps`` maps alone, whose scores are on one scale.

    ``labels`` are those of `inlier.rows.null_pairs`; ``prepared`` are all rows x and y, where they are at hand.
    """

    def __init__(
        self,
        pairs: PairedRows,
        labels: Array,
        rng: np.random.RandomState,
        only_maps: bool = False,
        prepared: tuple[Any, Any] | None = None,
    ) -> None:
        self._pairs, self._labels, self._rng, self._only_maps = pairs, labels, rng, only_maps
        self._prepared = prepared
        self._shared_ridge: SharedRidge | None = None
        self._size = max(_TRAINING_PAIRS, _TRAINING_PAIRS_PER_DIMENSION * max(pairs.dimensions))
        self._largest = _MOST_GROWTH * self._size
        self._coordinates: list[Coordinates] | None = None
        self._n_in_vain = 0
        self._of_anchors: float | None = None  # Berk-Jones statistic, beside a ridge
        self._for_ridge = 0  # in how many more folds a ridge was better than a map, than it was not
        self.ridge_is_better = False  # than maps, by far or where pairs are few: then no other model is learned

    by_pairs_alone = True

    @property
    def pairs_are_few(self) -> bool:
        """Whether there are few pairs beside their dimensions."""
        return self._pairs.n_pairs < _FEW * max(self._pairs.dimensions)

    def learn(self, training: Array) -> PairScorer | None:
        """Learn from some of the training pairs, from more if others do not confirm it; None if nothing is found."""
        shuffled = self._rng.permutation(training)
        size, thorough = self._size, True
        while size < shuffled.size:
            learned = self.learn_from(shuffled[:size], thorough=thorough)
            if learned is not None and self._is_confirmed(learned, shuffled[size : 2 * size]):
                ample = learned.support >= min(_AMPLE * max(self._pairs.dimensions), size / 2)
                if ample or size >= self._largest:
                    self._size = size  # what one fold needed, the next will
                    return learned
            if size >= self._largest:
                self._largest = self._size  # nothing to be found here: the other folds need not look as hard
                return learned
            size, thorough = size * _GROWTH, False
        return self.learn_from(shuffled, thorough=thorough)

    def learn_from(self, rows: Array, *, thorough: bool = True) -> PairScorer | None:
        """Learn from all of these rows, which come in random order; None if nothing is found."""
        labels, clear = self._labels[:, rows], _CLEAR_PER_PAIR * rows.size
        ridge = self._ridge(rows, labels) if self.pairs_are_few or self.ridge_is_better else None
        no_map = rows.size < _FEWEST_FOR_A_MAP * max(self._pairs.dimensions)
        if ridge is not None and (self.ridge_is_better or (no_map and ridge.significance.berk_jones >= clear)):
            self.ridge_is_better = True  # for all folds: their cosines are on one scale
            return ridge
        x, y = self.prepared_rows(rows)
        found: PairScorer | None = learn_map(x, y, self._rng, labels)
        if found is None or found.significance.berk_jones < clear or self.pairs_are_few:
            best = _better(found, ridge or self._ridge(rows, labels), _AS_GOOD_A_RIDGE)
            if isinstance(best, RidgeMap) and best.significance.berk_jones >= _BEYOND_CHANCE:
                self._for_ridge += 1
                self.ridge_is_better = self._for_ridge > 0 and self._is_no_worse_than_anchors(best, x, y, labels)
                if self.ridge_is_better:
                    return best
            elif best is found and found is not None:
                self._for_ridge -= 1
            found = best if self._for_ridge >= 0 else found or best
        if not thorough or self._n_in_vain >= _MOST_IN_VAIN or self._is_clear(found, rows.size):
            return found
        other = self._other_model(x, y, labels, found)
        in_vain = other is None or other.significance.berk_jones < _FAINT
        self._n_in_vain += 1 if in_vain else -1  # where others were worth it, two failures in a row are chance
        return _better(found, other)

    def prepared_rows(self, rows: Array) -> tuple[Any, Any]:
        """Rows x and y of some pairs, prepared."""
        if self._prepared is None:
            return prepared_rows(self._pairs, rows)
        x, y = self._prepared
        return take_rows(x, rows), take_rows(y, rows)

    def _is_confirmed(self, learned: PairScorer, rows: Array) -> bool:
        """Whether pairs that the model has not seen score higher than their re-pairings."""
        x, y = self.prepared_rows(rows)
        null = re_paired_scores(learned, x, y, self._labels[:, rows], 4, self._rng)
        return null.size > 0 and calibrate(to_host(learned.scores(x, y)), null).detection_p_value <= _CONFIRMED

    def _is_clear(self, found: PairScorer | None, n: int) -> bool:
        enough = min(_WELL_DETERMINED * max(self._pairs.dimensions), _A_GOOD_PART * n)
        return found is not None and found.significance.berk_jones >= _CLEAR and found.support >= enough

    def _ridge(self, rows: Array, labels: Array) -> RidgeMap | None:
        """Directions predicted by ridge regression; not where scores must be on the scale of maps."""
        narrowest = _NARROWEST_IF_FEW if self.pairs_are_few else _NARROWEST_RIDGE
        if self._only_maps or min(self._pairs.dimensions) < narrowest:
            return None
        n_left_out = self._pairs.n_pairs - rows.size
        if self._prepared is None or not self.pairs_are_few or n_left_out > min(self._pairs.dimensions):
            return learn_ridge(*self.prepared_rows(rows), self._rng, labels)
        self._shared_ridge = self._shared_ridge or SharedRidge(*self._prepared)
        return self._shared_ridge.learn(rows, self._rng, labels)

    def _is_no_worse_than_anchors(self, ridge: RidgeMap, x: Any, y: Any, labels: Array) -> bool:
        """Whether inner products do not tell far more, of the first of such folds: a few rotated pairs among many."""
        if self._of_anchors is None:
            found = next(self._anchors(x, y, labels, np.random.RandomState(0)), None)
            self._of_anchors = 0.0 if found is None else found.significance.berk_jones
        return ridge.significance.berk_jones >= _AS_GOOD_A_RIDGE * self._of_anchors

    def _other_model(self, x: Any, y: Any, labels: Array, found: PairScorer | None) -> PairScorer | None:
        best: PairScorer | None = None
        seen = None if found is None else found.significance
        for other in chain(self._maps_from_consensus(x, y, labels), self._anchors(x, y, labels, self._rng, seen)):
            best = _better(best, other)
            if self._is_clear(best, labels.shape[1]):
                break
        return best

    def _maps_from_consensus(self, x: Any, y: Any, labels: Array) -> Iterator[LinearMap | None]:
        """Maps that start from pairs that agree on a rotation, in original coordinates and in whitened ones."""
        d = self._pairs.X.shape[1]
        if d != self._pairs.Y.shape[1] or d > _WIDEST_CONSENSUS:
            return
        rows = _on_host(x, y, _SEARCHED if d <= _WIDE else _SEARCHED_IF_WIDE)
        for coordinates in (original_coordinates(self._pairs), Coordinates()):
            some_x, some_y = coordinates(*rows)
            if some_x.shape[1] != some_y.shape[1]:  # whitened, one side has lost a direction
                continue
            start = np.zeros(labels.shape[1])
            start[: len(some_x)] = self._agreeing(some_x, some_y)
            if np.count_nonzero(start) >= some_x.shape[1]:
                yield learn_map(x, y, self._rng, labels, start)

    def _agreeing(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """How near each pair is to the rotation, in units of the typical length, that most agree on."""
        x, y = (rows / (float(np.median(np.linalg.norm(rows, axis=1))) or 1.0) for rows in (x, y))
        model = MapModel("orthogonal", x.shape[1])
        any_rate = 0.01  # of false discoveries: what is found does not depend on it
        return find_consensus(model, x, y, np.ones(len(x)), None, any_rate, self._rng).nearness()

    def _anchors(
        self, x: Any, y: Any, labels: Array, rng: np.random.RandomState, seen: Significance | None = None
    ) -> Iterator[AnchorPairs | None]:
        """Pairs whose inner products agree; those that stand out by what was ``seen`` are tried first."""
        if self._only_maps or min(self._pairs.dimensions) < _NARROWEST_ANCHORS:
            return
        if self._coordinates is None:
            self._coordinates = candidate_coordinates(self._pairs, *_on_host(x, y, _SEARCHED))
        yield find_anchors(*_on_host(x, y, MOST_ROWS), self._coordinates, rng, labels, seen)


def _better(found: PairScorer | None, other: PairScorer | None, ahead: float | None = None) -> PairScorer | None:
    """The more significant one; the other if its statistic is at least ``ahead`` times that of what was found."""
    if found is None or other is None:
        return found or other
    ahead = ahead or (_AS_GOOD if isinstance(other, AnchorPairs) else 1.0)
    return other if other.significance.berk_jones >= ahead * found.significance.berk_jones else found


def re_paired_scores(
    learned: PairScorer, x: Any, y: Any, labels: Array, per_pair: int, rng: np.random.RandomState
) -> FloatArray:
    """Scores of x_i with y_j that are wrong for sure, about ``per_pair`` for each i; the pairs come in random order."""
    n = int(x.shape[0])
    if per_pair >= _WORTH_A_MATRIX or n <= _WORTH_A_MATRIX:
        partners = np.arange(min(max(per_pair, _WORTH_A_MATRIX), n))
        scores = learned.scores_of_all_pairings(x, y[: partners.size, :])
        return to_host(scores[from_host(are_re_pairings(labels, partners, rng), x)])
    score = learned.pairings(x, y)
    shifts = re_pairings(labels, max(per_pair, 1), rng)
    return np.concatenate([to_host(score(i[k], j[k])) for i, j in shifts for k in pieces_of_many(x, i.size)])


def prepared_rows(pairs: PairedRows, rows: slice | Array) -> tuple[Any, Any]:
    """Rows x and y of some pairs as they are learned from: in float64, in memory or on their device."""
    some = pairs.near(rows)
    return in_float64(_mapped(some.map_x, some.X), _mapped(some.map_y, some.Y))


def _mapped(row_map: RowMap, table: Any) -> Any:
    if not isinstance(table, np.ndarray):
        return row_map(table)
    mapped = np.empty((len(table), row_map.n_columns))
    for rows in pieces_of_many(table):
        mapped[rows] = row_map(table[rows])
    return mapped


def in_float64(x: Any, y: Any) -> tuple[Any, Any]:
    """Return blocks of rows in the precision that models compute in."""
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False), xp.astype(y, xp.float64, copy=False)


def _on_host(x: Any, y: Any, most: int) -> tuple[FloatArray, FloatArray]:
    some = slice(0, min(most, x.shape[0]))
    return to_host(take_rows(x, some)), to_host(take_rows(y, some))
