"""What a score says, frozen: p-values by the re-pairings that were judged, q-values by the pairs of the fit.

Of many scores a few thousand levels are kept. A score counts as the highest level at or below it, so that no p- or
q-value is too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inlier._typing import Array, FloatArray

_EVENLY, _HIGHEST = 2_000, 2_000  # levels: evenly among all scores, and each of the highest by itself


@dataclass(frozen=True, eq=False)
class Levels:
    """Rising scores, and what is said at each; below all of them nothing speaks for a pair."""

    null: FloatArray  # levels of re-pairings
    p: FloatArray
    pairs: FloatArray  # levels of pairs of the fit
    counts: Array  # how many of these pairs lie below the first level, and from each level to the next
    q: FloatArray
    certain_q: FloatArray

    @staticmethod
    def of(scores: FloatArray, certain_q: FloatArray, null: FloatArray, share_wrong: float) -> Levels:
        """From scores of pairs that the judge has not seen, and of their re-pairings.

        At a score s, q is the share of wrong pairs among all of at least s: the share of all pairs that are wrong,
        times P0(s), over the share of pairs that reach s. The certain q-value is the mean of theirs.
        """
        null_levels, above = _thinned(null)
        p = (above + 1) / (null.size + 1)
        levels, at_least = _thinned(scores)
        p_of_levels = np.append(1.0, p)[np.searchsorted(null_levels, levels, side="right")]
        q = np.minimum(share_wrong * p_of_levels * scores.size / at_least, 1.0)
        order = np.argsort(-scores, kind="stable")
        mean_certain = np.cumsum(certain_q[order]) / np.arange(1, scores.size + 1)
        q, certain = (np.minimum.accumulate(of) for of in (q, mean_certain[at_least - 1]))
        counts = -np.diff(np.concatenate([[scores.size], at_least, [0]]))
        return Levels(null_levels, p, levels, counts, q, np.maximum(certain, q))

    @staticmethod
    def of_nothing() -> Levels:
        """Where nothing was learned."""
        one = np.ones(1)
        return Levels(0 * one, one, 0 * one, np.array([0, 1]), one, one)

    def read(self, scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The p-, q- and certain q-value of each score."""
        of_null = np.searchsorted(self.null, scores, side="right")
        of_pairs = np.searchsorted(self.pairs, scores, side="right")
        p, q, certain = (np.append(1.0, of) for of in (self.p, self.q, self.certain_q))
        return p[of_null], q[of_pairs], certain[of_pairs]

    def lowest(self, alpha: float) -> float:
        """The score from which on pairs are accepted; infinite where none would be."""
        accepted = np.flatnonzero(self.q <= alpha)
        return float(self.pairs[accepted[0]]) if accepted.size else np.inf

    def arrays(self) -> dict[str, Array]:
        """What is stored."""
        return {name: getattr(self, name) for name in ("null", "p", "pairs", "counts", "q", "certain_q")}

    @staticmethod
    def of_arrays(arrays: dict[str, Array]) -> Levels:
        """The same again; ValueError where it does not fit together."""
        levels = Levels(*(arrays[name] for name in ("null", "p", "pairs", "counts", "q", "certain_q")))
        n, m = levels.null.size, levels.pairs.size
        sizes = levels.p.size, levels.q.size, levels.certain_q.size, levels.counts.size
        rising = all((np.diff(of) > 0).all() for of in (levels.null, levels.pairs))
        if sizes != (n, m, m, m + 1) or min(n, m) < 1 or not rising:
            raise ValueError("the levels do not fit together")
        return levels


def _thinned(scores: FloatArray) -> tuple[FloatArray, Array]:
    """Different scores, rising, not too many; and how many scores are at least as high as each."""
    rising = np.sort(scores)
    places = np.unique(np.linspace(0, rising.size - 1, min(_EVENLY, rising.size)).astype(np.int64))
    levels = np.unique(np.concatenate([rising[places], rising[-_HIGHEST:]]))
    return levels, rising.size - np.searchsorted(rising, levels, side="left")
