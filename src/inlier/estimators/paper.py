"""Algorithms 1, 2 and 3 of the paper as scikit-learn estimators.

Notation (code <-> paper): rows are points here, columns there. X (n, d_x), y (n, d_y): the two sets;
H: the overlap of eq. (1); S = H 1: row sums; v: leading eigenvector; t, T: thresholds on v and S;
G, B: inliers and outliers, ``inlier_mask_`` and its complement; r = |G| / n. A row that equals the mean of its set has
no direction to compare: its pair is never called an inlier. Whitening, which the paper does not have, maps a set to an
orthonormal basis of its column space, so that no direction dominates.

Algorithm 3: split the pairs at random, match each part on its own, put the answers together.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_random_state

from inlier._checks import check_choice, check_count, check_flag, check_number, warn
from inlier._typing import Array
from inlier.estimators._base import PairMatcher, prepare_pairs
from inlier.exceptions import ParameterError
from inlier.overlap import GramOverlap
from inlier.overlap.gram import SOLVERS
from inlier.overlap.two_means import lloyd_cut, optimal_cut
from inlier.rows import PairedRows, Scores, as_stored
from inlier.rows.threads import single_threaded_blas


class _OverlapMatcher(PairMatcher):
    """Score the pairs by the Gram overlap, then part the scores in two."""

    _in_any_store = True

    threshold: str | float
    whiten: bool
    solver: str

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
            if isinstance(self.threshold, str) or self.threshold is None:
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

    def __init__(self, threshold: str | float = "kmeans", whiten: bool = False, solver: str = "auto") -> None:
        self.threshold = threshold
        self.whiten = whiten
        self.solver = solver

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

    def __init__(self, threshold: str | float = "kmeans", whiten: bool = False, solver: str = "auto") -> None:
        self.threshold = threshold
        self.whiten = whiten
        self.solver = solver

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


# ---- Algorithm 3


class SplitMatcher(PairMatcher):
    """Matching by parts, Algorithm 3.

    The paper splits because its computation is quadratic in n. Ours is linear, so a split saves no
    work; it bounds the memory of a matcher that needs more than a pass, and spreads the parts over
    processes or machines.

    Parameters
    ----------
    matcher : estimator
        Any matcher of this package; a clone is fitted to each part.
    n_splits : int, default=4
        Number of parts, of sizes that differ by at most one.
    n_jobs : int, optional
        Parts fitted at the same time, through joblib. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Decides the split, and seeds each part's matcher if that has a ``random_state``.

    Attributes
    ----------
    scores_ : ndarray of shape (n,)
        Each pair's score within its part.
    threshold_ : ndarray of shape (n_splits,)
        The cut of each part.
    inlier_mask_ : ndarray of bool, shape (n,)
        True where the pair's part called it an inlier.
    part_ : ndarray of int, shape (n,)
        Which part each pair was in.
    p_values_, q_values_, inlier_fraction_, null_scores_, n_re_pairings_
        As the matcher gives them, if it is calibrated; of the shares the mean over pairs.
    result_ : MatchResult
        The answer as one object.
    n_features_in_ : int
        Number of columns of ``X``.

    Notes
    -----
    Step 1 centres and scales all pairs, and the matcher does so again inside each part, as the paper
    writes it. A whitening matcher's step 1 includes the whitening.

    A calibrated matcher keeps its rate in each part, not over all of them: where no pair is real, the
    chance that a part accepts any is up to ``alpha``, and that one of the parts does up to ``n_splits``
    times as much. No pair is called certain, for a part does not see the rows of the others; and bounds of the
    parts make no bound of the whole.

    Examples
    --------
    >>> from inlier import RowSumMatcher, SplitMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=2000, d=50, inlier_fraction=0.6, rng=0)
    >>> matcher = SplitMatcher(RowSumMatcher(), n_splits=2, random_state=0).fit(data.X, data.Y)
    >>> bool((matcher.inlier_mask_ == data.inlier_mask).all())
    True
    """

    def __init__(
        self, matcher: PairMatcher, n_splits: int = 4, n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.matcher = matcher
        self.n_splits = n_splits
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Array, Y: Array) -> None:
        self._check_parameters(X.shape[0])
        rng = check_random_state(self.random_state)
        pairs = self.prepare(X, Y)  # step 1
        parts = np.array_split(rng.permutation(len(X)), self.n_splits)  # step 2
        seeds = rng.randint(2**31 - 1, size=self.n_splits)
        fitted = Parallel(n_jobs=self.n_jobs)(  # steps 3 to 7
            delayed(_fit_part)(self.matcher, *pairs.take(part), seed)  # only the part travels
            for part, seed in zip(parts, seeds, strict=True)
        )
        self._gather(parts, fitted)  # steps 8 to 12

    def prepare(self, X: Array, Y: Array) -> PairedRows:
        """Step 1 as the matcher inside does it."""
        return self.matcher.prepare(X, Y)

    @property
    def is_calibrated(self) -> bool:  # type: ignore[override]
        """Whether the matcher inside gives p- and q-values."""
        return self.matcher.is_calibrated

    def _read_pairs(self, X: Any, y: Any) -> tuple[Array, Array]:
        if as_stored(X) is not None or as_stored(y) is not None:
            raise ValueError(
                "SplitMatcher deals the rows of arrays in memory to its parts. The matchers inside it take Dask "
                "arrays, device arrays and files as a whole, with the same answer: fit the matcher itself."
            )
        return super()._read_pairs(X, y)

    def _gather(self, parts: list[Array], fitted: list[PairMatcher]) -> None:
        """Put the answers together, in the order of the pairs; p- and q-values hold within each part."""
        order, sizes = np.argsort(np.concatenate(parts)), np.array([part.size for part in parts])

        def in_order(name: str) -> Array:
            return np.concatenate([getattr(matcher, name) for matcher in fitted])[order]

        self.scores_, self.inlier_mask_ = in_order("scores_"), in_order("inlier_mask_")
        self.part_ = np.repeat(np.arange(sizes.size), sizes)[order]
        self.threshold_ = np.array([matcher.threshold_ for matcher in fitted])
        if self.is_calibrated:
            self.p_values_, self.q_values_ = in_order("p_values_"), in_order("q_values_")
            self.null_scores_ = np.sort(np.concatenate([matcher.null_scores_ for matcher in fitted]))
            self.n_re_pairings_ = sum(matcher.n_re_pairings_ for matcher in fitted)
            self.inlier_fraction_ = float(np.average([m.inlier_fraction_ for m in fitted], weights=sizes))

    def _check_parameters(self, n_pairs: int) -> None:
        if not isinstance(self.matcher, PairMatcher):
            raise ValueError(f"matcher must be a matcher such as RowSumMatcher(); got {self.matcher!r}.")
        if not self.matcher._works_in_parts:
            raise ValueError(
                f"{type(self.matcher).__name__} finds one transformation for all pairs, and is not fitted to parts of "
                f"them. It takes many pairs as it is; leave out SplitMatcher."
            )
        n_splits = check_count(self.n_splits, "n_splits")
        fewest = self.matcher._fewest_pairs
        if n_pairs < fewest * n_splits:
            most = n_pairs // fewest
            cure = f"use {most} or less" if most else f"give at least {fewest} pairs, and do not split them"
            raise ParameterError(
                "n_splits",
                f"={n_splits} leaves a part with fewer than {fewest} of the n_samples = {n_pairs} pairs; {cure}.",
            )


def _fit_part(matcher: PairMatcher, x: Array, y: Array, seed: int) -> PairMatcher:
    matcher = clone(matcher)
    if "random_state" in matcher.get_params():
        matcher.set_params(random_state=int(seed))
    with single_threaded_blas():  # the same sums whether parts run side by side or in turn
        fitted = matcher.fit(x, y)
    fitted.__dict__.pop("_learned", None)  # tables need not travel back
    return fitted
