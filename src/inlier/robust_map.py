"""Learn how y follows from x when many of the pairs are wrong, and what each pair's agreement is worth.

The model of a real pair is y = B^T x + noise, with its own noise variance per coordinate of y; of a wrong pair,
y of unit variance that knows nothing of x. The score of a pair is the logarithm of its likelihood ratio. B is
found by iteration: fit with weights (ridge: B is as random as a rotation, so that few real pairs do not
overfit), score each pair by the fit *without it*, score re-pairings by the fit *without either of the two*,
weight each pair by how much denser its score is among the pairs than among the re-pairings, fit again. The
first fit has equal weights, and its coefficients are the matrix X^T Y of the paper's row sums, scaled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from inlier.calibration import p_value_density, p_values
from inlier.engine.blocks import Array, FloatArray
from inlier.engine.namespaces import from_host, namespace

# A pair's weight is 1 - sharpness * (chance that it is wrong), at least 0. Gentle at first, when the scores
# say little and every real pair is needed; then pairs that are more likely wrong than real drop out.
_SHARPNESS = (1.25,) * 4 + (2.0,) * 8
_RE_PAIRINGS = 4
_FEWEST_PAIRS = 3
_FEWEST_EFFECTIVE = 2.0  # weights that add up to less have found nothing
_SETTLED = 0.01  # relative change of the weights that ends the iteration
_LEAST_VARIANCE = 1e-12  # of the noise, relative to that of y: exact data has none
_LEAST_RIDGE = 1e-8
_VARIANCE_PRIOR = 10.0  # pairs' worth of pull of each coordinate's noise variance towards their mean
_FULL_LEVERAGE = 1 - 1e-6


@dataclass(frozen=True, eq=False)
class RobustMap:
    """The learned map, and the noise around it."""

    coefficients: FloatArray
    variance: FloatArray

    def scores(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Log likelihood ratio of each pair."""
        return log_likelihood_ratio(y, x @ from_host(self.coefficients, x), self.variance)

    def scores_of_all_pairings(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Log likelihood ratio of x_i with y_j, for all i and j."""
        predicted = x @ self.coefficients
        scaled = predicted / self.variance
        of_y = (y**2 @ (1 - 1 / self.variance)) - np.log(self.variance).sum()
        of_x = np.einsum("ij,ij->i", predicted, scaled)
        return scaled @ y.T + (of_y[None, :] - of_x[:, None]) / 2


def log_likelihood_ratio(y: FloatArray, predicted: FloatArray, variance: FloatArray) -> FloatArray:
    """log N(y; predicted, variance) - log N(y; 0, 1), summed over coordinates."""
    xp = namespace(y)
    residual = y - predicted
    log_determinant = float(np.log(variance).sum())
    return (xp.vecdot(y, y) - residual**2 @ from_host(1 / variance, y) - log_determinant) / 2


def learn_map(
    x: FloatArray, y: FloatArray, rng: np.random.RandomState, points: Array | None = None
) -> RobustMap | None:
    """Learn the map from pairs of which many may be wrong; None if no part of them agrees.

    Parameters
    ----------
    x, y : ndarray of shape (n, d_x), (n, d_y)
        The pairs, centred, with mean square 1 per coordinate.
    rng : RandomState
        Draws the re-pairings.
    points : ndarray of int, shape (2, n), optional
        Numbers that are equal for equal points, of x and of y; a point is not re-paired with itself.
    """
    n, d_x = x.shape
    if n < _FEWEST_PAIRS:
        return None
    points = np.stack([np.arange(n)] * 2) if points is None else points
    weights: FloatArray = np.ones(n)
    variance: FloatArray = np.ones(y.shape[1])
    for iteration, sharpness in enumerate(_SHARPNESS):
        fit = _WeightedFit(x, y, weights, ridge=d_x * max(float(variance.mean()), _LEAST_RIDGE), whole=iteration == 0)
        variance = fit.residual_variance()
        updated = _weights(fit, variance, sharpness, rng, points)
        if updated.sum() < _FEWEST_EFFECTIVE:
            return None
        change = np.abs(updated - weights).sum() / updated.sum()
        weights = updated
        if sharpness == _SHARPNESS[-1] and change < _SETTLED:
            break
    fit = _WeightedFit(x, y, weights, ridge=d_x * max(float(variance.mean()), _LEAST_RIDGE))
    return RobustMap(fit.coefficients, fit.residual_variance())


def _weights(
    fit: _WeightedFit, variance: FloatArray, sharpness: float, rng: np.random.RandomState, points: Array
) -> FloatArray:
    """How likely each pair is real, judged by fits that have not seen it."""
    n = len(fit.y)
    scores = log_likelihood_ratio(fit.y, fit.without_own_pair(), variance)
    order = rng.permutation(n)
    null: list[FloatArray] = [np.empty(0)]
    for shift in range(1, min(_RE_PAIRINGS, n - 1) + 1):
        other = np.roll(order, shift)
        different = (points[:, order] != points[:, other]).all(axis=0)
        first, second = order[different], other[different]
        null.append(log_likelihood_ratio(fit.y[second], fit.without_both(first, second), variance))
    p = p_values(scores, np.concatenate(null))
    background = min(1.0, 2 * float((p > 0.5).mean()) + 1 / n)
    return np.clip(1 - sharpness * background / p_value_density(p), 0.0, 1.0)


class _WeightedFit:
    """Ridge regression of y on x with weights, and its predictions without one or two of the pairs.

    With A = X^T W X + ridge I and h_ij = x_i^T A^-1 x_j, deleting the pairs I changes their residuals to
    (1 - h_II W_II)^-1 r_I; a pair of weight 0 changes nothing, so h is only needed where a weight is not 0.
    """

    def __init__(self, x: FloatArray, y: FloatArray, weights: FloatArray, ridge: float, whole: bool = False) -> None:
        self.x, self.y, self.weights = x, y, weights
        self._active = np.flatnonzero(weights > 0)
        self._place = np.full(len(x), -1)
        self._place[self._active] = np.arange(self._active.size)
        active_x = x[self._active]
        weighted_x = active_x * weights[self._active, None]
        moment = weighted_x.T @ y[self._active]
        if whole:  # equal weights on prepared rows: X^T X is near n I, and the fit is the cross moment
            scale = float(np.einsum("ij,ij->", weighted_x, active_x)) / x.shape[1] + ridge
            self.coefficients, self._solved_x = moment / scale, active_x / scale
        else:
            normal = weighted_x.T @ active_x
            normal[np.diag_indices_from(normal)] += ridge
            factor = cho_factor(normal, overwrite_a=True)
            self.coefficients, self._solved_x = cho_solve(factor, moment), cho_solve(factor, active_x.T).T
        self._predicted = x @ self.coefficients
        self._residual = y - self._predicted
        self._leverage = np.zeros(len(x))
        self._leverage[self._active] = np.einsum("ij,ij->i", active_x, self._solved_x)
        self._pull = np.minimum(weights * self._leverage, _FULL_LEVERAGE)

    def without_own_pair(self) -> FloatArray:
        """Predict each y_i by the fit that leaves pair i out."""
        return self._predicted - (self._pull / (1 - self._pull))[:, None] * self._residual

    def without_both(self, i: Array, j: Array) -> FloatArray:
        """Predict y at each x_i by the fit that leaves pairs i and j out."""
        predicted = self._predicted[i]
        touched = np.flatnonzero((self.weights[i] > 0) | (self.weights[j] > 0))
        i, j = i[touched], j[touched]
        cross = self._cross_leverage(i, j)
        pull_i, pull_j = self._pull[i], self._pull[j]
        of_i, of_j = self.weights[i] * cross, self.weights[j] * cross
        determinant = np.maximum((1 - pull_i) * (1 - pull_j) - of_i * of_j, 1 - _FULL_LEVERAGE)
        own, others = (1 - pull_j) / determinant, of_j / determinant
        predicted[touched] = self.y[i] - own[:, None] * self._residual[i] - others[:, None] * self._residual[j]
        return predicted

    def residual_variance(self) -> FloatArray:
        """Noise variance per coordinate of y, from leave-one-out residuals; never above that of y itself."""
        weights = self.weights[self._active]
        deleted = weights / (1 - self._pull[self._active]) ** 2
        variance = deleted @ self._residual[self._active] ** 2 / weights.sum()
        shrunk = (weights.sum() * variance + _VARIANCE_PRIOR * variance.mean()) / (weights.sum() + _VARIANCE_PRIOR)
        return np.clip(shrunk, _LEAST_VARIANCE, 1.0)

    def _cross_leverage(self, i: Array, j: Array) -> FloatArray:
        """x_i^T A^-1 x_j; at least one of each two is active, and A^-1 x is known for that one."""
        swap = self._place[j] < 0
        known, other = np.where(swap, i, j), np.where(swap, j, i)
        return np.einsum("ij,ij->i", self.x[other], self._solved_x[self._place[known]])
