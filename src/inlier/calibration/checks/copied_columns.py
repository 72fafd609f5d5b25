"""Columns that stand in both tables: they make any pair look real, and say nothing of whether it is.

Two tables that were joined by age hold the same ages in every row, whoever the people are; in years or in months, with
or without decimals. Such a column is left out on both sides. Tables without other columns are compared as they are.

A column is the same as another if the values of one rise, or fall, wherever those of the other do, in all rows: the
coarser is then a step function of the finer. Let r and s be their centred mean ranks. The sum of r s is largest where
both rise together, and is then the sum of squares of the coarser; so one product of matrices finds all such columns.
That a random order of the coarser does it has the chance 2 prod(m_k!) / n!, m_k being how often each value occurs.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln
from scipy.stats import rankdata

from inlier._typing import Array, FloatArray, Mask

_LOOKED_AT = 1_000  # rows that are looked at first: in few tables any column is the same there
_ROUNDING = 1e-9
_BY_CHANCE = 1e-6  # that any two columns are the same


def copied_columns(X: Array, Y: Array) -> tuple[Array, Array]:
    """Numbers of the columns of X and of y that are the same, up to units and rounding, in every row."""
    some = np.linspace(0, len(X) - 1, min(len(X), _LOOKED_AT)).astype(np.int64)
    of_x, of_y = _same(X[some], Y[some])
    if of_x.size and len(X) > some.size:
        in_x, in_y = _same(X[:, of_x], Y[:, of_y])
        of_x, of_y = of_x[in_x], of_y[in_y]
    leaves_some = all(
        (np.fmax.reduce(table) > np.fmin.reduce(table)).sum() > found.size for table, found in ((X, of_x), (Y, of_y))
    )
    nothing = np.empty(0, dtype=np.int64)
    return (of_x, of_y) if leaves_some else (nothing, nothing)


def _same(X: Array, Y: Array) -> tuple[Array, Array]:
    (r, of_r), (s, of_s) = _ranks_and_chances(X), _ranks_and_chances(Y)
    squares_r, squares_s = (np.einsum("ij,ij->j", ranks, ranks) for ranks in (r, s))
    coarser = np.minimum(squares_r[:, None], squares_s)
    log_chance = np.where(squares_r[:, None] < squares_s, of_r[:, None], of_s) + np.log(2.0 * coarser.size)
    same: Mask = (np.abs(r.T @ s) >= (1 - _ROUNDING) * coarser) & (log_chance <= np.log(_BY_CHANCE))
    return np.flatnonzero(same.any(axis=1)), np.flatnonzero(same.any(axis=0))


def _ranks_and_chances(table: Array) -> tuple[FloatArray, FloatArray]:
    """Centred mean ranks of each column, gaps being lowest; log of the chance of one order among all there are."""
    ranks = rankdata(np.where(np.isnan(table), -np.inf, table), axis=0)
    log_orders = [gammaln(len(table) + 1) - gammaln(np.unique(of, return_counts=True)[1] + 1).sum() for of in ranks.T]
    return ranks - (len(table) + 1) / 2, -np.array(log_orders)


def without_columns(table: Array, columns: Array) -> Array:
    """The table with nothing in these columns."""
    if not columns.size:
        return table
    table = table.astype(np.float64 if table.dtype.kind != "f" else table.dtype, copy=True)
    table[:, columns] = 0.0
    return table


def warning_of(names: list[str]) -> str:
    """What to say of columns that were left out, by their names in X."""
    which = f"Column {names[0]} is" if len(names) == 1 else f"Columns {', '.join(names)} are"
    return (
        f"{which} the same in X and y in every row, if perhaps in other units. That makes any pair look real and says "
        f"nothing of whether it is, so it was left out on both sides."
    )
