"""Rough maps to start from: those that sets of pairs suggest which keep their distances to each other.

The second overlap of two similarity matrices: A_ij = 1 where | |x_i - x_j| - |y_i - y_j| | <= tolerance. Real pairs all
agree with each other, whatever the rotation and translation; wrong ones agree by chance. Second order carries the
extreme rates: (A A)_ij counts the neighbours that i and j have in common (second-order compatibility, Chen et al. 2022,
SC2-PCR). A is kept as bits, m^2 / 8 bytes, and formed for a few thousand pairs at most; who they are is decided by
first-order counts, which need no matrix.

A tolerance is fixed by how often chance agrees to it, so that it needs no unit. The scale is 1, except for
similarities: there the ratio |y_i - y_j| / |x_i - x_j| of two real pairs is the scale, and ratios that are more
frequent among the pairs than among re-pairings tell which scales are worth a try.

A rough map brings its pairs within some bound that is not known yet. So its support is looked at within several, each
beside a few re-pairings and the most that chance can do (see `evidence`); the bound with the best score is where it is
fitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.ndimage import uniform_filter1d

from inlier._typing import Array, FloatArray
from inlier.consensus._kernels_agreement import (
    TILE,
    WORD,
    agreement_bits,
    count_agreeing,
    gather_seed_sets,
    leading_eigenvectors,
)
from inlier.consensus.evidence import Chance
from inlier.consensus.pairs import ColumnPairs, spread_of
from inlier.rows.threads import run_in_threads
from inlier.transforms.least_squares import MapModel, Maps, fit_maps

_DENSITIES = (0.05, 0.1, 0.02), (0.2, 0.007, 0.002)  # of chance agreements; the usual ones are tried first
_SHARES_OF_BOUND = np.array([1.0, 0.5])  # tolerances that are tried before, where a noise bound is known
_PAIRS_OF_PAIRS = 4_000  # whose distances tell what chance does
_FEW_ROUNDS = 5  # through the pairs: up to which neighbours are as good as pairs that are drawn
_RATIOS = 200_000  # of distances, that a scale is read off
_RATIO_BINS = np.linspace(-4.0, 4.0, 401)  # of the logarithm, about the ratio of the spreads
_WIDTHS = (1, 3, 9)  # bins over which an excess is summed: noise spreads the ratios of real pairs
_MOST_SCALES = 3  # that are tried, the most striking first
_MOST_COMPARED = 1600  # pairs of which every two are compared to second order
_SET_SIZE = 20  # neighbours, with the seed itself
_SEEDS = 24  # densest sets of one tolerance that are fitted
_SHARPNESS = 8  # power of the weights in a set: those who agree with only some of it count little
_RESIDUAL = 1.5  # residuals of pairs whose distances differ by 1
_FINER = 0.5 ** np.arange(4)  # shares of a bound, at which support is looked at
_SHIFTS = (1, 3)  # of the two sides against each other, from and to: re-pairings for a quick look
_ROUNDS = 10  # of power iteration
_ROWS_AT_ONCE = 128
_FEW_ROWS = 1024  # up to which handing work to threads takes longer than doing it
_SINGLE = 1e4  # tolerances that fit into the extent of the points, up to which single precision will do
_ROUNDING_ERRORS, _MOST_LOST = 4, 0.01  # in the difference of two distances; of a tolerance


class Scales:
    """The scales of space to be tried, each with its tolerances; ``disagreements`` are those of re-pairings.

    Read off a sample of the pairs in random order; ``noise_bound`` is the largest residual of a real pair, if known.
    """

    def __init__(
        self, model: MapModel, pairs: ColumnPairs, noise_bound: float | None, rng: np.random.Generator
    ) -> None:
        self._pairs, self._noise_bound, self._rng = pairs, noise_bound, rng
        of_fixed_scale = not model.may_stretch
        self._typical = 1.0 if of_fixed_scale else pairs.spread / spread_of(pairs.x)
        self._scales = [1.0] if of_fixed_scale else self._frequent_ratios()

    @cached_property
    def disagreements(self) -> FloatArray:
        """Of re-pairings at the typical scale; looked at when they are first asked for."""
        return self._disagreements(self._typical)

    def __iter__(self) -> Iterator[tuple[bool, float, FloatArray]]:
        """Yield scales with some tolerances each, and whether they are likely; those come first."""
        if self._noise_bound is not None:
            yield from ((True, scale, self._noise_bound * _SHARES_OF_BOUND) for scale in self._scales)
        most = np.inf if self._noise_bound is None else 2 * self._noise_bound  # by which distances can differ
        by_chance = {s: self.disagreements if s == self._typical else self._disagreements(s) for s in self._scales}
        for densities in _DENSITIES:
            for scale in self._scales:
                ranks = (np.array(densities) * by_chance[scale].size).astype(int)
                tolerances = np.partition(by_chance[scale], ranks)[ranks]
                if (tolerances <= most).any():
                    yield densities is _DENSITIES[0], scale, tolerances[tolerances <= most]

    def _disagreements(self, scale: float) -> FloatArray:
        """| scale |x_i - x_j| - |y_k - y_l| | of four pairs at random: what chance does."""
        many = _FEW_ROUNDS * self._pairs.n_pairs >= _PAIRS_OF_PAIRS
        x, y = (
            self._pairs.neighbour_distances(_PAIRS_OF_PAIRS) if many else self._distances(_PAIRS_OF_PAIRS, paired=False)
        )
        return np.abs(scale * x - y)

    def _distances(self, size: int, paired: bool) -> tuple[FloatArray, FloatArray]:
        i, j, k, m = self._rng.integers(self._pairs.n_pairs, size=(4, size))
        k, m = (i, j) if paired else (k, m)
        return _distances(self._pairs.x, i, j), _distances(self._pairs.y, k, m)

    def _frequent_ratios(self) -> list[float]:
        """Scales at which ratios of distances are more frequent than among re-pairings, the most striking first."""
        found, by_chance = (self._ratio_histogram(paired) for paired in (True, False))
        excess = np.max(
            [
                (uniform_filter1d(found, w) - uniform_filter1d(by_chance, w))
                / np.sqrt(uniform_filter1d(by_chance, w) + 1)
                * np.sqrt(w)
                for w in _WIDTHS
            ],
            axis=0,
        )
        middles = (_RATIO_BINS[1:] + _RATIO_BINS[:-1]) / 2
        scales: list[float] = []
        for _ in range(_MOST_SCALES):
            peak = int(np.argmax(excess))
            scales.append(float(self._typical * np.exp(middles[peak])))
            excess[max(0, peak - max(_WIDTHS)) : peak + max(_WIDTHS) + 1] = -np.inf
        return scales

    def _ratio_histogram(self, paired: bool) -> FloatArray:
        x, y = self._distances(_RATIOS, paired)
        usable = (x > 0) & (y > 0)
        ratio = np.log(y[usable] / x[usable] / self._typical)
        return np.histogram(ratio, _RATIO_BINS)[0].astype(np.float64)


def _distances(points: FloatArray, i: Array, j: Array) -> FloatArray:
    step = np.take(points, i, axis=1) - np.take(points, j, axis=1)
    return np.sqrt(np.einsum("ij,ij->j", step, step))


@dataclass(frozen=True, eq=False)
class SeedSets:
    """Pairs, the seeds, each with the neighbours with whom it has most neighbours in common."""

    members: Array  # the seed and its neighbours; -1 where there are fewer
    weights: FloatArray  # leading eigenvector of the agreement among them; 0 beyond them
    # how many neighbours a neighbour of one of them has among them on average: k - 2 for k pairs that all agree
    density: FloatArray


class Agreement:
    """The matrices A of some tolerances, as bits; points are columns, x (d_x, m), y (d_y, m).

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.consensus.candidates import Agreement
    >>> x = np.array([[0.0, 1.0, 3.0, 9.0]])
    >>> y = np.array([[5.0, 6.0, 8.0, 0.0]])
    >>> Agreement(x, y, tolerances=np.array([0.1])).to_dense(0).astype(int)
    array([[0, 1, 1, 0],
           [1, 0, 1, 0],
           [1, 1, 0, 0],
           [0, 0, 0, 0]])
    """

    def __init__(self, x: FloatArray, y: FloatArray, tolerances: FloatArray) -> None:
        self.n_pairs = x.shape[1]
        x, y, squared = _in_a_common_unit(x, y, tolerances)
        self._bits = np.empty((squared.size, self.n_pairs, -(-self.n_pairs // WORD)), dtype=np.uint64)
        _over_rows(
            self.n_pairs, lambda a, b: agreement_bits(x, y, squared, a, b, np.empty((2, TILE), x.dtype), self._bits)
        )

    def densest_sets(self, which: int, size: int, most: int) -> SeedSets:
        """Return the densest sets, of at most ``size`` pairs each, to the tolerance number ``which``."""
        bits, m = self._bits[which], self.n_pairs
        members, density = np.empty((m, size), dtype=np.int64), np.empty(m)

        def gather(start: int, stop: int) -> None:
            room, inside = np.zeros((3, m + 1), dtype=np.int64), np.empty(bits.shape[1], dtype=np.uint64)
            gather_seed_sets(bits, start, stop, room, inside, members, density)

        _over_rows(m, gather)
        densest = np.argsort(-density, kind="stable")[:most]
        return SeedSets(members[densest], _leading_eigenvectors(bits, members[densest]), density[densest])

    def to_dense(self, which: int) -> Array:
        """A to the tolerance number ``which``, as an array of bool."""
        by_byte = self._bits[which].astype("<u8").view(np.uint8)
        return np.unpackbits(by_byte, axis=1, count=self.n_pairs, bitorder="little").astype(bool)


def _leading_eigenvectors(bits: Array, members: Array) -> FloatArray:
    """Of the agreement among the members of each set; 0 beyond them."""
    vectors, size = np.empty(members.shape), members.shape[1]
    leading_eigenvectors(bits, members, _ROUNDS, np.empty((2 + size, size)), vectors)
    return vectors


def excess_of_neighbours(x: FloatArray, y: FloatArray, tolerances: FloatArray, rng: np.random.Generator) -> FloatArray:
    """By how much each pair agrees with more pairs than with re-paired ones, in standard deviations; (m, tolerances).

    O(m^2) time, O(m) memory.
    """
    m = x.shape[1]
    order = rng.permutation(m)
    partner = np.empty(m, dtype=np.int64)
    partner[order] = np.roll(order, 1)
    x, y, squared = _in_a_common_unit(x, y, tolerances)
    sides, counts = np.stack([y, y[:, partner]]), np.zeros((2, m, squared.size))
    _over_rows(m, lambda a, b: count_agreeing(x, sides, squared, a, b, np.empty((4, TILE), x.dtype), counts))
    excess: FloatArray = (counts[0] - counts[1]) / np.sqrt(counts[1] + 1.0)
    return excess


def _in_a_common_unit(x: FloatArray, y: FloatArray, tolerances: FloatArray) -> tuple[Array, Array, Array]:
    """Measure in the largest tolerance, and square those: the loops take fourth powers, which must not overflow.

    Single precision, which is faster, is enough unless the tolerances are a tiny part of the distances. Tolerances grow
    by what may be lost to it, so that pairs that disagree by just the tolerance agree: on a grid there are many.
    """
    unit = float(np.max(tolerances)) or 1.0
    x, y = x / unit, y / unit
    tolerances = np.maximum(tolerances / unit, 1e-60)  # which stands for 0: only equal distances agree
    length = max(float(np.ptp(side, axis=1).max(initial=0.0)) for side in (x, y)) / float(tolerances.min())
    kind = np.float32 if length < _SINGLE else np.float64
    lost = min(_ROUNDING_ERRORS * float(np.finfo(kind).eps) * length, _MOST_LOST)
    x, y = x.astype(kind, order="C"), y.astype(kind, order="C")
    return x, y, (tolerances * (1 + lost)).astype(kind) ** 2


def _over_rows(n_rows: int, work: Callable[[int, int], None]) -> None:
    if n_rows <= _FEW_ROWS:
        return work(0, n_rows)
    run_in_threads(n_rows, lambda rows: work(rows.start, rows.stop), rows_per_range=_ROWS_AT_ONCE)
    return None


def worth_comparing(
    sample: ColumnPairs, scale: float, tolerances: FloatArray, model: MapModel, most: int, rng: np.random.Generator
) -> Iterator[tuple[ColumnPairs, FloatArray]]:
    """Yield the pairs worth comparing, and to which tolerances: all, or those with the most excess of neighbours."""
    if sample.n_pairs <= most and model.has_shift:
        yield sample, tolerances
        return
    x = scale * sample.x
    excess = excess_of_neighbours(x, sample.y, tolerances, rng) if sample.n_pairs > most else None
    lengths = np.abs(np.linalg.norm(x, axis=0) - np.linalg.norm(sample.y, axis=0))
    for column, tolerance in enumerate(tolerances):
        rank = np.zeros(sample.n_pairs) if excess is None else -excess[:, column]
        # A rotation about the origin keeps lengths too.
        possible = np.arange(rank.size) if model.has_shift else np.flatnonzero(lengths <= tolerance)
        chosen = possible[np.argsort(rank[possible], kind="stable")[:most]]
        yield sample.take(chosen), tolerances[column : column + 1]


def rough_maps(
    model: MapModel, sample: ColumnPairs, scale: float, tolerances: FloatArray, rng: np.random.Generator
) -> tuple[Maps, FloatArray] | None:
    """Fit the densest sets to each tolerance; also the residuals that their pairs may have.

    None if there are too few pairs to choose from.
    """
    x, y, weights, bounds = [], [], [], []
    for chosen, some in worth_comparing(sample, scale, tolerances, model, _MOST_COMPARED, rng):
        if chosen.n_pairs < model.fewest_pairs:
            continue
        agreement = Agreement(scale * chosen.x, chosen.y, some)
        for which, tolerance in enumerate(some):
            sets = agreement.densest_sets(which, _SET_SIZE, _SEEDS)
            x.append(chosen.x.T[sets.members])
            y.append(chosen.y.T[sets.members])
            weights.append(sets.weights**_SHARPNESS * chosen.weights[sets.members])
            bounds.append(np.full(len(sets.weights), _RESIDUAL * tolerance))
    if not bounds:
        return None
    return fit_maps(model, *(np.concatenate(parts) for parts in (x, y, weights))), np.concatenate(bounds)


@dataclass(frozen=True, eq=False)
class RoughCandidates:
    """Maps, the bounds within which their support is least likely, and the scores there."""

    maps: Maps
    bounds: FloatArray
    scores: FloatArray

    @staticmethod
    def at_their_best(chance: Chance, pairs: ColumnPairs, maps: Maps, bounds: FloatArray) -> RoughCandidates:
        """Look, in some pairs, for the bounds up to the given ones at which the support of each map scores best."""
        within = _FINER[:, None] * bounds
        support, by_chance = pairs.support(maps, within, (0, 1)), pairs.support(maps, within, _SHIFTS)
        own = (by_chance + 1) / (pairs.n_pairs * (_SHIFTS[1] - _SHIFTS[0]) + 1)
        scores = chance.score(support, pairs.n_pairs, own, within, maps.stretch)
        best = np.argmax(scores, axis=0), np.arange(len(maps))
        return RoughCandidates(maps, within[best], scores[best])

    def __len__(self) -> int:
        return len(self.maps)

    def __getitem__(self, which: Array) -> RoughCandidates:
        return RoughCandidates(self.maps[which], self.bounds[which], self.scores[which])

    def one_by_one(self) -> Iterator[tuple[Maps, float, float]]:
        """Yield each map with its bound and score."""
        for s, (bound, score) in enumerate(zip(self.bounds.tolist(), self.scores.tolist(), strict=True)):
            yield self.maps[s], bound, score

    def different(self, spread: float, most: int) -> RoughCandidates:
        """Keep so many of the best, without those that are the same as a better one.

        Two are the same if they move the origin and the points at distance ``spread`` on each axis alike, up to the
        larger of their bounds.
        """
        ahead = np.argsort(-self.scores, kind="stable")[: 4 * most]
        shift, bounds = self.maps.shift[ahead, :, None], self.bounds[ahead]
        moved = np.concatenate([shift, shift + spread * self.maps.linear[ahead]], axis=2)
        steps = moved[:, None] - moved
        apart = np.einsum("stij,stij->stj", steps, steps).max(axis=2)
        chosen: list[int] = []
        for s, same in enumerate((apart <= np.maximum.outer(bounds, bounds) ** 2).tolist()):
            if len(chosen) < most and not any(same[before] for before in chosen):
                chosen.append(s)
        return self[ahead[chosen]]

    def fitted_again(self, model: MapModel, pairs: ColumnPairs) -> Maps:
        """Fit each map to the pairs within its bound, unless they are hardly enough for one."""
        maps = []
        for rough, bound, _ in self.one_by_one():
            fitted, n_within = pairs.fit_near(model, rough, bound)
            maps.append(fitted if n_within > model.fewest_pairs else rough)
        return Maps(np.concatenate([m.linear for m in maps]), np.concatenate([m.shift for m in maps]))
