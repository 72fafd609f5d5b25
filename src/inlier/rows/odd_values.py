"""Values that cannot be meant: codes for missing numbers, and numbers far beyond all others of their column.

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
