"""Learn how y follows from x when many of the pairs are wrong, and what each pair's agreement is worth.

The model of a real pair is y = B^T x + b + noise, with its own noise variance per coordinate of y; of a wrong pair,
y of unit variance that knows nothing of x. All rows together are centred, but a few real ones need not be: hence b.
The score of a pair is the logarithm of its likelihood ratio. B and b are found by iteration: fit with weights (ridge:
B is as random as a rotation, so that few real pairs do not overfit), score each pair by the fit *without it*, score
re-pairings by the fit *without either of the two*, weight each pair by how much denser its score is among the pairs
than among the re-pairings, fit again. The first fit has equal weights, and its coefficients are the matrix X^T Y of
the paper's row sums, scaled.

`Significance` is one step of every fit, of ridges and anchors too: how significant scores are beside those of
re-pairings, and the weights that follow.

*The map that is kept*, y = offset + x matrix: orthogonal, linear or low-rank, as held-out pairs prefer. Every pair
counts by how likely it is real. The map is found in prepared rows z (see `inlier.rows.columns`), and kept in factors: x
-> z -> B -> y; the matrix of two tables of 20,000 columns each would not fit, its factors do.

Three kinds are fitted to four fifths of the pairs and tried on the others, by the squared error of y in units of each
column's spread: ridge regression of several strengths; the best of these cut to the r directions of y that it
predicts most of (reduced-rank regression); and the rotation, with a scale, between the original centred rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import rel_entr

from inlier._typing import Array, FloatArray
from inlier.calibration.p_values import p_value_density, p_values
from inlier.rows import RowMap
from inlier.rows.backend import beside, from_host, in_precision, namespace, ridge_solver, take_rows, to_host
from inlier.rows.null_pairs import re_pairings
from inlier.rows.threads import pieces, pieces_of_many

# How much a doubt lowers a pair's weight (see `Significance.weights`). Gentle at first, when the scores say little and
# every real pair is needed; then pairs that are more likely wrong than real drop out.
_GENTLE, SHARP = 1.25, 2.0
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
_TAIL_STARTS = 0.99  # share of the re-pairings below; beyond it their distribution is taken for exponential
_FOLDS = 5
_STRENGTHS = 10.0 ** np.arange(-4.0, 2.0)  # of the ridge, in units of what the pairs count for
_WIDEST_ROTATION = 1_000  # columns: the decomposition of the cross moment grows with their cube


@dataclass(frozen=True, eq=False)
class LinearMap:
    """The learned map, where it was learned, and the noise around it."""

    coefficients: Any  # B in y = B^T x + b
    offset: Any  # b
    variance: FloatArray  # of the noise
    support: float  # how many pairs it was learned from: the sum of their weights
    significance: Significance  # the pairs it was learned from beside their re-pairings, each scored without itself

    def scores(self, x: Any, y: Any) -> Any:
        """Log likelihood ratio of each pair."""
        noise, parts = _Noise(self.variance, y), [(take_rows(x, k), take_rows(y, k)) for k in pieces_of_many(x)]
        return namespace(y).concat([noise.log_likelihood_ratio(some, self._predicted(of)) for of, some in parts])

    def scores_of_all_pairings(self, x: Any, y: Any, *, single: bool = False) -> Any:
        """Log likelihood ratio of x_i with y_j, for all i and j."""
        of_x, of_y = in_precision(self.factors(x, y), single=single)
        return of_x @ of_y.T

    def factors(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Rows whose inner products are the scores of x_i with y_j; the last but one column of the first is a term."""
        xp, predicted = namespace(x), self._predicted(x)
        scaled = predicted / from_host(self.variance, x)
        of_y = (y**2 @ from_host(1 - 1 / self.variance, x) - float(np.log(self.variance).sum())) / 2
        of_x = -xp.vecdot(predicted, scaled) / 2
        left = xp.concat([scaled, of_x[:, None], xp.ones_like(of_x)[:, None]], axis=1)
        return left, xp.concat([y, xp.ones_like(of_y)[:, None], of_y[:, None]], axis=1)

    def pairings(self, x: Any, y: Any) -> Callable[[Array, Array], Any]:
        """What scores x_i with y_j, given numbers i and j; each x_i is predicted from once."""
        predicted, noise = self._predicted(x), _Noise(self.variance, y)
        return lambda i, j: noise.log_likelihood_ratio(take_rows(y, j), take_rows(predicted, i))

    def _predicted(self, x: Any) -> Any:
        return x @ beside(self.coefficients, x) + beside(self.offset, x)


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
    x = namespace(x).concat([x, namespace(x).ones_like(x[:, :1])], axis=1)  # the constant's coefficient is b
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
    coefficients, offset = fit.coefficients[:-1, :], fit.coefficients[-1, :]
    return LinearMap(coefficients, offset, fit.residual_variance(), float(weights.sum()), significance)


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

    def residual_variance(self) -> FloatArray:
        """Noise variance per coordinate of y, from leave-one-out residuals; never above that of y itself."""
        total = self._host_weights.sum()
        deleted = self._weights / (1 - self._leverage) ** 2
        variance = to_host(deleted @ self._residual**2) / total
        shrunk = (total * variance + _VARIANCE_PRIOR * variance.mean()) / (total + _VARIANCE_PRIOR)
        return np.clip(shrunk, LEAST_VARIANCE, 1.0)


@dataclass(frozen=True, eq=False)
class Significance:
    """The pairs' scores beside those of re-pairings."""

    p_values: FloatArray  # chance that a wrong pair scores as high
    centre: float  # median of the re-pairings' scores
    spread: float  # how far above it the highest hundredth of them begins
    # Berk and Jones' statistic of the p-values: the largest n KL(k/n || p_k), p_k the kth smallest; large where there
    # are more small ones than chance brings. Beyond the hundredth they are those of an exponential tail, so that it
    # counts how far pairs are above all re-pairings
    berk_jones: float

    @staticmethod
    def of(scores: Any, null_scores: Any) -> Significance:
        """Compare scores, which may be on a device."""
        m = int(null_scores.shape[0])
        if m == 0:
            return Significance(np.ones(int(scores.shape[0])), 0.0, 1.0, 0.0)
        null = namespace(null_scores).sort(null_scores)
        p = p_values(scores, null)
        tail = to_host(null[int(_TAIL_STARTS * (m - 1)) :])
        centre, high = float(null[(m - 1) // 2]), float(tail[0])
        slope = float(np.mean(tail - high)) or 1.0
        beyond = (1 - _TAIL_STARTS) * np.exp(-np.maximum(to_host(scores) - high, 0.0) / slope)
        smooth = np.where(p < 1 - _TAIL_STARTS, np.maximum(beyond, 1e-300), p)  # the logarithm is finite
        differ = high - centre > 1e-12 * max(abs(high), abs(centre))  # by more than rounding
        return Significance(p, centre, high - centre if differ else 1.0, berk_jones(smooth))

    def weights(self, sharpness: float) -> FloatArray:
        """Weight of each pair: 1 - sharpness * (chance that it is wrong), at least 0."""
        p = self.p_values
        background = min(1.0, 2 * float((p > 0.5).mean()) + 1 / p.size)
        return np.clip(1 - sharpness * background / p_value_density(p), 0.0, 1.0)


NOT_COMPARED = Significance(np.ones(1), 0.0, 1.0, 0.0)  # of what was learned where nobody asks how pairs stood out


def berk_jones(p: FloatArray) -> float:
    """Berk and Jones' statistic of p-values: how many more small ones there are than chance brings."""
    n, rising = p.size, np.sort(p)
    share = np.arange(1, n + 1) / n
    divergence = rel_entr(share, rising) + rel_entr(1 - share, np.maximum(1 - rising, np.finfo(np.float64).tiny))
    return float(n * np.max(divergence[(rising < share) & (rising <= 0.5)], initial=0.0))


# ---- the map that is kept


@dataclass(frozen=True, eq=False)
class PairMap:
    """How y follows from x: y = offset + x matrix.

    Attributes
    ----------
    kind : {"orthogonal", "linear", "low-rank", "none"}
        What held-out pairs preferred; "none" where no pair seems real, and y is predicted by its mean.
    rank : int
        Rank of the matrix.
    matrix : ndarray of shape (d_x, d_y)
        Worked out when it is asked for.
    offset : ndarray of shape (d_y,)
        y where x is 0.
    error : float
        Squared error of y for pairs that were held out, as a share of y's variance; 1 says that nothing is predicted.
    """

    kind: str
    rank: int
    error: float
    rows_x: RowMap
    coefficients: FloatArray  # B
    shift: FloatArray  # b: prepared y where prepared x is 0
    undo_y: FloatArray
    mean_y: FloatArray

    def __repr__(self) -> str:
        d_x, d_y = 0 if self.rows_x.mean is None else self.rows_x.mean.size, self.mean_y.size
        return f"<PairMap: {self.kind}, rank {self.rank}, from {d_x} to {d_y} columns; held-out error {self.error:.2g}>"

    @property
    def matrix(self) -> FloatArray:
        """The matrix from x to y."""
        assert self.rows_x.linear is not None
        return self.rows_x.scale * self.rows_x.linear @ self.coefficients @ self.undo_y

    @property
    def offset(self) -> FloatArray:
        """y where x is 0."""
        assert self.rows_x.mean is not None
        return self(np.zeros((1, self.rows_x.mean.size)))[0]

    def __call__(self, X: Any) -> FloatArray:
        """Predict y for rows of x; a missing value counts as the mean of its column."""
        x = np.asarray(X, dtype=np.float64)
        if np.isnan(x).any():
            assert self.rows_x.mean is not None
            x = np.where(np.isnan(x), self.rows_x.mean, x)
        return (self.rows_x(x) @ self.coefficients + self.shift) @ self.undo_y + self.mean_y


def fit_pair_map(
    rows_x: RowMap, rows_y: RowMap, zx: FloatArray, zy: FloatArray, weights: FloatArray, rng: np.random.RandomState
) -> PairMap:
    """Fit the three kinds to prepared rows of pairs that count so much each, and take what held-out pairs prefer."""
    assert rows_y.mean is not None
    undo_x, undo_y = rows_x.undo(), rows_y.undo()
    if np.count_nonzero(weights) < 2:
        nothing = np.zeros((zx.shape[1], zy.shape[1]))
        return PairMap("none", 0, 1.0, rows_x, nothing, np.zeros(zy.shape[1]), undo_y, rows_y.mean)
    metric = _metric(undo_y, zy, weights)
    fold = rng.permutation(np.arange(len(zx)) % _FOLDS)

    def error(fit: Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]) -> float:
        """Share of the variance of y that held-out pairs miss."""
        missed = total = 0.0
        for own in range(_FOLDS):
            train, test = fold != own, fold == own
            if not weights[train].any():
                continue
            coefficients, shift = fit(zx[train], zy[train], weights[train])
            mean = np.average(zy[train], axis=0, weights=weights[train])
            missed += _squares(zy[test] - zx[test] @ coefficients - shift, weights[test], metric)
            total += _squares(zy[test] - mean, weights[test], metric)
        return missed / max(total, 1e-300)

    by_strength = [error(_ridge(strength)) for strength in _STRENGTHS]
    strength = float(_STRENGTHS[int(np.argmin(by_strength))])
    kinds = {("linear", 0): (_ridge(strength), min(by_strength))}
    for rank in _ranks(min(zx.shape[1], zy.shape[1])):
        cut = _reduced(_ridge(strength), rank, metric)
        kinds["low-rank", rank] = cut, error(cut)
    if undo_x.shape[1] == undo_y.shape[1] <= _WIDEST_ROTATION:
        turn = _rotation(undo_x, undo_y, rows_y)
        kinds["orthogonal", 0] = turn, error(turn)
    (kind, rank), (fit, missed) = min(kinds.items(), key=lambda item: item[1][1])
    coefficients, shift = fit(zx, zy, weights)
    rank = rank or int(np.linalg.matrix_rank(coefficients))
    return PairMap(kind, rank, missed, rows_x, coefficients, shift, undo_y, rows_y.mean)


def _metric(undo_y: FloatArray, zy: FloatArray, weights: FloatArray) -> FloatArray:
    """What residuals of prepared rows count for, as a matrix: the columns of y in units of their spread."""
    mean = np.average(zy, axis=0, weights=weights)
    spread = (zy - mean).T @ ((zy - mean) * weights[:, None]) / weights.sum()
    variance = np.maximum(np.einsum("ij,ik,kj->j", undo_y, spread, undo_y, optimize=True), 0.0)
    scaled = undo_y / np.sqrt(np.where(variance > variance.max() * 1e-12, variance, np.inf))
    return scaled @ scaled.T


def _squares(residuals: FloatArray, weights: FloatArray, metric: FloatArray) -> float:
    return float(weights @ np.einsum("ij,ij->i", residuals @ metric, residuals))


def _ridge(strength: float) -> Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Weighted ridge regression; the offset is free."""

    def fit(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean_x, mean_y = (np.average(rows, axis=0, weights=weights) for rows in (x, y))
        weighted = (x - mean_x) * weights[:, None]
        moment = weighted.T @ (x - mean_x)
        moment[np.diag_indices_from(moment)] += strength * max(float(np.trace(moment)) / len(moment), 1e-300)
        coefficients = np.linalg.solve(moment, weighted.T @ (y - mean_y))
        return coefficients, mean_y - mean_x @ coefficients

    return fit


def _reduced(
    base: Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]], rank: int, metric: FloatArray
) -> Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """The same cut to the directions of y, in this metric, that it predicts most of (reduced-rank regression)."""
    values, vectors = np.linalg.eigh(metric)
    root = np.sqrt(np.maximum(values, 0.0))
    inverse = np.where(root > root.max() * 1e-9, 1 / np.maximum(root, 1e-300), 0.0)

    def fit(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        coefficients, _ = base(x, y, weights)
        mean_x, mean_y = (np.average(rows, axis=0, weights=weights) for rows in (x, y))
        predicted = ((x - mean_x) * np.sqrt(weights)[:, None]) @ coefficients @ (vectors * root)
        strongest = np.linalg.eigh(predicted.T @ predicted)[1][:, -rank:]
        cut = coefficients @ (vectors * root) @ strongest @ strongest.T @ (vectors * inverse).T
        return cut, mean_y - mean_x @ cut

    return fit


def _rotation(
    undo_x: FloatArray, undo_y: FloatArray, rows_y: RowMap
) -> Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """The rotation, with a scale, between original centred rows (Procrustes)."""
    assert rows_y.linear is not None
    linear_y = rows_y.scale * rows_y.linear

    def fit(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean_x, mean_y = (np.average(rows, axis=0, weights=weights) for rows in (x, y))
        weighted = (x - mean_x) * weights[:, None]
        left, shared, right = np.linalg.svd(undo_x.T @ (weighted.T @ (y - mean_y)) @ undo_y)
        length = float(np.einsum("ij,ij->", (weighted @ undo_x), (x - mean_x) @ undo_x))
        turn = float(shared.sum()) / max(length, 1e-300) * (left @ right)
        coefficients = undo_x @ turn @ linear_y
        return coefficients, mean_y - mean_x @ coefficients

    return fit


def _ranks(most: int) -> Array:
    """Ranks that are tried: powers of two, below full rank."""
    return 2 ** np.arange(int(np.ceil(np.log2(most)))) if most > 1 else np.empty(0, dtype=int)
