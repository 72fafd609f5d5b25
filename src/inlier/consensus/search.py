"""Look for the map that most pairs agree on: Gram overlap first, then agreement on samples that grow.

The Gram overlap starts a fit that gives far pairs ever less say: it finds what outweighs wrong pairs all about.
A search in a sample of m pairs finds any consensus of some 15 of them. So a sure map that a share r of all pairs
supports, pairs in one place counted as one, is taken as soon as r m reaches that: a better one would have been found.
One with a clear majority is taken at once. Otherwise the sample grows, until it holds all pairs or is as large as the
time allows. In large samples only the pairs with the most friends are looked at closely. How large the first sample is
depends on whether the Gram overlap has led to a sure map, which only has to be compared with others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property, reduce

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.consensus.crowding import Crowding
from inlier.consensus.draws import Draws
from inlier.consensus.evidence import Chance
from inlier.consensus.models import MapModel, Maps
from inlier.consensus.outcome import Consensus
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.refine import FINE, Finding, Refiner, better_of, fall_off
from inlier.consensus.scales import Scales
from inlier.consensus.suggestions import QuickLook, maps_of_circles
from inlier.rows.namespaces import rounding_of
from inlier.rows.threads import single_threaded_blas

_SMALLEST_SAMPLE, _LARGEST_SAMPLE = 100, 16_000  # pairs
_FIRST_SAMPLE, _GROWTH = 1000, 4  # where no map is sure that would tell how large a sample should be
_FOLLOWED = 6  # most promising maps of a round that are fitted again
_REFINED = 3  # of those, how many are refined
_FAR_LESS = 0.25  # times the surprise
_WEIGHED_ON = 4000  # pairs that maps are compared on
_QUICK_LOOK = 1000  # pairs of a first look, which also decide what is worth a refinement
_LOOKED_AT = 5_000  # re-pairings, and pairs of neighbours, in a first look
_FINE_NOISE = 0.05  # of the spread: a bound below which a narrowed fit is not as sharp as the pairs are
_BEYOND_DOUBT = -100.0  # log of the false alarms
_TIGHT = 0.002  # share of re-pairings within the bound of a map that cannot become far better
_LITTLE_LOST = 0.8  # of the surprise, that polishing may leave
_SCARCE = -40.0  # log of the false alarms: a little more evidence may decide
_COARSER_FITS = 1.5, 3.0  # times the bound that was found
_FAR_BETTER = 1.2  # times the surprise
_AS_FINE, _MOST = 1.5, 0.6  # what makes a suggestion the same as what was found: bounds, common support
_DECIDING_RE_PAIRINGS = 200_000, 2_000_000  # the fewest and the most
_PER_PAIR = 100  # so many more of them than pairs, and their number makes hardly a difference
_JUDGING_RE_PAIRINGS = 10_000, 1_000_000  # for the p-values: the fewest and the most
_MOST_PARTNERS = 16  # that a point is re-paired with, where there are other points
_BELOW_RAREST = 30  # of those, how many shall lie below the p-value that decides
_CLEAR_MAJORITY = 0.4  # hardly another map can have more support
_COARSER, _AT_THE_LIMIT = (0.05, 0.25, 1.0), 0.7  # shares of re-pairings within the bound
_WORTH_A_CLOSER_LOOK = 200  # pairs in a sample in which unlikely tolerances are tried too
_RELIABLE = 15  # members of a consensus that a search does not miss
_MORE_THAN_RELIABLE = 19  # members that the next sample aims at


def find_consensus(
    model: MapModel,
    X: Array,
    Y: Array,
    weights: FloatArray,
    noise_bound: float | None,
    alpha: float,
    draws: Draws,
    suggestion: Array | None = None,
) -> Consensus:
    """Find the map that most of the pairs (x_i, y_i) agree on.

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
    draws : Draws
        Draws samples and re-pairings.
    suggestion : ndarray of int, optional
        Pairs that are likely real: the map that fits them is where to start.
    """
    pairs, origin = ColumnPairs.from_rows(X, Y, weights, centred=model.has_shift)
    search = ConsensusSearch(model, pairs, noise_bound, draws)
    start = None
    if suggestion is not None and suggestion.size >= model.fewest_pairs:
        start = pairs.take(suggestion).fit(model)
    found = search.finish(search.run(start))
    rarest = alpha * max(found.evidence.inlier_fraction, 1 / len(X))  # p-value that a rate of alpha asks for
    fewest, most = _JUDGING_RE_PAIRINGS
    re_pairings = int(min(max(_BELOW_RAREST / max(rarest, 1e-9), fewest), most))
    null = search.re_paired_residuals(found.map, re_pairings)
    rounding = rounding_of(X), rounding_of(Y)
    mirrored = search.is_better_mirrored(found)
    return Consensus(model, found.evidence, found.map, pairs, origin, rounding, null, mirrored)


class ConsensusSearch:
    """One search; `run` gives the best map found and what speaks for it."""

    def __init__(self, model: MapModel, pairs: ColumnPairs, noise_bound: float | None, draws: Draws) -> None:
        self._model, self._noise_bound, self._draws = model, noise_bound, draws
        self._in_order, self._equal_weights = pairs, float(np.ptp(pairs.weights)) == 0
        self._jury = self._judges if pairs.n_pairs <= _QUICK_LOOK else pairs.take(self._draw(_QUICK_LOOK))
        self._last_counted: tuple[Finding | None, float] = None, 0.0  # and the share of independent members

    @cached_property
    def _judges(self) -> ColumnPairs:
        """Pairs that maps are weighed on."""
        return self._in_order.take(self._draw(_WEIGHED_ON))

    @cached_property
    def _pairs(self) -> ColumnPairs:
        """All pairs, in random order or with a sample of them that is."""
        pairs, n = self._in_order, self._in_order.n_pairs
        shuffled = self._judges if self._equal_weights else pairs.take(self._draws.distinct(n, _WEIGHED_ON))
        return pairs.with_sample(shuffled) if n > _WEIGHED_ON else shuffled

    @cached_property
    def _scales(self) -> Scales:
        return Scales(self._model, self._judges, self._noise_bound, self._draws)

    @cached_property
    def refiner(self) -> Refiner:
        """Weighs maps on the judges."""
        return Refiner(
            self._model, Chance(self._model, self._scales.disagreements, Crowding(self._judges)), self._noise_bound
        )

    @cached_property
    def _looks(self) -> tuple[QuickLook, QuickLook]:
        """Of the jury and of the judges."""
        return QuickLook(self.refiner.chance, self._jury), QuickLook(self.refiner.chance, self._judges)

    def run(self, suggestion: Maps | None = None) -> Finding:
        """Search until a map is found that no better one can have escaped, or all samples have been tried."""
        settled = self._first_look() if suggestion is None else None
        if settled is not None:
            return settled
        best = self.refiner.refine(self._judges, self.refiner.narrow(self._judges, self._start))
        if suggestion is not None:
            best = better_of(self._with_breadth(best), self._refine(suggestion))
        if _has_clear_majority(best):
            return self._on_all_pairs(best)
        with single_threaded_blas() if not self._pairs.is_wide else nullcontext():  # small products, one after another
            return self._by_agreement(best)

    def _by_agreement(self, best: Finding) -> Finding:
        """Search samples that grow."""
        best = self._with_breadth(best)
        size = self._telling_size(best, _FIRST_SAMPLE)
        on_all: list[Finding] = []
        while True:
            best = self._from_agreement(size, best)
            sure = _is_sure(best)
            whole = best if sure else self._on_all_pairs(best)  # all pairs may tell what a part does not
            on_all += [] if sure else [whole]
            expected = self._independent_members(whole, size)
            if expected >= _RELIABLE or size >= min(self._pairs.n_pairs, _LARGEST_SAMPLE):
                return self._best_of_all([*on_all, self._on_all_pairs(best)] if sure else on_all)
            size = self._telling_size(whole, _GROWTH * size)

    def _first_look(self) -> Finding | None:
        """What a small part of the pairs says, if that leaves no doubt: where most pairs agree, it does."""
        jury, model = self._jury, self._model
        if self._in_order.n_pairs <= _QUICK_LOOK or model.may_stretch:
            return None
        disagreements = Scales(model, jury, self._noise_bound, self._draws).disagreements
        chance = Chance(model, disagreements, Crowding(jury, _LOOKED_AT))
        refiner = Refiner(model, chance, self._noise_bound, re_pairings=_LOOKED_AT)
        found = refiner.weigh(jury, refiner.narrow(jury, self._gram_start(jury)))
        if not (_has_clear_majority(found) and _is_beyond_doubt(found)):
            return None
        self.refiner = refiner
        if self._equal_weights:
            self._pairs = self._in_order.with_sample(jury)  # there is no need to draw more
        return refiner.refine(jury, found.map) if found.evidence.bound < _FINE_NOISE * jury.spread else found

    def _best_of_all(self, findings: list[Finding]) -> Finding:
        """The best of what was found on all pairs: a part of them may have preferred another one."""
        if len(findings) == 1:
            return findings[0]
        return reduce(better_of, (replace(f, breadth=self.refiner.breadth(self._pairs, f)) for f in findings))

    def finish(self, found: Finding) -> Finding:
        """Polish the map, unless that costs much of its support; the evidence is the better of the two."""
        found = self._at_its_own_scale(found)
        polished = self._judged_closely(self.refiner.weigh(self._pairs, self.refiner.polish(self._pairs, found)))
        if polished.evidence.surprise_per_pair < _LITTLE_LOST * found.evidence.surprise_per_pair:
            return self.refiner.weigh(self._pairs, found.map) if found.evidence.n_pairs < self._pairs.n_pairs else found
        log_alarms = min(found.evidence.log_false_alarms, polished.evidence.log_false_alarms)
        return replace(polished, evidence=replace(polished.evidence, log_false_alarms=log_alarms))

    def re_paired_residuals(self, maps: Maps, count: int) -> FloatArray:
        """Residuals of about so many re-pairings, at least as many as there are in the sample of pairs for that."""
        sample = self._pairs.in_random_order
        if count > _MOST_PARTNERS * sample.n_pairs and sample is not self._pairs:
            sample = self._pairs.take(self._draws.distinct(self._pairs.n_pairs, count // _MOST_PARTNERS))
        return sample.re_paired_residuals(maps, count)

    def _at_its_own_scale(self, found: Finding) -> Finding:
        """Let the bound grow where it stands at the limit of what was looked at, or where nothing fine was found."""
        before = found
        for most_by_chance in _COARSER:
            refiner = replace(self.refiner, most_by_chance=most_by_chance)
            if not _is_found(found):
                coarser = refiner.refine(self._pairs, refiner.refine(self._judges, self._start).map)
                found = coarser if coarser.evidence.surprise > found.evidence.surprise else found
            elif found.evidence.by_chance > _AT_THE_LIMIT * self.refiner.most_by_chance:
                found = refiner.refine(self._pairs, found.map)
            else:
                break
            self.refiner = refiner
        return found if found is before else self._judged_closely(found)  # a few re-pairings may flatter it

    def is_better_mirrored(self, found: Finding) -> bool:
        """Whether the pairs that support this map have far more evidence for a reflection."""
        if self._model.may_mirror or found.evidence.by_chance < _TIGHT:
            return False
        some, mirroring = self._pairs.in_random_order, replace(self._model, reflection=True)
        start, _ = some.fit_near(mirroring, found.map, *fall_off(found.evidence.bound))
        if np.linalg.det(start.linear[0]) > 0:
            return False
        mirrored = replace(self.refiner, model=mirroring).refine(some, start)
        return mirrored.evidence.surprise > _FAR_BETTER * self.refiner.weigh(some, found.map).evidence.surprise

    @cached_property
    def _start(self) -> Maps:
        return self._gram_start(self._judges)

    def _gram_start(self, pairs: ColumnPairs) -> Maps:
        """Weight each pair by its row sum, x_i^T (X^T Y) y_i, where that is positive, and fit: the paper's overlap."""
        return pairs.fit(self._model, np.maximum(pairs.row_sums(self._model.has_shift), 0.0))

    def _from_agreement(self, size: int, best: Finding) -> Finding:
        """Fit the tightest circles of friends in a sample, and refine the most promising; the best of all so far."""
        if not self._model.keeps_distances and len(self._pairs.x) != len(self._pairs.y):
            return best  # distances in spaces of different dimension have nothing to do with each other
        sample = self._sample(size)
        for likely, scale, tolerances in self._scales:
            if not likely and sample.n_pairs < _WORTH_A_CLOSER_LOOK:
                break
            before = best
            for maps, bound, promise in self._suggestions(sample, scale, tolerances, best):
                if not (self._leads_to(best, maps, bound) or self._outshines(best, promise)):
                    best = better_of(best, self._refine(maps))
            if best is not before:
                best = self._from_coarser_fits(best)
            if self._independent_members(best, size) > 0:  # sure and broad: no need to try unlikely tolerances
                break
        return best

    def _from_coarser_fits(self, found: Finding) -> Finding:
        """The best of what was found on the judges and of what coarser fits lead to."""
        return reduce(better_of, (self._refine(maps) for maps in self._coarser_fits(self._judges, found)), found)

    def _coarser_fits(self, pairs: ColumnPairs, found: Finding) -> Iterator[Maps]:
        """Where evidence is scarce, fits to more pairs than support the map: its refinement may have stopped early."""
        if not _is_sure(found) or found.evidence.log_false_alarms < _SCARCE:
            return
        for factor in _COARSER_FITS:
            fitted, n_near = pairs.fit_near(self._model, found.map, factor * found.evidence.bound)
            if n_near >= self._model.fewest_pairs:
                yield fitted

    def _independent_members(self, found: Finding, size: int) -> float:
        """Pairs in a sample of this size that support a sure map, each from another place; 0 if it is not sure."""
        if not (_is_sure(found) and self._is_broad(found)):
            return 0.0
        if found is not self._last_counted[0]:  # the same one is asked about several times
            n_near, n_places = self.refiner.support_and_places(self._jury, found)
            self._last_counted = found, found.evidence.inlier_fraction * n_places / max(n_near, 1)
        return self._last_counted[1] * size

    def _telling_size(self, found: Finding, otherwise: int) -> int:
        """Size of a sample that would not miss a map as good as this one, if it is sure."""
        share = self._independent_members(found, 1)
        size = int(np.ceil(_MORE_THAN_RELIABLE / share)) if share else otherwise
        return min(max(size, _SMALLEST_SAMPLE), _LARGEST_SAMPLE)

    def _is_broad(self, found: Finding) -> bool:
        """Whether support lies in more places than any of the maps that wrong pairs suggest would find."""
        return found.breadth > self.refiner.chance.log_number_of_maps(self._judges.n_pairs, found.evidence.bound)

    def _refine(self, maps: Maps) -> Finding:
        """Improve a map on the judges, and see how many places its support lies in."""
        return self._with_breadth(self.refiner.refine(self._judges, maps))

    def _with_breadth(self, found: Finding) -> Finding:
        return replace(found, breadth=self.refiner.breadth(self._judges, found))

    def _leads_to(self, found: Finding, maps: Maps, bound: float) -> bool:
        """Whether most pairs that support this map support what was found, no more coarsely: it is the same."""
        if not _is_sure(found) or found.evidence.bound > _AS_FINE * bound:
            return False
        return self._judges.common_support(maps, bound, found.map, found.evidence.bound) > _MOST

    def _outshines(self, found: Finding, promise: float) -> bool:
        """Whether what was found is sure, broad, and far more surprising than a suggestion promises to be."""
        return promise < _FAR_LESS * found.evidence.surprise and _is_sure(found) and self._is_broad(found)

    def _suggestions(
        self, sample: ColumnPairs, scale: float, tolerances: FloatArray, best: Finding
    ) -> Iterator[tuple[Maps, float, float]]:
        """Maps that circles of friends in a sample suggest, with bounds and promises; the most promising first."""
        rough = maps_of_circles(self._model, sample, scale, tolerances, self._draws)
        if rough is None:
            return
        spread = self._judges.spread
        found = self._looks[0](*rough).different(spread, _FOLLOWED)
        new = [not self._leads_to(best, maps, bound) for maps, bound, _ in found.one_by_one()]
        found = found[np.flatnonzero(new)]
        if len(found):
            settled = self._looks[1](found.fitted_again(self._model, self._judges), found.bounds)
            yield from settled.different(spread, _REFINED).one_by_one()

    def _on_all_pairs(self, found: Finding) -> Finding:
        """Refine on all pairs, where there might be doubts, and judge closely."""
        if _is_beyond_doubt(found):
            return found
        if self._judges is not self._pairs:
            refined = self.refiner.refine(self._pairs, found.map)
            others = [self.refiner.refine(self._pairs, maps) for maps in self._coarser_fits(self._pairs, refined)]
            found = replace(reduce(better_of, others, refined), breadth=found.breadth)
        return self._judged_closely(found)

    def _judged_closely(self, found: Finding) -> Finding:
        """Weigh again beside many more re-pairings, where it might matter."""
        if _is_beyond_doubt(found):
            return found
        fewest, most = _DECIDING_RE_PAIRINGS
        re_pairings = min(max(_PER_PAIR * self._pairs.n_pairs, fewest), most)
        return replace(self.refiner.weigh(self._pairs, found.map, re_pairings), breadth=found.breadth)

    def _sample(self, size: int) -> ColumnPairs:
        """Some of the pairs, or all of them."""
        if size >= self._pairs.n_pairs and self._equal_weights:
            return self._pairs
        return self._in_order.take(self._draw(size))

    def _draw(self, size: int) -> Array:
        """Draw different pairs, the more likely the larger their weights."""
        n, weights = self._in_order.n_pairs, self._in_order.weights
        if self._equal_weights:
            return self._draws.distinct(n, size)
        share, usable = weights / weights.sum(), int(np.count_nonzero(weights))
        drawn: Array = self._draws.numpy.choice(n, min(size, usable), replace=False, p=share)
        return drawn


def _is_found(found: Finding) -> bool:
    return found.evidence.log_false_alarms < 0


def _is_sure(found: Finding) -> bool:
    return _is_found(found) and found.evidence.by_chance <= FINE


def _has_clear_majority(found: Finding) -> bool:
    return _is_sure(found) and found.evidence.inlier_fraction >= _CLEAR_MAJORITY


def _is_beyond_doubt(found: Finding) -> bool:
    return found.evidence.log_false_alarms < _BEYOND_DOUBT
