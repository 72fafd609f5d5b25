"""Ways to look at the same pairs: whitened, as they were given, or only along their strongest directions.

A rotation keeps inner products, but only in units in which it is one: those of the rows as given, if both sides are
measured alike; those of whitened rows, if there are pairs enough to whiten all directions; those of the strongest
directions, whitened, if the weak ones are noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import FloatArray
from inlier.rows import PairedRows, principal_directions, summarise_columns
from inlier.rows.namespaces import from_host

_STRONGEST = (8, 32, 128)  # directions


@dataclass(frozen=True, eq=False)
class View:
    """Linear maps of prepared rows, one per side; None leaves them as they are."""

    of_x: FloatArray | None = None
    of_y: FloatArray | None = None

    def __call__(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return rows, where they are, as this view shows them."""
        return _mapped(x, self.of_x), _mapped(y, self.of_y)


def _mapped(rows: Any, linear: FloatArray | None) -> Any:
    return rows if linear is None else rows @ from_host(linear, rows)


def as_given(pairs: PairedRows) -> View:
    """Return the view that undoes the whitening: centred rows, each side in a unit of its own size."""
    of_x, of_y = (linear / np.abs(linear).max() for linear in (pairs.map_x.undo(), pairs.map_y.undo()))
    return View(of_x, of_y)


def views_of(pairs: PairedRows, x: FloatArray, y: FloatArray) -> list[View]:
    """Return the views worth trying, in the order of how often they are right; x and y are prepared rows of pairs."""
    given = as_given(pairs)
    strong_x, strong_y = (_whitened_directions(rows) for rows in given(x, y))
    views = [given, View()]
    for k in _STRONGEST:
        if k < min(strong_x.shape[1], strong_y.shape[1]):
            views.append(View(_mapped(given.of_x, strong_x[:, :k]), _mapped(given.of_y, strong_y[:, :k])))
    return views


def _whitened_directions(rows: FloatArray) -> FloatArray:
    """Columns that give rows their principal coordinates in units of their spread, the strongest first."""
    variances, directions = principal_directions(rows, summarise_columns(rows), np.ones(1))
    return (directions / np.sqrt(variances))[:, ::-1]
