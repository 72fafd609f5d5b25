"""Repair, the answer: which rows are with a wrong partner, and with whom they belong instead."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.repair.slips.slip import SORTED, SORTED_X, Slip
from inlier.rows.backend import to_host

KEPT, SWAPPED, MOVED, COPY, LOST, NOT_CLEAR = "kept", "swapped", "moved", "copy", "lost", "not clear"
SLIPPED = "slipped"  # where one slip explains many rows
KINDS = KEPT, SWAPPED, MOVED, COPY, LOST, NOT_CLEAR  # and slipped, where there are slips
_SLIPS_TOLD = 5  # in the answer
_MORE_AT = (0.02, 0.05, 0.1, 0.2)  # rates at which more partners might be named


@dataclass(frozen=True, eq=False, repr=False)
class Repair:
    """What becomes of each row of X: kept with its partner, or with whom instead.

    Attributes
    ----------
    kind : ndarray of str, shape (n,)
        ``kept``: an accepted pair. ``swapped``: its partner stands in another row, and the partner of that row in this
        one. ``moved``: its partner stands in another row, in a chain or a ring. ``slipped``: in another row, as those
        of its neighbours do, through one of the ``slips``. ``copy``: its y, or its x, nearly
        repeats that of the pair ``copy_of``. ``lost``: its y belongs to another row, and no y here fits it. ``not
        clear``: the scores do not tell: a right pair that fits like a stranger's, a bad measurement, a wrong partner.
    partner : ndarray of int, shape (n,)
        Row of y that belongs to each row of X; its own where it is not clear, and -1 where that belongs to another
        and nobody is named. Rows that were given without a partner are counted behind the others, of X as of y.
    q_values : ndarray of shape (n,)
        Of kept rows that of the pair; of others the smallest ``alpha`` at which their partner is named, 1 where it is
        never.
    chance_wrong : ndarray of shape (n,)
        Bound on the chance that a kept row is with a wrong partner; of rows that lost their partner or their y to
        another, how sure that is. NaN where it is not clear.
    candidates, chances : ndarray of shape (n, 3)
        Of rows that are not kept the likeliest partners, and how likely each is; what is left is none of these. -1
        where there are no more.
    own_rank : ndarray of int, shape (n,)
        Place of the row's own partner among all y for its x, and of its x for its y, on average; 1 if none fits
        better. 0 for kept rows.
    copy_of : ndarray of int, shape (n,)
        Pair that the row repeats; -1 where it repeats none.
    gaps : ndarray of int, shape (n,)
        How many of the pair's values were missing and had to be filled in.
    alpha : float
        Largest expected share of wrong names among those given.
    slips : tuple of Slip
        Slips that put many rows beside wrong ones at once; all else is said of the rows once they are undone.
    unseen_shift : int
        Where rows resemble their neighbours, or are few: a shift of all by up to so many cannot be told from none.

    Notes
    -----
    Made by `CalibratedMatcher.repair`.

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=1, noise=0.1, rng=0)
    >>> y = data.Y.copy()
    >>> y[[3, 7]] = y[[7, 3]]
    >>> repaired = CalibratedMatcher(random_state=0).fit(data.X, y).repair()
    >>> repaired.kind[3].item(), repaired.partner[3].item(), repaired.chains
    ('swapped', 7, ['3 ↔ 7'])
    """

    kind: Array
    partner: Array
    q_values: FloatArray
    chance_wrong: FloatArray
    candidates: Array
    chances: FloatArray
    own_rank: Array
    copy_of: Array
    gaps: Array
    alpha: float
    labels: tuple[Any, Any] | None = None  # of the rows of X and y, where they have any
    n_unpaired: tuple[int, int] = 0, 0  # rows of X and of y, behind the others, that were given without a partner
    within_strata: bool = False  # whether partners were looked for in the same stratum alone
    slips: tuple[Slip, ...] = ()
    unseen_shift: int = 0
    beside: Array | None = None  # row of X beside each row of y, slips undone
    places: tuple[Array, Array] | None = None  # where rows of X and y stand, if not in this order, before slips

    @property
    def n_rows_y(self) -> int:
        """How many rows of y there are, with and without a partner."""
        return int(self.partner.size - self.n_unpaired[0] + self.n_unpaired[1])

    @property
    def named(self) -> Mask:
        """Rows whose partner is named."""
        return np.isin(self.kind, (SWAPPED, MOVED))

    @property
    def suspects(self) -> Mask:
        """Rows that are said to be with a wrong partner; not those that were given without one."""
        is_pair = np.arange(self.kind.size) < self.kind.size - self.n_unpaired[0]
        return is_pair & (np.isin(self.kind, (SWAPPED, MOVED, SLIPPED, COPY, LOST)) | (self.chance_wrong >= 0.5))

    @property
    def left_over(self) -> Array:
        """Rows of y that are nobody's partner."""
        return np.setdiff1d(np.arange(self.n_rows_y), self.partner)

    @property
    def chains(self) -> list[str]:
        """Whose partner is with whom, with arrows: after each row the one that has its partner, or a row of y alone."""
        n_pairs = self.kind.size - self.n_unpaired[0]
        of_x, of_y = (range(self.kind.size), range(self.n_rows_y)) if self.labels is None else self.labels
        named = self.named
        partner = self.partner if self.beside is None else np.append(self.beside, -1)[self.partner]
        left, chains = set(np.flatnonzero(named).tolist()), []
        ends = set(left) - set(partner[named & (partner < n_pairs)].tolist())
        for start in [*sorted(ends), *sorted(left - ends)]:
            if start not in left:
                continue
            chain = [start]
            while chain[-1] in left and (len(chain) == 1 or chain[-1] < n_pairs):
                left.discard(chain[-1])
                chain.append(int(partner[chain[-1]]))
            is_swap = len(chain) == 3 and chain[0] == chain[2]
            chain = chain[:2] if is_swap else chain
            arrow = " \N{LEFT RIGHT ARROW} " if is_swap else " \N{RIGHTWARDS ARROW} "
            chains.append(arrow.join(map(str, [*(of_x[row] for row in chain[:-1]), of_y[chain[-1]]])))
        return chains

    @property
    def answer(self) -> str:
        """What was found, in a few sentences."""
        n_pairs = self.kind.size - self.n_unpaired[0]
        pairs, others = (Counter(part.tolist()) for part in np.split(self.kind, [n_pairs]))
        suspects, named = int(self.suspects.sum()) - pairs[SLIPPED], pairs[SWAPPED] + pairs[MOVED]
        if not suspects + pairs[KEPT] + pairs[SLIPPED] + others[MOVED]:  # nothing was accepted
            return f"Of none of the {n_pairs:,} rows can be told whether it is with its partner."
        text = self._about_slips
        gaps = int(self._gaps[:n_pairs].sum())
        suspects -= gaps
        if suspects:
            text += f"{suspects:,} of {n_pairs:,} rows {'is' if suspects == 1 else 'are'} with a wrong partner. "
            both = (pairs[SWAPPED], "swapped"), (pairs[MOVED], "in chains or rings")
            how = ", ".join(f"{n:,} {what}" for n, what in both if n)
            text += f"{_count(named, 'partner is', 'partners are')} named: {how}." if named else "No partner is named."
        else:
            then = " then" if self.slips else ""
            text += f"None of the {n_pairs:,} rows can be said to be with a wrong partner{then}."
        if self.n_unpaired[0] and not self.slips:
            have = "has one" if others[MOVED] == 1 else "have one"
            rows = _count(self.n_unpaired[0], "row", "rows")
            text += f" Of the {rows} given without a partner, {others[MOVED]:,} {have} now."
        where = "in the same stratum" if self.within_strata else "here"
        if pairs[LOST] > gaps:
            text += f" Of {pairs[LOST] - gaps:,} more the partner is not {where}."
        if pairs[COPY]:
            text += f" {_count(pairs[COPY], 'is a copy', 'are copies')} of another row."
        if pairs[NOT_CLEAR]:
            text += f" {self._what_is_not_clear}"
        if self.unseen_shift:
            by = "one row" if self.unseen_shift == 1 else f"up to {self.unseen_shift:,} rows"
            text += (
                f" A shift of all rows by {by} cannot be told from none: they resemble their neighbours, or are few."
            )
        if self._named_later:
            text += " {:,} more would be named at alpha = {:g}.".format(*self._named_later)
        with_gaps = int((self.suspects & (self.gaps > 0)).sum())
        if with_gaps:
            text += f" {_count(with_gaps, 'wrong row has', 'wrong rows have')} gaps that were filled in."
        return text

    @property
    def _what_is_not_clear(self) -> str:
        """Of pairs that are not clear: whether they are wrong for sure, and of how many a partner is likely."""
        rows = np.flatnonzero(self.kind[: self.kind.size - self.n_unpaired[0]] == NOT_CLEAR)
        gone = int((self.chance_wrong[rows] >= 0.5).sum())
        likely = int((self.chances[rows, 0] > 0.5).sum())
        one = rows.size == 1
        if gone == rows.size:
            what = f"what stands beside {'it' if one else 'them'} belongs to {'another row' if one else 'other rows'}"
        else:
            rest = rows.size - gone
            who = "it is with its partner" if one else "they are with their partners"
            if gone:
                who = "the other is with its partner" if rest == 1 else "the others are with their partners"
            what = f"what stands beside {gone:,} of them belongs to other rows; " if gone else ""
            what += f"the scores do not tell whether {who}"
        text = f"{rows.size:,} not clear: {what}."
        if likely:
            text += f" {_count(likely, 'of these has', 'of these have')} a likely partner, with a chance above 50 %."
        return text

    @property
    def _gaps(self) -> Mask:
        """Rows whose partner a slip has lost."""
        gaps: Mask = (self.kind == LOST) & np.isnan(self.chance_wrong)
        return gaps & bool(self.slips)

    @property
    def _about_slips(self) -> str:
        if not self.slips:
            return ""
        labels = None if self.labels is None else self.labels[0]
        n_right, n = int(np.isin(self.kind, (KEPT, SLIPPED)).sum()), self.kind.size
        told = " ".join(slip.text(labels) for slip in self.slips[:_SLIPS_TOLD])
        if len(self.slips) > _SLIPS_TOLD:
            told += f" And so on, {len(self.slips):,} in all."
        if self.slips[0].n_groups:
            told = f"{self._about_groups} {told}"
        elif self.places is not None:
            told = f"In the order in which y stood: {told}"
        if all(slip.kind in (SORTED, SORTED_X) for slip in self.slips):
            return f"{told} Who belongs to whom there was looked for row by row. "
        return f"{told} Put right, {n_right:,} of {n:,} pairs are real. "

    @property
    def _about_groups(self) -> str:
        """What was found in sequences, all of them together."""
        first, changes = self.slips[0], [slip.changed_by for slip in self.slips]
        missing, extra = -sum(by for by in changes if by < 0), sum(by for by in changes if by > 0)
        counts = (missing, "is missing", "are missing"), (extra, "is too many", "are too many")
        lines = " and ".join(_count(n, f"line of y {one}", f"lines of y {many}") for n, one, many in counts if n)
        return f"In {_count(first.n_groups, 'group', 'groups')} rows are out of step: {lines}."

    @property
    def _named_later(self) -> tuple[int, float] | None:
        """How many more partners would be named at a larger alpha, the smallest of some."""
        rest = self.q_values[~self.named & ~np.isin(self.kind, (KEPT, SLIPPED)) & (self.candidates[:, 0] >= 0)]
        for alpha in _MORE_AT:
            if alpha > self.alpha and (rest <= alpha).any():
                return int((rest <= alpha).sum()), alpha
        return None

    def among(self, kept: Array, n: int) -> Repair:
        """The same where these are some of n rows that were given; of the others nothing is known."""
        n_pairs = kept.size
        of_x = np.append(kept, n + np.arange(self.kind.size - n_pairs))
        of_y = np.concatenate([kept, n + np.arange(self.n_rows_y - n_pairs), [-1]])
        size = n + self.kind.size - n_pairs

        def spread(values: Array, fill: Any) -> Array:
            whole = np.full((size, *values.shape[1:]), fill, dtype=values.dtype)
            whole[of_x] = values
            return whole

        return replace(
            self,
            kind=spread(self.kind, NOT_CLEAR),
            partner=spread(of_y[self.partner], -1),
            q_values=spread(self.q_values, 1.0),
            chance_wrong=spread(self.chance_wrong, np.nan),
            candidates=spread(of_y[self.candidates], -1),
            chances=spread(self.chances, 0.0),
            own_rank=spread(self.own_rank, 0),
            copy_of=spread(np.append(of_x, -1)[self.copy_of], -1),
            gaps=spread(self.gaps, 0),
            slips=tuple(slip.among(of_x) for slip in self.slips),
            beside=self.beside if self.beside is None else np.append(of_x, -1)[self.beside],
        )

    def __repr__(self) -> str:
        return f"<Repair: {self.answer}>"

    def apply(self, y: Any) -> Any:
        """Return ``y`` in the order of X: row i is the partner of row i of X, NaN where there is none.

        Parameters
        ----------
        y : array-like or data frame
            The table that was matched, or any other in the same order; where rows without a partner were given, these
            behind it.

        Returns
        -------
        DataFrame, Series or ndarray
            A frame of pandas or polars where ``y`` is one, else a NumPy array, wherever ``y`` lives.
        """
        y = y if hasattr(y, "iloc") or hasattr(y, "gather_every") else to_host(y)
        if len(y) != self.n_rows_y:
            raise ValueError(f"y has {len(y)} rows, but {self.n_rows_y} were repaired. Give the y that was matched.")
        gone = self.partner < 0
        if hasattr(y, "iloc"):
            moved = y.iloc[np.where(gone, 0, self.partner)].copy()
            if self.labels is not None:
                moved.index = self.labels[0]
            elif self.n_unpaired == (0, 0):
                moved.index = y.index
            return moved.mask(gone) if moved.ndim == 1 else moved.mask(np.repeat(gone[:, None], moved.shape[1], axis=1))
        if hasattr(y, "gather_every"):  # of polars, where a missing number of a row makes a missing row
            import polars

            rows = polars.Series([None if row < 0 else row for row in self.partner.tolist()], dtype=polars.Int64)
            return y.select(polars.all().gather(rows)) if hasattr(y, "columns") else y.gather(rows)
        moved = y[self.partner]
        if gone.any():
            moved = moved.astype(np.result_type(y.dtype, np.float32) if y.dtype.kind in "biu" else y.dtype)
            moved[gone] = "" if y.dtype.kind in "US" else np.nan
        return moved

    def columns(self) -> dict[str, Array]:
        """Everything there is per row of X, by name."""
        several = range(self.candidates.shape[1])
        return {
            "kind": self.kind,
            "partner": self.partner,
            "q_value": self.q_values,
            "chance_wrong": self.chance_wrong,
            **{f"candidate_{k + 1}": self.candidates[:, k] for k in several},
            **{f"chance_{k + 1}": self.chances[:, k] for k in several},
            "own_rank": self.own_rank,
            "copy_of": self.copy_of,
            "gaps": self.gaps,
        }

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per row of X, with the labels of the tables where they have any."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame needs pandas; install it with: pip install 'inlier[io]'") from error
        if self.labels is None:
            return pandas.DataFrame(self.columns(), index=pandas.RangeIndex(self.kind.size, name="row"))
        of_x, of_y = (np.asarray(labels, dtype=object) for labels in self.labels)
        columns = self.columns()
        for name in columns:
            if name != "partner" and name != "copy_of" and not name.startswith("candidate"):
                continue
            found = (of_x if name == "copy_of" else of_y)[columns[name]]
            found[columns[name] < 0] = None
            columns[name] = found
        return pandas.DataFrame(columns, index=self.labels[0])


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
