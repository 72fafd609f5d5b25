"""Find the map that most pairs agree on, and say how sure it is: search, then ask who else could have done it.

Where mistakes are independent of each other, the false alarms of the search say how sure it is (`evidence`). Then every
other explanation is asked, the same way each time: what does it give without any motion?

- *Places* (`places`): pairs that say one and the same thing count once.
- *Clumps* (`clumps`): where neighbours here are matched to neighbours there, maps are looked for among pairs that are
  no joint neighbours of each other too, and the one with the least likely support is taken.
- *A plane*: any patch of ground fits any other patch of ground, so where support is flat a clump counts once.
- *An order of rows* (`order`): a search among rows that are re-paired by whole stretches finds what order alone gives.
- *Another motion*: one that is sure by itself, among the pairs that do not follow the first, and has as many places but
  for luck, is a tie: neither is sure.
- *Freedoms* (`freedoms`): a turn or a slide of the motion that the other pairs follow as well.

Only the best map is judged. If it is set aside, for whatever reason, nothing is sure: it still speaks against the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.consensus.clumps import JointNeighbours, clump_length, looks_clumped
from inlier.consensus.evidence import MOST_FALSE_ALARMS
from inlier.consensus.freedoms import find_freedom
from inlier.consensus.order import is_in_order, kept_in_order
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.places import Places, Support
from inlier.consensus.refine import THIN, Candidate, Certainty, Consensus, fall_off
from inlier.consensus.search import Setting, Stage, as_generator, search, start_from
from inlier.rows.backend import rounding_of
from inlier.transforms.least_squares import MapModel, Maps

_JUDGING_RE_PAIRINGS = 10_000, 1_000_000  # for the p-values: the fewest and the most
_BELOW_RAREST = 30  # of those, how many shall lie below the p-value that decides
_FAR = 2.0  # bounds beyond which a pair is no witness of a map
_FEWEST_FAR = 50  # pairs that do not follow the map, for clumps to be looked for
_LOOKED_AT = 6_000  # pairs, at most, whose places are counted
_WEIGHED, _MOST_WEIGHED = 4.0, 20_000  # bounds, and pairs, up to which the last fit weighs them by their clumps
_ONE_VOTE = (
    0.15  # of the length up to which mistakes come together: joint neighbours within share a vote in the last fit
)
_THINNED = (0.2, 0.35)  # of that length: separations of the pairs that are searched too
_DRAWS_APART = 5  # of pairs that are no joint neighbours
_SAME = 4.0  # bounds: root mean square distance of images, up to which a map is the same
_OF_AN_ORDER = 500  # rows that are re-paired by stretches
_BEYOND_ORDER = 3.0  # times the evidence that order alone gives, which a motion must have
_TIE = 3.0  # standard deviations by which a motion must be ahead of another one
_SAME_ORDER = 0.5  # of the places of the best map, that make another one worth a word
_FOUND_FOR_SURE = 20  # members of a consensus that a search does not miss


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
    """Ask who else could have done it; where mistakes come together, the map is the one with the least likely places.

    Parameters are those of `find_consensus`.
    """
    setting = Setting(found.model, found.pairs, noise_bound, rng)
    certainty, best = how_sure(setting, Candidate(found.map, found.evidence))
    if best is None or certainty.clump_length == 0:
        return found, certainty
    near = found.pairs.is_near(best.map, max(_WEIGHED * best.bound, certainty.clump_length))
    pairs = _one_vote_a_clump(found.pairs, near, _ONE_VOTE * certainty.clump_length)
    setting = Setting(found.model, pairs, noise_bound, rng)
    return _finished(setting, *start_from(setting, best.map), alpha, found.origin, found.rounding), certainty


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


def how_sure(setting: Setting, found: Candidate) -> tuple[Certainty, Support | None]:
    """How sure the best map is, by pairs and by places; and what speaks for it, if it is sure."""
    evidence, rng = found.evidence, setting.rng
    by_pairs = Certainty(evidence.log_false_alarms, float(evidence.n_supporting))
    if not setting.model.keeps_distances or setting.pairs.is_wide:
        return by_pairs, None
    some = setting.sample(_LOOKED_AT)
    length = _length_of_clumps(some, found, rng)
    if length == 0 and not evidence.is_significant:
        return by_pairs, None
    places = Places(setting.model, some, length, setting.noise_bound, setting.pairs)
    best = _best_support(places, found, rng)
    if best is None:
        return Certainty(0.0, 0.0, length), None
    log_p = best.log_p_value if length > 0 else max(best.log_p_value, evidence.log_false_alarms)
    certainty = Certainty(log_p, best.n_places, length, map=best.map)
    for doubt_of in (_by_plane, _by_order, _by_another, _by_freedom):
        if certainty.is_sure:
            certainty = doubt_of(certainty, best, places, setting)
    return certainty, best if certainty.is_sure else None


def _length_of_clumps(some: ColumnPairs, found: Candidate, rng: np.random.Generator) -> float:
    """Up to which distance pairs come together that do not follow the map."""
    far = some
    if found.evidence.is_significant:
        far = some.take(np.flatnonzero(~some.is_near(found.map, _FAR * found.evidence.bound)))
    if far.n_pairs < _FEWEST_FAR or not looks_clumped(far.x.T, far.y.T, rng):
        return 0.0
    return clump_length(far.x.T, far.y.T, rng)


def _best_support(places: Places, found: Candidate, rng: np.random.Generator) -> Support | None:
    """The support of the map; where that is not sure in clumps, of the best one among pairs that are apart, too."""
    supports = [places.best_support(found.map, found.evidence.bound)] if found.evidence.is_significant else []
    if places.length > 0 and not (supports and supports[0].is_sure):
        supports += [places.best_support(*one) for one in _found_apart(places, places.pairs, rng)]
    return min(supports, key=lambda support: support.log_p_value, default=None)


def _found_apart(places: Places, pairs: ColumnPairs, rng: np.random.Generator) -> Iterator[tuple[Maps, float]]:
    """Maps, and their bounds, that are found among pairs no two of which are joint neighbours."""
    together = JointNeighbours.within(pairs.x.T, pairs.y.T, max(_THINNED) * places.length)
    everyone = np.ones(pairs.n_pairs, dtype=bool)
    for separation in _THINNED:
        some = together.nearer(separation * places.length).separated(everyone, rng)
        yield from _found_among(places, pairs.take(np.flatnonzero(some)), rng)


def _found_among(places: Places, pairs: ColumnPairs, rng: np.random.Generator) -> Iterator[tuple[Maps, float]]:
    if pairs.n_pairs > places.model.fewest_pairs + 1:
        _, found = search(Setting(places.model, pairs, places.noise_bound, rng))
        if found.evidence.is_significant:
            yield found.map, found.evidence.bound


def _by_plane(certainty: Certainty, best: Support, places: Places, setting: Setting) -> Certainty:
    """Flat support among clumps: only pairs that are no joint neighbours are witnesses, by the median of some draws."""
    pairs, near = places.pairs, places.pairs.near(best.map, best.bound)
    spreads = [np.linalg.svd(one - one.mean(axis=1, keepdims=True), compute_uv=False)[-1] for one in (near.x, near.y)]
    if places.length == 0 or min(spreads) > THIN * best.bound * math.sqrt(near.n_pairs):
        return certainty
    together = JointNeighbours.within(pairs.x.T, pairs.y.T, places.length)
    everyone, by_chance = np.ones(pairs.n_pairs, dtype=bool), places.share_by_chance(best.map, best.bound)
    drawn = []
    for _ in range(_DRAWS_APART):
        apart = pairs.take(np.flatnonzero(together.separated(everyone, setting.rng)))
        n_near = apart.near(best.map, best.bound).n_pairs
        drawn.append(places.log_chance(n_near, apart.n_pairs, by_chance, best.bound))
    return replace(certainty, log_p_value=max(certainty.log_p_value, float(np.median(drawn))))


def _by_order(certainty: Certainty, best: Support, places: Places, setting: Setting) -> Certainty:
    """Rows in an order: the motion must say far more than what is found where stretches are re-paired."""
    if setting.pairs.weights_differ or not is_in_order(setting.pairs):
        return certainty
    lowest, limit = 0.0, math.log(MOST_FALSE_ALARMS)
    for pairs in kept_in_order(setting.pairs, 2 * best.bound, _OF_AN_ORDER, setting.rng):
        by_order = replace(places, pairs=pairs, everyone=pairs)
        for found in _found_among(by_order, pairs, setting.rng):
            lowest = min(lowest, by_order.best_support(*found).log_p_value)
        if certainty.log_p_value > _BEYOND_ORDER * lowest:
            break
    share = min(limit / (_BEYOND_ORDER * lowest), 1.0) if lowest < 0 else 1.0
    return replace(certainty, log_p_value=share * certainty.log_p_value, in_order=share < 1)


def _by_another(certainty: Certainty, best: Support, places: Places, setting: Setting) -> Certainty:
    """Another motion of the pairs that do not follow the first: named if it is of the same order, a tie if as good."""
    pairs, rng = places.pairs, setting.rng
    far = np.flatnonzero(~pairs.is_near(best.map, max(_FAR * best.bound, places.length)))
    needed = _SAME_ORDER * np.count_nonzero(pairs.is_near(best.map, best.bound))
    if far.size < needed:
        return certainty
    enough = math.ceil(_FOUND_FOR_SURE * far.size / max(needed, 1))
    others = pairs.take(rng.permutation(far)[: max(enough, _FEWEST_FAR)])
    for maps, bound in _found_among(places, others, rng):
        second = places.best_support(maps, bound)
        is_same = _gap(best, second, pairs) <= _SAME * best.bound
        if not second.is_sure or is_same or second.n_places < _SAME_ORDER * best.n_places:
            continue
        certainty = replace(certainty, runner_up=(second.map, float(second.n_places)))
        # Where mistakes are independent each pair is a witness; else a place is.
        counts = [(one.n_places, np.count_nonzero(pairs.is_near(one.map, one.bound))) for one in (best, second)]
        leads = [first - other > _TIE * math.sqrt(first + other) for first, other in zip(*counts, strict=True)]
        if not (leads[0] or (leads[1] and places.length == 0)):
            return replace(certainty, log_p_value=0.0, is_tie=True)
    return certainty


def _by_freedom(certainty: Certainty, best: Support, places: Places, setting: Setting) -> Certainty:
    """A turn or a slide that the others follow as well: nothing is sure where that goes as far as among strangers."""
    free = find_freedom(places, best, setting.rng)
    if free is None:
        return certainty
    return replace(certainty, free=free, log_p_value=0.0 if free.is_open else certainty.log_p_value)


def _gap(best: Support, second: Support, pairs: ColumnPairs) -> float:
    """Root mean square distance of the images of those that support the best map under both."""
    points = pairs.near(best.map, best.bound).x.T
    turned = points @ (best.map.linear[0] - second.map.linear[0]).T + (best.map.shift[0] - second.map.shift[0])
    return float(np.sqrt(np.einsum("ij,ij->", turned, turned) / max(len(points), 1)))


def _one_vote_a_clump(pairs: ColumnPairs, near: Mask, reach: float) -> ColumnPairs:
    """Let the near pairs of a clump weigh as much as one, and others as the near ones do on average."""
    some = pairs.take(np.flatnonzero(near))
    if not 0 < some.n_pairs <= _MOST_WEIGHED:
        return pairs
    votes = JointNeighbours.within(some.x.T, some.y.T, reach).votes()
    say = np.full(pairs.n_pairs, votes.mean())
    say[near] = votes
    return replace(pairs, weights=pairs.weights * say / say.max())
