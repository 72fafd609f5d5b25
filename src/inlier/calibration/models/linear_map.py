"""Learn how y follows from x when many of the pairs are wrong, and what each pair's agreement is worth.

The model of a real pair is y = B^T x + b + noise, with its own noise variance per coordinate of y; of a wrong pair,
y of unit variance that knows nothing of x. All rows together are centred, but a few real ones need not be: hence b.
The score of a pair is the logarithm of its likelihood ratio. B and b are found by iteration: fit with weights (ridge:
B is as random as a rotation, so that few real pairs do not overfit), score each pair by the fit *without it*, score
re-pairings by the fit *without either of the two*, weight each pair by how much denser its score is among the pairs
than among the re-pairings, fit again. The first fit has equal weights, and its coefficients are the matrix X^T Y of
the paper's row sums, scaled.

Where the relation is weak, the weights of real pairs are low too, and the iteration may end at a few pairs that are
alike: of yes and no, say, those that say no to all, which agree without any noise. `learn_regression` gives all pairs
the same weight and stays there; which of the two is meant is asked of pairs that were not learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.models.significance import SHARP, Significance
from inlier.rows.backend import beside, from_host, in_precision, namespace, ridge_solver, take_rows, to_host
from inlier.rows.null_pairs import re_pairings
from inlier.rows.threads import pieces, pieces_of_many

_GENTLE = 1.25  # sharpness at first, when the scores say little and every real pair is needed
_FROM_ALL_PAIRS = (_GENTLE,) * 4 + (SHARP,) * 8
_FROM_A_START = (SHARP,) * 8  # where good weights to start from are known
_RE_PAIRINGS, _MOST_RE_PAIRINGS = 4, 20_000  # of each pair, in each iteration; at most about so many in all
_FEWEST_PAIRS = 3
_FEWEST_EFFECTIVE = 2.0  # weights that add up to less have found nothing
_SETTLED = 0.01  # relative change of the weights that ends the iteration
LEAST_VARIANCE = 1e-12  # of the noise, relative to that of y: exact data has none
_LEAST_RIDGE = 1e-8
_VARIANCE_OF_A_START = 0.01  # of the noise around the first fit to pairs that are known to agree
_VARIANCE_PRIOR = 10.0  # pairs' worth of pull of each coordinate's noise variance towards their mean
_FULL_LEVERAGE = 1 - 1e-6


@dataclass(frozen=True, eq=False)
class LinearMap:
    """The learned map, where it was learned, and the noise around it."""

    coefficients: Any  # B in y = B^T x + b
    offset: Any  # b
    variance: FloatArray  # of the noise
    support: float  # how many pairs it was learned from: the sum of their weights
    significance: Significance  # the pairs it was learned from beside their re-pairings, each scored without itself
    turn: Any = None  # orthogonal: what brings y to the coordinates of B, in which the noise is uncorrelated

    def turned(self, y: Any) -> Any:
        """Rows of y in the coordinates that the map is in."""
        return y if self.turn is None else y @ beside(self.turn, y)

    def scores(self, x: Any, y: Any) -> Any:
        """Log likelihood ratio of each pair."""
        noise, y = _Noise(self.variance, y), self.turned(y)
        parts = [(take_rows(x, k), take_rows(y, k)) for k in pieces_of_many(x)]
        return namespace(y).concat([noise.log_likelihood_ratio(some, self._predicted(of)) for of, some in parts])

    def scores_of_all_pairings(self, x: Any, y: Any, *, single: bool = False) -> Any:
        """Log likelihood ratio of x_i with y_j, for all i and j."""
        of_x, of_y = in_precision(self.factors(x, y), single=single)
        return of_x @ of_y.T

    def factors(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Rows whose inner products are the scores of x_i with y_j; the last but one column of the first is a term."""
        xp, predicted, y = namespace(x), self._predicted(x), self.turned(y)
        scaled = predicted / from_host(self.variance, x)
        of_y = (y**2 @ from_host(1 - 1 / self.variance, x) - float(np.log(self.variance).sum())) / 2
        of_x = -xp.vecdot(predicted, scaled) / 2
        left = xp.concat([scaled, of_x[:, None], xp.ones_like(of_x)[:, None]], axis=1)
        return left, xp.concat([y, xp.ones_like(of_y)[:, None], of_y[:, None]], axis=1)

    def pairings(self, x: Any, y: Any) -> Callable[[Array, Array], Any]:
        """What scores x_i with y_j, given numbers i and j; each x_i is predicted from once."""
        predicted, y = self._predicted(x), self.turned(y)
        noise = _Noise(self.variance, y)
        return lambda i, j: noise.log_likelihood_ratio(take_rows(y, j), take_rows(predicted, i))

    def _predicted(self, x: Any) -> Any:
        return x @ beside(self.coefficients, x) + beside(self.offset, x)


class Regression(LinearMap):
    """The same, learned from all pairs alike; its noise may be correlated."""


def learn_map(
    x: Any, y: Any, rng: np.random.RandomState, labels: Array | None = None, start: FloatArray | None = None
) -> LinearMap | None:
    """Learn the map from pairs of which many may be wrong; None if no part of them agrees.

    Pairs are centred, with mean square 1 per coordinate. What is done to rows is done where they are; which pairs
    count, and how much, is chosen here. ``labels`` are those of `inlier.rows.null_pairs`, by default all
    different; ``start`` are weights to start from, where pairs that agree are known.
    """
    n, d_x = x.shape
    if n < _FEWEST_PAIRS:
        return None
    x = _with_constant(x)
    labels = np.stack([np.arange(n)] * 2) if labels is None else labels
    weights: FloatArray = np.ones(n) if start is None else start
    variance: FloatArray = np.full(y.shape[1], 1.0 if start is None else _VARIANCE_OF_A_START)
    for iteration, sharpness in enumerate(_FROM_ALL_PAIRS if start is None else _FROM_A_START):
        whole = start is None and iteration == 0
        fit = _WeightedFit(x, y, weights, ridge=d_x * max(float(variance.mean()), _LEAST_RIDGE), whole=whole)
        variance = fit.residual_variance()
        significance = _significance(fit, _Noise(variance, y), labels, rng)
        updated = significance.weights(sharpness)
        if updated.sum() < _FEWEST_EFFECTIVE:
            return None
        change = np.abs(updated - weights).sum() / updated.sum()
        weights = updated
        if sharpness == SHARP and change < _SETTLED:
            break
    fit = _WeightedFit(x, y, weights, ridge=d_x * max(float(variance.mean()), _LEAST_RIDGE))
    return LinearMap(*fit.map, fit.residual_variance(), float(weights.sum()), significance)


def learn_regression(x: Any, y: Any, rng: np.random.RandomState, labels: Array) -> Regression | None:
    """Learn from pairs of which most are real, however little they tell; None if no part of them agrees."""
    n, d_x = x.shape
    if n < _FEWEST_PAIRS:
        return None
    x, weights = _with_constant(x), np.ones(n)
    first = _WeightedFit(x, y, weights, ridge=d_x)
    turn, noise = first.directions_of_noise(), float(first.residual_variance().mean())
    fit = _WeightedFit(x, y @ turn, weights, ridge=d_x * max(noise, _LEAST_RIDGE))
    variance = fit.residual_variance()
    significance = _significance(fit, _Noise(variance, y), labels, rng)
    support = float(significance.weights(SHARP).sum())
    return Regression(*fit.map, variance, support, significance, turn) if support >= _FEWEST_EFFECTIVE else None


def _with_constant(x: Any) -> Any:
    """A column of ones beside the others: its coefficient is b."""
    return namespace(x).concat([x, namespace(x).ones_like(x[:, :1])], axis=1)


def _significance(fit: _WeightedFit, noise: _Noise, labels: Array, rng: np.random.RandomState) -> Significance:
    """The pairs beside their re-pairings, both scored by fits that have not seen them."""
    scores = noise.log_likelihood_ratio(fit.y, fit.without_own_pair())
    n_shifts = int(np.clip(_MOST_RE_PAIRINGS // labels.shape[1], 1, _RE_PAIRINGS))
    i, j = np.concatenate(list(re_pairings(labels, n_shifts, rng)), axis=1)
    null = namespace(scores).concat([scores[:0], *fit.re_paired_scores(i, j, noise)])
    return Significance.of(scores, null)


class _Noise:
    """Noise of known variance around predictions, for rows that are where ``like`` is."""

    def __init__(self, variance: FloatArray, like: Any) -> None:
        self._precision = from_host(1 / variance, like)
        self._log_determinant = float(np.log(variance).sum())

    def log_likelihood_ratio(self, y: Any, predicted: Any) -> Any:
        """log N(y; predicted, variance) - log N(y; 0, 1), summed over coordinates."""
        residual = y - predicted
        return (namespace(y).vecdot(y, y) - residual**2 @ self._precision - self._log_determinant) / 2


class _WeightedFit:
    """Ridge regression of y on x with weights, and its predictions without one or two of the pairs.

    With A = X^T W X + ridge I and h_ij = x_i^T A^-1 x_j, deleting the pairs I changes their residuals to
    (1 - h_II W_II)^-1 r_I; a pair of weight 0 changes nothing, so h is only needed where a weight is not 0.
    The rows are where the caller has them; the weights, and the numbers of pairs, are NumPy's.
    """

    def __init__(self, x: Any, y: Any, weights: FloatArray, ridge: float, whole: bool = False) -> None:
        xp, active = namespace(x), np.flatnonzero(weights)
        self.x, self.y, self._host_weights, self._weights = x, y, weights, from_host(weights, x)
        self._rank = np.full(weights.size, active.size)  # among the pairs of some weight; past the last if it has none
        self._rank[active] = np.arange(active.size)
        active_x, active_y, active_w = (take_rows(rows, from_host(active, x)) for rows in (x, y, self._weights))
        weighted_x = active_x * active_w[:, None]
        moment = weighted_x.T @ active_y
        if whole:  # equal weights on prepared rows: X^T X is near n I, and the fit is the cross moment
            scale = float(xp.sum(xp.vecdot(weighted_x, active_x))) / x.shape[1] + ridge
            self.coefficients, self._solved = moment / scale, active_x / scale  # A^-1 X^T W Y, A^-1 x
        else:
            solve = ridge_solver(weighted_x.T @ active_x, ridge)
            self.coefficients, self._solved = solve(moment), solve(active_x.T).T
        self._residual = y - x @ self.coefficients
        leverage = xp.vecdot(weighted_x, self._solved)  # w_i h_ii
        leverage = xp.minimum(leverage, xp.full_like(leverage, _FULL_LEVERAGE))
        self._leverage = take_rows(xp.concat([leverage, xp.zeros_like(leverage[:1])]), self._rank)

    def without_own_pair(self) -> Any:
        """Predict each y_i by the fit that leaves pair i out."""
        return self.y - self._residual / (1 - self._leverage)[:, None]

    def re_paired_scores(self, i: Array, j: Array, noise: _Noise) -> Iterator[Any]:
        """Scores of x_i with y_j by the fits that leave pairs i and j out, in any order."""
        touched = (self._host_weights[i] > 0) | (self._host_weights[j] > 0)
        for rule, part in ((self._without_both, np.flatnonzero(touched)), (self._as_it_is, np.flatnonzero(~touched))):
            for rows in pieces(self.x, n_rows=part.size):
                yield noise.log_likelihood_ratio(*rule(i[part[rows]], j[part[rows]]))

    def _without_both(self, i: Array, j: Array) -> tuple[Any, Any]:
        """Each y_j, and y predicted at x_i by the fit without pairs i and j, of which at least one has a weight."""
        known, other = np.where(self._host_weights[j] > 0, (j, i), (i, j))  # A^-1 x is known for those with a weight
        i, j, known, other = self._sent(i, j, self._rank[known], other)
        xp = namespace(self.x)
        cross = xp.vecdot(take_rows(self.x, other), take_rows(self._solved, known))  # h_ij
        left_i, left_j = 1 - take_rows(self._leverage, i), 1 - take_rows(self._leverage, j)
        of_i, of_j = take_rows(self._weights, i) * cross, take_rows(self._weights, j) * cross
        determinant = left_i * left_j - of_i * of_j
        determinant = xp.maximum(determinant, xp.full_like(determinant, 1 - _FULL_LEVERAGE))
        deleted = (left_j / determinant)[:, None] * take_rows(self._residual, i)
        deleted = deleted + (of_j / determinant)[:, None] * take_rows(self._residual, j)
        return take_rows(self.y, j), take_rows(self.y, i) - deleted

    def _as_it_is(self, i: Array, j: Array) -> tuple[Any, Any]:
        """Each y_j, and y predicted at x_i: the fit without two pairs that have no weight is the fit itself."""
        i, j = self._sent(i, j)
        return take_rows(self.y, j), take_rows(self.y, i) - take_rows(self._residual, i)

    def _sent(self, *numbers: Array) -> tuple[Any, ...]:
        """Numbers of pairs where the pairs are, sent together: each journey waits for the device."""
        there = from_host(np.stack(numbers), self.x)
        return tuple(there[k, :] for k in range(len(numbers)))

    @property
    def map(self) -> tuple[Any, Any]:
        """The coefficients, and the offset."""
        return self.coefficients[:-1, :], self.coefficients[-1, :]

    def directions_of_noise(self) -> Any:
        """Orthogonal directions of y in which what is left of it is uncorrelated, as columns."""
        deleted = self._residual * (self._weights**0.5 / (1 - self._leverage))[:, None]
        return namespace(deleted).linalg.eigh(deleted.T @ deleted)[1]

    def residual_variance(self) -> FloatArray:
        """Noise variance per coordinate of y, from leave-one-out residuals; never above that of y itself."""
        total = self._host_weights.sum()
        deleted = self._weights / (1 - self._leverage) ** 2
        variance = to_host(deleted @ self._residual**2) / total
        shrunk = (total * variance + _VARIANCE_PRIOR * variance.mean()) / (total + _VARIANCE_PRIOR)
        return np.clip(shrunk, LEAST_VARIANCE, 1.0)
