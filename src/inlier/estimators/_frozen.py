"""What was learned, as two small matrices and a few numbers: features of each side, and how they are compared.

What does not fit into a megabyte is cut to the directions that say most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.models.anchors import AnchorPairs
from inlier.calibration.models.learner import PairScorer
from inlier.calibration.models.linear_map import LinearMap
from inlier.calibration.models.ridge_map import RidgeMap
from inlier.calibration.models.same_columns import ColumnAgreement, TwoViews
from inlier.estimators._base import Preparation
from inlier.judge.side import Side
from inlier.judge.views import View
from inlier.rows import RowMap
from inlier.rows.backend import to_host

_MOST_NUMBERS = 200_000  # of both matrices, as float32: 800 kB
_FEWEST_FEATURES = 8


@dataclass(frozen=True, eq=False)
class _Compared:
    """Features of both sides, as linear maps of prepared rows, and how they are compared."""

    of_x: FloatArray  # (prepared columns of x, r)
    of_y: FloatArray
    offset_x: FloatArray
    offset_y: FloatArray
    kind: str
    numbers: FloatArray
    constants: FloatArray
    weight: float = 1.0
    centre: float = 0.0
    spread: float = 1.0


def frozen(
    scorer: PairScorer,
    preparation: Preparation,
    dimensions: tuple[int, int],
    copied: tuple[Array, Array],
    centre: float,
    unit: float,
) -> tuple[tuple[Side, Side], tuple[View, ...]]:
    """Matrices from rows as they are given, and how what comes out of them is compared, in a unit."""
    parts = _views_of(scorer)
    first = parts[0]  # the centre of a sum is taken off it once
    first = replace(first, centre=first.centre + centre * first.spread / (first.weight or 1.0))
    parts = [replace(part, weight=part.weight / unit) for part in (first, *parts[1:])]
    room = max(_MOST_NUMBERS // sum(dimensions) // len(parts), _FEWEST_FEATURES)
    parts = [_cut(part, room) for part in parts]
    ends = np.cumsum([0, *(part.offset_x.size for part in parts)]).tolist()
    views = tuple(
        View(part.kind, start, stop, part.numbers, part.constants, part.weight, part.centre, part.spread)
        for part, start, stop in zip(parts, ends[:-1], ends[1:], strict=True)
    )
    of_x = _joined([part.of_x for part in parts], [part.offset_x for part in parts])
    of_y = _joined([part.of_y for part in parts], [part.offset_y for part in parts])
    x = side_of((preparation.first_x, preparation.map_x), of_x, dimensions[0], copied[0])
    y = side_of((preparation.first_y, preparation.map_y), of_y, dimensions[1], copied[1])
    return (x, y), views


def _joined(matrices: list[FloatArray], offsets: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    return np.concatenate(matrices, axis=1), np.concatenate(offsets)


def side_of(
    maps: tuple[RowMap | None, RowMap] | None, features: tuple[FloatArray, FloatArray] | None, d: int, copied: Array
) -> Side:
    """Rows as they are given to features: what prepares them, and what turns them, as one."""
    columns = np.setdiff1d(np.arange(d), copied)
    nothing = np.zeros(columns.size)
    if maps is None or features is None:
        return Side(columns, d, nothing, -1.0, nothing, np.zeros((columns.size, 1), np.float32), np.zeros(1))
    (first, row_map), (matrix, offset) = maps, features
    assert row_map.mean is not None
    assert row_map.linear is not None
    whole = (row_map.scale * row_map.linear @ matrix).astype(np.float32)[columns]
    mean = row_map.mean[columns]
    if first is None:
        return Side(columns, d, mean, -1.0, nothing, whole, offset)
    assert first.mean is not None
    return Side(columns, d, first.mean[columns], first.shortest / first.scale, mean, whole, offset)


def _views_of(scorer: PairScorer) -> list[_Compared]:
    if isinstance(scorer, LinearMap):
        return [_by_map(scorer)]
    if isinstance(scorer, RidgeMap):
        return _by_ridges(scorer)
    if isinstance(scorer, AnchorPairs):
        return [_by_anchors(scorer)]
    if isinstance(scorer, ColumnAgreement):
        nothing = np.zeros(scorer.to_x.shape[1])
        return [_Compared(scorer.to_x, scorer.to_y, nothing, nothing, "cosine", np.empty(0), np.empty(0))]
    assert isinstance(scorer, TwoViews)
    parts = []
    for view, weight in zip(scorer.views, scorer.weights, strict=True):
        null = view.significance
        of_view = [replace(part, weight=weight, spread=null.spread) for part in _views_of(view)]
        parts += [replace(of_view[0], centre=null.centre), *of_view[1:]]
    return parts


def _by_map(scorer: LinearMap) -> _Compared:
    coefficients, offset = (np.asarray(to_host(of), dtype=np.float64) for of in (scorer.coefficients, scorer.offset))
    d_y = offset.size
    turn = np.eye(d_y) if scorer.turn is None else np.asarray(to_host(scorer.turn), dtype=np.float64)
    return _Compared(coefficients, turn, offset, np.zeros(d_y), "likelihood", np.asarray(scorer.variance), np.empty(0))


def _by_ridges(scorer: RidgeMap) -> list[_Compared]:
    there, back = (tuple(np.asarray(to_host(of), float) for of in fit) for fit in (scorer.forward, scorer.backward))
    (b, offset_y), (c, offset_x) = there, back
    k_x, k_y = b.shape
    none = np.empty(0)
    return [
        _Compared(b, np.eye(k_y), offset_y, np.zeros(k_y), "cosine", none, none),
        _Compared(np.eye(k_x), c, np.zeros(k_x), offset_x, "cosine", none, none),
    ]


def _by_anchors(scorer: AnchorPairs) -> _Compared:
    """Inner products with the anchors first, then coordinates in which lengths are measured."""
    in_x, in_y = (
        np.eye(anchors.shape[1]) if of is None else np.asarray(of)
        for of, anchors in ((scorer.coordinates.of_x, scorer.x), (scorer.coordinates.of_y, scorer.y))
    )
    width = max(in_x.shape[1], in_y.shape[1])
    lengths = [np.pad(of, ((0, 0), (0, width - of.shape[1]))) for of in (in_x, in_y)]
    of_x, of_y = (
        np.concatenate([of @ anchors.T, length], axis=1)
        for of, anchors, length in ((in_x, scorer.x, lengths[0]), (in_y, scorer.y, lengths[1]))
    )
    nothing, constants = np.zeros(of_x.shape[1]), np.array([scorer.correlation, 0.0, 0.0])
    return _Compared(of_x, of_y, nothing, nothing, "agreement", np.asarray(scorer.weights, float), constants)


def _cut(part: _Compared, room: int) -> _Compared:
    """The features that say most, where there is no room for all."""
    if part.offset_x.size <= room:
        return part
    return _CUTS[part.kind](part, room)


def _cut_likelihood(part: _Compared, room: int) -> _Compared:
    """Coordinates of y that x tells most of."""
    kept = np.sort(np.argsort(part.numbers, kind="stable")[:room])
    return replace(
        part,
        of_x=part.of_x[:, kept],
        of_y=part.of_y[:, kept],
        offset_x=part.offset_x[kept],
        offset_y=part.offset_y[kept],
        numbers=part.numbers[kept],
    )


def _cut_cosine(part: _Compared, room: int) -> _Compared:
    """Directions that predictions lie in: of prepared rows all coordinates are much alike in size."""
    predicted = min((part.of_x, part.of_y), key=_directions_that_count)
    turn = np.linalg.svd(predicted)[2][:room].T
    sides = {name: getattr(part, name) @ turn for name in ("of_x", "of_y", "offset_x", "offset_y")}
    return replace(part, **sides)


def _directions_that_count(matrix: FloatArray) -> float:
    """(sum s^2)^2 / sum s^4 over its singular values s."""
    square = matrix.T @ matrix
    return float(np.trace(square) ** 2 / max(float(np.sum(square**2)), 1e-300))


def _cut_agreement(part: _Compared, room: int) -> _Compared:
    """The heaviest anchors, and the longest directions; what is left of a squared length is a constant."""
    m = min(part.numbers.size, room // 2)
    heavy = np.sort(np.argsort(-part.numbers, kind="stable")[:m])
    sides, rests = [], []
    for matrix in (part.of_x, part.of_y):
        lengths = matrix[:, part.numbers.size :]
        _, size, turned = np.linalg.svd(lengths, full_matrices=False)
        kept = lengths @ turned[: room - m].T
        rests.append(float(np.sum(size[room - m :] ** 2)))
        sides.append(np.concatenate([matrix[:, heavy], np.pad(kept, ((0, 0), (0, room - m - kept.shape[1])))], axis=1))
    nothing, constants = np.zeros(room), np.array([part.constants[0], *rests])
    numbers = part.numbers[heavy]
    x, y = sides
    return replace(part, of_x=x, of_y=y, offset_x=nothing, offset_y=nothing, numbers=numbers, constants=constants)


_CUTS = {"likelihood": _cut_likelihood, "cosine": _cut_cosine, "agreement": _cut_agreement}
