"""Look for the map that most pairs agree on: Gram overlap first, then agreement on samples that grow.

A search in a sample of m pairs finds any consensus of some 15 of them. So a map that a share r of all pairs supports is
taken as soon as r m reaches that: a better one would have been found. Otherwise the sample grows, until it holds all
pairs or is as large as the time allows. In large samples only the pairs with the most friends are looked at closely.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inlier.consensus.evidence import Chance
from inlier.consensus.models import MapModel, Maps, fit_maps
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.refine import Finding, Refiner
from inlier.engine.blocks import Array, FloatArray
from inlier.overlap.agreement import Agreement, excess_of_friends, re_paired_disagreements

_SAMPLES = (400, 1600, 6400, 16_000)
_MOST_CANDIDATES = 1600  # pairs of which every two are compared to second order
_DENSITIES = np.array([0.2, 0.1, 0.05, 0.02, 0.007, 0.002])  # of chance agreements: what fixes the tolerances
_CIRCLE = 20  # friends, with the pair itself
_SEEDS = 32  # strongest circles of one tolerance that are fitted
_FOLLOWED = 2  # of those, the best supported are refined
_WEIGHED_ON = 4000  # pairs that maps are compared on
_RE_PAIRINGS = 20_000
_DECIDING_RE_PAIRINGS = 500_000
_CLEAR_MAJORITY = 0.5  # no other map can have more support
_RELIABLE = 15  # members of a consensus that a search does not miss


class ConsensusSearch:
    """One search; `run` gives the best map found and what speaks for it.

    Parameters
    ----------
    model : MapModel
        The maps that are looked for.
    pairs : ColumnPairs
        The pairs, near the origin.
    noise_bound : float or None
        Largest residual of a real pair, if known.
    rng : RandomState
        Draws samples and re-pairings.
    """

    def __init__(
        self, model: MapModel, pairs: ColumnPairs, noise_bound: float | None, rng: np.random.RandomState
    ) -> None:
        self._model, self._pairs, self._rng = model, pairs, rng
        self._noise_bound = noise_bound
        self._judges = self._sample(_WEIGHED_ON)
        disagreements = re_paired_disagreements(self._judges.x, self._judges.y, _RE_PAIRINGS, rng)
        self._tolerances = np.quantile(disagreements, _DENSITIES)
        if noise_bound is not None:
            self._tolerances = noise_bound * np.array([1.0, 0.5])
        self._refiner = Refiner(model, Chance(model, disagreements), noise_bound, rng)

    def run(self) -> Finding:
        """Search until a map is found that no better one can have escaped, or all samples have been tried."""
        best = self._decide(self._from_gram(), None)
        if best.evidence.inlier_fraction >= _CLEAR_MAJORITY and best.evidence.log_false_alarms < 0:
            return best
        for size in self._sample_sizes():
            best = self._decide(self._from_agreement(size), best)
            if best.evidence.inlier_fraction * size >= _RELIABLE and best.evidence.log_false_alarms < 0:
                break
        return best

    def _sample_sizes(self) -> Iterator[int]:
        n = self._pairs.n_pairs
        for size in _SAMPLES:
            yield min(size, n)
            if size >= n:
                return

    def _sample(self, size: int) -> ColumnPairs:
        """Draw pairs, the more likely the larger their weights."""
        pairs = self._pairs
        if size >= pairs.n_pairs and pairs.weights.min() > 0:
            return pairs
        usable = np.count_nonzero(pairs.weights)
        if np.ptp(pairs.weights) == 0:
            return pairs.take(_distinct(pairs.n_pairs, size, self._rng))
        share = pairs.weights / pairs.weights.sum()
        return pairs.take(self._rng.choice(pairs.n_pairs, min(size, usable), replace=False, p=share))

    def _from_gram(self) -> Finding:
        """Weight each pair by its row sum, x_i^T (X^T Y) y_i, where that is positive; fit; refine."""
        pairs, centre = self._judges, lambda z: z - z.mean(axis=1, keepdims=True) if self._model.has_shift else z
        x, y = centre(pairs.x), centre(pairs.y)
        row_sums = np.einsum("an,ab,bn->n", x, (x * pairs.weights) @ y.T, y, optimize=True)
        start = fit_maps(self._model, x.T[None], y.T[None], np.maximum(row_sums, 0.0)[None])
        shift = pairs.y.mean(axis=1) - start.linear[0] @ pairs.x.mean(axis=1) if self._model.has_shift else start.shift[0]
        return self._refiner.refine(pairs, Maps(start.linear, shift[None]))

    def _from_agreement(self, size: int) -> Finding | None:
        """Fit the tightest circles of friends at every tolerance; refine the best supported; the best of those."""
        sample, best = self._sample(size), None
        for tolerance, candidates in self._candidates(sample):
            chosen = sample.take(candidates)
            circles = Agreement(chosen.x, chosen.y, tolerance).circles(_CIRCLE)
            seeds = np.argsort(-circles.strength, kind="stable")[:_SEEDS]
            members, weights = circles.members[seeds], circles.weights[seeds]
            maps = fit_maps(self._model, chosen.x.T[members], chosen.y.T[members], weights)
            support = self._judges.support(maps, tolerance)
            for seed in np.argsort(-support, kind="stable")[:_FOLLOWED]:
                found = self._refiner.refine(self._judges, maps[int(seed)])
                best = found if found.beats(best) else best
        return best

    def _candidates(self, sample: ColumnPairs) -> Iterator[tuple[float, Array]]:
        """Yield each tolerance with the pairs to be compared at it."""
        m = sample.n_pairs
        everyone = np.arange(m)
        if m > _MOST_CANDIDATES:
            excess = excess_of_friends(sample.x, sample.y, self._tolerances, self._rng)
        for column, tolerance in enumerate(self._tolerances):
            if m > _MOST_CANDIDATES:
                yield tolerance, np.argpartition(-excess[:, column], _MOST_CANDIDATES)[:_MOST_CANDIDATES]
            else:
                yield tolerance, everyone

    def _decide(self, found: Finding | None, best: Finding | None) -> Finding | None:
        """Refine on all pairs, with many re-pairings, what may be better than the best."""
        if found is None:
            return best
        whole = self._refiner.refine(self._pairs, found.map) if self._pairs is not self._judges else found
        whole = self._refiner.weigh(self._pairs, whole.map, _DECIDING_RE_PAIRINGS)
        return whole if whole.beats(best) else best


def _distinct(n: int, size: int, rng: np.random.RandomState) -> Array:
    """Draw ``size`` different numbers below n, without a permutation of all n where n is large."""
    if size >= n:
        return np.arange(n)
    if n < 10 * size:
        return rng.permutation(n)[:size]
    return np.unique(rng.randint(n, size=size))
