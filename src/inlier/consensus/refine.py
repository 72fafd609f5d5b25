"""From a rough map to the one that most pairs support: fit to those within the bound, weigh again, until it settles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.consensus.evidence import MOST_FALSE_ALARMS, Chance, Evidence, count_places
from inlier.consensus.freedoms import Freedom
from inlier.consensus.pairs import ColumnPairs, ResidualCounts, every_kth
from inlier.transforms import SimilarityTransformation
from inlier.transforms.least_squares import MapModel, Maps, Moments, rank_and_uniqueness

# Real wrong matches are not quite independent: a scene has a floor, and features look alike near each other. So at a
# coarse scale there is always something that chance does not explain, and a search has to look at fine ones.
FINE = 0.01  # share of re-pairings within the bound
_MOST_ROUNDS = 20  # of fits; most settle earlier
_POLISHED_ON = 5_000  # pairs, or less than twice as many
_LAST_ROUNDS = 3  # on all pairs, each of which takes off about half of what is left of the part's error
NEAR = 3.0  # bounds: beyond, a pair has no weight
_SCALE = 0.5  # of a bound: where a pair's weight has fallen to a quarter
_NARROWING = 1.4 ** -np.arange(9.0)  # of the spread of y: where a pair's weight has fallen to a quarter
NARROWEST = float(_NARROWING[-1]) / 1.4  # bounds that are finer are not what the narrowed fit is sharp enough for
_STEADY = 1e-4  # change of a map's coefficients that ends the polishing
_SETTLED = 1e-3  # gain in score, relative to it, that ends the rounds
_BEYOND_DOUBT = -100.0  # log of the false alarms
CLEAR_MAJORITY = 0.4  # hardly another map can have more support
_ENOUGH = 1000  # pairs that the covariance is estimated from; of more, every so many
_WELL_DETERMINED = 1e-5  # singular values of the moments, beside their size, below which the fit takes a closer look
_FAR_ABOVE = 30.0  # times what the rounding of the input makes of a moment
_FEWEST_OF_A_PLANE = 10.0  # pairs, as many as would weigh the same if all did
_TINY = float(np.finfo(np.float64).tiny)
THIN, _EXTENDED = 0.25, 2.0  # bounds: standard deviations across and along the plane of points that are flat


@dataclass(frozen=True, eq=False)
class Candidate:
    """A map, what speaks for it, and how unlikely the number of places is where its support lies."""

    map: Maps
    evidence: Evidence
    place_score: float = 0.0

    @property
    def is_found(self) -> bool:
        """Whether chance would seldom do as well."""
        return self.evidence.log_false_alarms < 0

    @property
    def is_sure(self) -> bool:
        """Whether that holds at a fine bound."""
        return self.is_found and self.evidence.by_chance <= FINE

    @property
    def has_clear_majority(self) -> bool:
        """Whether hardly another map can have more support."""
        return self.is_sure and self.evidence.inlier_fraction >= CLEAR_MAJORITY

    @property
    def is_beyond_doubt(self) -> bool:
        """Whether more re-pairings could not change the verdict."""
        return self.evidence.log_false_alarms < _BEYOND_DOUBT


def better_of(first: Candidate, second: Candidate) -> Candidate:
    """Return the one with support in more places, or else the higher score, the first where both are equal."""
    ranks = [(candidate.place_score, candidate.evidence.score) for candidate in (first, second)]
    return first if ranks[0] >= ranks[1] else second


@dataclass(frozen=True, eq=False)
class Refiner:
    """Weighs maps, and improves them."""

    model: MapModel
    chance: Chance
    noise_bound: float | None
    re_pairings: int  # at least, that a map is weighed beside
    most_by_chance: float = FINE

    def weigh(self, pairs: ColumnPairs, maps: Maps, re_pairings: int | None = None) -> Candidate:
        """What speaks for this map among these pairs, beside at least so many re-pairings."""
        return self.weigh_counted(pairs.count_residuals(maps, re_pairings or self.re_pairings, self.noise_bound), maps)

    def weigh_counted(self, counts: ResidualCounts, maps: Maps) -> Candidate:
        """The same by its residuals, counted."""
        if self.noise_bound is not None:  # real pairs lie within it, and the best of them nearer still
            return Candidate(maps, self.chance.weigh(counts.up_to(self.noise_bound), maps))
        return Candidate(maps, self.chance.weigh(counts, maps, self.most_by_chance))

    def refine(self, pairs: ColumnPairs, maps: Maps) -> Candidate:
        """Fit again to the pairs within the bound for as long as the evidence grows."""
        found = self.weigh(pairs, maps)
        for _ in range(_MOST_ROUNDS):
            fitted, n_within = pairs.fit_near(self.model, found.map, found.evidence.bound)
            if n_within < self.model.fewest_pairs:
                break
            better = self.weigh(pairs, fitted)
            gain = better.evidence.score - found.evidence.score
            if gain > 0:
                found = better
            if gain <= _SETTLED * found.evidence.score:
                break
        return found

    def place_score(self, pairs: ColumnPairs, found: Candidate) -> float:
        """How unlikely the support is if all pairs in one place, of twice the bound, count as one."""
        _, n_places = support_and_places(pairs, found)
        return self.chance.place_score(n_places, pairs.n_pairs, found.map, found.evidence.bound)

    def polish(self, pairs: ColumnPairs, found: Candidate) -> Maps:
        """Weigh near pairs more than far ones (Geman and McClure): nearer to the truth than all or nothing."""
        maps, bound = found.map, found.evidence.bound
        nearby, is_part = pairs, False
        in_vain = (1 - found.evidence.inlier_fraction) * pairs.n_pairs
        if in_vain > _POLISHED_ON or pairs.n_pairs > 2 * _POLISHED_ON:
            some, n_near = every_kth(pairs.is_near(maps, NEAR * bound), _POLISHED_ON)
            nearby, is_part = pairs.take(some), some.size < n_near
        reach, sharpness = fall_off(bound)
        maps = nearby.refit(self.model, maps, reach, np.full(_MOST_ROUNDS, sharpness), _STEADY)
        for _ in range(_LAST_ROUNDS if is_part else 0):
            maps, _ = pairs.fit_near(self.model, maps, reach, sharpness)
        return maps


def narrowed(model: MapModel, pairs: ColumnPairs, maps: Maps) -> Maps:
    """Fit again and again with weights that fall with the residual, ever more sharply (Geman and McClure).

    So wrong pairs lose their weight little by little, before it is known how far off a pair must be to be one. Maps
    that may shrink are left as they are: with little weight for far pairs they might bring all points to one place.
    """
    if model.may_stretch or pairs.is_wide:
        return maps
    return pairs.refit(model, maps, np.inf, 1 / (_NARROWING * pairs.spread) ** 2)


def support_and_places(pairs: ColumnPairs, found: Candidate) -> tuple[int, int]:
    """How many pairs support the map, and in how many places they lie, on the side where those are fewer."""
    bound, stretch = found.evidence.bound, float(found.map.stretch[0])
    near = pairs.near(found.map, bound)
    in_x = count_places(near.x, 2 * bound / stretch) if stretch > 0 else 1
    return near.n_pairs, min(in_x, count_places(near.y, 2 * bound))


def fall_off(bound: float) -> tuple[float, float]:
    """Reach and sharpness of a fit whose weights are `closeness`."""
    return NEAR * bound, 1 / max((_SCALE * bound) ** 2, _TINY)


def closeness(squared: FloatArray, bound: float) -> FloatArray:
    """Weights that fall with the residual: a quarter at half the bound, 0 beyond three bounds."""
    return np.where(squared <= (NEAR * bound) ** 2, 1 / (1 + squared / (_SCALE * bound) ** 2) ** 2, 0.0)


def closeness_slope(squared: FloatArray, bound: float) -> FloatArray:
    """Derivative of `closeness` by the squared residual."""
    unit = (_SCALE * bound) ** 2
    return np.where(squared <= (NEAR * bound) ** 2, -2 / unit / (1 + squared / unit) ** 3, 0.0)


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Some of the pairs that had a say in a fit: what it takes to say how far it may be off."""

    X: Array  # the pairs
    Y: Array  # the pairs
    weights: FloatArray  # what each counted beforehand
    stands_for: FloatArray  # how many of those that had a say each stands for
    bound: float  # residual scale of the closeness weights
    cluster_side: float = 0.0  # at least, in units of y: pairs nearer to each other may err alike; 0 where none do

    @staticmethod
    def among(
        X: Array, Y: Array, weights: FloatArray, residuals: FloatArray, bound: float, cluster_side: float = 0.0
    ) -> NearPairs:
        """Copy every k-th of the pairs that are near."""
        is_near, lightest = residuals <= NEAR * bound, weights.min()
        if lightest == 0:
            is_near &= weights > 0
        rows, n_near = every_kth(is_near, _ENOUGH)
        stands_for = np.full(rows.size, n_near / max(rows.size, 1))
        if rows.size < n_near and lightest < weights.max():
            rows, stands_for = _heavy_and_some(is_near.nonzero()[0], weights)
        return NearPairs(
            X.take(rows, axis=0), Y.take(rows, axis=0), weights.take(rows), stands_for, bound, cluster_side
        )


def _heavy_and_some(near: Array, weights: FloatArray) -> tuple[Array, FloatArray]:
    """All that hold much of the weight, every k-th of the rest, and how many each stands for."""
    of_near = weights[near]
    is_heavy = of_near * _ENOUGH > of_near.sum()
    heavy, light = near[is_heavy], near[~is_heavy]
    some = light[:: max(1, light.size // _ENOUGH)]
    stands_for = np.repeat([1.0, light.size / max(some.size, 1)], [heavy.size, some.size])
    return np.concatenate([heavy, some]), stands_for


@dataclass(frozen=True, eq=False)
class Certainty:
    """Whether chance, or mistakes that come together, could have done it."""

    log_p_value: float  # logarithm of a bound on the chance of so much agreement, were all pairs wrong
    n_places: float  # in how many places pairs agree, those of a clump counted once
    clump_length: float = 0.0  # distance up to which mistakes come together; 0: they are independent
    runner_up: tuple[Maps, float] | None = None  # another map with support of the same order, and its places
    map: Maps | None = None  # the one that was judged, if any was
    is_tie: bool = False  # whether the runner-up has as many places but for luck
    in_order: bool = False  # whether an order of rows alone supports motions, too
    free: Freedom | None = None  # a turn or a slide in which the map is not sure

    @property
    def is_sure(self) -> bool:
        """Whether it could hardly ever."""
        return self.log_p_value <= math.log(MOST_FALSE_ALARMS)

    @property
    def p_value(self) -> float:
        """The bound itself, no more than 1."""
        return math.exp(min(self.log_p_value, 0.0))


@dataclass(frozen=True, eq=False)
class Consensus:
    """The map that most pairs agree on, and what speaks for it."""

    model: MapModel  # what was looked for
    evidence: Evidence  # what speaks for it, were mistakes independent of each other
    map: Maps  # one map, between the pairs as the search saw them
    pairs: ColumnPairs  # all pairs, about their means where the model has a shift
    origin: tuple[FloatArray, FloatArray]  # those means of x and y, or zeros
    rounding: tuple[float, float]  # relative rounding error of the numbers that x and y came as
    re_paired_residuals: FloatArray  # what residuals are like where nothing is paired, as much shortened by the fit
    last_fit: tuple[Maps, Moments] | None  # of all pairs, weighted by their nearness too; None where points are wide
    better_mirrored: bool  # whether a reflection, which the model does not allow, would fit the same pairs far better

    def nearness(self) -> FloatArray:
        """How near each pair is, between 0 and 1: weights for a final fit."""
        return closeness(self.pairs.squared_residuals(self.map), self.evidence.bound)

    @property
    def has_repeats(self) -> bool:
        """Whether pairs that support what was found are listed twice; where nothing was found, whether any are."""
        found = self.evidence
        if found.is_significant and self.motion is not None:
            residuals = self.motion[1]
        else:
            residuals = np.sqrt(self.pairs.squared_residuals(self.map))
        bound, share = (found.bound, found.inlier_fraction) if found.is_significant else (np.inf, 1.0)
        return self.pairs.any_repeats(residuals, bound, int(share * self.pairs.n_pairs))

    @cached_property
    def _spread(self) -> FloatArray:
        """Of the pairs that agree: singular values of their cross-covariance, falling."""
        assert self.last_fit is not None
        return np.linalg.svd(self.last_fit[1].cross[0], compute_uv=False)

    @property
    def is_flat(self) -> bool:
        """Whether the pairs that agree lie in a plane (in two dimensions on a line) but for their noise."""
        if self.last_fit is None or self.model.may_mirror or not 2 <= self._spread.size <= 3:
            return False
        stretch = float(self.map.stretch[0]) if self.model.may_stretch else 1.0
        second, thickness = np.sqrt(self._spread[-2:] * stretch) / self.evidence.bound
        if thickness > THIN or second < _EXTENDED:
            return False
        weights = self.pairs.weights
        return bool(weights.sum() ** 2 >= _FEWEST_OF_A_PLANE * (weights @ weights))  # few points always do

    @cached_property
    def motion(self) -> tuple[SimilarityTransformation, FloatArray] | None:
        """The least-squares motion of all pairs, weighted by their nearness too, and the residuals.

        None where it takes a closer look (`fit_transformation`): for affine maps, in many dimensions, and where the
        sums, which are about the means of all pairs, hardly determine it.
        """
        model = self.model
        if model.name == "affine" or self.last_fit is None:
            return None
        maps, moments = self.last_fit
        x_bar, y_bar = moments.x_bar[0], moments.y_bar[0]
        s = self._spread
        scatter = max(float(moments.scatter[0].trace()), _TINY)
        of_x, of_y = math.sqrt(scatter + x_bar @ x_bar), math.sqrt(s.sum() ** 2 / scatter + y_bar @ y_bar)  # lengths
        off_x, off_y = (
            eps * (length + math.hypot(*mean))
            for eps, length, mean in zip(self.rounding, (of_x, of_y), self.origin, strict=True)
        )
        noise = _WELL_DETERMINED * of_x * of_y + _FAR_ABOVE * (off_x * of_y + off_y * of_x)
        if not rank_and_uniqueness(model, s, moments.handedness, noise)[1]:
            return None
        residuals = self.pairs.squared_residuals(maps)
        return self.as_transformation(maps), np.sqrt(residuals, out=residuals)

    def as_transformation(self, maps: Maps) -> SimilarityTransformation:
        """One of the model's maps, between the points as they came."""
        scale, (x, y) = float(maps.stretch[0]) if self.model.name == "similarity" else 1.0, self.origin
        shift = y + maps.shift[0] - maps.linear[0] @ x if self.model.has_shift else None
        return SimilarityTransformation(maps.linear[0] / scale, shift, scale, self.model.name)  # type: ignore[arg-type]
