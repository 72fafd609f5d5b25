"""Find the map that most pairs agree on, and say how sure it is: search, doubt, judge.

Where mistakes are independent of each other, the false alarms of the search say how sure it is (`evidence`). Where they
come in clumps (`clumps`), the map with the most places wins, and pairs that it was not fitted to decide.

*The hold-out test.* A map must be found again, and supported, where it was not looked for. The false alarms of
`evidence` count pairs, and are right where mistakes are independent. In clumps a patch that fits another patch has as
many supporters as it has points. What is independent is the place. So, where `clumps` finds that mistakes have a
correlation length l > 0:

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
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import gammainc

from inlier._typing import Array, FloatArray, Mask
from inlier.consensus.clumps import JointNeighbours, clump_length, folds_of_blocks, looks_clumped, repetition
from inlier.consensus.evidence import count_places, log_likelihood_ratio
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.refine import Candidate, Certainty, Consensus, fall_off
from inlier.consensus.search import Setting, Stage, as_generator, search, start_from
from inlier.progress import track
from inlier.rows.backend import rounding_of
from inlier.transforms.least_squares import MapModel, Maps

_JUDGING_RE_PAIRINGS = 10_000, 1_000_000  # for the p-values: the fewest and the most
_BELOW_RAREST = 30  # of those, how many shall lie below the p-value that decides
_FAR = 2.0  # bounds beyond which a pair is no witness of a map
_ALIKE = 0.5  # correlation of the errors of neighbours, above which they are one error
_FEWEST_FAR = 50  # pairs that do not follow the map, for clumps to be looked for
_GLANCED_AT = 1_000  # pairs that a first glance is at
_LOOKED_AT = 6_000  # pairs, at most, that the hold-out test is made on
_MOST_WEIGHED = 20_000  # pairs, for the last fit to weigh them by their clumps
_ONE_VOTE = 0.15  # of the correlation length: joint neighbours within share a vote in the last fit
_SCARCE = -40.0  # log of the false alarms above which repeated structure might explain them
_COINCIDE = 4.0  # bounds within which two pairs may be the same twice
_FOLDS = 8  # each of which is held out once
_MAY_DIFFER = (2, 2, 3, 4)  # folds so far, in each deal: right maps are found again in 7 of 8, false ones seldom
# The rest are shares of the correlation length l.
_BLOCK = 3.0  # side of the blocks: wide enough for most clumps to lie in one
_GUARD = 0.25  # held-out pairs nearer to a supporter elsewhere do not count
_ONE_VOTE_HELD_OUT = 0.4  # joint neighbours that share a vote of a held-out fold
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


def find_consensus(
    model: MapModel,
    X: Array,
    Y: Array,
    weights: FloatArray,
    noise_bound: float | None,
    alpha: float,
    random_state: Any,
    suggestion: Array | None = None,
) -> Consensus:
    """Find the map that most of the pairs (x_i, y_i) agree on; how sure it is, is said as if they were independent.

    Parameters
    ----------
    model : MapModel
        The maps that are looked for.
    X, Y : ndarray of shape (n, d_x), (n, d_y)
        The pairs, n >= 2.
    weights : ndarray of shape (n,)
        How much each counts.
    noise_bound : float or None
        Largest residual of a real pair, if known.
    alpha : float
        Rate of false discoveries that the re-paired residuals are to decide on.
    random_state : Generator, int, RandomState or None
        Draws samples and re-pairings.
    suggestion : ndarray of int, optional
        Pairs that are likely real: the map that fits them is where to start.
    """
    pairs, origin = ColumnPairs.from_rows(X, Y, weights, centred=model.has_shift)
    setting = Setting(model, pairs, noise_bound, as_generator(random_state))
    stage, found = search(setting, suggestion)
    return _finished(setting, stage, found, alpha, origin, (rounding_of(X), rounding_of(Y)))


def doubt(
    found: Consensus, noise_bound: float | None, alpha: float, rng: np.random.Generator
) -> tuple[Consensus, Certainty]:
    """Ask whether mistakes that come together could have done it; if so be it, the map is the one with most places.

    Parameters are those of `find_consensus`.
    """
    setting = Setting(found.model, found.pairs, noise_bound, rng)
    certainty, best = how_sure(setting, Candidate(found.map, found.evidence))
    if best is None:
        return found, certainty
    setting = Setting(found.model, _one_vote_a_clump(found.pairs, _ONE_VOTE * certainty.clump_length), noise_bound, rng)
    return _finished(setting, *start_from(setting, best), alpha, found.origin, found.rounding), certainty


def _finished(
    setting: Setting,
    stage: Stage,
    found: Candidate,
    alpha: float,
    origin: tuple[FloatArray, FloatArray],
    rounding: tuple[float, float],
) -> Consensus:
    """Draw the re-paired residuals that decide which pairs are real, and fit for the last time."""
    model, pairs, evidence = setting.model, setting.pairs, found.evidence
    rarest = alpha * max(evidence.inlier_fraction, 1 / pairs.n_pairs)  # p-value that a rate of alpha asks for
    fewest, most = _JUDGING_RE_PAIRINGS
    null = setting.re_paired_residuals(stage, found.map, int(min(max(_BELOW_RAREST / rarest, fewest), most)))
    # The map was fitted to the pairs within the bound, and its freedom has shortened their residuals.
    null *= math.sqrt(max(1 - model.freedom / (len(pairs.y) * max(evidence.n_supporting, 1)), 0.1))
    last_fit = None if pairs.is_wide else pairs.fit_and_moments(model, found.map, *fall_off(evidence.bound))
    looks_turned = model.may_mirror or (last_fit is not None and last_fit[1].handedness > 0)
    mirrored = not looks_turned and stage.is_better_mirrored(found)
    return Consensus(model, evidence, found.map, pairs, origin, rounding, null, last_fit, mirrored)


def how_sure(setting: Setting, found: Candidate) -> tuple[Certainty, Maps | None]:
    """How sure the map is, by pairs or by places; and the map to be refined anew, if it is sure by places."""
    evidence, model, rng = found.evidence, setting.model, setting.rng
    certainty = Certainty(evidence.log_false_alarms, float(evidence.n_supporting))
    if not model.keeps_distances or setting.pairs.is_wide or _is_beyond_suspicion(setting, found):
        return certainty, None
    some, length = setting.sample(_LOOKED_AT), 0.0
    far = some.take(np.flatnonzero(_is_far(some, found)))
    if far.n_pairs >= _FEWEST_FAR and looks_clumped(far.x.T, far.y.T, rng):
        length = clump_length(far.x.T, far.y.T, rng)
    if length == 0 and evidence.is_significant and _is_in_few_places(some, found):
        length = _COINCIDE * evidence.bound
    if length > 0:
        return _by_places(setting, found, some, length)
    if evidence.is_significant and _is_scarce(found) and far.n_pairs >= _FEWEST_FAR:
        certainty = replace(certainty, log_p_value=_beside_repeats(found, far, rng))
    return certainty, None


def _is_scarce(found: Candidate) -> bool:
    """Whether so little speaks for a map that repeated structure might have done it."""
    return found.evidence.log_false_alarms > _SCARCE


def _is_beyond_suspicion(setting: Setting, found: Candidate) -> bool:
    """Whether hardly any pair fails to follow the map, or a glance at those shows no clumps, and much speaks for it."""
    pairs, rng = setting.pairs, setting.rng
    some = pairs if pairs.n_pairs <= _GLANCED_AT else pairs.take(rng.integers(pairs.n_pairs, size=_GLANCED_AT))
    few_places = found.evidence.is_significant and _is_in_few_places(some, found)
    if found.has_clear_majority and not (few_places or _is_scarce(found)):
        return True  # whatever the others do
    far = _is_far(some, found).nonzero()[0]
    if far.size < _FEWEST_FAR:
        return not (few_places and _neighbours_miss_alike(some, found))
    if few_places or (found.evidence.is_significant and _is_scarce(found)):
        return False
    return found.has_clear_majority or not looks_clumped(some.x.T[far], some.y.T[far], rng)


def _beside_repeats(found: Candidate, far: ColumnPairs, rng: np.random.Generator) -> float:
    """The log of the false alarms where little speaks for a map, and repeated structure may have done it.

    There the map with another shift joins pairs that do not follow it g times as often as re-pairings, and so, by
    chance, does the map itself: g p instead of p.
    """
    evidence, images = found.evidence, far.x.T @ found.map.linear[0].T + found.map.shift[0]
    apart = _COINCIDE * evidence.bound
    times = repetition(images, far.y.T, np.ones(far.n_pairs), evidence.bound, 0.0, apart, rng)
    rates = evidence.by_chance * np.array([1.0, times])
    by_itself, beside = log_likelihood_ratio(evidence.n_supporting, evidence.n_pairs, rates)
    return min(evidence.log_false_alarms + float(by_itself - beside), 0.0)


def _by_places(setting: Setting, found: Candidate, some: ColumnPairs, length: float) -> tuple[Certainty, Maps | None]:
    """The hold-out test."""

    def look(part: ColumnPairs) -> Maps | None:
        if part.n_pairs <= setting.model.fewest_pairs + 1:
            return None
        _, again = search(Setting(setting.model, part, setting.noise_bound, setting.rng))
        return again.map if again.evidence.is_significant else None

    test = HoldOutTest(some, length, setting.noise_bound, look, setting.rng)
    best = test.best(found.map if found.evidence.is_significant else None)
    if best is None:
        return Certainty(0.0, 0.0, length), None
    far = ~some.is_near(best[0], _FAR * best[1])
    if np.count_nonzero(far) >= _FEWEST_FAR:  # those that follow the best map are no mistakes either
        length = clump_length(some.x.T[far], some.y.T[far], setting.rng) or length
        test = HoldOutTest(some, length, setting.noise_bound, look, setting.rng)
    certainty = test.judge(*best)
    if certainty.is_sure and _may_be_repeats(setting, found, test, best):
        certainty = replace(certainty, log_p_value=test.log_p_value_beside_repeats(*best))
    if certainty.is_sure:
        certainty = replace(certainty, runner_up=test.runner_up(*best))
    return certainty, best[0] if certainty.is_sure else None


def _may_be_repeats(setting: Setting, found: Candidate, test: HoldOutTest, best: tuple[Maps, float]) -> bool:
    """Whether repeated structure might have done it: the support is flat, or little, however the map is refined."""
    if test.is_flat(*best):
        return True
    if test.are_same(*best, found.map) and not _is_scarce(found):
        return False
    return _is_scarce(start_from(setting, best[0])[1])


def _one_vote_a_clump(pairs: ColumnPairs, reach: float) -> ColumnPairs:
    """Let the pairs of a clump weigh as much as one, unless they are too many to be compared."""
    if pairs.n_pairs > _MOST_WEIGHED:
        return pairs
    votes = JointNeighbours.within(pairs.x.T, pairs.y.T, reach).votes()
    return replace(pairs, weights=pairs.weights * votes / votes.max())


def _is_far(pairs: ColumnPairs, found: Candidate) -> Mask:
    """Which pairs are no witnesses of the map; all, where it is none."""
    if not found.evidence.is_significant:
        return np.ones(pairs.n_pairs, dtype=bool)
    return ~pairs.is_near(found.map, _FAR * found.evidence.bound)


def _neighbours_miss_alike(pairs: ColumnPairs, found: Candidate) -> bool:
    """Whether the errors of neighbouring pairs that follow the map are alike: then a place is one witness, not many."""
    near = pairs.near(found.map, found.evidence.bound)
    if near.n_pairs < _FEWEST_FAR:
        return False
    errors = near.y.T - near.x.T @ found.map.linear[0].T - found.map.shift[0]
    errors -= errors.mean(axis=0)
    _, neighbours = cKDTree(near.x.T).query(near.x.T, k=[2])
    alike = np.sum(errors * errors[neighbours[:, 0]])
    return bool(alike > _ALIKE * np.sum(errors**2))


def _is_in_few_places(pairs: ColumnPairs, found: Candidate) -> bool:
    """Whether all support lies in hardly more places than it takes to fix a map, which proves nothing."""
    near, side, enough = pairs.is_near(found.map, found.evidence.bound), 2 * found.evidence.bound, 2 * len(pairs.x) + 2
    rows = near.nonzero()[0]
    return all(count_places(pairs.x.take(some, axis=1), side) < enough for some in (rows[: 4 * enough], rows))


# ---- the hold-out test


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
        images, reach = self._x @ best.linear[0].T + best.shift[0], _ONE_VOTE_HELD_OUT * self._length
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
        votes = self._neighbours.nearer(_ONE_VOTE_HELD_OUT * self._length).among(counted).votes()[rows]
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
