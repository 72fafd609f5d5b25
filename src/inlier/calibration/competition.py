"""Does another row fit better? What re-pairing with strangers cannot see, because strangers are worse than neighbours.

Mistakes are often made between neighbours: inside a plate, a tissue, a time series. Beside re-pairings with anyone,
such a pair looks real. Beside the row that it was taken from it does not: the score s_ij of a `LinearMap` is the
logarithm of a likelihood ratio, so that the odds of "x_i has its partner among the others" against "y_i is its partner"
are

    (1 - r) / r * mean_j exp(s_ij - s_ii),

r the share of real pairs; likewise for y_i among the other x. Of a swapped pair both sides have a better partner, of a
poor one (a y with much noise) often one alone, so that the mean of the two logarithms counts. The share is estimated
with them, by EM: it is one minus the mean chance of being wrong. If y_i is the partner of x_i, and j a stranger, then
exp(s_ij - s_ii) is 1 on average, so that independent data lose hardly anything by this.

*True partners.* Re-pairings are rid of them, which they meet where wrong pairs are a permutation of each other. Then
x_i with y_j, j not i, is a real pair with a chance of about one in n, and no q-value falls below about w^2 / k (w the
share of wrong pairs, k the number of real ones). Such pairs are named, and left out. What a name is worth is told by
pairs that are clearly real: the best that they find among the others of their fold is never a partner. With n names, of
which a share r would be wrong, a share r of them stays in the null by lot, so that n (1 - r)^2 partners are taken out.
Names are taken from the score on at which these are most; none, if half of the names or more would be wrong.

In a small stratum one in a few re-pairings is a partner, and a wrong row may always be the one next to the right one.
There each row's best fit among the others, unless it seems to be its partner, is a null that holds for any wrong
partner of the stratum (`nearest_rivals`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.linear_map import LinearMap
from inlier.calibration.p_values import NullFraction, calibrate, means_of_surer
from inlier.rows.backend import namespace, take_rows, to_host
from inlier.rows.null_pairs import may_be_re_paired
from inlier.rows.threads import pieces_of_many

_MOST_COMPARED = 20_000_000  # rows with rows, in all: of more pairs, each is compared with a random part of the others
_FEWEST_RIVALS = 100
_LARGEST_EXPONENT = 80.0  # that is a number in float32
_FLOAT32_HOLDS = 1e5  # sum of the precisions of the coordinates up to which float32 is exact to a hundredth
_UNITS = (1.0, 0.5, 0.25, 0.125)  # of evidence, that scores are tried in
_SHARES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)  # of real pairs, for each of them
_WORTH_IT = 2.0  # log likelihood that a smaller unit must add
_ROWS_FOR_UNITS = 256  # of a fold, in random order, that the unit is chosen by
_CONTRADICTION = 2.0  # standard errors between the shares of real pairs beside rivals and strangers
_SUSPICION = 1.25  # likewise, where more of the accepted are wrong beside rivals, too
_SURELY_WRONG = 0.9999  # chance from which a pair is not accepted even where the rate would allow for it
_STEPS, _SETTLED = 200, 1e-6  # of the iteration for the share of real pairs
MOST_PAIRS = 4_000  # of more, the null is so large beside what it may meet that it hardly matters
_CLEARLY_REAL = 0.1  # q-value, before true partners are left out
_FEWEST_REAL = 5
_UNREACHABLE = 0.001  # q-value that could not be reached
_MOST_WRONG_NAMES = 0.5  # share, from which nobody is named


@dataclass(frozen=True, eq=False)
class Rivals:
    """Rows that may fit better than a pair's own: all of them, or of many pairs a random part."""

    x: Any
    y: Any
    rows: Array
    labels: Array

    @staticmethod
    def of(x: Any, y: Any, labels: Array, rng: np.random.RandomState) -> Rivals:
        """Choose them among all prepared rows."""
        n = labels.shape[1]
        most = max(_FEWEST_RIVALS, _MOST_COMPARED // n)
        rows = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
        return Rivals(take_rows(x, rows), take_rows(y, rows), rows, labels)

    def log_ratio(self, learned: LinearMap, x: Any, y: Any, rows: Array, scores: FloatArray) -> FloatArray:
        """Log of the mean over rivals j of exp(s_ij - s_ii): the mean of those for x_i and for y_i.

        x and y are prepared rows of the pairs ``rows``, which have these scores. Where a pair has no rival it is -inf.
        """
        banned = self._banned(rows)
        parts = [self._differences(learned, take_rows(x, k), take_rows(y, k), scores[k]) for k in pieces_of_many(x)]
        of_x, of_y = (np.concatenate(side) for side in zip(*parts, strict=True))
        of_x[banned], of_y[banned] = -np.inf, -np.inf
        count = self.rows.size - np.bincount(banned[0], minlength=rows.size)
        some = np.flatnonzero(~self._are_parted(learned, of_x, of_y, scores))[:_ROWS_FOR_UNITS]
        unit = _unit_of_evidence(of_x[some], count[some])
        return (_log_mean_ratio(of_x, count, unit) + _log_mean_ratio(of_y, count, unit)) / 2

    def _differences(self, learned: LinearMap, x: Any, y: Any, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """s_ij - s_ii for each x_i and all rivals, and for each y_i."""
        of_x = _differences(*learned.factors(x, self.y), scores, learned.variance)
        rivals, own = learned.factors(self.x, y)
        return of_x, _differences(own, rivals, scores, learned.variance)

    def _are_parted(self, learned: LinearMap, of_x: FloatArray, of_y: FloatArray, scores: FloatArray) -> Mask:
        """Whether both x_i and y_i fit some rival far better than their own, and better than that fits its own.

        A poor pair is beaten by rivals that have better partners. Two right pairs fit better crosswise, each by a
        likelihood ratio of n, with a chance of 1 / n^2 at the most. So these are partners who were parted: what scores
        are worth has to be told by the others.
        """
        taken = np.maximum(to_host(learned.scores(self.x, self.y))[None, :] - scores[:, None], 0.0)
        gains = [(differences - taken).max(axis=1, initial=-np.inf) for differences in (of_x, of_y)]
        parted: Mask = np.minimum(*gains) > np.log(self.rows.size)
        return parted

    def _banned(self, rows: Array) -> tuple[Array, Array]:
        """Places of the pairs ``rows``, and of rivals that they cannot be compared with."""
        n = self.labels.shape[1]
        if len(self.labels) == 2 and (self.labels.max(axis=1) + 1 == n).all():  # all differ: itself alone
            place = np.minimum(np.searchsorted(self.rows, rows), self.rows.size - 1)
            own = np.flatnonzero(self.rows[place] == rows)
            return own, place[own]
        of_rows, of_rivals = np.nonzero(~may_be_re_paired(self.labels, rows[:, None], self.rows[None, :]))
        return of_rows, of_rivals


def _differences(own: Any, others: Any, scores: FloatArray, variance: FloatArray) -> FloatArray:
    """s_ij - s_ii, from rows whose inner products are the s_ij; in float32 where that is exact enough."""
    xp = namespace(own)
    if float(np.sum(1 / variance)) < _FLOAT32_HOLDS:
        own, others = xp.astype(own, xp.float32), xp.astype(others, xp.float32)
    differences = to_host(own @ others.T)
    differences -= scores[:, None].astype(differences.dtype)
    return differences


def _unit_of_evidence(differences: FloatArray, count: Array) -> float:
    """What differences of scores are to be multiplied by so that they tell best which row of y belongs to x_i.

    They are logarithms of likelihood ratios where the noise is Gaussian; otherwise they promise too much. With a chance
    r, pair i is one of all rows in proportion to exp(unit * s_ij), otherwise any: the unit of the largest likelihood.
    """
    best, highest = 1.0, -np.inf
    for unit, log_ratio in zip(_UNITS, _log_mean_ratios(differences, count), strict=True):
        ratio = np.exp(np.minimum(log_ratio, _LARGEST_EXPONENT))
        own = (1 + count) / (1 + count * ratio)
        likelihood = max(float(np.sum(np.log(share * own + 1 - share))) for share in _SHARES)
        if likelihood > highest + _WORTH_IT:
            best, highest = unit, likelihood
    return best


def _log_mean_ratios(differences: FloatArray, count: Array) -> list[FloatArray]:
    """What `_log_mean_ratio` is in each unit, of which every one is half of the last: squares of the smallest."""
    largest = np.maximum(differences.max(axis=1), -_LARGEST_EXPONENT)  # of a row without rivals, too
    exponentials = differences - largest[:, None]
    exponentials *= differences.dtype.type(_UNITS[-1])
    np.exp(exponentials, out=exponentials)
    found = []
    for unit in _UNITS[::-1]:
        total = exponentials.sum(axis=1, dtype=np.float64)
        found.append(largest * unit + np.log(np.maximum(total, np.exp(-_LARGEST_EXPONENT)) / np.maximum(count, 1)))
        exponentials *= exponentials
    return found[::-1]


def _log_mean_ratio(differences: FloatArray, count: Array, unit: float) -> FloatArray:
    """Log of the mean of exp(unit * difference) over ``count`` rivals a row; those that do not count are at -inf."""
    highest = np.maximum(differences.max(axis=1) * unit, -_LARGEST_EXPONENT)
    exponents = differences * differences.dtype.type(unit)
    exponents -= highest[:, None].astype(exponents.dtype)
    total = np.exp(exponents, out=exponents).sum(axis=1, dtype=np.float64)
    return highest + np.log(np.maximum(total, np.exp(-_LARGEST_EXPONENT)) / np.maximum(count, 1))


@dataclass(frozen=True, eq=False)
class RivalShare:
    """How likely each pair is to be wrong, and how many are real, beside rivals."""

    chance_wrong: FloatArray
    share: tuple[float, float]  # of real pairs, and its standard error

    def contradicts(self, share: float, error: float) -> bool:
        """Whether far fewer pairs hold beside rivals than beside re-pairings (so many): neighbours were swapped."""
        return self._fewer(share, error) > _CONTRADICTION

    def suspects(self, share: float, error: float, accepted: Mask, n_wrong: float, alpha: float) -> bool:
        """Whether more of the accepted are wrong beside rivals than beside re-pairings (so many), and fewer are real.

        Where wrong partners are strangers, both count the same pairs, by chance within the error of a small count. No
        more than a share ``alpha`` of the accepted is what was promised.
        """
        n_beaten = float(self.chance_wrong[accepted].sum())
        more = (n_beaten - n_wrong) / (n_wrong + 1) ** 0.5
        breaks_promise = n_beaten > alpha * int(accepted.sum())
        return breaks_promise and (more + self._fewer(share, error)) / 2**0.5 > _SUSPICION

    def _fewer(self, share: float, error: float) -> float:
        return (share - self.share[0]) / (error**2 + self.share[1] ** 2) ** 0.5

    def q_values(self) -> FloatArray:
        """Share of wrong pairs among those that are no more doubtful than this one; 1 where it is surely wrong."""
        return np.where(self.chance_wrong > _SURELY_WRONG, 1.0, means_of_surer(self.chance_wrong))

    def warning(self, share: float, accepted: Mask, n_wrong: float, *, has_strata: bool) -> str:
        """What to say where this is not what was found beside strangers, of the stratum if it has one."""
        cure = "Finer strata tell more" if has_strata else "Say where wrong partners come from"
        n_beaten = float(self.chance_wrong[accepted].sum())
        return (
            f"Beside strangers {share:.1%} of the pairs look real, and {n_wrong:.0f} of the {int(accepted.sum())} best "
            f"ones wrong; beside rows that resemble them {self.share[0]:.1%}, and {n_beaten:.0f}. "
            f"Wrong partners seem to resemble the right ones: swaps inside a plate, a tissue or a run of rows, failed "
            f"samples, or a second map. Pairs that are clearly beaten are accepted last, if at all, but the share of "
            f"wrong pairs among the accepted may exceed alpha. {cure}: fit(X, y, strata=...), or --stratum COLUMN."
        )


def surely_beaten(n: int) -> float:
    """By how much one of n rows must outscore a pair for it to be refused, however little scores are worth."""
    return float((logit(_SURELY_WRONG) + np.log(n)) / min(_UNITS))


def share_by_rivals(log_ratio: FloatArray) -> RivalShare | None:
    """Judge pairs by the log ratios of each deal (a row each); None unless every pair was compared in one of them."""
    compared = np.isfinite(log_ratio)
    if not compared.any(axis=0).all():
        return None
    ratios = np.nanmedian(log_ratio, axis=0) if len(log_ratio) > 1 else log_ratio[0]
    n, share = ratios.size, 0.5
    for _ in range(_STEPS):
        wrong = expit(ratios + np.log((1 - share) / share))
        updated = float(np.clip(1 - wrong.mean(), 0.5 / n, 1 - 0.5 / n))
        change, share = abs(updated - share), updated
        if change < _SETTLED:
            break
    ratio = np.exp(np.minimum(ratios, _LARGEST_EXPONENT))
    information = float(np.sum(((1 - ratio) / (share + (1 - share) * ratio)) ** 2))  # of the likelihood of the share
    return RivalShare(wrong, (share, 1 / max(information, 1.0) ** 0.5))


# ---- true partners among the re-pairings


@dataclass(frozen=True, eq=False)
class FoldScores:
    """All x of a fold with all its y."""

    rows: Array
    scores: FloatArray
    may_be_re_paired: Mask

    def best(self) -> tuple[FloatArray, Array]:
        """The highest score of each x with a y other than its own, and which y; -inf if that fits another x better."""
        scores = np.where(self.may_be_re_paired, self.scores, -np.inf)
        to_y, to_x = scores.argmax(axis=1), scores.argmax(axis=0)
        mutual = to_x[to_y] == np.arange(to_y.size)
        return np.where(mutual, scores.max(axis=1), -np.inf), to_y

    def by_chance(self, real: Mask) -> FloatArray:
        """The same of x, and of y, that are clearly in a real pair: what is found by chance."""
        mine = real[self.rows]
        turned = FoldScores(self.rows, self.scores.T, self.may_be_re_paired.T)
        return np.concatenate([self.best()[0][mine], turned.best()[0][mine]])


def nearest_rivals(folds: list[FoldScores]) -> FloatArray:
    """Score of each x, and of each y, with what fits it best of the others, in rising order.

    Two that are each other's best, better than with their own, seem to be partners, and do not count.
    """
    found = [np.empty(0)]
    for fold in folds:
        own = np.diag(fold.scores)
        others = np.where(fold.may_be_re_paired, fold.scores, -np.inf)
        for_x, for_y = others.max(axis=1), others.max(axis=0)
        partners = (others > own[:, None]) & (others > own) & (others == for_x[:, None]) & (others == for_y)
        found += [for_x[~partners.any(axis=1)], for_y[~partners.any(axis=0)]]
    rising = np.sort(np.concatenate(found))
    return rising[np.isfinite(rising)]


def clearly_real(scores: FloatArray, null_scores: FloatArray, null_fraction: NullFraction | None) -> Mask | None:
    """Pairs that are clearly real, if they are so few beside the wrong ones that true partners in the null matter."""
    if scores.size > MOST_PAIRS:
        return None
    real = calibrate(scores, null_scores, null_fraction).q_values <= _CLEARLY_REAL
    k = int(real.sum())
    floor = (1 - k / scores.size) ** 2 / max(k, 1)
    return real if k >= _FEWEST_REAL and floor > _UNREACHABLE else None


def without_true_partners(folds: list[FoldScores], real: Mask, rng: np.random.RandomState) -> list[Mask]:
    """Which x_i with y_j of each fold are re-pairings, without those that are likely to be true partners."""
    found = [fold.best() for fold in folds]
    by_chance = np.concatenate([fold.by_chance(real) for fold in folds])
    others = np.concatenate([best[~real[fold.rows]] for fold, (best, _) in zip(folds, found, strict=True)])
    threshold, rate = _lowest_named(others, by_chance)
    kept = []
    for fold, (best, partner) in zip(folds, found, strict=True):
        mask = fold.may_be_re_paired.copy()
        named = np.flatnonzero((best >= threshold) & ~real[fold.rows] & ~real[fold.rows[partner]])
        named = named[rng.uniform(size=named.size) >= rate]
        mask[named, partner[named]] = False
        kept.append(mask)
    return kept


def _lowest_named(others: FloatArray, by_chance: FloatArray) -> tuple[float, float]:
    """Lowest score from which on pairings are named, and the share of the names that is wrong.

    Of k names a share 1 - rate are partners, and a share 1 - rate is taken out, whoever is wrong among them: where that
    takes out the most partners.
    """
    falling = np.sort(others[np.isfinite(others)])[::-1]
    if not falling.size or not by_chance.size:
        return np.inf, 0.0
    as_high = by_chance.size - np.searchsorted(np.sort(by_chance), falling, side="left")
    n_named = np.arange(1, falling.size + 1)
    rate = np.minimum((1 + as_high) / (1 + by_chance.size) * others.size / n_named, 1.0)
    best = int(np.argmax(n_named * (1 - rate) ** 2))
    return (float(falling[best]), float(rate[best])) if rate[best] < _MOST_WRONG_NAMES else (np.inf, 0.0)
