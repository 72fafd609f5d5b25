"""How a repair is found: tell suspects, learn again without them, name partners, say what becomes of each row.

Rows that were given without a partner stand behind the pairs, first those of X, then those of y, each beside some row
of the other table that counts for nothing. Nothing is learned from them; x of such a row is tried like that of a
suspect, y of such a row is a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.any_pairs import AnyPairs, compare_any
from inlier.calibration.dependence import nearly_equal
from inlier.calibration.partners import Names, Owners, find_owners, name_partners
from inlier.calibration.suspects import Own, chance_wrong
from inlier.estimators._beside import Beside
from inlier.estimators.repair import KINDS, MORE_LIKELY, Repair
from inlier.exceptions import ParameterError
from inlier.rows import PairedRows
from inlier.rows.backend import to_host

if TYPE_CHECKING:
    from inlier.estimators.calibrated import CalibratedMatcher

KEPT, SWAPPED, MOVED, COPY, LOST, POOR, DOUBTFUL = range(len(KINDS))
_CANDIDATE = 0.25  # chance of being wrong from which a row is tried with others
_SURE = 0.05  # chance of being wrong up to which a pair tells what right pairs do
_MOST_LOOKED_AT = 5_000  # pairs up to which all are looked at; of more, those not accepted, and so many beside them
_BESIDE_THEM = 3_000
MOST_FOR_ALL = 20_000  # pairs up to which the y of all of them may be candidates
_MOST_UNPAIRED = 5_000  # rows without a partner, each of which is tried with each
_CALLED_COPY = 0.05  # q-value up to which a row is called a copy: no partner is named by that
_AT_THE_EDGE = 2.0  # times the mean error of names so sure or surer is that of the least sure, if it grows evenly
_LOOSE = 0.1  # between the share of real pairs and its upper end, from which on real pairs may look like wrong ones
_FEWEST_TRUSTED = 20  # pairs that are learned from; if the fit trusts fewer, all are


@dataclass(frozen=True, eq=False)
class Rows:
    """How many rows there are: pairs, and behind them those of X and of y that were given without a partner."""

    n_pairs: int
    n_x: int = 0
    n_y: int = 0

    @property
    def n_all(self) -> int:
        """All of them."""
        return self.n_pairs + self.n_x + self.n_y

    def have_x_and_y(self, rows: Array) -> tuple[Mask, Mask]:
        """Whether these rows have an x, and a y."""
        return rows < self.n_pairs + self.n_x, (rows < self.n_pairs) | (rows >= self.n_pairs + self.n_x)

    def as_given(self, partner: Array) -> Array:
        """Rows of y, counted among those that were given."""
        return np.where(partner >= self.n_pairs + self.n_x, partner - self.n_x, partner)

    def stacked(self, X: Array, Y: Array, rest: tuple[Array, Array]) -> tuple[Array, Array]:
        """Both tables with the others behind them."""
        if max(self.n_x, self.n_y) > _MOST_UNPAIRED:
            reason = f"has {max(self.n_x, self.n_y):,} rows; up to {_MOST_UNPAIRED:,} are tried with each other."
            raise ParameterError("unpaired", f"{reason} For more, see find_partners.")
        x, y = to_host(X), to_host(Y)
        beside_y, beside_x = (np.linspace(0, self.n_pairs - 1, n).astype(np.int64) for n in (self.n_y, self.n_x))
        return np.concatenate([x, rest[0], x[beside_y]]), np.concatenate([y, y[beside_x], rest[1]])

    def set_apart(self, labels: Array, rows: Array) -> Array:
        """Labels of these rows, in which what counts for nothing has nothing in common with what it repeats."""
        for side, has in zip(labels, self.have_x_and_y(rows), strict=False):
            side[~has] = side.max(initial=0) + 1 + np.arange((~has).sum())
        return labels


def repair_pairs(
    matcher: CalibratedMatcher,
    pairs: PairedRows,
    of: Rows,
    pair_labels: Any,
    gaps: Array,
    alpha: float,
    labels: Any,
    beside: Beside,
    *,
    wants_all: bool,
) -> Repair:
    """Say of each row whether it is with its partner, and if not, with whom it belongs.

    ``pairs`` are prepared; ``pair_labels`` makes what pairs have in common, of some rows of them. Where all rows are
    looked at, as ``wants_all`` wants, their y are candidates; otherwise those of rows that may be wrong.
    """
    rng = check_random_state(matcher.random_state)
    q = np.ones(of.n_all)
    q[: of.n_pairs] = to_host(matcher.q_values_)
    looked_at = _rows_to_look_at(matcher, of, rng, wants_all)
    near, common = pairs.near(looked_at), pair_labels(looked_at)
    is_pair, has = looked_at < of.n_pairs, of.have_x_and_y(looked_at)
    helped = beside.helper(near, common, rng)
    trusted = q[looked_at] <= MORE_LIKELY
    if trusted.sum() < _FEWEST_TRUSTED:
        trusted[:] = is_pair
    accepted = np.append(to_host(matcher.inlier_mask_), np.zeros(of.n_all - of.n_pairs, dtype=bool))
    stands_for = np.where(accepted[looked_at], accepted.sum() / max(int(accepted[looked_at].sum()), 1), 1.0)
    # first: who is a suspect, by how its own partner fits; then learn without all suspects, and ask again
    wrong, _ = _judged(compare_any(near, common, trusted, matcher.n_folds, rng, helped), is_pair, stands_for, rng)
    aside = wrong > _CANDIDATE
    if (~aside).sum() >= _FEWEST_TRUSTED:
        trusted = ~aside
    steady = of.n_pairs <= _MOST_LOOKED_AT  # where pairs are many, the luck of a deal is small
    compared = compare_any(near, common, trusted, matcher.n_folds, rng, helped, steady=steady)
    wrong_again, rank = _judged(compared, is_pair, stands_for, rng)
    if not (q <= alpha).any():  # then ranks do not tell real pairs from wrong ones, nor how many there are of each
        wrong_again[is_pair] = np.minimum(wrong_again[is_pair], MORE_LIKELY)
    sure = trusted & (wrong <= _SURE) & (wrong_again <= _SURE)
    suspects, perhaps = np.flatnonzero(aside), np.flatnonzero(aside & (rank != 1) & is_pair)
    candidates = np.arange(of.n_all) if looked_at.size == of.n_all else suspects
    owners = trusted & (wrong_again <= _CANDIDATE)  # a copy fits an owner's x as well, so owners are not quite sure
    found = _Found(
        name_partners(compared, suspects, wrong_again, sure, has, candidates),
        suspects,
        *find_owners(compared, perhaps, owners),
        nearly_equal(near, perhaps, owners),
        perhaps,
    )
    verdict = _Verdict(q[looked_at], wrong_again, rank, found, alpha)
    told = matcher.inlier_fraction_interval_[1] - matcher.inlier_fraction_ <= _LOOSE
    return replace(verdict.repair(looked_at, q, of, gaps, labels), tells_innocent=told)


def _rows_to_look_at(matcher: CalibratedMatcher, of: Rows, rng: np.random.RandomState, wants_all: bool) -> Array:
    mask = to_host(matcher.inlier_mask_)
    if wants_all and mask.size > MOST_FOR_ALL:
        reason = f"'all' is for up to {MOST_FOR_ALL:,} pairs, and there are {mask.size:,}."
        raise ParameterError("candidates", f"{reason} Leave it out, or see find_partners.")
    if wants_all or mask.size <= _MOST_LOOKED_AT:
        return np.arange(of.n_all)
    accepted = np.flatnonzero(mask)
    beside = rng.choice(accepted, min(_BESIDE_THEM, accepted.size), replace=False)
    pairs = np.union1d(np.flatnonzero(~mask), beside)
    return np.concatenate([pairs, np.arange(of.n_pairs, of.n_all)])


def _judged(
    compared: list[AnyPairs], is_pair: Mask, stands_for: FloatArray, rng: np.random.RandomState
) -> tuple[FloatArray, Array]:
    """Chance that each pair is wrong, and the rank of its own partner; 1 and 0 of what is none."""
    n = is_pair.size
    if not compared:
        return np.ones(n), np.zeros(n, dtype=np.int64)
    own = Own.of(compared, n, rng)
    known = is_pair & np.isfinite(own.better)
    rank = np.where(known, 1 + np.round(np.nan_to_num(own.better) * (n - 1)), 0)
    return chance_wrong(own, is_pair, stands_for), rank.astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Found:
    """What was found about the suspects."""

    names: Names
    suspects: Array
    owners_of_y: Owners
    owners_of_x: Owners
    equal: Array  # a row of y nearly equal to that of each that may be a copy, -1 where there is none
    perhaps: Array  # rows that may be copies


@dataclass(frozen=True, eq=False)
class _Verdict:
    """What is said of each pair that was looked at."""

    q: FloatArray
    wrong: FloatArray
    rank: Array
    found: _Found
    alpha: float

    def repair(self, looked_at: Array, q: FloatArray, of: Rows, gaps: Array, labels: Any) -> Repair:
        """The same for all rows: those that were not looked at are kept."""
        n, n_x = q.size, of.n_pairs + of.n_x
        kind, partner, copy_of, runner_up = np.full(n, KEPT), np.arange(n), np.full(n, -1), np.full(n, -1)
        chance, probability, rank = np.minimum(q, self.alpha), 1 - np.minimum(q, 1.0), np.zeros(n, dtype=np.int64)
        q = q.copy()
        numbers = np.append(looked_at, -1)
        found = self._of_rows()
        kind[looked_at], q[looked_at], probability[looked_at] = found["kind"], found["q"], found["probability"]
        chance[looked_at], rank[looked_at] = found["wrong"], self.rank
        for all_rows, name in ((partner, "partner"), (copy_of, "copy_of"), (runner_up, "runner_up")):
            all_rows[looked_at] = numbers[found[name]]
        chance[of.n_pairs :] = np.nan
        runner_up[~of.have_x_and_y(runner_up)[1]] = -1
        partner, runner_up = of.as_given(partner), of.as_given(runner_up)
        return Repair(
            np.array(KINDS)[kind[:n_x]],
            partner[:n_x],
            q[:n_x],
            probability[:n_x],
            chance[:n_x],
            rank[:n_x],
            runner_up[:n_x],
            copy_of[:n_x],
            gaps[:n_x],
            self.alpha,
            labels,
            (of.n_x, of.n_y),
        )

    def _of_rows(self) -> dict[str, Array]:
        n, found, s = self.q.size, self.found, self.found.suspects
        names = found.names
        wrong, partner, q = self.wrong.copy(), np.arange(n), self.q.copy()
        copy_of, runner_up = np.full(n, -1), np.full(n, -1)
        runner_up[s] = names.runner_up
        named = np.zeros(n, dtype=bool)
        named[s] = (names.q_values <= self.alpha) & (names.partner >= 0)
        partner[s] = np.where(named[s], names.partner, s)
        q[s] = np.where(named[s], names.q_values, np.maximum(q[s], names.q_values))
        probability = 1 - wrong
        probability[s] = np.where(named[s], 1 - np.minimum(_AT_THE_EDGE * names.q_values, 1.0), probability[s])
        given_away = np.zeros(n, dtype=bool)
        given_away[partner[named]] = True  # its y belongs to another x
        wrong[named | given_away] = np.maximum(wrong, 1 - self.alpha)[named | given_away]
        q[given_away & ~named] = 1.0
        is_wrong = wrong > MORE_LIKELY
        kind = self._unnamed(is_wrong, named, probability, wrong)
        cycle = partner[partner] == np.arange(n)
        kind[named] = np.where(cycle[named], SWAPPED, MOVED)
        self._mark_copies(kind, named, copy_of, partner, q, is_wrong)
        partner[~named & is_wrong & (partner == np.arange(n))] = -1
        return {
            "kind": kind,
            "partner": partner,
            "q": q,
            "probability": np.clip(probability, 0.0, 1.0),
            "wrong": wrong,
            "copy_of": copy_of,
            "runner_up": runner_up,
        }

    def _unnamed(self, is_wrong: Mask, named: Mask, probability: FloatArray, wrong: FloatArray) -> Array:
        """Verdicts of rows without a name; the chance that a suspect's partner is not here is its probability."""
        s, not_here = self.found.suspects, np.zeros(self.q.size)
        not_here[s] = self.found.names.not_here * wrong[s]
        accepted = self.q <= self.alpha
        poor = ~accepted & ~is_wrong & ((wrong <= _CANDIDATE) | (self.rank == 1))
        kind = np.where(accepted & ~is_wrong, KEPT, np.where(poor, POOR, DOUBTFUL))
        lost = is_wrong & (not_here > MORE_LIKELY)
        kind[lost] = LOST
        without_name = is_wrong & ~named
        probability[without_name] = np.maximum(not_here, wrong * (1 - not_here))[without_name]
        return kind

    def _mark_copies(
        self, kind: Array, named: Mask, copy_of: Array, partner: Array, q: FloatArray, is_wrong: Mask
    ) -> None:
        """Suspects without a name whose y, or x, is that of a right pair; an x so has its owner's partner."""
        s, equal = self.found.perhaps, self.found.equal
        of_y, of_x = self.found.owners_of_y, self.found.owners_of_x
        x_copy = ~named[s] & is_wrong[s] & (of_x.q_values <= self.alpha) & (of_x.of >= 0)
        y_copy = ~named[s] & ~x_copy & (((of_y.q_values <= _CALLED_COPY) & (of_y.of >= 0)) | (equal >= 0))
        owner = np.where(equal >= 0, equal, of_y.of)
        copy_of[s[y_copy]], copy_of[s[x_copy]] = owner[y_copy], of_x.of[x_copy]
        partner[s[x_copy]], q[s[x_copy]] = of_x.of[x_copy], of_x.q_values[x_copy]
        kind[s[x_copy | y_copy]] = COPY
        partner[s[y_copy]] = -1
