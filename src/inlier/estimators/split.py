"""Algorithm 3: split the pairs at random, match each part on its own, put the answers together."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_random_state

from inlier._checks import check_count
from inlier._typing import Array
from inlier.estimators._base import PairMatcher
from inlier.exceptions import ParameterError
from inlier.rows import PairedRows, as_stored
from inlier.rows.threads import single_threaded_blas


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
    p_values_, q_values_, inlier_fraction_, inlier_fraction_interval_, null_scores_, n_re_pairings_
        As the matcher gives them, if it is calibrated; of shares and the ends of their intervals the mean over pairs.
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
    times as much.

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
            ends = np.average([m.inlier_fraction_interval_ for m in fitted], axis=0, weights=sizes)
            self.inlier_fraction_interval_ = float(ends[0]), float(ends[1])

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
