"""Pairs that follow another map: told apart from the first, and looked for among the rest.

One linear map may be the average of two: it fits the pairs of both better than any re-pairing does, and all of them are
accepted. Two models are therefore compared on pairs that they were not fitted to:

    one map, with noise of two sizes or with strays      against      two maps, each with its noise.

Two maps that are preferred may also be two halves of
one curved relation: then neighbours in x follow the same one, and nothing is taken back.

Among the pairs that were not accepted, another map is worth a fit where the moment of x and y, apart from its part
along that of the accepted pairs, is larger than those of re-pairings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.linear_map import LEAST_VARIANCE

_MOST_DIMENSIONS, _PAIRS_PER_DIMENSION = 20, 10  # with fewer pairs two maps fit whatever there is
_MOST_PAIRS = 5_000  # that are looked at
_DISPERSION = 1.5  # variance of the squared residuals, 1 for Gaussian noise, from which two maps are tried
_STEPS, _SETTLED = 30, 1e-4  # of the iteration; mean change of the chances, or relative one of the noise, that ends it
_SAMPLES = 30  # minimal ones, among whose maps the best is a start
_CLEARLY_BETTER = 0.7  # median squared residual of another map, in units of that of the first
_LEAST_SHARE = 0.02  # of the smaller of two maps
_BROAD_COUNTS = 0.1  # weight of a pair with much noise beside one with little, where one map is fitted to both
_GAIN, _SURE = 0.1, 5.0  # log likelihood a pair that two maps must add, and its standard errors
_NEIGHBOURS_AGREE = 5.0  # standard errors beyond chance, of neighbours that follow the same map
_SCREENING_ROWS, _SCREENING_RE_PAIRINGS = 2_000, 19  # of the rest; one in twenty passes by chance
_SCREENING_ACCEPTED = 50_000  # accepted pairs whose moment is that of their map, well enough


@dataclass(frozen=True, eq=False)
class Maps:
    """Which map each pair follows, counted from 0 for the one that was found first; -1 for none."""

    labels: Array
    chance_other: FloatArray  # of the pairs accepted by the first map, to follow another
    is_curve: bool = False  # whether two maps seem to be parts of one curved relation


def tell_maps_apart(
    x: FloatArray, y: FloatArray, accepted: Mask, fit_rest: Callable[[Array], Array], rng: np.random.RandomState
) -> Maps:
    """Number the maps that prepared pairs follow, of which some were accepted by a first one.

    ``fit_rest`` matches the pairs of some rows anew and returns their labels. A further map counts if it is detected
    there, and tells its pairs better than the first does.
    """
    labels, other = np.where(accepted, 0, -1), np.zeros(len(x))
    first = np.flatnonzero(accepted)
    within = None if _are_wide(x, y) else find_second_map(x[first], y[first], rng)
    if within is not None and not within.is_curve:
        other[first] = within.chance
        labels[other > 0.5] = -1  # back to the rest, with which they may belong
    kept, rest = np.flatnonzero(labels == 0), np.flatnonzero(labels < 0)
    enough = _are_enough(x, y, rest) and _are_enough(x, y, kept)
    some, others = kept[:: kept.size // _SCREENING_ACCEPTED + 1], rest[:_SCREENING_ROWS]
    if enough and is_worth_a_fit((x[some], y[some]), (x[others], y[others]), rng):
        of_rest = fit_rest(rest)
        second = rest[of_rest == 0]
        if _are_enough(x, y, second) and _is_another(x, y, kept, second):
            labels[rest] = np.where(of_rest >= 0, of_rest + 1, -1)
            other[kept] = np.maximum(other[kept], _chance_of_second(x, y, kept, second))
    labels[accepted & (other > 0.5) & (labels <= 0)] = 1
    return Maps(labels, other, within is not None and within.is_curve)


@dataclass(frozen=True, eq=False)
class SecondMap:
    """How likely each pair follows the second map, and whether that depends on where its x is."""

    chance: FloatArray
    is_curve: bool


def find_second_map(x: FloatArray, y: FloatArray, rng: np.random.RandomState) -> SecondMap | None:
    """Two maps behind accepted, prepared pairs; None where one is as good, or there are too few pairs to tell."""
    n = len(x)
    if _are_wide(x, y) or not _are_enough(x, y, np.arange(n // 2)):
        return None
    some = rng.choice(n, _MOST_PAIRS, replace=False) if n > _MOST_PAIRS else slice(0, n)
    x = _with_constant(x)
    if _dispersion(x[some], y[some]) < _DISPERSION or not _two_are_better(x[some], y[some], rng):
        return None
    chance = _two_maps(x[some], y[some], rng).second(x, y)
    return SecondMap(chance, _neighbours_agree(x[:, :-1], chance > 0.5, rng))


def _are_wide(x: FloatArray, y: FloatArray) -> bool:
    return max(x.shape[1], y.shape[1]) > _MOST_DIMENSIONS


def _are_enough(x: FloatArray, y: FloatArray, rows: Array) -> bool:
    return rows.size >= _PAIRS_PER_DIMENSION * (max(x.shape[1], y.shape[1]) + 1)


def _with_constant(x: FloatArray) -> FloatArray:
    return np.column_stack([x, np.ones(len(x))])


def _is_another(x: FloatArray, y: FloatArray, first: Array, second: Array) -> bool:
    """Whether the second pairs' own map tells those of them that it has not seen clearly better than the first map."""
    x = _with_constant(x)
    seen, unseen = second[::2], second[1::2]
    of_own, of_first = (
        float(np.median(np.sum((y[unseen] - x[unseen] @ _fitted(x[rows], y[rows], np.ones(rows.size))) ** 2, axis=1)))
        for rows in (seen, first)
    )
    return of_own < _CLEARLY_BETTER * of_first


def _chance_of_second(x: FloatArray, y: FloatArray, first: Array, second: Array) -> FloatArray:
    """Chance of each of the first pairs to follow the second map, where both have been found."""
    if _are_wide(x, y):
        return np.zeros(first.size)
    rows = np.concatenate([first, second])
    x, y, chance = _with_constant(x[rows]), y[rows], np.repeat((0.01, 0.99), (first.size, second.size))
    return _settled(x, y, chance).second(x, y)[: first.size]


def is_worth_a_fit(
    accepted: tuple[FloatArray, FloatArray], rest: tuple[FloatArray, FloatArray], rng: np.random.RandomState
) -> bool:
    """Whether prepared pairs that were not accepted have something in common beside the map of those that were."""
    x, y = rest
    direction = accepted[0].T @ accepted[1]
    direction /= max(float(np.linalg.norm(direction)), np.finfo(np.float64).tiny)

    def beside(y: FloatArray) -> float:
        moment = x.T @ y
        return float(np.linalg.norm(moment - np.sum(moment * direction) * direction))

    by_chance = (beside(y[rng.permutation(len(y))]) for _ in range(_SCREENING_RE_PAIRINGS))
    own = beside(y)
    return all(own > other for other in by_chance)


def _dispersion(x: FloatArray, y: FloatArray) -> float:
    """Variance of the sums of squared residuals around one map, in units of that of Gaussian noise."""
    squares = _residuals(x, y, np.ones(len(x))) ** 2
    scaled = squares / np.maximum(squares.mean(axis=0), LEAST_VARIANCE)
    return float(np.var(scaled.sum(axis=1)) / (2 * y.shape[1]))


def _two_are_better(x: FloatArray, y: FloatArray, rng: np.random.RandomState) -> bool:
    """Whether two maps tell pairs that they have not seen better than one with noise of two sizes, or with strays."""
    half = rng.permutation(len(x)) % 2 == 0
    gains = np.empty((2, len(x)))
    for seen in (half, ~half):
        two = _two_maps(x[seen], y[seen], rng).log_likelihood(x[~seen], y[~seen])
        for gain, are_strays in zip(gains, (False, True), strict=True):
            one = _one_map(x[seen], y[seen], are_strays=are_strays)
            gain[~seen] = two - one.log_likelihood(x[~seen], y[~seen])
    for gain in gains:
        typical = np.clip(gain, *np.quantile(gain, (0.01, 0.99)))  # one pair must not decide
        if float(typical.mean()) <= max(_GAIN, _SURE * float(np.std(typical)) / len(x) ** 0.5):
            return False
    return True


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Two linear maps with an offset, their noise variances per column, and the share of the second."""

    maps: tuple[FloatArray, FloatArray]
    variances: tuple[FloatArray, FloatArray]
    share: float  # of the second

    def _of_both(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        shares = (1 - self.share, self.share)
        first, second = (
            np.log(share) - (((y - x @ linear) ** 2 / variance).sum(axis=1) + np.log(variance).sum()) / 2
            for linear, variance, share in zip(self.maps, self.variances, shares, strict=True)
        )
        return first, second

    def log_likelihood(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Of each pair, up to a constant."""
        return np.logaddexp(*self._of_both(x, y))

    def second(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Chance of each pair to follow the second map."""
        first, second = self._of_both(x, y)
        return expit(second - first)


def _two_maps(x: FloatArray, y: FloatArray, rng: np.random.RandomState) -> _Mixture:
    """Two maps by expectation and maximisation, the larger first; from the better of several starts."""
    best, highest = None, -np.inf
    for weights in _starts(x, y, rng):
        found = _settled(x, y, 1 - weights)
        likelihood = float(found.log_likelihood(x, y).sum())
        if likelihood > highest:
            best, highest = found, likelihood
    assert best is not None
    if best.share <= 0.5:
        return best
    return _Mixture(best.maps[::-1], best.variances[::-1], 1 - best.share)


def _settled(x: FloatArray, y: FloatArray, chance: FloatArray) -> _Mixture:
    """Two maps by expectation and maximisation, from chances to follow the second."""
    for _ in range(_STEPS):
        found = _maximised(x, y, chance)
        updated = found.second(x, y)
        change, chance = float(np.abs(updated - chance).mean()), updated
        if change < _SETTLED:
            break
    return found


def _starts(x: FloatArray, y: FloatArray, rng: np.random.RandomState) -> list[FloatArray]:
    """Weights of a first map: the half nearest to the one map, and to the best of those through minimal samples."""
    n, d = x.shape
    nearest = [_nearest_half(_residuals(x, y, np.ones(n)))]
    best, least = None, np.inf
    for _ in range(_SAMPLES):
        rows = rng.choice(n, d, replace=False)
        residuals = y - x @ np.linalg.lstsq(x[rows], y[rows], rcond=None)[0]
        middle = float(np.quantile((residuals**2).sum(axis=1), 0.3))
        if middle < least:
            best, least = residuals, middle
    return nearest if best is None else [*nearest, _nearest_half(best)]


def _nearest_half(residuals: FloatArray) -> FloatArray:
    size = (residuals**2).sum(axis=1)
    return np.where(size <= np.median(size), 0.95, 0.05)


def _maximised(x: FloatArray, y: FloatArray, chance: FloatArray) -> _Mixture:
    """Maps and variances by weighted least squares, given each pair's chance to follow the second."""
    maps, variances = [], []
    for weights in (1 - chance, chance):
        linear = _fitted(x, y, weights)
        variance = weights @ (y - x @ linear) ** 2 / max(float(weights.sum()) - x.shape[1], 1.0)
        maps.append(linear)
        variances.append(np.maximum(variance, LEAST_VARIANCE))
    share = float(np.clip(chance.mean(), _LEAST_SHARE, 1 - _LEAST_SHARE))
    return _Mixture((maps[0], maps[1]), (variances[0], variances[1]), share)


def _one_map(x: FloatArray, y: FloatArray, *, are_strays: bool) -> _Mixture:
    """One map with noise of two sizes around it; or with strays, whose y knows nothing of x."""
    chance = np.where(_nearest_half(_residuals(x, y, np.ones(len(x)))) > 0.5, 0.05, 0.95)
    variance = np.ones(y.shape[1])
    for _ in range(_STEPS):
        linear = _fitted(x, y, (1 - chance) + (0 if are_strays else _BROAD_COUNTS) * chance)
        other = linear
        if are_strays:
            other = np.zeros_like(linear)
            other[-1] = chance @ y / max(float(chance.sum()), 1.0)
        variances = [
            np.maximum(w @ (y - x @ m) ** 2 / max(float(w.sum()), 1.0), LEAST_VARIANCE)
            for w, m in ((1 - chance, linear), (chance, other))
        ]
        share = float(np.clip(chance.mean(), _LEAST_SHARE, 1 - _LEAST_SHARE))
        found = _Mixture((linear, other), (variances[0], variances[1]), share)
        chance, before = found.second(x, y), variance
        variance = variances[0]
        if np.allclose(variance, before, rtol=_SETTLED):
            break
    return found


def _fitted(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    weighted = x * weights[:, None]
    moment = weighted.T @ x
    moment[np.diag_indices_from(moment)] += 1e-9 * max(float(np.trace(moment)), 1e-300)
    return np.linalg.solve(moment, weighted.T @ y)


def _residuals(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    return y - x @ _fitted(x, y, weights)


def _neighbours_agree(x: FloatArray, is_second: Array, rng: np.random.RandomState) -> bool:
    """Whether nearest neighbours in x follow the same map more often than chance has it."""
    n = min(len(x), _SCREENING_ROWS)
    some = rng.choice(len(x), n, replace=False)
    rows, second = x[some], is_second[some]
    squares = np.einsum("ij,ij->i", rows, rows)
    distances = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    np.fill_diagonal(distances, np.inf)
    agree = float(np.mean(second == second[np.argmin(distances, axis=1)]))
    share = float(second.mean())
    chance = share**2 + (1 - share) ** 2
    return agree > chance + _NEIGHBOURS_AGREE * (chance * (1 - chance) / n) ** 0.5
