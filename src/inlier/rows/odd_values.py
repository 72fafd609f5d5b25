"""What cannot be meant: codes for missing numbers, numbers far beyond all others of their column, points far from all.

One of them outweighs all other rows in every mean and moment. What becomes of them is for the caller to decide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inlier._typing import Array, FloatArray, Mask

_CODES = (-9999, -999, 9999, 99999, -99999, 999999, -32768, 1e20, 1e30, -1e30, 1e36, 1e38)  # of other programs
_CODE_BEYOND = 10.0  # median deviations from which such a number is taken for a code, if it occurs more than once
_ABSURD = 1000.0  # median deviations from the median: no distribution of measurements goes there
_RARE = 0.1  # share of a column's values above which they are its nature
_ROWS_FOR_MEDIANS = 250  # about, that medians are taken of: a thousandfold does not depend on a tenth
_SKEWED = 3.0  # times as far above the median the highest tenth begins as the lowest tenth ends below it
_ABSURDLY_FAR = 1000.0  # times as far from the middle as is typical: no scene goes there
_MOST_FAR = 0.01  # share of the points; where more are so far away, it is their nature
_FEWEST_POINTS = 10  # points from which there is something typical
_POINTS_FOR_MEDIANS = 1_000  # about, that medians are taken of
_POINTS_AT_A_GLANCE = 64


def odd_values(table: Array) -> Mask | None:
    """Which values are codes for missing ones, or lie absurdly far from the median of their column; None if none do.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.rows.odd_values import odd_values
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
    """Whether a table holds nothing below 0 and most of its columns reach far above their median: counts, amounts."""
    some = np.asarray(table[:: max(1, len(table) // _ROWS_FOR_MEDIANS)], dtype=np.float64)
    if len(some) < 1 / _RARE or not (some[np.isfinite(some)] >= 0).all():
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
    >>> from inlier.rows.odd_values import far_points
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
        farthest = _ABSURDLY_FAR * float(np.median(np.linalg.norm(some - middle, axis=1)))
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
        return bool(points.shape[1] * length**2 <= (_ABSURDLY_FAR / 2) ** 2 * quartile)
