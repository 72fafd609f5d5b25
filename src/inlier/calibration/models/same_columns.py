"""Columns that correspond: a gene and its protein. Their agreement in a row is one more view of whether it is a pair.

Where column j of x and column j of y measure related things, a real pair is high in both or low in both. With few rows
no map between all columns can be learned, but one number per column can: its correlation r_j over the pairs, pulled
towards their mean as far as their noise, 1 / n, explains how they differ. A row's score is the cosine of its two sides,
each column in units of its spread and weighted with r_j. It is learned without the pair that it judges, compared with
re-pairings, and added to what the learned map says: each view in units of its re-pairings, and weighted by how far the
pairs it was learned from stand out in it (Fisher's discriminant for independent views).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from inlier._typing import Array, FloatArray
from inlier.calibration.models.inner_products import InnerProducts
from inlier.calibration.models.learner import Learner, PairScorer, prepared_rows, re_paired_scores
from inlier.calibration.models.significance import NOT_COMPARED, Significance
from inlier.calibration.retrieval import unit_rows
from inlier.rows import PairedRows
from inlier.rows.backend import from_host, to_host

_RE_PAIRINGS = 20  # of each training pair, that a view is measured in
_LEAST_P = 1e-6  # so that one pair does not decide what a view is worth


@dataclass(frozen=True, eq=False)
class ColumnAgreement(InnerProducts):
    """Cosine of the two sides of a pair over the columns that correspond."""

    to_x: FloatArray  # from prepared rows to columns in units of their spread, weighted
    to_y: FloatArray
    support: float
    significance: Significance

    def sides(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Columns that correspond, as rows of unit length."""
        a, b = unit_rows(to_host(x) @ self.to_x), unit_rows(to_host(y) @ self.to_y)
        return from_host(a, x), from_host(b, y)


@dataclass(frozen=True, eq=False)
class TwoViews:
    """What corresponding columns say, and what a learned map says, each in units of its re-pairings."""

    views: tuple[PairScorer, ...]
    weights: tuple[float, ...]
    support: float
    significance: Significance

    def scores(self, x: Any, y: Any) -> Any:
        """Weighted sum over the views."""
        return sum(self._scaled(k, view.scores(x, y)) for k, view in enumerate(self.views))

    def scores_of_all_pairings(self, x: Any, y: Any, *, single: bool = False) -> Any:
        """Weighted sum over the views, of x_i with y_j."""
        views = (view.scores_of_all_pairings(x, y, single=single) for view in self.views)
        return sum(self._scaled(k, scores) for k, scores in enumerate(views))

    def pairings(self, x: Any, y: Any) -> Callable[[Array, Array], Any]:
        """What scores x_i with y_j, given numbers i and j."""
        of_views = [view.pairings(x, y) for view in self.views]
        return lambda i, j: sum(self._scaled(k, score(i, j)) for k, score in enumerate(of_views))

    def _scaled(self, k: int, scores: Any) -> Any:
        null = self.views[k].significance
        return self.weights[k] * (scores - null.centre) / null.spread


class LearnerWithColumns:
    """Learns what another learner does, and how far corresponding columns agree."""

    def __init__(
        self,
        learner: Any,
        pairs: PairedRows,
        columns: tuple[Array, Array],
        labels: Array,
        rng: np.random.RandomState,
    ) -> None:
        self._learner: Learner = learner
        self._pairs, self._labels, self._rng = pairs, labels, rng
        self._to_x, self._to_y = pairs.map_x.undo()[:, columns[0]], pairs.map_y.undo()[:, columns[1]]

    def learn(self, training: Array) -> PairScorer | None:
        """Learn both views from these pairs, and how much each is worth."""
        columns = self._agreement(training)
        other = self._learner.learn(training)
        views = tuple(view for view in (columns, other) if view is not None)
        if not views:
            return None
        worth = np.array([_stands_out(view.significance) for view in views])
        if not worth.any():
            worth[-1] = 1.0
        weights = worth / np.linalg.norm(worth)
        return TwoViews(views, tuple(weights.tolist()), float(training.size), views[0].significance)

    def _agreement(self, training: Array) -> ColumnAgreement | None:
        rows = self._rng.permutation(training)
        x, y = (to_host(side) for side in prepared_rows(self._pairs, rows))
        a, b = x @ self._to_x, y @ self._to_y
        of_x, of_y = _spread(a), _spread(b)
        products = (a / of_x) * (b / of_y)
        counts = _shrunk(products.mean(axis=0), len(rows))
        if not (counts > 0).any():
            return None
        root = np.sqrt(np.maximum(counts, 0.0))
        found = ColumnAgreement(self._to_x / of_x * root, self._to_y / of_y * root, float(len(rows)), NOT_COMPARED)
        null = re_paired_scores(found, x, y, self._labels[:, rows], _RE_PAIRINGS, self._rng)
        if null.size == 0:
            return None
        own = _without_own_pair(a / of_x, b / of_y, products)
        return ColumnAgreement(found.to_x, found.to_y, found.support, Significance.of(own, null))


def _spread(columns: FloatArray) -> FloatArray:
    spread = columns.std(axis=0)
    return np.where(spread > 0, spread, np.inf)  # a column that does not vary says nothing


def _shrunk(correlations: FloatArray, n: int) -> FloatArray:
    """Correlations pulled towards their mean, as far as noise of variance 1 / n explains how they differ."""
    mean = correlations.mean(axis=-1, keepdims=True)
    variance = correlations.var(axis=-1, keepdims=True)
    kept = np.clip(1 - (1 / n) / np.maximum(variance, 1e-300), 0.0, 1.0)
    return mean + kept * (correlations - mean)


def _without_own_pair(a: FloatArray, b: FloatArray, products: FloatArray) -> FloatArray:
    """Score of each pair by the correlations of the others."""
    n = len(products)
    others = (n * products.mean(axis=0) - products) / max(n - 1, 1)
    root = np.sqrt(np.maximum(_shrunk(others, n - 1), 0.0))
    return np.sum(unit_rows(a * root) * unit_rows(b * root), axis=1)


def _stands_out(significance: Significance) -> float:
    """How far the pairs stand above re-pairings, in units of these: the mean of normal scores of their p-values."""
    p = np.clip(significance.p_values, _LEAST_P, 1 - _LEAST_P)
    return max(float(np.mean(-ndtri(p))), 0.0)
