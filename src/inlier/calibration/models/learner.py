"""Which model is learned, and from how many pairs: chosen once, on a pilot of the pairs, before any fold is dealt.

A map that starts from the row sums needs real pairs that are a good part of all, and more of them than dimensions.
Where it leaves doubts, a regression is tried, which takes all pairs for real, and in many dimensions a ridge; where
real pairs are fewer than dimensions, pairs whose inner products agree, and rows that are each other's nearest, whoever
they were paired with. Each model says how pairs that it has not seen stand beside their re-pairings; the most
significant one is taken. Of very many pairs a part is learned from; more, if the rest does not confirm what was
learned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.models.anchors import MOST_ROWS, Coordinates, candidate_coordinates, find_anchors
from inlier.calibration.models.linear_map import learn_map, learn_regression
from inlier.calibration.models.neighbours import learn_neighbours
from inlier.calibration.models.ridge_map import SharedRidge, learn_ridge
from inlier.calibration.models.significance import Significance, berk_jones
from inlier.calibration.p_values import calibrate
from inlier.rows import PairedRows
from inlier.rows.backend import from_host, namespace, take_rows, to_host
from inlier.rows.columns import RowMap
from inlier.rows.null_pairs import are_re_pairings, re_pairings
from inlier.rows.threads import pieces_of_many

_PILOT, _PILOT_PER_DIMENSION = 5_000, 25  # pairs; if a good part is real, more make hardly a better map
_AMPLE = 10.0  # real pairs per dimension that a map is well learned from
_GROWTH, _MOST_GROWTH = 4, 16  # of the pairs that are learned from, when what they found is not confirmed
_CONFIRMED = 0.01  # detection p-value on pairs that were not learned from
_WELL_DETERMINED = 2.0  # pairs per dimension that make a map a good judge
_A_GOOD_PART = 0.25  # of the pairs, that row sums do not miss
_PARTS, _FEW_PAIRS = 3, 400  # of the pilot, judged by what the others teach, until so many pairs are judged
_RE_PAIRINGS = 20  # of each pair, which they are judged beside
_CLEAR_PER_PAIR = 1.5  # Berk-Jones statistic per pair from which a map needs no ridge beside it
_NARROWEST = 8  # dimensions: in fewer, strangers too have much the same direction
_FEW = 16  # pairs per dimension, fewer of which are few
WIDE = 500  # dimensions from which threads inside a matrix product save more than they cost
_SEARCHED = 5_000  # pairs that coordinates of anchors come from
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

    def scores_of_all_pairings(self, x: Any, y: Any, *, single: bool = False) -> Any:
        """Score x_i with y_j, for all i and j; in single precision, if wanted."""

    def pairings(self, x: Any, y: Any) -> Callable[[Array, Array], Any]:
        """What scores x_i with y_j, given numbers i and j."""


@dataclass(frozen=True, eq=False)
class PreparedPairs:
    """Pairs as they are learned from: in float64, centred, of mean square 1; with what they have in common."""

    pairs: PairedRows
    labels: Array  # of `inlier.rows.null_pairs`
    rows: tuple[Any, Any] | None = None  # all of them, where they are at hand
    rest: tuple[FloatArray, FloatArray] | None = None  # prepared rows without a partner

    @property
    def n(self) -> int:
        """How many pairs."""
        return int(self.labels.shape[1])

    @property
    def dimensions(self) -> tuple[int, int]:
        """Of x and of y."""
        return self.pairs.dimensions

    @property
    def are_few(self) -> bool:
        """Whether there are few pairs beside their dimensions."""
        return self.n < _FEW * max(self.dimensions)

    @property
    def columns(self) -> tuple[int, int]:
        """Of the two tables."""
        return int(self.pairs.X.shape[1]), int(self.pairs.Y.shape[1])

    def take(self, rows: Array) -> tuple[Any, Any]:
        """Some rows of x and of y."""
        if self.rows is None:
            return prepared_rows(self.pairs, rows)
        x, y = self.rows
        return take_rows(x, rows), take_rows(y, rows)

    @cached_property
    def shared_ridge(self) -> SharedRidge | None:
        """Ridges that leave a few pairs out, from one spectrum; None where rows are not at hand, or many."""
        return SharedRidge(*self.rows) if self.rows is not None and self.are_few else None

    @cached_property
    def undo(self) -> tuple[FloatArray, FloatArray]:
        """What gives prepared rows back as centred rows of the tables."""
        return self.pairs.map_x.undo(), self.pairs.map_y.undo()

    @cached_property
    def coordinates(self) -> list[Coordinates]:
        """Coordinates in which inner products may be compared."""
        some = self.take(np.arange(min(self.n, _SEARCHED)))
        return candidate_coordinates(self.pairs, *map(to_host, some))


def _learn_map(data: PreparedPairs, rows: Array, rng: np.random.RandomState) -> PairScorer | None:
    return learn_map(*data.take(rows), rng, data.labels[:, rows])


def _learn_regression(data: PreparedPairs, rows: Array, rng: np.random.RandomState) -> PairScorer | None:
    return learn_regression(*data.take(rows), rng, data.labels[:, rows])


def _learn_ridge(data: PreparedPairs, rows: Array, rng: np.random.RandomState) -> PairScorer | None:
    labels, n_left_out = data.labels[:, rows], data.n - rows.size
    if data.shared_ridge is not None and n_left_out <= min(data.dimensions):
        return data.shared_ridge.learn(rows, rng, labels)
    return learn_ridge(*data.take(rows), rng, labels)


def _learn_anchors(data: PreparedPairs, rows: Array, rng: np.random.RandomState) -> PairScorer | None:
    rows = rows[:MOST_ROWS]
    x, y = map(to_host, data.take(rows))
    return find_anchors(x, y, data.coordinates, rng, data.labels[:, rows])


def _learn_neighbours(data: PreparedPairs, rows: Array, rng: np.random.RandomState) -> PairScorer | None:
    x, y = map(to_host, data.take(rows))
    rest = (x[:0], y[:0]) if data.rest is None else data.rest
    return learn_neighbours(x, y, rest, data.undo)


KINDS: dict[str, Callable[[PreparedPairs, Array, np.random.RandomState], PairScorer | None]] = {
    "map": _learn_map,
    "regression": _learn_regression,
    "ridge": _learn_ridge,
    "anchors": _learn_anchors,
    "neighbours": _learn_neighbours,
}


@dataclass(frozen=True, eq=False)
class Learner:
    """Learns from some of the pairs, always in the same way: the kind of model, and from how many pairs at most."""

    data: PreparedPairs
    rng: np.random.RandomState
    kind: str = "map"
    size: int = _PILOT

    def learn(self, training: Array) -> PairScorer | None:
        """Learn from these pairs, or of many from a random part; None if nothing is found."""
        return KINDS[self.kind](self.data, self.rng.permutation(training)[: self.size], self.rng)


def choose_learner(data: PreparedPairs, rng: np.random.RandomState, kinds: tuple[str, ...] = tuple(KINDS)) -> Learner:
    """Choose the kind of model, and how many pairs it needs, on a random pilot."""
    shuffled = rng.permutation(data.n)
    smallest = size = max(_PILOT, _PILOT_PER_DIMENSION * max(data.dimensions))
    while True:
        kind, found = _most_significant(data, shuffled[:size], rng, kinds)
        if size >= data.n:
            return Learner(data, rng, kind, size)
        is_last, ample = size >= _MOST_GROWTH * smallest, min(_AMPLE * max(data.dimensions), size / 2)
        if found is not None and _is_confirmed(found, data, shuffled[size : 2 * size], rng):
            if found.support >= ample or is_last:
                return Learner(data, rng, kind, size)
        elif is_last:  # nothing to be found: the folds need not look as hard
            return Learner(data, rng, kind, smallest)
        size *= _GROWTH


def _most_significant(
    data: PreparedPairs, rows: Array, rng: np.random.RandomState, kinds: tuple[str, ...]
) -> tuple[str, PairScorer | None]:
    """The kind whose held-out pairs stand out most beside their re-pairings; a map, where that leaves no doubt.

    First it counts how many parts of them are clear: one that shines in some parts and fails in others would be taken
    for better than one that never fails.
    """
    found = _learn_map(data, rows, rng)
    enough = min(_WELL_DETERMINED * max(data.dimensions), _A_GOOD_PART * rows.size)
    is_a_good_judge = found is not None and found.support >= enough and not data.are_few
    if found is not None and is_a_good_judge and found.significance.berk_jones >= _CLEAR_PER_PAIR * rows.size:
        return "map", found
    few_are_real = found is None or found.support < _WELL_DETERMINED * max(data.dimensions)
    is_worth_trying = {
        "map": True,
        "regression": True,
        "ridge": min(data.dimensions) >= _NARROWEST,
        "anchors": min(data.dimensions) >= _NARROWEST and few_are_real,
        "neighbours": data.rest is not None
        or (few_are_real and _NARROWEST <= min(data.columns) <= max(data.columns) <= WIDE),
    }
    worth_trying = [kind for kind in kinds if is_worth_trying[kind]]
    if len(worth_trying) == 1:
        return "map", found
    few = data.shared_ridge is not None and data.n < max(data.columns)
    if few:
        worth_trying.sort(key=lambda kind: kind != "ridge")  # a map of more columns than pairs tells no more, and costs
    judged, best, most = _parts(rows, rng), "map", (0.0, 0.0)
    for kind in worth_trying:
        evidence = np.array([_held_out(data, kind, *part, rng) for part in judged])
        found_by_it = float(np.minimum(evidence, _CLEAR_PER_PAIR).mean()), float(evidence.mean())
        if found_by_it > most:
            best, most = kind, found_by_it
        if few and kind == "ridge" and most[0] >= _CLEAR_PER_PAIR:
            break
    return best, found if best == "map" else KINDS[best](data, rows, rng)


def _parts(rows: Array, rng: np.random.RandomState) -> list[tuple[Array, Array]]:
    """Parts of the pairs, of at least so many in all, each with all the others."""
    deals = [np.array_split(rng.permutation(rows), _PARTS) for _ in range(max(1, _FEW_PAIRS // rows.size))]
    parts = [(own, np.setdiff1d(rows, own)) for deal in deals for own in deal]
    return parts[: int(np.ceil(_PARTS * _FEW_PAIRS / rows.size))]


def _held_out(data: PreparedPairs, kind: str, own: Array, others: Array, rng: np.random.RandomState) -> float:
    """How far some pairs stand out, each, beside their re-pairings, by what was learned from the others."""
    apart = _apart(others, own, data.labels)
    learned = KINDS[kind](data, rng.permutation(apart), rng) if apart.size else None
    if learned is None:
        return 0.0
    x, y = data.take(own)
    null = re_paired_scores(learned, x, y, data.labels[:, own], _RE_PAIRINGS, rng)
    return berk_jones(Significance.of(learned.scores(x, y), null).p_values) / own.size


def _apart(others: Array, own: Array, labels: Array) -> Array:
    """Those that have neither a row nor a group in common with the pairs of a part."""
    met = [np.isin(side[others], side[own]) for side in labels[:3]]
    return others[~np.any(met, axis=0)]


def _is_confirmed(learned: PairScorer, data: PreparedPairs, rows: Array, rng: np.random.RandomState) -> bool:
    """Whether pairs that the model has not seen score higher than their re-pairings."""
    x, y = data.take(rows)
    null = re_paired_scores(learned, x, y, data.labels[:, rows], 4, rng)
    return null.size > 0 and calibrate(to_host(learned.scores(x, y)), null).detection_p_value <= _CONFIRMED


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
