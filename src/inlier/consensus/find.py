"""Find the map that most pairs agree on, and say how sure it is: search, doubt, judge.

Where mistakes are independent of each other, the false alarms of the search say how sure it is (`evidence`). Where they
come in clumps (`clumps`), the map with the most places wins, and pairs that it was not fitted to decide (`hold_out`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from inlier._typing import Array, FloatArray, Mask
from inlier.consensus.clumps import JointNeighbours, clump_length, looks_clumped, repetition
from inlier.consensus.evidence import count_places, log_likelihood_ratio
from inlier.consensus.hold_out import HoldOutTest
from inlier.consensus.pairs import ColumnPairs
from inlier.consensus.refine import Candidate, Certainty, Consensus, fall_off
from inlier.consensus.search import Setting, Stage, as_generator, search, start_from
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
