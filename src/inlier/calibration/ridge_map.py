"""Few rows, many columns: two ridge regressions, of y on x and of x on y, and how well their directions agree.

Where there are hardly more pairs than columns, noise variances cannot be told column by column, and a likelihood made
of them is worth little. What is left is the direction: a pair's score is cos(y_i, y predicted from x_i) + cos(x_i, x
predicted from y_i). How strongly each ridge pulls towards 0 is chosen by the same agreement of pairs that are left out.

All columns take part, in coordinates that the strong directions do not dominate: prepared rows are at most as wide as
there are rows, for they come from each table's n x n matrix of inner products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.calibration.inner_products import unit
from inlier.calibration.p_values import Significance
from inlier.rows.backend import beside, namespace, take_rows
from inlier.rows.null_pairs import re_pairings

_FEWEST_PAIRS = 3
_RE_PAIRINGS = 4  # of each pair
_SHARPNESS = 2.0  # pairs that are more likely wrong than real do not count
_LEAST_LEFT = 1e-6  # of a residual: a pair that alone decides its prediction says nothing of it
_STRENGTHS = 10.0 ** np.arange(-3.0, 1.5, 0.5)
_FIRST = 6  # of them, that is tried; then stronger or weaker ones as long as they agree better
_FREE = 10.0  # typical rows' lengths of the constant beside a row: the ridge hardly shrinks its coefficient, the offset


@dataclass(frozen=True, eq=False)
class RidgeMap:
    """Two ridge regressions, one each way."""

    forward: Any  # coefficients of y on x, and its offset
    backward: Any  # coefficients of x on y, and its offset
    support: float  # how many of the pairs that they were learned from seem real
    significance: Significance  # those pairs beside their re-pairings, scored by fits without them

    def scores(self, x: Any, y: Any) -> Any:
        """Sum of the cosines of each pair."""
        return _cosines(_predicted(x, self.forward), y) + _cosines(_predicted(y, self.backward), x)

    def scores_of_all_pairings(self, x: Any, y: Any) -> Any:
        """Sum of the cosines of x_i with y_j, for all i and j."""
        forward = unit(_predicted(x, self.forward)) @ unit(y).T
        return forward + unit(x) @ unit(_predicted(y, self.backward)).T


def learn_ridge(x: Any, y: Any, rng: np.random.RandomState, points: Array) -> RidgeMap | None:
    """Learn both ways from prepared pairs of which a good part is real; None if there are too few to learn from."""
    if x.shape[0] < _FEWEST_PAIRS:
        return None
    there, back = _Ridge.best(x, y), _Ridge.best(y, x)
    scores = _cosines(there.without_own_pair(), y) + _cosines(back.without_own_pair(), x)
    i, j = np.concatenate(list(re_pairings(points, _RE_PAIRINGS, rng)), axis=1)  # x_i with y_j, by fits without either
    null = _cosines(there.without_both(i, j), take_rows(y, j)) + _cosines(back.without_both(j, i), take_rows(x, i))
    significance = Significance.of(scores, null)
    support = float(significance.weights(_SHARPNESS).sum())
    return RidgeMap(there.coefficients(), back.coefficients(), support, significance)


@dataclass(frozen=True, eq=False)
class _Ridge:
    """Ridge regression of y on x, with A = X^T X + ridge I in the eigenvectors V of X^T X, and z = V^T x.

    With h_ij = x_i^T A^-1 x_j, deleting the pairs I changes their residuals to (1 - h_II)^-1 r_I.
    """

    y: Any
    z: Any
    directions: Any  # V
    moment: Any  # Z^T Y
    shrunk: Any  # 1 / (eigenvalue + ridge)

    @staticmethod
    def best(x: Any, y: Any) -> _Ridge:
        """The one whose strength agrees best with the pairs that are left out."""
        xp = namespace(x)
        length = float(xp.mean(xp.vecdot(x, x)))
        x = xp.concat([x, xp.full_like(x[:, :1], _FREE * length**0.5)], axis=1)
        eigenvalues, directions = xp.linalg.eigh(x.T @ x)
        eigenvalues = xp.maximum(eigenvalues, xp.zeros_like(eigenvalues))
        z = x @ directions
        moment = z.T @ y

        def fit(k: int) -> tuple[float, _Ridge]:
            ridge = _Ridge(y, z, directions, moment, 1 / (eigenvalues + float(_STRENGTHS[k]) * length))
            return float(xp.mean(_cosines(ridge.without_own_pair(), y))), ridge

        k, (highest, best) = _FIRST, fit(_FIRST)
        for step in (1, -1):
            while 0 <= k + step < _STRENGTHS.size:
                agreement, other = fit(k + step)
                if agreement <= highest:
                    break
                k, highest, best = k + step, agreement, other
            if k != _FIRST:
                break
        return best

    def without_own_pair(self) -> Any:
        """Predict each y_i by the fit that leaves pair i out."""
        return self.y - self._residuals() / (1 - self._leverages())[:, None]

    def without_both(self, i: Array, j: Array) -> Any:
        """Predict y at x_i by the fit that leaves pairs i and j out."""
        xp, residuals = namespace(self.z), self._residuals()
        left = 1 - self._leverages()
        left_i, left_j = take_rows(left, i), take_rows(left, j)
        cross = xp.vecdot(take_rows(self.z, i) * self.shrunk, take_rows(self.z, j))  # h_ij
        determinant = left_i * left_j - cross**2
        determinant = xp.maximum(determinant, xp.full_like(determinant, _LEAST_LEFT))
        deleted = left_j[:, None] * take_rows(residuals, i) + cross[:, None] * take_rows(residuals, j)
        return take_rows(self.y, i) - deleted / determinant[:, None]

    def coefficients(self) -> tuple[Any, Any]:
        """Return the matrix for rows without their constant, and the offset."""
        all_of_them = self.directions @ (self.shrunk[:, None] * self.moment)
        constant = self.z @ self.directions[-1, :]  # the constant column
        return all_of_them[:-1, :], all_of_them[-1, :] * float(constant[0])

    def _residuals(self) -> Any:
        return self.y - (self.z * self.shrunk) @ self.moment

    def _leverages(self) -> Any:
        xp = namespace(self.z)
        leverage = xp.vecdot(self.z * self.shrunk, self.z)
        return xp.minimum(leverage, xp.full_like(leverage, 1 - _LEAST_LEFT))


def _predicted(rows: Any, fit: tuple[Any, Any]) -> Any:
    coefficients, offset = fit
    return rows @ beside(coefficients, rows) + beside(offset, rows)


def _cosines(a: Any, b: Any) -> Any:
    return namespace(a).vecdot(unit(a), unit(b))
