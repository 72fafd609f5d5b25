"""Look for the map that most pairs agree on: Gram overlap first, then agreement on samples that grow.

The Gram overlap starts a fit that gives far pairs ever less weight: it finds what outweighs wrong pairs all about.
A search in a sample of m pairs finds any consensus of some 15 of them. So a sure map that a share r of all pairs
supports, pairs in one place counted as one, is taken as soon as r m reaches that: a better one would have been found.
One with a clear majority is taken at once. Otherwise the sample grows, until it holds all pairs or is as large as the
time allows. In large samples only the pairs with the most neighbours are looked at closely. How large the first sample
is depends on whether the Gram overlap has led to a sure map, which only has to be compared with others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from inlier._typing import Array, FloatArray
from inlier.consensus.candidates import RoughCandidates, Scales, rough_maps
from inlier.consensus.evidence import Chance, most_within
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.refine import (
    CLEAR_MAJORITY,
    FINE,
    NARROWEST,
    Candidate,
    Refiner,
    better_of,
    fall_off,
    narrowed,
    support_and_places,
)
from inlier.rows.threads import single_threaded_blas
from inlier.transforms.least_squares import MapModel, Maps

_SCORE_SAMPLE, _VALIDATION_SAMPLE = 1000, 4000  # pairs on which many maps are compared, and few are weighed
_SMALLEST_SAMPLE, _LARGEST_SAMPLE = 100, 16_000  # pairs that are searched for agreement
_GROWTH = 4  # of that sample, where no map is sure that would tell how large it should be
_RELIABLE, _AIMED_AT = 15, 19  # members of a consensus that a search does not miss, and that the next sample aims at
_RE_PAIRINGS = 20_000  # that a map is weighed beside, at least, and pairs of points that its chances are counted from
_EARLY_RE_PAIRINGS = 5_000  # the same where a score sample alone may settle it
_FITTED_AGAIN, _REFINED = 6, 3  # best candidates of a round
_FAR_LESS = 0.25  # of the score: a rough candidate that refining will not bring ahead
_AS_FINE, _MOST = 1.5, 0.6  # what makes a candidate the same as what was found: bounds, common support
_SCARCE, _COARSER_FITS = -40.0, (1.5, 3.0)  # log of the false alarms above which fits within wider bounds are tried too
_COARSER, _AT_THE_LIMIT = (0.05, 0.25, 1.0), 0.7  # shares of re-pairings within the bound, where nothing fine is found
_LITTLE_LOST, _FAR_BETTER = 0.8, 1.2  # of the score: what polishing may cost, and what a mirror image must gain
_DECIDING_RE_PAIRINGS = 200_000, 2_000_000  # the fewest and the most; a hundred for each pair in between
_TINY = float(np.finfo(np.float64).tiny)
_MOST_PARTNERS = 16  # that a point is re-paired with, where there are other points


def search(setting: Setting, suggestion: Array | None = None) -> tuple[Stage, Candidate]:
    """Find the map that most pairs agree on, polished; ``suggestion``: pairs that are likely real, to start from."""
    model, pairs = setting.model, setting.pairs
    stage, found = setting.settled_early() if suggestion is None else (None, None)
    if stage is None or found is None:
        stage = setting.stage()
        found = stage.refiner.refine(stage.sample, narrowed(model, stage.sample, stage.start))
        if suggestion is not None and suggestion.size >= model.fewest_pairs:
            found = better_of(stage.placed(found), stage.refined(pairs.take(suggestion).fit(model)))
        if found.has_clear_majority:
            found = stage.on_all_pairs(found)
        else:
            with single_threaded_blas() if not pairs.is_wide else nullcontext():  # small products, one after another
                found = AgreementSearch(setting, stage).run(stage.placed(found))
    return stage.finish(found)


def start_from(setting: Setting, maps: Maps) -> tuple[Stage, Candidate]:
    """Refine and polish a map that was found in another way."""
    stage = setting.stage()
    return stage.finish(stage.on_all_pairs(stage.refined(maps)))


class Setting:
    """What is looked for, among which pairs, and the samples that are drawn of them."""

    def __init__(
        self, model: MapModel, pairs: ColumnPairs, noise_bound: float | None, rng: np.random.Generator
    ) -> None:
        self.model, self.pairs, self.noise_bound, self.rng = model, pairs, noise_bound, rng

    @cached_property
    def score_sample(self) -> ColumnPairs:
        """Pairs on which many maps are compared."""
        return self.sample(_SCORE_SAMPLE)

    def sample(self, size: int) -> ColumnPairs:
        """Draw different pairs in random order, the more likely the larger their weights; all where they are fewer."""
        n = self.pairs.n_pairs
        if not self.pairs.weights_differ:
            return self._uniform_sample(size)
        share, usable = self.pairs.weights / self.pairs.weights.sum(), int(np.count_nonzero(self.pairs.weights))
        return self.pairs.take(self.rng.choice(n, min(size, usable), replace=False, p=share))

    def _uniform_sample(self, size: int) -> ColumnPairs:
        n = self.pairs.n_pairs
        return self.pairs.take(self.rng.choice(n, min(size, n), replace=False))

    def settled_early(self) -> tuple[Stage, Candidate] | tuple[None, None]:
        """What the score sample says, if that leaves no doubt: where most pairs agree, it does."""
        if self.pairs.n_pairs <= _SCORE_SAMPLE or self.model.may_stretch:
            return None, None
        sample, in_random_order = self.score_sample, self._in_random_order(self.score_sample)
        maps = narrowed(self.model, sample, overlap_start(self.model, sample))
        counts = sample.count_residuals(maps, _EARLY_RE_PAIRINGS, self.noise_bound)
        if most_within(counts, FINE) < CLEAR_MAJORITY:  # whatever chance does, which takes longer to know
            return None, None
        stage = self._stage(sample, in_random_order, _EARLY_RE_PAIRINGS)
        refiner = stage.refiner
        found = refiner.weigh_counted(counts, maps)
        if not (found.has_clear_majority and found.is_beyond_doubt):
            return None, None
        is_blurred = found.evidence.bound < NARROWEST * sample.spread  # the fit, beside what the pairs are
        return stage, refiner.refine(sample, found.map) if is_blurred else found

    def stage(self) -> Stage:
        """Maps are weighed on the validation sample."""
        few = self.pairs.n_pairs <= _SCORE_SAMPLE
        sample = self.score_sample if few else self.sample(_VALIDATION_SAMPLE)
        return self._stage(sample, self._in_random_order(sample), _RE_PAIRINGS)

    def _in_random_order(self, sample: ColumnPairs) -> ColumnPairs:
        """Pairs to be re-paired: the sample, unless it was drawn by weights."""
        return self._uniform_sample(_VALIDATION_SAMPLE) if self.pairs.weights_differ else sample

    def _stage(self, sample: ColumnPairs, in_random_order: ColumnPairs, re_pairings: int) -> Stage:
        pairs, model = self.pairs, self.model
        is_part = in_random_order.n_pairs < pairs.n_pairs
        scales = Scales(model, sample, self.noise_bound, self.rng)
        chance = Chance(model, lambda: scales.disagreements, sample, re_pairings)
        refiner = Refiner(model, chance, self.noise_bound, re_pairings=re_pairings)
        return Stage(replace(pairs, shuffled=in_random_order) if is_part else in_random_order, sample, scales, refiner)

    def re_paired_residuals(self, stage: Stage, maps: Maps, count: int) -> FloatArray:
        """Residuals of about so many re-pairings, at least as many as there are in the sample of pairs for that."""
        sample = stage.pairs.in_random_order
        if count > _MOST_PARTNERS * sample.n_pairs and sample is not stage.pairs:
            sample = self._uniform_sample(count // _MOST_PARTNERS)
        return sample.re_paired_residuals(maps, count)


@dataclass(frozen=True, eq=False)
class Stage:
    """All pairs, the sample of them that maps are weighed on, and how."""

    pairs: ColumnPairs  # in random order, or with a sample of them that is
    sample: ColumnPairs  # some of them, in random order
    scales: Scales  # at which distances are compared
    refiner: Refiner  # weighs maps

    @property
    def start(self) -> Maps:
        """What the sample's overlap suggests."""
        return overlap_start(self.refiner.model, self.sample)

    def placed(self, found: Candidate) -> Candidate:
        """See how many places its support lies in."""
        return replace(found, place_score=self.refiner.place_score(self.sample, found))

    def refined(self, maps: Maps) -> Candidate:
        """Improve a map on the sample."""
        return self.placed(self.refiner.refine(self.sample, maps))

    def coarser_fits(self, pairs: ColumnPairs, found: Candidate) -> Iterator[Maps]:
        """Where evidence is scarce, fits to more pairs than support the map: its refinement may have stopped early."""
        if not found.is_sure or found.evidence.log_false_alarms < _SCARCE:
            return
        for factor in _COARSER_FITS:
            fitted, n_near = pairs.fit_near(self.refiner.model, found.map, factor * found.evidence.bound)
            if n_near >= self.refiner.model.fewest_pairs:
                yield fitted

    def on_all_pairs(self, found: Candidate) -> Candidate:
        """Refine on all pairs, where there might be doubts, and judge closely."""
        if found.is_beyond_doubt:
            return found
        if self.sample is not self.pairs:
            refined = self.refiner.refine(self.pairs, found.map)
            others = [self.refiner.refine(self.pairs, maps) for maps in self.coarser_fits(self.pairs, refined)]
            found = replace(reduce(better_of, others, refined), place_score=found.place_score)
        return self.judged_closely(found)

    def judged_closely(self, found: Candidate) -> Candidate:
        """Weigh again beside many more re-pairings, where it might matter."""
        if found.is_beyond_doubt:
            return found
        re_pairings = _between(_DECIDING_RE_PAIRINGS, 100 * self.pairs.n_pairs)
        return replace(self.refiner.weigh(self.pairs, found.map, re_pairings), place_score=found.place_score)

    def finish(self, found: Candidate) -> tuple[Stage, Candidate]:
        """Polish the map, unless that costs much of its support; the evidence is the better of the two."""
        stage, found = self._at_its_own_scale(found)
        pairs, refiner = stage.pairs, stage.refiner
        polished = stage.judged_closely(refiner.weigh(pairs, refiner.polish(pairs, found)))
        before, after = found.evidence, polished.evidence
        if after.score / after.n_pairs < _LITTLE_LOST * before.score / before.n_pairs:
            return stage, refiner.weigh(pairs, found.map) if before.n_pairs < pairs.n_pairs else found
        log_alarms = min(before.log_false_alarms, after.log_false_alarms)
        return stage, replace(polished, evidence=replace(after, log_false_alarms=log_alarms))

    def _at_its_own_scale(self, found: Candidate) -> tuple[Stage, Candidate]:
        """Let the bound grow where it stands at the limit of what was looked at, or where nothing fine was found."""
        stage, before = self, found
        for most_by_chance in _COARSER:
            refiner = replace(self.refiner, most_by_chance=most_by_chance)
            if not found.is_found:
                coarser = refiner.refine(self.pairs, refiner.refine(self.sample, self.start).map)
                found = coarser if coarser.evidence.score > found.evidence.score else found
            elif found.evidence.by_chance > _AT_THE_LIMIT * stage.refiner.most_by_chance:
                found = refiner.refine(self.pairs, found.map)
            else:
                break
            stage = replace(self, refiner=refiner)
        return stage, found if found is before else stage.judged_closely(found)  # a few re-pairings may flatter it

    def is_better_mirrored(self, found: Candidate) -> bool:
        """Whether the pairs that support this map have far more evidence for a reflection."""
        some, mirroring = self.pairs.in_random_order, replace(self.refiner.model, reflection=True)
        start, _ = some.fit_near(mirroring, found.map, *fall_off(found.evidence.bound))
        if np.linalg.det(start.linear[0]) > 0:
            return False
        mirrored = replace(self.refiner, model=mirroring).refine(some, start)
        return mirrored.evidence.score > _FAR_BETTER * self.refiner.weigh(some, found.map).evidence.score


class AgreementSearch:
    """The search in samples that grow; candidates come from sets of pairs that keep their distances."""

    def __init__(self, setting: Setting, stage: Stage) -> None:
        self._setting, self._stage = setting, stage
        self._model, self._refiner = setting.model, stage.refiner
        self._share_of: tuple[Candidate | None, float] = None, 0.0  # the last one asked about

    def run(self, best: Candidate) -> Candidate:
        """Search until a map is found that no better one can have escaped, or all samples have been tried."""
        size = self._telling_size(best, _SCORE_SAMPLE)
        on_all: list[Candidate] = []
        while True:
            best = self._round(size, best)
            # All pairs may tell what a part does not.
            whole = best if best.is_sure else self._stage.on_all_pairs(best)
            on_all += [] if best.is_sure else [whole]
            if self._independent_share(whole) * size >= _RELIABLE or size >= min(
                self._stage.pairs.n_pairs, _LARGEST_SAMPLE
            ):
                return self._best_of([*on_all, self._stage.on_all_pairs(best)] if best.is_sure else on_all)
            size = self._telling_size(whole, _GROWTH * size)

    def _round(self, size: int, best: Candidate) -> Candidate:
        """Fit the densest sets in a sample, and refine the best; the best of all so far."""
        if not self._model.keeps_distances and len(self._stage.pairs.x) != len(self._stage.pairs.y):
            return best  # distances in spaces of different dimension have nothing to do with each other
        sample = self._setting.sample(size)
        for likely, scale, tolerances in self._stage.scales:
            if not likely and sample.n_pairs < 2 * _SMALLEST_SAMPLE:  # too few for unlikely tolerances
                break
            before = best
            for maps, bound, score in self._candidates(sample, scale, tolerances, best):
                if not (self._is_same(best, maps, bound) or self._is_far_behind(score, best)):
                    best = better_of(best, self._stage.refined(maps))
            if best is not before:
                coarser = self._stage.coarser_fits(self._stage.sample, best)
                best = reduce(better_of, map(self._stage.refined, coarser), best)
            if self._independent_share(best) > 0:  # sure, in many places: no need to try unlikely tolerances
                break
        return best

    def _candidates(
        self, sample: ColumnPairs, scale: float, tolerances: FloatArray, best: Candidate
    ) -> Iterator[tuple[Maps, float, float]]:
        """Maps that a sample suggests, with bounds and scores; the best first, without those that are known."""
        rough = rough_maps(self._model, sample, scale, tolerances, self._setting.rng)
        if rough is None:
            return
        chance, validation = self._refiner.chance, self._stage.sample
        found = RoughCandidates.at_their_best(chance, self._setting.score_sample, *rough)
        found = found.different(validation.spread, _FITTED_AGAIN)
        new = [not self._is_same(best, maps, bound) for maps, bound, _ in found.one_by_one()]
        found = found[np.flatnonzero(new)]
        if len(found):
            fitted = found.fitted_again(self._model, validation)
            again = RoughCandidates.at_their_best(chance, validation, fitted, found.bounds)
            yield from again.different(validation.spread, _REFINED).one_by_one()

    def _is_same(self, found: Candidate, maps: Maps, bound: float) -> bool:
        """Whether most pairs that support this map support what was found, no more coarsely."""
        if not found.is_sure or found.evidence.bound > _AS_FINE * bound:
            return False
        return self._stage.sample.common_support(maps, bound, found.map, found.evidence.bound) > _MOST

    def _is_far_behind(self, score: float, best: Candidate) -> bool:
        """Whether the best is sure, in many places, and scores far more than a rough candidate."""
        return score < _FAR_LESS * best.evidence.score and best.is_sure and self._is_in_many_places(best)

    def _is_in_many_places(self, found: Candidate) -> bool:
        """Whether support lies in more places than any of the maps that wrong pairs suggest would find."""
        n_pairs = self._stage.sample.n_pairs
        return found.place_score > self._refiner.chance.log_number_of_maps(n_pairs, found.evidence.bound)

    def _independent_share(self, found: Candidate) -> float:
        """Share of all pairs that support a sure map, those in one place counted as one; 0 if it is not sure."""
        if self._share_of[0] is not found:  # asked several times about the same
            self._share_of = found, self._count_independent(found)
        return self._share_of[1]

    def _count_independent(self, found: Candidate) -> float:
        if not (found.is_sure and self._is_in_many_places(found)):
            return 0.0
        n_near, n_places = support_and_places(self._setting.score_sample, found)
        return found.evidence.inlier_fraction * n_places / max(n_near, 1)

    def _telling_size(self, found: Candidate, otherwise: int) -> int:
        """Size of a sample that would not miss a map as good as this one, if it is sure."""
        share = self._independent_share(found)
        return _between((_SMALLEST_SAMPLE, _LARGEST_SAMPLE), np.ceil(_AIMED_AT / share) if share else otherwise)

    def _best_of(self, candidates: list[Candidate]) -> Candidate:
        """The best of what was found on all pairs: a part of them may have preferred another one."""
        if len(candidates) == 1:
            return candidates[0]
        pairs = self._stage.pairs
        return reduce(better_of, (replace(c, place_score=self._refiner.place_score(pairs, c)) for c in candidates))


def overlap_start(model: MapModel, sample: ColumnPairs) -> Maps:
    """Weight each pair by its row sum, x_i^T (X^T Y) y_i, where that is positive, and fit: the paper's overlap."""
    overlap = np.maximum(sample.row_sums(model.has_shift), 0.0)
    return sample.fit(model, overlap / max(overlap.max(), _TINY))


def as_generator(random_state: Any) -> np.random.Generator:
    """A generator that gives the same each time where ``random_state`` is a number; others are read as scikit-learn's.

    A RandomState (or None, NumPy's own) gives a seed, and others each time.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, (int, np.integer)):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**32, dtype=np.uint64))


def _between(limits: tuple[int, int], number: float) -> int:
    return int(min(max(number, limits[0]), limits[1]))
