"""Few rows, many columns: two ridge regressions, of y on x and of x on y, and how well their directions agree.

Where there are hardly more pairs than columns, noise variances cannot be told column by column, and a likelihood made
of them is worth little. What is left is the direction: a pair's score is cos(y_i, y predicted from x_i) + cos(x_i, x
predicted from y_i). How strongly each ridge pulls towards 0 is chosen by the same agreement of pairs that are left out.

Every pair that a ridge has learned from draws the prediction of similar x to its own y, right or wrong. So of all x
with all y, x_i with y_j is scored by the fit to the pairs but i and j (`SharedRidge.scores_without_either`).

All columns take part, in coordinates that the strong directions do not dominate: prepared rows are at most as wide as
there are rows, for they come from each table's n x n matrix of inner products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.calibration.models.anchors import unit
from inlier.calibration.models.inner_products import InnerProducts
from inlier.calibration.models.significance import SHARP, Significance
from inlier.rows.backend import beside, from_host, namespace, take_rows
from inlier.rows.null_pairs import re_pairings
from inlier.rows.threads import row_blocks

_FEWEST_PAIRS = 3
_RE_PAIRINGS = 4  # of each pair
_LEAST_LEFT = 1e-6  # of a residual: a pair that alone decides its prediction says nothing of it
_NO_LENGTH = 1e-300  # square of what has no direction
_STRENGTHS = 10.0 ** np.arange(-3.0, 1.5, 0.5)
_FIRST = 6  # of them, that is tried; then stronger or weaker ones as long as they agree better
_FREE = 10.0  # typical rows' lengths of the constant beside a row: the ridge hardly shrinks its coefficient, the offset


@dataclass(frozen=True, eq=False)
class RidgeMap(InnerProducts):
    """Two ridge regressions, one each way."""

    forward: Any  # coefficients of y on x, and its offset
    backward: Any  # coefficients of x on y, and its offset
    support: float  # how many of the pairs that they were learned from seem real
    significance: Significance  # those pairs beside their re-pairings, scored by fits without them

    def sides(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Directions whose inner product is the sum of the two cosines."""
        concat, there, back = namespace(x).concat, _predicted(x, self.forward), _predicted(y, self.backward)
        return concat([unit(there), unit(x)], axis=1), concat([unit(y), unit(back)], axis=1)


def learn_ridge(x: Any, y: Any, rng: np.random.RandomState, labels: Array) -> RidgeMap | None:
    """Learn both ways from prepared pairs of which a good part is real; None if there are too few to learn from."""
    if x.shape[0] < _FEWEST_PAIRS:
        return None
    return _learned(_Spectrum.of(x, y).fit, _Spectrum.of(y, x).fit, rng, labels)


class SharedRidge:
    """Ridges that each leave some pairs out, from the spectrum of all pairs, which is computed once.

    With h_ij = x_i^T A^-1 x_j of all pairs and F those that are left out, the fit without them has residuals
    r + H_F (I - H_FF)^-1 r_F and h_ij + H_iF (I - H_FF)^-1 H_Fj: worth it where fewer are left out than there are
    columns.
    """

    def __init__(self, x: Any, y: Any) -> None:
        self._there, self._back = _Spectrum.of(x, y), _Spectrum.of(y, x)
        self._n = int(x.shape[0])

    def learn(self, training: Array, rng: np.random.RandomState, labels: Array) -> RidgeMap | None:
        """As `learn_ridge` does from these pairs; ``labels`` are theirs."""
        if training.size < _FEWEST_PAIRS:
            return None
        out = np.setdiff1d(np.arange(self._n), training)
        there, back = (partial(spectrum.fit_without, out, training) for spectrum in (self._there, self._back))
        return _learned(there, back, rng, labels)

    def scores_without_either(self, together: list[tuple[Array, Array]]) -> FloatArray:
        """Scores of x_i with y_j, for all i and j, by the fits to all pairs but these two.

        ``together`` says of some i what else is left out (see `inlier.calibration.folds.rows_together`).
        """
        there, back = (_cosines_without_either(spectrum, together) for spectrum in (self._there, self._back))
        return there + back.T


def _cosines_without_either(spectrum: _Spectrum, together: list[tuple[Array, Array]]) -> FloatArray:
    k, fit = _best(spectrum.fit)
    cosines = spectrum.cosines_without_either(fit)
    for own, out in together:
        cosines[own] = spectrum.cosines_without(out, k)[np.isin(out, own)]
    return cosines


def _learned(
    there: Callable[[int], _Fit], back: Callable[[int], _Fit], rng: np.random.RandomState, labels: Array
) -> RidgeMap:
    """Choose both strengths; compare the pairs with re-pairings, x_i with y_j, by fits without either."""
    (_, forward), (_, backward) = _best(there), _best(back)
    y, x = forward.y, backward.y
    scores = _cosines(forward.without_own_pair(), y) + _cosines(backward.without_own_pair(), x)
    i, j = np.concatenate(list(re_pairings(labels, _RE_PAIRINGS, rng)), axis=1)
    null = _cosines(forward.without_both(i, j), take_rows(y, j))
    null = null + _cosines(backward.without_both(j, i), take_rows(x, i))
    significance = Significance.of(scores, null)
    support = float(significance.weights(SHARP).sum())
    return RidgeMap(forward.coefficients(), backward.coefficients(), support, significance)


def _best(fit: Callable[[int], _Fit]) -> tuple[int, _Fit]:
    """The strength, and its fit, that agrees best with the pairs that are left out."""
    best = fit(_FIRST)
    k, highest = _FIRST, best.agreement()
    for step in (1, -1):
        while 0 <= k + step < _STRENGTHS.size:
            other = fit(k + step)
            agreement = other.agreement()
            if agreement <= highest:
                break
            k, highest, best = k + step, agreement, other
        if k != _FIRST:
            break
    return k, best


@dataclass(frozen=True, eq=False)
class _Fit:
    """Ridge regression of y on x, of which it is known what leaving out one or two of its pairs changes.

    With h_ij = x_i^T A^-1 x_j, deleting the pairs I changes their residuals to (1 - h_II)^-1 r_I.
    """

    y: Any
    residuals: Any
    solved: Any  # A^-1 x_i
    leverages: Any  # h_ii
    cross: Callable[[Array, Array], Any]  # h_ij, given numbers i and j
    coefficients: Callable[[], tuple[Any, Any]]  # the matrix for rows without their constant, and the offset

    def agreement(self) -> float:
        """Mean cosine of each y_i with what is predicted without pair i."""
        return float(namespace(self.y).mean(_cosines(self.without_own_pair(), self.y)))

    def without_own_pair(self) -> Any:
        """Predict each y_i by the fit that leaves pair i out."""
        return self.y - self.residuals / self._left()[:, None]

    def without_both(self, i: Array, j: Array) -> Any:
        """Predict y at x_i by the fit that leaves pairs i and j out."""
        xp, left = namespace(self.y), self._left()
        left_i, left_j, cross = take_rows(left, i), take_rows(left, j), self.cross(i, j)
        determinant = left_i * left_j - cross**2
        determinant = xp.maximum(determinant, xp.full_like(determinant, _LEAST_LEFT))
        deleted = left_j[:, None] * take_rows(self.residuals, i) + cross[:, None] * take_rows(self.residuals, j)
        return take_rows(self.y, i) - deleted / determinant[:, None]

    def _left(self) -> Any:
        left = 1 - self.leverages
        return namespace(left).maximum(left, namespace(left).full_like(left, _LEAST_LEFT))


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """The eigenvectors V of X^T X, rows z = V^T x, and what all strengths of a ridge of y on x share."""

    y: Any
    z: Any
    eigenvalues: Any
    directions: Any  # V
    moment: Any  # Z^T Y
    length: float  # mean square of a row of x
    shared: dict[int, tuple[Any, Any, Any]]  # residuals, Z A^-1 and coefficients of fits to all pairs, by strength

    @staticmethod
    def of(x: Any, y: Any) -> _Spectrum:
        xp = namespace(x)
        length = float(xp.mean(xp.vecdot(x, x)))
        x = xp.concat([x, xp.full_like(x[:, :1], _FREE * length**0.5)], axis=1)
        eigenvalues, directions = xp.linalg.eigh(x.T @ x)
        z = x @ directions
        eigenvalues = xp.maximum(eigenvalues, xp.zeros_like(eigenvalues))
        return _Spectrum(y, z, eigenvalues, directions, z.T @ y, length, {})

    def fit(self, k: int) -> _Fit:
        """Fit all pairs with strength k."""
        residuals, solved, coefficients = self._of_all(k)
        return _Fit(
            self.y,
            residuals,
            solved,
            namespace(self.z).vecdot(solved, self.z),
            lambda i, j: namespace(self.z).vecdot(take_rows(solved, i), take_rows(self.z, j)),
            lambda: self._turned_back(coefficients),
        )

    def fit_without(self, out: Array, kept: Array, k: int) -> _Fit:
        """Fit the pairs ``kept``, all but those that are ``out``."""
        xp = namespace(self.z)
        residuals, solved, coefficients = self._of_all(k)
        z, solved_out, solved_kept = take_rows(self.z, kept), take_rows(solved, out), take_rows(solved, kept)
        left = from_host(np.eye(out.size), self.z) - solved_out @ take_rows(self.z, out).T  # I - H_FF
        across = solved_kept @ take_rows(self.z, out).T  # H_F of the pairs that are kept
        both = xp.concat([take_rows(residuals, out), across.T], axis=1)
        moved, back = (part for part in _split(xp.linalg.solve(left, both), int(self.y.shape[1])))
        back = back.T

        def cross(i: Array, j: Array) -> Any:
            plain = xp.vecdot(take_rows(solved_kept, i), take_rows(z, j))
            return plain + xp.vecdot(take_rows(across, i), take_rows(back, j))

        return _Fit(
            take_rows(self.y, kept),
            take_rows(residuals, kept) + across @ moved,
            solved_kept,
            xp.vecdot(solved_kept, z) + xp.vecdot(across, back),
            cross,
            lambda: self._turned_back(coefficients - solved_out.T @ moved),
        )

    def cosines_without_either(self, fit: _Fit) -> FloatArray:
        """Cosine of each y_j with what is predicted at x_i by the fit, to all pairs, that leaves pairs i and j out.

        That prediction is y_i - a r_i - c r_j, a = (1 - h_jj) / D, c = h_ij / D, D = (1 - h_ii) (1 - h_jj) - h_ij^2.
        """
        left = np.maximum(1 - fit.leverages, _LEAST_LEFT)
        y, r, solved, z = (of.astype(np.float32) for of in (self.y, fit.residuals, fit.solved, self.z))
        y_y, r_y, r_r = (np.vecdot(one, other) for one, other in ((y, y), (r, y), (r, r)))
        cosines = np.empty((len(y), len(y)), dtype=np.float32)
        for rows in row_blocks(len(y), len(y)):
            h = solved[rows] @ z.T
            determinant = np.maximum(left[rows, None] * left - h**2, _LEAST_LEFT).astype(np.float32)
            a, c = left.astype(np.float32) / determinant, h / determinant
            product = y[rows] @ y.T - a * (r[rows] @ y.T) - c * r_y
            square = y_y[rows, None] - 2 * a * r_y[rows, None] + a**2 * r_r[rows, None] + c**2 * r_r
            square += 2 * c * (a * (r[rows] @ r.T) - y[rows] @ r.T)
            cosines[rows] = product / np.sqrt(np.maximum(square * y_y, _NO_LENGTH))
        np.fill_diagonal(cosines, _cosines(fit.without_own_pair(), self.y))
        return cosines

    def cosines_without(self, out: Array, k: int) -> FloatArray:
        """The same for several x_i at once that belong together: of fits without all of these, and without pair j."""
        residuals, solved, _ = self._of_all(k)
        left = np.eye(out.size) - solved[out] @ self.z[out].T
        across = solved @ self.z[out].T
        r = residuals + across @ np.linalg.solve(left, residuals[out])  # without these; predictions at them are y - r
        h = np.linalg.solve(left, across.T)
        leverages = np.vecdot(solved, self.z) + np.vecdot(across, h.T)
        c = h / np.maximum(1 - leverages, _LEAST_LEFT)
        c[:, out] = 0.0
        predicted = self.y[out] - r[out]
        product = predicted @ self.y.T - c * np.vecdot(r, self.y)
        square = np.vecdot(predicted, predicted)[:, None] - 2 * c * (predicted @ r.T) + c**2 * np.vecdot(r, r)
        cosines: FloatArray = product / np.sqrt(np.maximum(square * np.vecdot(self.y, self.y), _NO_LENGTH))
        return cosines

    def _of_all(self, k: int) -> tuple[Any, Any, Any]:
        if k not in self.shared:
            shrunk = 1 / (self.eigenvalues + float(_STRENGTHS[k]) * self.length)
            coefficients = shrunk[:, None] * self.moment
            self.shared[k] = self.y - self.z @ coefficients, self.z * shrunk, coefficients
        return self.shared[k]

    def _turned_back(self, coefficients: Any) -> tuple[Any, Any]:
        """Coefficients for rows as they are without their constant, and the offset."""
        all_of_them = self.directions @ coefficients
        return all_of_them[:-1, :], all_of_them[-1, :] * (_FREE * self.length**0.5)


def _split(table: Any, n_columns: int) -> tuple[Any, Any]:
    return table[:, :n_columns], table[:, n_columns:]


def _predicted(rows: Any, fit: tuple[Any, Any]) -> Any:
    coefficients, offset = fit
    return rows @ beside(coefficients, rows) + beside(offset, rows)


def _cosines(a: Any, b: Any) -> Any:
    return namespace(a).vecdot(unit(a), unit(b))
