"""How a repair is found: `repair_pairs` has the four steps. On the way rows are called:

    name           who                                                           for what
    trusted        q-value of the fit up to MORE_LIKELY; then: not tried         maps are learned from them
    beaten         rejected by the fit among look-alikes, rank above 1           tried; doubted if nobody is named
    tried          first chance of being wrong above _TRIED, or without partner  partners are looked for
    sure           trusted, and both chances up to _SURE                         counted: if they are few, no names
    candidates     all rows; of more than _MOST_LOOKED_AT pairs, those tried     their y may be named
    may_be_copies  tried pairs whose own partner does not fit best               owners are looked for
    owners         trusted, and the second chance up to _TRIED                   they may own what a copy repeats
    suspects       chance of being wrong above MORE_LIKELY (`Repair.suspects`)   the answer calls them wrong

Rows that were given without a partner stand behind the pairs, see `Stacked`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.any_pairs import AnyPairs, compare_any
from inlier.calibration.copies import nearly_equal
from inlier.calibration.p_values import on_their_way, tells_wrong
from inlier.calibration.partners import Names, Owners, find_owners, name_partners
from inlier.calibration.suspects import Own, chance_wrong
from inlier.estimators._side_information import SideInformation
from inlier.estimators.repair import KINDS, MORE_LIKELY, Repair
from inlier.exceptions import ParameterError
from inlier.rows import PairedRows
from inlier.rows.backend import to_host

if TYPE_CHECKING:
    from inlier.estimators.calibrated import CalibratedMatcher

KEPT, SWAPPED, MOVED, COPY, LOST, POOR, DOUBTFUL = range(len(KINDS))
_TRIED = 0.25  # chance of being wrong above which a row is tried with others
_SURE = 0.05  # chance of being wrong up to which a pair counts as sure; where few do, nobody is named (`FEWEST_SURE`)
_MOST_LOOKED_AT = 5_000  # pairs up to which all are looked at; of more, those not accepted, and so many beside them
_BESIDE_THEM = 3_000
MOST_FOR_ALL = 20_000  # pairs up to which the y of all of them may be candidates
_MOST_UNPAIRED = 5_000  # rows without a partner, each of which is tried with each
_CALLED_COPY = 0.05  # q-value up to which a row is called a copy: no partner is named by that
_AT_THE_EDGE = 2.0  # times the mean error of names so sure or surer is that of the least sure, if it grows evenly
_LOOSE = 0.07  # between the share of real pairs and its upper end, above which real pairs may look like wrong ones
_ERRORS = 2.0  # standard errors of a share, by which these may differ in any case
_BEATEN = 0.95  # largest chance of being wrong that is told by a rival among look-alikes alone
_FEWEST_TRUSTED = 20  # pairs that are learned from; if the fit trusts fewer, all are


@dataclass(frozen=True, eq=False)
class Stacked:
    """How many rows there are: pairs, and behind them those that were given without a partner.

    Each of these stands beside a row of the other table that counts for nothing:

        X   x of pairs   x alone    filler
        y   y of pairs   filler     y alone
            n_pairs      n_x        n_y rows

    Nothing is learned from them; an x alone is tried as that of a wrong pair is, a y alone is a candidate.
    """

    n_pairs: int
    n_x: int = 0
    n_y: int = 0

    @property
    def n_all(self) -> int:
        """All of them."""
        return self.n_pairs + self.n_x + self.n_y

    def have_x_and_y(self, rows: Array) -> tuple[Mask, Mask]:
        """Whether these rows have an x, and a y, that is no filler."""
        return rows < self.n_pairs + self.n_x, (rows < self.n_pairs) | (rows >= self.n_pairs + self.n_x)

    def as_given(self, partner: Array) -> Array:
        """Rows of y, counted among those that were given."""
        return np.where(partner >= self.n_pairs + self.n_x, partner - self.n_x, partner)

    def tables(self, X: Array, Y: Array, rest: tuple[Array, Array]) -> tuple[Array, Array]:
        """Both tables with the others behind them."""
        if max(self.n_x, self.n_y) > _MOST_UNPAIRED:
            reason = f"has {max(self.n_x, self.n_y):,} rows; up to {_MOST_UNPAIRED:,} are tried with each other."
            raise ParameterError("unpaired", f"{reason} For more, see find_partners.")
        x, y = to_host(X), to_host(Y)
        filler_x, filler_y = (np.linspace(0, self.n_pairs - 1, n).astype(np.int64) for n in (self.n_y, self.n_x))
        return np.concatenate([x, rest[0], x[filler_x]]), np.concatenate([y, y[filler_y], rest[1]])

    def set_apart(self, labels: Array, rows: Array) -> Array:
        """Labels of these rows, in which filler has nothing in common with what it repeats."""
        for side, has in zip(labels, self.have_x_and_y(rows), strict=False):
            side[~has] = side.max(initial=0) + 1 + np.arange((~has).sum())
        return labels


def repair_pairs(
    matcher: CalibratedMatcher,
    pairs: PairedRows,
    stacked: Stacked,
    pair_labels: Any,
    gaps: Array,
    alpha: float,
    labels: Any,
    beside: SideInformation,
    *,
    wants_all: bool,
) -> Repair:
    """Say of each row whether it is with its partner, and if not, with whom it belongs.

    ``pairs`` are prepared; ``pair_labels`` makes what pairs have in common, of some rows of them. Where all rows are
    looked at, as ``wants_all`` wants, their y are candidates; otherwise those of rows that are tried.
    """
    rng = check_random_state(matcher.random_state)
    q = np.append(to_host(matcher.q_values_), np.ones(stacked.n_x + stacked.n_y))
    looked_at, stands_for = _rows_to_look_at(matcher, stacked, rng, wants_all)
    near, common, is_pair = pairs.near(looked_at), pair_labels(looked_at), looked_at < stacked.n_pairs
    helped = beside.helper(near, common, rng)
    compare = partial(compare_any, near, common, n_folds=matcher.n_folds, rng=rng, helped=helped)

    # 1. How likely is each pair wrong, by how its own partner fits?
    trusted = q[looked_at] <= MORE_LIKELY
    if trusted.sum() < _FEWEST_TRUSTED:
        trusted[:] = is_pair
    beaten = np.zeros(looked_at.size)
    first_chance, rank = _judged(compare(trusted), is_pair, stands_for, rng)
    tried = np.where(rank > 1, np.maximum(first_chance, beaten), first_chance) > _TRIED

    # 2. Learn again without those that may be wrong, and ask again; of many pairs the luck of a deal is small.
    if (~tried).sum() >= _FEWEST_TRUSTED:
        trusted = ~tried
    compared = compare(trusted, steady=stacked.n_pairs <= _MOST_LOOKED_AT)
    chance, rank = _judged(compared, is_pair, stands_for, rng)
    beaten[rank <= 1] = 0
    if not (q <= alpha).any():  # then ranks do not tell real pairs from wrong ones, nor how many there are of each
        chance[is_pair] = np.minimum(chance[is_pair], MORE_LIKELY)

    # 3. Names for those that are tried.
    n_sure = int((trusted & (first_chance <= _SURE) & (chance <= _SURE)).sum())
    rows, has = np.flatnonzero(tried), stacked.have_x_and_y(looked_at)
    candidates = np.arange(stacked.n_all) if looked_at.size == stacked.n_all else rows
    names = name_partners(compared, rows, np.maximum(chance, beaten), n_sure, has, candidates)

    # 4. Copies, and what is said of each row. A copy fits an owner's x as well, so owners are not quite sure.
    may_be_copies, owners = np.flatnonzero(tried & (rank != 1) & is_pair), trusted & (chance <= _TRIED)
    copies = _Copies.of(compared, near, may_be_copies, owners)
    told = _tells_innocent(matcher)
    doubted = np.maximum(chance, np.minimum(beaten, MORE_LIKELY))
    outcome = _Outcome(q[looked_at], doubted, rank, rows, names, copies, alpha, tells_innocent=told)
    return outcome.repair(looked_at, q, stacked, gaps=gaps, labels=labels)


def _rows_to_look_at(
    matcher: CalibratedMatcher, stacked: Stacked, rng: np.random.RandomState, wants_all: bool
) -> tuple[Array, FloatArray]:
    """Which rows are looked at, and how many each of them stands for."""
    accepted = to_host(matcher.inlier_mask_)
    if wants_all and accepted.size > MOST_FOR_ALL:
        reason = f"'all' is for up to {MOST_FOR_ALL:,} pairs, and there are {accepted.size:,}."
        raise ParameterError("candidates", f"{reason} Leave it out, or see find_partners.")
    if wants_all or accepted.size <= _MOST_LOOKED_AT:
        return np.arange(stacked.n_all), np.ones(stacked.n_all)
    n_accepted = int(accepted.sum())
    beside = rng.choice(np.flatnonzero(accepted), min(_BESIDE_THEM, n_accepted), replace=False)
    pairs = np.union1d(np.flatnonzero(~accepted), beside)
    stands_for = np.ones(pairs.size + stacked.n_x + stacked.n_y)
    stands_for[: pairs.size][accepted[pairs]] = n_accepted / max(beside.size, 1)
    return np.concatenate([pairs, np.arange(stacked.n_pairs, stacked.n_all)]), stands_for


def _tells_innocent(matcher: CalibratedMatcher) -> bool:
    """Whether few real pairs can look like wrong ones: hardly any lie between those that are clear and wrong ones."""
    p = to_host(matcher.p_values_)
    return tells_wrong(int(on_their_way(p).sum()), p.size, matcher.inlier_fraction_)


def _judged(
    compared: list[AnyPairs], is_pair: Mask, stands_for: FloatArray, rng: np.random.RandomState
) -> tuple[FloatArray, Array]:
    """Chance that each pair is wrong, and the rank of its own partner; 1 and 0 of what is none."""
    n = is_pair.size
    if not compared:
        return np.ones(n), np.zeros(n, dtype=np.int64)
    own = Own.of(compared, n, rng)
    known = is_pair & np.isfinite(own.better)
    rank = np.where(known, 1 + np.round(np.nan_to_num(own.better) * (is_pair.sum() - 1)), 0)
    return chance_wrong(own, is_pair, stands_for), rank.astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Copies:
    """Rows that may be copies, and of what."""

    rows: Array
    of_y: Owners
    of_x: Owners
    equal: Array  # an owner whose y is nearly equal to theirs, -1 where there is none

    @staticmethod
    def of(compared: Sequence[AnyPairs], pairs: PairedRows, rows: Array, owners: Mask) -> _Copies:
        """Look for the owners of what these rows have."""
        return _Copies(rows, *find_owners(compared, rows, owners), nearly_equal(pairs, rows, owners))


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What becomes of each row that was looked at."""

    q: FloatArray  # of the fit
    chance: FloatArray  # of being wrong
    rank: Array  # of its own partner
    tried: Array
    names: Names  # of those that were tried
    copies: _Copies
    alpha: float
    tells_innocent: bool  # whether few right pairs look like wrong ones

    def repair(self, looked_at: Array, q: FloatArray, stacked: Stacked, *, gaps: Array, labels: Any) -> Repair:
        """The same for all rows: those that were not looked at are kept."""
        n, n_x = q.size, stacked.n_pairs + stacked.n_x
        kind, partner, copy_of, runner_up = np.full(n, KEPT), np.arange(n), np.full(n, -1), np.full(n, -1)
        chance, probability, rank = np.minimum(q, self.alpha), 1 - np.minimum(q, 1.0), np.zeros(n, dtype=np.int64)
        q = q.copy()
        numbers = np.append(looked_at, -1)
        found = self._of_rows()
        kind[looked_at], q[looked_at], probability[looked_at] = found["kind"], found["q"], found["probability"]
        chance[looked_at], rank[looked_at] = found["chance"], self.rank
        for all_rows, name in ((partner, "partner"), (copy_of, "copy_of"), (runner_up, "runner_up")):
            all_rows[looked_at] = numbers[found[name]]
        chance[stacked.n_pairs :] = np.nan
        runner_up[~stacked.have_x_and_y(runner_up)[1]] = -1
        return Repair(
            kind=np.array(KINDS)[kind[:n_x]],
            partner=stacked.as_given(partner)[:n_x],
            q_values=q[:n_x],
            probability=probability[:n_x],
            chance_wrong=chance[:n_x],
            own_rank=rank[:n_x],
            runner_up=stacked.as_given(runner_up)[:n_x],
            copy_of=copy_of[:n_x],
            gaps=gaps[:n_x],
            alpha=self.alpha,
            labels=labels,
            n_unpaired=(stacked.n_x, stacked.n_y),
            tells_innocent=self.tells_innocent,
        )

    def _of_rows(self) -> dict[str, Array]:
        n, tried, names = self.q.size, self.tried, self.names
        chance, partner, q = self.chance.copy(), np.arange(n), self.q.copy()
        copy_of, runner_up = np.full(n, -1), np.full(n, -1)
        runner_up[tried] = names.runner_up
        named = np.zeros(n, dtype=bool)
        named[tried] = (names.q_values <= self.alpha) & (names.partner >= 0)
        partner[tried] = np.where(named[tried], names.partner, tried)
        q[tried] = np.where(named[tried], names.q_values, np.maximum(q[tried], names.q_values))
        given_away = np.zeros(n, dtype=bool)
        given_away[partner[named]] = True  # its y belongs to another x
        chance[named | given_away] = np.maximum(chance, 1 - self.alpha)[named | given_away]
        q[given_away & ~named] = 1.0
        is_wrong = chance > MORE_LIKELY
        kind, probability = self._unnamed(chance, is_wrong)
        probability[named] = 1 - np.minimum(_AT_THE_EDGE * q[named], 1.0)
        cycle = partner[partner] == np.arange(n)
        kind[named] = np.where(cycle[named], SWAPPED, MOVED)
        self._mark_copies(kind, named, copy_of, partner, q, is_wrong)
        partner[~named & is_wrong & (partner == np.arange(n))] = -1
        return {
            "kind": kind,
            "partner": partner,
            "q": q,
            "probability": np.clip(probability, 0.0, 1.0),
            "chance": chance,
            "copy_of": copy_of,
            "runner_up": runner_up,
        }

    def _unnamed(self, chance: FloatArray, is_wrong: Mask) -> tuple[Array, FloatArray]:
        """What is said of rows without a name, and the chance that it is right.

        Of a wrong one that is tried, the partner may not be here.
        """
        not_here = np.zeros(self.q.size)
        not_here[self.tried] = self.names.not_here * chance[self.tried]
        accepted = self.q <= self.alpha
        hardly_wrong = (chance <= _TRIED) | (self.rank == 1)
        kind = np.where(accepted, KEPT, np.where(hardly_wrong, POOR, DOUBTFUL))
        kind[is_wrong] = DOUBTFUL
        if self.tells_innocent:  # otherwise they may be right ones that fit badly
            kind[is_wrong & (not_here > MORE_LIKELY)] = LOST
        return kind, np.where(is_wrong, np.maximum(not_here, chance * (1 - not_here)), 1 - self.chance)

    def _mark_copies(
        self, kind: Array, named: Mask, copy_of: Array, partner: Array, q: FloatArray, is_wrong: Mask
    ) -> None:
        """Rows without a name whose y, or x, is that of a right pair; an x so has its owner's partner."""
        rows, equal, of_y, of_x = self.copies.rows, self.copies.equal, self.copies.of_y, self.copies.of_x
        x_copy = ~named[rows] & is_wrong[rows] & (of_x.q_values <= self.alpha) & (of_x.of >= 0)
        y_copy = ~named[rows] & ~x_copy & (((of_y.q_values <= _CALLED_COPY) & (of_y.of >= 0)) | (equal >= 0))
        owner = np.where(equal >= 0, equal, of_y.of)
        copy_of[rows[y_copy]], copy_of[rows[x_copy]] = owner[y_copy], of_x.of[x_copy]
        partner[rows[x_copy]], q[rows[x_copy]] = of_x.of[x_copy], of_x.q_values[x_copy]
        kind[rows[x_copy | y_copy]] = COPY
        partner[rows[y_copy]] = -1
