"""The map that is kept: y = offset + x matrix, orthogonal, linear or low-rank, as held-out pairs prefer.

Every pair counts by how likely it is real. The map is found in prepared rows z (see `inlier.rows.columns`), and kept in
factors: x -> z -> B -> y; the matrix of two tables of 20,000 columns each would not fit, its factors do.

Three kinds are fitted to four fifths of the pairs and tried on the others, by the squared error of y in units of each
column's spread: ridge regression of several strengths; the best of these cut to the r directions of y that it
predicts most of (reduced-rank regression); and the rotation, with a scale, between the original centred rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows import RowMap

_FOLDS = 5
_STRENGTHS = 10.0 ** np.arange(-4.0, 2.0)  # of the ridge, in units of what the pairs count for
_WIDEST_ROTATION = 1_000  # columns: the decomposition of the cross moment grows with their cube


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
