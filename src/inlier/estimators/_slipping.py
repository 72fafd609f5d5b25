"""How slips are found: looked for by what the fit has learned, undone, learned from again; then rows one by one.

Where most rows have slipped, a fit learns little or nothing from the pairs as they stand. Then a ridge of all pairs
alike is asked, and after it one of the pairs in the shift, or the turn, by which the whole tables agree best
(`inlier.repair.slips.whole`): what is right then teaches the judges, which score every x with every y as always. What
they find is undone and learned from again, which sees more, until nothing moves; and then fitted as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from inlier._typing import Array
from inlier.estimators._repairing import MOST_UNPAIRED, repair_pairs, with_nobody_for
from inlier.estimators._slip_tables import Pairing, Tables
from inlier.exceptions import ParameterError
from inlier.repair.answer import KEPT, LOST, NOT_CLEAR, SLIPPED, Repair
from inlier.repair.slips.evidence import Crossed, Evidence
from inlier.repair.slips.find import SLIPS_AT, Found, find_in_sequences, find_slips
from inlier.repair.slips.lanes import Lanes
from inlier.repair.slips.plates import plate_maps, read_wells, wells_of
from inlier.repair.slips.slip import SORTED, SORTED_X, Slip
from inlier.repair.slips.sorting import p_of_block, sorted_blocks
from inlier.repair.slips.whole import agreeing_lanes
from inlier.rows.backend import to_host

_ALL_SHIFTS = 5_000  # rows up to which all amounts are tried, and reversals
_MOST = 1_000  # rows that a shift of more amounts to at most
_MOST_ROWS = 200_000
_BLOCKS = 20  # in order, that are looked at
_ROUNDS = 3  # of undoing and learning again, at most
_FEW_LAGS = np.arange(-3, 4)  # of rows, where few lines are missing or too many in several places
_SETTLED = 0.005  # share of rows that learning again moves, below which it has settled


@dataclass(frozen=True, eq=False)
class InStep:
    """Slips undone: what stands beside what then, and the matcher that was fitted to it."""

    found: Found
    tables: Tables
    pairing: Pairing
    matcher: Any


def put_in_step(
    matcher: Any,
    rest: tuple[Array, Array] | None,
    rest_groups: tuple[Array, Array] | None,
    plates: Plates | None,
    order: Array | None,
    random_state: Any,
) -> tuple[InStep | None, dict[str, Any]]:
    """Look for slips, undo them, and learn again; None where there are none that can be undone, and what is said then.

    In the order of X, and of y where that is another.
    """
    learned = matcher._learned
    if learned.pairs is None or learned.pairs.n_pairs > _MOST_ROWS or learned.compared is None:
        return None, {}
    if rest is not None and rest_groups is None and max(map(len, rest)) > _ALL_SHIFTS:
        return None, {}
    rng = check_random_state(random_state)
    said: dict[str, Any] = {}
    orders = [None] if order is None or (np.diff(order) > 0).all() else [None, order]
    for of_pairs in orders:
        search = _Search.of(Tables.of(matcher, rest, rest_groups, rng, of_pairs), plates, SLIPS_AT / len(orders))
        found = search.found()
        undone = None if found is None else search.undone(found)
        if undone is not None and _n_accepted(undone.matcher) > _n_accepted(matcher):  # what is put right is seen
            return undone, {}
        said = said or {"slips": search.sorted_alone(), "unseen_shift": search.unseen()}
    return None, said


def _n_accepted(matcher: Any) -> int:
    return int(np.count_nonzero(np.asarray(to_host(matcher.inlier_mask_))))


@dataclass(frozen=True, eq=False)
class _Search:
    """Tables, and lanes that are looked at."""

    tables: Tables
    lanes: Lanes
    at: float  # p-value up to which it is a slip

    @staticmethod
    def of(tables: Tables, plates: Plates | None, at: float) -> _Search:
        """Shifts, and in tables that are not too long reversals and what was done to plates."""
        n_x, n_y = len(tables.X), len(tables.Y)
        are_few = max(n_x, n_y) <= _ALL_SHIFTS
        lanes = Lanes(n_x, n_y, max(n_x, n_y) - 1 if are_few else _MOST, are_few)
        if plates is not None and tables.is_in_order and not tables.sequences:
            behind = np.full(n_x - plates.number.size, -1)
            maps = {name: np.append(rows, behind) for name, rows in plates.maps.items()}
            lanes = replace(lanes, maps=maps, plates=np.append(plates.number, behind))
        return _Search(tables, lanes, at)

    def undone(self, found: Found) -> InStep:
        """Slips undone, and what is seen once the whole is fitted again."""
        tables, n_y = self.tables, self.lanes.n_y
        pairing = Pairing.of(found.partner, n_y)
        fitted = tables.refitted(pairing)
        again = self.look(tables.judged_by(fitted, pairing), self.at)
        if again is not None and _moved(found, again):
            found, pairing = again, Pairing.of(again.partner, n_y)
            fitted = tables.refitted(pairing)
        return InStep(found, tables, pairing, fitted)

    def look(self, crossed: Crossed | None, at: float, most: int | None = None) -> Found | None:
        """Slips by some judge; where shifts amount to so much at the most, there is less to pay for."""
        if crossed is None:
            return None
        tables, lanes = self.tables, self.lanes
        if most is not None and most < lanes.most:
            lanes = Lanes(lanes.n_x, lanes.n_y, most)
        if tables.sequences:
            found = find_in_sequences(crossed, lanes, tables.sequences, tables.rng, at)
        else:
            found = find_slips(crossed, lanes, tables.rng, at)
        return found if found.slips else None

    def soon(self, partner: Array, at: float = 1.0) -> Found | None:
        """Slips by what these pairs teach."""
        return self.look(self.tables.judged_soon(Pairing.of(partner, self.lanes.n_y)), at)

    def starts(self) -> Iterator[tuple[Crossed | None, int | None]]:
        """Judges of the fit; simpler ones; of rows that are right if the table is shifted or turned, or gappy.

        With the lags from which they have learned, beyond which nothing is looked for at first. Where the fit has
        accepted most rows, no other start has as many right pairs to learn from.
        """
        tables, lanes = self.tables, self.lanes
        yield tables.judged_by(tables.matcher, tables.as_given), None
        if 2 * _n_accepted(tables.matcher) > lanes.n_x:
            return
        yield tables.judged_soon(tables.as_given), None
        for lane in agreeing_lanes(tables.X, tables.Y, lanes):
            yield tables.judged_soon(Pairing.of(lanes.columns(lane, np.arange(lanes.n_x)), lanes.n_y)), None
        lags = tables.agreeing_lags()
        for some in (lags, _FEW_LAGS):
            if some.size > 1:
                yield tables.judged_over(some), int(np.abs(some).max())

    def unseen(self) -> int:
        """Shift of the whole table up to which it could not be told from none."""
        tables, matcher = self.tables, self.tables.matcher
        if tables.sequences or matcher.detection_p_value_ > SLIPS_AT:
            return 0
        crossed = tables.judged_by(matcher, tables.as_given)
        if crossed is None:
            return 0
        return Evidence.of(crossed, self.lanes, tables.rng).unseen_shift(SLIPS_AT, tables.rng)

    def found(self) -> Found | None:
        """Slips by the first judge who finds some, after learning from what it finds until nothing moves."""
        for crossed, most in self.starts():
            proposed = self.look(crossed, 1.0, most)
            for _ in range(_ROUNDS if proposed is not None else 0):
                assert proposed is not None
                again = self.soon(proposed.partner)
                if again is None or not _moved(proposed, again):
                    break
                proposed = again
            found = None if proposed is None else self.soon(proposed.partner, self.at)
            if found is not None:
                return found
        return None

    def sorted_alone(self) -> tuple[Slip, ...]:
        """A block that was sorted alone, by what the rest has taught."""
        tables = self.tables
        blocks = sorted_blocks(tables.X, tables.Y)[:_BLOCKS] if not tables.sequences else []
        crossed = tables.judged_by(tables.matcher, tables.as_given) if blocks else None
        if crossed is None:
            return ()
        for block in blocks:
            p = p_of_block(crossed, block, tables.rng) * len(blocks)
            if p <= self.at:
                seam, n = (block.start, block.start), block.stop - block.start
                kind = SORTED_X if block.is_of_x else SORTED
                return (Slip(kind, block.start, block.stop, block.column, 0, p, n, seam, self.lanes.n_x),)
        return ()


def _moved(before: Found, after: Found) -> bool:
    return bool(np.mean(before.partner != after.partner) >= _SETTLED)


class Plates(NamedTuple):
    """What may have been done to plates, and which plate each row is from."""

    maps: dict[str, Array]
    number: Array


def read_plates(wells: Any, n: int, kept: Array) -> Plates | None:
    """Plates, from what is said of the wells of all n pairs, some of which are kept."""
    if wells is None:
        return None
    if n > _ALL_SHIFTS:
        raise ParameterError("wells", f"are looked at in up to {_ALL_SHIFTS:,} pairs, and there are {n:,}.")
    is_shape = (
        isinstance(wells, tuple) and len(wells) == 2 and all(isinstance(side, int | np.integer) for side in wells)
    )
    if is_shape:
        if min(wells) < 1 or n % (wells[0] * wells[1]):
            reason = f"say {wells[0]} x {wells[1]}, but {n:,} rows are no whole number of such plates."
            raise ParameterError("wells", f"{reason} Give the well of each pair, as in 'A01'.")
        plate, well = wells_of(n, wells)
    elif len(wells) != n:
        raise ParameterError("wells", f"has {len(wells):,} labels for {n:,} pairs. Give one for each.")
    else:
        try:
            plate, well = read_wells(wells)
        except ValueError as error:
            raise ParameterError("wells", f"cannot be read: {error}") from error
    return Plates(plate_maps(plate[kept], well[kept]), plate[kept])


def repair_in_step(step: InStep, alpha: float, random_state: Any) -> Repair:
    """Say of each row with whom it belongs, slips undone: single mistakes are looked for in what is left."""
    matcher, found, tables = step.matcher, step.found, step.tables
    rest, home, x = tables.rest_of(step.pairing), tables.home, step.pairing.x
    q = np.asarray(to_host(matcher.q_values_))
    are_many = rest is not None and max(map(len, rest)) > MOST_UNPAIRED
    tried = None if are_many else rest
    inner = repair_pairs(matcher._learned, q, matcher.detection_p_value_, tried, alpha, random_state)
    inner = with_nobody_for(inner, step.pairing.stacked) if are_many else inner
    y, n = step.pairing.y, step.pairing.n_pairs
    beside_x, of_x, of_y = np.append(y[:n], np.full(x.size - n, -1)), np.append(x, -1), np.append(y, -1)
    partner, kind = of_y[inner.partner], inner.kind.astype(object)
    lost = (found.partner[x] < 0) & (kind != KEPT) & (partner == beside_x)  # it was given what was left over
    partner[lost], kind[lost] = -1, LOST
    is_certain = np.append(np.asarray(to_host(matcher.certain_q_values_)) <= alpha, np.zeros(x.size - n, dtype=bool))
    kind[(kind == KEPT) & found.unsure[x] & ~is_certain] = NOT_CLEAR
    kind[(kind == KEPT) & (partner != home[x])] = SLIPPED
    given_x, given_y = (np.append(np.argsort(place), -1) for place in tables.places)
    beside = np.full(y.size, -1)
    beside[y[:n]] = x[:n]
    (place_x, place_y), n_pairs = tables.places, int((home >= 0).sum())
    back = np.argsort(x)[place_x]
    return replace(
        inner,
        kind=kind.astype(str)[back],
        partner=given_y[partner[back]],
        q_values=inner.q_values[back],
        chance_wrong=np.where(lost, np.nan, inner.chance_wrong)[back],
        candidates=given_y[of_y[inner.candidates][back]],
        chances=inner.chances[back],
        own_rank=inner.own_rank[back],
        copy_of=given_x[of_x[inner.copy_of][back]],
        gaps=inner.gaps[back],
        n_unpaired=(x.size - n_pairs, y.size - n_pairs),
        slips=found.slips if tables.is_in_order else tuple(slip.among(given_x[:-1]) for slip in found.slips),
        beside=given_x[beside[place_y]],
        places=None if tables.is_in_order else (place_x, tables.beside_x(place_y)),
    )
