"""Find pairs that agree with each other: any two of them have the same inner product on both sides.

If y_i = R x_i for the real pairs, then <x_i, x_j> = <y_i, y_j> for any two of them, whatever the rotation R. So even
with far fewer real pairs than dimensions, where no map can be learned, every real pair can be checked against all the
others. Let g_ij and h_ij be these inner products, of rows of unit length, in units of their spread.

1. The overlap K_ij = exp(-(g_ij - h_ij)^2 / 2 t^2), centred, has a leading eigenvector that is large on the real pairs:
   the paper's eigenvector, with agreement in place of the product g_ij h_ij, which wrong pairs reach by chance.
2. The pairs of the largest weights are the anchors. A pair's score is the weighted sum over the anchors of the log
   likelihood ratio of its inner products with them: two variables of correlation rho, as g_ij and h_ij are if i and j
   are real, against independent ones. Weight the pairs by their scores, and again, until it settles.

A rotation keeps inner products, but only in coordinates in which it is one: the original ones, if both sides are
measured alike; whitened ones, if there are pairs enough to whiten all directions; those of the strongest directions,
whitened, if the weak ones are noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.models.significance import SHARP, Significance
from inlier.rows import PairedRows, principal_directions, summarise_columns
from inlier.rows.backend import from_host, in_precision, namespace, take_rows
from inlier.rows.null_pairs import re_pairings

MOST_ROWS = 1_000  # pairs that are compared each with each
_STRONGEST = (8, 32, 128)  # directions that coordinates may be limited to
_MOST_ANCHORS, _FEWEST_ANCHORS = 100, 3
_TOLERANCES = (0.1, 0.3, 0.6)  # t, in units of the spread of inner products
_POWER_STEPS = 40
_STANDS_OUT = 3.0  # times the spread of an eigenvector's entries
_RE_PAIRINGS = 4  # of each pair, in each iteration
_STEPS, _SETTLED = 10, 0.01  # iterations at most; relative change of the weights that ends them
_LEAST_CORRELATION, _MOST_CORRELATION = 0.05, 0.9999
_SEPARATED = 1e-8  # p-value per anchor at which better coordinates would change nothing


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Linear maps of prepared rows, one per side, to compare inner products in; None leaves rows as they are."""

    of_x: FloatArray | None = None
    of_y: FloatArray | None = None

    def __call__(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return rows, where they are, in these coordinates."""
        return _mapped(x, self.of_x), _mapped(y, self.of_y)


def original_coordinates(pairs: PairedRows) -> Coordinates:
    """Return those that undo the whitening: centred rows, each side in a unit of its own size."""
    of_x, of_y = (linear / np.abs(linear).max() for linear in (pairs.map_x.undo(), pairs.map_y.undo()))
    return Coordinates(of_x, of_y)


def candidate_coordinates(pairs: PairedRows, x: FloatArray, y: FloatArray) -> list[Coordinates]:
    """Return those worth trying, in the order of how often they are right; x and y are prepared rows of pairs."""
    original = original_coordinates(pairs)
    strong_x, strong_y = (_whitened_directions(rows) for rows in original(x, y))
    candidates = [original, Coordinates()]
    for k in _STRONGEST:
        if k < min(strong_x.shape[1], strong_y.shape[1]):
            of_x, of_y = _mapped(original.of_x, strong_x[:, :k]), _mapped(original.of_y, strong_y[:, :k])
            candidates.append(Coordinates(of_x, of_y))
    return candidates


def _mapped(rows: Any, linear: FloatArray | None) -> Any:
    return rows if linear is None else rows @ from_host(linear, rows)


def _whitened_directions(rows: FloatArray) -> FloatArray:
    """Columns that give rows their principal coordinates in units of their spread, the strongest first."""
    variances, directions = principal_directions(rows, summarise_columns(rows), np.ones(1))
    return (directions / np.sqrt(variances))[:, ::-1]


@dataclass(frozen=True, eq=False)
class AnchorPairs:
    """Pairs that agree, and what the agreement of their inner products with another pair's is worth."""

    coordinates: Coordinates  # in which inner products are kept
    x: FloatArray  # the anchors' rows in those coordinates, of unit length, over the spread of inner products
    y: FloatArray  # the anchors' rows in those coordinates, of unit length, over the spread of inner products
    weights: FloatArray  # how likely each is real
    correlation: float  # of the inner products of two real pairs
    support: float  # sum of the weights of all pairs
    significance: Significance  # the pairs that were compared, beside their re-pairings

    def scores(self, x: Any, y: Any) -> Any:
        """Log likelihood ratio of each pair, as if its inner products with the anchors were independent."""
        g, h = self._inner_products(x, y)
        return _log_likelihood_ratio(g, h, self.correlation) @ from_host(self.weights, x)

    def scores_of_all_pairings(self, x: Any, y: Any, *, single: bool = False) -> Any:
        """Log likelihood ratio of x_i with y_j, for all i and j."""
        g, h = in_precision(self._inner_products(x, y), single=single)
        total = 0.0
        for k, weight in enumerate(self.weights):
            total = total + float(weight) * _log_likelihood_ratio(g[:, k][:, None], h[:, k][None, :], self.correlation)
        return total

    def pairings(self, x: Any, y: Any) -> Callable[[Array, Array], Any]:
        """What scores x_i with y_j, given numbers i and j."""
        (g, h), weights = self._inner_products(x, y), from_host(self.weights, x)
        return lambda i, j: _log_likelihood_ratio(take_rows(g, i), take_rows(h, j), self.correlation) @ weights

    @property
    def is_separated(self) -> bool:
        """Whether the pairs behind this score so far above re-pairings that better coordinates would change nothing."""
        return self.significance.berk_jones > -np.log(_SEPARATED) * self.support

    def _inner_products(self, x: Any, y: Any) -> tuple[Any, Any]:
        x, y = self.coordinates(x, y)
        return unit(x) @ from_host(self.x.T, x), unit(y) @ from_host(self.y.T, y)


def find_anchors(
    x: FloatArray,
    y: FloatArray,
    candidates: Iterable[Coordinates],
    rng: np.random.RandomState,
    labels: Array,
) -> AnchorPairs | None:
    """Find the pairs that agree best with each other in one of the coordinates; None if there are none.

    Prepared pairs come in random order, and the first of them are compared; ``labels`` are those of
    `inlier.rows.null_pairs`.
    """
    x, y, labels = x[:MOST_ROWS], y[:MOST_ROWS], labels[:, :MOST_ROWS]
    best: AnchorPairs | None = None
    for coordinates in candidates:
        products = _InnerProducts.of(coordinates, x, y, labels, rng)
        for start in products.starts():
            found = products.settled(start)
            if found is not None and (best is None or found.significance.berk_jones > best.significance.berk_jones):
                best = found
                if found.is_separated:
                    return found
    return best


@dataclass(frozen=True, eq=False)
class _InnerProducts:
    """Some pairs in certain coordinates, with all their inner products."""

    coordinates: Coordinates
    x: FloatArray
    y: FloatArray
    g: FloatArray
    h: FloatArray
    labels: Array
    rng: np.random.RandomState

    @staticmethod
    def of(
        coordinates: Coordinates, x: FloatArray, y: FloatArray, labels: Array, rng: np.random.RandomState
    ) -> _InnerProducts:
        sides = []
        for rows in coordinates(x, y):
            unit_rows = unit(rows)
            products = unit_rows @ unit_rows.T
            np.fill_diagonal(products, 0.0)
            spread = max(float(products.std()), np.finfo(np.float64).tiny)
            sides.append((unit_rows / spread, products / spread))
        (x, g), (y, h) = sides
        return _InnerProducts(coordinates, x, y, g, h, labels, rng)

    def starts(self) -> Iterator[FloatArray]:
        """Weights from the leading eigenvector of the agreement, at several tolerances."""
        squared = ((self.g - self.h) ** 2).astype(np.float32)
        for tolerance in _TOLERANCES:
            agreement = np.exp(squared / np.float32(-2 * tolerance**2))
            np.fill_diagonal(agreement, 0.0)
            mean = agreement.mean(axis=0)
            agreement -= mean[:, None] + (mean - mean.mean())
            vector = _leading_eigenvector(agreement, self.rng)
            typical = 1.4826 * np.median(np.abs(vector))
            weights = np.where(vector > _STANDS_OUT * typical, vector, 0.0)
            if np.count_nonzero(weights) >= _FEWEST_ANCHORS:
                yield np.minimum(weights / np.sort(weights)[-_FEWEST_ANCHORS], 1.0)

    def settled(self, weights: FloatArray) -> AnchorPairs | None:
        """Weight the pairs by their scores against the anchors among the others, until that changes little."""
        for _ in range(_STEPS):
            significance = self._significance(weights)
            updated = significance.weights(SHARP)
            if np.count_nonzero(updated) < _FEWEST_ANCHORS:
                return None
            change = np.abs(updated - weights).sum() / updated.sum()
            weights = updated
            if change < _SETTLED:
                break
        best = _largest(weights)
        rho = self._correlation(best, weights[best])
        support = float(weights.sum())
        return AnchorPairs(self.coordinates, self.x[best], self.y[best], weights[best], rho, support, significance)

    def _significance(self, weights: FloatArray) -> Significance:
        """Each pair beside re-pairings, by anchors other than itself."""
        anchors = _largest(weights)
        rho = self._correlation(anchors, weights[anchors])
        number = np.full(weights.size, -1)
        number[anchors] = np.arange(anchors.size)

        def scores(i: Array, j: Array) -> FloatArray:
            ratios = _log_likelihood_ratio(self.g[np.ix_(i, anchors)], self.h[np.ix_(j, anchors)], rho)
            for own in (i, j):  # a pair is no anchor of its own
                rows = np.flatnonzero(number[own] >= 0)
                ratios[rows, number[own[rows]]] = 0.0
            return ratios @ weights[anchors]

        everyone = np.arange(weights.size)
        null = [scores(i, j) for i, j in re_pairings(self.labels, _RE_PAIRINGS, self.rng)]
        return Significance.of(scores(everyone, everyone), np.concatenate([np.empty(0), *null]))

    def _correlation(self, chosen: Array, weights: FloatArray) -> float:
        """Weighted correlation of the inner products of every two of the chosen."""
        g, h = self.g[np.ix_(chosen, chosen)], self.h[np.ix_(chosen, chosen)]  # the diagonals are 0
        covariance, of_g, of_h = (float(weights @ products @ weights) for products in (g * h, g * g, h * h))
        return float(np.clip(covariance / np.sqrt(max(of_g * of_h, 1e-300)), _LEAST_CORRELATION, _MOST_CORRELATION))


def _log_likelihood_ratio(g: Any, h: Any, correlation: float) -> Any:
    """Log density of (g, h), correlated, over that of independent ones; both of Student's t with two degrees.

    Long tails, because inner products have them, and because an anchor may be wrong: none can rule a pair out alone.
    """
    xp, rest = namespace(g), 1 - correlation**2
    apart = g**2 + h**2
    together = (apart - (2 * correlation) * g * h) / rest
    return 2 * (xp.log1p(apart / 2) - xp.log1p(together / 2)) - float(np.log(rest)) / 2


def _largest(weights: FloatArray) -> Array:
    """Numbers of the pairs with the largest weights that are not 0, in rising order."""
    n = min(np.count_nonzero(weights), _MOST_ANCHORS)
    return np.sort(np.argsort(-weights, kind="stable")[:n])


def _leading_eigenvector(matrix: FloatArray, rng: np.random.RandomState) -> FloatArray:
    """Return the eigenvector of the eigenvalue farthest from 0, with its long tail upwards."""
    vector = rng.standard_normal(len(matrix)).astype(matrix.dtype)
    for _ in range(_POWER_STEPS):
        vector = matrix @ vector
        vector /= float(np.linalg.norm(vector)) or 1.0
    vector = vector.astype(np.float64)
    return vector if np.sum(vector**3) >= 0 else -vector


def unit(rows: Any) -> Any:
    """Scale rows to unit length; rows of zeros stay."""
    xp = namespace(rows)
    length = xp.sqrt(xp.vecdot(rows, rows))
    return rows / xp.where(length > 0, length, xp.ones_like(length))[:, None]
