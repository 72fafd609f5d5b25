"""Is it sure where mistakes come in clumps? A map must be found again, and supported, where it was not looked for.

The false alarms of `evidence` count pairs, and are right where mistakes are independent. In clumps a patch that fits
another patch has as many supporters as it has points. What is independent is the place. So, where `clumps` finds that
mistakes have a correlation length l > 0:

1. Maps are looked for among all pairs, and among pairs that are no joint neighbours of each other; the best is the one
   with the least likely number of votes (one vote a clump) within some bound.
2. Space is cut into blocks of side 3 l, which are dealt out to eight folds, up to four times, until it is clear. For
   each fold the map is looked for anew among the pairs of the *other* folds; the map that is found, with its bound, is
   shown to the pairs of the fold. Those count that are no joint neighbours, within l / 4, of a supporter elsewhere: so
   no clump speaks twice.
3. K is the number of votes that the fold's pairs give to a map that is the same as the best one, over all folds;
   lambda is the number that re-pairings of them would give to the maps that were found, the same or not. The map has
   never seen these pairs, so no choice has to be paid for: were all pairs wrong, K would have the mean lambda at most.
   A sum of votes of clumps, none of which has more than about one, varies no more than a Poisson number, so

       p = P(Poisson(lambda) >= K)   (the mean of the deals; lambda counts as 1 at least).

4. And it must be found again in nearly all folds: a false map depends on the few clumps that suggested it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
from scipy.special import gammainc

from inlier._typing import Array, FloatArray, Mask
from inlier.consensus.clumps import JointNeighbours, folds_of_blocks, repetition
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.refine import Certainty
from inlier.progress import track
from inlier.transforms.least_squares import Maps

_FOLDS = 8
_MAY_DIFFER = (2, 2, 3, 4)  # folds so far, in each deal: right maps are found again in 7 of 8, false ones seldom
# The rest are shares of the correlation length l.
_BLOCK = 3.0  # side of the blocks: wide enough for most clumps to lie in one
_GUARD = 0.25  # held-out pairs nearer to a supporter elsewhere do not count
_ONE_VOTE = 0.4  # joint neighbours that share a vote of a held-out fold
_NEIGHBOURS = 0.5  # the same where maps are compared; no joint neighbours farther apart are ever asked for
_SAME = 2.0  # root mean square distance of the images of its supporters, up to which a map is the same
_THINNED = (0.2, 0.35, 0.0)  # separations of the pairs that are searched, in this order, until a map is found
_THINNED_MORE = (0.1, 0.25)  # further ones for the best map of all
_BOUNDS = 2.0 ** np.arange(-3, 0.01, 0.5)  # within which votes are counted
_RARE = 0.03  # share of re-pairings within a bound, for it to be one
_RE_PAIRINGS = 40_000  # that rates are counted from
_FEWEST_EXPECTED = 1.0  # votes, so that a few are never a wonder
_THIN = 0.5  # of a bound: standard deviation across the plane of supporters that are flat
_SAME_ORDER = 0.5  # of the votes for the best map, that make another one worth a word
_HOPELESS, _CLEAR = -0.7, -30.0  # logarithm of p that ends the test; further deals take the luck out of it

Look = Callable[[ColumnPairs], Maps | None]  # the search: the map that some pairs agree on, if that is significant


class HoldOutTest:
    """The test on some pairs (a few thousand, in random order), whose mistakes have a correlation length."""

    def __init__(
        self, pairs: ColumnPairs, length: float, noise_bound: float | None, look: Look, rng: np.random.Generator
    ) -> None:
        self._pairs, self._length, self._look, self._rng = pairs, length, look, rng
        self._x, self._y = (np.ascontiguousarray(side.T) for side in (pairs.x, pairs.y))
        self._bounds = np.unique(np.minimum(length * _BOUNDS, np.inf if noise_bound is None else noise_bound))
        self._neighbours = JointNeighbours.within(self._x, self._y, _NEIGHBOURS * length)
        self._tally = 0.0, 0.0  # votes for the map that was judged, and those expected by chance: means of the deals

    def best(self, known: Maps | None) -> tuple[Maps, float] | None:
        """Return the map with the least likely votes, of all that are found, and its bound; None if there is none."""
        everyone = np.ones(self._pairs.n_pairs, dtype=bool)
        found = [known] if known is not None else []
        found += self._found_among(everyone, (*_THINNED, *_THINNED_MORE))
        return self._least_likely(found, everyone)

    def judge(self, best: Maps, bound: float) -> Certainty:
        """Look for the map in the rest of each fold, and count the votes of the fold."""
        votes, expected, n_agree, n_folds, log_p = 0.0, 0.0, 0, 0, 0.0
        n_places = self._n_places(best, bound)
        supporters = self._x[self._residuals(best) <= bound]
        for n_deals, may_differ in enumerate(_MAY_DIFFER, start=1):
            for fold in track("hold-out test", self._deal()):
                n_folds += 1
                again = self._least_likely(self._first_found(~fold), ~fold)
                if again is not None:
                    here, by_chance = self._votes_of(fold, *again)
                    expected += by_chance
                    if _gap(supporters, best, again[0]) <= _SAME * self._length:
                        votes, n_agree = votes + here, n_agree + 1
                if n_folds - n_agree > may_differ:
                    return Certainty(0.0, n_places, self._length)
            self._tally = votes / n_deals, expected / n_deals
            log_p = self._log_p_value()
            if not _CLEAR < log_p < _HOPELESS:
                break
        return Certainty(log_p, n_places, self._length)

    def is_flat(self, maps: Maps, bound: float) -> bool:
        """Whether the supporters of a map lie in a plane (in two dimensions on a line), where patches fit anywhere."""
        supporters = self._x[self._residuals(maps) <= bound]
        thickness = np.linalg.svd(supporters - supporters.mean(axis=0), compute_uv=False)[-1] / np.sqrt(len(supporters))
        return bool(thickness <= _THIN * bound)

    def are_same(self, maps: Maps, bound: float, other: Maps) -> bool:
        """Whether another map carries the supporters of one to the same places."""
        return _gap(self._x[self._residuals(maps) <= bound], maps, other) <= _SAME * self._length

    def log_p_value_beside_repeats(self, best: Maps, bound: float) -> float:
        """The same where repeated structure may have done it: chance then gives more votes, as other shifts tell."""
        images, reach = self._x @ best.linear[0].T + best.shift[0], _ONE_VOTE * self._length
        votes, clear = self._neighbours.nearer(reach).votes(), _SAME * self._length
        return self._log_p_value(repetition(images, self._y, votes, bound, clear, self._length, self._rng))

    def _log_p_value(self, times: float = 1.0) -> float:
        """log P(Poisson >= votes), if so many times as many are expected as among re-pairings."""
        votes, expected = self._tally
        return log_poisson_tail(votes, max(times * expected, _FEWEST_EXPECTED))

    def runner_up(self, best: Maps, bound: float) -> tuple[Maps, float] | None:
        """Another map, found among pairs that are far from the best one, if it is of the same order, and its votes.

        That is, within the bound of the best one it has half as many votes, and they are half as unlikely.
        """
        far = self._residuals(best) > 2 * self._length
        second = self._least_likely(self._first_found(far), far)
        if second is None or _gap(self._x[~far], best, second[0]) <= _SAME * self._length:
            return None
        (votes, log_p), (of_best, log_p_of_best) = (self._votes_within(maps, bound) for maps in (second[0], best))
        if votes < _SAME_ORDER * of_best or log_p > _SAME_ORDER * log_p_of_best:
            return None
        return second[0], votes

    def _votes_within(self, maps: Maps, bound: float) -> tuple[float, float]:
        """The votes of all pairs for a map within a bound, and how unlikely so many are by chance, as a logarithm."""
        votes, rate = self._n_places(maps, bound), self._rates(np.arange(len(self._x)), maps, np.array([bound]))[0]
        return votes, log_poisson_tail(votes, float(self._neighbours.votes().sum() * rate))

    def _deal(self) -> list[Mask]:
        """The folds, if there is more than one block."""
        fold = folds_of_blocks(self._x, _BLOCK * self._length, _FOLDS, self._rng)
        return [fold == k for k in range(int(fold.max()) + 1)] if fold.max() > 0 else []

    def _found_among(self, chosen: Mask, separations: tuple[float, ...]) -> Iterator[Maps]:
        """Search among those of the chosen that are so far from each other; all, for 0."""
        for separation in separations:
            some = chosen
            if separation > 0:
                some = self._neighbours.nearer(separation * self._length).separated(chosen, self._rng)
            found = self._look(self._pairs.take(np.flatnonzero(some)))
            if found is not None:
                yield found

    def _first_found(self, chosen: Mask) -> list[Maps]:
        return list(islice(self._found_among(chosen, _THINNED), 1))

    def _least_likely(self, found: list[Maps], chosen: Mask) -> tuple[Maps, float] | None:
        """The map, and the bound, within which so many votes of the chosen are least likely by chance."""
        if not found:
            return None
        rows = np.flatnonzero(chosen)
        votes = self._neighbours.among(chosen).votes()[rows]
        best, lowest = None, 0.0
        for maps in found:
            residuals = self._residuals(maps)[rows]
            for bound, rate in zip(self._bounds, self._rates(rows, maps, self._bounds), strict=True):
                if rate <= _RARE:
                    log_p = log_poisson_tail(float(votes[residuals <= bound].sum()), float(votes.sum() * rate))
                    if log_p < lowest:
                        best, lowest = (maps, float(bound)), log_p
        return best

    def _votes_of(self, fold: Mask, maps: Maps, bound: float) -> tuple[float, float]:
        """The votes of a fold for a map that was found elsewhere, and how many its re-pairings would give."""
        residuals = self._residuals(maps)
        supports_elsewhere = ~fold & (residuals <= 2 * bound)
        counted = fold & ~self._neighbours.nearer(_GUARD * self._length).touching(supports_elsewhere)
        rows = np.flatnonzero(counted)
        if not rows.size:
            return 0.0, 0.0
        votes = self._neighbours.nearer(_ONE_VOTE * self._length).among(counted).votes()[rows]
        rate = float(self._rates(rows, maps, np.array([bound]))[0])
        return float(votes[residuals[rows] <= bound].sum()), float(votes.sum()) * rate

    def _n_places(self, maps: Maps, bound: float) -> float:
        return float(self._neighbours.votes()[self._residuals(maps) <= bound].sum())

    def _residuals(self, maps: Maps) -> FloatArray:
        return np.sqrt(self._pairs.squared_residuals(maps))

    def _rates(self, rows: Array, maps: Maps, bounds: FloatArray) -> FloatArray:
        """Share of re-pairings of these points x, with any y, that a map brings within the bounds."""
        x = self._x[rows[self._rng.integers(rows.size, size=_RE_PAIRINGS)]]
        y = self._y[self._rng.integers(len(self._y), size=_RE_PAIRINGS)]
        step = y - x @ maps.linear[0].T - maps.shift[0]
        within = np.searchsorted(np.sort(np.einsum("ij,ij->i", step, step)), bounds**2, side="right")
        rates: FloatArray = (within + 1) / (_RE_PAIRINGS + 1)
        return rates


def log_poisson_tail(count: float, expected: float) -> float:
    """log P(Poisson(expected) >= count), continued to fractions."""
    if count <= expected:
        return 0.0
    tail = float(gammainc(count, expected))
    return math.log(tail) if tail > 0 else -(count * math.log(count / expected) - count + expected)  # Chernoff


def _gap(points: FloatArray, a: Maps, b: Maps) -> float:
    """Root mean square distance of the images of points under two maps."""
    if not len(points):
        return np.inf
    step = points @ (a.linear[0] - b.linear[0]).T + (a.shift[0] - b.shift[0])
    return float(np.sqrt(np.einsum("ij,ij->", step, step) / len(points)))
