"""Scores that are inner products of what is made of x and what is made of y, and so are cheap for any x with any y."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from inlier._typing import Array
from inlier.rows.backend import in_precision, namespace, take_rows


class InnerProducts(ABC):
    """A score <a(x), b(y)>."""

    @abstractmethod
    def sides(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Rows a(x) and b(y) of prepared rows."""

    def scores(self, x: Any, y: Any) -> Any:
        """Score of each pair."""
        a, b = self.sides(x, y)
        return namespace(a).vecdot(a, b)

    def scores_of_all_pairings(self, x: Any, y: Any, *, single: bool = False) -> Any:
        """Scores of x_i with y_j, for all i and j."""
        a, b = in_precision(self.sides(x, y), single=single)
        return a @ b.T

    def pairings(self, x: Any, y: Any) -> Callable[[Array, Array], Any]:
        """What scores x_i with y_j, given numbers i and j."""
        a, b = self.sides(x, y)
        return lambda i, j: namespace(a).vecdot(take_rows(a, i), take_rows(b, j))
