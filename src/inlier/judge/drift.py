"""Are the pairs that come like those of the fit? A bet against it, whose winnings say so, and from which row on.

The score of each pair is compared with those of the pairs that the judge's null was taken from and of all that came
before it: among exchangeable pairs its rank is uniform, whatever their law. A gambler bets on ranks that are not, now
on high ones, now on low ones (the "simple jumper" of Vovk and others). In a stream like the fit nobody wins: the
chance ever to multiply the stake by 100 is at most 1 in 100, however long it runs (Ville).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inlier._checks import check_number
from inlier._typing import Array, FloatArray
from inlier.result import MatchResult

_STAKES = (-1.0, 0.0, 1.0)  # bets 1 + stake (rank - 1/2)
_JUMPS = 0.01  # share of the capital that is dealt anew at each row
_AT_ONCE = 256  # rows whose ranks are found together


class Drift:
    """Watches a stream of scores; made by `Judge.drift`.

    Attributes
    ----------
    n : int
        How many rows have come.
    evidence : float
        What a stake of 1 would have grown to, at its highest.
    from_row : int or None
        The row from which on pairs are unlike the fit, counted from 0; None as long as nothing speaks for that.
    """

    def __init__(self, levels: FloatArray, counts: Array, error: float = 0.01, random_state: int = 0) -> None:
        self.error = check_number(error, "error", low=0, high=1)
        self._levels, self._counts = levels, counts.astype(np.float64)
        self._rng = np.random.default_rng(random_state)
        self._capital = [1 / len(_STAKES)] * len(_STAKES)
        self._log, self._lowest, self._lowest_row = 0.0, 0.0, 0
        self.n, self._log_highest = 0, 0.0
        self.from_row: int | None = None

    @property
    def evidence(self) -> float:
        """What a stake of 1 would have grown to, at its highest."""
        return float(np.exp(min(self._log_highest, 700.0)))

    def update(self, judged: Any) -> Drift:
        """Look at the next pairs: what the judge said of them, or their scores, in the order in which they come."""
        scores = judged.scores if isinstance(judged, MatchResult) else judged
        bins = np.searchsorted(self._levels, np.asarray(scores, dtype=np.float64).reshape(-1), side="right")
        for start in range(0, bins.size, _AT_ONCE):
            self._bet(self._ranks(bins[start : start + _AT_ONCE]))
        return self

    def _ranks(self, bins: Array) -> FloatArray:
        """Share of all that came before, and of the fit, with a higher score; of equal ones a random part."""
        above = np.cumsum(self._counts[::-1])[::-1] - self._counts
        earlier = np.tri(bins.size, k=-1, dtype=bool)
        higher = above[bins] + (earlier & (bins > bins[:, None])).sum(axis=1)
        equal = self._counts[bins] + (earlier & (bins == bins[:, None])).sum(axis=1) + 1
        total = self._counts.sum() + np.arange(1, bins.size + 1)
        self._counts += np.bincount(bins, minlength=self._counts.size)
        ranks: FloatArray = (higher + self._rng.uniform(size=bins.size) * equal) / total
        return ranks

    def _bet(self, ranks: FloatArray) -> None:
        capital, log = self._capital, self._log
        for rank in ranks.tolist():
            total = sum(capital)
            shared = _JUMPS * total / len(capital)
            capital = [
                ((1 - _JUMPS) * own + shared) * (1 + stake * (rank - 0.5))
                for own, stake in zip(capital, _STAKES, strict=True)
            ]
            grown = sum(capital)
            log += float(np.log(grown))
            capital = [own / grown for own in capital]
            if log <= self._lowest:
                self._lowest, self._lowest_row = log, self.n + 1
            self._log_highest = max(self._log_highest, log)
            self.n += 1
            if self.from_row is None and log >= -np.log(self.error):
                self.from_row = self._lowest_row
        self._capital, self._log = capital, log

    def __repr__(self) -> str:
        """The drift word, as a sentence."""
        if self.from_row is None:
            return f"<nothing says that these {self.n:,} pairs are unlike those of the fit>"
        return (
            f"<pairs from about row {self.from_row:,} on are unlike those of the fit (evidence {self.evidence:.3g} to "
            f"1): fit a sample of them>"
        )
