"""What a matcher found, apart from how."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._cards import card
from inlier._typing import Array, FloatArray, Mask
from inlier.rows.backend import to_host

_SHOWN = 5  # pairs, in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class MatchResult:
    """Which pairs are real, with the evidence.

    Attributes
    ----------
    method : str
        Class of the matcher.
    inlier_mask : ndarray of bool, shape (n,)
        True where the pair was called real.
    scores : ndarray of float, shape (n,)
        Larger means more like a real pair.
    threshold : float or ndarray of float
        Scores at or above it are inliers; one per part where the pairs were split.
    p_values, q_values : ndarray of float, shape (n,), optional
        From a calibrated matcher: the chance that a wrong pair scores as high, and the smallest false
        discovery rate at which the pair is accepted.
    certain_q_values, certain_mask, n_rivals : ndarray of shape (n,), optional
        From `CalibratedMatcher`: the smallest rate at which it is this pair and no other, whether it is so, and
        how many other rows would fit; -1 where none were compared.
    labels : pandas Index, optional
        Names of the rows of X, where it was a data frame.
    labels_y : pandas Index, optional
        Names of the rows of y, where they are others than those of X.

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=0.6, noise=0.1, rng=0)
    >>> result = CalibratedMatcher(random_state=0).fit(data.X, data.Y).result_
    >>> result
    <CalibratedMatcher result: 30... of 500 pairs called real (60...%)>
    >>> list(result.columns()), bool(data.inlier_mask[result.worst(3)].any())
    (['score', 'p_value', 'q_value', 'inlier', 'certain_q_value', 'certain', 'n_rivals'], False)
    """

    method: str
    inlier_mask: Mask
    scores: FloatArray
    threshold: float | FloatArray
    p_values: FloatArray | None = None
    q_values: FloatArray | None = None
    certain_q_values: FloatArray | None = None
    certain_mask: Mask | None = None
    n_rivals: Array | None = None
    labels: Any = None
    labels_y: Any = None

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return int(self.inlier_mask.shape[0])

    @property
    def n_inliers(self) -> int:
        """Number of pairs called real."""
        return int(to_host(self.inlier_mask).sum())

    @property
    def n_certain(self) -> int | None:
        """Number of pairs that no other row would replace; None where others were not compared."""
        if self.certain_mask is None or self.n_rivals is None or (to_host(self.n_rivals) < 0).all():
            return None
        return int(to_host(self.certain_mask).sum())

    def __repr__(self) -> str:
        share = self.n_inliers / self.n_pairs
        return f"<{self.method} result: {self.n_inliers:,} of {self.n_pairs:,} pairs called real ({share:.1%})>"

    def _repr_html_(self) -> str:
        """What notebooks show: the answer, and the pairs to look at first."""
        share, rows = self.n_inliers / self.n_pairs, []
        if isinstance(self.scores, np.ndarray):
            places, columns = self.worst(_SHOWN), self.columns()
            names = {"pair": places, **{name: column[places] for name, column in columns.items()}}
            values = zip(*(column.tolist() for column in names.values()), strict=True)
            rows = [dict(zip(names, line, strict=True)) for line in values]
        certain = "" if self.n_certain is None else f", {self.n_certain:,} of them certain"
        sentence = f"{self.n_inliers:,} of {self.n_pairs:,} pairs called real ({share:.1%}){certain}. Lowest scores:"
        return card(
            f"{self.method} result", [sentence if rows else sentence.removesuffix(" Lowest scores:")], rows, share
        )

    def worst(self, k: int = 10) -> Array:
        """Row numbers of the ``k`` pairs with the lowest scores, the lowest first; of equal ones the first."""
        if k < 0:
            raise ValueError(f"k must not be negative; got {k}.")
        return places_of_lowest(to_host(self.scores), int(k))

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per pair: score, p- and q-value if there are any, inlier, certainty.

        Its index are the labels of the rows of X, if they had any; where those of y are others, they are its first
        column, ``partner``.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame needs pandas; install it with: pip install pandas") from error
        index = pandas.RangeIndex(self.n_pairs, name="pair") if self.labels is None else self.labels
        partner = {} if self.labels_y is None else {"partner": np.asarray(self.labels_y)}
        return pandas.DataFrame(partner | self.columns(), index=index)

    def to_json(self, indent: int | None = None) -> str:
        """Return everything as JSON text that any program can read."""
        content = {
            "method": self.method,
            "n_pairs": self.n_pairs,
            "n_inliers": self.n_inliers,
            "threshold": np.asarray(self.threshold).tolist(),
            **{name: column.tolist() for name, column in self.columns().items()},
        }
        return json.dumps(content, indent=indent, allow_nan=False)

    def columns(self) -> dict[str, Array]:
        """Everything that there is per pair, by name."""
        columns = {
            "score": self.scores,
            "p_value": self.p_values,
            "q_value": self.q_values,
            "inlier": self.inlier_mask,
            "certain_q_value": self.certain_q_values,
            "certain": self.certain_mask,
            "n_rivals": self.n_rivals,
        }
        return {name: to_host(column) for name, column in columns.items() if column is not None}


def places_of_lowest(scores: FloatArray, k: int) -> Array:
    """Places of the ``k`` lowest scores, the lowest first; of equal ones the first."""
    if not 0 < k < scores.size:
        return np.argsort(scores, kind="stable")[:k]
    candidates = np.flatnonzero(scores <= np.partition(scores, k - 1)[k - 1])  # ties included
    return candidates[np.argsort(scores[candidates], kind="stable")[:k]]
