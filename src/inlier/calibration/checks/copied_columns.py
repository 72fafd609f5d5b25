"""Columns that stand in both tables: they make any pair look real, and say nothing of whether it is.

Two tables that were joined by age hold the same ages in every row, whoever the people are; in years or in months, with
or without decimals. Such a column is left out on both sides. Tables without other columns are compared as they are.

A column is the same as another if no two rows are in one order by the one and in the other order by the other: both
rise together, or one falls where the other rises. Two tables that were each sorted by an age, and put side by side,
hold such columns too, ties or not. Let r and s be centred mean ranks. The sum of r s is largest where both rise
together, and is then that of the two in rising order; so products of matrices find all such columns. That a random
order does it has the chance 2 prod(a_i!) prod(b_j!) / (n! prod(c_ij!)), with how often the values of the one, of the
other and of both occur. Columns of two values are nested for many reasons (who is pregnant is a woman): of them one
must follow from the other.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln
from scipy.stats import rankdata

from inlier._typing import Array, FloatArray

_LOOKED_AT = 1_000  # rows that are looked at first: in few tables any column is the same there
_ROUNDING = 1e-9
_EACH_WITH_EACH = 1_000_000  # pairs of columns; of more, only columns of equal ranks are the same
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
    r, s = _centred_ranks(X), _centred_ranks(Y)
    n_pairs = r.shape[1] * s.shape[1]
    pairs = _in_one_order(r, s) if n_pairs <= _EACH_WITH_EACH else _of_equal_ranks(r, s)
    same = [pair for pair in pairs if _is_no_chance(r[:, pair[0]], s[:, pair[1]], n_pairs)]
    of_x, of_y = np.array(same, dtype=np.int64).reshape(-1, 2).T
    return np.unique(of_x), np.unique(of_y)


def _in_one_order(r: FloatArray, s: FloatArray) -> Array:
    """Pairs of columns of centred ranks of which no two rows are in one order here and in the other there."""
    rising_r, rising_s, product = np.sort(r, axis=0), np.sort(s, axis=0), r.T @ s
    highest, lowest = rising_r.T @ rising_s, rising_r.T @ rising_s[::-1]
    slack = _ROUNDING * (highest - lowest)
    return np.argwhere(((product >= highest - slack) | (product <= lowest + slack)) & (slack > 0))


def _of_equal_ranks(r: FloatArray, s: FloatArray) -> list[tuple[int, int]]:
    """The same without those of which one column is rounded: one among thousands carries little."""
    by_ranks: dict[bytes, list[int]] = {}
    for j, ranks in enumerate(s.T):
        by_ranks.setdefault(ranks.tobytes(), []).append(j)
    either = ((i, turned) for i, ranks in enumerate(r.T) for turned in (ranks, 0.0 - ranks) if ranks.any())
    return [(i, j) for i, turned in either for j in by_ranks.get(turned.tobytes(), ())]


def _is_no_chance(r: FloatArray, s: FloatArray, n_pairs: int) -> bool:
    """Whether a random order hardly ever puts two columns of ranks together, and nothing else need explain it."""
    a, b, both = (np.unique(of, axis=-1, return_counts=True)[1] for of in (r, s, np.stack([r, s])))
    orders = [gammaln(counts + 1).sum() for counts in (a, b, both)]
    log_chance = np.log(2.0 * n_pairs) + orders[0] + orders[1] - orders[2] - gammaln(r.size + 1)
    follows, nested = both.size == max(a.size, b.size), min(a.size, b.size) == 2
    return bool(log_chance <= np.log(_BY_CHANCE)) and (follows or not nested)


def _centred_ranks(table: Array) -> FloatArray:
    """Centred mean ranks of each column, gaps being lowest."""
    ranks: FloatArray = rankdata(np.where(np.isnan(table), -np.inf, table), axis=0) - (len(table) + 1) / 2
    return ranks


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
