"""Tables with gaps: missing values are filled in from the other columns of the same table.

Whatever is filled in, re-pairings get it too, so that gaps cost power and never the promise; as long as nothing looks
across from one table to the other. A table is taken for a few strong directions and noise: fill with column means,
find the directions, fill with what they say, and again. How many directions is decided by observed values that are set
aside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._checks import warn
from inlier._typing import Array, FloatArray, Mask
from inlier.exceptions import ParameterError, ParameterWarning
from inlier.rows.odd_values import describe, odd_values

_RANKS = (0, 1, 2, 4, 8, 16, 32)  # numbers of directions that are tried; 0 is the column means
_SET_ASIDE = 0.05  # of the observed values
_MOST_SET_ASIDE_CELLS = 2_000_000  # in tables with more cells, the directions are chosen in the first rows
_TRIAL_STEPS, _STEPS = 6, 20
_SETTLED = 1e-3  # relative change of the filled values that ends the iteration
_SHARED = 4.0  # standard errors of the correlation of the two tables' gaps, from which they are shared
_MOSTLY_MISSING = 0.5  # of a row's values: a real pair with such a row may look like any other
_FEWEST_OBSERVED = 20  # values of a table below which there are only column means


@dataclass(frozen=True, eq=False)
class Filled:
    """A table without gaps, and where they were."""

    values: Array
    missing: Mask | None = None  # None where there were none, and the table is as it was

    @property
    def share_missing(self) -> FloatArray | None:
        """Share of each row that was missing."""
        return None if self.missing is None else self.missing.mean(axis=1)


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


def mostly_missing(*shares: FloatArray | None) -> Mask | None:
    """Pairs that have a row with hardly any value, by the share of each row that is missing; None without gaps."""
    given = [share > _MOSTLY_MISSING for share in shares if share is not None]
    return np.any(given, axis=0) if given else None


def crossed(strata: Array | None, classes: Array | None) -> Array | None:
    """Strata inside which both are equal."""
    if strata is None or classes is None:
        return classes if strata is None else strata
    return np.unique(np.stack([strata, classes]), axis=1, return_inverse=True)[1].reshape(-1)
