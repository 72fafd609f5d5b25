"""Algorithms 1 and 2 of the paper as scikit-learn estimators.

Notation (code <-> paper): rows are points here, columns there. X (n, d_x), y (n, d_y): the two sets;
H: the overlap of eq. (1); S = H 1: row sums; v: leading eigenvector; t, T: thresholds on v and S;
G, B: inliers and outliers, ``inlier_mask_`` and its complement; r = |G| / n. A row that equals the mean of its set has
no direction to compare: its pair is never called an inlier. Whitening, which the paper does not have, maps a set to an
orthonormal basis of its column space, so that no direction dominates.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from inlier._checks import check_choice, check_count, check_flag, check_number, warn
from inlier._typing import Array
from inlier.estimators._base import PairMatcher, prepare_pairs
from inlier.overlap import GramOverlap
from inlier.overlap.gram import SOLVERS
from inlier.overlap.two_means import lloyd_cut, optimal_cut
from inlier.rows import PairedRows, Scores


class _OverlapMatcher(PairMatcher):
    """Score the pairs by the Gram overlap, then part the scores in two."""

    _in_any_store = True

    def __init__(self, threshold: str | float = "kmeans", whiten: bool = False, solver: str = "auto") -> None:
        self.threshold = threshold
        self.whiten = whiten
        self.solver = solver

    def _fit(self, X: Array, Y: Array) -> None:
        self._check_parameters()
        pairs = self.prepare(X, Y)  # step 1
        scores = self._scores(pairs)  # steps 2 and 3
        self.threshold_ = self._cut(scores) if self.threshold == "kmeans" else float(self.threshold)
        self.scores_ = scores.values
        self.inlier_mask_ = scores.at_least(self.threshold_, *_directions(pairs, scores))  # steps 4 to 8

    def prepare(self, X: Array, Y: Array) -> PairedRows:
        """Step 1: centre the columns and scale the rows to unit length, whitening between if asked."""
        return prepare_pairs(X, Y, whiten=self.whiten)

    def _check_parameters(self) -> None:
        check_choice(self.solver, SOLVERS, "solver")
        check_flag(self.whiten, "whiten")
        if self.threshold != "kmeans":
            if isinstance(self.threshold, str):
                raise ValueError(f"threshold must be 'kmeans' or a number; got {self.threshold!r}.")
            check_number(self.threshold, "threshold")

    @abstractmethod
    def _scores(self, pairs: PairedRows) -> Scores:
        """Steps 2 and 3: a number per pair, larger for inliers."""

    @abstractmethod
    def _cut(self, scores: Scores) -> float:
        """Step 7: where k-means parts the scores."""


class EigenvectorMatcher(_OverlapMatcher):
    """Eigenvector matching, Algorithm 1: part the entries of the leading eigenvector of H.

    Parameters
    ----------
    threshold : "kmeans" or float, default="kmeans"
        The paper's t: pairs with ``sqrt(n) v_i >= t`` are inliers. Any t in (0, 1) separates in
        expectation; `eigenvector_threshold` gives the best one for a known inlier fraction. "kmeans"
        parts the entries by Lloyd's iteration from +-1, as the paper does.
    whiten : bool, default=False
        Whiten both sets first: they may then differ by any linear map. Needs many more pairs than dimensions.
    solver : {"auto", "moments", "operator", "dense"}, default="auto"
        How the eigenvector is computed; the answer is the same. See `inlier.overlap.gram`.

    Attributes
    ----------
    scores_ : ndarray of shape (n,)
        ``sqrt(n) v_i``, near ``1 / sqrt(r)`` on inliers and near 0 on outliers.
    threshold_, inlier_mask_, result_, n_features_in_
        The cut on the same scale, the pairs at or above it, all that as one object, the number of columns of ``X``.

    Examples
    --------
    >>> from inlier import EigenvectorMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=1000, d=50, inlier_fraction=0.6, rng=0)
    >>> matcher = EigenvectorMatcher().fit(data.X, data.Y)
    >>> bool((matcher.inlier_mask_ == data.inlier_mask).all())
    True
    """

    def _scores(self, pairs: PairedRows) -> Scores:
        H = GramOverlap.from_pairs(pairs)  # step 2, never formed
        return H.eigenvector_scores(self.solver)  # step 3, sqrt(n) v_i

    def _cut(self, scores: Scores) -> float:
        return lloyd_cut(scores, low=-1.0, high=1.0)  # centroids +-n^(-1/2) of v


class RowSumMatcher(_OverlapMatcher):
    """Row-sum matching, Algorithm 2: part the row sums of H.

    Parameters
    ----------
    threshold : "kmeans" or float, default="kmeans"
        The paper's T: pairs with ``S_i - d^2 >= T`` are inliers, in (0, d(rn + 1)) to separate in
        expectation; `row_sum_threshold` gives the middle of that. "kmeans" takes the best of all
        two-cluster partitions.
    whiten, solver
        As for `EigenvectorMatcher`; "moments" and "operator" are one formula here.

    Attributes
    ----------
    scores_ : ndarray of shape (n,)
        ``d_x d_y (S_i - 1)`` with unit rows, which is the paper's ``S_i - d^2`` for rows of norm sqrt(d):
        each pair's agreement with all the others, its own share left out.
    threshold_, inlier_mask_, result_, n_features_in_
        The cut on the same scale, the pairs at or above it, all that as one object, the number of columns of ``X``.

    Examples
    --------
    >>> from inlier import RowSumMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=1000, d=50, inlier_fraction=0.6, rng=0)
    >>> matcher = RowSumMatcher().fit(data.X, data.Y)
    >>> bool((matcher.inlier_mask_ == data.inlier_mask).all())
    True
    """

    def _scores(self, pairs: PairedRows) -> Scores:
        H = GramOverlap.from_pairs(pairs)  # step 2, never formed
        return H.row_sum_scores(self.solver)  # step 3, d_x d_y (S_i - H_ii)

    def _cut(self, scores: Scores) -> float:
        return optimal_cut(scores)


def _directions(pairs: PairedRows, scores: Scores) -> tuple[Any, ...]:
    """A vector that is 0 for the pairs of which a row equals the mean, if there are such: their score says nothing."""
    if not scores.zeros:  # theirs would be exactly 0
        return ()
    norms = pairs.norm_product()
    n_directionless = scores.count_zeros(norms)
    if n_directionless:
        warn(
            f"{n_directionless} of {pairs.n_pairs} pairs have a row equal to the mean of its set. Such a row has "
            f"no direction to compare; its pair gets score 0 and is called an outlier.",
        )
    return (norms,)


def eigenvector_threshold(inlier_fraction: float) -> float:
    """t = 1 / (2 sqrt(r)), which minimises the error bound of Corollary 1.

    Parameters
    ----------
    inlier_fraction : float
        ``r = |G| / n``, in (0, 1].

    Examples
    --------
    >>> from inlier import EigenvectorMatcher, eigenvector_threshold
    >>> eigenvector_threshold(0.25)
    1.0
    >>> matcher = EigenvectorMatcher(threshold=eigenvector_threshold(0.8))
    """
    return float(1 / (2 * _fraction(inlier_fraction) ** 0.5))


def row_sum_threshold(n: int, d: int, inlier_fraction: float) -> float:
    """T = d (r n + 1) / 2, half way between the expected scores of outliers and inliers (section 4.1).

    Parameters
    ----------
    n : int
        Number of pairs.
    d : int
        Dimension of the points; the larger of the two where they differ.
    inlier_fraction : float
        ``r = |G| / n``, in (0, 1].

    Examples
    --------
    >>> from inlier import RowSumMatcher, row_sum_threshold
    >>> row_sum_threshold(n=999, d=6, inlier_fraction=1 / 3)
    1002.0
    >>> matcher = RowSumMatcher(threshold=row_sum_threshold(12_000, 6, 0.8))
    """
    n, d = check_count(n, "n"), check_count(d, "d")
    return d * (_fraction(inlier_fraction) * n + 1) / 2


def _fraction(inlier_fraction: float) -> float:
    fraction = check_number(inlier_fraction, "inlier_fraction", low=0, high=1)
    if fraction == 0:
        raise ValueError("inlier_fraction must be above 0: with no inlier there is nothing to separate.")
    return fraction
