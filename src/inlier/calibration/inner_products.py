"""Find pairs that vouch for each other: any two of them have the same inner product on both sides.

If y_i = R x_i for the real pairs, then <x_i, x_j> = <y_i, y_j> for any two of them, whatever the rotation R. So even
with far fewer real pairs than dimensions, where no map can be learned, every real pair has all the others as its
witnesses. Let g_ij and h_ij be these inner products, of rows of unit length, in units of their spread.

1. The overlap K_ij = exp(-(g_ij - h_ij)^2 / 2 t^2), centred, has a leading eigenvector that is large on the real pairs:
   the paper's eigenvector, with agreement in place of the product g_ij h_ij, which wrong pairs reach by chance.
2. A pair's score is the sum of its witnesses' log likelihood ratios: two variables of correlation rho, as g_ij
   and h_ij are if i and j are real, against independent ones. Weight the pairs by their scores, and again, until it
   settles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.significance import Standing
from inlier.calibration.views import View
from inlier.rows.namespaces import from_host, namespace
from inlier.rows.null_pairs import re_pairings

MOST_ROWS = 1_000  # pairs that are compared each with each
_MOST_WITNESSES = 100
_FEWEST_WITNESSES = 3
_TOLERANCES = (0.1, 0.3, 0.6)  # t, in units of the spread of inner products
_POWER_STEPS = 40
_STANDS_OUT = 3.0  # times the spread of an eigenvector's entries
_STEPS, _SETTLED = 10, 0.01
_SHARPNESS = 2.0
_LEAST_CORRELATION, _MOST_CORRELATION = 0.05, 0.9999
_BEYOND_DOUBT = 1e-8  # p-value


@dataclass(frozen=True, eq=False)
class Witnesses:
    """Pairs that agree, and what their agreement with another pair is worth.

    Attributes
    ----------
    view : View
        The rows in which inner products are kept.
    x, y : ndarray of shape (k, d)
        The witnesses' rows in that view, of unit length, over the spread of inner products.
    weights : ndarray of shape (k,)
        How likely each is real.
    correlation : float
        Of the inner products of two real pairs.
    support : float
        Sum of the weights of all pairs.
    standing : Standing
        How the pairs that were looked at stand beside re-pairings.
    """

    view: View
    x: FloatArray
    y: FloatArray
    weights: FloatArray
    correlation: float
    support: float
    standing: Standing

    def scores(self, x: Any, y: Any) -> Any:
        """Log likelihood ratio of each pair, as if the witnesses were independent."""
        of_x, of_y = self._inner_products(x, y)
        return _testimony(of_x, of_y, self.correlation) @ from_host(self.weights, x)

    def scores_of_all_pairings(self, x: Any, y: Any) -> Any:
        """Log likelihood ratio of x_i with y_j, for all i and j."""
        of_x, of_y = self._inner_products(x, y)
        total = 0.0
        for k, weight in enumerate(self.weights):
            total = total + float(weight) * _testimony(of_x[:, k][:, None], of_y[:, k][None, :], self.correlation)
        return total

    @property
    def stand_apart(self) -> bool:
        """Whether those behind this score so far above the re-pairings that a better view would change nothing."""
        return self.standing.surprise > -np.log(_BEYOND_DOUBT) * self.support

    def _inner_products(self, x: Any, y: Any) -> tuple[Any, Any]:
        seen_x, seen_y = self.view(x, y)
        return _unit(seen_x) @ from_host(self.x.T, x), _unit(seen_y) @ from_host(self.y.T, y)


def find_witnesses(
    x: FloatArray, y: FloatArray, views: Iterable[View], rng: np.random.RandomState, points: Array
) -> Witnesses | None:
    """Find the pairs that agree best with each other in one of the views; None if there are none.

    Parameters
    ----------
    x, y : ndarray of shape (n, d_x), (n, d_y)
        Prepared pairs in random order; the first of them are looked at.
    views : iterable of View
        In which inner products may be kept.
    rng : RandomState
        Draws the re-pairings.
    points : ndarray of int, shape (2, n)
        Numbers that are equal for equal points, of x and of y.
    """
    x, y, points = x[:MOST_ROWS], y[:MOST_ROWS], points[:, :MOST_ROWS]
    best: Witnesses | None = None
    for view in views:
        circle = _Circle.of(view, x, y, points, rng)
        for start in circle.starts():
            found = circle.settled(start)
            if found is not None and (best is None or found.standing.surprise > best.standing.surprise):
                best = found
                if found.stand_apart:
                    return found
    return best


@dataclass(frozen=True, eq=False)
class _Circle:
    """Some pairs in one view, with all their inner products."""

    view: View
    x: FloatArray
    y: FloatArray
    of_x: FloatArray
    of_y: FloatArray
    points: Array
    rng: np.random.RandomState

    @staticmethod
    def of(view: View, x: FloatArray, y: FloatArray, points: Array, rng: np.random.RandomState) -> _Circle:
        sides = []
        for rows in view(x, y):
            unit = _unit(rows)
            products = unit @ unit.T
            np.fill_diagonal(products, 0.0)
            spread = max(float(products.std()), np.finfo(np.float64).tiny)
            sides.append((unit / spread, products / spread))
        return _Circle(view, sides[0][0], sides[1][0], sides[0][1], sides[1][1], points, rng)

    def starts(self) -> Iterator[FloatArray]:
        """Weights from the leading eigenvector of the agreement, at several tolerances."""
        squared = ((self.of_x - self.of_y) ** 2).astype(np.float32)
        for tolerance in _TOLERANCES:
            agreement = np.exp(squared / np.float32(-2 * tolerance**2))
            np.fill_diagonal(agreement, 0.0)
            mean = agreement.mean(axis=0)
            agreement -= mean[:, None] + (mean - mean.mean())
            vector = _leading_eigenvector(agreement, self.rng)
            typical = 1.4826 * np.median(np.abs(vector))
            weights = np.where(vector > _STANDS_OUT * typical, vector, 0.0)
            if np.count_nonzero(weights) >= _FEWEST_WITNESSES:
                yield np.minimum(weights / np.sort(weights)[-_FEWEST_WITNESSES], 1.0)

    def settled(self, weights: FloatArray) -> Witnesses | None:
        """Weight the pairs by what the others say of them, until that changes little."""
        for _ in range(_STEPS):
            standing = self._standing(weights)
            updated = standing.weights(_SHARPNESS)
            if np.count_nonzero(updated) < _FEWEST_WITNESSES:
                return None
            change = np.abs(updated - weights).sum() / updated.sum()
            weights = updated
            if change < _SETTLED:
                break
        chosen = _strongest(weights)
        rho = self._correlation(chosen, weights[chosen])
        return Witnesses(
            self.view, self.x[chosen], self.y[chosen], weights[chosen], rho, float(weights.sum()), standing
        )

    def _standing(self, weights: FloatArray) -> Standing:
        """How far each pair stands out among re-pairings, by the word of witnesses other than itself."""
        chosen = _strongest(weights)
        rho = self._correlation(chosen, weights[chosen])
        number = np.full(weights.size, -1)
        number[chosen] = np.arange(chosen.size)

        def scores(i: Array, j: Array) -> FloatArray:
            said = _testimony(self.of_x[np.ix_(i, chosen)], self.of_y[np.ix_(j, chosen)], rho)
            for own in (i, j):  # nobody is his own witness
                rows = np.flatnonzero(number[own] >= 0)
                said[rows, number[own[rows]]] = 0.0
            return said @ weights[chosen]

        everyone = np.arange(weights.size)
        return Standing.of(scores(everyone, everyone), scores(*re_pairings(self.points, self.rng)))

    def _correlation(self, chosen: Array, weights: FloatArray) -> float:
        """Weighted correlation of the inner products of every two of the chosen."""
        g, h = self.of_x[np.ix_(chosen, chosen)], self.of_y[np.ix_(chosen, chosen)]  # the diagonals are 0
        covariance, of_g, of_h = (float(weights @ products @ weights) for products in (g * h, g * g, h * h))
        return float(np.clip(covariance / np.sqrt(max(of_g * of_h, 1e-300)), _LEAST_CORRELATION, _MOST_CORRELATION))


def _testimony(g: Any, h: Any, correlation: float) -> Any:
    """Log density of (g, h), correlated, over that of independent ones; both of Student's t with two degrees.

    Long tails, because inner products have them, and because a witness may be wrong: no word against a pair is final.
    """
    xp, rest = namespace(g), 1 - correlation**2
    apart = g**2 + h**2
    together = (apart - (2 * correlation) * g * h) / rest
    return 2 * (xp.log1p(apart / 2) - xp.log1p(together / 2)) - float(np.log(rest)) / 2


def _strongest(weights: FloatArray) -> Array:
    """Numbers of the pairs with the largest weights that are not 0, in rising order."""
    n = min(np.count_nonzero(weights), _MOST_WITNESSES)
    return np.sort(np.argsort(-weights, kind="stable")[:n])


def _leading_eigenvector(matrix: FloatArray, rng: np.random.RandomState) -> FloatArray:
    """Return the eigenvector of the eigenvalue farthest from 0, with its long tail upwards."""
    vector = rng.standard_normal(len(matrix)).astype(matrix.dtype)
    for _ in range(_POWER_STEPS):
        vector = matrix @ vector
        vector /= float(np.linalg.norm(vector)) or 1.0
    vector = vector.astype(np.float64)
    return vector if np.sum(vector**3) >= 0 else -vector


def _unit(rows: Any) -> Any:
    """Scale rows to unit length; rows of zeros stay."""
    xp = namespace(rows)
    length = xp.sqrt(xp.vecdot(rows, rows))
    return rows / xp.where(length > 0, length, xp.ones_like(length))[:, None]
