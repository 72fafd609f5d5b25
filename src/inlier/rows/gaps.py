"""Tables with gaps: missing values are filled in from the other columns of the same table.

Whatever is filled in, re-pairings get it too, so that gaps cost power and never the promise; as long as nothing looks
across from one table to the other. A table is taken for a few strong directions and noise: fill with column means,
find the directions, fill with what they say, and again. How many directions is decided by observed values that are set
aside.

*What cannot be meant*: codes for missing numbers, numbers far beyond all others of their column, points far from all.
One of them outweighs all other rows in every mean and moment. What becomes of them is for the caller to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._checks import warn
from inlier._typing import Array, FloatArray, Mask
from inlier.exceptions import ParameterError, ParameterWarning

_RANKS = (0, 1, 2, 4, 8, 16, 32)  # numbers of directions that are tried; 0 is the column means
_SET_ASIDE = 0.05  # of the observed values
_MOST_SET_ASIDE_CELLS = 2_000_000  # in tables with more cells, the directions are chosen in the first rows
_TRIAL_STEPS, _STEPS = 6, 20
_SETTLED = 1e-3  # relative change of the filled values that ends the iteration
_SHARED = 4.0  # standard errors of the correlation of the two tables' gaps, from which they are shared
_FEWEST_OBSERVED = 20  # values of a table below which there are only column means
_CODES = (-9999, -999, 9999, 99999, -99999, 999999, -32768, 1e20, 1e30, -1e30, 1e36, 1e38)  # of other programs
_CODE_BEYOND = 10.0  # median deviations from which such a number is taken for a code, if it occurs more than once
_ABSURD = 1000.0  # times as far from the median as is typical: no distribution of measurements, no scene goes there
_RARE = 0.1  # share of a column's values above which they are its nature
_ROWS_FOR_MEDIANS = 250  # about, that medians are taken of: a thousandfold does not depend on a tenth
_SKEWED = 3.0  # times as far above the median the highest tenth begins as the lowest tenth ends below it
_SCALE = 11  # different values of a column: marks from 0 to 10, yes and no; the large ones drown nothing
_MOST_FAR = 0.01  # share of the points; where more are so far away, it is their nature
_FEWEST_POINTS = 10  # points from which there is something typical
_POINTS_FOR_MEDIANS = 1_000  # about, that medians are taken of
_POINTS_AT_A_GLANCE = 64


@dataclass(frozen=True, eq=False)
class Filled:
    """A table without gaps, and where they were."""

    values: Array
    missing: Mask | None = None  # None where there were none, and the table is as it was

    @property
    def share_missing(self) -> FloatArray | None:
        """Share of each row that was missing."""
        return None if self.missing is None else self.missing.mean(axis=1)


def number_of_gaps(tables: Sequence[Filled]) -> Array:
    """How many values of each pair were missing, on both sides."""
    counts = [table.missing.sum(axis=1) for table in tables if table.missing is not None]
    return np.sum(counts, axis=0) if counts else np.zeros(tables[0].values.shape[0], dtype=np.int64)


def without_gaps(table: Any, name: str) -> Filled:
    """Fill the gaps of a table in memory; values that cannot be meant count as gaps, with a note.

    A table that holds nothing else is refused.
    """
    if not isinstance(table, np.ndarray):
        return Filled(table)
    odd = odd_values(table)
    if odd is not None:
        reason = f"{describe(odd, table)} They count as missing; if they are meant, take logarithms or ranks first."
        warn(ParameterWarning(name, reason, before=f"{int(odd.sum())} value(s) of "))
    filled = fill_gaps(table, odd)
    if filled.missing is not None and filled.missing.all():
        rows, columns = table.shape
        raise ParameterError(
            name,
            f"has no values: in all {rows:,} rows and {columns:,} columns they are missing. Check that the right "
            f"columns were read.",
        )
    return filled


def fill_gaps(table: Array, unusable: Mask | None = None) -> Filled:
    """Fill what is NaN, and what cannot be used.

    A table without any comes back as it is; columns of nothing else come back as zeros.
    """
    if unusable is not None:
        table = np.where(unusable, np.nan, table)
    if table.dtype.kind != "f":
        return Filled(table)
    missing = np.isnan(table)
    if not missing.any():
        return Filled(table)
    observed = ~missing
    count = np.maximum(observed.sum(axis=0), 1)
    mean = np.where(observed, table, 0.0).sum(axis=0, dtype=np.float64) / count
    centred = np.where(observed, table - mean, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / count)
    spread[spread == 0] = 1.0
    scaled = centred / spread
    rank = _best_rank(scaled, observed)
    filled = _completed(scaled, observed, rank, _STEPS)
    return Filled(np.where(observed, table, filled * spread + mean), missing)


def _best_rank(scaled: FloatArray, observed: Mask) -> int:
    """How many directions tell best what was set aside."""
    n = min(len(scaled), max(_MOST_SET_ASIDE_CELLS // scaled.shape[1], 1))
    scaled, observed = scaled[:n], observed[:n]
    cells = np.flatnonzero(observed)
    if cells.size < _FEWEST_OBSERVED:
        return 0
    aside = cells[np.random.RandomState(0).permutation(cells.size)[: max(1, int(_SET_ASIDE * cells.size))]]
    left = observed.copy()
    left.flat[aside] = False
    truth = scaled.flat[aside]
    start, best, lowest = np.where(left, scaled, 0.0), 0, float(np.mean(truth**2))
    for rank in _RANKS[1:]:
        if rank > min(scaled.shape) // 2:
            break
        error = float(np.mean((_completed(start, left, rank, _TRIAL_STEPS).flat[aside] - truth) ** 2))
        if error >= lowest:
            break
        best, lowest = rank, error
    return best


def _completed(scaled: FloatArray, observed: Mask, rank: int, steps: int) -> FloatArray:
    """Fill with the projection on the strongest directions, over and over."""
    filled = np.where(observed, scaled, 0.0)
    if rank == 0:
        return filled
    for _ in range(steps):
        directions = _strongest(filled, rank)
        updated = np.where(observed, scaled, (filled @ directions) @ directions.T)
        change = float(np.linalg.norm(updated - filled)) / max(float(np.linalg.norm(filled)), 1e-300)
        filled = updated
        if change < _SETTLED:
            break
    return filled


def _strongest(table: FloatArray, rank: int) -> FloatArray:
    """The strongest principal directions, as columns."""
    n, d = table.shape
    if d <= n:
        return np.linalg.eigh(table.T @ table)[1][:, -rank:]
    eigenvalues, sides = np.linalg.eigh(table @ table.T)
    return table.T @ (sides[:, -rank:] / np.sqrt(np.maximum(eigenvalues[-rank:], 1e-300)))


def gap_classes(of_x: FloatArray | None, of_y: FloatArray | None) -> Array | None:
    """Number rows by how much of them is missing, where both tables miss the same rows; None where they do not.

    A filled row lies near the mean. If gaps are shared, the wrong pairs too have such rows on both sides, and only
    re-pairings of rows with as many gaps are like them.
    """
    if of_x is None or of_y is None or of_x.std() == 0 or of_y.std() == 0:
        return None
    n = of_x.size
    correlation = float(np.corrcoef(of_x, of_y)[0, 1])
    if abs(correlation) * n**0.5 < _SHARED:
        return None
    classes = np.zeros(n, dtype=np.int64)
    for share in (of_x, of_y):
        edges = np.unique(np.quantile(share[share > 0], (0.5,)))
        classes = 3 * classes + np.where(share > 0, 1 + np.searchsorted(edges, share, side="right"), 0)
    return np.unique(classes, return_inverse=True)[1].reshape(-1)


def crossed(strata: Array | None, classes: Array | None) -> Array | None:
    """Strata inside which both are equal."""
    if strata is None or classes is None:
        return classes if strata is None else strata
    return np.unique(np.stack([strata, classes]), axis=1, return_inverse=True)[1].reshape(-1)


# ---- what cannot be meant


def odd_values(table: Array) -> Mask | None:
    """Which values are codes for missing ones, or lie absurdly far from the median of their column; None if none do.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.rows.gaps import odd_values
    >>> values = np.random.default_rng(0).normal(size=(100, 2))
    >>> odd_values(values) is None
    True
    >>> values[7, 1], values[[2, 5], 0] = 1e9, -999
    >>> np.argwhere(odd_values(values)).tolist()
    [[2, 0], [5, 0], [7, 1]]
    """
    if table.dtype.kind not in "iuf" or 0 in table.shape:
        return None
    middle, typical = _medians(table)
    near = np.where(typical > 0, _CODE_BEYOND * typical, np.inf)  # a column that is mostly one value has no typical
    low, high = _range(table)
    columns = np.flatnonzero((low < middle - near) | (high > middle + near))
    odd = np.zeros(table.shape, dtype=bool)
    for column in columns:
        odd[:, column] = _odd(table[:, column].astype(np.float64), middle[column], typical[column])
    return odd if odd.any() else None


def describe(
    odd: Mask, table: Array, rows: Sequence[object] | None = None, columns: Sequence[str] | None = None
) -> str:
    """Say, after "so many values of NAME", what is wrong with them and where the first is, by names if there are."""
    row, column = (int(place) for place in np.argwhere(odd)[0])
    where = f"row {row}" if rows is None else str(rows[row])
    heading = column if columns is None else columns[column]
    return (
        f"look like codes for missing values, or lie over a thousand times as far from the median of their column as "
        f"is typical, the first ({table[row, column]:g}) in {where}, column {heading}."
    )


def is_skewed(table: Array) -> bool:
    """Whether a table holds nothing below 0 and most of its columns reach far above their median: counts, amounts.

    Columns of few different values (no and yes, marks) have no logarithms to be taken of.
    """
    some = np.asarray(table[:: max(1, len(table) // _ROWS_FOR_MEDIANS)], dtype=np.float64)
    some = some[:, [np.unique(column[np.isfinite(column)]).size > _SCALE for column in some.T]]
    if not some.size or len(some) < 1 / _RARE or not (some[np.isfinite(some)] >= 0).all():
        return False
    with np.errstate(all="ignore"):
        low, middle, high = np.quantile(np.nan_to_num(some), (_RARE, 0.5, 1 - _RARE), axis=0)
    return bool(np.median(high - middle) > 0 and np.mean(high - middle > _SKEWED * (middle - low)) > 0.5)


def _medians(table: Array) -> tuple[FloatArray, FloatArray]:
    """Median of each column, and the median deviation from it, by some of the rows; 0 where nothing is known."""
    some = np.asarray(table[:: max(1, len(table) // _ROWS_FOR_MEDIANS)], dtype=np.float64).T.copy()
    if np.isfinite(some).all():
        middle = np.median(some, axis=1)
        return middle, np.median(np.abs(some - middle[:, None]), axis=1)
    some = np.where(np.isfinite(some), some, np.nan)
    known = ~np.isnan(some).all(axis=1)
    middle, typical = np.zeros((2, len(some)))
    middle[known] = np.nanmedian(some[known], axis=1)
    typical[known] = np.nanmedian(np.abs(some[known] - middle[known, None]), axis=1)
    return middle, typical


def _range(table: Array) -> tuple[FloatArray, FloatArray]:
    """Least and largest value of each column; of one with gaps, infinite, so that it is looked at."""
    with np.errstate(invalid="ignore"):
        low, high = table.min(axis=0).astype(np.float64), table.max(axis=0).astype(np.float64)
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def _odd(column: FloatArray, middle: float, typical: float) -> Mask:
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.where(np.isfinite(column), np.abs(column - middle), 0.0) / typical
    suspects = [code for code in _CODES if np.count_nonzero(np.isclose(column, code, rtol=1e-6, atol=0)) > 1]
    codes = np.isclose(column[:, None], suspects, rtol=1e-6, atol=0).any(axis=1) & (away > _CODE_BEYOND)
    far = (away > _ABSURD) & ~codes
    return codes | far if far.sum() <= max(1.0, _RARE * column.size) else codes


def far_points(points: Array, length: float | None = None) -> Mask | None:
    """Which points lie over a thousand times as far from the median point as is typical; None if none or many do.

    Unlike a look at each column, this does not depend on how the points are turned, and a flat scene is no exception.
    ``length`` is that of the range of all coordinates, from the least to the largest, where it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.rows.gaps import far_points
    >>> points = np.random.default_rng(0).normal(size=(100, 3))
    >>> far_points(points) is None
    True
    >>> points[7, 1] = 1e9
    >>> np.flatnonzero(far_points(points)).tolist()
    [7]
    """
    if len(points) < _FEWEST_POINTS or _is_compact(points, length):
        return None
    some = np.asarray(points[:: max(1, len(points) // _POINTS_FOR_MEDIANS)], dtype=np.float64)
    middle = np.median(some, axis=0)
    with np.errstate(over="ignore"):
        farthest = _ABSURD * float(np.median(np.linalg.norm(some - middle, axis=1)))
        # No point is farther away than a corner of the box around all of them.
        reach = np.maximum(points.max(axis=0) - middle, middle - points.min(axis=0))
        if farthest == 0 or np.linalg.norm(reach) <= farthest:
            return None
        far: Mask = np.linalg.norm(points - middle, axis=1) > farthest
    return far if 0 < np.count_nonzero(far) <= max(1.0, _MOST_FAR * len(points)) else None


def _is_compact(points: Array, length: float | None) -> bool:
    """Whether the range of all numbers, beside the distances of some points, leaves no doubt that none is far away.

    Half of the points lie within a typical distance r of the median point, and so within 2 r of any one of them: the
    lower quartile of the distances from one point is 2 r at most, unless it is far away itself. Of three, hardly all.
    """
    some = np.asarray(points[:: max(1, len(points) // _POINTS_AT_A_GLANCE)][:_POINTS_AT_A_GLANCE], dtype=np.float64)
    k = len(some)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = some[:: k // 3 + 1, None] - some
        squared = (steps * steps).sum(axis=2)
        squared.partition(k // 4)
        quartile = squared[:, k // 4].min()
        length = np.float64(points.max()) - np.float64(points.min()) if length is None else length
        return bool(points.shape[1] * length**2 <= (_ABSURD / 2) ** 2 * quartile)
