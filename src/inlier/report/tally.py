"""What is counted of the pairs, all at once or block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from inlier._typing import Array
from inlier.result import places_of_lowest

REAL, DOUBTFUL, WRONG = VERDICTS = ("real", "doubtful", "wrong")
MORE_LIKELY_WRONG = 0.5  # q-values above it
N_WORST = 10  # pairs, as many as anything shows
_TYPICAL = (0.1, 0.9)  # of the pairs that are not certain: between them lie the numbers of rows that are said


@dataclass
class Tally:
    """What is counted of the pairs; none is held but the worst.

    Attributes
    ----------
    counts : ndarray of int
        How many pairs are accepted, neither accepted nor like wrong ones, like wrong ones.
    n_certain : int or None
        How many no other row would replace; None where others were not compared.
    n_with_rivals : ndarray of int
        How many of the other accepted pairs have 0, 1, 2, ... other rows that would fit.
    n_on_their_way : int
        How many have p-values that are neither small nor those of wrong pairs alone.
    lowest_q : tuple of float and int
        The lowest q-value, and how many pairs have it.
    lowest_score, highest_score : float
        The scores lie between them.
    worst : dict of ndarrays
        The columns of the ten pairs with the lowest scores, the lowest first, of equal ones the first.
    """

    counts: Array = field(default_factory=lambda: np.zeros(len(VERDICTS), dtype=np.int64))
    n_certain: int | None = None
    n_with_rivals: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n_on_their_way: int = 0
    lowest_q: tuple[float, int] = (np.inf, 0)
    lowest_score: float = np.inf
    highest_score: float = -np.inf
    worst: dict[str, Array] = field(default_factory=dict)
    _worst_scores: Array = field(default_factory=lambda: np.empty(0))

    def add(self, block: Mapping[str, Array], scores: Array) -> None:
        """Count a block of pairs: its columns by name, and the scores that they are ordered by."""
        q = block.get("q_value")
        self.counts += np.bincount(verdicts_of(block["inlier"], q), minlength=len(VERDICTS))
        if "p_value" in block:
            from inlier.calibration.p_values import on_their_way  # the paper's methods need none of that

            self.n_on_their_way += int(np.count_nonzero(on_their_way(block["p_value"])))
        if "certain" in block:
            self._add_certain(block["certain"], block["n_rivals"], block["inlier"])
        self.lowest_score = min(self.lowest_score, float(scores.min()))
        self.highest_score = max(self.highest_score, float(scores.max()))
        if q is not None and float(q.min()) <= self.lowest_q[0]:
            least = float(q.min())
            before = self.lowest_q[1] if self.lowest_q[0] == least else 0
            self.lowest_q = least, before + int((q == least).sum())
        low = places_of_lowest(scores, N_WORST)
        both = np.concatenate([self._worst_scores, scores[low]])
        order = np.argsort(both, kind="stable")[:N_WORST]
        kept = self.worst or {name: column[:0] for name, column in block.items()}
        self.worst = {name: np.concatenate([kept[name], column[low]])[order] for name, column in block.items()}
        self._worst_scores = both[order]

    def _add_certain(self, certain: Array, n_rivals: Array, accepted: Array) -> None:
        is_compared = n_rivals >= 0
        if not is_compared.any():
            return
        self.n_certain = (self.n_certain or 0) + int(np.count_nonzero(certain))
        compared = n_rivals[is_compared & accepted & ~certain]
        found = np.bincount(compared, minlength=self.n_with_rivals.size)
        found[: self.n_with_rivals.size] += self.n_with_rivals
        self.n_with_rivals = found

    @property
    def rows_that_fit(self) -> tuple[int, int] | None:
        """From how many to how many rows typically fit where a pair is not certain, its own row among them."""
        up_to = np.cumsum(self.n_with_rivals)
        if not up_to.size:
            return None
        low, high = (1 + int(np.searchsorted(up_to, share * up_to[-1])) for share in _TYPICAL)
        return low, high


def verdicts_of(mask: Array, q_values: Array | None) -> Array:
    """Per pair the place in `VERDICTS`: what is neither accepted nor like wrong pairs is doubtful."""
    is_wrong = True if q_values is None else q_values > MORE_LIKELY_WRONG
    return np.where(mask, 0, np.where(is_wrong, 2, 1)).astype(np.int8)
